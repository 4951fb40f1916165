// SPDX-License-Identifier: GPL-2.0
/*
 * "jostle_queue": first in, first out, with random drops while it is long, as
 * gateways of satellite networks have them. It draws from the same stream of
 * random numbers as jostle's simulator, and takes the same decisions for the
 * same arrivals.
 */

#include <linux/module.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "jostle_link.h"
#include "jostle_random.h"

struct jostle_queue {
	struct jostle_queue_parms parms;
	struct jostle_stream stream;
	struct jostle_queue_xstats dropped;
};

static int queue_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			 struct sk_buff **to_free)
{
	struct jostle_queue *q = qdisc_priv(sch);
	const struct jostle_queue_parms *parms = &q->parms;
	u64 waiting = sch->qstats.backlog;

	if (waiting + qdisc_pkt_len(skb) > parms->limit_bytes ||
	    sch->q.qlen >= parms->limit_packets) {
		q->dropped.overflow++;
		return qdisc_drop(skb, sch, to_free);
	}
	if (waiting > parms->threshold_bytes &&
	    jostle_chance(&q->stream, parms->probability)) {
		q->dropped.occupancy++;
		return qdisc_drop(skb, sch, to_free);
	}
	return qdisc_enqueue_tail(skb, sch);
}

static const struct nla_policy queue_policy[TCA_JOSTLE_QUEUE_MAX + 1] = {
	[TCA_JOSTLE_QUEUE_PARMS] =
		NLA_POLICY_EXACT_LEN(sizeof(struct jostle_queue_parms)),
};

static int queue_change(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_JOSTLE_QUEUE_MAX + 1];
	struct jostle_queue *q = qdisc_priv(sch);
	int err;

	err = nla_parse_nested(tb, TCA_JOSTLE_QUEUE_MAX, opt, queue_policy,
			       extack);
	if (err)
		return err;
	if (!tb[TCA_JOSTLE_QUEUE_PARMS]) {
		NL_SET_ERR_MSG(extack, "its parameters are missing");
		return -EINVAL;
	}

	sch_tree_lock(sch);
	nla_memcpy(&q->parms, tb[TCA_JOSTLE_QUEUE_PARMS], sizeof(q->parms));
	jostle_seed(&q->stream, q->parms.seed);
	sch_tree_unlock(sch);
	return 0;
}

static int queue_init(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	if (!opt) {
		NL_SET_ERR_MSG(extack, "its parameters are missing");
		return -EINVAL;
	}
	return queue_change(sch, opt, extack);
}

static int queue_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct jostle_queue *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put(skb, TCA_JOSTLE_QUEUE_PARMS, sizeof(q->parms), &q->parms)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

static int queue_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct jostle_queue *q = qdisc_priv(sch);

	return gnet_stats_copy_app(d, &q->dropped, sizeof(q->dropped));
}

static struct Qdisc_ops queue_ops __read_mostly = {
	.id		= "jostle_queue",
	.priv_size	= sizeof(struct jostle_queue),
	.enqueue	= queue_enqueue,
	.dequeue	= qdisc_dequeue_head,
	.peek		= qdisc_peek_head,
	.init		= queue_init,
	.reset		= qdisc_reset_queue,
	.change		= queue_change,
	.dump		= queue_dump,
	.dump_stats	= queue_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init queue_module_init(void)
{
	return register_qdisc(&queue_ops);
}
device_initcall(queue_module_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("First in, first out, with random drops while it is long");
