// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of a controller, in the order of jostle's own TCP (crates/tcp/src/sender). Linux's functions
 * for congestion controls and the hooks of kernel_images/source_patches.py make them. All calls of a
 * connection hold the lock of its socket.
 */
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "jostle_controller.h"

/* Time until another attempt while a system call has the lock of the socket. */
#define RETRY_NS 1000
/* Linux paces no packet before this number (tcp_output.c, tcp_update_skb_after_send). */
#define UNPACED_PACKETS 10

static struct connection *connection_of(struct sock *sk)
{
	/* NULL before init: Linux calls some functions for the handshake. */
	return ((struct private *)inet_csk_ca(sk))->connection;
}

static u64 extend(u64 *known, u32 now)
{
	*known += (u32)(now - (u32)*known);
	return *known;
}

static u64 now_ns(const struct sock *sk)
{
	return tcp_sk(sk)->tcp_clock_cache;
}

/* Number of the packet that has the first byte that is not acknowledged. */
static u64 first_unacked(const struct sock *sk, struct connection *c)
{
	u32 bytes = tcp_sk(sk)->snd_una - c->acked_seq;

	if (bytes) {
		c->acked_seq += bytes;
		bytes += c->acked_rest;
		c->acked_packets += bytes / c->mss;
		c->acked_rest = bytes % c->mss;
	}
	return c->acked_packets;
}

/* Number of the packet that begins at or after a byte that is not acknowledged. */
static u64 packet_after(const struct sock *sk, struct connection *c, u32 seq)
{
	u64 first = first_unacked(sk, c);

	return first + (c->acked_rest + (seq - c->acked_seq) + c->mss - 1) / c->mss;
}

static u64 next_to_send(const struct sock *sk, struct connection *c)
{
	return packet_after(sk, c, tcp_sk(sk)->snd_nxt);
}

static u64 delivered(const struct sock *sk, struct connection *c)
{
	return extend(&c->delivered, tcp_sk(sk)->delivered - c->delivered_before);
}

/* A window-based controller paces its start-up. */
static bool start_is_paced(const struct connection *c)
{
	return !c->owns_cwnd && c->state.pacing_bps;
}

/* Before a call: reports changes of cwnd and ssthresh by the transport. */
static void report_window(struct sock *sk, struct connection *c)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->snd_ssthresh != c->ssthresh) {
		c->ssthresh = tp->snd_ssthresh;
		jk_set_ssthresh(c->bridge, c->ssthresh, &c->state);
	}
	if (tcp_snd_cwnd(tp) != c->cwnd) {
		c->cwnd = tcp_snd_cwnd(tp);
		jk_set_cwnd(c->bridge, max(c->cwnd, 1U), &c->state);
	}
}

static void set_timer(struct connection *c)
{
	if (c->state.wakeup_ns == c->armed_ns)
		return;
	c->armed_ns = c->state.wakeup_ns;
	if (c->armed_ns == JK_NEVER) {
		if (hrtimer_try_to_cancel(&c->timer) == 1)
			__sock_put(c->sk);
		return;
	}
	if (!hrtimer_is_queued(&c->timer))
		sock_hold(c->sk);
	hrtimer_start(&c->timer, ns_to_ktime(c->armed_ns), HRTIMER_MODE_ABS_PINNED_SOFT);
}

static void set_pacing(struct sock *sk, const struct connection *c)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (c->state.pacing_bps) {
		u64 bytes_per_s = max(c->state.pacing_bps / 8, 1ULL);

		if (sk->sk_pacing_status == SK_PACING_NONE)
			cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
		WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, bytes_per_s, sk->sk_max_pacing_rate));
	} else if (sk->sk_pacing_status == SK_PACING_NEEDED) {
		sk->sk_pacing_status = SK_PACING_NONE;
		/* The next packet leaves now. */
		tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, tp->tcp_clock_cache);
	}
}

/* After a call: does what the controller has decided. */
static void apply_state(struct sock *sk, struct connection *c)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 max_burst = c->state.max_burst;

	c->cwnd = min(max(c->state.cwnd, 1U), tp->snd_cwnd_clamp);
	if (tcp_snd_cwnd(tp) != c->cwnd)
		tcp_snd_cwnd_set(tp, c->cwnd);
	c->ssthresh = c->state.ssthresh;
	tp->snd_ssthresh = c->ssthresh;
	set_pacing(sk, c);
	if (start_is_paced(c) && c->state.packet_gap_ns != JK_NEVER)
		max_burst = 1;
	if (max_burst)
		sk->sk_gso_max_segs = max_burst;
	else if (c->limits_bursts)
		sk->sk_gso_max_segs = c->gso_max_segs;
	c->limits_bursts = max_burst != 0;
	set_timer(c);
}

