//! LEDBAT++.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Span, Time};

use super::{Delays, Fraction, INIT_CWND, MIN_CWND, SLOW_START_EXIT, shrink};
use crate::cwnd::{CongestionWindow, INFINITE_SSTHRESH};
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "ledbat++",
        summary: "scavenger: LEDBAT with periodic slowdowns and multiplicative decrease",
        class: "delay",
        based_on: &["ledbat"],
        source: "Balasubramanian, Ertugay & Havey, draft-irtf-iccrg-ledbat-plus-plus-01, 2020",
        parameters: &[
            Parameter::span("target", Span::from_ms(60), Span::from_ms(1)..=Span::from_secs(1))
                .summary("target queueing delay"),
            Parameter::number("constant", 1.0, 0.0..=10.0)
                .summary("factor of the multiplicative decrease"),
            Parameter::bool("slowdowns", true)
                .summary("empty the queue periodically to measure the base delay"),
            INIT_CWND,
            SLOW_START_EXIT,
        ],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| {
        Box::new(WindowBasedController::new(LedbatPlusPlus::new(&parts.values), parts.slow_start))
    },
};

/// Section 4.4: a slowdown begins this many round trips after the first slow start, and "CWND
/// frozen at 2 packets for 2 RTT".
const SLOWDOWN_RTTS: u64 = 2;
/// Section 4.4: "at 9 times this duration after the exit point", so that slowdowns take at most a
/// tenth of the time.
const SLOWDOWN_SPACING: u64 = 9;
/// Section 4.2: the minimum gain is a sixteenth of Reno's.
const MAX_DIVISOR: u64 = 16;

/// State of the periodic slowdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slowdown {
    /// Before the end of the first slow start.
    NotYet,
    /// The next slowdown begins at this time.
    Due(Time),
    /// The window is kept at its minimum until `until`.
    Frozen { since: Time, until: Time },
    /// The window grows back to ssthresh.
    Ramp { since: Time },
}

/// Congestion avoidance of LEDBAT++. Below the target the window grows by GAIN packets per round
/// trip. Above the target it shrinks in proportion to the excess, at most by half per round trip.
/// GAIN = 1 / min(16, ⌈2 · target / base⌉). Slow start is slower by the same GAIN. Periodic
/// slowdowns empty the queue, so that all flows measure the base delay.
#[derive(Clone, Debug)]
pub struct LedbatPlusPlus {
    target: Span,
    constant: f64,
    slowdowns: bool,
    init_cwnd: u32,
    slow_start_exit: f64,
    delays: Delays,
    fraction: Fraction,
    gain: f64,
    /// Queueing delay divided by the target.
    load: f64,
    slowdown: Slowdown,
}

impl LedbatPlusPlus {
    /// Creates LEDBAT++ with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            target: values.span("target"),
            constant: values.number("constant"),
            slowdowns: values.bool("slowdowns"),
            init_cwnd: values.u32("init_cwnd"),
            slow_start_exit: values.number("slow_start_exit"),
            delays: Delays::default(),
            fraction: Fraction::default(),
            gain: 1.0,
            load: 0.0,
            slowdown: Slowdown::NotYet,
        }
    }

    /// Starts, continues or ends a slowdown. Returns whether the window is fixed.
    fn slow_down(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> bool {
        let now = ack.now;
        let two_rtts = ack.srtt.mul_div(SLOWDOWN_RTTS, 1);
        match self.slowdown {
            Slowdown::NotYet if !window.in_slow_start() && self.slowdowns => {
                self.slowdown = Slowdown::Due(now + two_rtts);
            }
            Slowdown::Due(at) if now >= at && !window.in_slow_start() => {
                window.ssthresh = window.cwnd.max(2);
                window.cwnd = window.cwnd.min(MIN_CWND);
                self.fraction.clear();
                self.slowdown = Slowdown::Frozen { since: now, until: now + two_rtts };
            }
            Slowdown::Frozen { since, until } if now >= until => {
                self.slowdown = Slowdown::Ramp { since };
            }
            Slowdown::Ramp { since } if !window.in_slow_start() => {
                let spacing = now.since(since).mul_div(SLOWDOWN_SPACING, 1);
                self.slowdown = Slowdown::Due(now + spacing);
            }
            _ => {}
        }
        matches!(self.slowdown, Slowdown::Frozen { .. })
    }

    /// Section 4.1: slow start, slower by GAIN. Returns the packets left over for congestion
    /// avoidance.
    fn start(&mut self, window: &mut CongestionWindow, acked: u32) -> u32 {
        let packets = self.fraction.take(self.gain * f64::from(acked));
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        let left_over = window.slow_start(packets);
        if window.in_slow_start() {
            return 0;
        }
        self.fraction.clear();
        // A packet of growth corresponds to 1 / GAIN acknowledged packets.
        ((f64::from(left_over) / self.gain) as u32).min(acked)
    }
}

