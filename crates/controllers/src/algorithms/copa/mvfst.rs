//! Copa in Meta's QUIC (`quic/congestion_control/Copa.cpp`): only the default mode of the paper.

use jostle_units::{Rate, Span, Time};

use super::direction::Direction;
use super::parameters::Parameters;
use super::rtt_extremes::{WindowedMin, seconds};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EstablishedEvent, StateObserver,
};

/// `kMinCwndInMss`.
const MIN_WINDOW: f64 = 2.0;
/// `kLargeMaxCwndInMss`, the value in the measurement tool of mvfst. Transports without this
/// setting use `kDefaultMaxCwndInMss`, 2000.
const MAX_WINDOW: f64 = 860_000.0;
/// `kMinRTTWindowLength`.
const LEAST_WINDOW: Span = Span::from_secs(10);
/// `refreshPacingRate(cwndBytes_ * 2, srtt)`.
const PACING_GAIN: f64 = 2.0;
/// Limit of the doublings: a single ACK then moves the window over its complete range.
const MAX_VELOCITY: f64 = 1e12;

/// The controller.
pub(super) struct Mvfst {
    delta: f64,
    /// `copaUseRttStanding`.
    uses_standing: bool,
    packet_bits: f64,
    cwnd: f64,
    srtt: Span,
    slow_start: bool,
    /// Time at which slow start last doubled the window (`lastCwndDoubleTime_`).
    doubled_at: Option<Time>,
    least: WindowedMin,
    standing: WindowedMin,
    /// RTTstanding, at most the latest RTT.
    standing_rtt: Span,
    queueing: Span,
    course: Velocity,
}

/// Direction and velocity of the window (`VelocityState`).
#[derive(Clone, Copy, Debug)]
struct Velocity {
    velocity: f64,
    direction: Option<Direction>,
    /// Number of smoothed RTTs with an unchanged direction, without the first.
    held: u32,
    /// Window and time of the last check.
    recorded: Option<(f64, Time)>,
}

impl Mvfst {
    pub(super) fn new(parameters: &Parameters) -> Self {
        Self {
            delta: parameters.delta,
            uses_standing: parameters.uses_standing,
            packet_bits: 8.0,
            cwnd: MIN_WINDOW,
            srtt: Span::ZERO,
            slow_start: true,
            doubled_at: None,
            least: WindowedMin::default(),
            standing: WindowedMin::default(),
            standing_rtt: Span::ZERO,
            queueing: Span::ZERO,
            course: Velocity { velocity: 1.0, direction: None, held: 0, recorded: None },
        }
    }

    fn set_window(&mut self, cwnd: f64) {
        self.cwnd = cwnd.clamp(MIN_WINDOW, MAX_WINDOW);
    }

    /// Updates the queueing delay from the latest RTT or RTTstanding.
    fn on_rtt_sample(&mut self, now: Time, rtt: Span) {
        self.least.update(LEAST_WINDOW, now, rtt);
        let window = if self.uses_standing { self.srtt } else { self.srtt.mul_div(1, 2) };
        self.standing.update(window, now, rtt);
        self.standing_rtt = self.standing.get();
        let delayed = if self.uses_standing { self.standing_rtt } else { rtt };
        self.queueing = delayed - self.least.get().min(delayed);
    }

    /// Checks the direction once per smoothed RTT (`checkAndUpdateDirection`).
    fn look_at_course(&mut self, now: Time) {
        let Some((cwnd, at)) = self.course.recorded else {
            self.course.recorded = Some((self.cwnd, now));
            return;
        };
        if now.since(at) < self.srtt {
            return;
        }
        let course = &mut self.course;
        let direction = if self.cwnd > cwnd { Direction::Up } else { Direction::Down };
        if course.direction != Some(direction) {
            (course.velocity, course.held) = (1.0, 0);
        } else {
            course.held = course.held.saturating_add(1);
            // The paper: "only after the direction has remained the same for three RTTs".
            if course.held >= if self.uses_standing { 4 } else { 3 } {
                course.velocity = (2.0 * course.velocity).min(MAX_VELOCITY);
            }
        }
        (course.direction, course.recorded) = (Some(direction), Some((self.cwnd, now)));
    }

