// SPDX-License-Identifier: GPL-2.0-only
/* AIMD: after each RTT, cwnd grows by `increase` packets; a loss event leaves `decrease` % of it. */
#include <linux/module.h>
#include <net/tcp.h>

static int increase = 2;
module_param(increase, int, 0644);
MODULE_PARM_DESC(increase, "packets per RTT");

static int decrease = 70;
module_param(decrease, int, 0644);
MODULE_PARM_DESC(decrease, "cwnd after a loss event, in % of cwnd before");

static u32 mine_ssthresh(struct sock *sk)
{
	return max_t(u32, tcp_snd_cwnd(tcp_sk(sk)) * decrease / 100, 2);
}

static void mine_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked * increase);
}

static struct tcp_congestion_ops mine __read_mostly = {
	.name = "mine",
	.owner = THIS_MODULE,
	.ssthresh = mine_ssthresh,
	.cong_avoid = mine_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init mine_register(void) { return tcp_register_congestion_control(&mine); }
static void __exit mine_unregister(void) { tcp_unregister_congestion_control(&mine); }

module_init(mine_register);
module_exit(mine_unregister);
MODULE_LICENSE("GPL");
