//! TCP Westwood as first published.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use crate::cwnd::CongestionWindow;
use crate::estimators::AckedBytes;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    CongestionEvent, CongestionSignal, EstablishedEvent, RawAckSample, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "tcpw",
        summary: "original Westwood: Reno's increase; on loss sets cwnd to filtered ACK rate × \
            minimum RTT",
        class: "loss",
        based_on: &["reno"],
        source: "Mascolo, Casetti, Gerla, Sanadidi & Wang, TCP Westwood: Bandwidth Estimation for \
                 Enhanced Transport over Wireless Links, ACM MobiCom 2001",
        parameters: &[
            Parameter::span("tau", Span::from_ms(500), Span::from_ms(1)..=Span::from_secs(60))
                .summary("time constant of the filter"),
            Parameter::integer("m", 2, 2..=100).summary("tau / m without an ACK is a sample of 0"),
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| Box::new(WindowBasedController::new(Tcpw::new(&parts.values), parts.slow_start)),
};

/// Length of a silence, in taus, after which the estimate is negligible (e⁻⁴⁰). Each sample of zero
/// leaves three fifths or more.
const SILENT_TAUS: u64 = 40;

/// Congestion avoidance of Westwood: grows like Reno. A loss reduces the window to the estimated
/// bandwidth times the minimum RTT.
///
/// Each ACK is a bandwidth sample b = d / Δ. The estimate is a first-order low-pass filter,
/// discretised by Tustin's rule for irregular samples (§2.2).
#[derive(Clone, Debug)]
pub struct Tcpw {
    tau_s: f64,
    /// τ/m: a time without an ACK of this length is a sample of zero.
    silence: Span,
    /// `SILENT_TAUS` in silences.
    forgets_after: u64,
    acked: AckedBytes,
    /// Bytes of ACKs that arrived at the same time as the last one. They are part of one sample.
    pending_bytes: u64,
    acked_at: Option<Time>,
    /// Time of the last sample, which may be a sample of zero.
    sampled_at: Time,
    /// The last sample and the estimate, in bytes per second.
    sample: f64,
    bandwidth: f64,
    min_rtt: Option<Span>,
    /// ssthresh after the reduction in progress.
    threshold: u32,
}

impl Tcpw {
    /// Creates Westwood with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let m = u64::from(values.u32("m"));
        Self {
            tau_s: values.span("tau").as_secs_f64(),
            silence: values.span("tau").mul_div(1, m),
            forgets_after: SILENT_TAUS * m,
            acked: AckedBytes::default(),
            pending_bytes: 0,
            acked_at: None,
            sampled_at: Time::ZERO,
            sample: 0.0,
            bandwidth: 0.0,
            min_rtt: None,
            threshold: 2,
        }
    }

    /// §2.2, equation 2: adds a sample `gap` after the last one.
    fn filter(&mut self, sample: f64, gap: Span) {
        let ratio = 2.0 * self.tau_s / gap.as_secs_f64();
        let kept = (ratio - 1.0) * self.bandwidth;
        self.bandwidth = (kept + sample + self.sample) / (ratio + 1.0);
        self.sample = sample;
        self.sampled_at += gap;
    }

    /// Adds samples of zero for the time up to `now` without an ACK (§2.2: a filter that is sampled
    /// less than twice per τ would see aliased frequencies).
    fn fall_silent(&mut self, now: Time) {
        let silences = now.since(self.sampled_at).as_ns() / self.silence.as_ns().max(1);
        if silences > self.forgets_after {
            (self.sample, self.bandwidth) = (0.0, 0.0);
            self.sampled_at = now - self.silence;
        }
        // Excludes the sample that the ACK itself ends.
        while now.since(self.sampled_at) > self.silence {
            self.filter(0.0, self.silence);
        }
    }

    /// BWE · RTTmin, in packets.
    fn bdp(&self) -> u32 {
        let min_rtt_s = self.min_rtt.unwrap_or(Span::ZERO).as_secs_f64();
        ((self.bandwidth * min_rtt_s / self.acked.mss_bytes() as f64) as u32).max(2)
    }
}

