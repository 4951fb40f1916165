//! Elasticity: whether the cross traffic reacts to the pulses.
//!
//! η = |Z(f_p)| / max |Z(f)|, f between f_p and 2 f_p, where Z is the spectrum of the cross
//! traffic's rate z. ACK-clocked traffic takes over the pulses, other traffic does not. The release
//! (`should_switch_flow_mode`) excludes the bins near the peaks, and does not trust faint peaks.

use super::spectrum::{Spectrum, bins_of};

/// Weight of the latest elasticity in the average: twice 1 %, because the release updates the
/// average with each report of 5 ms and a sample is available for every second report.
const WEIGHT: f64 = 1.0 - 0.99 * 0.99;
/// Share of the link rate below which cross traffic is too small to be elastic.
const TOO_LITTLE: f64 = 0.1;
/// Share above which cross traffic is considered elastic, and its elasticity in this case.
const TOO_MUCH: (f64, f64) = (0.9, 6.0);
/// A response is faint below this share of the pulses' amplitude. Its elasticity is then at most
/// `DOUBTFUL`.
const FAINT: f64 = 0.25;
/// Elasticity for faint responses, and if the pulses are not visible at the receiver.
const DOUBTFUL: f64 = 3.0;
/// Minimum height of the pulses' peak at the receiver, relative to other peaks.
const LEAST_PULSES: f64 = 2.0;

/// The detector.
#[derive(Clone, Debug)]
pub(super) struct ElasticityDetector {
    /// Spectra of the cross traffic's rate and of our own arrival rate.
    cross: Spectrum,
    received: Spectrum,
    pub(super) average: f64,
}

impl ElasticityDetector {
    /// Creates a detector for pulse frequencies from `low_hz` to `high_hz`.
    pub(super) fn new(low_hz: f64, high_hz: f64) -> Self {
        let bins = *peak_bins(low_hz).start()..=*reference_bins(high_hz).end();
        Self { cross: Spectrum::new(bins.clone()), received: Spectrum::new(bins), average: 1.0 }
    }

    /// Adds a sample without an evaluation.
    pub(super) fn push(&mut self, cross_bps: f64, received_bps: f64) {
        self.cross.push(cross_bps);
        self.received.push(received_bps);
    }

    /// Returns the current η for pulses of `frequency_hz`.
    fn now(&self, frequency_hz: f64) -> f64 {
        let (peak, other) = (peak_bins(frequency_hz), reference_bins(frequency_hz));
        let (response, pulses) = (self.cross.peak(peak.clone()), self.received.peak(peak));
        let eta = ratio(response, self.cross.peak(other));
        let answered = ratio(response, pulses);
        if answered < FAINT { eta.min(DOUBTFUL) * answered / FAINT } else { eta }
    }

    /// Evaluates the window for a link of rate `link_bps`. Returns the average elasticity.
    pub(super) fn judge(&mut self, frequency_hz: f64, link_bps: f64) -> f64 {
        let share = ratio(self.cross.recent_mean(), link_bps);
        if share < TOO_LITTLE {
            self.average = 0.0;
        } else if share > TOO_MUCH.0 {
            self.take(TOO_MUCH.1);
        }
        self.take(self.now(frequency_hz));
        let pulses = self.received.peak(peak_bins(frequency_hz));
        if ratio(pulses, self.received.peak(reference_bins(frequency_hz))) < LEAST_PULSES {
            self.take(DOUBTFUL);
        }
        self.average
    }

    fn take(&mut self, elasticity: f64) {
        self.average += WEIGHT * (elasticity - self.average);
    }

    /// Returns the arrival rate of our own packets `samples` ago.
    pub(super) fn received_ago(&self, samples: usize) -> f64 {
        self.received.ago(samples)
    }
}

/// Returns the bins of a peak at a frequency.
fn peak_bins(frequency_hz: f64) -> core::ops::RangeInclusive<usize> {
    bins_of(frequency_hz - 0.5, frequency_hz + 0.5)
}

