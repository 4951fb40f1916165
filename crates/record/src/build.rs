//! From a LinkSpec to a link, whatever its packets carry: the simulator and the emulator drive the
//! same one.

use jostle_path::delay::{Jitter, Quantiles};
use jostle_path::queue::{
    Codel, CodelParameters, DropTail, DualPi2, DualPi2Parameters, FqCodel, FqCodelParameters,
    Limit, OccupancyDrop, Pie, PieParameters, Red, RedParameters, Scheduling, StepMark,
};
use jostle_path::{Capacity, Delay, Error, Link, Loss, QueueDiscipline, capacity, delay, loss};
use jostle_units::{Rate, Span, Stream, Time};

use crate::{
    CapacitySpec, DelaySpec, Limit as LimitSpec, LinkSpec, LossSpec, Quantile, QueueSpec,
    SchedulerSpec,
};

impl LinkSpec {
    /// The link that this describes. Its random streams follow from `seed` and its name.
    ///
    /// # Errors
    /// What of it makes no sense; nothing, if [`validate`](Self::validate) passes.
    pub fn build<B: Copy + Send + 'static>(&self, seed: u64) -> Result<Link<B>, Error> {
        let random = |part: &str| Stream::new(seed, &self.stream(part));
        // Outages come first: what is sent in one is put down to it.
        let mut losses: Vec<Box<dyn Loss>> = Vec::new();
        if let Some(spec) = &self.outages {
            let every = Span::from_ns(spec.mean_interval_ns);
            let durations = quantiles(&spec.durations)?;
            losses.push(Box::new(loss::Outages::new(every, durations, random("outages"))?));
        }
        match self.loss {
            LossSpec::None => {}
            LossSpec::Independent { probability } => {
                losses.push(Box::new(loss::Independent::new(probability, random("loss"))?));
            }
            LossSpec::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let transitions =
                    loss::Transitions { good_to_bad, bad_to_good, loss_good, loss_bad };
                losses.push(Box::new(loss::GilbertElliott::new(transitions, random("loss"))?));
            }
        }
        Ok(Link::new(
            queue(&self.queue, random("queue"))?,
            capacity_of(&self.capacity)?,
            delay_of(&self.delay, random("jitter"))?,
            losses,
        ))
    }

    /// Name of the random stream that a part of the link draws from.
    pub(crate) fn stream(&self, part: &str) -> String {
        format!("link/{}/{part}", self.name)
    }
}

fn limit(spec: LimitSpec) -> Limit {
    match spec {
        LimitSpec::Bytes(bytes) => Limit::Bytes(bytes),
        LimitSpec::Packets(packets) => Limit::Packets(packets),
    }
}

fn queue<B: Copy + Send + 'static>(
    spec: &QueueSpec,
    random: Stream,
) -> Result<Box<dyn QueueDiscipline<B>>, Error> {
    let span = Span::from_ns;
    Ok(match *spec {
        QueueSpec::DropTail { limit: most } => Box::new(DropTail::new(limit(most))),
        QueueSpec::OccupancyDrop { limit: most, threshold_bytes, probability } => {
            Box::new(OccupancyDrop::new(limit(most), threshold_bytes, probability, random)?)
        }
        QueueSpec::Red { limit: most, min_bytes, max_bytes, max_probability, weight, ecn } => {
            Box::new(Red::new(
                RedParameters {
                    limit: limit(most),
                    min_bytes,
                    max_bytes,
                    max_probability,
                    weight,
                    ecn,
                },
                random,
            )?)
        }
        QueueSpec::Codel { limit: most, target_ns, interval_ns, ecn } => {
            Box::new(Codel::new(CodelParameters {
                limit: limit(most),
                target: span(target_ns),
                interval: span(interval_ns),
                ecn,
            })?)
        }
        QueueSpec::FqCodel {
            limit_packets,
            queues,
            quantum_bytes,
            target_ns,
            interval_ns,
            ecn,
        } => Box::new(FqCodel::new(FqCodelParameters {
            limit_packets,
            queues,
            quantum_bytes,
            target: span(target_ns),
            interval: span(interval_ns),
            ecn,
        })?),
        QueueSpec::Pie { limit: most, target_ns, update_ns, alpha, beta, ecn } => {
            Box::new(Pie::new(
                PieParameters {
                    limit: limit(most),
                    target: span(target_ns),
                    update: span(update_ns),
                    alpha,
                    beta,
                    ecn,
                },
                random,
            )?)
        }
        QueueSpec::StepMark { limit: most, threshold_ns } => {
            Box::new(StepMark::new(limit(most), span(threshold_ns)))
        }
        QueueSpec::Dualpi2 {
            limit: most,
            target_ns,
            update_ns,
            alpha,
            beta,
            coupling,
            threshold_ns,
            ramp_ns,
            scheduler,
            classic_share,
            time_shift_ns,
        } => {
            let scheduling = match scheduler {
                SchedulerSpec::Weighted => Scheduling::Weighted(classic_share),
                SchedulerSpec::TimeShifted => Scheduling::TimeShifted(span(time_shift_ns)),
            };
            let parameters = DualPi2Parameters {
                limit: limit(most),
                target: span(target_ns),
                update: span(update_ns),
                alpha,
                beta,
                coupling,
                threshold: span(threshold_ns),
                ramp: span(ramp_ns),
                scheduling,
            };
            Box::new(DualPi2::new(parameters, random)?)
        }
    })
}

pub(crate) fn capacity_of(spec: &CapacitySpec) -> Result<Box<dyn Capacity>, Error> {
    Ok(match spec {
        CapacitySpec::Constant { rate_bps } => {
            Box::new(capacity::Constant::new(Rate::from_bps(*rate_bps)))
        }
        CapacitySpec::Steps { steps } => {
            let steps = steps.iter().map(|s| (Time::from_ns(s.at_ns), Rate::from_bps(s.rate_bps)));
            Box::new(capacity::Steps::new(steps.collect())?)
        }
        CapacitySpec::Trace { opportunities_ms, opportunity_bytes } => {
            Box::new(capacity::Trace::new(opportunities_ms, *opportunity_bytes)?)
        }
    })
}

pub(crate) fn quantiles(points: &[Quantile]) -> Result<Quantiles, Error> {
    Quantiles::new(points.iter().map(|q| (q.probability, Span::from_ns(q.value_ns))).collect())
}

pub(crate) fn delay_of(spec: &DelaySpec, random: Stream) -> Result<Box<dyn Delay>, Error> {
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
