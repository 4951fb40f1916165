// SPDX-License-Identifier: GPL-2.0
/*
 * "jostle_link": one direction of a link of jostle's. A queue (its child, any
 * discipline), then a capacity, then a delay, then losses; what has come
 * through goes to the device.
 *
 * It plays back what user space has drawn beforehand from the random streams
 * of jostle's simulator: when there are outages, how the delay changes, when
 * something can be sent. Decisions per packet it draws itself, from the same
 * streams. So both meet the same impairments.
 *
 * A packet takes two timers: the end of its sending, when the next one leaves
 * the queue, and its exit. Both are computed from each other and not from the
 * time at which a timer was heard, so that lateness does not add up. Without
 * reordering, an exit is held back to the one before it.
 *
 * A link may wait for the medium and then send many packets at once, as a
 * frame; and it may hold ACKs back for newer ones before they enter the queue.
 */

#include <linux/module.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <net/inet_ecn.h>
#include <net/tcp.h>

#include "jostle_link.h"
#include "jostle_link_acks.h"
#include "jostle_link_faults.h"
#include "jostle_link_grants.h"
#include "jostle_link_parts.h"

struct jostle_link {
	struct Qdisc *queue;
	struct qdisc_watchdog watchdog;

	/* CLOCK_MONOTONIC at time 0. */
	u64 origin_ns;
	struct jostle_capacity capacity;
	struct jostle_delay delay;
	struct jostle_losses losses;
	struct jostle_frames frames;
	/* They count as what waits. */
	struct jostle_acks acks;
	struct jostle_faults faults;
	/* Instead of the capacity. */
	struct jostle_grants grants;

	/* What is being sent or travels, in order of exit. */
	struct sk_buff_head pipe;
	u64 last_exit_ns;
	/* When the next packet leaves the queue; JOSTLE_NEVER while idle. */
	u64 free_ns;
	/* The queue had nothing when it was last asked. */
	bool idle;

	struct jostle_link_xstats stats;
};

struct link_skb_cb {
	u64 exit_ns;
};

static struct link_skb_cb *link_skb_cb(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct link_skb_cb));
	return (struct link_skb_cb *)qdisc_skb_cb(skb)->data;
}

static u64 link_now(const struct jostle_link *q)
{
	u64 now = ktime_get_ns();

	return now > q->origin_ns ? now - q->origin_ns : 0;
}

/* Puts a packet into the pipe, and lets it overtake others. */
static void link_overtake(struct jostle_link *q, struct sk_buff *skb,
			  u64 exit_ns)
{
	struct sk_buff *before = skb_peek_tail(&q->pipe);

	link_skb_cb(skb)->exit_ns = exit_ns;
	while (before && link_skb_cb(before)->exit_ns > exit_ns)
		before = skb_queue_is_first(&q->pipe, before) ?
			 NULL : skb_queue_prev(&q->pipe, before);
	if (before)
		__skb_queue_after(&q->pipe, before, skb);
	else
		__skb_queue_head(&q->pipe, skb);
	q->stats.travelling_packets++;
	q->stats.travelling_bytes += qdisc_pkt_len(skb);
}

static void link_travel(struct jostle_link *q, struct sk_buff *skb, u64 exit_ns)
{
	if (!q->delay.reorder)
		exit_ns = max(exit_ns, q->last_exit_ns);
	q->last_exit_ns = max(exit_ns, q->last_exit_ns);
	link_overtake(q, skb, exit_ns);
}

static void link_lose(struct Qdisc *sch, struct sk_buff *skb, u64 *counter)
{
	(*counter)++;
	qdisc_qstats_drop(sch);
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));
	kfree_skb(skb);
}

/*
 * Takes the next packet out of the queue. If there is none the link is idle
 * until something comes, or until a queue that shapes has something.
 */
static struct sk_buff *link_take(struct jostle_link *q)
{
	struct sk_buff *skb = q->queue->ops->dequeue(q->queue);

	q->idle = !skb;
	if (!skb) {
		q->free_ns = JOSTLE_NEVER;
		return NULL;
	}
	q->stats.sent_packets++;
	q->stats.sent_bytes += qdisc_pkt_len(skb);
	return skb;
}

/* What travels at now_ns: what is in the pipe and exits later. */
static u64 link_in_delay(const struct jostle_link *q, u64 now_ns)
{
	u64 count = q->stats.travelling_packets;
	struct sk_buff *skb;

	skb_queue_walk(&q->pipe, skb) {
		if (link_skb_cb(skb)->exit_ns > now_ns)
			break;
		count--;
	}
	return count;
}