impl CongestionAvoidance for LedbatPlusPlus {
    fn on_established(&mut self, window: &mut CongestionWindow, _established: &EstablishedEvent) {
        window.cwnd = window.cwnd.min(self.init_cwnd);
    }

    /// LEDBAT++ uses the RTT: clocks need not be comparable, and a minimum filter removes delayed
    /// ACKs.
    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        let Some(rtt) = measurement.rtt else { return };
        self.delays.take(measurement.now, i64::try_from(rtt.as_ns()).unwrap_or(i64::MAX - 1));
        let queueing = self.delays.queueing().unwrap_or(Span::ZERO);
        self.load = queueing.as_secs_f64() / self.target.as_secs_f64();
        let base_ns = self.delays.base_ns().unwrap_or(0).max(1).unsigned_abs();
        // If 2 · target / base is an integer, the "smallest integer larger than" it (section 4.2)
        // would be the next integer. Here CEIL has its usual meaning.
        let divisor = self.target.as_ns().saturating_mul(2).div_ceil(base_ns).min(MAX_DIVISOR);
        self.gain = 1.0 / divisor.max(1) as f64;
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        _slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        let first = window.ssthresh == INFINITE_SSTHRESH;
        if first && self.load > self.slow_start_exit {
            window.ssthresh = window.cwnd.max(2);
        }
        if self.slow_down(window, ack) {
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = if ack.cwnd_limited { self.start(window, acked) } else { 0 };
            if acked == 0 {
                return;
            }
        }
        self.increase_cwnd(window, acked, ack);
    }

    /// Section 4.3: spreads the change of a round trip over its ACKs: GAIN, and above the target
    /// max(GAIN − constant · W · (delay / target − 1), −W / 2).
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, ack: &AckSample) {
        let cwnd = f64::from(window.cwnd);
        let per_rtt = if self.load <= 1.0 {
            self.gain
        } else {
            (self.gain - self.constant * cwnd * (self.load - 1.0)).max(-cwnd / 2.0)
        };
        if per_rtt > 0.0 && !ack.cwnd_limited {
            return;
        }
        let packets = self.fraction.take(per_rtt * f64::from(acked) / cwnd);
        if packets < 0 {
            shrink(window, -packets);
        } else {
            let packets = u32::try_from(packets).unwrap_or(u32::MAX);
            window.cwnd = window.cwnd.saturating_add(packets).min(window.clamp);
        }
    }

    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        self.fraction.clear();
        (window.cwnd / 2).max(MIN_CWND)
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let base_ns = self.delays.base_ns().unwrap_or(0);
        observer.record_value("base_rtt_s", base_ns as f64 * 1e-9);
        observer.record_value("queueing_delay_s", self.load * self.target.as_secs_f64());
        observer.record_value("gain", self.gain);
        let slowing = matches!(self.slowdown, Slowdown::Frozen { .. } | Slowdown::Ramp { .. });
        observer.record_value("slowdown", f64::from(u8::from(slowing)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_start::Standard;
    use crate::test_support::{ack, measurement};

    fn law() -> LedbatPlusPlus {
        LedbatPlusPlus::new(&ROW.entry.defaults())
    }

    fn hear(law: &mut LedbatPlusPlus, rtt_ms: u64) {
        for _ in 0..4 {
            law.on_ack_before_loss_detection(
                &mut CongestionWindow::default(),
                &measurement(Span::from_ms(rtt_ms)),
            );
        }
    }

    fn at(now_ms: u64) -> AckSample {
        AckSample { now: Time::ZERO + Span::from_ms(now_ms), ..ack(1) }
    }

    /// Section 4.2.
    #[test]
    fn the_gain_follows_the_base_delay() {
        for (base_ms, gain) in [(200, 1.0), (120, 1.0), (119, 0.5), (40, 1.0 / 3.0), (5, 0.0625)] {
            let mut law = law();
            hear(&mut law, base_ms);
            assert_eq!(law.gain, gain, "{base_ms} ms");
        }
    }

    /// Section 4.3: the change over a round trip at a base of 120 ms, GAIN 1, and a window of 100: a
    /// packet below the target however far, 1 − 100 / 6 at seven sixths of it, half at twice the
    /// target.
    #[test]
    fn growth_is_constant_and_decrease_multiplicative() {
        for (rtt_ms, change) in [(120, 1.0), (179, 1.0), (190, 1.0 - 100.0 / 6.0), (240, -50.0)] {
            let mut law = law();
            hear(&mut law, 120);
            hear(&mut law, rtt_ms);
            let mut window =
                CongestionWindow { cwnd: 100, ssthresh: 2, ..CongestionWindow::default() };
            // One ACK of the whole window, so that W is the same throughout.
            law.increase_cwnd(&mut window, 100, &ack(100));
            let moved = f64::from(window.cwnd) - 100.0 + law.fraction.0;
            assert!((moved - change).abs() < 1e-9, "{moved} at {rtt_ms} ms");
        }
    }

    /// Section 4.3: "never decreases below 2 packets".
    #[test]
    fn delay_leaves_two_packets() {
        let mut law = law();
        hear(&mut law, 20);
        hear(&mut law, 2_000);
        let mut window = CongestionWindow { cwnd: 100, ssthresh: 2, ..CongestionWindow::default() };
        for _ in 0..100 {
            let acked = window.cwnd;
            law.increase_cwnd(&mut window, acked, &ack(u64::from(acked)));
        }
        assert_eq!(window.cwnd, 2);
    }

    /// Section 4.1: "Exit slow start in on excessive delay SHOULD be applied only during the initial
    /// slow start"; a timeout's and a slowdown's go on up to ssthresh.
    #[test]
    fn delay_ends_the_first_slow_start_only() {
        for (ssthresh, first) in [(INFINITE_SSTHRESH, true), (50, false)] {
            let mut law = law();
            hear(&mut law, 120);
            hear(&mut law, 120 + 59);
            let mut window = CongestionWindow { cwnd: 20, ssthresh, ..CongestionWindow::default() };
            law.on_cwnd_limited_ack(&mut window, &mut Standard, &at(0));
            assert_eq!(window.ssthresh, if first { 20 } else { 50 });
            assert_eq!(window.cwnd, if first { 20 } else { 21 });
        }
        // "larger than 3/4ths of the target delay": not at 45 ms of 60.
        for (queue_ms, left) in [(45, false), (46, true)] {
            let mut law = law();
            hear(&mut law, 120);
            hear(&mut law, 120 + queue_ms);
            let mut window = CongestionWindow { cwnd: 20, ..CongestionWindow::default() };
            law.on_cwnd_limited_ack(&mut window, &mut Standard, &at(0));
            assert_eq!(window.in_slow_start(), !left, "{queue_ms} ms");
        }
    }

    /// Section 4.1: "that number multiplied by the dynamic GAIN value". Base 40 ms, GAIN ⅓: a round
    /// trip takes 30 packets to 40.
    #[test]
    fn slow_start_is_slower_by_the_gain() {
        let mut law = law();
        hear(&mut law, 40);
        let mut window = CongestionWindow { cwnd: 30, ..CongestionWindow::default() };
        // One more for what rounding leaves of the last packet.
        (0..31).for_each(|_| law.on_cwnd_limited_ack(&mut window, &mut Standard, &at(0)));
        assert_eq!(window.cwnd, 40);
    }

    /// Section 4.4: the first slow start ends by delay, two round trips of 40 ms later the window falls
    /// to 2 for two round trips, grows back, and has rest for nine times as long as that took.
    #[test]
    fn slowdowns_take_a_tenth_of_the_time() {
        let mut law = law();
        hear(&mut law, 200);
        hear(&mut law, 246);
        let mut window = CongestionWindow { cwnd: 20, ..CongestionWindow::default() };
        let mut step = |now_ms| {
            law.on_cwnd_limited_ack(&mut window, &mut Standard, &at(now_ms));
            (window.cwnd, law.slowdown)
        };
        let ms = |ms| Time::ZERO + Span::from_ms(ms);
        assert_eq!(step(1_000), (20, Slowdown::Due(ms(1_080))));
        assert_eq!(step(1_079).0, 20);
        let frozen = Slowdown::Frozen { since: ms(1_080), until: ms(1_160) };
        assert_eq!(step(1_080), (2, frozen));
        assert_eq!(step(1_159), (2, frozen));
        for i in 0..18 {
            assert_eq!(step(1_160 + i), (3 + i as u32, Slowdown::Ramp { since: ms(1_080) }));
        }
        assert_eq!(step(1_200), (20, Slowdown::Due(ms(1_200 + 9 * 120))));
    }
}
