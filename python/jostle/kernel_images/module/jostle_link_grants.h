/* SPDX-License-Identifier: GPL-2.0 */
/* Capacity on demand of "jostle_link". */
#ifndef JOSTLE_LINK_GRANTS_H
#define JOSTLE_LINK_GRANTS_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/netlink.h>
#include <net/sch_generic.h>

#include "jostle_link.h"
#include "jostle_random.h"

struct jostle_grants {
	/* Without a superframe, the capacity is always there. */
	struct jostle_grant_parms parms;
	u64 next_request_ns;
	u64 next_superframe_ns;
	u64 arrived_bits;
	/* Requests on their way, in order. */
	struct list_head requests;
	u64 rate_bps;
	u64 rate_until_ns;
	u64 volume_bits;
	u64 slots_end_ns;
	u64 slots_bps;
	u64 contention_from_ns;
	struct jostle_stream free;
	struct jostle_stream collisions;
	struct jostle_stream losses;
	/* A packet in fragments, and its bits that have not been sent. */
	struct sk_buff *unfinished;
	u64 unsent_bits;
};

void jostle_grants_init(struct jostle_grants *grants);
void jostle_grants_change(struct Qdisc *sch, struct jostle_grants *grants,
			  struct nlattr **tb);
void jostle_grants_reset(struct jostle_grants *grants);

void jostle_grants_arrival(struct jostle_grants *grants, u32 size_bytes);

/* When there is a request opportunity or a superframe. */
u64 jostle_grants_next(const struct jostle_grants *grants);

/* Handles it. */
void jostle_grants_step(struct jostle_grants *grants, u64 backlog_bits);

/* What the slots of the superframe carry from now_ns on, and how long. */
u64 jostle_grants_bits(const struct jostle_grants *grants, u64 now_ns);
u64 jostle_grants_time(const struct jostle_grants *grants, u64 bits);

#endif
