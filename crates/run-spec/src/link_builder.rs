//! Construction of a link from a `LinkSpec`, for any transport header: simulator and emulator use
//! the same link.

use jostle_link::capacity::AutoregressiveParameters;
use jostle_link::delay::{Jitter, Quantiles};
use jostle_link::queue::{AckThinning, Class, Drr};
use jostle_link::{
    Capacity, Delay, Error, FrameAggregation, Link, Loss, QueueDiscipline, TransportHeader,
    capacity, delay, loss, registry,
};
use jostle_units::{RandomStream, Rate, Span, Time};

use crate::{
    AckThinningSpec, AutoregressiveSpec, CapacitySpec, DelaySpec, LinkPart, LinkSpec, Quantile,
};

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
        Ok(match &self.frames {
            None => link,
            Some(spec) => {
                let contention = quantiles(&spec.contention)?;
                let random = random("contention");
                link.with_frames(FrameAggregation::new(
                    spec.packets,
                    spec.bytes,
                    contention,
                    random,
                ))
            }
        })
    }

    fn queue<B: TransportHeader + Copy + Send + 'static>(
        &self,
        random: &dyn Fn(&str) -> RandomStream,
    ) -> Result<Box<dyn QueueDiscipline<B>>, Error> {
        let create =
            |part: &LinkPart, random| registry::queue(&part.kind)?.create(&part.parameters, random);
        let Some(specs) = &self.classes else { return create(&self.queue, random("queue")) };
        let last = specs.iter().flat_map(|class| &class.flows).max().copied();
        let mut class_of = vec![0; last.map_or(0, |flow| flow as usize + 1)];
        let mut classes = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            spec.flows.iter().for_each(|flow| class_of[*flow as usize] = index as u32);
            let queue = create(&spec.queue, random(&format!("queue/{}", spec.name)))?;
            classes.push(Class { quantum_bytes: spec.quantum_bytes, queue });
        }
        Ok(Box::new(Drr::of_classes(classes, class_of)))
    }

    /// Returns the name of the random stream of a link component.
    pub fn stream(&self, part: &str) -> String {
        format!("link/{}/{part}", self.name)
    }
}

/// Builds the capacity of a link.
///
/// # Errors
/// If a parameter is out of range.
pub fn capacity_of(spec: &CapacitySpec, random: RandomStream) -> Result<Box<dyn Capacity>, Error> {
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
    })
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
