//! LEDBAT (RFC 6817), and LEDBAT++ upon its delays.

mod delays;
mod plus_plus;

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::Span;

use crate::controller::{AckSample, Congestion, Established, Measurement, Observer};
use crate::row::{ControllerRow, Start};
use crate::slow_start::SlowStart;
use crate::window::Window;
use crate::windowed::{WindowLaw, Windowed};

use delays::Delays;
pub use plus_plus::LedbatPlusPlus;
pub(crate) use plus_plus::ROW as PLUS_PLUS_ROW;

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "ledbat",
        summary: "scavenger that holds the one-way queueing delay at a target",
        class: "delay",
        based_on: &["reno"],
        source: "RFC 6817, Low Extra Delay Background Transport",
        parameters: &[
            Parameter {
                name: "target",
                summary: "one-way queueing delay to hold; the RFC allows 100 ms at most",
                kind: Kind::Span {
                    default_ns: 100_000_000,
                    min_ns: 1_000_000,
                    max_ns: 1_000_000_000,
                },
            },
            Parameter {
                name: "gain",
                summary: "packets per round trip by which an unloaded path lets the window grow",
                kind: Kind::Number { default: 1.0, min: 0.01, max: 10.0 },
            },
            Parameter {
                name: "allowed_increase",
                summary: "packets by which the window may exceed the flight when it grows",
                kind: Kind::Integer { default: 1, min: 1, max: 1_000 },
            },
            INIT_CWND,
            SLOW_START_EXIT,
        ],
    },
    start: Start::Composed("standard"),
    build: |parts| Box::new(Windowed::new(Ledbat::new(&parts.values), parts.slow_start)),
};

/// "INIT_CWND SHOULD be 2".
const INIT_CWND: Parameter = Parameter {
    name: "init_cwnd",
    summary: "largest initial window in packets",
    kind: Kind::Integer { default: 2, min: 1, max: 1_000 },
};

const SLOW_START_EXIT: Parameter = Parameter {
    name: "slow_start_exit",
    summary: "share of the target at which the queueing delay ends the first slow start",
    kind: Kind::Number { default: 0.75, min: 0.0, max: 10.0 },
};

/// "MIN_CWND SHOULD be 2".
const MIN_CWND: u32 = 2;

/// A window that moves by less than a packet at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Fraction(f64);

impl Fraction {
    /// Whole packets of `change` and what was left before; the rest stays.
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

/// Takes the window down by `packets`. Slow start must not bring back what delay took.
fn shrink(window: &mut Window, packets: i64) {
    let packets = u32::try_from(packets).unwrap_or(u32::MAX);
    window.cwnd = window.cwnd.saturating_sub(packets).max(MIN_CWND.min(window.cwnd));
    window.ssthresh = window.ssthresh.min(window.cwnd).max(2);
}

/// The LEDBAT window law: the window moves by `gain` · (1 − delay / `target`) packets per round
/// trip, delay being the current one-way delay less the least of the last ten minutes. A loss
/// halves it.
#[derive(Clone, Debug)]
pub struct Ledbat {
    target_s: f64,
    gain: f64,
    allowed_increase: u32,
    init_cwnd: u32,
    slow_start_exit: f64,
    delays: Delays,
    /// The first difference of timestamps, from which the others are counted.
    origin_ms: Option<u32>,
    fraction: Fraction,
    off_target: f64,
}

impl Ledbat {
    /// LEDBAT with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
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

    /// The delay that an ACK tells of: one way by its timestamps, or the RTT on a transport without
    /// them. ACKs that do not advance echo an older packet than the one that made them.
    fn delay_ns(&mut self, measurement: &Measurement) -> Option<i64> {
        let Some(stamps) = measurement.timestamps else {
            return measurement.rtt.map(|rtt| i64::try_from(rtt.as_ns()).unwrap_or(i64::MAX - 1));
        };
        if measurement.packets == 0 {
            return None;
        }
        // Both clocks wrap, and neither is known: differences modulo 2³² (RFC 7323).
        let difference_ms = stamps.value_ms.wrapping_sub(stamps.echo_ms);
        let origin_ms = *self.origin_ms.get_or_insert(difference_ms);
        Some(i64::from(difference_ms.wrapping_sub(origin_ms) as i32) * 1_000_000)
    }

    /// Share of the target that is left, negative above it.
    fn off_target(&self, queueing: Span) -> f64 {
        1.0 - queueing.as_secs_f64() / self.target_s
    }
}

impl WindowLaw for Ledbat {
    fn on_established(&mut self, window: &mut Window, _established: &Established) {
        window.cwnd = window.cwnd.min(self.init_cwnd);
    }