static enum hrtimer_restart on_wakeup(struct hrtimer *timer)
{
	struct connection *c = container_of(timer, struct connection, timer);
	struct sock *sk = c->sk;

	bh_lock_sock(sk);
	if (sock_owned_by_user(sk)) {
		bh_unlock_sock(sk);
		hrtimer_forward_now(timer, ns_to_ktime(RETRY_NS));
		return HRTIMER_RESTART;
	}
	c->armed_ns = JK_NEVER;
	/* A finished connection has nothing to send, and its timers would never end. */
	if (sk->sk_state != TCP_CLOSE && !c->is_closed) {
		tcp_mstamp_refresh(tcp_sk(sk));
		report_window(sk, c);
		jk_on_wakeup(c->bridge, now_ns(sk), &c->state);
		apply_state(sk, c);
		jostle_write(sk);
	}
	bh_unlock_sock(sk);
	sock_put(sk);
	return HRTIMER_NORESTART;
}

static u32 ecn_feedback(const struct sock *sk, const struct controller *controller)
{
	if (!(tcp_sk(sk)->ecn_flags & TCP_ECN_OK))
		return JK_ECN_NONE;
	return controller->properties.ecn_feedback == JK_ECN_DCTCP ? JK_ECN_DCTCP : JK_ECN_CLASSIC;
}

static void jostle_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct private *private = inet_csk_ca(sk);
	struct controller *controller =
		container_of(inet_csk(sk)->icsk_ca_ops, struct controller, ops);
	struct jk_established established;
	struct connection *c = kzalloc(sizeof(*c), GFP_ATOMIC);
	u32 feedback = ecn_feedback(sk, controller);

	if (!c)
		panic("jostle controller: no memory for a connection");
	private->connection = c;
	c->controller = controller;
	c->bridge = jk_connect(controller->registration,
			       controller->many && private->number ? private->number - 1 :
								     JK_ONLY_CONNECTION);
	c->sk = sk;
	c->armed_ns = JK_NEVER;
	c->mss = max(tp->mss_cache, 1U);
	c->acked_seq = tp->snd_una;
	c->delivered_before = tp->delivered;
	c->lost = tp->lost;
	c->sent = tp->data_segs_out;
	c->marked = tp->delivered_ce;
	c->gso_max_segs = sk->sk_gso_max_segs;
	c->owns_cwnd = controller->properties.controls_cwnd;
	c->has_ecn = feedback != JK_ECN_NONE;
	hrtimer_init(&c->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_SOFT);
	c->timer.function = on_wakeup;
	if (controller->properties.uses_peer_cache)
		jk_on_open(c->bridge, jostle_peer_cache, now_ns(sk), controller->peer);
	jk_on_ecn_negotiated(c->bridge, feedback, &c->state);
	established = (struct jk_established){
		.now_ns = now_ns(sk),
		.rtt_ns = tp->srtt_us ? (s64)tcp_min_rtt(tp) * NSEC_PER_USEC : -1,
		/* What the application will write is not known yet. */
		.backlog_packets = JK_NEVER,
		.mss_bytes = c->mss,
		.initial_window = tcp_snd_cwnd(tp),
		.receive_window = max(tp->snd_wnd / c->mss, 1U),
	};
	jk_on_established(c->bridge, &established, &c->state);
	apply_state(sk, c);
}

static void close_connection(struct connection *c, u64 time_ns)
{
	if (c->is_closed)
		return;
	c->is_closed = true;
	if (c->controller->properties.uses_peer_cache)
		jk_on_close(c->bridge, jostle_peer_cache, time_ns, c->controller->peer);
}

static void jostle_release(struct sock *sk)
{
	struct private *private = inet_csk_ca(sk);
	struct connection *c = private->connection;

	if (!c)
		return;
	private->connection = NULL;
	if (hrtimer_try_to_cancel(&c->timer) == 1)
		__sock_put(sk);
	close_connection(c, now_ns(sk));
	jk_disconnect(c->bridge);
	kfree(c);
}

