/* SPDX-License-Identifier: GPL-2.0 */
#ifndef JOSTLE_CONTROLLER_H
#define JOSTLE_CONTROLLER_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <net/tcp.h>

#include "jostle_bridge.h"

#define JOSTLE_LONGEST_MODE 64

/* A registered congestion control. */
struct controller {
	struct tcp_congestion_ops ops;
	struct list_head list;
	struct jk_registration *registration;
	struct jk_properties properties;
	u32 peer;
	u32 opened; /* connections so far */
	bool many;
};

struct connection {
	struct jk_connection *bridge;
	struct controller *controller;
	struct jk_controller_state state; /* after the last call */
	struct sock *sk;
	struct hrtimer timer;
	u64 armed_ns;
	/* Counters of 32 bits, extended to 64. */
	u64 delivered, lost, sent, marked;
	/* Packets that end at or before snd_una, the bytes after them, and snd_una then. */
	u64 acked_packets;
	u32 acked_rest, acked_seq;
	u32 delivered_before; /* with the SYN */
	u32 mss;
	u32 cwnd, ssthresh; /* as the controller and the transport last agreed */
	u32 newly_marked;
	u32 gso_max_segs; /* of the device */
	u8 signal; /* of the next reduction */
	u8 state_before; /* recovery state before the ACK */
	bool owns_cwnd, has_ecn, requests, has_raw_ack, limits_bursts, is_closed;
	/* The state that is read by TCP_CC_INFO in pieces, see jostle_info.c. */
	bool info_begun;
	u16 info_bytes, info_read;
	u8 info[1024];
};

struct private {
	struct connection *connection;
	u32 number; /* of the connection, from 1 */
};

/* Of all hosts of the kernel. */
extern struct jk_cache *jostle_peer_cache;

/* Sets the functions of a congestion control whose properties are known. */
void jostle_fill_operations(struct controller *controller);

/* tcp_congestion_ops.get_info */
size_t jostle_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);

#endif
