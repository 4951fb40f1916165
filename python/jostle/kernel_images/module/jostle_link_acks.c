// SPDX-License-Identifier: GPL-2.0
/*
 * ACK thinning of "jostle_link": of the ACKs of a connection that come while
 * one is held, only the newest goes on. Modems do so (TCP ACK suppression); it
 * is a form of RFC 3449's ACK filtering (section 5.2.1), by the rules of
 * jostle's simulator (its `AckThinning`).
 */

#include <linux/ip.h>
#include <linux/jhash.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <net/tcp.h>

#include "jostle_link_acks.h"
#include "jostle_link_parts.h"

/* SYN, FIN, RST, PSH and URG: more than an ACK. */
#define MORE_THAN_ACK	(TCP_FLAG_SYN | TCP_FLAG_FIN | TCP_FLAG_RST | \
			 TCP_FLAG_PSH | TCP_FLAG_URG)
/* ECE and CWR, and the bits before them, of which RFC 9768 takes one. */
#define MARKS		(TCP_FLAG_ECE | TCP_FLAG_CWR | TCP_RESERVED_BITS)

void jostle_acks_init(struct jostle_acks *acks)
{
	hash_init(acks->held);
	INIT_LIST_HEAD(&acks->in_order);
}

void jostle_acks_change(struct Qdisc *sch, struct jostle_acks *acks,
			struct nlattr **tb)
{
	if (!tb[TCA_JOSTLE_LINK_ACK_THINNING])
		return;
	sch_tree_lock(sch);
	nla_memcpy(&acks->thinning, tb[TCA_JOSTLE_LINK_ACK_THINNING],
		   sizeof(acks->thinning));
	sch_tree_unlock(sch);
}

void jostle_acks_purge(struct jostle_acks *acks)
{
	struct jostle_held *held;

	while ((held = jostle_acks_first(acks)))
		kfree_skb(jostle_acks_take(held));
}

static void read_options(const u8 *at, int left, struct jostle_ack *ack)
{
	while (left > 0 && *at != TCPOPT_EOL) {
		int size = 1;

		if (*at != TCPOPT_NOP) {
			if (left < 2 || at[1] < 2 || at[1] > left)
				return;
			size = at[1];
		}
		if (*at == TCPOPT_TIMESTAMP && size == TCPOLEN_TIMESTAMP) {
			__be32 echoed;

			memcpy(&echoed, at + 6, sizeof(echoed));
			ack->echoed = be32_to_cpu(echoed);
		}
		if (*at == TCPOPT_SACK)
			ack->selective = true;
		at += size;
		left -= size;
	}
}

bool jostle_ack_read(struct sk_buff *skb, struct jostle_ack *ack)
{
	int at = skb_network_offset(skb), header, whole;
	const struct tcphdr *tcp;
	const struct iphdr *ip;
	struct iphdr ip_copy;
	/* With all options. */
	u8 copy[60];

	if (skb->protocol != htons(ETH_P_IP))
		return false;
	ip = skb_header_pointer(skb, at, sizeof(ip_copy), &ip_copy);
	if (!ip || ip->version != 4 || ip->protocol != IPPROTO_TCP)
		return false;
	whole = ntohs(ip->tot_len) - ip->ihl * 4;
	at += ip->ihl * 4;
	tcp = skb_header_pointer(skb, at, sizeof(*tcp), copy);
	if (!tcp)
		return false;
	header = tcp->doff * 4;
	if (header < sizeof(*tcp) || whole != header || !tcp->ack ||
	    (tcp_flag_word(tcp) & MORE_THAN_ACK))
		return false;
	tcp = skb_header_pointer(skb, at, header, copy);
	if (!tcp)
		return false;

	*ack = (struct jostle_ack) {
		.source = ip->saddr,
		.destination = ip->daddr,
		.source_port = tcp->source,
		.destination_port = tcp->dest,
		.number = ntohl(tcp->ack_seq),
		.marks = (__force u32)(tcp_flag_word(tcp) & MARKS),
	};
	read_options((const u8 *)(tcp + 1), header - sizeof(*tcp), ack);
	return true;
}

bool jostle_ack_says_more(const struct jostle_ack *ack,
			  const struct jostle_ack *older)
{
	if (before(ack->echoed, older->echoed) ||
	    before(ack->number, older->number))
		return false;
	return ack->selective || after(ack->number, older->number);
}

static u32 hash_of(const struct jostle_ack *ack)
{
	return jhash_3words((__force u32)ack->source,
			    (__force u32)ack->destination,
			    (__force u32)ack->source_port << 16 |
			    (__force u32)ack->destination_port, 0);
}

struct jostle_held *jostle_acks_find(struct jostle_acks *acks,
				     const struct jostle_ack *ack)
{
	struct jostle_held *held;

	hash_for_each_possible(acks->held, held, of_hash, hash_of(ack)) {
		if (held->ack.source == ack->source &&
		    held->ack.destination == ack->destination &&
		    held->ack.source_port == ack->source_port &&
		    held->ack.destination_port == ack->destination_port)
			return held;
	}
	return NULL;
}

struct jostle_held *jostle_acks_first(struct jostle_acks *acks)
{
	return list_first_entry_or_null(&acks->in_order, struct jostle_held,
					in_order);
}

u64 jostle_acks_due(struct jostle_acks *acks)
{
	struct jostle_held *first = jostle_acks_first(acks);

	return first ? first->due_ns : JOSTLE_NEVER;
}

bool jostle_acks_hold(struct jostle_acks *acks, struct sk_buff *skb,
		      const struct jostle_ack *ack, u64 now_ns)
{
	struct jostle_held *held = kmalloc(sizeof(*held), GFP_ATOMIC);

	if (!held)
		return false;
	held->skb = skb;
	held->ack = *ack;
	held->stands_for = 1;
	held->due_ns = jostle_later(now_ns, acks->thinning.hold_ns);
	hash_add(acks->held, &held->of_hash, hash_of(ack));
	list_add_tail(&held->in_order, &acks->in_order);
	return true;
}

struct sk_buff *jostle_acks_take(struct jostle_held *held)
{
	struct sk_buff *skb = held->skb;

	hash_del(&held->of_hash);
	list_del(&held->in_order);
	kfree(held);
	return skb;
}
