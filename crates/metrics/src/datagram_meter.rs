//! Counters of one-way datagrams.

use jostle_units::Span;

use crate::e_model::{Codec, rating};
use crate::histogram::Histogram;
use jostle_run_spec::{PlayoutSpec, VoiceSpec};

/// Counters of a receiver of numbered datagrams. They never decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DatagramCounters {
    /// Largest number received, counted from 1.
    pub highest: u64,
    /// Datagrams received.
    pub received: u64,
    /// Sum of the jitter after each datagram except the first, in 1/16 ns.
    pub jitter_sum_16ns: u64,
    /// Number of terms in that sum.
    pub jitters: u64,
}

impl DatagramCounters {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            highest: self.highest - earlier.highest,
            received: self.received - earlier.received,
            jitter_sum_16ns: self.jitter_sum_16ns - earlier.jitter_sum_16ns,
            jitters: self.jitters - earlier.jitters,
        }
    }

    /// Adds the counters of a disjoint interval.
    pub(crate) fn add(&mut self, other: &Self) {
        self.highest += other.highest;
        self.received += other.received;
        self.jitter_sum_16ns += other.jitter_sum_16ns;
        self.jitters += other.jitters;
    }

    /// Fraction lost as computed by the receiver (RFC 3550 §A.3): numbers up to the highest that
    /// were not received. `None` if no datagram was received.
    pub(crate) fn lost_share(&self) -> Option<f64> {
        let lost = self.highest.saturating_sub(self.received);
        (self.highest > 0).then(|| lost as f64 / self.highest as f64)
    }

    /// Returns the mean interarrival jitter.
    pub(crate) fn jitter_mean_s(&self) -> Option<f64> {
        let mean_16ns = self.jitter_sum_16ns as f64 / self.jitters as f64;
        (self.jitters > 0).then(|| mean_16ns / 16e9)
    }
}

/// Receiver statistics of RTP (RFC 3550).
#[derive(Clone, Debug, Default)]
pub(crate) struct DatagramMeter {
    total: DatagramCounters,
    segment_start: DatagramCounters,
    last_delay: Option<Span>,
    jitter_16ns: u64,
}

impl DatagramMeter {
    /// Records the datagram `number`, counted from 0, that arrived `delay` after it was sent.
    pub(crate) fn arrived(&mut self, number: u32, delay: Span) {
        self.total.highest = self.total.highest.max(u64::from(number) + 1);
        self.total.received += 1;
        if let Some(last) = self.last_delay.replace(delay) {
            let apart_ns = delay.as_ns().abs_diff(last.as_ns());
            // RFC 3550 §6.4.1: J += (|D| − J) ÷ 16, in integers as in §A.8.
            self.jitter_16ns = self.jitter_16ns + apart_ns - ((self.jitter_16ns + 8) >> 4);
            self.total.jitter_sum_16ns += self.jitter_16ns;
            self.total.jitters += 1;
        }
    }

    /// Returns the counters since the last call.
    pub(crate) fn close_segment(&mut self) -> DatagramCounters {
        let counted = self.total.since(&self.segment_start);
        self.segment_start = self.total;
        counted
    }
}

/// Quality of speech at the listener.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct VoiceQuality {
    /// Mouth-to-ear delay.
    pub delay_s: f64,
    /// Transmission rating R of the E-model.
    pub rating: f64,
}

