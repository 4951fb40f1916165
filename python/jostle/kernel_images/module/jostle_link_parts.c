// SPDX-License-Identifier: GPL-2.0
/*
 * The capacity, delay, losses and frames of "jostle_link", with the arithmetic of
 * jostle's simulator (its crate `path`). All are asked in order of time.
 */

#include <linux/if_ether.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/string.h>

#include "jostle_link_parts.h"

/* Nanobits: what a rate in bit/s sends in a nanosecond is that many of them. */
#define NANOBITS_PER_BYTE	8000000000ULL

/*
 * Lists. Only user space adds to them, one user at a time; packets read them
 * meanwhile.
 */

int jostle_list_add(struct Qdisc *sch, struct jostle_list *list, size_t size,
		    const void *added, u32 more)
{
	void *items = list->items, *old = NULL;
	u32 room = list->room, count;

	if (check_add_overflow(list->count, more, &count))
		return -E2BIG;
	if (count > room) {
		room = max(count, 2 * room);
		items = kvmalloc_array(room, size, GFP_KERNEL);
		if (!items)
			return -ENOMEM;
		old = list->items;
		if (old)
			memcpy(items, old, list->count * size);
	}
	memcpy(items + list->count * size, added, more * size);

	sch_tree_lock(sch);
	list->items = items;
	list->room = room;
	list->count = count;
	sch_tree_unlock(sch);
	kvfree(old);
	return 0;
}

int jostle_list_append(struct Qdisc *sch, struct jostle_list *list, size_t size,
		       const struct nlattr *attr)
{
	if (!attr)
		return 0;
	if (nla_len(attr) % size)
		return -EINVAL;
	return jostle_list_add(sch, list, size, nla_data(attr),
			       nla_len(attr) / size);
}

static int steps_append(struct Qdisc *sch, struct jostle_list *list,
			const struct nlattr *attr)
{
	const struct jostle_step *first;

	if (attr && !list->count) {
		first = nla_data(attr);
		if (first->at_ns)
			return -EINVAL;
	}
	return jostle_list_append(sch, list, sizeof(*first), attr);
}

/* Capacity */

static u64 opportunity_ns(const struct jostle_capacity *capacity, u32 number)
{
	return (u64)((u32 *)capacity->opportunities.items)[number] *
	       NSEC_PER_MSEC;
}

static u64 period_ns(const struct jostle_capacity *capacity)
{
	return opportunity_ns(capacity, capacity->opportunities.count - 1);
}

static void take_rate(struct jostle_capacity *capacity)
{
	struct jostle_step *steps = capacity->rates.items;

	capacity->rate_bps = steps[capacity->step].value;
	capacity->size_bytes = 0;
	capacity->whole_ns = 0;
	capacity->rest = 0;
	capacity->finish_ns = 0;
	capacity->spare = 0;
}

static u32 last_of(const struct nlattr *numbers)
{
	const u32 *number = nla_data(numbers);

	return number[nla_len(numbers) / sizeof(*number) - 1];
}

int jostle_capacity_change(struct Qdisc *sch, struct jostle_capacity *capacity,
			   struct nlattr **tb)
{
	const struct nlattr *opportunities = tb[TCA_JOSTLE_LINK_OPPORTUNITIES];
	bool fresh = !capacity->rates.count;
	int err;

	err = steps_append(sch, &capacity->rates, tb[TCA_JOSTLE_LINK_RATES]);
	if (err)
		return err;

	sch_tree_lock(sch);
	if (fresh && capacity->rates.count)
		take_rate(capacity);
	if (tb[TCA_JOSTLE_LINK_OPPORTUNITY_BYTES])
		capacity->opportunity_bytes =
			nla_get_u32(tb[TCA_JOSTLE_LINK_OPPORTUNITY_BYTES]);
	if (tb[TCA_JOSTLE_LINK_FRAMING]) {
		nla_memcpy(&capacity->framing, tb[TCA_JOSTLE_LINK_FRAMING],
			   sizeof(capacity->framing));
		capacity->framed = true;
	}
	sch_tree_unlock(sch);

	/* Without length or size they would go on forever. */
	if (opportunities && (!capacity->opportunity_bytes ||
			      !last_of(opportunities)))
		return -EINVAL;
	return jostle_list_append(sch, &capacity->opportunities, sizeof(u32),
			   opportunities);
}

void jostle_capacity_free(struct jostle_capacity *capacity)
{
	kvfree(capacity->rates.items);
	kvfree(capacity->opportunities.items);
}

