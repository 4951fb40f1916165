//! Random impairments of a link in a run, drawn in advance for other backends: the qdisc of the
//! kernel backend applies the same outages and delays as the simulator.
//!
//! Only functions of time can be drawn in advance. Decisions per packet depend on the traffic; the
//! seeds of their random streams are exported instead.

use jostle_link::Error;
use jostle_link::capacity::Autoregressive;
use jostle_link::loss::{GILBERT_ELLIOTT, GilbertElliott, Outages, Transitions};
use jostle_units::{RandomStream, Rate, Span, Time};

use crate::link_builder::{delay_of, quantiles};
use crate::link_faults::STREAMS;
use crate::{CapacitySpec, DelaySpec, DelayStep, JitterSpec, LinkSpec};

/// Grid points of correlated jitter per correlation time, and values between two of them. Several
/// values are needed because the delay is not exactly linear between grid points.
const CORRELATION_CELLS: u64 = 16;
const VALUES_PER_CELL: u64 = 64;
/// Number of jitter values between two checks for cancellation.
const POLL_EVERY: u64 = 128;

/// Impairments of a link in a run. Times are nanoseconds of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct ImpairmentSchedule {
    /// Start and end of each outage, in order.
    pub outages: Vec<(Time, Time)>,
    /// Start and rate of each step, the first at 0, if the rate is random; otherwise empty.
    pub rates: Vec<(Time, Rate)>,
    /// Delays in addition to the base delay, `jitter_step` apart from time 0 to the end, linear in
    /// between. Empty without jitter, or if every packet draws a new value.
    pub jitter: Vec<Span>,
    /// Time between two jitter values.
    pub jitter_step: Span,
    /// Seed of the random stream for the jitter of each packet.
    pub jitter_seed: u64,
    /// Seed of the queue's random stream.
    pub queue_seed: u64,
    /// Seed of the random stream for losses per packet.
    pub loss_seed: u64,
    /// Initial state of the losses.
    pub loss: LossState,
    /// Seed of the random stream for losses with a piecewise constant probability.
    pub loss_steps_seed: u64,
    /// Seed of the random stream for the waiting times for the medium.
    pub contention_seed: u64,
    /// Seeds of the random streams of faults and grants, by name.
    pub seeds: Vec<(&'static str, u64)>,
}

/// State of the losses before the first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossState {
    /// Whether a Gilbert–Elliott chain starts in its bad state.
    pub bad: bool,
    /// Number of values already drawn from the random stream.
    pub drawn: u64,
}

impl LinkSpec {
    /// Draws the link's random impairments from time 0 to `end` in the run with `seed`.
    ///
    /// At most `points` values of jitter are drawn; if necessary, fewer per correlation time.
    ///
    /// # Errors
    /// If the link is invalid; never if [`validate`](Self::validate) passes.
    pub fn draw_impairments(
        &self,
        seed: u64,
        end: Time,
        points: u64,
    ) -> Result<ImpairmentSchedule, Error> {
        let drawn = self.draw_impairments_while(seed, end, points, &|| true)?;
        Ok(drawn.unwrap_or_else(|| unreachable!("it is never told to stop")))
    }