static u32 clock_ms(const struct tcp_sock *tp)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	return tcp_time_stamp_ms(tp);
#else
	return tcp_time_stamp(tp);
#endif
}

static void jostle_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	struct jk_raw_ack ack;
	/* The kernel's value if the ACK delivered nothing. */
	u32 nothing = tp->mss_cache * tp->delivered;

	if (unlikely(!c))
		return;
	c->has_raw_ack = true;
	c->state_before = inet_csk(sk)->icsk_ca_state;
	ack = (struct jk_raw_ack){
		.now_ns = now_ns(sk),
		.rtt_ns = sample->rtt_us >= 0 ? (s64)sample->rtt_us * NSEC_PER_USEC : -1,
		.first_unacked = first_unacked(sk, c),
		.next_to_send = next_to_send(sk, c),
		.pacing_bps = sk->sk_pacing_status == SK_PACING_NONE ? 0 :
								       (u64)sk->sk_pacing_rate * 8,
		.packets = sample->pkts_acked,
		.delivered = sample->in_flight == nothing ? 0 : sample->in_flight / tp->mss_cache,
		.sacked = tp->sacked_out,
		.state = c->state_before,
		.has_timestamps = tp->rx_opt.saw_tstamp,
		.timestamp_ms = tp->rx_opt.rcv_tsval,
		.echo_ms = tp->rx_opt.rcv_tsecr,
		.clock_ms = clock_ms(tp),
	};
	report_window(sk, c);
	jk_on_raw_ack(c->bridge, &ack, &c->state);
	apply_state(sk, c);
}

static void jostle_in_ack_event(struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	bool has_raw_ack;
	u64 marked;

	if (unlikely(!c))
		return;
	has_raw_ack = c->has_raw_ack;
	c->has_raw_ack = false;
	if (!c->has_ecn && !c->controller->properties.wants_ack_events)
		return;
	report_window(sk, c);
	if (has_raw_ack && c->controller->properties.wants_ack_events)
		jk_on_ack_event(c->bridge, now_ns(sk), !!(flags & CA_ACK_SLOWPATH), &c->state);
	if (c->has_ecn) {
		struct jk_marks marks = {
			.now_ns = now_ns(sk),
			.delivered = delivered(sk, c),
			.first_unacked = first_unacked(sk, c),
			.next_to_send = next_to_send(sk, c),
		};

		marked = c->marked;
		marks.marked = extend(&c->marked, tp->delivered_ce);
		c->newly_marked = marks.marked - marked;
		jk_on_ecn_marks(c->bridge, &marks, &c->state);
	}
	apply_state(sk, c);
}

static void fill_ack(struct sock *sk, struct connection *c, const struct rate_sample *rs,
		     bool may_raise, struct jk_ack *ack)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;

	*ack = (struct jk_ack){
		.now_ns = now_ns(sk),
		.rtt_ns = rs->rtt_us >= 0 ? (s64)rs->rtt_us * NSEC_PER_USEC : -1,
		.srtt_ns = (u64)tp->srtt_us * (NSEC_PER_USEC / 8),
		.min_rtt_ns = (u64)tcp_min_rtt(tp) * NSEC_PER_USEC,
		.delivered = delivered(sk, c),
		.total_lost = extend(&c->lost, tp->lost),
		.total_sent = extend(&c->sent, tp->data_segs_out),
		.first_unacked = first_unacked(sk, c),
		.next_to_send = next_to_send(sk, c),
		.next_departure_ns = max(tp->tcp_wstamp_ns, tp->tcp_clock_cache),
		.acked = rs->acked_sacked,
		.lost = rs->losses,
		.prior_in_flight = rs->prior_in_flight,
		.in_flight = tcp_packets_in_flight(tp),
		.ce_marked = c->newly_marked,
		.state = state,
		.app_limited = rs->is_app_limited,
		.ack_delayed = rs->is_ack_delayed,
		.cwnd_limited = c->owns_cwnd ? tp->is_cwnd_limited : tcp_is_cwnd_limited(sk),
		.can_increase_cwnd = may_raise,
		.recovery_ended = state != c->state_before && c->state_before >= TCP_CA_Recovery,
	};
	c->newly_marked = 0;
	if (!rs->prior_mstamp)
		return;
	ack->prior_delivered = c->delivered - (u32)(tp->delivered - rs->prior_delivered);
	ack->sent_at_ns = tp->first_tx_mstamp * NSEC_PER_USEC;
	ack->in_flight_at_send = rs->jostle_in_flight;
	ack->lost_since_send = tp->lost - rs->jostle_lost;
	if (rs->interval_us > 0 && rs->delivered > 0) {
		ack->rate_interval_ns = (u64)rs->interval_us * NSEC_PER_USEC;
		ack->rate_delivered = rs->delivered;
	}
}