/* When the rate in force ends. */
static u64 rate_ends_ns(const struct jostle_capacity *capacity)
{
	struct jostle_step *steps = capacity->rates.items;

	return capacity->step + 1 < capacity->rates.count ?
	       steps[capacity->step + 1].at_ns : JOSTLE_NEVER;
}

u64 jostle_later(u64 time_ns, u64 span_ns)
{
	return check_add_overflow(time_ns, span_ns, &time_ns) ? JOSTLE_NEVER :
								time_ns;
}

/*
 * The exact time, rounded up. A packet that starts where its predecessor has
 * ended gets what the rounding of that end has left over, so that no fraction
 * of a nanosecond is lost.
 */
static u64 sent_at_rate(struct jostle_capacity *capacity, u64 start_ns,
			u32 size_bytes)
{
	u64 spare = start_ns == capacity->finish_ns ? capacity->spare : 0;
	u64 total_ns;

	if (!capacity->rate_bps)
		return JOSTLE_NEVER;
	if (size_bytes != capacity->size_bytes) {
		capacity->size_bytes = size_bytes;
		capacity->whole_ns =
			div64_u64_rem(size_bytes * NANOBITS_PER_BYTE,
				      capacity->rate_bps, &capacity->rest);
	}
	total_ns = jostle_later(start_ns, capacity->whole_ns);
	if (capacity->rest > spare) {
		total_ns = jostle_later(total_ns, 1);
		spare += capacity->rate_bps;
	}
	capacity->finish_ns = total_ns;
	capacity->spare = spare - capacity->rest;
	return total_ns;
}

/* A packet goes on at the new rate when one comes while it is being sent. */
static u64 sent_across_rates(struct jostle_capacity *capacity, u64 from_ns,
			     u32 size_bytes)
{
	u64 left = size_bytes * NANOBITS_PER_BYTE;

	for (;;) {
		u64 rate_bps = capacity->rate_bps;
		u64 until_ns = rate_ends_ns(capacity);
		u64 needed_ns = rate_bps ?
				DIV64_U64_ROUND_UP(left, rate_bps) :
				JOSTLE_NEVER;

		if (until_ns == JOSTLE_NEVER || needed_ns <= until_ns - from_ns)
			return jostle_later(from_ns, needed_ns);
		left -= rate_bps * (until_ns - from_ns);
		from_ns = until_ns;
		capacity->step++;
		take_rate(capacity);
	}
}

static u64 sent_by_rates(struct jostle_capacity *capacity, u64 start_ns,
			 u32 size_bytes)
{
	u64 sent_ns;

	if (!capacity->rates.count)
		return start_ns;
	while (start_ns >= rate_ends_ns(capacity)) {
		capacity->step++;
		take_rate(capacity);
	}
	sent_ns = sent_at_rate(capacity, start_ns, size_bytes);
	if (sent_ns <= rate_ends_ns(capacity))
		return sent_ns;
	return sent_across_rates(capacity, start_ns, size_bytes);
}

static void next_opportunity(struct jostle_capacity *capacity)
{
	capacity->at_ns = capacity->base_ns +
			  opportunity_ns(capacity, capacity->next);
	capacity->left_bytes = capacity->opportunity_bytes;
	capacity->next++;
	if (capacity->next == capacity->opportunities.count) {
		capacity->next = 0;
		capacity->base_ns += period_ns(capacity);
	}
}

/*
 * Lets all opportunities up to now_ns go by. base_ns is never after it: it is
 * 0 or the time of an opportunity that has been used or skipped.
 */
static void skip_opportunities(struct jostle_capacity *capacity, u64 now_ns)
{
	u64 since_ns = now_ns - capacity->base_ns;
	u32 low, high = capacity->opportunities.count;

	if (since_ns >= period_ns(capacity)) {
		div64_u64_rem(since_ns, period_ns(capacity), &since_ns);
		capacity->base_ns = now_ns - since_ns;
		capacity->next = 0;
	}
	/* The last one ends the period, so that one is always left. */
	low = capacity->next;
	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (opportunity_ns(capacity, middle) <= since_ns)
			low = middle + 1;
		else
			high = middle;
	}
	capacity->next = low;
	capacity->left_bytes = 0;
}

/*
 * As Mahimahi's link_queue.cc: packets share an opportunity, a large one goes
 * on with the next, and what nobody uses is lost. Who finds the link idle may
 * use later opportunities only.
 */
