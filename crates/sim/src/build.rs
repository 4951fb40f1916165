//! From a RunSpec to links, routes and endpoints.

use jostle_control::registry::{self, Start};
use jostle_control::slow_start::Standard;
use jostle_control::{Controller, SlowStart};
use jostle_path::delay::{Jitter, Quantiles};
use jostle_path::queue::{
    Codel, CodelParameters, DropTail, FqCodel, FqCodelParameters, Limit, OccupancyDrop, Pie,
    PieParameters, Red, RedParameters,
};
use jostle_path::{Capacity, Delay, Link, Loss, QueueDiscipline, capacity, delay, loss};
use jostle_record::{
    Algorithm, CapacitySpec, DelaySpec, FlowSpec, Limit as LimitSpec, LinkSpec, LossSpec, Quantile,
    QueueSpec, RunSpec,
};
use jostle_units::{Rate, Span, Stream, Time};

use crate::Error;
use crate::network::Route;
use crate::receiver::Receiver;
use crate::segment::Segment;
use crate::sender::{Options, Sender};
use crate::source::Source;

/// Both ends of a flow.
pub(crate) struct Ends {
    pub sender: Sender,
    pub receiver: Receiver,
    pub source: Source,
    pub start: Time,
    pub stop: Time,
    /// The flow was stopped before everything it had to send was sent.
    pub cut: bool,
}

fn invalid(what: &str, error: impl std::fmt::Display) -> Error {
    Error::Unbuildable { what: what.to_owned(), why: error.to_string() }
}

pub(crate) fn link(spec: &LinkSpec, seed: u64) -> Result<Link<Segment>, Error> {
    let random = |part: &str| Stream::new(seed, &format!("link/{}/{part}", spec.name));
    let queue = queue(&spec.queue, random("queue")).map_err(|e| invalid(&spec.name, e))?;
    let capacity = capacity_of(&spec.capacity).map_err(|e| invalid(&spec.name, e))?;
    let delay = delay_of(&spec.delay, random("jitter")).map_err(|e| invalid(&spec.name, e))?;
    let mut losses: Vec<Box<dyn Loss>> = Vec::new();
    if let Some(outages) = &spec.outages {
        let durations = quantiles(&outages.durations).map_err(|e| invalid(&spec.name, e))?;
        let every = Span::from_ns(outages.mean_interval_ns);
        let outages = loss::Outages::new(every, durations, random("outages"));
        losses.push(Box::new(outages.map_err(|e| invalid(&spec.name, e))?));
    }
    match spec.loss {
        LossSpec::None => {}
        LossSpec::Independent { probability } => {
            let loss = loss::Independent::new(probability, random("loss"));
            losses.push(Box::new(loss.map_err(|e| invalid(&spec.name, e))?));
        }
        LossSpec::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
            let loss = loss::GilbertElliott::new(
                loss::Transitions { good_to_bad, bad_to_good, loss_good, loss_bad },
                random("loss"),
            );
            losses.push(Box::new(loss.map_err(|e| invalid(&spec.name, e))?));
        }
    }
    Ok(Link::new(queue, capacity, delay, losses))
}

fn limit(spec: LimitSpec) -> Limit {
    match spec {
        LimitSpec::Bytes(bytes) => Limit::Bytes(bytes),
        LimitSpec::Packets(packets) => Limit::Packets(packets),
    }
}

fn queue(
    spec: &QueueSpec,
    random: Stream,
) -> Result<Box<dyn QueueDiscipline<Segment>>, jostle_path::Error> {
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
    })
}

fn capacity_of(spec: &CapacitySpec) -> Result<Box<dyn Capacity>, jostle_path::Error> {
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

fn quantiles(points: &[Quantile]) -> Result<Quantiles, jostle_path::Error> {
    Quantiles::new(points.iter().map(|q| (q.probability, Span::from_ns(q.value_ns))).collect())
}

fn delay_of(spec: &DelaySpec, random: Stream) -> Result<Box<dyn Delay>, jostle_path::Error> {
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

pub(crate) fn route(spec: &FlowSpec) -> Route {
    Route::new(
        &spec.path,
        &spec.reverse_path,
        Span::from_ns(spec.access_delay_ns),
        spec.nic_rate_bps.map(Rate::from_bps),
    )
}

fn slow_start(spec: Option<&Algorithm>, flow: &str) -> Result<Box<dyn SlowStart>, Error> {
    let Some(spec) = spec else { return Ok(Box::new(Standard)) };
    let row = registry::slow_start(&spec.name).ok_or_else(|| {
        invalid(flow, format_args!("there is no slow-start method `{}`", spec.name))
    })?;
    row.create(&spec.parameters).map_err(|e| invalid(flow, e))
}

fn controller(spec: &FlowSpec, seed: u64) -> Result<Box<dyn Controller>, Error> {
    let name = &spec.controller.name;
    let row = registry::controller(name)
        .ok_or_else(|| invalid(&spec.name, format_args!("there is no controller `{name}`")))?;
    if row.start == Start::Own && spec.slow_start.is_some() {
        return Err(invalid(&spec.name, format_args!("`{name}` has a slow start of its own")));
    }
    let start = slow_start(spec.slow_start.as_ref(), &spec.name)?;
    let random = Stream::new(seed, &format!("flow/{}/controller", spec.name));
    row.create(&spec.controller.parameters, start, random).map_err(|e| invalid(&spec.name, e))
}

pub(crate) fn ends(spec: &FlowSpec, position: u32, run: &RunSpec) -> Result<Ends, Error> {
    let options = Options {
        flow: position,
        pacing: spec.pacing,
        ecn: spec.ecn,
        initial_window: spec.initial_window_packets,
    };
    let base_ns: u64 = spec
        .path
        .iter()
        .chain(&spec.reverse_path)
        .map(|&link| run.links[link as usize].delay.steps[0].delay_ns)
        .sum();
    let rtt = Span::from_ns(spec.access_delay_ns + base_ns);
    Ok(Ends {
        sender: Sender::new(options, controller(spec, run.seed)?),
        receiver: Receiver::new(position, spec.receive_window_bytes, rtt),
        source: Source::new(
            spec.source,
            Stream::new(run.seed, &format!("flow/{}/source", spec.name)),
        ),
        start: Time::from_ns(spec.start_ns),
        stop: spec.stop_ns.map_or(Time::NEVER, Time::from_ns),
        cut: false,
    })
}
