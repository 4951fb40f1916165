// SPDX-License-Identifier: GPL-2.0
/*
 * Capacity on demand of "jostle_link", as jostle's simulator computes it (its
 * `Grants`): a terminal asks for a rate or a volume, and gets slots in a
 * superframe after a latency. All numbers stay below 2^64: rates are at most
 * 10 Gbit/s, superframes and intervals at most a second.
 */

#include <linux/math64.h>
#include <linux/slab.h>

#include "jostle_link_grants.h"
#include "jostle_link_parts.h"

#define MOST_BITS	10000000000ULL
#define PER_MILLE	1000

struct grant_request {
	struct list_head in_order;
	u64 due_ns;
	u64 rate_bps;
	u64 volume_bits;
};

void jostle_grants_init(struct jostle_grants *grants)
{
	INIT_LIST_HEAD(&grants->requests);
}

void jostle_grants_change(struct Qdisc *sch, struct jostle_grants *grants,
			  struct nlattr **tb)
{
	if (!tb[TCA_JOSTLE_LINK_GRANTS])
		return;
	sch_tree_lock(sch);
	nla_memcpy(&grants->parms, tb[TCA_JOSTLE_LINK_GRANTS],
		   sizeof(grants->parms));
	jostle_seed(&grants->free, grants->parms.free_seed);
	jostle_seed(&grants->collisions, grants->parms.collision_seed);
	jostle_seed(&grants->losses, grants->parms.request_seed);
	sch_tree_unlock(sch);
}

void jostle_grants_reset(struct jostle_grants *grants)
{
	struct grant_request *request, *next;

	list_for_each_entry_safe(request, next, &grants->requests, in_order) {
		list_del(&request->in_order);
		kfree(request);
	}
	kfree_skb(grants->unfinished);
	grants->unfinished = NULL;
	grants->unsent_bits = 0;
}

void jostle_grants_arrival(struct jostle_grants *grants, u32 size_bytes)
{
	grants->arrived_bits = min(grants->arrived_bits + size_bytes * 8ULL,
				   MOST_BITS);
}

u64 jostle_grants_next(const struct jostle_grants *grants)
{
	if (!grants->parms.superframe_ns)
		return JOSTLE_NEVER;
	return min(grants->next_request_ns, grants->next_superframe_ns);
}

static u64 less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

static u64 bits_in(u64 bps, u64 span_ns)
{
	return div64_u64(bps * span_ns, NSEC_PER_SEC);
}

static u64 wanted_bps(struct jostle_grants *grants, u64 input_bits,
		      u64 excess_bits)
{
	const struct jostle_grant_parms *parms = &grants->parms;
	u64 wanted = input_bits, bps;

	if (!parms->volume_based)
		wanted += div_u64(excess_bits * parms->gain_per_mille,
				  PER_MILLE);
	bps = div64_u64(min(wanted, MOST_BITS) * NSEC_PER_SEC,
			parms->request_interval_ns);
	bps = less(bps, parms->constant_bps);
	bps = DIV64_U64_ROUND_UP(bps, parms->quantum_bps) * parms->quantum_bps;
	return min(bps, parms->most_bps - parms->constant_bps);
}

static void grants_request(struct jostle_grants *grants, u64 backlog_bits)
{
	const struct jostle_grant_parms *parms = &grants->parms;
	u64 due_ns = grants->next_request_ns + parms->latency_ns;
	u64 arrived = grants->arrived_bits, pending = 0;
	u64 rate_bps = 0, volume_bits = 0, last_bps = grants->rate_bps;
	struct grant_request *request;

	grants->next_request_ns += parms->request_interval_ns;
	grants->arrived_bits = 0;
	backlog_bits = min(backlog_bits, MOST_BITS);
	list_for_each_entry(request, &grants->requests, in_order) {
		pending += bits_in(request->rate_bps,
				   parms->request_interval_ns) +
			   request->volume_bits;
		last_bps = request->rate_bps;
	}
	if (parms->rate_based) {
		u64 input = min(div_u64(arrived * parms->over_per_mille,
					PER_MILLE), MOST_BITS);
		u64 excess = less(backlog_bits, input + pending);

		if (parms->volume_based)
			volume_bits = excess;
		rate_bps = wanted_bps(grants, input, excess);
	} else if (parms->volume_based) {
		volume_bits = less(backlog_bits, pending);
	}
	if (!rate_bps && !volume_bits && !last_bps)
		return;
	if (jostle_chance(&grants->losses, parms->request_loss))
		return;
	request = kmalloc(sizeof(*request), GFP_ATOMIC);
	if (!request)
		return;
	request->due_ns = due_ns;
	request->rate_bps = rate_bps;
	request->volume_bits = volume_bits;
	list_add_tail(&request->in_order, &grants->requests);
}

