//! Named random streams.
//!
//! A stream depends on the seed of the run and on its name, which says what it drives
//! (`"link/bottleneck/loss"`). It does not depend on the order in which components are created. If
//! you add a flow or a link to a scenario, the random numbers of all other components remain the
//! same.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A deterministic source of random numbers for one component.
#[derive(Clone, Debug)]
pub struct RandomStream(Xoshiro256PlusPlus);

/// The name of a stream, built from parts. Streams with a common prefix hash the prefix only once.
///
/// The value is the 64-bit FNV-1a hash of the name, which only spreads names over seeds. The
/// seeding of the generator mixes the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomStreamName(u64);

impl RandomStreamName {
    /// Starts a name with `part`.
    pub fn of(part: &str) -> Self {
        Self(0xcbf2_9ce4_8422_2325).and(part)
    }

    /// Appends `part` to the name.
    #[must_use]
    pub fn and(self, part: &str) -> Self {
        Self(part.bytes().fold(self.0, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }))
    }

    /// Returns the hash of the name.
    pub fn hash(self) -> u64 {
        self.0
    }

    /// Appends the digits of `number` to the name.
    #[must_use]
    pub fn and_number(self, number: u32) -> Self {
        let before = if number < 10 { self } else { self.and_number(number / 10) };
        Self((before.0 ^ u64::from(b'0' + (number % 10) as u8)).wrapping_mul(0x0000_0100_0000_01b3))
    }
}

impl RandomStream {
    /// Creates the stream of the component `name` in the run with `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        Self::named(seed, RandomStreamName::of(name))
    }

    /// Creates the stream of the component with this name in the run with `seed`.
    pub fn named(seed: u64, name: RandomStreamName) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(Self::spread(seed, name)))
    }

    /// Returns the seed that [`new`](Self::new) passes to the generator. The generator is
    /// xoshiro256++ with a state filled by SplitMix64. The kernel module uses this seed to draw the
    /// same numbers.
    pub fn seed(seed: u64, name: &str) -> u64 {
        Self::spread(seed, RandomStreamName::of(name))
    }

    const fn spread(seed: u64, name: RandomStreamName) -> u64 {
        // Multiplying by an odd constant keeps nearby seeds from cancelling nearby names.
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name.0
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a uniform number in [0, 1) with the 53 bits of an `f64`.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true with probability `p`. Draws no number if the result is certain.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && (p >= 1.0 || self.uniform() < p)
    }

    /// Draws a uniform integer from 0 to `n` − 1; 0 for `n` = 0. (Multiply-shift: bias below
    /// 2⁻⁶⁴·n.)
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Draws an exponentially distributed number with the given mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 − U is in (0, 1], so that the logarithm is finite.
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Draws a normally distributed number with mean 0 and standard deviation 1 (Box–Muller, cosine
    /// branch).
    #[inline]
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(2.0 * core::f64::consts::PI * self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_seed_and_name_only() {
        let draw = |seed, name: &str| {
            let mut stream = RandomStream::new(seed, name);
            [stream.bits(), stream.bits(), stream.bits()]
        };
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
    }

    #[test]
    fn a_name_in_parts_is_the_name() {
        for number in [0, 7, 10, 99, 100, 305, u32::MAX] {
            let whole = format!("flow/web/{number}/sizes");
            let parts = RandomStreamName::of("flow/").and("web/").and_number(number).and("/sizes");
            assert_eq!(parts, RandomStreamName::of(&whole), "{whole}");
            assert_eq!(RandomStream::named(5, parts).bits(), RandomStream::new(5, &whole).bits());
        }
    }

    /// The kernel module's `jostle_random.h` does the same.
    #[test]
    fn the_generator_is_xoshiro_filled_by_split_mix() {
        let mut state = RandomStream::seed(7, "link/bottleneck/queue");
        let mut words = [0u64; 4];
        for word in &mut words {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *word = z ^ (z >> 31);
        }
        let first = words[0].wrapping_add(words[3]).rotate_left(23).wrapping_add(words[0]);
        assert_eq!(RandomStream::new(7, "link/bottleneck/queue").bits(), first);
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut stream = RandomStream::new(7, "moments");
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || stream.uniform()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || stream.exponential(3.0)) - 3.0).abs() < 0.03);
        assert!(mean(&mut || stream.normal()).abs() < 0.01);
        assert!((mean(&mut || stream.normal().powi(2)) - 1.0).abs() < 0.02);
        assert!((mean(&mut || f64::from(u8::from(stream.chance(0.25)))) - 0.25).abs() < 0.005);
        assert!((mean(&mut || stream.below(10) as f64) - 4.5).abs() < 0.03);
    }

    #[test]
    fn certain_events_draw_nothing() {
        let mut stream = RandomStream::new(1, "certain");
        let mut untouched = stream.clone();
        assert!(!stream.chance(0.0));
        assert!(stream.chance(1.0));
        assert_eq!(stream.bits(), untouched.bits());
    }
}