    fn on_measurement(&mut self, _window: &mut Window, measurement: &Measurement) {
        if let Some(delay_ns) = self.delay_ns(measurement) {
            self.delays.take(measurement.now, delay_ns);
        }
        self.off_target = self.delays.queueing().map_or(0.0, |it| self.off_target(it));
    }

    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
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
        self.avoid(window, acked, ack);
    }

    /// "cwnd += GAIN * off_target * bytes_newly_acked * MSS / cwnd", in packets.
    fn avoid(&mut self, window: &mut Window, acked: u32, ack: &AckSample) {
        let change = self.gain * self.off_target * f64::from(acked) / f64::from(window.cwnd);
        let packets = self.fraction.take(change);
        if packets < 0 {
            shrink(window, -packets);
            return;
        }
        // "max_allowed_cwnd = flightsize + ALLOWED_INCREASE * MSS": what the application does not
        // use is no reason to grow. A flight that is short of a window only by what the sender
        // holds back for its next burst counts as a whole one.
        let flight = ack.prior_in_flight.max(if ack.cwnd_limited { window.cwnd } else { 0 });
        let ceiling = flight.saturating_add(self.allowed_increase).min(window.clamp);
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        let grown = window.cwnd.saturating_add(packets).min(ceiling);
        window.cwnd = window.cwnd.max(grown);
    }

    /// "cwnd = max (cwnd/2, MIN_CWND * MSS)" at most once per RTT.
    fn ssthresh(&mut self, window: &Window, _congestion: &Congestion) -> u32 {
        self.fraction.clear();
        (window.cwnd / 2).max(MIN_CWND)
    }

    fn observe(&self, observer: &mut dyn Observer) {
        let queueing = self.delays.queueing().unwrap_or(Span::ZERO);
        observer.value("queueing_delay_s", queueing.as_secs_f64());
        observer.value("off_target", self.off_target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Timestamps;
    use crate::fixtures::{ack, loss, measurement};
    use crate::slow_start::Standard;

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
        let heard = Measurement { timestamps: Some(stamps), ..measurement(rtt) };
        law.on_measurement(&mut Window::default(), &heard);
    }

    /// The window after a round trip of 100 packets at a queueing delay.
    fn after_a_round(queueing_ms: u32, offset_ms: u32) -> u32 {
        let mut law = law();
        let mut window = Window { cwnd: 100, ssthresh: 2, ..Window::default() };
        hear(&mut law, 20, offset_ms);
        (0..4).for_each(|_| hear(&mut law, 20 + queueing_ms, offset_ms));
        // One more for what rounding leaves of the last packet.
        (0..101).for_each(|_| law.grow(&mut window, &mut Standard, &ack(1)));
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
        let mut window = Window { cwnd: 100, ..Window::default() };
        hear(&mut law, 20, 0);
        (0..4).for_each(|_| hear(&mut law, 94, 0));
        law.grow(&mut window, &mut Standard, &ack(1));
        assert_eq!((window.cwnd, window.in_slow_start()), (101, true));
        (0..4).for_each(|_| hear(&mut law, 96, 0));
        law.grow(&mut window, &mut Standard, &ack(1));
        assert_eq!((window.cwnd, window.ssthresh), (101, 101));
    }

    #[test]
    fn what_delay_takes_slow_start_does_not_bring_back() {
        let mut window = Window { cwnd: 100, ssthresh: 100, ..Window::default() };
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
            let mut window = Window { cwnd: before, ssthresh: 2, ..Window::default() };
            (0..200).for_each(|_| law.grow(&mut window, &mut Standard, &idle));
            assert_eq!(window.cwnd, after);
        }
    }

    #[test]
    fn a_loss_halves_and_the_start_is_small() {
        let mut law = law();
        let window = Window { cwnd: 100, ..Window::default() };
        assert_eq!(law.ssthresh(&window, &loss()), 50);
        let tiny = Window { cwnd: 3, ..Window::default() };
        assert_eq!(law.ssthresh(&tiny, &loss()), 2);
    }

    #[test]
    fn acks_that_do_not_advance_say_nothing_of_delay() {
        let mut law = law();
        hear(&mut law, 20, 0);
        let stamps = Timestamps { value_ms: 9_000, echo_ms: 5_000, now_ms: 9_000 };
        let repeated =
            Measurement { timestamps: Some(stamps), packets: 0, ..Measurement::default() };
        (0..4).for_each(|_| law.on_measurement(&mut Window::default(), &repeated));
        assert_eq!(law.delays.queueing(), Some(Span::ZERO));
    }

    /// The RTT stands in for the one-way delay.
    #[test]
    fn without_timestamps_the_rtt_is_the_delay() {
        let mut law = law();
        law.on_measurement(&mut Window::default(), &measurement(Span::from_ms(40)));
        (0..4).for_each(|_| {
            law.on_measurement(&mut Window::default(), &measurement(Span::from_ms(90)));
        });
        assert_eq!(law.off_target, 0.5);
    }
}
