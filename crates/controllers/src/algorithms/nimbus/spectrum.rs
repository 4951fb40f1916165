//! Selected bins of the discrete Fourier transform of the latest samples, updated per sample.

use alloc::vec;
use alloc::vec::Vec;
use core::f64::consts::PI;
use core::ops::RangeInclusive;

/// Samples of a window: 5.12 s, a power of two (release).
pub(super) const SAMPLES: usize = 512;
/// Time between samples, in seconds (release: `measurement_interval`).
pub(super) const SAMPLE_S: f64 = 0.01;
/// Distance of bins, in Hz.
const BIN_HZ: f64 = 1.0 / (SAMPLES as f64 * SAMPLE_S);
/// Length of the newest quarter of the window, over which the release averages.
const RECENT: usize = SAMPLES / 4;

/// A bin: the factor that shifts its sum by one sample, and the sum.
#[derive(Clone, Copy, Debug)]
struct Bin {
    turn: (f64, f64),
    sum: (f64, f64),
}

/// Bins of the spectrum of the latest [`SAMPLES`] samples, zeros before the first.
///
/// When a sample x enters the window and y leaves it, each sum becomes (sum + x − y) e^(2πik/N).
/// This takes two multiplications per bin in use instead of N log N for a new transform. The mean
/// need not be subtracted, because it only affects the first bin.
#[derive(Clone, Debug)]
pub(super) struct Spectrum {
    samples: Vec<f64>,
    head: usize,
    first: usize,
    bins: Vec<Bin>,
    /// Sum of the newest quarter.
    recent: f64,
}

/// Returns the bins that the release searches for a peak above `from_hz` and up to `to_hz`. They
/// include the last bin that is not above `from_hz` (`find_peak`).
pub(super) fn bins_of(from_hz: f64, to_hz: f64) -> RangeInclusive<usize> {
    (from_hz / BIN_HZ) as usize..=(to_hz / BIN_HZ) as usize
}

impl Spectrum {
    /// Creates a spectrum of `bins`.
    pub(super) fn new(bins: RangeInclusive<usize>) -> Self {
        let first = *bins.start();
        let bins = bins.map(|k| {
            let angle = 2.0 * PI * k as f64 / SAMPLES as f64;
            Bin { turn: (libm::cos(angle), libm::sin(angle)), sum: (0.0, 0.0) }
        });
        Self { samples: vec![0.0; SAMPLES], head: 0, first, bins: bins.collect(), recent: 0.0 }
    }

    /// Adds the newest sample.
    pub(super) fn push(&mut self, sample: f64) {
        self.recent += sample - self.ago(RECENT);
        let change = sample - core::mem::replace(&mut self.samples[self.head], sample);
        self.head = (self.head + 1) % SAMPLES;
        for Bin { turn, sum } in &mut self.bins {
            let real = sum.0 + change;
            *sum = (real * turn.0 - sum.1 * turn.1, real * turn.1 + sum.1 * turn.0);
        }
    }

    /// Returns the sample that was added `samples` ago, 1 for the newest; at most [`SAMPLES`].
    pub(super) fn ago(&self, samples: usize) -> f64 {
        self.samples[(self.head + SAMPLES - samples) % SAMPLES]
    }

    /// Mean of the newest quarter.
    pub(super) fn recent_mean(&self) -> f64 {
        self.recent / RECENT as f64
    }

    /// Largest magnitude in these bins.
    pub(super) fn peak(&self, bins: RangeInclusive<usize>) -> f64 {
        let kept = &self.bins[bins.start() - self.first..=bins.end() - self.first];
        let squares = kept.iter().map(|bin| bin.sum.0 * bin.sum.0 + bin.sum.1 * bin.sum.1);
        libm::sqrt(squares.fold(0.0, f64::max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition.
    fn magnitude(samples: &[f64], k: usize) -> f64 {
        let (mut real, mut imaginary) = (0.0, 0.0);
        for (i, sample) in samples.iter().enumerate() {
            let angle = -2.0 * PI * (k * i) as f64 / SAMPLES as f64;
            real += sample * libm::cos(angle);
            imaginary += sample * libm::sin(angle);
        }
        libm::hypot(real, imaginary)
    }

    #[test]
    fn it_is_the_transform_of_the_latest_samples() {
        let mut spectrum = Spectrum::new(20..=60);
        let all: Vec<f64> = (0..1_300).map(|i| f64::from(i * i % 97) + 1e3).collect();
        for &sample in &all {
            spectrum.push(sample);
        }
        let latest = &all[all.len() - SAMPLES..];
        for k in 20..=60 {
            let (kept, defined) = (spectrum.peak(k..=k), magnitude(latest, k));
            assert!((kept - defined).abs() < 1e-6, "bin {k}: {kept} instead of {defined}");
        }
        assert_eq!((spectrum.ago(1), spectrum.ago(500)), (latest[511], latest[12]));
        let recent = latest[384..].iter().sum::<f64>() / 128.0;
        assert!((spectrum.recent_mean() - recent).abs() < 1e-9);
    }

    /// A sine of amplitude 3 in the middle of a bin has N/2 times that there, and nothing elsewhere.
    #[test]
    fn a_sine_is_one_bin() {
        let mut spectrum = Spectrum::new(20..=40);
        for i in 0..SAMPLES {
            spectrum.push(3.0 * libm::sin(2.0 * PI * 26.0 * i as f64 / SAMPLES as f64));
        }
        assert!((spectrum.peak(24..=28) - 768.0).abs() < 1e-6);
        assert!(spectrum.peak(30..=40) < 1e-6);
    }

    /// Bins are 0.1953 Hz wide. 4.5 Hz lie between 23 and 24, 5.5 Hz between 28 and 29.
    #[test]
    fn bins_of_frequencies_are_those_of_the_release() {
        assert_eq!(bins_of(4.5, 5.5), 23..=28);
        assert_eq!(bins_of(6.5, 9.5), 33..=48);
        assert_eq!(bins_of(7.5, 11.5), 38..=58);
    }
}
