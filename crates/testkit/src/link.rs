//! Links from code.

use std::collections::BTreeMap;

use jostle_registry::ParameterValue;
pub use jostle_registry::QueueLimit as PacketLimit;
use jostle_run_spec::{
    CapacitySpec, DelaySpec, DelayStep, FaultSpec, FaultsSpec, JitterSpec, LinkPart, LinkSpec,
    LossStep, NumberedFaultSpec, NumberedFaultsSpec, OccurrenceSpec, Quantile, RateStep,
    ReorderingSpec,
};
use jostle_units::{FULL_PACKET_BYTES, Rate, Span};

/// One direction of a link: a queue, then a rate, then a delay, then losses and faults.
///
/// Sizes on the link include the 14 bytes of an Ethernet header, as with Linux's `tc`. A link has a
/// drop-tail queue of one BDP, at least 10 packets, unless [`queue`](Self::queue) is called. Use
/// [`spec`](Self::spec) for everything that has no method.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    spec: LinkSpec,
}

impl From<LinkSpec> for Link {
    fn from(spec: LinkSpec) -> Self {
        Self { spec }
    }
}

impl Link {
    /// Creates a link with a constant rate and delay.
    pub fn new(rate: Rate, delay: Span) -> Self {
        let bdp_bytes = rate.bytes_in(delay).saturating_mul(2);
        let packets = bdp_bytes.div_ceil(u64::from(FULL_PACKET_BYTES)).clamp(10, 1_000_000);
        let spec = LinkSpec {
            name: "link".to_owned(),
            capacity: CapacitySpec::Constant { rate_bps: rate.as_bps() },
            queue: link_part(
                "drop_tail",
                [("limit", ParameterValue::Limit(PacketLimit::Packets(packets)))],
            ),
            classes: None,
            ack_thinning: None,
            delay: DelaySpec {
                steps: vec![DelayStep { at_ns: 0, delay_ns: delay.as_ns() }],
                jitter: None,
            },
            frames: None,
            loss: None,
            loss_steps: Vec::new(),
            outages: None,
            faults: None,
            netem: None,
            grants: None,
            framing: None,
            quick_start: None,
        };
        Self { spec }
    }

    /// Returns the specification, in the form of a run specification, for changes.
    pub fn spec(&mut self) -> &mut LinkSpec {
        &mut self.spec
    }

    /// Returns the specification under this name.
    pub(crate) fn named(&self, name: String) -> LinkSpec {
        LinkSpec { name, ..self.spec.clone() }
    }

    /// Sets the length of a drop-tail queue.
    #[must_use]
    pub fn queue(self, limit: PacketLimit) -> Self {
        self.discipline("drop_tail", [("limit", ParameterValue::Limit(limit))])
    }

    /// Sets a queue discipline of jostle's registry, such as `fq_codel` or `dualpi2`, with
    /// parameters: times in ns, rates in bit/s, sizes in bytes. Parameters that are left out have
    /// their defaults.
    #[must_use]
    pub fn discipline<'a>(
        mut self,
        kind: &str,
        parameters: impl IntoIterator<Item = (&'a str, ParameterValue)>,
    ) -> Self {
        self.spec.queue = link_part(kind, parameters);
        self
    }

    /// Loses each packet with this probability.
    #[must_use]
    pub fn loss(mut self, probability: f64) -> Self {
        self.spec.loss =
            Some(link_part("independent", [("probability", ParameterValue::Number(probability))]));
        self
    }

    /// Loses each packet with a probability that changes over time: from each time on, counted from
    /// the start. 1 is an outage.
    #[must_use]
    pub fn loss_steps(mut self, steps: impl IntoIterator<Item = (Span, f64)>) -> Self {
        let step = |(at, probability): (Span, f64)| LossStep { at_ns: at.as_ns(), probability };
        self.spec.loss_steps = steps.into_iter().map(step).collect();
        if self.spec.loss_steps.first().is_some_and(|first| first.at_ns > 0) {
            self.spec.loss_steps.insert(0, LossStep { at_ns: 0, probability: 0.0 });
        }
        self
    }

