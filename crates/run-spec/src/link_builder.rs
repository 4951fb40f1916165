//! Construction of a link from a `LinkSpec`, for any transport header: simulator and emulator use
//! the same link.

use jostle_link::capacity::AutoregressiveParameters;
use jostle_link::delay::{Jitter, Quantiles};
use jostle_link::queue::{AckThinning, CODEPOINTS, Class, ClassMap, Drr, Prio};
use jostle_link::{
    Capacity, Delay, Error, FrameAggregation, FrameLimits, Framing, Link, Loss, QueueDiscipline,
    ServiceRate, TransportHeader, capacity, delay, loss, registry,
};
use jostle_units::{RandomStream, Rate, Span, Time};

use crate::{
    AckThinningSpec, AutoregressiveSpec, CapacitySpec, ClassSpec, DelaySpec, FramesSpec, LinkPart,
    LinkSpec, Quantile,
};

/// Service of a link whose service rate is constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantService {
    /// Service rate.
    pub rate_bps: u64,
    /// Rate of the link, at which a burst can leave.
    pub peak_bps: u64,
    /// Bytes that can leave at the rate of the link after a pause: a full token bucket.
    pub burst_bytes: u64,
}

impl ConstantService {
    /// Returns the shortest time in which the idle link sends this many bytes.
    pub fn shortest_time_s(&self, bytes: f64) -> f64 {
        if self.burst_bytes == 0 {
            return bytes * 8.0 / self.rate_bps as f64;
        }
        let shaped_s = (bytes - self.burst_bytes as f64) * 8.0 / self.rate_bps as f64;
        shaped_s.max(bytes * 8.0 / self.peak_bps as f64)
    }
}