static u64 sent_by_opportunities(struct jostle_capacity *capacity, u64 start_ns,
				 u32 size_bytes)
{
	u32 left = size_bytes;

	if (!capacity->used || capacity->finish_ns != start_ns)
		skip_opportunities(capacity, start_ns);
	while (left > capacity->left_bytes || capacity->at_ns < start_ns) {
		left -= min(capacity->left_bytes, left);
		next_opportunity(capacity);
	}
	capacity->left_bytes -= left;
	capacity->finish_ns = capacity->at_ns;
	capacity->used = true;
	return capacity->at_ns;
}

#define CELL_BYTES		53
#define CELL_PAYLOAD_BYTES	48
#define CODEWORD_BYTES		64

u32 jostle_wire_bytes(const struct jostle_capacity *capacity,
		      const struct sk_buff *skb)
{
	const struct jostle_framing *framing = &capacity->framing;
	s64 bytes = qdisc_pkt_len(skb);

	if (!capacity->framed)
		return bytes;
	bytes += framing->overhead_bytes - ETH_HLEN;
	bytes = max_t(s64, bytes, framing->min_bytes);
	switch (framing->cells) {
	case JOSTLE_CELLS_ATM:
		return DIV_ROUND_UP((u32)bytes, CELL_PAYLOAD_BYTES) *
		       CELL_BYTES;
	case JOSTLE_CELLS_PTM:
		return bytes + DIV_ROUND_UP((u32)bytes, CODEWORD_BYTES);
	default:
		return bytes;
	}
}

u64 jostle_sent(struct jostle_capacity *capacity, u64 start_ns, u32 size_bytes)
{
	if (capacity->opportunities.count)
		return sent_by_opportunities(capacity, start_ns, size_bytes);
	return sent_by_rates(capacity, start_ns, size_bytes);
}

/* Delay */

int jostle_delay_change(struct Qdisc *sch, struct jostle_delay *delay,
			struct nlattr **tb)
{
	int err;

	err = steps_append(sch, &delay->base, tb[TCA_JOSTLE_LINK_DELAYS]);
	if (err)
		return err;
	err = jostle_list_append(sch, &delay->quantiles,
			  sizeof(struct jostle_quantile),
			  tb[TCA_JOSTLE_LINK_QUANTILES]);
	if (err)
		return err;

	sch_tree_lock(sch);
	if (tb[TCA_JOSTLE_LINK_REORDER])
		delay->reorder = true;
	if (tb[TCA_JOSTLE_LINK_JITTER_STEP])
		delay->jitter_step_ns =
			nla_get_u64(tb[TCA_JOSTLE_LINK_JITTER_STEP]);
	if (tb[TCA_JOSTLE_LINK_DRAWS])
		jostle_seed(&delay->stream,
			    nla_get_u64(tb[TCA_JOSTLE_LINK_DRAWS]));
	sch_tree_unlock(sch);

	if (tb[TCA_JOSTLE_LINK_JITTER] && !delay->jitter_step_ns)
		return -EINVAL;
	return jostle_list_append(sch, &delay->jitter, sizeof(u64),
			   tb[TCA_JOSTLE_LINK_JITTER]);
}

void jostle_delay_free(struct jostle_delay *delay)
{
	kvfree(delay->base.items);
	kvfree(delay->jitter.items);
	kvfree(delay->quantiles.items);
}

static u64 base_delay(struct jostle_delay *delay, u64 now_ns)
{
	struct jostle_step *steps = delay->base.items;

	if (!delay->base.count)
		return 0;
	while (delay->step + 1 < delay->base.count &&
	       now_ns >= steps[delay->step + 1].at_ns)
		delay->step++;
	return steps[delay->step].value;
}

/* a + (b - a) * part / whole, to the nearest; part is at most whole. */
static u64 between(u64 a, u64 b, u64 part, u64 whole)
{
	u64 share;

	if (b < a)
		return between(b, a, whole - part, whole);
	share = mul_u64_u64_div_u64(2 * (b - a), part, whole);
	return a + (share + 1) / 2;
}

static u64 jitter_at(const struct jostle_delay *delay, u64 now_ns)
{
	const u64 *values = delay->jitter.items;
	u64 beyond, number;

	number = div64_u64_rem(now_ns, delay->jitter_step_ns, &beyond);
	if (number + 1 >= delay->jitter.count)
		return values[delay->jitter.count - 1];
	return between(values[number], values[number + 1], beyond,
		       delay->jitter_step_ns);
}

static u64 drawn_from(const struct jostle_list *quantiles,
		      struct jostle_stream *stream)
{
	const struct jostle_quantile *points = quantiles->items;
	u64 probability = jostle_uniform(stream);
	u32 low = 0, high = quantiles->count;

