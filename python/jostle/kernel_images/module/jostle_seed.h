/* SPDX-License-Identifier: GPL-2.0 */
#ifndef JOSTLE_SEED_H
#define JOSTLE_SEED_H

/* Whether random numbers come from a given seed. */
_Bool jostle_seeded(void);

/* Fill memory with random numbers that follow from the seed. */
void jostle_fill(void *buffer, unsigned long length);

#endif