impl LinkSpec {
    /// Builds the link. Its random streams depend on `seed` and its name.
    ///
    /// # Errors
    /// If the specification is invalid; never if [`validate`](Self::validate) passes.
    pub fn build<B: TransportHeader + Copy + Send + 'static>(
        &self,
        seed: u64,
    ) -> Result<Link<B>, Error> {
        let random = |part: &str| RandomStream::new(seed, &self.stream(part));
        // Outages are first, so that a packet sent in an outage is attributed to it.
        let mut losses: Vec<Box<dyn Loss>> = Vec::new();
        if let Some(spec) = &self.outages {
            let every = Span::from_ns(spec.mean_interval_ns);
            let durations = quantiles(&spec.durations)?;
            losses.push(Box::new(loss::Outages::new(every, durations, random("outages"))?));
        }
        if let Some(loss) = &self.loss {
            losses.push(registry::loss(&loss.kind)?.create(&loss.parameters, random("loss"))?);
        }
        if !self.loss_steps.is_empty() {
            let steps = self.loss_steps.iter();
            let steps = steps.map(|step| (Time::from_ns(step.at_ns), step.probability)).collect();
            losses.push(Box::new(loss::Steps::new(steps, random("loss_steps"))?));
        }
        let mut queue = self.queue(&random)?;
        if let Some(AckThinningSpec { most, hold_ns }) = self.ack_thinning {
            queue = Box::new(AckThinning::new(queue, most, Span::from_ns(hold_ns)));
        }
        let link = Link::new(
            queue,
            capacity_of(&self.capacity, random("capacity"))?,
            delay_of(&self.delay, random("jitter"))?,
            losses,
        );
        let link = link.with_service_rate(self.service_rate(seed)?);
        if let CapacitySpec::Tunnel { .. } = self.capacity {
            return Ok(link.served_on_demand());
        }
        let mut link = self.with_faults_and_grants(link, &random);
        let framing = self.framing.map_or(Framing::NONE, Framing::from);
        if framing != Framing::NONE {
            link = link.with_framing(framing);
        }
        Ok(match &self.frames {
            None => link,
            Some(spec) => {
                let contention = quantiles(&spec.contention)?;
                let random = random("contention");
                let frames = FrameAggregation::new(spec.packets, spec.bytes, contention, random);
                link.with_frames(frames.with_framing(framing))
            }
        })
    }

    /// Builds the service rate of the link, which does not depend on the state of a [`Link`].
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    pub fn service_rate(&self, seed: u64) -> Result<ServiceRate, Error> {
        let capacity = RandomStream::new(seed, &self.stream("capacity"));
        self.service_rate_of(capacity_of(&self.capacity, capacity)?)
    }

    fn service_rate_of(&self, capacity: Box<dyn Capacity>) -> Result<ServiceRate, Error> {
        let random = |part: &str| RandomStream::new(0, &self.stream(part));
        let frames = match &self.frames {
            None => None,
            Some(FramesSpec { packets, bytes, contention }) => Some(FrameLimits {
                packets: *packets,
                bytes: *bytes,
                mean_contention_s: quantiles(contention)?.mean_s(),
            }),
        };
        let rate = ServiceRate::new(capacity, self.queue::<()>(&random)?.shapers(), frames);
        Ok(rate.with_framing(self.framing.map_or(Framing::NONE, Framing::from)))
    }

    /// Returns the service of the link for full-sized packets, if its rate never changes: the
    /// capacity is constant, or always above the rate of the shapers.
    pub fn constant_service(&self) -> Option<ConstantService> {
        if let CapacitySpec::Tunnel { .. } = self.capacity {
            return None;
        }
        let (least_bps, peak_bps) = self.capacity.bounds_bps();
        let rate = self.service_rate_of(Box::new(capacity::Constant::new(Rate::ZERO))).ok()?;
        let bps = |capacity_bps: u64| rate.of_capacity(capacity_bps as f64).round() as u64;
        (bps(least_bps) == bps(peak_bps)).then(|| ConstantService {
            rate_bps: bps(peak_bps),
            peak_bps: rate.of_burst(peak_bps as f64).round() as u64,
            burst_bytes: rate.burst_bytes(),
        })
    }

    fn queue<B: TransportHeader + Copy + Send + 'static>(
        &self,
        random: &dyn Fn(&str) -> RandomStream,
    ) -> Result<Box<dyn QueueDiscipline<B>>, Error> {
        let create =
            |part: &LinkPart, random| registry::queue(&part.kind)?.create(&part.parameters, random);
        let Some(specs) = &self.classes else { return create(&self.queue, random("queue")) };
        let mut classes = Vec::with_capacity(specs.len());
        for spec in specs {
            let queue = create(&spec.queue, random(&format!("queue/{}", spec.name)))?;
            classes.push(Class { quantum_bytes: spec.quantum_bytes, queue });
        }
        let map = class_map(specs);
        Ok(match self.queue.kind.as_str() {
            PRIO => Box::new(Prio::of_classes(classes, map)),
            _ => Box::new(Drr::of_classes(classes, map)),
        })
    }

    /// Returns the name of the random stream of a link component.
    pub fn stream(&self, part: &str) -> String {
        format!("link/{}/{part}", self.name)
    }
}

/// Name of the discipline whose classes have strict priority. Other classes take turns.
pub(crate) const PRIO: &str = "prio";

fn class_map(specs: &[ClassSpec]) -> ClassMap {
    let last = specs.iter().flat_map(|class| &class.flows).max().copied();
    let rest = specs.iter().position(|class| class.dscp.is_empty());
    let rest = rest.unwrap_or(specs.len().saturating_sub(1)) as u8;
    let mut map = ClassMap {
        by_flow: vec![0; last.map_or(0, |flow| flow.index() + 1)],
        by_dscp: [rest; CODEPOINTS],
    };
    for (index, spec) in (0..).zip(specs) {
        spec.flows.iter().for_each(|flow| map.by_flow[flow.index()] = u32::from(index));
        spec.dscp.iter().for_each(|dscp| map.by_dscp[usize::from(*dscp) % CODEPOINTS] = index);
    }
    map
}

