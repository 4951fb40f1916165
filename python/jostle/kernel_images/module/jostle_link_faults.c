// SPDX-License-Identifier: GPL-2.0
/*
 * Faults of packets of "jostle_link": what netem calls duplicate, corrupt and
 * reorder, and faults of packets with given numbers. Decisions are those of
 * jostle's simulator (its `Faults`), from the same streams of random numbers.
 */

#include <linux/in.h>
#include <linux/ip.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <net/inet_ecn.h>

#include "jostle_link_faults.h"

/* Largest GSO batch: GSO_LEGACY_MAX_SIZE. */
#define BATCH_BYTES	65536

static void event_change(struct jostle_event_state *state,
			 const struct nlattr *attr)
{
	if (!attr)
		return;
	nla_memcpy(&state->event, attr, sizeof(state->event));
	jostle_seed(&state->stream, state->event.seed);
	if (state->event.rho)
		state->last = jostle_bits(&state->stream) >> 32;
}

static bool event_occurs(struct jostle_event_state *state)
{
	const struct jostle_event *event = &state->event;
	u64 value, rho;

	if (!event->rho)
		return jostle_chance(&state->stream, event->probability);
	value = jostle_bits(&state->stream) >> 32;
	rho = event->rho + 1;
	state->last = (value * ((1ULL << 32) - rho) + state->last * rho) >> 32;
	return event->threshold && event->threshold >= state->last;
}

/* Each rule comes with its numbers, which follow those of earlier rules. */
static int rules_append(struct Qdisc *sch, struct jostle_faults *faults,
			struct nlattr **tb)
{
	const struct nlattr *given = tb[TCA_JOSTLE_LINK_RULE];
	struct jostle_rule_state state = {};
	u32 before = faults->numbers.count;
	int err;

	err = jostle_list_append(sch, &faults->numbers,
				 sizeof(struct jostle_numbered),
				 tb[TCA_JOSTLE_LINK_NUMBERS]);
	if (err)
		return err;
	if (given) {
		nla_memcpy(&state.rule, given, sizeof(state.rule));
		state.next = before;
		state.end = faults->numbers.count;
		return jostle_list_add(sch, &faults->rules, sizeof(state),
				       &state, 1);
	}
	/* More numbers of the last rule. */
	if (faults->rules.count && tb[TCA_JOSTLE_LINK_NUMBERS]) {
		struct jostle_rule_state *rules = faults->rules.items;

		sch_tree_lock(sch);
		rules[faults->rules.count - 1].end = faults->numbers.count;
		sch_tree_unlock(sch);
	}
	return 0;
}

int jostle_faults_change(struct Qdisc *sch, struct jostle_faults *faults,
			 struct nlattr **tb)
{
	int err = rules_append(sch, faults, tb);

	if (err)
		return err;
	sch_tree_lock(sch);
	event_change(&faults->duplicate, tb[TCA_JOSTLE_LINK_DUPLICATE]);
	event_change(&faults->corrupt, tb[TCA_JOSTLE_LINK_CORRUPT]);
	event_change(&faults->reorder, tb[TCA_JOSTLE_LINK_REORDERING]);
	if (tb[TCA_JOSTLE_LINK_NETEM])
		nla_memcpy(&faults->netem, tb[TCA_JOSTLE_LINK_NETEM],
			   sizeof(faults->netem));
	if (tb[TCA_JOSTLE_LINK_DUPLICATE] || tb[TCA_JOSTLE_LINK_CORRUPT] ||
	    tb[TCA_JOSTLE_LINK_REORDERING] || tb[TCA_JOSTLE_LINK_NETEM] ||
	    tb[TCA_JOSTLE_LINK_RULE])
		faults->used = true;
	sch_tree_unlock(sch);
	return 0;
}

void jostle_faults_free(struct jostle_faults *faults)
{
	kvfree(faults->rules.items);
	kvfree(faults->numbers.items);
}

