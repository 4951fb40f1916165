// SPDX-License-Identifier: GPL-2.0
/*
 * The congestion controllers of jostle as congestion controls of Linux.
 *
 * A line written to the parameter `register` makes one congestion control, jostle.0, jostle.1, and so
 * on (a module of a user's crate has another name): "PEER MANY TEXT". PEER is the number of the receiving host in the peer cache, MANY is 1 for a
 * flow of many connections, and TEXT is for jk_register().
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "jostle_controller.h"

static LIST_HEAD(controllers);
static u32 registered;
struct jk_cache *jostle_peer_cache;

void *jk_alloc(size_t size)
{
	return kmalloc(size, GFP_ATOMIC | __GFP_NOWARN);
}

void jk_free(void *memory)
{
	kfree(memory);
}

void jk_panic(const char *text, size_t length)
{
	panic("jostle controller: %.*s", (int)length, text);
}

static int register_line(const char *line, size_t length)
{
	struct controller *controller;
	char reason[200];
	u32 peer, many;
	int header, error;

	if (sscanf(line, "%u %u %n", &peer, &many, &header) != 2) {
		pr_err("jostle: a line begins with PEER MANY\n");
		return -EINVAL;
	}
	controller = kzalloc(sizeof(*controller), GFP_KERNEL);
	if (!controller)
		return -ENOMEM;
	controller->peer = peer;
	controller->many = many;
	controller->registration =
		jk_register(line + header, length - header, reason, sizeof(reason));
	if (!controller->registration) {
		pr_err("jostle: %s\n", reason);
		kfree(controller);
		return -EINVAL;
	}
	controller->properties = jk_properties(controller->registration);
	jostle_fill_operations(controller);
	snprintf(controller->ops.name, sizeof(controller->ops.name), KBUILD_MODNAME ".%u",
		 registered);
	error = tcp_register_congestion_control(&controller->ops);
	if (error) {
		jk_unregister(controller->registration);
		kfree(controller);
		return error;
	}
	registered++;
	list_add(&controller->list, &controllers);
	return 0;
}

/* A line may have more than the 4,096 bytes of a write: it ends with a line feed. */
static char *pending;
static size_t pending_length;

static int take_text(const char *text, const struct kernel_param *parameter)
{
	size_t length = strlen(text);
	char *longer = krealloc(pending, pending_length + length + 1, GFP_KERNEL);
	int error;

	if (!longer)
		return -ENOMEM;
	pending = longer;
	memcpy(pending + pending_length, text, length + 1);
	pending_length += length;
	if (!length || text[length - 1] != '\n')
		return 0;
	error = register_line(pending, pending_length);
	kfree(pending);
	pending = NULL;
	pending_length = 0;
	return error;
}

static const struct kernel_param_ops register_operations = { .set = take_text };
module_param_cb(register, &register_operations, NULL, 0200);
MODULE_PARM_DESC(register, "a line PEER MANY TEXT adds a congestion control");

static int __init jostle_load(void)
{
	jostle_peer_cache = jk_cache_create();
	return 0;
}

static void __exit jostle_unload(void)
{
	struct controller *controller, *next;

	list_for_each_entry_safe(controller, next, &controllers, list) {
		tcp_unregister_congestion_control(&controller->ops);
		jk_unregister(controller->registration);
		kfree(controller);
	}
	jk_cache_delete(jostle_peer_cache);
	kfree(pending);
}

module_init(jostle_load);
module_exit(jostle_unload);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Congestion controllers of jostle");
