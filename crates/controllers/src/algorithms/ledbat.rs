//! LEDBAT (RFC 6817), and LEDBAT++ with the same delay filter.

mod delay_filter;
mod ledbat_plus_plus;

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::Span;

use crate::cwnd::CongestionWindow;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, StateObserver,
};

use delay_filter::Delays;
pub use ledbat_plus_plus::LedbatPlusPlus;
pub(crate) use ledbat_plus_plus::ROW as PLUS_PLUS_ROW;

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "ledbat",
        summary: "scavenger: keeps the one-way queueing delay at a target",
        class: "delay",
        based_on: &["reno"],
        source: "RFC 6817, Low Extra Delay Background Transport",
        parameters: &[
            Parameter::span("target", Span::from_ms(100), Span::from_ms(1)..=Span::from_secs(1))
                .summary("target one-way queueing delay; the RFC permits at most 100 ms"),
            Parameter::number("gain", 1.0, 0.01..=10.0)
                .summary("growth of cwnd per round trip on an unloaded path, in packets"),
            Parameter::integer("allowed_increase", 1, 1..=1_000)
                .summary("packets by which cwnd may exceed the data in flight when it grows"),
            INIT_CWND,
            SLOW_START_EXIT,
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(WindowBasedController::new(Ledbat::new(&parts.values), parts.slow_start))
    },
};

/// "INIT_CWND SHOULD be 2".
const INIT_CWND: Parameter =
    Parameter::integer("init_cwnd", 2, 1..=1_000).summary("largest initial window in packets");

const SLOW_START_EXIT: Parameter = Parameter::number("slow_start_exit", 0.75, 0.0..=10.0)
    .summary("share of the target at which the queueing delay ends the first slow start");

/// "MIN_CWND SHOULD be 2".
const MIN_CWND: u32 = 2;

/// Accumulates changes of the window of less than a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Fraction(f64);

impl Fraction {
    /// Adds `change` and returns the integer part of the sum. The fraction remains.
    fn take(&mut self, change: f64) -> i64 {
        let sum = self.0 + change;
        let whole = sum as i64;
        self.0 = sum - whole as f64;
        whole
    }

    fn clear(&mut self) {
        self.0 = 0.0;
    }
}

/// Reduces the window by `packets`. Slow start must not undo the reduction.
fn shrink(window: &mut CongestionWindow, packets: i64) {
    let packets = u32::try_from(packets).unwrap_or(u32::MAX);
    window.cwnd = window.cwnd.saturating_sub(packets).max(MIN_CWND.min(window.cwnd));
    window.ssthresh = window.ssthresh.min(window.cwnd).max(2);
}

/// Congestion avoidance of LEDBAT: the window changes by `gain` · (1 − delay / `target`) packets
/// per round trip, where delay is the current one-way delay minus the minimum of the last ten
/// minutes. A loss halves the window.
#[derive(Clone, Debug)]
pub struct Ledbat {
    target_s: f64,
    gain: f64,
    allowed_increase: u32,
    init_cwnd: u32,
    slow_start_exit: f64,
    delays: Delays,
    /// The first difference of timestamps, relative to which the others are counted.
    origin_ms: Option<u32>,
    fraction: Fraction,
    off_target: f64,
}

impl Ledbat {
    /// Creates LEDBAT with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            target_s: values.span("target").as_secs_f64(),
            gain: values.number("gain"),
            allowed_increase: values.u32("allowed_increase"),
            init_cwnd: values.u32("init_cwnd"),
            slow_start_exit: values.number("slow_start_exit"),
            delays: Delays::default(),
            origin_ms: None,
            fraction: Fraction::default(),
            off_target: 0.0,
        }
    }

    /// Returns the delay of an ACK: the one-way delay from its timestamps, or the RTT on a
    /// transport without timestamps. An ACK that does not advance snd_una echoes an older packet
    /// than the one that caused it, and is ignored.
    fn delay_ns(&mut self, measurement: &RawAckSample) -> Option<i64> {
        let Some(stamps) = measurement.timestamps else {
            return measurement.rtt.map(|rtt| i64::try_from(rtt.as_ns()).unwrap_or(i64::MAX - 1));
        };
        if measurement.packets == 0 {
            return None;
        }
        // Both clocks wrap and have unknown offsets: use differences modulo 2³² (RFC 7323).
        let difference_ms = stamps.value_ms.wrapping_sub(stamps.echo_ms);
        let origin_ms = *self.origin_ms.get_or_insert(difference_ms);
        Some(i64::from(difference_ms.wrapping_sub(origin_ms) as i32) * 1_000_000)
    }

    /// Returns the remaining share of the target; negative above the target.
    fn off_target(&self, queueing: Span) -> f64 {
        1.0 - queueing.as_secs_f64() / self.target_s
    }
}