impl CongestionAvoidance for Tcpw {
    fn on_established(&mut self, _window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.acked.resize(established.mss_bytes);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.acked.resize(mss_bytes);
    }

    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if let Some(rtt) = measurement.rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        let now = measurement.now;
        let Some(acked_at) = self.acked_at else {
            // The first ACK only sets the start: the sending time of its data is unknown.
            self.acked.count(measurement.first_unacked, true);
            (self.acked_at, self.sampled_at) = (Some(now), now);
            return;
        };
        self.pending_bytes += self.acked.count(measurement.first_unacked, false);
        if now == acked_at {
            return;
        }
        self.fall_silent(now);
        let bytes = core::mem::take(&mut self.pending_bytes) as f64;
        let sample = bytes / now.since(acked_at).as_secs_f64();
        self.filter(sample, now.since(self.sampled_at));
        self.acked_at = Some(now);
    }

    /// §2.3: "ssthresh = (BWE*RTTmin)/seg_size; if (cwin > ssthresh) cwin = ssthresh", and the same
    /// threshold after a timeout.
    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        self.threshold = self.bdp();
        if congestion.signal == CongestionSignal::Timeout {
            return self.threshold;
        }
        // The transport sets cwnd to this value, which must not increase it.
        self.threshold.min(window.cwnd)
    }

    fn on_cwr_complete(&mut self, window: &mut CongestionWindow, _now: Time) {
        window.ssthresh = self.threshold;
        window.cwnd = window.cwnd.min(self.threshold);
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("bandwidth_bps", 8.0 * self.bandwidth);
        observer.record_value("min_rtt_s", self.min_rtt.unwrap_or(Span::ZERO).as_secs_f64());
        observer.record_value("bdp_packets", f64::from(self.bdp()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{loss, measured};

    const MSS: f64 = 1448.0;

    struct Acks {
        law: Tcpw,
        window: CongestionWindow,
        acked: u64,
    }

    impl Acks {
        fn new() -> Self {
            let mut law = Tcpw::new(&ROW.entry.defaults());
            law.on_mss_change(1448);
            Self { law, window: CongestionWindow::default(), acked: 0 }
        }

        /// An ACK of `packets` at a time.
        fn hear(&mut self, at: Span, packets: u64) {
            self.acked += packets;
            let rtt = Some(Span::from_ms(50));
            let heard =
                RawAckSample { first_unacked: self.acked, ..measured(Time::ZERO + at, 1, rtt) };
            self.law.on_ack_before_loss_detection(&mut self.window, &heard);
        }

        /// A packet in 10 ms, up to `end_ms`.
        fn steady(&mut self, end_ms: u64) {
            (0..=end_ms / 10).for_each(|i| self.hear(Span::from_ms(10 * i), 1));
        }
    }

    /// b̂ = ((2τ/Δ − 1) b̂' + b + b') / (2τ/Δ + 1), at Δ = 100 ms: (9 b̂' + b + b') / 11.
    #[test]
    fn the_filter_is_the_papers() {
        let mut law = Tcpw::new(&ROW.entry.defaults());
        law.filter(1_100.0, Span::from_ms(100));
        assert!((law.bandwidth - 100.0).abs() < 1e-9, "{}", law.bandwidth);
        law.filter(2_200.0, Span::from_ms(100));
        assert!((law.bandwidth - (900.0 + 2_200.0 + 1_100.0) / 11.0).abs() < 1e-9);
    }

    /// A first-order low-pass filter of time constant τ: 1 − 1/e of a step after τ.
    #[test]
    fn a_steady_rate_is_approached_with_the_time_constant() {
        for (end_ms, part) in [(500, 0.632), (1_000, 0.865), (5_000, 1.0)] {
            let mut acks = Acks::new();
            acks.steady(end_ms);
            let found = acks.law.bandwidth / (100.0 * MSS);
            assert!((found - part).abs() < 0.01, "{found} after {end_ms} ms");
        }
    }

    /// m = 2: each 250 ms without an ACK leave (2m − 1)/(2m + 1) of the estimate, once the last sample
    /// counts no more.
    #[test]
    fn silence_counts_as_samples_of_nothing() {
        let mut acks = Acks::new();
        acks.steady(5_000);
        let before = acks.law.bandwidth;
        acks.law.fall_silent(Time::ZERO + Span::from_ms(5_000 + 1_001));
        // The first of four still averages with the last real sample.
        let expected = (3.0 * before + before) / 5.0 * 0.6 * 0.6 * 0.6;
        assert!((acks.law.bandwidth / expected - 1.0).abs() < 0.01);
        acks.law.fall_silent(Time::ZERO + Span::from_secs(3_600));
        assert_eq!(acks.law.bandwidth, 0.0);
    }

    /// What Westwood+ mends: ten ACKs within 0.9 ms, then 99.1 ms without one, are the same data.
    #[test]
    fn acks_in_bursts_are_overestimated() {
        let mut acks = Acks::new();
        for i in 0..600 {
            acks.hear(Span::from_ms(100 * (i / 10)) + Span::from_us(100 * (i % 10)), 1);
        }
        let found = acks.law.bandwidth / (100.0 * MSS);
        assert!(found > 1.5, "{found}");
    }

    /// ACKs at one time are one sample: none divides by zero.
    #[test]
    fn acks_of_one_instant_are_one_sample() {
        let (mut single, mut split) = (Acks::new(), Acks::new());
        for i in 0..500 {
            single.hear(Span::from_ms(10 * i), 2);
            split.hear(Span::from_ms(10 * i), 1);
            split.hear(Span::from_ms(10 * i), 1);
        }
        // What comes at an instant later is told with the next one.
        let (one, two) = (single.law.bandwidth, split.law.bandwidth);
        assert!((one / two - 1.0).abs() < 0.01, "{one} and {two}");
    }

    #[test]
    fn a_loss_leaves_the_bdp_and_never_raises_the_window() {
        let mut acks = Acks::new();
        acks.steady(5_000);
        // 100 packets per second at 50 ms.
        let bdp = acks.law.bdp();
        assert!((4..=5).contains(&bdp), "{bdp}");
        for (cwnd, left) in [(100, bdp), (3, 3)] {
            let mut window = CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() };
            let ssthresh = acks.law.ssthresh_after(&window, &loss());
            assert_eq!(ssthresh, left);
            window.cwnd = ssthresh;
            acks.law.on_cwr_complete(&mut window, Time::ZERO);
            assert_eq!((window.cwnd, window.ssthresh), (left, bdp));
        }
        let timeout = CongestionEvent { signal: CongestionSignal::Timeout, ..loss() };
        let window = CongestionWindow { cwnd: 3, ..CongestionWindow::default() };
        assert_eq!(acks.law.ssthresh_after(&window, &timeout), bdp);
    }
}