/// Returns the speech quality in an interval. `excess_ns` is the one-way delay beyond
/// `propagation_s`. `None` if no datagram arrived.
pub(crate) fn voice_quality(
    voice: &VoiceSpec,
    counters: &DatagramCounters,
    excess_ns: &Histogram,
    propagation_s: f64,
) -> Option<VoiceQuality> {
    let came = counters.received.max(1) as f64;
    let lost = counters.lost_share()?;
    let at = |wait_ns: u64, in_time: u64| {
        let late = (1.0 - in_time as f64 / came).max(0.0);
        let coding_s = voice.coding_delay_ns as f64 / 1e9;
        let delay_s = coding_s + propagation_s + wait_ns as f64 / 1e9;
        let codec =
            Codec { impairment: voice.equipment_impairment, robustness: voice.loss_robustness };
        VoiceQuality { delay_s, rating: rating(codec, delay_s, lost + (1.0 - lost) * late) }
    };
    let mut played = excess_ns.cumulative().map(|(wait_ns, in_time)| at(wait_ns, in_time));
    match voice.playout {
        PlayoutSpec::Best => played.max_by(|a, b| a.rating.total_cmp(&b.rating)),
        PlayoutSpec::Quantile { share } => {
            let position = excess_ns
                .cumulative()
                .position(|(_, in_time)| in_time as f64 >= share * came)
                .unwrap_or(usize::MAX);
            played.nth(position).or_else(|| excess_ns.cumulative().last().map(|(w, n)| at(w, n)))
        }
        PlayoutSpec::Buffer { length_ns } => {
            let played_ns = excess_ns.min()?.saturating_add(length_ns);
            let in_time = excess_ns.cumulative().take_while(|(wait_ns, _)| *wait_ns <= played_ns);
            Some(at(played_ns, in_time.last().map_or(0, |(_, in_time)| in_time)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(delays_ms: &[u64]) -> (DatagramCounters, Histogram) {
        let (mut meter, mut histogram) = (DatagramMeter::default(), Histogram::default());
        for (number, delay_ms) in (0..).zip(delays_ms) {
            meter.arrived(number, Span::from_ms(*delay_ms));
            histogram.record(delay_ms * 1_000_000, 1);
        }
        (meter.close_segment(), histogram)
    }

    #[test]
    fn jitter_is_that_of_rfc_3550() {
        let mut meter = DatagramMeter::default();
        let mut expected_s = 0.0;
        let (mut sum_s, mut last_ms) = (0.0, 30u64);
        meter.arrived(0, Span::from_ms(last_ms));
        for (number, delay_ms) in (1..).zip([40, 25, 25, 60, 31, 30]) {
            meter.arrived(number, Span::from_ms(delay_ms));
            let apart_s = delay_ms.abs_diff(last_ms) as f64 / 1e3;
            expected_s += (apart_s - expected_s) / 16.0;
            sum_s += expected_s;
            last_ms = delay_ms;
        }
        let found_s = meter.close_segment().jitter_mean_s().unwrap();
        assert!((found_s - sum_s / 6.0).abs() < 1e-8, "{found_s} beside {}", sum_s / 6.0);
    }

    #[test]
    fn what_did_not_come_is_lost_once_a_later_one_has() {
        let mut meter = DatagramMeter::default();
        for number in [0, 1, 4, 3] {
            meter.arrived(number, Span::from_ms(10));
        }
        assert_eq!(meter.close_segment().lost_share(), Some(0.2));
        assert_eq!(meter.close_segment().lost_share(), None);
        // Late for the segment before, and no loss of this one.
        meter.arrived(2, Span::from_ms(90));
        assert_eq!(meter.close_segment().lost_share(), None);
        meter.arrived(9, Span::from_ms(10));
        assert_eq!(meter.close_segment().lost_share(), Some(0.8));
    }

    fn voice(playout: PlayoutSpec) -> VoiceSpec {
        VoiceSpec {
            equipment_impairment: 0.0,
            loss_robustness: 25.1,
            coding_delay_ns: 20_000_000,
            playout,
        }
    }

    fn close(quality: Option<VoiceQuality>, delay_s: f64, loss: f64) {
        let quality = quality.unwrap();
        let r = rating(Codec { impairment: 0.0, robustness: 25.1 }, quality.delay_s, loss);
        // A bucket of the histogram is a 64th wide.
        assert!((quality.delay_s / delay_s - 1.0).abs() < 0.02, "{quality:?} beside {delay_s} s");
        assert!((quality.rating - r).abs() < 1e-9, "{quality:?} beside {r}");
    }

    #[test]
    fn a_playout_buffer_trades_delay_for_losses() {
        let delays_ms: Vec<u64> =
            (0..100).map(|number| if number < 90 { 30 } else { 400 }).collect();
        let (counters, excess_ns) = of(&delays_ms);
        let quality = |playout| voice_quality(&voice(playout), &counters, &excess_ns, 0.05);
        // Everything is played, …
        close(quality(PlayoutSpec::Quantile { share: 1.0 }), 0.47, 0.0);
        // … or a tenth is late, …
        close(quality(PlayoutSpec::Quantile { share: 0.9 }), 0.1, 0.1);
        close(quality(PlayoutSpec::Buffer { length_ns: 10_000_000 }), 0.11, 0.1);
        // … of which the better is taken.
        let best = quality(PlayoutSpec::Best).unwrap();
        let both = [1.0, 0.9].map(|share| quality(PlayoutSpec::Quantile { share }).unwrap().rating);
        assert_eq!(best.rating, both[0].max(both[1]));
    }
}