/* A copy of a packet, which counts as if it had come. */
static struct sk_buff *link_copy(struct Qdisc *sch, struct sk_buff *skb)
{
	struct jostle_link *q = qdisc_priv(sch);
	struct sk_buff *copy = skb_clone(skb, GFP_ATOMIC);

	if (!copy)
		return NULL;
	qdisc_skb_cb(copy)->pkt_len = qdisc_pkt_len(skb);
	q->stats.duplicated_packets++;
	sch->qstats.backlog += qdisc_pkt_len(copy);
	sch->q.qlen++;
	return copy;
}

/* As link_pass_on, with faults and habits of netem. */
static void link_pass_on_faulty(struct Qdisc *sch, struct sk_buff *skb,
				u64 sent_ns)
{
	struct jostle_link *q = qdisc_priv(sch);
	const struct jostle_netem *netem = &q->faults.netem;
	bool outage, lost, marked;
	struct sk_buff *copy = NULL;
	struct jostle_fate fate;
	u64 delay_ns, room = U64_MAX;

	if (netem->per_batch && jostle_in_batch(&q->faults, skb, skb->tstamp)) {
		delay_ns = q->faults.batch_delay_ns;
	} else {
		delay_ns = jostle_delay_at(&q->delay, sent_ns);
		q->faults.batch_delay_ns = delay_ns;
	}
	skb->tstamp = 0;
	fate = jostle_faults_next(&q->faults, skb);
	outage = jostle_in_outage(&q->losses, sent_ns);
	lost = jostle_lost(&q->losses, sent_ns);
	if (outage) {
		link_lose(sch, skb, &q->stats.outage_packets);
		return;
	}
	if (lost || fate.lost) {
		link_lose(sch, skb, &q->stats.lost_packets);
		return;
	}
	if (netem->limit_packets && !netem->with_queue) {
		u64 inside = link_in_delay(q, sent_ns);

		room = netem->limit_packets > inside ?
		       netem->limit_packets - inside : 0;
	}
	if (!room) {
		link_lose(sch, skb, &q->stats.full_packets);
		return;
	}
	if (fate.marked) {
		marked = INET_ECN_set_ce(skb);
		q->stats.marked_packets += marked;
	}
	if (fate.duplicated && room > 1)
		copy = link_copy(sch, skb);
	if (fate.corrupted) {
		unsigned int len = qdisc_pkt_len(skb);

		q->stats.corrupted_packets++;
		skb = jostle_corrupt(skb);
		if (!skb) {
			sch->qstats.backlog -= len;
			sch->q.qlen--;
		}
	}
	if (skb && fate.early)
		link_overtake(q, skb, sent_ns);
	else if (skb && fate.late_ns)
		link_overtake(q, skb, max(sent_ns + delay_ns, q->last_exit_ns) +
				      fate.late_ns);
	else if (skb)
		link_travel(q, skb, sent_ns + delay_ns);
	if (copy) {
		if (!netem->per_batch)
			delay_ns = jostle_delay_at(&q->delay, sent_ns);
		link_travel(q, copy, sent_ns + delay_ns);
	}
}

/* What has been sent at sent_ns goes on its way, unless it is lost. */
static void link_pass_on(struct Qdisc *sch, struct sk_buff *skb, u64 sent_ns)
{
	struct jostle_link *q = qdisc_priv(sch);
	bool outage, lost;
	u64 exit_ns;

	if (sent_ns == JOSTLE_NEVER) {
		link_travel(q, skb, JOSTLE_NEVER);
		return;
	}
	if (q->faults.used) {
		link_pass_on_faulty(sch, skb, sent_ns);
		return;
	}
	exit_ns = sent_ns + jostle_delay_at(&q->delay, sent_ns);
	/* Every process sees every packet; an outage is what it is put down to. */
	outage = jostle_in_outage(&q->losses, sent_ns);
	lost = jostle_lost(&q->losses, sent_ns);
	if (outage)
		link_lose(sch, skb, &q->stats.outage_packets);
	else if (lost)
		link_lose(sch, skb, &q->stats.lost_packets);
	else
		link_travel(q, skb, exit_ns);
}

/* Whether one more packet goes into a frame, if it is as large as the last. */
static bool link_has_room(const struct jostle_capacity *capacity,
			  const struct jostle_frame *frame,
			  const struct sk_buff_head *packets, u64 bytes)
{
	const struct sk_buff *last = skb_peek_tail(packets);

	return !last || (skb_queue_len(packets) < frame->most_packets &&
			 bytes + jostle_wire_bytes(capacity, last) <=
				 frame->most_bytes);
}

