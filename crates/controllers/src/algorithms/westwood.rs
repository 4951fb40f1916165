//! Westwood+ as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::{ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use crate::cwnd::CongestionWindow;
use crate::estimators::AckedBytes;
use crate::jiffies::{HZ, Jiffies};
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, CongestionSignal, EstablishedEvent, RawAckSample, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "westwood",
        summary: "Westwood+: Reno's increase; on loss sets ssthresh to estimated bandwidth × \
            minimum RTT",
        class: "loss",
        based_on: &["tcpw"],
        source: "Grieco & Mascolo, ACM SIGCOMM CCR 34(2), 2004; Linux 6.1 tcp_westwood.c",
        parameters: &[HZ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(WindowBasedController::new(Westwood::new(&parts.values), parts.slow_start))
    },
};

/// The RTT before the first sample, larger than any sample.
const FIRST_RTT_S: u64 = 20;

/// Inverse of the minimum measurement interval, a 20th of a second (`TCP_WESTWOOD_RTT_MIN`).
const INTERVALS_PER_S: u64 = 20;

/// Smallest RTT that Linux's microsecond samples do not treat as missing.
const LEAST_RTT: Span = Span::from_us(1);

/// First-order low-pass filter: an eighth of the new value.
const fn low_pass(old: u64, new: u64) -> u64 {
    (7 * old + new) / 8
}

/// Congestion avoidance of Westwood+: grows like Reno. A congestion event of any cause reduces the
/// window to the estimated bandwidth times the minimum RTT.
///
/// The bandwidth is measured once per round trip, in bytes per tick of a coarse clock, and the
/// minimum RTT is rounded up to a tick: on short paths the window after a loss depends on the
/// length of the tick.
#[derive(Clone, Debug)]
pub struct Westwood {
    clock: Jiffies,
    /// Minimum length of a measurement interval, in ticks ([`INTERVALS_PER_S`]).
    least_interval: u64,
    /// Current `snd_una`.
    first_unacked: u64,
    acked: AckedBytes,
    /// Start of the measurement interval (`rtt_win_sx`).
    interval_start: u64,
    /// Bytes acknowledged in the interval (`bk`).
    bytes: u64,
    /// Latest and minimum RTT, in ticks.
    rtt: u64,
    min_rtt: u64,
    /// Whether the transport calls `on_ack_event`.
    wants_ack_events: bool,
    /// Whether the next ACK resets the minimum RTT.
    min_rtt_due: bool,
    /// Bandwidth after the first filter and after the second, in bytes per tick (`bw_ns_est`,
    /// `bw_est`).
    coarse: u64,
    bandwidth: u64,
}