/* Uniform in 0 ... n - 1. */
static u64 below(struct jostle_stream *stream, u64 n)
{
	return mul_u64_u64_shr(jostle_bits(stream), n, 64);
}

static u64 contend(struct jostle_grants *grants, u64 now_ns)
{
	const struct jostle_grant_parms *parms = &grants->parms;
	u64 superframes;

	if (!jostle_chance(&grants->collisions, parms->collision))
		return parms->contention_bytes * 8;
	superframes = 1 + below(&grants->collisions, parms->backoff);
	grants->contention_from_ns = now_ns + parms->latency_ns +
				     superframes * parms->superframe_ns;
	return 0;
}

static void grants_superframe(struct jostle_grants *grants, u64 backlog_bits)
{
	const struct jostle_grant_parms *parms = &grants->parms;
	u64 now_ns = grants->next_superframe_ns, most, bits, volume;
	struct grant_request *request, *next;

	grants->next_superframe_ns += parms->superframe_ns;
	list_for_each_entry_safe(request, next, &grants->requests, in_order) {
		if (request->due_ns > now_ns)
			break;
		if (parms->rate_based) {
			grants->rate_bps = request->rate_bps;
			grants->rate_until_ns = now_ns + parms->persistence_ns;
		}
		grants->volume_bits += request->volume_bits;
		list_del(&request->in_order);
		kfree(request);
	}
	if (now_ns >= grants->rate_until_ns)
		grants->rate_bps = 0;

	most = bits_in(parms->most_bps, parms->superframe_ns);
	bits = min(bits_in(parms->constant_bps + grants->rate_bps,
			   parms->superframe_ns), most);
	volume = min(grants->volume_bits, most - bits);
	grants->volume_bits -= volume;
	bits += volume;
	if (parms->free_bps)
		bits = min(bits + below(&grants->free,
					bits_in(parms->free_bps,
						parms->superframe_ns) + 1),
			   most);
	if (parms->contention_bytes && backlog_bits && !grants->rate_bps &&
	    !volume && now_ns >= grants->contention_from_ns)
		bits = min(bits + contend(grants, now_ns), most);

	if (parms->spread) {
		grants->slots_bps = div64_u64(bits * NSEC_PER_SEC,
					      parms->superframe_ns);
		grants->slots_end_ns = now_ns + parms->superframe_ns;
	} else {
		grants->slots_bps = parms->most_bps;
		grants->slots_end_ns = now_ns + div64_u64(bits * NSEC_PER_SEC,
							  parms->most_bps);
	}
}

void jostle_grants_step(struct jostle_grants *grants, u64 backlog_bits)
{
	if (grants->next_request_ns <= grants->next_superframe_ns)
		grants_request(grants, backlog_bits);
	else
		grants_superframe(grants, backlog_bits);
}

u64 jostle_grants_bits(const struct jostle_grants *grants, u64 now_ns)
{
	return bits_in(grants->slots_bps, less(grants->slots_end_ns, now_ns));
}

u64 jostle_grants_time(const struct jostle_grants *grants, u64 bits)
{
	return DIV64_U64_ROUND_UP(bits * NSEC_PER_SEC,
				  max(grants->slots_bps, 1ULL));
}