/*
 * With frames the link waits for the medium, then takes what its queue gives,
 * up to the limits of a frame. Packets follow each other, and all have been
 * sent when the last one has.
 */
static void link_serve_frame(struct Qdisc *sch)
{
	struct jostle_link *q = qdisc_priv(sch);
	struct sk_buff_head packets;
	u64 sent_ns = q->free_ns, bytes = 0;
	struct sk_buff *skb;
	u32 wire_bytes;

	if (sch->q.qlen == q->stats.travelling_packets) {
		/* Nothing waits: the medium is for others. */
		q->frames.won = false;
	} else {
		q->frames.won = !q->frames.won;
		if (q->frames.won) {
			q->free_ns = jostle_later(q->free_ns,
						  jostle_contention(&q->frames));
			return;
		}
	}

	__skb_queue_head_init(&packets);
	while (link_has_room(&q->capacity, &q->frames.frame, &packets, bytes)) {
		skb = link_take(q);
		if (!skb)
			break;
		wire_bytes = jostle_wire_bytes(&q->capacity, skb);
		if (sent_ns != JOSTLE_NEVER)
			sent_ns = jostle_sent(&q->capacity, sent_ns,
					      wire_bytes);
		bytes += wire_bytes;
		__skb_queue_tail(&packets, skb);
	}
	if (skb_queue_empty(&packets))
		return;
	/* Full or not, it leaves: what the queue had not is for the next one. */
	q->idle = false;
	q->free_ns = sent_ns;
	while ((skb = __skb_dequeue(&packets)))
		link_pass_on(sch, skb, sent_ns);
}

/* What has come and has not been sent. */
static u64 link_unsent_bits(const struct Qdisc *sch)
{
	const struct jostle_link *q = qdisc_priv(sch);
	u64 bytes = sch->qstats.backlog - q->stats.travelling_bytes;

	if (q->grants.unfinished)
		bytes -= qdisc_pkt_len(q->grants.unfinished);
	return bytes * 8 + q->grants.unsent_bits;
}

/* Sends a packet, or its next fragment, in the slots of the superframe. */
static void link_serve_granted(struct Qdisc *sch)
{
	struct jostle_link *q = qdisc_priv(sch);
	struct jostle_grants *grants = &q->grants;
	u64 available = jostle_grants_bits(grants, q->free_ns), bits;
	struct sk_buff *skb = grants->unfinished;

	if (!available) {
		q->idle = !skb && !q->queue->q.qlen;
		q->free_ns = q->idle ? JOSTLE_NEVER :
				       grants->next_superframe_ns;
		return;
	}
	bits = grants->unsent_bits;
	grants->unfinished = NULL;
	grants->unsent_bits = 0;
	if (!skb) {
		skb = link_take(q);
		if (!skb)
			return;
		bits = qdisc_pkt_len(skb) * 8ULL;
	}
	if (bits > available) {
		grants->unfinished = skb;
		grants->unsent_bits = bits - available;
		q->free_ns = grants->next_superframe_ns;
		return;
	}
	q->free_ns += jostle_grants_time(grants, bits);
	link_pass_on(sch, skb, q->free_ns);
}

/* Sends what is due at free_ns. */
static void link_serve(struct Qdisc *sch)
{
	struct jostle_link *q = qdisc_priv(sch);
	struct sk_buff *skb;

	if (q->grants.parms.superframe_ns) {
		link_serve_granted(sch);
		return;
	}
	if (q->frames.frame.most_packets) {
		link_serve_frame(sch);
		return;
	}
	skb = link_take(q);
	if (!skb)
		return;
	q->free_ns = jostle_sent(&q->capacity, q->free_ns,
				 jostle_wire_bytes(&q->capacity, skb));
	link_pass_on(sch, skb, q->free_ns);
}

static void link_wake(struct jostle_link *q, u64 now)
{
	if (q->idle) {
		q->idle = false;
		q->free_ns = now;
	}
}

