//! TCP-NV as implemented in Linux.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{RandomStream, Span, Time};

use crate::cwnd::{CongestionWindow, INFINITE_SSTHRESH};
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::SlowStart;
use crate::window_based::{CongestionAvoidance, WindowBasedController, slow_start_then_remaining};
use jostle_congestion::{
    AckSample, CongestionEvent, EstablishedEvent, RawAckSample, RecoveryState, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "nv",
        summary: "for data centers: cwnd of the largest delivery rate × minimum RTT, plus a few \
            packets",
        class: "delay",
        based_on: &["vegas"],
        source: "Brakmo, TCP-NV: an update to TCP-Vegas, 2010; Linux 6.1 tcp_nv.c",
        parameters: &[
            Parameter::integer("nv_pad", 10, 0..=1_000_000)
                .summary("largest number of packets to keep in the queue"),
            Parameter::span(
                "nv_reset_period",
                Span::from_secs(5),
                Span::from_secs(1)..=Span::from_secs(3000),
            )
            .summary("mean time for which a minimum RTT is valid"),
            Parameter::integer("nv_min_cwnd", 2, 1..=1_000_000)
                .summary("smallest cwnd in packets after a reduction without a loss"),
        ],
    },
    start: SlowStartChoice::Composed("standard"),
    build: |parts| {
        Box::new(WindowBasedController::new(Nv::new(&parts.values, parts.random), parts.slow_start))
    },
};

/// `nv_pad_buffer`: distance below the pad within which the window does not grow.
const PAD_BUFFER: u32 = 2;
/// `nv_cong_dec_mult`: share of the excess, in 128ths, that congestion takes: 30 %.
const DECREASE_128THS: u32 = 30 * 128 / 100;
/// `nv_loss_dec_factor`: share of the window that remains after a loss, in 1024ths.
const LOSS_KEEPS_1024THS: u64 = 819;
/// `nv_cwnd_growth_rate_neg`: decisions without congestion before the growth doubles again.
const GROWTH_ROUNDS: u32 = 8;
/// Minimum growth factor: a packet per 256 round trips.
const GROWTH_FACTOR_MIN: i8 = -8;
/// Number of measurements required to reduce, to grow and to end slow start.
const CALLS_TO_REDUCE: u8 = 60;
const CALLS_TO_GROW: u8 = 20;
const CALLS_TO_END_SLOW_START: u8 = 30;
/// `nv_stop_rtt_cnt`: rounds above the window's limit without a decision before growth stops.
const ROUNDS_TO_STOP: u8 = 10;
/// `nv_rtt_min_cnt`: rounds before a decision to reduce.
const ROUNDS_TO_REDUCE: u8 = 2;
/// Minimum number of packets per round for a valid measurement: initial value, step, and maximum.
const SHORT_ROUND: u32 = 4;
const SHORT_ROUND_STEP: u32 = 2;
const SHORT_ROUND_MAX: u32 = 81;
/// Conversion of rates in bytes per µs to units of 100 bit/s.
const RATE_SCALE: u64 = 80_000;
/// Lifetime of the first minimum RTT.
const FIRST_RESET_MS: u64 = 2_000;