/// Returns the bins with which a peak is compared, without the peak itself and its first harmonic.
fn reference_bins(frequency_hz: f64) -> core::ops::RangeInclusive<usize> {
    bins_of(frequency_hz + 1.5, 2.0 * frequency_hz - 0.5)
}

/// Returns `a / b`, and 0 for 0 / 0. Bounded, unlike in the release, so that a sample without noise
/// does not dominate the average forever.
fn ratio(a: f64, b: f64) -> f64 {
    if a <= 0.0 { 0.0 } else { (a / b).min(1e3) }
}

#[cfg(test)]
mod tests {
    use super::super::spectrum::{SAMPLE_S, SAMPLES};
    use super::*;
    use core::f64::consts::PI;

    const LINK_BPS: f64 = 96e6;

    /// Cross traffic of half the link that takes `share` of pulses of 12 Mbit/s over, beside a swing of
    /// 2 Mbit/s of its own at 8 Hz.
    fn detector(share: f64) -> ElasticityDetector {
        let mut detector = ElasticityDetector::new(5.0, 6.0);
        for i in 0..SAMPLES {
            let at = i as f64 * SAMPLE_S;
            let wave = |hz: f64| libm::sin(2.0 * PI * hz * at);
            let pulse = 12e6 * wave(5.078_125);
            detector.push(48e6 - share * pulse + 2e6 * wave(8.007_812_5), 48e6 + pulse);
        }
        detector
    }

    /// Both waves lie in the middle of bins 26 and 41, so that the peaks are their amplitudes:
    /// 6/2 = 3 and, of an answer of a tenth, (1.2/2) · 0.1/0.25 = 0.24.
    #[test]
    fn elasticity_is_the_ratio_of_peaks() {
        assert!((detector(0.5).now(5.0) - 3.0).abs() < 1e-6);
        assert!((detector(0.1).now(5.0) - 0.24).abs() < 1e-6);
        // Of a faint answer no more than 3 is believed: without the swing, 3 · 0.1/0.25.
        let mut clean = ElasticityDetector::new(5.0, 6.0);
        for i in 0..SAMPLES {
            let wave = 12e6 * libm::sin(2.0 * PI * 5.078_125 * i as f64 * SAMPLE_S);
            clean.push(48e6 - 0.1 * wave, 48e6 + wave);
        }
        assert!((clean.now(5.0) - 1.2).abs() < 1e-6);
    }

    /// The average moves by 1 − 0.99² of what is left: after 35 samples half of the way.
    #[test]
    fn it_is_averaged_over_half_a_second() {
        let mut detector = detector(0.5);
        for _ in 0..35 {
            detector.judge(5.0, LINK_BPS);
        }
        let left = 0.99_f64.powi(70);
        assert!((detector.average - (3.0 - 2.0 * left)).abs() < 1e-6);
    }

    #[test]
    fn little_traffic_is_not_elastic_and_much_is() {
        let of = |cross_bps: f64| {
            let mut detector = ElasticityDetector::new(5.0, 6.0);
            for i in 0..SAMPLES {
                let wave = libm::sin(2.0 * PI * 5.078_125 * i as f64 * SAMPLE_S);
                detector.push(cross_bps, 48e6 + 12e6 * wave);
            }
            (0..500).fold(0.0, |_, _| detector.judge(5.0, LINK_BPS))
        };
        assert!(of(9e6) < 1e-9);
        assert!(of(48e6) < 0.1, "as much as half the link, and no answer");
        assert!(of(90e6) > 2.25);
    }

    /// Where no pulses are seen at the receiver nothing can be said: between 0, as η has it, and 3.
    #[test]
    fn without_pulses_the_traffic_may_be_anything() {
        let mut detector = ElasticityDetector::new(5.0, 6.0);
        for i in 0..SAMPLES {
            let wave = libm::sin(2.0 * PI * 8.007_812_5 * i as f64 * SAMPLE_S);
            detector.push(48e6 + 1e6 * wave, 20e6 + 5e6 * wave);
        }
        let average = (0..500).fold(0.0, |_, _| detector.judge(5.0, LINK_BPS));
        assert!((1.4..1.6).contains(&average), "{average}");
    }
}