/* A packet enters the queue. */
static int link_queue(struct Qdisc *sch, struct sk_buff *skb,
		      struct sk_buff **to_free)
{
	struct jostle_link *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ret = qdisc_enqueue(skb, q->queue, to_free);

	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

/* An ACK has waited for a newer one, and enters the queue. */
static void link_let_go(struct Qdisc *sch, struct jostle_held *held)
{
	struct jostle_link *q = qdisc_priv(sch);
	struct sk_buff *skb = jostle_acks_take(held), *to_free = NULL;
	unsigned int len = qdisc_pkt_len(skb);

	q->stats.held_bytes -= len;
	sch->qstats.backlog -= len;
	sch->q.qlen--;
	if (link_queue(sch, skb, &to_free) != NET_XMIT_SUCCESS)
		qdisc_tree_reduce_backlog(sch, 1, len);
	kfree_skb_list(to_free);
}

/* Another ACK stands for the one that is held, which is dropped. */
static void link_replace(struct Qdisc *sch, struct jostle_held *held,
			 struct sk_buff **to_free)
{
	struct jostle_link *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(held->skb);

	q->stats.thinned_packets++;
	q->stats.held_bytes -= len;
	qdisc_qstats_drop(sch);
	sch->qstats.backlog -= len;
	sch->q.qlen--;
	qdisc_tree_reduce_backlog(sch, 1, len);
	__qdisc_drop(held->skb, to_free);
	held->skb = NULL;
}

/* An ACK comes to a link that thins them out. */
static int link_thin(struct Qdisc *sch, struct sk_buff *skb,
		     const struct jostle_ack *ack, u64 now,
		     struct sk_buff **to_free)
{
	struct jostle_link *q = qdisc_priv(sch);
	struct jostle_held *held = jostle_acks_find(&q->acks, ack);
	bool at_once = ack->selective;
	unsigned int len = qdisc_pkt_len(skb);
	u64 stands_for = 1;

	if (held && held->ack.marks == ack->marks &&
	    jostle_ack_says_more(ack, &held->ack)) {
		stands_for += held->stands_for;
		link_replace(sch, held, to_free);
	} else if (held) {
		at_once |= !after(ack->number, held->ack.number);
		link_let_go(sch, held);
		held = NULL;
	}

	if (at_once || stands_for >= q->acks.thinning.most) {
		if (held)
			jostle_acks_take(held);
		return link_queue(sch, skb, to_free);
	}
	if (held) {
		held->skb = skb;
		held->ack = *ack;
		held->stands_for = stands_for;
	} else if (!jostle_acks_hold(&q->acks, skb, ack, now)) {
		return link_queue(sch, skb, to_free);
	}
	q->stats.held_bytes += len;
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static void link_advance(struct Qdisc *sch, u64 now)
{
	struct jostle_link *q = qdisc_priv(sch);

	for (;;) {
		struct jostle_held *first = jostle_acks_first(&q->acks);
		u64 event_ns = jostle_grants_next(&q->grants);

		if (event_ns <= min(now, q->free_ns) &&
		    event_ns != JOSTLE_NEVER) {
			jostle_grants_step(&q->grants, link_unsent_bits(sch));
		} else if (first && first->due_ns <= min(now, q->free_ns)) {
			u64 due_ns = first->due_ns;

			link_let_go(sch, first);
			link_wake(q, due_ns);
		} else if (q->free_ns <= now) {
			/* JOSTLE_NEVER is after every time. */
			link_serve(sch);
		} else {
			return;
		}
	}
}

static int link_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	struct jostle_link *q = qdisc_priv(sch);
	u64 now = link_now(q), until = now;
	struct jostle_ack ack;
	int ret;

	/*
	 * What is due at this instant makes room for what comes. A frame may
	 * still take it.
	 */
	if (q->queue->q.qlen && !q->frames.frame.most_packets)
		until += JOSTLE_CLOCK_NS;
	link_advance(sch, until);
	if (q->faults.netem.limit_packets && q->faults.netem.with_queue &&
	    sch->q.qlen - q->stats.travelling_packets +
	    link_in_delay(q, now) >= q->faults.netem.limit_packets) {
		q->stats.rejected_packets++;
		qdisc_qstats_drop(sch);
		__qdisc_drop(skb, to_free);
		return NET_XMIT_DROP;
	}
	if (q->grants.parms.superframe_ns)
		jostle_grants_arrival(&q->grants, qdisc_pkt_len(skb));
	if (q->faults.netem.per_batch)
		skb->tstamp = now;
	if (q->acks.thinning.most && jostle_ack_read(skb, &ack))
		ret = link_thin(sch, skb, &ack, now, to_free);
	else
		ret = link_queue(sch, skb, to_free);
	link_wake(q, now);
	return ret;
}

static struct sk_buff *link_dequeue(struct Qdisc *sch)
{
	struct jostle_link *q = qdisc_priv(sch);
	u64 now = link_now(q), next;
	struct sk_buff *skb;

