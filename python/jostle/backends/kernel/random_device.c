/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * libstdc++ takes the numbers of std::random_device from the processor (RDSEED, RDRAND), where no seed
 * of a run reaches them. Preloaded, this takes them from the kernel, whose generator has that seed.
 */
#include <stdlib.h>
#include <sys/random.h>

/* unsigned std::random_device::_M_getval() */
unsigned int _ZNSt13random_device9_M_getvalEv(void *device)
{
	unsigned int value;

	(void)device;
	/* 256 bytes or less come whole (getrandom(2)). */
	if (getrandom(&value, sizeof(value), 0) != sizeof(value))
		abort();
	return value;
}
