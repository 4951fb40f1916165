/* SPDX-License-Identifier: GPL-2.0 */
/* The capacity, delay, losses and frames of "jostle_link". */
#ifndef JOSTLE_LINK_PARTS_H
#define JOSTLE_LINK_PARTS_H

#include <linux/types.h>
#include <net/netlink.h>
#include <net/sch_generic.h>

#include "jostle_link.h"
#include "jostle_random.h"

/* A time that does not come. */
#define JOSTLE_NEVER	U64_MAX
/*
 * Events at most this far apart are simultaneous. The clock of User-Mode Linux
 * advances in steps of 256 ns (TIMER_MULTIPLIER), and its timers are late by up
 * to three of them.
 */
#define JOSTLE_CLOCK_NS	1000

/* A list from user space that may come in parts. */
struct jostle_list {
	void *items;
	u32 count;
	u32 room;
};

/* Adds items to a list: copies of them, or the content of an attribute. */
int jostle_list_add(struct Qdisc *sch, struct jostle_list *list, size_t size,
		    const void *added, u32 more);
int jostle_list_append(struct Qdisc *sch, struct jostle_list *list, size_t size,
		       const struct nlattr *attr);

struct jostle_capacity {
	/* jostle_step[]: bit/s */
	struct jostle_list rates;
	u32 step;
	/* Time for one size, nearly always that of the next packet. */
	u64 rate_bps;
	u32 size_bytes;
	u64 whole_ns;
	u64 rest;
	/* Last result, and by how much the packet was sent earlier than that. */
	u64 finish_ns;
	u64 spare;

	/* u32[]: ms. If there is one, rates do not count. */
	struct jostle_list opportunities;
	u32 opportunity_bytes;
	u32 next;
	u32 left_bytes;
	u64 base_ns;
	u64 at_ns;
	bool used;

	/* Sizes on the wire, if they differ. */
	struct jostle_framing framing;
	bool framed;
};

struct jostle_delay {
	/* jostle_step[]: ns */
	struct jostle_list base;
	u32 step;
	bool reorder;

	/* u64[]: ns, jitter_step_ns apart */
	struct jostle_list jitter;
	u64 jitter_step_ns;

	/* jostle_quantile[] */
	struct jostle_list quantiles;
	struct jostle_stream stream;
};

struct jostle_losses {
	/* jostle_outage[] */
	struct jostle_list outages;
	u32 outage;

	struct jostle_loss chain;
	struct jostle_stream stream;

	/* jostle_step[]: probability */
	struct jostle_list steps;
	u32 step;
	struct jostle_stream steps_stream;
};

struct jostle_frames {
	/* Without packets, each is sent by itself. */
	struct jostle_frame frame;
	/* jostle_quantile[] */
	struct jostle_list contention;
	struct jostle_stream stream;
	/* The medium is the link's when it next serves. */
	bool won;
};

int jostle_capacity_change(struct Qdisc *sch, struct jostle_capacity *capacity,
			   struct nlattr **tb);
void jostle_capacity_free(struct jostle_capacity *capacity);

/* Size of a packet on the wire, without framing that of its Ethernet frame. */
u32 jostle_wire_bytes(const struct jostle_capacity *capacity,
		      const struct sk_buff *skb);

/* When a packet whose sending starts at start_ns has been sent. */
u64 jostle_sent(struct jostle_capacity *capacity, u64 start_ns, u32 size_bytes);

int jostle_delay_change(struct Qdisc *sch, struct jostle_delay *delay,
			struct nlattr **tb);
void jostle_delay_free(struct jostle_delay *delay);

/* Delay of a packet that has been sent at now_ns. */
u64 jostle_delay_at(struct jostle_delay *delay, u64 now_ns);

int jostle_losses_change(struct Qdisc *sch, struct jostle_losses *losses,
			 struct nlattr **tb);
void jostle_losses_free(struct jostle_losses *losses);

/* Whether what has been sent at now_ns was sent in an outage. */
bool jostle_in_outage(struct jostle_losses *losses, u64 now_ns);

/* Whether the next packet that has been sent, at now_ns, is lost. */
bool jostle_lost(struct jostle_losses *losses, u64 now_ns);

int jostle_frames_change(struct Qdisc *sch, struct jostle_frames *frames,
			 struct nlattr **tb);
void jostle_frames_free(struct jostle_frames *frames);

/* How long the link waits for the medium before its next frame. */
u64 jostle_contention(struct jostle_frames *frames);

/* A sum, or JOSTLE_NEVER beyond all times. */
u64 jostle_later(u64 time_ns, u64 span_ns);

#endif