static bool jostle_ack(struct sock *sk, const struct rate_sample *rs, bool may_raise)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	struct jk_ack ack;

	if (unlikely(!c))
		return false;
	fill_ack(sk, c, rs, may_raise, &ack);
	report_window(sk, c);
	jk_on_ack(c->bridge, &ack, &c->state);
	apply_state(sk, c);
	if (c->state.requests_cwr) {
		c->requests = true;
		tcp_enter_cwr(sk);
		c->requests = false;
	}
	if (c->state.limits_flight)
		tp->app_limited = (tp->delivered + tcp_packets_in_flight(tp)) ?: 1;
	/* All data, and the FIN after it, is acknowledged. */
	if (sk->sk_state != TCP_ESTABLISHED && tp->snd_una == tp->write_seq)
		close_connection(c, now_ns(sk));
	return c->owns_cwnd || c->state.pacing_bps;
}

static void space_packets(struct tcp_sock *tp, const struct sk_buff *skb,
			  const struct connection *c)
{
	if (c->state.packet_gap_ns != JK_NEVER)
		tp->tcp_wstamp_ns = skb->skb_mstamp_ns + c->state.packet_gap_ns;
	else if (tp->data_segs_out < UNPACED_PACKETS)
		tp->tcp_wstamp_ns = skb->skb_mstamp_ns +
				    div64_u64((u64)skb->len * 8 * NSEC_PER_SEC, c->state.pacing_bps);
}

static void jostle_sent(struct sock *sk, struct sk_buff *skb)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tcp_skb_cb *cb = TCP_SKB_CB(skb);
	struct connection *c = connection_of(sk);
	struct private *private = inet_csk_ca(sk);
	struct jk_send send;

	if (unlikely(!c)) {
		/* Connections are numbered in the order of their SYNs. */
		if ((cb->tcp_flags & TCPHDR_SYN) && !private->number) {
			struct controller *controller =
				container_of(inet_csk(sk)->icsk_ca_ops, struct controller, ops);

			private->number = ++controller->opened;
		}
		return;
	}
	if (!skb->len) {
		/* A FIN, or a keep-alive. */
		if ((cb->tcp_flags & TCPHDR_FIN) && !tp->packets_out)
			close_connection(c, now_ns(sk));
		return;
	}
	send = (struct jk_send){
		.now_ns = now_ns(sk),
		.total_sent = extend(&c->sent, tp->data_segs_out),
		.next_to_send = packet_after(
			sk, c, after(cb->end_seq, tp->snd_nxt) ? cb->end_seq : tp->snd_nxt),
		.packets = tcp_skb_pcount(skb),
		.prior_in_flight = tcp_packets_in_flight(tp),
	};
	send.after_idle = !send.prior_in_flight && tp->app_limited;
	report_window(sk, c);
	jk_on_send(c->bridge, &send, &c->state);
	if (start_is_paced(c))
		space_packets(tp, skb, c);
	if (!send.prior_in_flight || start_is_paced(c))
		apply_state(sk, c);
}

static void jostle_lost(struct sock *sk, const struct sk_buff *skb)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct tcp_skb_cb *cb = TCP_SKB_CB(skb);
	struct connection *c = connection_of(sk);
	u32 count = tcp_skb_pcount(skb), i;
	u64 next;

	if (unlikely(!c))
		return;
	next = packet_after(sk, c, cb->end_seq);
	report_window(sk, c);
	for (i = 0; i < count; i++) {
		u32 later = count - 1 - i;
		struct jk_lost lost = {
			.now_ns = now_ns(sk),
			.number = next > later ? next - 1 - later : 0,
			.delivered = delivered(sk, c),
			.in_flight_at_send = cb->tx.jostle_in_flight - later,
			.lost_since_send = tp->lost - later - cb->tx.jostle_lost,
			.app_limited = cb->tx.is_app_limited,
		};

		jk_on_packet_lost(c->bridge, &lost, &c->state);
	}
}

