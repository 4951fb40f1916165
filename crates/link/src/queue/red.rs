//! Random Early Detection (Floyd, Jacobson 1993) as in Linux: `include/net/red.h`,
//! `net/sched/sch_red.c`. Averages and probabilities are floating-point numbers; Linux uses
//! fixed-point numbers.
//!
//! Another difference: while the queue is idle, its average decays as if `m` packets had arrived
//! (Floyd, Jacobson, section 4). Linux derives the time of a packet from the parameters `avpkt` and
//! `bandwidth`; this queue measures it from its departures.

use jostle_registry::{
    Parameter, ParameterError, ParameterValue, ParameterValues, QueueLimit, RegistryEntry,
};
use jostle_units::{RandomStream, Time};

use super::{Fifo, QueueDiscipline, mark};
use crate::packet::{DropReason, Packet, PacketOutcome};
use crate::parameters::{self, size};
use crate::registry::QueueEntry;

/// Weight of a new packet in the mean transmission time.
const SENDING_TIME_WEIGHT: f64 = 1.0 / 8.0;

const ENTRY: RegistryEntry = RegistryEntry {
    name: "red",
    summary: "Random Early Detection: drops with a probability that rises with the average queue",
    class: "active",
    based_on: &["drop_tail"],
    source: "Floyd, Jacobson: Random Early Detection Gateways for Congestion Avoidance, 1993; \
             Linux include/net/red.h, net/sched/sch_red.c",
    parameters: &[
        parameters::limit(None),
        size("min", 1)
            .summary("average queue length below which no packet is dropped (tc: a third of max)"),
        size("max", 1).summary(
            "average queue length above which all packets are dropped (tc: a quarter of limit)",
        ),
        Parameter::probability("probability", Some(0.02))
            .summary("drop probability when the average reaches max"),
        Parameter::number("weight", 0.002, 1e-9..=1.0)
            .summary("weight of a new sample in the average"),
        parameters::ecn(false),
    ],
};

#[derive(Clone, Copy, Debug, PartialEq)]
struct RedParameters {
    limit: QueueLimit,
    /// Average queue length below which no packet is dropped.
    min_bytes: u64,
    /// Average queue length from which all packets are dropped or marked (without the `gentle`
    /// slope above it, as in Linux). If it equals `min_bytes`, the queue drops or marks at this
    /// single threshold, which `red.h::red_check_params` of Linux allows. With `weight` 1 the
    /// instantaneous length counts, as DCTCP requires.
    max_bytes: u64,
    /// Drop probability at an average of `max_bytes`.
    max_probability: f64,
    /// Weight of a new sample in the average.
    weight: f64,
    /// Mark ECN-capable packets instead of dropping them, also above `max_bytes`.
    ecn: bool,
}

impl RedParameters {
    fn new(values: &ParameterValues) -> Self {
        Self {
            limit: values.limit("limit"),
            min_bytes: values.amount("min"),
            max_bytes: values.amount("max"),
            max_probability: values.number("probability"),
            weight: values.number("weight"),
            ecn: values.bool("ecn"),
        }
    }

    /// Checks that the lower threshold is not above the upper one.
    fn check(values: &ParameterValues) -> Result<(), ParameterError> {
        let Self { min_bytes, max_bytes, .. } = Self::new(values);
        if min_bytes <= max_bytes {
            return Ok(());
        }
        let given = ParameterValue::Integer(i64::try_from(min_bytes).unwrap_or(i64::MAX));
        Err(ENTRY.unfit("min", &given, format!("at most max, {max_bytes} bytes")))
    }
}

/// A FIFO queue with RED.
#[derive(Debug)]
pub struct Red<B> {
    parameters: RedParameters,
    average: AverageQueueLength,
    early: EarlyDropCounter,
    random: RandomStream,
    fifo: Fifo<B>,
}

/// Average queue length.
#[derive(Debug, Default)]
struct AverageQueueLength {
    bytes: f64,
    /// Time since which the queue is empty and the link is idle.
    idle_since: Option<Time>,
    /// Time at which the packet in transmission left the queue.
    sending_since: Option<Time>,
    sending_time_ns: f64,
}

impl AverageQueueLength {
    /// `red.h::red_calc_qavg`.
    fn arrival(&mut self, now: Time, waiting_bytes: u64, weight: f64) {
        match self.idle_since.take() {
            None => self.bytes += weight * (waiting_bytes as f64 - self.bytes),
            // avg ← (1 − w)^m · avg, where m = idle time ÷ transmission time of a packet.
            Some(since) if self.bytes >= 1.0 && self.sending_time_ns > 0.0 => {
                let m = now.since(since).as_ns() as f64 / self.sending_time_ns;
                self.bytes *= libm::pow(1.0 - weight, m);
            }
            Some(_) => self.bytes = 0.0,
        }
    }