/// Congestion avoidance of NV. The delivered flight divided by the averaged RTT is a rate. The
/// maximum rate of a round times the minimum RTT is the window without a queue. This window plus
/// `nv_pad` packets is the limit: a window above it is reduced by 30 % of the excess, and a window
/// more than two packets below it grows like Reno.
///
/// Not implemented: code that Linux only uses for a `BPF` program that knows the RTT
/// (`nv_base_rtt`), and two branches that Linux's constants never reach (`nv_catchup`,
/// `nv_cwnd_growth_rate_pos`).
#[derive(Clone, Debug)]
pub struct Nv {
    pad: u32,
    reset_period_ms: u64,
    min_cwnd: u32,
    random: RandomStream,
    mss_bytes: u32,
    /// Time at which `min_rtt_new_us` replaces `min_rtt_us`, on Linux's clock of 1 ms.
    reset_at_ms: u64,
    /// 2 to this power times cwnd ACKs add a packet; never above zero (`cwnd_growth_factor`).
    growth_factor: i8,
    may_grow: bool,
    /// Whether to restart the measurements when the connection is in state `Open`.
    reset_due: bool,
    /// Measurements since the last decision (`nv_eval_call_cnt`).
    calls: u8,
    /// `nv_min_cwnd` of the connection.
    short_round: u32,
    /// Rounds since the last decision.
    rounds: u8,
    /// RTT averaged with the previous one, 0 for none.
    last_rtt_us: u32,
    min_rtt_us: u32,
    min_rtt_new_us: u32,
    /// Largest rate since the last decision.
    max_rate: u32,
    /// Packet whose acknowledgement ends the round.
    round_start: u64,
    /// `snd_una` at the last measurement, and the current one.
    last_unacked: u64,
    first_unacked: u64,
    /// Consecutive decisions without congestion.
    uncongested: u32,
    /// Most recent limit of the window.
    limit: u32,
}

impl Nv {
    /// Creates NV with the parameters of its registry entry.
    pub fn new(values: &ParameterValues, random: RandomStream) -> Self {
        Self {
            pad: values.u32("nv_pad"),
            reset_period_ms: values.span("nv_reset_period").as_us() / 1_000,
            min_cwnd: values.u32("nv_min_cwnd"),
            random,
            mss_bytes: 1,
            reset_at_ms: FIRST_RESET_MS,
            growth_factor: 0,
            may_grow: true,
            reset_due: false,
            calls: 0,
            short_round: SHORT_ROUND,
            rounds: 0,
            last_rtt_us: 0,
            min_rtt_us: u32::MAX,
            min_rtt_new_us: u32::MAX,
            max_rate: 0,
            round_start: 0,
            last_unacked: 0,
            first_unacked: 0,
            uncongested: 0,
            limit: 0,
        }
    }

    /// `tcp_nv.c::tcpnv_reset`.
    fn reset(&mut self) {
        self.reset_due = false;
        self.uncongested = 0;
        self.rounds = 0;
        self.last_rtt_us = 0;
        self.max_rate = 0;
        self.round_start = self.first_unacked;
        self.calls = 0;
        self.last_unacked = self.first_unacked;
    }

    /// Updates the RTT, its minima and the maximum rate from a sample.
    fn take_sample(&mut self, rtt_us: u32, delivered: u32) {
        let average_us = if self.last_rtt_us > 0 {
            ((u64::from(rtt_us) + u64::from(self.last_rtt_us)) / 2) as u32
        } else {
            // After a reset the minimum may be too low for the path, so allow it to rise.
            self.min_rtt_us = rtt_us.wrapping_mul(2);
            rtt_us
        };
        self.last_rtt_us = average_us;
        let flight_bytes = u64::from(delivered) * u64::from(self.mss_bytes);
        let rate = (flight_bytes * RATE_SCALE / u64::from(average_us.max(1))) as u32;
        self.max_rate = self.max_rate.max(rate);
        self.calls = self.calls.saturating_add(1);
        self.min_rtt_us = self.min_rtt_us.min(average_us);
        self.min_rtt_new_us = self.min_rtt_new_us.min(average_us);
    }

    /// Replaces the minimum RTT by the minimum of the last period. Periods vary at random between ¾
    /// and 5/4 of the parameter, so that flows do not reset at the same time.
    fn renew_minimum(&mut self, now_ms: u64) {
        if now_ms < self.reset_at_ms {
            return;
        }
        self.min_rtt_us = self.min_rtt_new_us;
        self.min_rtt_new_us = u32::MAX;
        let eighth_bits = self.random.bits() >> 56;
        self.reset_at_ms = now_ms + ((self.reset_period_ms * (384 + eighth_bits)) >> 9);
        self.short_round = (self.short_round / 2).max(SHORT_ROUND);
    }

