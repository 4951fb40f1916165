/* SPDX-License-Identifier: GPL-2.0 */
/* The ACKs that "jostle_link" holds back for newer ones. */
#ifndef JOSTLE_LINK_ACKS_H
#define JOSTLE_LINK_ACKS_H

#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/netlink.h>
#include <net/sch_generic.h>

#include "jostle_link.h"

/* An ACK of TCP without data. */
struct jostle_ack {
	__be32 source, destination;
	__be16 source_port, destination_port;
	u32 number;
	/* TSecr */
	u32 echoed;
	/* Flags of ECN. */
	u32 marks;
	/* It has blocks of SACK. */
	bool selective;
};

struct jostle_held {
	struct hlist_node of_hash;
	struct list_head in_order;
	struct sk_buff *skb;
	struct jostle_ack ack;
	/* ACKs, itself included. */
	u64 stands_for;
	u64 due_ns;
};

struct jostle_acks {
	/* Without a number of ACKs that one stands for, none is held. */
	struct jostle_thinning thinning;
	DECLARE_HASHTABLE(held, 8);
	/* The same, in order of time: each is held equally long. */
	struct list_head in_order;
};

void jostle_acks_init(struct jostle_acks *acks);
void jostle_acks_change(struct Qdisc *sch, struct jostle_acks *acks,
			struct nlattr **tb);
void jostle_acks_purge(struct jostle_acks *acks);

/* Whether a packet is an ACK without data, and what it says. */
bool jostle_ack_read(struct sk_buff *skb, struct jostle_ack *ack);

/* Whether an ACK tells all that an older one, without blocks, does, and more. */
bool jostle_ack_says_more(const struct jostle_ack *ack,
			  const struct jostle_ack *older);

/* The held ACK of the connection that another one is of. */
struct jostle_held *jostle_acks_find(struct jostle_acks *acks,
				     const struct jostle_ack *ack);

/* The one that is due first. */
struct jostle_held *jostle_acks_first(struct jostle_acks *acks);

/* When that is. */
u64 jostle_acks_due(struct jostle_acks *acks);

/* Holds the ACK of a connection of which none is held; false without memory. */
bool jostle_acks_hold(struct jostle_acks *acks, struct sk_buff *skb,
		      const struct jostle_ack *ack, u64 now_ns);

/* Holds it no longer. */
struct sk_buff *jostle_acks_take(struct jostle_held *held);

#endif
