// SPDX-License-Identifier: GPL-2.0
/*
 * State of controllers for TCP_CC_INFO: mode, pacing rate and internal values.
 *
 * The kernel's union has 20 bytes, and a state has some hundred. Each call therefore returns the next
 * piece of one state. A piece that does not fill the union is the last one, and the call after it
 * begins with the state at its time. backends/kernel/controller_states.py reads them.
 */
#include <linux/inet_diag.h>

#include "jostle_controller.h"

static void put(struct connection *c, const void *bytes, size_t length)
{
	memcpy(c->info + c->info_bytes, bytes, length);
	c->info_bytes += length;
}

static bool has_room(const struct connection *c, size_t length)
{
	return length <= sizeof(c->info) - c->info_bytes;
}

static void put_value(void *context, const u8 *name, size_t length, u64 bits)
{
	struct connection *c = context;

	/* The last values of a controller with very many are left out. */
	if (!has_room(c, length + 1 + sizeof(bits)))
		return;
	put(c, name, length);
	put(c, "", 1);
	put(c, &bits, sizeof(bits));
}

static void describe(struct connection *c)
{
	u8 owns_cwnd = c->owns_cwnd;
	size_t length;
	const u8 *mode = jk_mode(c->bridge, &length);

	c->info_bytes = 0;
	c->info_read = 0;
	put(c, &c->state.pacing_bps, sizeof(c->state.pacing_bps));
	put(c, &owns_cwnd, 1);
	put(c, mode, min_t(size_t, length, JOSTLE_LONGEST_MODE));
	put(c, "", 1);
	jk_observe(c->bridge, put_value, c);
}

size_t jostle_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	struct connection *c = ((struct private *)inet_csk_ca(sk))->connection;
	size_t piece;

	/* inet_diag asks for kinds that it knows, TCP_CC_INFO for all. */
	if (!c || ext != ~0U)
		return 0;
	/* The socket is not locked here, and packets call the controller. */
	local_bh_disable();
	if (!c->info_begun)
		describe(c);
	piece = min_t(size_t, c->info_bytes - c->info_read, sizeof(*info));
	memcpy(info, c->info + c->info_read, piece);
	c->info_read += piece;
	c->info_begun = piece == sizeof(*info);
	local_bh_enable();
	return piece;
}
