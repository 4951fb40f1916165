/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What user space tells the queueing disciplines "jostle_link" and
 * "jostle_queue", and what they tell it.
 *
 * Times are nanoseconds since the link's origin unless said otherwise, rates
 * bit/s, probabilities 53-bit numbers, seeds those of a stream of random
 * numbers (see jostle_random.h).
 */
#ifndef JOSTLE_LINK_H
#define JOSTLE_LINK_H

#include <linux/types.h>

/*
 * Options of "jostle_link". Those that are lists may be given in parts: what
 * comes later is added at the end.
 */
enum {
	TCA_JOSTLE_LINK_UNSPEC,
	TCA_JOSTLE_LINK_ORIGIN,		/* __u64: moment of CLOCK_MONOTONIC */
	TCA_JOSTLE_LINK_RATES,		/* jostle_step[]: bit/s, the first at 0 */
	TCA_JOSTLE_LINK_OPPORTUNITIES,	/* __u32[]: ms; instead of rates, with */
	TCA_JOSTLE_LINK_OPPORTUNITY_BYTES, /* __u32, not later than those */
	TCA_JOSTLE_LINK_DELAYS,		/* jostle_step[]: ns, the first at 0 */
	TCA_JOSTLE_LINK_REORDER,	/* flag: packets may overtake each other */
	TCA_JOSTLE_LINK_JITTER_STEP,	/* __u64: time between two values of */
	TCA_JOSTLE_LINK_JITTER,		/* __u64[]: ns on top, linear in between; not before it */
	TCA_JOSTLE_LINK_DRAWS,		/* __u64: seed of jitter per packet, from */
	TCA_JOSTLE_LINK_QUANTILES,	/* jostle_quantile[] */
	TCA_JOSTLE_LINK_OUTAGES,	/* jostle_outage[], in order */
	TCA_JOSTLE_LINK_LOSS,		/* jostle_loss */
	TCA_JOSTLE_LINK_LOSS_DRAWS,	/* __u64: seed of losses beside those, with */
	TCA_JOSTLE_LINK_LOSS_STEPS,	/* jostle_step[]: probability, the first at 0 */
	TCA_JOSTLE_LINK_CONTENTION,	/* jostle_quantile[]: ns to wait before */
	TCA_JOSTLE_LINK_FRAMES,		/* jostle_frame, not before those */
	TCA_JOSTLE_LINK_ACK_THINNING,	/* jostle_thinning */
	TCA_JOSTLE_LINK_DUPLICATE,	/* jostle_event */
	TCA_JOSTLE_LINK_CORRUPT,	/* jostle_event */
	TCA_JOSTLE_LINK_REORDERING,	/* jostle_event */
	TCA_JOSTLE_LINK_RULE,		/* jostle_rule, one per message, with */
	TCA_JOSTLE_LINK_NUMBERS,	/* jostle_numbered[]: of it or the last rule */
	TCA_JOSTLE_LINK_NETEM,		/* jostle_netem */
	TCA_JOSTLE_LINK_GRANTS,		/* jostle_grant_parms */
	TCA_JOSTLE_LINK_FRAMING,	/* jostle_framing */
	__TCA_JOSTLE_LINK_MAX
};

#define TCA_JOSTLE_LINK_MAX (__TCA_JOSTLE_LINK_MAX - 1)

/* From a time on, a rate, delay or probability. */
struct jostle_step {
	__u64 at_ns;
	__u64 value;
};

/* A point of a quantile function, linear in between. */
struct jostle_quantile {
	__u64 probability;
	__u64 value_ns;
};

/* Everything that has been sent from start to end, end excluded, is lost. */
struct jostle_outage {
	__u64 start_ns;
	__u64 end_ns;
};

/* Gilbert's and Elliott's chain; without changes of state, independent loss. */
struct jostle_loss {
	__u64 seed;
	__u64 skip;	/* numbers of the stream that are used up */
	__u64 good_to_bad;
	__u64 bad_to_good;
	__u64 loss_good;
	__u64 loss_bad;
	__u64 bad;	/* whether it starts there */
};

/* A frame, of one packet at least, and what its waits are drawn from. */
struct jostle_frame {
	__u64 seed;
	__u64 most_packets;
	__u64 most_bytes;
};