/* The class of a packet, and its IPv4 header in copy. */
static u32 class_of(struct sk_buff *skb, struct iphdr *copy)
{
	int at = skb_network_offset(skb), payload;
	const struct tcphdr *tcp;
	const struct iphdr *ip;
	struct tcphdr tcp_copy;

	memset(copy, 0, sizeof(*copy));
	if (skb->protocol != htons(ETH_P_IP))
		return JOSTLE_CLASS_DATA;
	ip = skb_header_pointer(skb, at, sizeof(*copy), copy);
	if (!ip)
		return JOSTLE_CLASS_DATA;
	if (ip != copy)
		*copy = *ip;
	if (copy->version != 4 || copy->protocol != IPPROTO_TCP)
		return JOSTLE_CLASS_DATA;
	at += copy->ihl * 4;
	tcp = skb_header_pointer(skb, at, sizeof(tcp_copy), &tcp_copy);
	if (!tcp)
		return JOSTLE_CLASS_DATA;
	if (tcp->syn)
		return JOSTLE_CLASS_HANDSHAKE;
	payload = ntohs(copy->tot_len) - copy->ihl * 4 - tcp->doff * 4;
	return payload > 0 ? JOSTLE_CLASS_DATA : JOSTLE_CLASS_ACK;
}

static void apply_rules(struct jostle_faults *faults, struct sk_buff *skb,
			struct jostle_fate *fate)
{
	struct jostle_rule_state *rules = faults->rules.items;
	const struct jostle_numbered *numbers = faults->numbers.items;
	struct iphdr ip;
	u32 class, i;

	if (!faults->rules.count)
		return;
	class = class_of(skb, &ip);
	for (i = 0; i < faults->rules.count; i++) {
		struct jostle_rule_state *state = &rules[i];
		const struct jostle_numbered *next;
		__be32 host = (__force __be32)state->rule.host;

		if (host && ip.saddr != host && ip.daddr != host)
			continue;
		if (state->rule.class && state->rule.class != class)
			continue;
		state->count++;
		if (state->next == state->end)
			continue;
		next = &numbers[state->next];
		if (next->number != state->count)
			continue;
		state->next++;
		switch (next->fault) {
		case JOSTLE_LOSE:
			fate->lost = true;
			break;
		case JOSTLE_MARK:
			fate->marked = true;
			break;
		case JOSTLE_CORRUPT:
			fate->corrupted = true;
			break;
		case JOSTLE_DUPLICATE:
			fate->duplicated = true;
			break;
		case JOSTLE_LATE:
			fate->early = false;
			fate->late_ns = next->late_ns;
			break;
		}
	}
}

struct jostle_fate jostle_faults_next(struct jostle_faults *faults,
				      struct sk_buff *skb)
{
	const struct jostle_event *reorder = &faults->reorder.event;
	struct jostle_fate fate = {};

	fate.duplicated = event_occurs(&faults->duplicate);
	fate.corrupted = event_occurs(&faults->corrupt);
	if (reorder->gap) {
		if (faults->reorder_count + 1 >= reorder->gap &&
		    event_occurs(&faults->reorder)) {
			faults->reorder_count = 0;
			fate.early = !reorder->late_ns;
			fate.late_ns = reorder->late_ns;
		} else {
			faults->reorder_count++;
		}
	}
	apply_rules(faults, skb, &fate);
	return fate;
}

struct sk_buff *jostle_corrupt(struct sk_buff *skb)
{
	u8 *last;

	if (skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb)) {
		kfree_skb(skb);
		return NULL;
	}
	skb = skb_unshare(skb, GFP_ATOMIC);
	if (!skb)
		return NULL;
	if (skb_linearize(skb)) {
		kfree_skb(skb);
		return NULL;
	}
	/* The receiver must look. */
	skb->ip_summed = CHECKSUM_NONE;
	last = skb->data + skb->len - 1;
	*last ^= 1;
	return skb;
}

bool jostle_in_batch(struct jostle_faults *faults, struct sk_buff *skb,
		     u64 arrival_ns)
{
	struct iphdr ip;
	u64 hash;

	class_of(skb, &ip);
	hash = (u64)(__force u32)ip.saddr << 32 | (__force u32)ip.daddr;
	if (hash == faults->batch_hash &&
	    arrival_ns == faults->batch_arrival_ns &&
	    faults->batch_bytes + qdisc_pkt_len(skb) <= BATCH_BYTES) {
		faults->batch_bytes += qdisc_pkt_len(skb);
		return true;
	}
	faults->batch_hash = hash;
	faults->batch_arrival_ns = arrival_ns;
	faults->batch_bytes = qdisc_pkt_len(skb);
	return false;
}