impl CongestionAvoidance for Ledbat {
    fn on_established(&mut self, window: &mut CongestionWindow, _established: &EstablishedEvent) {
        window.cwnd = window.cwnd.min(self.init_cwnd);
    }

    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if let Some(delay_ns) = self.delay_ns(measurement) {
            self.delays.take(measurement.now, delay_ns);
        }
        self.off_target = self.delays.queueing().map_or(0.0, |it| self.off_target(it));
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        let mut acked = ack.acked;
        if window.in_slow_start() {
            if self.off_target >= 1.0 - self.slow_start_exit {
                acked = if ack.cwnd_limited { slow_start.grow(window, ack) } else { 0 };
                if acked == 0 {
                    return;
                }
            } else {
                window.ssthresh = window.cwnd.max(2);
            }
        }
        self.increase_cwnd(window, acked, ack);
    }

    /// "cwnd += GAIN * off_target * bytes_newly_acked * MSS / cwnd", in packets.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, ack: &AckSample) {
        let change = self.gain * self.off_target * f64::from(acked) / f64::from(window.cwnd);
        let packets = self.fraction.take(change);
        if packets < 0 {
            shrink(window, -packets);
            return;
        }
        // "max_allowed_cwnd = flightsize + ALLOWED_INCREASE * MSS": an application-limited flow
        // does not grow. A flight that is smaller than the window only because the sender collects
        // its next burst counts as a full window.
        let flight = ack.prior_in_flight.max(if ack.cwnd_limited { window.cwnd } else { 0 });
        let ceiling = flight.saturating_add(self.allowed_increase).min(window.clamp);
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        let grown = window.cwnd.saturating_add(packets).min(ceiling);
        window.cwnd = window.cwnd.max(grown);
    }

    /// "cwnd = max (cwnd/2, MIN_CWND * MSS)" at most once per RTT.
    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        self.fraction.clear();
        (window.cwnd / 2).max(MIN_CWND)
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let queueing = self.delays.queueing().unwrap_or(Span::ZERO);
        observer.record_value("queueing_delay_s", queueing.as_secs_f64());
        observer.record_value("off_target", self.off_target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_start::Standard;
    use crate::test_support::{ack, loss, measurement};
    use jostle_congestion::Timestamps;

    fn law() -> Ledbat {
        Ledbat::new(&ROW.entry.defaults())
    }

    /// An ACK whose data took `owd_ms`, by clocks that differ by `offset_ms`.
    fn hear(law: &mut Ledbat, owd_ms: u32, offset_ms: u32) {
        let stamps = Timestamps {
            value_ms: 5_000u32.wrapping_add(owd_ms).wrapping_add(offset_ms),
            echo_ms: 5_000,
            now_ms: 5_050,
        };
        let rtt = Span::from_ms(u64::from(owd_ms) + 20);
        let heard = RawAckSample { timestamps: Some(stamps), ..measurement(rtt) };
        law.on_ack_before_loss_detection(&mut CongestionWindow::default(), &heard);
    }

    /// The window after a round trip of 100 packets at a queueing delay.
    fn after_a_round(queueing_ms: u32, offset_ms: u32) -> u32 {
        let mut law = law();
        let mut window = CongestionWindow { cwnd: 100, ssthresh: 2, ..CongestionWindow::default() };
        hear(&mut law, 20, offset_ms);
        (0..4).for_each(|_| hear(&mut law, 20 + queueing_ms, offset_ms));
        // One more for what rounding leaves of the last packet.
        (0..101).for_each(|_| law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1)));
        window.cwnd
    }

    /// RFC 6817: a packet per round trip without a queue, none at the target, one less at twice
    /// the target; whatever the offset of the clocks.
    #[test]
    fn the_window_moves_by_the_share_off_target() {
        for offset_ms in [0, 1 << 31, u32::MAX - 5_010] {
            for (queueing_ms, cwnd) in [(0, 101), (100, 100), (200, 99), (500, 96)] {
                assert_eq!(after_a_round(queueing_ms, offset_ms), cwnd, "{queueing_ms} ms");
            }
        }
    }

    #[test]
    fn three_quarters_of_the_target_end_slow_start() {
        let mut law = law();
        let mut window = CongestionWindow { cwnd: 100, ..CongestionWindow::default() };
        hear(&mut law, 20, 0);
        (0..4).for_each(|_| hear(&mut law, 94, 0));
        law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1));
        assert_eq!((window.cwnd, window.in_slow_start()), (101, true));
        (0..4).for_each(|_| hear(&mut law, 96, 0));
        law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1));
        assert_eq!((window.cwnd, window.ssthresh), (101, 101));
    }

    #[test]
    fn what_delay_takes_slow_start_does_not_bring_back() {
        let mut window =
            CongestionWindow { cwnd: 100, ssthresh: 100, ..CongestionWindow::default() };
        shrink(&mut window, 30);
        assert_eq!((window.cwnd, window.in_slow_start()), (70, false));
        shrink(&mut window, i64::MAX);
        assert_eq!((window.cwnd, window.ssthresh), (2, 2));
    }

    /// Ten packets in flight let the window grow to eleven.
    #[test]
    fn the_flight_is_the_ceiling_of_growth() {
        let mut law = law();
        hear(&mut law, 20, 0);
        let idle = AckSample { cwnd_limited: false, ..ack(1) };
        for (before, after) in [(10, 11), (11, 11), (50, 50)] {
            let mut window =
                CongestionWindow { cwnd: before, ssthresh: 2, ..CongestionWindow::default() };
            (0..200).for_each(|_| law.on_cwnd_limited_ack(&mut window, &mut Standard, &idle));
            assert_eq!(window.cwnd, after);
        }
    }

    #[test]
    fn a_loss_halves_and_the_start_is_small() {
        let mut law = law();
        let window = CongestionWindow { cwnd: 100, ..CongestionWindow::default() };
        assert_eq!(law.ssthresh_after(&window, &loss()), 50);
        let tiny = CongestionWindow { cwnd: 3, ..CongestionWindow::default() };
        assert_eq!(law.ssthresh_after(&tiny, &loss()), 2);
    }

    #[test]
    fn acks_that_do_not_advance_say_nothing_of_delay() {
        let mut law = law();
        hear(&mut law, 20, 0);
        let stamps = Timestamps { value_ms: 9_000, echo_ms: 5_000, now_ms: 9_000 };
        let repeated =
            RawAckSample { timestamps: Some(stamps), packets: 0, ..RawAckSample::default() };
        (0..4).for_each(|_| {
            law.on_ack_before_loss_detection(&mut CongestionWindow::default(), &repeated)
        });
        assert_eq!(law.delays.queueing(), Some(Span::ZERO));
    }

    /// The RTT stands in for the one-way delay.
    #[test]
    fn without_timestamps_the_rtt_is_the_delay() {
        let mut law = law();
        law.on_ack_before_loss_detection(
            &mut CongestionWindow::default(),
            &measurement(Span::from_ms(40)),
        );
        (0..4).for_each(|_| {
            law.on_ack_before_loss_detection(
                &mut CongestionWindow::default(),
                &measurement(Span::from_ms(90)),
            );
        });
        assert_eq!(law.off_target, 0.5);
    }
}
