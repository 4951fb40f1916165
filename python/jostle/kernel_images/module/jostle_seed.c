// SPDX-License-Identifier: GPL-2.0
/*
 * A User-Mode Linux that is started with "jostle.seed=NUMBER" takes all its
 * random numbers from that number, and none from its host. In virtual time it
 * then does the same thing every time it is started.
 *
 * The host's random numbers enter by os_getrandom() alone, which asks here
 * first. What the kernel collects from the timing of interrupts does not
 * enter its pool (drivers/char/random.c), because signals from the host come
 * when they like.
 */

#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>
#include <init.h>

#include "jostle_random.h"
#include "jostle_seed.h"

static struct jostle_stream stream;
static bool seeded;

bool jostle_seeded(void)
{
	return seeded;
}

void jostle_fill(void *buffer, unsigned long length)
{
	while (length) {
		u64 bits = jostle_bits(&stream);
		unsigned long part = min_t(unsigned long, length, sizeof(bits));

		memcpy(buffer, &bits, part);
		buffer += part;
		length -= part;
	}
}

static int __init take_seed(char *text, int *add)
{
	unsigned long long number;

	/* Not for the kernel's own command line, which it would not know it from. */
	*add = 0;
	if (kstrtoull(text, 10, &number))
		return 1;
	jostle_seed(&stream, number);
	seeded = true;
	return 0;
}

__uml_setup("jostle.seed=", take_seed,
"jostle.seed=<number>\n"
"    Takes all random numbers from this one instead of from the host.\n\n");