impl Westwood {
    /// Creates Westwood+ with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let clock = Jiffies::new(values);
        let first_rtt = FIRST_RTT_S * clock.hz();
        Self {
            clock,
            least_interval: clock.hz() / INTERVALS_PER_S,
            first_unacked: 0,
            acked: AckedBytes::default(),
            interval_start: 0,
            bytes: 0,
            rtt: first_rtt,
            min_rtt: first_rtt,
            wants_ack_events: false,
            min_rtt_due: true,
            coarse: 0,
            bandwidth: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn with_bandwidth_bps(bandwidth_bps: u64) -> Self {
        let mut westwood = Self::new(&ROW.entry.defaults());
        westwood.bandwidth = bandwidth_bps / 8 / westwood.clock.hz();
        westwood
    }

    /// `tcp_westwood.c::westwood_filter`.
    fn measure(&mut self, ticks: u64) {
        let sample = self.bytes / ticks;
        if self.coarse == 0 && self.bandwidth == 0 {
            (self.coarse, self.bandwidth) = (sample, sample);
        } else {
            self.coarse = low_pass(self.coarse, sample);
            self.bandwidth = low_pass(self.bandwidth, self.coarse);
        }
    }

    /// `tcp_westwood.c::tcp_westwood_ack`: counts an ACK, which may end a measurement interval.
    #[inline]
    fn count_ack(&mut self, now: Time, slow_path: bool) {
        let now = self.clock.at(now);
        let ticks = now - self.interval_start;
        if ticks > self.rtt.max(self.least_interval) {
            self.measure(ticks);
            self.bytes = 0;
            self.interval_start = now;
        }
        self.bytes += self.acked.count(self.first_unacked, !slow_path);
        self.min_rtt = if self.min_rtt_due { self.rtt } else { self.min_rtt.min(self.rtt) };
        self.min_rtt_due = false;
    }

    /// The estimated bandwidth.
    pub(super) fn bandwidth_bps(&self) -> f64 {
        8.0 * self.bandwidth as f64 * self.clock.hz() as f64
    }

    /// The estimated BDP in packets (`tcp_westwood.c::tcp_westwood_bw_rttmin`).
    fn bdp(&self) -> u32 {
        let packets = self.bandwidth.saturating_mul(self.min_rtt) / self.acked.mss_bytes();
        u32::try_from(packets).unwrap_or(u32::MAX).max(2)
    }
}

/// Forwards TCP's events to the field `westwood`, which measures the bandwidth.
macro_rules! forward_to_westwood {
    () => {
        fn on_mss_change(&mut self, mss_bytes: u32) {
            self.westwood.on_mss_change(mss_bytes);
        }

        fn wants_ack_events(&self) -> bool {
            self.westwood.wants_ack_events()
        }

        fn on_ack_event(&mut self, window: &mut CongestionWindow, now: Time, slow_path: bool) {
            self.westwood.on_ack_event(window, now, slow_path);
        }
    };
}
pub(super) use forward_to_westwood;

impl CongestionAvoidance for Westwood {
    fn on_established(&mut self, _window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.on_mss_change(established.mss_bytes);
        self.interval_start = self.clock.at(established.now);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.acked.resize(mss_bytes);
    }

    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.first_unacked = measurement.first_unacked;
        if let Some(rtt) = measurement.rtt.filter(|&rtt| rtt >= LEAST_RTT) {
            self.rtt = self.clock.rounded_up(rtt);
        }
    }

    fn wants_ack_events(&self) -> bool {
        true
    }

    fn on_ack_event(&mut self, _window: &mut CongestionWindow, now: Time, slow_path: bool) {
        self.wants_ack_events = true;
        self.count_ack(now, slow_path);
    }

    /// Only TCP calls `on_ack_event`. On other transports all ACKs are counted as slow-path ACKs.
    #[inline]
    fn on_ack(&mut self, _window: &mut CongestionWindow, ack: &AckSample) {
        if !self.wants_ack_events {
            self.count_ack(ack.now, true);
        }
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        if congestion.signal == CongestionSignal::Timeout {
            // `CA_EVENT_LOSS`: the path may have changed.
            self.min_rtt_due = true;
            return self.bdp();
        }
        // Half of cwnd like Reno while PRR reduces the window; the estimate replaces it afterwards.
        (window.cwnd / 2).max(2)
    }

