/* SPDX-License-Identifier: GPL-2.0 */
#ifndef JOSTLE_CONTROLLER_H
#define JOSTLE_CONTROLLER_H

#include <linux/list.h>
#include <net/tcp.h>

#include "jostle_bridge.h"

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

/* Of all hosts of the kernel. */
extern struct jk_cache *jostle_peer_cache;

/* Sets the functions of a congestion control whose properties are known. */
void jostle_fill_operations(struct controller *controller);

#endif