    /// Like [`draw_impairments`](Self::draw_impairments), but can be cancelled: `go_on` is called
    /// about every ten milliseconds, because drawing can take minutes.
    ///
    /// # Returns
    /// `None` if `go_on` returned false.
    ///
    /// # Errors
    /// As [`draw_impairments`](Self::draw_impairments).
    pub fn draw_impairments_while(
        &self,
        seed: u64,
        end: Time,
        points: u64,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<ImpairmentSchedule>, Error> {
        let outages = match &self.outages {
            None => Vec::new(),
            Some(spec) => Outages::new(
                Span::from_ns(spec.mean_interval_ns),
                quantiles(&spec.durations)?,
                RandomStream::new(seed, &self.stream("outages")),
            )?
            .before(end),
        };
        let rates = match &self.capacity {
            CapacitySpec::Autoregressive(spec) => {
                let random = RandomStream::new(seed, &self.stream("capacity"));
                Autoregressive::new(spec.process(), random)?.before(end)
            }
            _ => Vec::new(),
        };
        let (jitter_step, jitter) = match &self.delay.jitter {
            Some(spec) if spec.correlation_ns > 0 => {
                match self.jitter(spec, seed, end, points, go_on)? {
                    Some(drawn) => drawn,
                    None => return Ok(None),
                }
            }
            _ => (Span::ZERO, Vec::new()),
        };
        Ok(Some(ImpairmentSchedule {
            outages,
            rates,
            jitter,
            jitter_step,
            jitter_seed: RandomStream::seed(seed, &self.stream("jitter")),
            queue_seed: RandomStream::seed(seed, &self.stream("queue")),
            loss_seed: RandomStream::seed(seed, &self.stream("loss")),
            loss: self.loss_state(seed)?,
            loss_steps_seed: RandomStream::seed(seed, &self.stream("loss_steps")),
            contention_seed: RandomStream::seed(seed, &self.stream("contention")),
            seeds: STREAMS
                .map(|part| (part, RandomStream::seed(seed, &self.stream(part))))
                .to_vec(),
        }))
    }

    fn jitter(
        &self,
        spec: &JitterSpec,
        seed: u64,
        end: Time,
        points: u64,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<(Span, Vec<Span>)>, Error> {
        let alone = DelaySpec {
            steps: vec![DelayStep { at_ns: 0, delay_ns: 0 }],
            jitter: Some(spec.clone()),
        };
        let mut delay = delay_of(&alone, RandomStream::new(seed, &self.stream("jitter")))?;
        let fine_ns = spec.correlation_ns / (CORRELATION_CELLS * VALUES_PER_CELL);
        let least_ns = end.as_ns().div_ceil(points.max(1));
        let step_ns = fine_ns.max(least_ns).max(1);
        let mut values = Vec::new();
        for n in 0..=end.as_ns().div_ceil(step_ns) {
            // A value may need thousands of draws, one for each grid point since the previous
            // value.
            if n % POLL_EVERY == 0 && !go_on() {
                return Ok(None);
            }
            values.push(delay.delay(Time::from_ns(n * step_ns)));
        }
        Ok(Some((Span::from_ns(step_ns), values)))
    }

    fn loss_state(&self, seed: u64) -> Result<LossState, Error> {
        let row = GILBERT_ELLIOTT.entry;
        let Some(spec) = self.loss.as_ref().filter(|loss| loss.kind == row.name) else {
            return Ok(LossState::default());
        };
        let transitions = Transitions::new(&row.resolve(&spec.parameters)?);
        let chain = GilbertElliott::new(transitions, RandomStream::new(seed, &self.stream("loss")));
        // If the result is certain, no random number is drawn.
        let share = transitions.share_of_bad();
        Ok(LossState { bad: chain.is_bad(), drawn: u64::from(share > 0.0 && share < 1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AutoregressiveSpec, CapacitySpec, LinkPart, OutageSpec, Quantile};
    use serde_json::json;

    const END: Time = Time::from_ns(60_000_000_000);

    fn part(kind: &str, parameters: serde_json::Value) -> LinkPart {
        let parameters = serde_json::from_value(parameters).unwrap();
        LinkPart { kind: kind.to_owned(), parameters }
    }

    fn link(correlation_ns: u64) -> LinkSpec {
        let quantile = |probability, value_ns| Quantile { probability, value_ns };
        LinkSpec {
            faults: None,
            netem: None,
            grants: None,
            framing: None,
            ack_thinning: None,
            frames: None,
            loss_steps: Vec::new(),
            quick_start: None,
            name: "bottleneck".into(),
            capacity: CapacitySpec::Constant { rate_bps: 1_000_000 },
            queue: part("drop_tail", json!({"limit": {"packets": 10}})),
            classes: None,
            delay: DelaySpec {
                steps: vec![DelayStep { at_ns: 0, delay_ns: 20_000_000 }],
                jitter: Some(JitterSpec {
                    quantiles: vec![
                        quantile(0.0, 0),
                        quantile(0.5, 3_000_000),
                        quantile(1.0, 40_000_000),
                    ],
                    correlation_ns,
                    reorder: false,
                }),
            },
            loss: Some(part("gilbert_elliott", json!({"good_to_bad": 0.5, "bad_to_good": 0.5}))),
            outages: Some(OutageSpec {
                mean_interval_ns: 2_000_000_000,
                durations: vec![quantile(0.0, 100_000_000), quantile(1.0, 300_000_000)],
            }),
        }
    }

    #[test]
    fn drawing_stops_when_it_is_told_to() {
        let asked = std::cell::Cell::new(0);
        let go_on = || asked.replace(asked.get() + 1) < 3;
        let link = link(200_000_000);
        assert_eq!(link.draw_impairments_while(5, END, 1 << 22, &go_on).unwrap(), None);
        assert_eq!(asked.get(), 4);
    }

    #[test]
    fn jitter_between_two_values_is_what_the_simulator_has() {
        let link = link(200_000_000);
        let drawn = link.draw_impairments(5, END, 1 << 22).unwrap();
        let step_ns = drawn.jitter_step.as_ns();
        assert_eq!(step_ns, 200_000_000 / 1024);
        let mut delay =
            delay_of(&link.delay, RandomStream::new(5, "link/bottleneck/jitter")).unwrap();
        let mut worst_ns = 0;
        for number in 0..59_000u64 {
            let now_ns = number * 1_000_003;
            let simulated_ns = delay.delay(Time::from_ns(now_ns)).as_ns() - 20_000_000;
            let (cell, beyond_ns) = ((now_ns / step_ns) as usize, now_ns % step_ns);
            let (left, right) = (drawn.jitter[cell].as_ns(), drawn.jitter[cell + 1].as_ns());
            let share = beyond_ns as f64 / step_ns as f64;
            let played_ns = left as f64 + share * (right as f64 - left as f64);
            worst_ns = worst_ns.max(simulated_ns.abs_diff(played_ns as u64));
        }
        assert!(worst_ns < 100_000, "{worst_ns} ns of up to 40 ms");
    }

    #[test]
    fn rates_are_those_that_packets_meet() {
        let spec = AutoregressiveSpec {
            mean_bps: 10_000_000,
            deviation_bps: 3_000_000,
            correlation_ns: 2_000_000_000,
            step_ns: 100_000_000,
            min_bps: 1_000_000,
            max_bps: 19_000_000,
        };
        let link = LinkSpec { capacity: CapacitySpec::Autoregressive(spec), ..link(0) };
        let drawn = link.draw_impairments(5, END, 1).unwrap();
        assert_eq!(drawn.rates.len(), 600);
        assert_ne!(drawn.rates, link.draw_impairments(6, END, 1).unwrap().rates);
        let mut built = link.build::<()>(5).unwrap();
        let mut before = 0.0;
        for (at, rate) in drawn.rates {
            let end = at + Span::from_ns(spec.step_ns);
            let offered_bytes = built.service(end).throughput_bytes;
            assert!((offered_bytes - before - rate.as_bps() as f64 / 80.0).abs() < 1e-3, "{at}");
            before = offered_bytes;
        }
    }

    #[test]
    fn the_number_of_values_is_bounded() {
        let drawn = link(1_000).draw_impairments(5, END, 1_000).unwrap();
        assert_eq!(drawn.jitter.len(), 1_001);
        assert_eq!(drawn.jitter_step.as_ns(), 60_000_000);
        assert!(link(0).draw_impairments(5, END, 1_000).unwrap().jitter.is_empty());
    }

    #[test]
    fn seeds_make_impairments() {
        let drawn = |seed| link(200_000_000).draw_impairments(seed, END, 1 << 16).unwrap();
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1).outages, drawn(2).outages);
        assert!((10..60).contains(&drawn(1).outages.len()));
        let bad = (0..200).filter(|seed| drawn(*seed).loss.bad).count();
        assert!((60..140).contains(&bad), "{bad}");
        assert_eq!(drawn(1).loss.drawn, 1);
    }
}