	/* A queue that shapes had nothing yet when it was asked, and calls. */
	if (q->queue->q.qlen)
		link_wake(q, now);
	link_advance(sch, now);
	skb = skb_peek(&q->pipe);
	next = skb ? link_skb_cb(skb)->exit_ns : JOSTLE_NEVER;
	if (next <= now) {
		__skb_unlink(skb, &q->pipe);
		q->stats.travelling_packets--;
		q->stats.travelling_bytes -= qdisc_pkt_len(skb);
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
		qdisc_bstats_update(sch, skb);
		return skb;
	}
	/* Requests and superframes matter when something waits: see free_ns. */
	next = min3(next, q->free_ns, jostle_acks_due(&q->acks));
	if (next != JOSTLE_NEVER)
		qdisc_watchdog_schedule_ns(&q->watchdog, q->origin_ns + next);
	return NULL;
}

#define LIST(type) NLA_POLICY_MIN_LEN(sizeof(type))

static const struct nla_policy link_policy[TCA_JOSTLE_LINK_MAX + 1] = {
	[TCA_JOSTLE_LINK_ORIGIN] = { .type = NLA_U64 },
	[TCA_JOSTLE_LINK_RATES] = LIST(struct jostle_step),
	[TCA_JOSTLE_LINK_OPPORTUNITIES] = LIST(u32),
	[TCA_JOSTLE_LINK_OPPORTUNITY_BYTES] = NLA_POLICY_MIN(NLA_U32, 1),
	[TCA_JOSTLE_LINK_DELAYS] = LIST(struct jostle_step),
	[TCA_JOSTLE_LINK_REORDER] = { .type = NLA_FLAG },
	[TCA_JOSTLE_LINK_JITTER_STEP] = { .type = NLA_U64 },
	[TCA_JOSTLE_LINK_JITTER] = LIST(u64),
	[TCA_JOSTLE_LINK_DRAWS] = { .type = NLA_U64 },
	[TCA_JOSTLE_LINK_QUANTILES] = LIST(struct jostle_quantile),
	[TCA_JOSTLE_LINK_OUTAGES] = LIST(struct jostle_outage),
	[TCA_JOSTLE_LINK_LOSS] =
		NLA_POLICY_EXACT_LEN(sizeof(struct jostle_loss)),
	[TCA_JOSTLE_LINK_LOSS_DRAWS] = { .type = NLA_U64 },
	[TCA_JOSTLE_LINK_LOSS_STEPS] = LIST(struct jostle_step),
	[TCA_JOSTLE_LINK_CONTENTION] = LIST(struct jostle_quantile),
	[TCA_JOSTLE_LINK_FRAMES] =
		NLA_POLICY_EXACT_LEN(sizeof(struct jostle_frame)),
	[TCA_JOSTLE_LINK_ACK_THINNING] =
		NLA_POLICY_EXACT_LEN(sizeof(struct jostle_thinning)),
	[TCA_JOSTLE_LINK_DUPLICATE] =
		NLA_POLICY_EXACT_LEN(sizeof(struct jostle_event)),
	[TCA_JOSTLE_LINK_CORRUPT] =
		NLA_POLICY_EXACT_LEN(sizeof(struct jostle_event)),
	[TCA_JOSTLE_LINK_REORDERING] =
		NLA_POLICY_EXACT_LEN(sizeof(struct jostle_event)),
	[TCA_JOSTLE_LINK_RULE] =
		NLA_POLICY_EXACT_LEN(sizeof(struct jostle_rule)),
	[TCA_JOSTLE_LINK_NUMBERS] = LIST(struct jostle_numbered),
	[TCA_JOSTLE_LINK_NETEM] =
		NLA_POLICY_EXACT_LEN(sizeof(struct jostle_netem)),
	[TCA_JOSTLE_LINK_GRANTS] =
		NLA_POLICY_EXACT_LEN(sizeof(struct jostle_grant_parms)),
	[TCA_JOSTLE_LINK_FRAMING] =
		NLA_POLICY_EXACT_LEN(sizeof(struct jostle_framing)),
};

static int link_change(struct Qdisc *sch, struct nlattr *opt,
		       struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_JOSTLE_LINK_MAX + 1];
	struct jostle_link *q = qdisc_priv(sch);
	int err;

	err = nla_parse_nested(tb, TCA_JOSTLE_LINK_MAX, opt, link_policy,
			       extack);
	if (err)
		return err;