    /// A large velocity is only valid in the direction in which it grew (`changeDirection`).
    fn turn(&mut self, direction: Direction, now: Time) {
        if self.course.velocity > 1.0 && self.course.direction != Some(direction) {
            let recorded = Some((self.cwnd, now));
            self.course = Velocity { velocity: 1.0, direction: Some(direction), held: 0, recorded };
        }
    }

    /// "doubles once per RTT until current rate exceeds target rate", in one step.
    fn grow_in_slow_start(&mut self, now: Time) {
        let Some(at) = self.doubled_at else {
            self.doubled_at = Some(now);
            return;
        };
        if now.since(at) > self.srtt {
            self.set_window(2.0 * self.cwnd);
            self.doubled_at = Some(now);
        }
    }

    /// λt = 1 / (δ · dq), in packets per second; 0 for an empty queue, which means no limit.
    fn target_pps(&self) -> f64 {
        let queueing_s = seconds(self.queueing);
        if queueing_s > 0.0 { 1.0 / (self.delta * queueing_s) } else { 0.0 }
    }
}

impl CongestionController for Mvfst {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.on_mss_change(established.mss_bytes);
        self.set_window(f64::from(established.initial_window));
        self.srtt = established.rtt.unwrap_or(Span::ZERO);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.packet_bits = 8.0 * f64::from(mss_bytes.max(1));
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if !ack.srtt.is_zero() {
            self.srtt = ack.srtt;
        }
        if let Some(rtt) = ack.transmission_rtt() {
            self.on_rtt_sample(ack.now, rtt);
        }
        if ack.acked == 0 || self.standing_rtt.is_zero() {
            return;
        }
        // Compares cwnd / RTTstanding with λt without a division.
        let load = self.delta * self.cwnd * seconds(self.queueing);
        let rises = load <= seconds(self.standing_rtt);
        if rises && self.slow_start {
            return self.grow_in_slow_start(ack.now);
        }
        self.look_at_course(ack.now);
        self.turn(if rises { Direction::Up } else { Direction::Down }, ack.now);
        let step = self.course.velocity * f64::from(ack.acked) / (self.delta * self.cwnd);
        self.slow_start = false;
        self.set_window(if rises { self.cwnd + step } else { self.cwnd - step });
    }

    /// Ignores losses. Persistent congestion resets the window to its minimum and keeps the other
    /// state.
    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        if congestion.signal == CongestionSignal::Timeout {
            self.set_window(MIN_WINDOW);
        }
    }

    fn on_undo(&mut self, _now: Time) {}

    fn set_cwnd(&mut self, cwnd: u32) {
        self.set_window(f64::from(cwnd));
    }

    fn cwnd(&self) -> u32 {
        self.cwnd as u32
    }

    fn pacing_rate(&self) -> Option<Rate> {
        (!self.srtt.is_zero()).then(|| {
            let bps = PACING_GAIN * self.cwnd * self.packet_bits / seconds(self.srtt);
            Rate::from_bps(bps.clamp(1.0, 1e15) as u64)
        })
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn mode(&self) -> &'static str {
        if self.slow_start { "slow_start" } else { "default" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let ms = |span: Span| span.as_secs_f64() * 1e3;
        observer.record_value("velocity", self.course.velocity);
        observer.record_value("delta", self.delta);
        observer.record_value("queueing_ms", ms(self.queueing));
        observer.record_value("rtt_standing_ms", ms(self.standing_rtt));
        observer.record_value("target_pps", self.target_pps());
    }
}

#[cfg(test)]
mod tests {
    use jostle_registry::ParameterValue;

    use super::*;
    use crate::algorithms::copa::ROW;
    use crate::test_support::ack;

    fn mvfst(given: &[(&str, ParameterValue)]) -> Mvfst {
        let mvfst = ("flavour", ParameterValue::Text("mvfst".to_owned()));
        let given = given.iter().chain([&mvfst]);
        let given = given.map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let mut copa = Mvfst::new(&Parameters::new(&ROW.entry.resolve(&given).unwrap()));
        copa.on_established(&EstablishedEvent {
            now: Time::ZERO,
            mss_bytes: 1448,
            initial_window: 10,
            rtt: Some(Span::from_ms(50)),
            prospect: Default::default(),
        });
        copa
    }

    /// As its tests have it: δ = 0.5 and `copaUseRttStanding`.
    fn tested() -> Mvfst {
        mvfst(&[
            ("delta", ParameterValue::Number(0.5)),
            ("rtt_standing", ParameterValue::Bool(true)),
        ])
    }