    /// Makes a decision once per round trip. `acked`: packets acknowledged since the last
    /// measurement.
    fn end_round(&mut self, window: &mut CongestionWindow, acked: u64, next_to_send: u64) {
        self.round_start = next_to_send;
        self.rounds = self.rounds.saturating_add(1);
        if self.calls == 1
            && acked >= u64::from(self.short_round - 1)
            && self.short_round < SHORT_ROUND_MAX
        {
            // A single ACK for all packets of a round contains no rate information (TSO, LRO,
            // coalesced interrupts): wait for a longer round.
            self.short_round = (self.short_round + SHORT_ROUND_STEP).min(SHORT_ROUND_MAX);
            self.round_start = next_to_send + u64::from(self.short_round);
            self.calls = 0;
            self.may_grow = true;
            return;
        }
        let best = u64::from(self.max_rate) * u64::from(self.min_rtt_us);
        let ideal = (best / (RATE_SCALE * u64::from(self.mss_bytes))) as u32;
        self.limit = ideal.wrapping_add(self.pad);
        let decided = if window.cwnd > self.limit {
            self.reduce(window)
        } else if window.cwnd <= self.limit.wrapping_sub(PAD_BUFFER) {
            self.allow_growth()
        } else {
            false
        };
        if decided {
            self.calls = 0;
            self.rounds = 0;
            self.max_rate = 0;
            window.cwnd = window.cwnd.max(self.min_cwnd);
        }
    }

    /// Reduces a window above its limit, if there are enough measurements.
    fn reduce(&mut self, window: &mut CongestionWindow) -> bool {
        if self.rounds < ROUNDS_TO_REDUCE {
            return false;
        }
        if window.ssthresh == INFINITE_SSTHRESH {
            if self.calls < CALLS_TO_END_SLOW_START {
                return false;
            }
        } else if self.calls < CALLS_TO_REDUCE {
            self.may_grow &= self.rounds <= ROUNDS_TO_STOP;
            return false;
        }
        self.may_grow = false;
        // `nv_ssthresh_factor` is one. Thresholds of 0 and 1 are equivalent.
        window.ssthresh = self.limit.max(1);
        let excess = window.cwnd - self.limit;
        if excess > 2 {
            let decrease = (u64::from(excess) * u64::from(DECREASE_128THS)) >> 7;
            window.cwnd -= (decrease as u32).max(2);
        } else {
            window.cwnd = self.limit;
        }
        self.uncongested = 0;
        true
    }

    /// Lets a window below its limit grow, if there are enough measurements.
    fn allow_growth(&mut self) -> bool {
        if self.calls < CALLS_TO_GROW {
            return false;
        }
        self.may_grow = true;
        self.uncongested += 1;
        if self.growth_factor < 0 && self.uncongested > GROWTH_ROUNDS {
            self.growth_factor += 1;
            self.uncongested = 0;
        }
        true
    }
}

const fn ms(now: Time) -> u64 {
    now.as_ns() / 1_000_000
}

impl CongestionAvoidance for Nv {
    fn on_established(&mut self, _window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.on_mss_change(established.mss_bytes);
        self.reset_at_ms = ms(established.now) + FIRST_RESET_MS;
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes.max(1);
    }