/// Builds the capacity of a link.
///
/// # Errors
/// If a parameter is out of range.
fn capacity_of(spec: &CapacitySpec, random: RandomStream) -> Result<Box<dyn Capacity>, Error> {
    Ok(match spec {
        CapacitySpec::Constant { rate_bps } => {
            Box::new(capacity::Constant::new(Rate::from_bps(*rate_bps)))
        }
        CapacitySpec::Steps { steps } => {
            let steps = steps.iter().map(|s| (Time::from_ns(s.at_ns), Rate::from_bps(s.rate_bps)));
            Box::new(capacity::Steps::new(steps.collect())?)
        }
        CapacitySpec::Trace { opportunities_ms, opportunity_bytes } => {
            Box::new(capacity::DeliveryTrace::new(opportunities_ms, *opportunity_bytes)?)
        }
        CapacitySpec::Autoregressive(spec) => {
            Box::new(capacity::Autoregressive::new(spec.process(), random)?)
        }
        // The connection takes the packets.
        CapacitySpec::Tunnel { .. } => Box::new(capacity::Constant::new(Rate::ZERO)),
    })
}

impl CapacitySpec {
    /// Returns the lowest and the highest long-term rate. Of a trace, the highest is its mean, and
    /// the lowest is 0.
    pub(crate) fn bounds_bps(&self) -> (u64, u64) {
        match self {
            Self::Constant { rate_bps } => (*rate_bps, *rate_bps),
            Self::Steps { steps } => {
                let rates = || steps.iter().map(|step| step.rate_bps);
                (rates().min().unwrap_or(0), rates().max().unwrap_or(0))
            }
            Self::Trace { opportunities_ms, opportunity_bytes } => {
                let bits = opportunities_ms.len() as u128 * u128::from(*opportunity_bytes) * 8;
                let period_ms = u128::from(opportunities_ms.last().copied().unwrap_or(0).max(1));
                (0, u64::try_from((bits * 1_000).div_ceil(period_ms)).unwrap_or(u64::MAX))
            }
            Self::Autoregressive(spec) => (spec.min_bps, spec.max_bps),
            // It depends on links that are not known here: see `RunSpec::bounds_bps`.
            Self::Tunnel { .. } => (0, 0),
        }
    }
}

impl AutoregressiveSpec {
    pub(crate) fn process(&self) -> AutoregressiveParameters {
        AutoregressiveParameters {
            mean: Rate::from_bps(self.mean_bps),
            deviation: Rate::from_bps(self.deviation_bps),
            correlation: Span::from_ns(self.correlation_ns),
            step: Span::from_ns(self.step_ns),
            min: Rate::from_bps(self.min_bps),
            max: Rate::from_bps(self.max_bps),
        }
    }
}

pub(crate) fn quantiles(points: &[Quantile]) -> Result<Quantiles, Error> {
    Quantiles::new(points.iter().map(|q| (q.probability, Span::from_ns(q.value_ns))).collect())
}

pub(crate) fn delay_of(spec: &DelaySpec, random: RandomStream) -> Result<Box<dyn Delay>, Error> {
    let steps = || {
        let steps = spec.steps.iter();
        let steps = steps.map(|step| (Time::from_ns(step.at_ns), Span::from_ns(step.delay_ns)));
        delay::Steps::new(steps.collect())
    };
    Ok(match (&spec.jitter, &spec.steps[..]) {
        (Some(jitter), _) => Box::new(Jitter::new(
            steps()?,
            quantiles(&jitter.quantiles)?,
            Span::from_ns(jitter.correlation_ns),
            jitter.reorder,
            random,
        )),
        (None, [only]) => Box::new(delay::Constant::new(Span::from_ns(only.delay_ns))),
        (None, _) => Box::new(steps()?),
    })
}