    fn on_rtt_sample(copa: &mut Mvfst, ms: u64, rtt_ms: u64, srtt_ms: u64) {
        copa.on_ack(&AckSample {
            now: Time::ZERO + Span::from_ms(ms),
            rtt: Some(Span::from_ms(rtt_ms)),
            srtt: Span::from_ms(srtt_ms),
            ..ack(1)
        });
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    /// `CopaTest.cpp`, `exitSlowStart`: 50 ms, and 110 ms later 150 ms, smoothed 100 ms: the target is 20
    /// packets per second, the rate 10 packets in 150 ms, and "cwnd = 10 - 1 / (0.5 * 10) = 9.8
    /// packets".
    #[test]
    fn slow_start_ends_as_in_its_own_test() {
        let mut copa = tested();
        on_rtt_sample(&mut copa, 50, 50, 50);
        assert_eq!((copa.mode(), copa.cwnd), ("slow_start", 10.0));
        on_rtt_sample(&mut copa, 160, 150, 100);
        assert_eq!((copa.mode(), copa.target_pps().round()), ("default", 20.0));
        close(copa.cwnd, 9.8);
        // `TestSteadyStateChanges`: "cwnd = 9.8 - 1 / (0.5 * 9.8)".
        on_rtt_sample(&mut copa, 170, 100, 100);
        close(copa.cwnd, 9.8 - 1.0 / 4.9);
    }

    /// `TestSlowStartAck`: 280 ms; 350 ms later, more than the smoothed 300 ms, the window doubles at
    /// once; 100 ms after that it does not.
    #[test]
    fn slow_start_doubles_once_per_smoothed_rtt() {
        let mut copa = tested();
        on_rtt_sample(&mut copa, 280, 280, 280);
        on_rtt_sample(&mut copa, 330, 280, 280);
        assert_eq!(copa.cwnd, 10.0);
        on_rtt_sample(&mut copa, 630, 280, 300);
        assert_eq!((copa.cwnd, copa.mode()), (20.0, "slow_start"));
        on_rtt_sample(&mut copa, 730, 280, 300);
        assert_eq!(copa.cwnd, 20.0);
    }

    /// v doubles from the third smoothed RTT on that goes the way of the one before, and is 1 as soon
    /// as the target is crossed.
    #[test]
    fn the_velocity_waits_for_three_rtts_and_is_reset_by_crossing() {
        let mut copa = mvfst(&[]);
        assert_eq!(copa.delta, 0.05);
        (copa.slow_start, copa.cwnd) = (false, 100.0);
        let velocities: Vec<_> = (0..7)
            .map(|i| {
                on_rtt_sample(&mut copa, 100 + 50 * i, 50, 50);
                copa.course.velocity
            })
            .collect();
        // Recorded, first seen to rise, held for 1, 2, 3, …
        assert_eq!(velocities, [1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 8.0]);
        // 50 ms in the queue: 400 packets per second, which are 40 in the latest RTT of 100 ms.
        let before = copa.cwnd;
        on_rtt_sample(&mut copa, 430, 100, 50);
        assert_eq!(copa.course.velocity, 1.0);
        close(copa.cwnd, before - 1.0 / (0.05 * before));
    }

    /// Without `copaUseRttStanding` the delay is the latest RTT's, and the rate that of RTTstanding.
    #[test]
    fn the_latest_rtt_is_judged() {
        for (standing, queueing_ms) in [(false, 20), (true, 0)] {
            let mut copa = mvfst(&[("rtt_standing", ParameterValue::Bool(standing))]);
            on_rtt_sample(&mut copa, 100, 50, 50);
            on_rtt_sample(&mut copa, 110, 70, 50);
            assert_eq!(copa.queueing, Span::from_ms(queueing_ms));
            assert_eq!(copa.standing_rtt, Span::from_ms(50));
        }
    }

    #[test]
    fn only_persistent_congestion_is_answered() {
        let mut copa = mvfst(&[]);
        copa.on_congestion_event(&crate::test_support::loss());
        assert_eq!(copa.cwnd(), 10);
        copa.on_congestion_event(&CongestionEvent {
            signal: CongestionSignal::Timeout,
            ..crate::test_support::loss()
        });
        assert_eq!((copa.cwnd(), copa.mode()), (2, "slow_start"));
    }
}