    fn on_cwr_complete(&mut self, window: &mut CongestionWindow, _now: Time) {
        window.ssthresh = self.bdp();
        window.cwnd = window.ssthresh.min(window.clamp);
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("bandwidth_bps", self.bandwidth_bps());
        observer.record_value("min_rtt_s", self.clock.seconds(self.min_rtt));
        observer.record_value("bdp_packets", f64::from(self.bdp()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{ack, loss, measured};
    use jostle_congestion::RecoveryState;

    const MSS: u64 = 1448;

    /// A connection that ACKs reach.
    struct Connection {
        law: Westwood,
        window: CongestionWindow,
    }

    impl Connection {
        fn new(hz: i64) -> Self {
            let given = [("hz".to_owned(), jostle_registry::ParameterValue::Integer(hz))].into();
            let mut law = Westwood::new(&ROW.entry.resolve(&given).unwrap());
            let mut window = CongestionWindow::default();
            let (now, rtt) = (Time::ZERO, None);
            let established = EstablishedEvent {
                now,
                mss_bytes: 1448,
                initial_window: 10,
                rtt,
                prospect: Default::default(),
            };
            law.on_established(&mut window, &established);
            Self { law, window }
        }

        /// An ACK up to `first_unacked`, at a time and with an RTT in ms.
        fn hear(&mut self, at_ms: u64, first_unacked: u64, rtt_ms: u64, slow_path: bool) {
            let now = Time::ZERO + Span::from_ms(at_ms);
            let rtt = Some(Span::from_ms(rtt_ms));
            let heard = RawAckSample { first_unacked, ..measured(now, 1, rtt) };
            self.law.on_ack_before_loss_detection(&mut self.window, &heard);
            self.law.on_ack_event(&mut self.window, now, slow_path);
        }
    }

    /// A transport that has no headers to tell of.
    #[test]
    fn without_headers_every_ack_counts() {
        let (mut tcp, mut other) = (Connection::new(1000), Connection::new(1000));
        for i in 1..500 {
            let now = Time::ZERO + Span::from_ms(10 * i);
            tcp.hear(10 * i, 10 * i, 50, true);
            tcp.law.on_ack(&mut tcp.window, &AckSample { now, ..ack(10 * i) });
            let heard =
                RawAckSample { first_unacked: 10 * i, ..measured(now, 1, Some(Span::from_ms(50))) };
            other.law.on_ack_before_loss_detection(&mut other.window, &heard);
            other.law.on_ack(&mut other.window, &AckSample { now, ..ack(10 * i) });
        }
        assert_eq!(other.law.bandwidth, tcp.law.bandwidth);
        assert!(other.law.bandwidth > 0);
    }

    /// 10 packets per 10 ms at 50 ms: samples of an RTT and a tick each.
    #[test]
    fn a_steady_rate_is_found_and_fills_the_path() {
        for (hz, rtt_ms, bdp) in [(1000, 50, 50), (100, 50, 50), (100, 51, 60), (1000, 51, 51)] {
            let mut connection = Connection::new(hz);
            for i in 0..1_000 {
                connection.hear(10 * i, 10 * i, rtt_ms, false);
            }
            // Whole bytes per tick, an interval after the other.
            let found = connection.law.bdp();
            assert!((bdp - 1..=bdp).contains(&found), "{found} at {hz} Hz and {rtt_ms} ms");
        }
    }

    #[test]
    fn the_filters_follow_each_other() {
        let mut law = Connection::new(100).law;
        law.bytes = 80_000;
        law.measure(10);
        assert_eq!((law.coarse, law.bandwidth), (8_000, 8_000));
        law.bytes = 160_000;
        law.measure(10);
        assert_eq!((law.coarse, law.bandwidth), (9_000, 8_125));
    }

    #[test]
    fn an_interval_is_longer_than_the_rtt_and_than_50_ms() {
        for (rtt_ms, still_ms, over_ms) in [(1, 59, 60), (200, 209, 210)] {
            let mut connection = Connection::new(100);
            connection.hear(0, 10, rtt_ms, false);
            connection.hear(5, 20, rtt_ms, false);
            connection.hear(still_ms, 30, rtt_ms, false);
            assert_eq!(connection.law.bytes, 20 * MSS);
            connection.hear(over_ms, 40, rtt_ms, false);
            assert_eq!(connection.law.bytes, 10 * MSS, "what closes an interval opens the next");
            assert_eq!(connection.law.bandwidth, 20 * MSS / (over_ms / 10));
        }
    }

    #[test]
    fn recovery_ends_at_the_estimate_and_a_timeout_begins_with_it() {
        let mut connection = Connection::new(100);
        let Connection { law, window } = &mut connection;
        (law.bandwidth, law.min_rtt, law.min_rtt_due) = (8 * MSS, 5, false);
        window.cwnd = 100;
        assert_eq!(law.ssthresh_after(window, &loss()), 50);
        assert!(!law.min_rtt_due);
        law.on_recovery_state(window, Time::ZERO, RecoveryState::Open);
        law.on_cwr_complete(window, Time::ZERO);
        assert_eq!((window.cwnd, window.ssthresh), (40, 40));
        let timeout = CongestionEvent { signal: CongestionSignal::Timeout, ..loss() };
        assert_eq!(law.ssthresh_after(window, &timeout), 40);
        connection.hear(0, 1, 120, false);
        assert_eq!(connection.law.min_rtt, 12, "the least RTT is learnt anew");
    }
}