	err = jostle_capacity_change(sch, &q->capacity, tb);
	err = err ?: jostle_delay_change(sch, &q->delay, tb);
	err = err ?: jostle_losses_change(sch, &q->losses, tb);
	err = err ?: jostle_frames_change(sch, &q->frames, tb);
	err = err ?: jostle_faults_change(sch, &q->faults, tb);
	if (!err)
		jostle_grants_change(sch, &q->grants, tb);
	if (!err)
		jostle_acks_change(sch, &q->acks, tb);
	if (!err && tb[TCA_JOSTLE_LINK_ORIGIN]) {
		sch_tree_lock(sch);
		q->origin_ns = nla_get_u64(tb[TCA_JOSTLE_LINK_ORIGIN]);
		sch_tree_unlock(sch);
	}
	if (err == -EINVAL)
		NL_SET_ERR_MSG(extack, "a list makes no sense");
	return err;
}

static int link_init(struct Qdisc *sch, struct nlattr *opt,
		     struct netlink_ext_ack *extack)
{
	struct jostle_link *q = qdisc_priv(sch);

	q->queue = &noop_qdisc;
	q->idle = true;
	q->free_ns = JOSTLE_NEVER;
	__skb_queue_head_init(&q->pipe);
	jostle_acks_init(&q->acks);
	jostle_grants_init(&q->grants);
	qdisc_watchdog_init(&q->watchdog, sch);

	q->queue = qdisc_create_dflt(sch->dev_queue, &pfifo_qdisc_ops,
				     TC_H_MAKE(sch->handle, 1), extack);
	if (!q->queue) {
		q->queue = &noop_qdisc;
		return -ENOMEM;
	}
	qdisc_hash_add(q->queue, true);
	return opt ? link_change(sch, opt, extack) : 0;
}

static void link_reset(struct Qdisc *sch)
{
	struct jostle_link *q = qdisc_priv(sch);

	qdisc_reset(q->queue);
	__skb_queue_purge(&q->pipe);
	jostle_acks_purge(&q->acks);
	jostle_grants_reset(&q->grants);
	q->stats.held_bytes = 0;
	q->frames.won = false;
	q->stats.travelling_packets = 0;
	q->stats.travelling_bytes = 0;
	q->idle = true;
	q->free_ns = JOSTLE_NEVER;
	q->last_exit_ns = 0;
	qdisc_watchdog_cancel(&q->watchdog);
}

static void link_destroy(struct Qdisc *sch)
{
	struct jostle_link *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->queue);
	jostle_acks_purge(&q->acks);
	jostle_grants_reset(&q->grants);
	jostle_faults_free(&q->faults);
	jostle_frames_free(&q->frames);
	jostle_capacity_free(&q->capacity);
	jostle_delay_free(&q->delay);
	jostle_losses_free(&q->losses);
}

static int link_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	/* Lists are too long to be shown; no user asks for them. */
	return skb->len;
}

static int link_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct jostle_link *q = qdisc_priv(sch);
	struct jostle_link_xstats stats = q->stats;

	return gnet_stats_copy_app(d, &stats, sizeof(stats));
}

/* The queue is the only class, number 1. */
static int link_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
		      struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct jostle_link *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->queue);
	return 0;
}

static struct Qdisc *link_leaf(struct Qdisc *sch, unsigned long arg)
{
	return ((struct jostle_link *)qdisc_priv(sch))->queue;
}

static unsigned long link_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void link_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, 1, walker);
}

static int link_dump_class(struct Qdisc *sch, unsigned long class,
			   struct sk_buff *skb, struct tcmsg *tcm)
{
	struct jostle_link *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->queue->handle;
	return 0;
}

static const struct Qdisc_class_ops link_class_ops = {
	.graft	= link_graft,
	.leaf	= link_leaf,
	.find	= link_find,
	.walk	= link_walk,
	.dump	= link_dump_class,
};

static struct Qdisc_ops link_ops __read_mostly = {
	.id		= "jostle_link",
	.cl_ops		= &link_class_ops,
	.priv_size	= sizeof(struct jostle_link),
	.enqueue	= link_enqueue,
	.dequeue	= link_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= link_init,
	.reset		= link_reset,
	.destroy	= link_destroy,
	.change		= link_change,
	.dump		= link_dump,
	.dump_stats	= link_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init link_module_init(void)
{
	return register_qdisc(&link_ops);
}
device_initcall(link_module_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("One direction of a link: queue, capacity, delay, losses");