    /// Handles a request for the next packet, which implies that the last one has been sent.
    fn departure(&mut self, now: Time, found: bool) {
        if let Some(since) = self.sending_since.take() {
            let time_ns = now.since(since).as_ns() as f64;
            if self.sending_time_ns == 0.0 {
                self.sending_time_ns = time_ns;
            } else {
                self.sending_time_ns += SENDING_TIME_WEIGHT * (time_ns - self.sending_time_ns);
            }
        }
        if found {
            self.sending_since = Some(now);
        } else {
            self.idle_since.get_or_insert(now);
        }
    }
}

/// Spaces early drops evenly: with probability `p` the gap between two drops is uniform in 1 … 1/p
/// instead of geometric (Floyd, Jacobson, section 7, method 2).
#[derive(Debug, Default)]
struct EarlyDropCounter {
    /// Packets since the last early drop; `None` below the lower threshold.
    count: Option<u32>,
    /// Random number that `count · p` must reach.
    bar: f64,
}

impl EarlyDropCounter {
    fn hits(&mut self, probability: f64, random: &mut RandomStream) -> bool {
        let count = match self.count {
            None => {
                self.bar = random.uniform();
                self.count = Some(0);
                return false;
            }
            Some(count) => count.saturating_add(1),
        };
        let hit = probability * f64::from(count) >= self.bar;
        if hit {
            self.bar = random.uniform();
        }
        self.count = Some(if hit { 0 } else { count });
        hit
    }
}

impl<B: Copy + Send + 'static> Red<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: RedParameters::check,
        build: |values, random| Box::new(Self::new(RedParameters::new(values), random)),
    };
}

impl<B> Red<B> {
    fn new(parameters: RedParameters, random: RandomStream) -> Self {
        Self {
            parameters,
            average: AverageQueueLength::default(),
            early: EarlyDropCounter::default(),
            random,
            fifo: Fifo::default(),
        }
    }