/* Of ACKs that come while one waits, only the newest goes on. */
struct jostle_thinning {
	__u64 most;	/* that one stands for */
	__u64 hold_ns;	/* that it waits at most */
};

/* A random event per packet, with netem's correlation if rho is not 0. */
struct jostle_event {
	__u64 seed;
	__u64 probability;
	__u64 threshold;	/* the same, out of 2^32 - 1 */
	__u64 rho;		/* correlation, out of 2^32 - 1 */
	__u64 gap;		/* of reordering: distance of two packets */
	__u64 late_ns;		/* of reordering; 0: they skip the delay */
};

enum {
	JOSTLE_CLASS_ANY,
	JOSTLE_CLASS_DATA,	/* TCP with data, and all that is not TCP */
	JOSTLE_CLASS_ACK,	/* TCP without data and SYN */
	JOSTLE_CLASS_HANDSHAKE,	/* SYN, SYN-ACK */
};

enum {
	JOSTLE_LOSE,
	JOSTLE_MARK,
	JOSTLE_CORRUPT,
	JOSTLE_DUPLICATE,
	JOSTLE_LATE,
};

/* The packets that are counted: from or to a host, of a class. */
struct jostle_rule {
	__u32 host;	/* IPv4 address in network order; 0: any */
	__u32 class;
};

/* A fault of the packet with a number, from 1. */
struct jostle_numbered {
	__u64 number;
	__u64 fault;
	__u64 late_ns;
};

/* Habits of netem. */
struct jostle_netem {
	__u64 limit_packets;	/* in the delay; 0: no limit */
	__u64 with_queue;	/* what waits counts as well */
	__u64 per_batch;	/* a GSO batch has one random delay */
};

/* Capacity on demand. */
struct jostle_grant_parms {
	__u64 superframe_ns;
	__u64 latency_ns;
	__u64 request_interval_ns;
	__u64 constant_bps;
	__u64 rate_based;	/* whether a rate is asked for, with */
	__u64 over_per_mille;
	__u64 gain_per_mille;
	__u64 persistence_ns;
	__u64 volume_based;
	__u64 free_bps;
	__u64 quantum_bps;
	__u64 most_bps;
	__u64 contention_bytes;	/* 0: no such slots */
	__u64 collision;
	__u64 backoff;
	__u64 request_loss;
	__u64 spread;
	__u64 free_seed;
	__u64 collision_seed;
	__u64 request_seed;
};

enum {
	JOSTLE_CELLS_NONE,
	JOSTLE_CELLS_ATM,	/* 53 bytes for 48 or part of them */
	JOSTLE_CELLS_PTM,	/* one byte more for 64 or part of them */
};

/* Sizes on the wire, which the capacity counts. */
struct jostle_framing {
	__s64 overhead_bytes;	/* on top of the IP packet */
	__u64 min_bytes;	/* with the overhead */
	__u64 cells;
};

/* Statistics of "jostle_link", from its start on. */
struct jostle_link_xstats {
	__u64 sent_packets;
	__u64 sent_bytes;
	__u64 lost_packets;
	__u64 outage_packets;
	__u64 travelling_packets;	/* now */
	__u64 travelling_bytes;		/* now */
	__u64 thinned_packets;		/* ACKs in whose place a newer one went on */
	__u64 held_bytes;		/* ACKs that wait for a newer one now */
	__u64 corrupted_packets;
	__u64 duplicated_packets;
	__u64 full_packets;		/* that found netem's delay full */
	__u64 rejected_packets;		/* that found it full with the queue */
	__u64 marked_packets;		/* by number */
};

/* Options of "jostle_queue". */
enum {
	TCA_JOSTLE_QUEUE_UNSPEC,
	TCA_JOSTLE_QUEUE_PARMS,		/* jostle_queue_parms */
	__TCA_JOSTLE_QUEUE_MAX
};

#define TCA_JOSTLE_QUEUE_MAX (__TCA_JOSTLE_QUEUE_MAX - 1)

/*
 * First in, first out. What finds more than a threshold waiting is dropped
 * with a probability, what does not fit always.
 */
struct jostle_queue_parms {
	__u64 limit_bytes;
	__u64 limit_packets;
	__u64 threshold_bytes;
	__u64 probability;
	__u64 seed;
};

/* Statistics of "jostle_queue": dropped packets. */
struct jostle_queue_xstats {
	__u32 overflow;
	__u32 occupancy;
};

#endif