    /// Sets a rate that changes over time: from each time on, counted from the start. The first
    /// time is 0. A rate of 0 stops the link.
    #[must_use]
    pub fn rate_steps(mut self, steps: impl IntoIterator<Item = (Span, Rate)>) -> Self {
        let step =
            |(at, rate): (Span, Rate)| RateStep { at_ns: at.as_ns(), rate_bps: rate.as_bps() };
        self.spec.capacity = CapacitySpec::Steps { steps: steps.into_iter().map(step).collect() };
        self
    }

    /// Changes the delay from each time on, counted from the start.
    #[must_use]
    pub fn delay_steps(mut self, steps: impl IntoIterator<Item = (Span, Span)>) -> Self {
        let step =
            |(at, delay): (Span, Span)| DelayStep { at_ns: at.as_ns(), delay_ns: delay.as_ns() };
        self.spec.delay.steps.truncate(1);
        self.spec.delay.steps.extend(steps.into_iter().map(step));
        self
    }

    /// Delays each packet by up to `most` longer, uniformly. With `reorder`, packets overtake each
    /// other.
    #[must_use]
    pub fn jitter(mut self, most: Span, reorder: bool) -> Self {
        let quantile = |probability, value: Span| Quantile { probability, value_ns: value.as_ns() };
        let quantiles = vec![quantile(0.0, Span::ZERO), quantile(1.0, most)];
        self.spec.delay.jitter = Some(JitterSpec { quantiles, correlation_ns: 0, reorder });
        self
    }

    /// Delivers packets later by `late` with this probability. Later packets overtake them.
    #[must_use]
    pub fn reorder(mut self, probability: f64, late: Span) -> Self {
        let occurrence = occurrence(probability);
        self.faults().reorder =
            Some(ReorderingSpec { occurrence, gap: 1, late_ns: Some(late.as_ns()) });
        self
    }

    /// Delivers packets twice with this probability.
    #[must_use]
    pub fn duplicate(mut self, probability: f64) -> Self {
        self.faults().duplicate = Some(occurrence(probability));
        self
    }

    /// Corrupts packets with this probability. A [`UdpHost`](crate::UdpHost) does not see them.
    #[must_use]
    pub fn corrupt(mut self, probability: f64) -> Self {
        self.faults().corrupt = Some(occurrence(probability));
        self
    }

    /// Adds a fault of the packets with these numbers, counted from 1 in the order in which the
    /// link sends them.
    #[must_use]
    pub fn fault(mut self, fault: FaultSpec, numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut numbers: Vec<_> = numbers.into_iter().collect();
        numbers.sort_unstable();
        let faults =
            numbers.into_iter().map(|number| NumberedFaultSpec { number, fault }).collect();
        self.faults().packets.push(NumberedFaultsSpec { flow: None, class: None, faults });
        self
    }

    /// Loses the packets with these numbers, counted from 1.
    #[must_use]
    pub fn lose(self, numbers: impl IntoIterator<Item = u64>) -> Self {
        self.fault(FaultSpec::Lose, numbers)
    }

    /// Marks the ECN-capable packets with these numbers, counted from 1.
    #[must_use]
    pub fn mark(self, numbers: impl IntoIterator<Item = u64>) -> Self {
        self.fault(FaultSpec::Mark, numbers)
    }

    fn faults(&mut self) -> &mut FaultsSpec {
        self.spec.faults.get_or_insert_default()
    }
}

/// Returns an event without correlation.
const fn occurrence(probability: f64) -> OccurrenceSpec {
    OccurrenceSpec { probability, correlation: 0.0 }
}

fn link_part<'a>(
    kind: &str,
    parameters: impl IntoIterator<Item = (&'a str, ParameterValue)>,
) -> LinkPart {
    let parameters: BTreeMap<_, _> =
        parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    LinkPart { kind: kind.to_owned(), parameters }
}