	/* The last point that is not beyond it. */
	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (points[middle].probability <= probability)
			low = middle;
		else
			high = middle;
	}
	if (low + 1 == quantiles->count ||
	    probability <= points[low].probability)
		return points[low].value_ns;
	return between(points[low].value_ns, points[low + 1].value_ns,
		       probability - points[low].probability,
		       points[low + 1].probability - points[low].probability);
}

u64 jostle_delay_at(struct jostle_delay *delay, u64 now_ns)
{
	u64 delay_ns = base_delay(delay, now_ns);

	if (delay->jitter.count)
		delay_ns += jitter_at(delay, now_ns);
	if (delay->quantiles.count)
		delay_ns += drawn_from(&delay->quantiles, &delay->stream);
	return delay_ns;
}

/* Losses */

int jostle_losses_change(struct Qdisc *sch, struct jostle_losses *losses,
			 struct nlattr **tb)
{
	u64 skip;
	int err;

	err = jostle_list_append(sch, &losses->outages, sizeof(struct jostle_outage),
			  tb[TCA_JOSTLE_LINK_OUTAGES]);
	if (err)
		return err;
	if (tb[TCA_JOSTLE_LINK_LOSS_DRAWS]) {
		sch_tree_lock(sch);
		jostle_seed(&losses->steps_stream,
			    nla_get_u64(tb[TCA_JOSTLE_LINK_LOSS_DRAWS]));
		sch_tree_unlock(sch);
	}
	err = steps_append(sch, &losses->steps, tb[TCA_JOSTLE_LINK_LOSS_STEPS]);
	if (err || !tb[TCA_JOSTLE_LINK_LOSS])
		return err;

	sch_tree_lock(sch);
	nla_memcpy(&losses->chain, tb[TCA_JOSTLE_LINK_LOSS],
		   sizeof(losses->chain));
	jostle_seed(&losses->stream, losses->chain.seed);
	for (skip = 0; skip < losses->chain.skip; skip++)
		jostle_bits(&losses->stream);
	sch_tree_unlock(sch);
	return 0;
}

void jostle_losses_free(struct jostle_losses *losses)
{
	kvfree(losses->outages.items);
	kvfree(losses->steps.items);
}

bool jostle_in_outage(struct jostle_losses *losses, u64 now_ns)
{
	const struct jostle_outage *outages = losses->outages.items;

	while (losses->outage < losses->outages.count &&
	       now_ns >= outages[losses->outage].end_ns)
		losses->outage++;
	return losses->outage < losses->outages.count &&
	       now_ns >= outages[losses->outage].start_ns;
}

static bool lost_by_chain(struct jostle_losses *losses)
{
	struct jostle_loss *chain = &losses->chain;
	bool lost;

	lost = jostle_chance(&losses->stream,
			     chain->bad ? chain->loss_bad : chain->loss_good);
	if (jostle_chance(&losses->stream,
			  chain->bad ? chain->bad_to_good : chain->good_to_bad))
		chain->bad = !chain->bad;
	return lost;
}

static bool lost_by_steps(struct jostle_losses *losses, u64 now_ns)
{
	const struct jostle_step *steps = losses->steps.items;

	if (!losses->steps.count)
		return false;
	while (losses->step + 1 < losses->steps.count &&
	       now_ns >= steps[losses->step + 1].at_ns)
		losses->step++;
	return jostle_chance(&losses->steps_stream, steps[losses->step].value);
}

bool jostle_lost(struct jostle_losses *losses, u64 now_ns)
{
	bool by_chain = lost_by_chain(losses);

	/* Both see every packet. */
	return lost_by_steps(losses, now_ns) || by_chain;
}

/* Frames */

int jostle_frames_change(struct Qdisc *sch, struct jostle_frames *frames,
			 struct nlattr **tb)
{
	int err;

	err = jostle_list_append(sch, &frames->contention,
			  sizeof(struct jostle_quantile),
			  tb[TCA_JOSTLE_LINK_CONTENTION]);
	if (err || !tb[TCA_JOSTLE_LINK_FRAMES])
		return err;
	/* Whoever sends frames waits for the medium. */
	if (!frames->contention.count)
		return -EINVAL;

	sch_tree_lock(sch);
	nla_memcpy(&frames->frame, tb[TCA_JOSTLE_LINK_FRAMES],
		   sizeof(frames->frame));
	jostle_seed(&frames->stream, frames->frame.seed);
	sch_tree_unlock(sch);
	return 0;
}

void jostle_frames_free(struct jostle_frames *frames)
{
	kvfree(frames->contention.items);
}

u64 jostle_contention(struct jostle_frames *frames)
{
	return drawn_from(&frames->contention, &frames->stream);
}