static void jostle_reason_of(struct sock *sk, u8 reason)
{
	struct connection *c = connection_of(sk);

	if (unlikely(!c))
		return;
	if (reason == JOSTLE_TIMEOUT)
		c->signal = JK_TIMEOUT;
	else
		c->signal = c->requests ? JK_REQUEST : JK_ECN;
}

static u32 jostle_ssthresh(struct sock *sk)
{
	struct connection *c = connection_of(sk);
	struct jk_congestion congestion;

	if (unlikely(!c))
		return tcp_reno_ssthresh(sk);
	congestion = (struct jk_congestion){
		.now_ns = now_ns(sk),
		.next_to_send = next_to_send(sk, c),
		.in_flight = tcp_packets_in_flight(tcp_sk(sk)),
		.signal = c->signal,
	};
	c->signal = JK_LOSS;
	report_window(sk, c);
	jk_on_congestion(c->bridge, &congestion, &c->state);
	apply_state(sk, c);
	return c->ssthresh;
}

static u32 jostle_undo_cwnd(struct sock *sk)
{
	struct connection *c = connection_of(sk);

	if (unlikely(!c))
		return tcp_reno_undo_cwnd(sk);
	report_window(sk, c);
	jk_on_undo(c->bridge, now_ns(sk), &c->state);
	apply_state(sk, c);
	return c->cwnd;
}

static void jostle_set_state(struct sock *sk, u8 state)
{
	struct connection *c = connection_of(sk);

	if (unlikely(!c))
		return;
	report_window(sk, c);
	jk_on_recovery_state(c->bridge, now_ns(sk), state, &c->state);
	apply_state(sk, c);
}

static void jostle_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct connection *c = connection_of(sk);

	if (unlikely(!c) || (event != CA_EVENT_CWND_RESTART && event != CA_EVENT_COMPLETE_CWR))
		return;
	report_window(sk, c);
	if (event == CA_EVENT_CWND_RESTART)
		jk_on_idle_restart(c->bridge, now_ns(sk), &c->state);
	else
		jk_on_cwr_complete(c->bridge, now_ns(sk), &c->state);
	apply_state(sk, c);
}

static u32 jostle_min_tso_segs(struct sock *sk)
{
	struct connection *c = connection_of(sk);

	return c && c->state.min_burst ? c->state.min_burst :
					 READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
}

/* As BBR of Linux: a controller that paces may have more than cwnd in its socket buffer. */
static u32 jostle_sndbuf_expand(struct sock *sk)
{
	return 3;
}

/* Linux requires one of these functions; the hook jostle_ack comes before them. */
static void unused_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void unused_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#else
static void unused_cong_control(struct sock *sk, const struct rate_sample *rs)
#endif
{
}

void jostle_fill_operations(struct controller *controller)
{
	const struct jk_properties *properties = &controller->properties;
	struct tcp_congestion_ops *ops = &controller->ops;

	BUILD_BUG_ON(sizeof(struct private) > ICSK_CA_PRIV_SIZE);
	*ops = (struct tcp_congestion_ops){
		.owner = THIS_MODULE,
		.init = jostle_init,
		.release = jostle_release,
		.ssthresh = jostle_ssthresh,
		.undo_cwnd = jostle_undo_cwnd,
		.set_state = jostle_set_state,
		.cwnd_event = jostle_cwnd_event,
		.pkts_acked = jostle_pkts_acked,
		.in_ack_event = jostle_in_ack_event,
		.min_tso_segs = jostle_min_tso_segs,
		.jostle_ack = jostle_ack,
		.jostle_sent = jostle_sent,
		.jostle_lost = jostle_lost,
		.jostle_reason = jostle_reason_of,
		.get_info = jostle_get_info,
	};
	if (properties->controls_cwnd) {
		ops->cong_control = unused_cong_control;
		ops->sndbuf_expand = jostle_sndbuf_expand;
	} else {
		ops->cong_avoid = unused_cong_avoid;
	}
	if (properties->ecn_feedback == JK_ECN_DCTCP)
		ops->flags = TCP_CONG_NEEDS_ECN;
}
