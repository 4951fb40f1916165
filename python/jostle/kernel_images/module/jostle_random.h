/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The random numbers of jostle's simulator: a queueing discipline that draws
 * from the same stream takes the same decisions.
 *
 * xoshiro256++ by Blackman and Vigna ("Scrambled linear pseudorandom number
 * generators", 2021), its state filled by SplitMix64 (Steele, Lea, Flood,
 * "Fast splittable pseudorandom number generators", 2014).
 */
#ifndef JOSTLE_RANDOM_H
#define JOSTLE_RANDOM_H

#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/types.h>

/* A probability is a number of 53-bit draws out of all of them. */
#define JOSTLE_CERTAIN	BIT_ULL(53)

struct jostle_stream {
	u64 s[4];
};

static inline u64 jostle_split_mix(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static inline void jostle_seed(struct jostle_stream *stream, u64 seed)
{
	int i;

	for (i = 0; i < 4; i++)
		stream->s[i] = jostle_split_mix(&seed);
}

static inline u64 jostle_bits(struct jostle_stream *stream)
{
	u64 *s = stream->s;
	u64 result = rol64(s[0] + s[3], 23) + s[0];
	u64 shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rol64(s[3], 45);
	return result;
}

/* Uniform in 0 ... JOSTLE_CERTAIN - 1. */
static inline u64 jostle_uniform(struct jostle_stream *stream)
{
	return jostle_bits(stream) >> 11;
}

/* Draws nothing when the answer is certain. */
static inline bool jostle_chance(struct jostle_stream *stream, u64 probability)
{
	if (!probability)
		return false;
	return probability >= JOSTLE_CERTAIN ||
	       jostle_uniform(stream) < probability;
}

#endif