    /// `tcp_nv.c::tcpnv_acked`.
    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        self.first_unacked = measurement.first_unacked;
        let Some(rtt) = measurement.rtt else { return };
        if !matches!(measurement.state, RecoveryState::Open | RecoveryState::Disorder) {
            return;
        }
        let acked = self.first_unacked - self.last_unacked;
        self.last_unacked = self.first_unacked;
        if measurement.delivered == 0 {
            return;
        }
        let rtt_us = u32::try_from(rtt.as_us()).unwrap_or(u32::MAX);
        self.take_sample(rtt_us, measurement.delivered);
        self.renew_minimum(ms(measurement.now));
        if self.round_start < self.first_unacked {
            self.end_round(window, acked, measurement.next_to_send);
        }
    }

    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if self.may_grow
            && let Some(acked) = slow_start_then_remaining(window, slow_start, ack)
        {
            self.increase_cwnd(window, acked, ack);
        }
    }

    /// `tcp_nv.c::tcpnv_cong_avoid`.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, _ack: &AckSample) {
        let per_increase = match self.growth_factor {
            0 => window.cwnd.max(4),
            factor => window.cwnd.saturating_mul(1 << factor.unsigned_abs()),
        };
        window.additive_increase(per_increase, acked);
    }

    /// `tcp_nv.c::tcpnv_recalc_ssthresh`.
    fn ssthresh_after(&mut self, window: &CongestionWindow, _congestion: &CongestionEvent) -> u32 {
        let kept = (u64::from(window.cwnd) * LOSS_KEEPS_1024THS) >> 10;
        (kept as u32).max(2)
    }

    fn on_recovery_state(
        &mut self,
        _window: &mut CongestionWindow,
        _now: Time,
        state: RecoveryState,
    ) {
        match state {
            RecoveryState::Open => {
                if self.reset_due {
                    self.reset();
                }
            }
            RecoveryState::Disorder => {}
            RecoveryState::Cwr | RecoveryState::Recovery | RecoveryState::Loss => {
                self.reset_due = true;
                self.may_grow = false;
                if state == RecoveryState::Loss {
                    self.growth_factor = (self.growth_factor - 1).max(GROWTH_FACTOR_MIN);
                }
            }
        }
    }

    fn mode(&self) -> &'static str {
        if self.may_grow { "growth" } else { "hold" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let min_us = if self.min_rtt_us == u32::MAX { 0 } else { self.min_rtt_us };
        observer.record_value("min_rtt_s", f64::from(min_us) * 1e-6);
        observer.record_value("max_rate_bps", f64::from(self.max_rate) * 100.0);
        observer.record_value("limit_packets", f64::from(self.limit));
        observer.record_value("growth_factor", f64::from(self.growth_factor));
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::slow_start::Standard;
    use crate::test_support::{ack, measurement};
    use jostle_congestion::CongestionSignal;

    const LOSS: CongestionEvent = CongestionEvent {
        now: Time::ZERO,
        signal: CongestionSignal::Loss,
        in_flight: 0,
        next_to_send: 0,
    };

    fn nv() -> Nv {
        let mut law = Nv::new(&ROW.entry.defaults(), RandomStream::new(1, "nv"));
        law.mss_bytes = 1448;
        law
    }

    fn at(cwnd: u32) -> CongestionWindow {
        CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() }
    }

    /// A round of `calls` ACKs at a minimum RTT of 100 ms; the flight and the RTT as given.
    fn round(law: &mut Nv, window: &mut CongestionWindow, calls: u64, delivered: u32, rtt_ms: u64) {
        law.min_rtt_us = 100_000;
        law.last_rtt_us = rtt_ms as u32 * 1_000;
        let first_unacked = law.first_unacked;
        for number in 1..=calls {
            // The last ACK of the round is the one that passes `round_start`.
            law.round_start = first_unacked + calls - 1;
            law.on_ack_before_loss_detection(
                window,
                &RawAckSample {
                    delivered,
                    first_unacked: first_unacked + number,
                    next_to_send: first_unacked + calls,
                    ..measurement(Span::from_ms(rtt_ms))
                },
            );
        }
    }

    /// 100 packets per 100 ms fill the path without a queue: the limit is 110.
    #[test]
    fn an_excess_loses_thirty_percent_and_a_small_one_all() {
        // 120 delivered in 120 ms: the same rate.
        for (cwnd, expected) in [(210, 210 - 29), (114, 112), (113, 111), (112, 110), (111, 110)] {
            let (mut law, mut window) = (nv(), at(cwnd));
            law.rounds = 1;
            round(&mut law, &mut window, 60, 120, 120);
            assert_eq!((law.limit, window.ssthresh), (110, 110));
            assert_eq!((window.cwnd, law.may_grow), (expected, false), "from {cwnd}");
        }
    }

    #[test]
    fn between_the_pad_and_its_buffer_nothing_happens() {
        for (cwnd, calls) in [(108, 0), (109, 60), (110, 60)] {
            let (mut law, mut window) = (nv(), at(cwnd));
            round(&mut law, &mut window, 60, 100, 100);
            assert_eq!((window.cwnd, law.calls, law.may_grow), (cwnd, calls, true));
        }
    }

    #[test]
    fn decisions_need_measurements_and_rounds() {
        let decided = |rounds, calls, ssthresh| {
            let (mut law, mut window) = (nv(), at(200));
            (law.rounds, window.ssthresh) = (rounds, ssthresh);
            round(&mut law, &mut window, calls, 100, 100);
            (window.cwnd < 200, law.may_grow)
        };
        assert_eq!(decided(0, 60, 2), (false, true), "the first round");
        assert_eq!(decided(1, 59, 2), (false, true), "too few measurements");
        assert_eq!(decided(10, 59, 2), (false, false), "above the limit for eleven rounds");
        assert_eq!(decided(1, 60, 2), (true, false));
        assert_eq!(decided(1, 29, INFINITE_SSTHRESH), (false, true));
        assert_eq!(decided(1, 30, INFINITE_SSTHRESH), (true, false), "the end of slow start");
    }

    #[test]
    fn the_minimum_is_renewed_every_four_to_six_seconds() {
        let mut law = nv();
        let (mut now_ms, mut spans) = (2_000, Vec::new());
        for i in 0..200 {
            law.min_rtt_new_us = 50_000 + i;
            law.renew_minimum(now_ms - 1);
            assert_ne!(law.min_rtt_us, 50_000 + i);
            law.renew_minimum(now_ms);
            assert_eq!((law.min_rtt_us, law.min_rtt_new_us), (50_000 + i, u32::MAX));
            spans.push(law.reset_at_ms - now_ms);
            now_ms = law.reset_at_ms;
        }
        assert!(spans.iter().all(|span| (3_750..6_250).contains(span)), "{spans:?}");
        let mean = spans.iter().sum::<u64>() as f64 / 200.0;
        assert!((mean - 5_000.0).abs() < 200.0, "{mean}");
    }

    #[test]
    fn a_loss_keeps_eight_tenths_and_stops_growth_until_a_decision() {
        let (mut law, mut window) = (nv(), at(100));
        assert_eq!(law.ssthresh_after(&window, &LOSS), 79);
        law.on_recovery_state(&mut window, Time::ZERO, RecoveryState::Recovery);
        law.first_unacked = 500;
        law.on_recovery_state(&mut window, Time::ZERO, RecoveryState::Open);
        assert_eq!((law.round_start, law.last_unacked, law.reset_due), (500, 500, false));
        let before = window;
        law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1));
        assert_eq!(window, before);
        round(&mut law, &mut window, 20, 100, 100);
        law.on_cwnd_limited_ack(&mut window, &mut Standard, &ack(1));
        assert_eq!(window.count, 1);
    }

    #[test]
    fn timeouts_halve_the_growth_and_nine_good_rounds_double_it() {
        let (mut law, mut window) = (nv(), at(100));
        for _ in 0..10 {
            law.on_recovery_state(&mut window, Time::ZERO, RecoveryState::Loss);
        }
        assert_eq!(law.growth_factor, -8);
        law.growth_factor = -2;
        for number in 0..400 {
            law.increase_cwnd(&mut window, 1, &ack(number));
        }
        assert_eq!((window.cwnd, window.count), (101, 0));
        for _ in 0..9 {
            assert_eq!(law.growth_factor, -2);
            round(&mut law, &mut window, 20, 100, 100);
        }
        assert_eq!(law.growth_factor, -1);
    }

    #[test]
    fn rounds_of_one_ack_are_waited_out() {
        let (mut law, mut window) = (nv(), at(10));
        law.may_grow = false;
        law.on_ack_before_loss_detection(
            &mut window,
            &RawAckSample {
                delivered: 10,
                first_unacked: 10,
                next_to_send: 20,
                ..measurement(Span::from_ms(100))
            },
        );
        assert_eq!((law.short_round, law.round_start, law.calls), (6, 26, 0));
        assert!(law.may_grow);
    }
}