    /// Returns whether an arrival is to be marked or dropped, given the average.
    fn strikes(&mut self) -> bool {
        let (min, max) = (self.parameters.min_bytes as f64, self.parameters.max_bytes as f64);
        if self.average.bytes < min || self.average.bytes >= max {
            self.early.count = None;
            return self.average.bytes >= max;
        }
        let share = (self.average.bytes - min) / (max - min);
        self.early.hits(self.parameters.max_probability * share, &mut self.random)
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for Red<B> {
    fn enqueue(&mut self, now: Time, mut packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        let backlog = self.fifo.backlog();
        self.average.arrival(now, backlog.bytes, self.parameters.weight);
        let strikes = self.strikes();
        let marks = strikes && self.parameters.ecn && mark(&mut packet);
        if strikes && !marks {
            outcome.dropped(now, &packet, DropReason::Red);
        } else if !backlog.fits(packet.size_bytes, self.parameters.limit) {
            outcome.dropped(now, &packet, DropReason::Overflow);
        } else {
            if marks {
                outcome.marked(now, &packet, DropReason::Red);
            }
            self.fifo.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        let packet = self.fifo.pop();
        self.average.departure(now, packet.is_some());
        packet
    }

    fn backlog_bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.fifo.backlog().packets
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{RecordedOutcomes, capable, packet};
    use super::*;
    use jostle_units::Span;

    const PARAMETERS: RedParameters = RedParameters {
        limit: QueueLimit::Bytes(1_000_000),
        min_bytes: 30_000,
        max_bytes: 90_000,
        max_probability: 0.02,
        weight: 0.25,
        ecn: false,
    };

    fn red(parameters: RedParameters) -> Red<()> {
        Red::new(parameters, RandomStream::new(1, "red"))
    }

    #[test]
    fn the_average_follows_the_queue_as_found_on_arrival() {
        let (mut queue, mut fates) = (red(PARAMETERS), RecordedOutcomes::default());
        for _ in 0..4 {
            queue.enqueue(Time::ZERO, packet(1000), &mut fates);
        }
        // Found 0, 1000, 2000, 3000 bytes: 0, 250, 687.5, 1265.625.
        assert_eq!(queue.average.bytes, 1265.625);
    }

    #[test]
    fn the_average_decays_while_idle_by_the_packets_that_could_have_been_sent() {
        let (mut queue, mut fates) = (red(PARAMETERS), RecordedOutcomes::default());
        for _ in 0..4 {
            queue.enqueue(Time::ZERO, packet(1000), &mut fates);
        }
        let sending = Span::from_us(80);
        let mut now = Time::ZERO;
        while queue.dequeue(now, &mut fates).is_some() {
            now += sending;
        }
        queue.enqueue(now + Span::from_us(240), packet(1000), &mut fates);
        // Three packet times idle: (1 − ¼)³.
        assert!((queue.average.bytes - 1265.625 * 0.421_875).abs() < 1e-9);
    }

    /// Transmissions of 80 µs and 160 µs have a moving average of 80 + 80 / 8 = 90 µs. 180 µs idle are
    /// two packet times: (1 − ¼)².
    #[test]
    fn the_packet_time_follows_the_departures() {
        let (mut queue, mut fates) = (red(PARAMETERS), RecordedOutcomes::default());
        for _ in 0..4 {
            queue.enqueue(Time::ZERO, packet(1000), &mut fates);
        }
        for at_us in [0, 80, 240, 330, 420] {
            queue.dequeue(Time::from_ns(at_us * 1_000), &mut fates);
        }
        queue.enqueue(Time::from_ns(600_000), packet(1000), &mut fates);
        assert!((queue.average.bytes - 1265.625 * 0.5625).abs() < 1e-9, "{}", queue.average.bytes);
    }

    #[test]
    fn gaps_between_early_drops_are_uniform_up_to_the_inverse_probability() {
        let (mut early, mut random) = (EarlyDropCounter::default(), RandomStream::new(5, "gaps"));
        assert!(!early.hits(0.05, &mut random), "the first packet above the threshold passes");
        let mut gaps = [0u32; 21];
        let mut gap = 0;
        for _ in 0..210_000 {
            gap += 1;
            if early.hits(0.05, &mut random) {
                gaps[gap] += 1;
                gap = 0;
            }
        }
        // Mean gap (1 + 20) ÷ 2 = 10.5: 20,000 drops, 1,000 for each gap of 1 … 20.
        assert_eq!(gaps[0], 0);
        assert!(gaps[1..].iter().all(|n| (870..1_130).contains(n)), "{gaps:?}");
    }

    #[test]
    fn between_the_thresholds_the_probability_rises_linearly() {
        let mut queue = red(RedParameters { max_probability: 0.1, ..PARAMETERS });
        let mut share = |average: f64| {
            queue.average.bytes = average;
            (0..100_000).filter(|_| queue.strikes()).count() as f64 / 1e5
        };
        assert_eq!(share(29_999.0), 0.0);
        // Uniform gaps 1 … 1/p have the mean (1 + 1/p)/2: at p = 0.05 one drop in 10.5.
        assert!((share(60_000.0) - 1.0 / 10.5).abs() < 0.002);
        assert!((share(89_999.0) - 1.0 / 5.5).abs() < 0.004);
        assert_eq!(share(90_000.0), 1.0);
    }

    #[test]
    fn one_threshold_marks_by_the_instantaneous_queue() {
        let step = RedParameters { max_bytes: 30_000, weight: 1.0, ecn: true, ..PARAMETERS };
        let (mut queue, mut fates) = (red(step), RecordedOutcomes::default());
        for _ in 0..40 {
            queue.enqueue(Time::ZERO, capable(Time::ZERO, 1000), &mut fates);
        }
        assert_eq!((fates.marked.len(), fates.dropped.len()), (10, 0));
        queue.enqueue(Time::ZERO, packet(1000), &mut fates);
        assert_eq!(fates.dropped, [(Time::ZERO, DropReason::Red)]);
    }

    #[test]
    fn thresholds_may_be_one_but_not_the_wrong_way_round() {
        let given = |max| {
            [("min", 30_000), ("max", max)]
                .map(|(name, bytes)| (name.to_owned(), ParameterValue::Integer(bytes)))
                .into_iter()
                .chain([("limit".to_owned(), ParameterValue::Limit(QueueLimit::Bytes(90_000)))])
                .collect()
        };
        assert!(Red::<()>::ROW.resolve(&given(30_000)).is_ok());
        let refused = Red::<()>::ROW.resolve(&given(29_999)).unwrap_err();
        let expected = "`red.min` cannot be 30000: at most max, 29999 bytes";
        assert_eq!(refused.to_string(), expected);
    }
}
