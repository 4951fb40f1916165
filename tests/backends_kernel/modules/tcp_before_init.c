// SPDX-License-Identifier: GPL-2.0-only
/* Linux calls `pkts_acked` for the handshake's ACK before `init`: the pointer is null then. */
#include <linux/module.h>
#include <net/tcp.h>

struct counter { u32 *acks; };

static u32 acks;

static void before_init_start(struct sock *sk)
{
	((struct counter *)inet_csk_ca(sk))->acks = &acks;
}

static void before_init_acked(struct sock *sk, const struct ack_sample *sample)
{
	++*((struct counter *)inet_csk_ca(sk))->acks;
}

static struct tcp_congestion_ops ops = {
	.name = "before_init",
	.owner = THIS_MODULE,
	.init = before_init_start,
	.pkts_acked = before_init_acked,
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init start(void) { return tcp_register_congestion_control(&ops); }
static void __exit stop(void) { tcp_unregister_congestion_control(&ops); }

module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
