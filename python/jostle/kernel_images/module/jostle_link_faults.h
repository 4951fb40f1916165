/* SPDX-License-Identifier: GPL-2.0 */
/* Faults of packets of "jostle_link", and habits of netem. */
#ifndef JOSTLE_LINK_FAULTS_H
#define JOSTLE_LINK_FAULTS_H

#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/netlink.h>
#include <net/sch_generic.h>

#include "jostle_link.h"
#include "jostle_link_parts.h"
#include "jostle_random.h"

/* A random event per packet, with netem's correlation. */
struct jostle_event_state {
	struct jostle_event event;
	u32 last;
	struct jostle_stream stream;
};

/* Faults by number, of the packets that a rule counts. */
struct jostle_rule_state {
	struct jostle_rule rule;
	u64 count;
	/* Index in the list of numbers, and the end of the rule's part. */
	u32 next;
	u32 end;
};

struct jostle_faults {
	/* Without one of them, packets are sent on as they are. */
	bool used;
	struct jostle_event_state duplicate;
	struct jostle_event_state corrupt;
	struct jostle_event_state reorder;
	u64 reorder_count;
	/* jostle_rule_state[], jostle_numbered[] */
	struct jostle_list rules;
	struct jostle_list numbers;
	struct jostle_netem netem;
	/* The GSO batch of the last packet. */
	u64 batch_hash;
	u64 batch_arrival_ns;
	u64 batch_bytes;
	u64 batch_delay_ns;
};

/* What happens to a packet. */
struct jostle_fate {
	bool lost;
	bool marked;
	bool corrupted;
	bool duplicated;
	bool early;
	u64 late_ns;
};

int jostle_faults_change(struct Qdisc *sch, struct jostle_faults *faults,
			 struct nlattr **tb);
void jostle_faults_free(struct jostle_faults *faults);

struct jostle_fate jostle_faults_next(struct jostle_faults *faults,
				      struct sk_buff *skb);

/* Corrupts a packet, so that the checksum at its receiver is wrong. */
struct sk_buff *jostle_corrupt(struct sk_buff *skb);

/* Whether a packet belongs to the GSO batch of the last one. */
bool jostle_in_batch(struct jostle_faults *faults, struct sk_buff *skb,
		     u64 arrival_ns);

#endif
