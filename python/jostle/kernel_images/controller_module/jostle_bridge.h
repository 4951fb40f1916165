/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The controllers of jostle for C. src/events.rs has the same structures in the same order, and the
 * interface CongestionController (crates/congestion/src/controller.rs) says when to make each call.
 *
 * The includer defines the integer types u8, u32, u64 and s64 and size_t, and the functions jk_alloc,
 * jk_free and jk_panic. Numbers of packets are of full-sized packets.
 */
#ifndef JOSTLE_BRIDGE_H
#define JOSTLE_BRIDGE_H

#define JK_NO_SSTHRESH 0x7fffffffU
#define JK_NEVER (~0ULL)
#define JK_ONLY_CONNECTION (~0U)

enum jk_signal { JK_LOSS, JK_ECN, JK_REQUEST, JK_TIMEOUT };
enum jk_ecn { JK_ECN_NONE, JK_ECN_CLASSIC, JK_ECN_DCTCP, JK_ECN_ACCURATE };

struct jk_registration;
struct jk_connection;
struct jk_cache;

struct jk_properties {
	u8 controls_cwnd;
	u8 ecn_feedback; /* enum jk_ecn */
	u8 wants_ack_events;
	u8 ignores_receive_window;
	u8 quick_start_request;
	u8 uses_peer_cache;
};

struct jk_controller_state {
	u64 pacing_bps; /* 0: none */
	u64 wakeup_ns; /* JK_NEVER: none */
	u64 packet_gap_ns; /* JK_NEVER: none */
	u32 cwnd;
	u32 ssthresh;
	u32 min_burst; /* 0: none */
	u32 max_burst; /* 0: none */
	u32 limits_flight;
	u32 requests_cwr; /* after jk_on_ack */
};

struct jk_established {
	u64 now_ns;
	s64 rtt_ns; /* negative: unknown */
	u64 backlog_packets; /* JK_NEVER: endless */
	u64 quick_start_bps;
	u32 mss_bytes;
	u32 initial_window;
	u32 receive_window;
	u32 padding;
};

struct jk_send {
	u64 now_ns;
	u64 total_sent;
	u64 next_to_send;
	u32 packets;
	u32 prior_in_flight;
	u32 after_idle;
	u32 padding;
};

struct jk_raw_ack {
	u64 now_ns;
	s64 rtt_ns; /* negative: unknown */
	u64 first_unacked;
	u64 next_to_send;
	u64 pacing_bps;
	u32 packets;
	u32 delivered;
	u32 sacked;
	u32 state; /* enum tcp_ca_state */
	u32 has_timestamps;
	u32 timestamp_ms;
	u32 echo_ms;
	u32 clock_ms;
};

struct jk_marks {
	u64 now_ns;
	u64 delivered;
	u64 marked;
	u64 first_unacked;
	u64 next_to_send;
};

struct jk_lost {
	u64 now_ns;
	u64 number;
	u64 delivered;
	u32 in_flight_at_send;
	u32 lost_since_send;
	u32 app_limited;
	u32 padding;
};

struct jk_congestion {
	u64 now_ns;
	u64 next_to_send;
	u32 in_flight;
	u32 signal; /* enum jk_signal */
};

struct jk_ack {
	u64 now_ns;
	s64 rtt_ns; /* negative: unknown */
	u64 srtt_ns;
	u64 min_rtt_ns;
	u64 rate_interval_ns; /* 0: no rate sample */
	u64 prior_delivered;
	u64 sent_at_ns;
	u64 delivered;
	u64 total_lost;
	u64 total_sent;
	u64 first_unacked;
	u64 next_to_send;
	u64 next_departure_ns;
	u32 acked;
	u32 lost;
	u32 rate_delivered;
	u32 in_flight_at_send;
	u32 lost_since_send;
	u32 prior_in_flight;
	u32 in_flight;
	u32 ce_marked;
	u32 state; /* enum tcp_ca_state */
	u8 app_limited;
	u8 ack_delayed;
	u8 cwnd_limited;
	u8 pacing_limited;
	u8 can_increase_cwnd;
	u8 recovery_ended;
	u8 padding[6];
};

/* Functions of the includer. */
void *jk_alloc(size_t size_bytes);
void jk_free(void *memory);
void jk_panic(const char *text, size_t length) __attribute__((noreturn));

/* Returns NULL and the reason in `error` if the line is malformed. src/registration.rs says what a line has. */
struct jk_registration *jk_register(const char *line, size_t length, char *error, size_t room);
void jk_unregister(struct jk_registration *registration);
struct jk_properties jk_properties(const struct jk_registration *registration);

struct jk_connection *jk_connect(const struct jk_registration *registration, u32 number);
void jk_disconnect(struct jk_connection *connection);

struct jk_cache *jk_cache_create(void);
void jk_cache_delete(struct jk_cache *cache);
void jk_on_open(struct jk_connection *connection, struct jk_cache *cache, u64 now_ns, u32 peer);
void jk_on_close(struct jk_connection *connection, struct jk_cache *cache, u64 now_ns, u32 peer);

void jk_on_ecn_negotiated(struct jk_connection *connection, u32 feedback, struct jk_controller_state *result);
void jk_on_established(struct jk_connection *connection, const struct jk_established *call,
		       struct jk_controller_state *result);
void jk_on_mss_change(struct jk_connection *connection, u32 mss_bytes, struct jk_controller_state *result);
void jk_on_send(struct jk_connection *connection, const struct jk_send *call, struct jk_controller_state *result);
void jk_on_ack_event(struct jk_connection *connection, u64 now_ns, u32 slow_path, struct jk_controller_state *result);
void jk_on_raw_ack(struct jk_connection *connection, const struct jk_raw_ack *call, struct jk_controller_state *result);
void jk_on_ecn_marks(struct jk_connection *connection, const struct jk_marks *call, struct jk_controller_state *result);
void jk_on_packet_lost(struct jk_connection *connection, const struct jk_lost *call, struct jk_controller_state *result);
void jk_on_congestion(struct jk_connection *connection, const struct jk_congestion *call,
		      struct jk_controller_state *result);
void jk_on_recovery_state(struct jk_connection *connection, u64 now_ns, u32 state, struct jk_controller_state *result);
void jk_on_ack(struct jk_connection *connection, const struct jk_ack *call, struct jk_controller_state *result);
void jk_on_undo(struct jk_connection *connection, u64 now_ns, struct jk_controller_state *result);
void jk_on_cwr_complete(struct jk_connection *connection, u64 now_ns, struct jk_controller_state *result);
void jk_on_idle_restart(struct jk_connection *connection, u64 now_ns, struct jk_controller_state *result);
void jk_on_wakeup(struct jk_connection *connection, u64 now_ns, struct jk_controller_state *result);
/* The name of the mode; not terminated. */
const u8 *jk_mode(const struct jk_connection *connection, size_t *length);
/* Calls `record` for each internal value with its name, which is not terminated, and its bits. */
void jk_observe(const struct jk_connection *connection,
		void (*record)(void *context, const u8 *name, size_t length, u64 bits), void *context);
void jk_set_cwnd(struct jk_connection *connection, u32 cwnd, struct jk_controller_state *result);
void jk_set_ssthresh(struct jk_connection *connection, u32 ssthresh, struct jk_controller_state *result);

#endif
