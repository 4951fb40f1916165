//! Which links make sense.

use jostle_units::FULL_PACKET_BYTES;

use super::{MAX_BPS, MAX_BYTES, MAX_NS, SpecError, probability, steps, within};
use crate::{
    CapacitySpec, DelaySpec, Limit, LinkSpec, LossSpec, OutageSpec, Quantile, QueueSpec,
    QuickStartSpec,
};

/// Linux: `sch_fq_codel` takes up to 65536 flows …
const MAX_QUEUES: u32 = 65_536;
/// … and no quantum below 256 bytes: it would spend its time turning rounds.
const MIN_QUANTUM_BYTES: u32 = 256;

pub(super) fn check(at: &str, link: &LinkSpec) -> Result<(), SpecError> {
    capacity(&format!("{at}.capacity"), &link.capacity)?;
    queue(&format!("{at}.queue"), &link.queue)?;
    delay(&format!("{at}.delay"), &link.delay)?;
    loss(&format!("{at}.loss"), &link.loss)?;
    if let Some(outages) = &link.outages {
        outage(&format!("{at}.outages"), outages)?;
    }
    if let Some(QuickStartSpec { allowance_bps, interval_ns }) = link.quick_start {
        within(&format!("{at}.quick_start.allowance_bps"), allowance_bps, 1..=MAX_BPS)?;
        within(&format!("{at}.quick_start.interval_ns"), interval_ns, 1..=MAX_NS)?;
    }
    Ok(())
}

fn capacity(at: &str, capacity: &CapacitySpec) -> Result<(), SpecError> {
    match capacity {
        CapacitySpec::Constant { rate_bps } => {
            within(&format!("{at}.rate_bps"), *rate_bps, 1..=MAX_BPS)
        }
        CapacitySpec::Steps { steps: list } => {
            let at = format!("{at}.steps");
            steps(&at, list.iter().map(|step| step.at_ns))?;
            for (i, step) in list.iter().enumerate() {
                within(&format!("{at}[{i}].rate_bps"), step.rate_bps, 0..=MAX_BPS)?;
            }
            if list.iter().all(|step| step.rate_bps == 0) {
                return Err(SpecError::unfit(&at, "0 bit/s throughout", "a step that sends"));
            }
            Ok(())
        }
        CapacitySpec::Trace { opportunities_ms, opportunity_bytes } => {
            within(&format!("{at}.opportunity_bytes"), *opportunity_bytes, 1..=u32::MAX)?;
            trace(&format!("{at}.opportunities_ms"), opportunities_ms)?;
            within(&format!("{at} (mean rate in bit/s)"), peak_bps(capacity), 1..=MAX_BPS)
        }
    }
}

fn trace(at: &str, opportunities_ms: &[u32]) -> Result<(), SpecError> {
    // Mahimahi: the last line is the period after which the trace repeats.
    if opportunities_ms.last().is_none_or(|last| *last == 0) {
        let expected = "at least one opportunity after 0 ms, the end of the trace's period";
        return Err(SpecError::unfit(at, "without length", expected));
    }
    match opportunities_ms.iter().zip(&opportunities_ms[1..]).position(|(a, b)| a > b) {
        None => Ok(()),
        Some(i) => Err(SpecError::unfit(
            &format!("{at}[{}]", i + 1),
            opportunities_ms[i + 1],
            format!("at least {}, that of the opportunity before it", opportunities_ms[i]),
        )),
    }
}

/// The rate that a capacity never exceeds for long: that of its fastest step, or the mean of its
/// trace.
pub(super) fn peak_bps(capacity: &CapacitySpec) -> u64 {
    match capacity {
        CapacitySpec::Constant { rate_bps } => *rate_bps,
        CapacitySpec::Steps { steps } => steps.iter().map(|step| step.rate_bps).max().unwrap_or(0),
        CapacitySpec::Trace { opportunities_ms, opportunity_bytes } => {
            let bits = opportunities_ms.len() as u128 * u128::from(*opportunity_bytes) * 8;
            let period_ms = u128::from(opportunities_ms.last().copied().unwrap_or(0).max(1));
            u64::try_from((bits * 1_000).div_ceil(period_ms)).unwrap_or(u64::MAX)
        }
    }
}

fn queue(at: &str, queue: &QueueSpec) -> Result<(), SpecError> {
    let name = |key: &str| format!("{at}.{key}");
    match *queue {
        QueueSpec::DropTail { limit } => limit_holds_a_packet(at, limit),
        QueueSpec::OccupancyDrop { limit, threshold_bytes, probability: p } => {
            limit_holds_a_packet(at, limit)?;
            within(&name("threshold_bytes"), threshold_bytes, 0..=MAX_BYTES)?;
            probability(&name("probability"), p)
        }
        QueueSpec::Red { limit, min_bytes, max_bytes, max_probability, weight, ecn: _ } => {
            limit_holds_a_packet(at, limit)?;
            within(&name("max_bytes"), max_bytes, 2..=MAX_BYTES)?;
            within(&name("min_bytes"), min_bytes, 1..=max_bytes - 1)?;
            probability(&name("max_probability"), max_probability)?;
            positive(&name("weight"), weight, 1.0)
        }
        QueueSpec::Codel { limit, target_ns, interval_ns, ecn: _ } => {
            limit_holds_a_packet(at, limit)?;
            within(&name("target_ns"), target_ns, 1..=MAX_NS)?;
            within(&name("interval_ns"), interval_ns, 1..=MAX_NS)
        }
        QueueSpec::FqCodel {
            limit_packets,
            queues,
            quantum_bytes,
            target_ns,
            interval_ns,
            ecn: _,
        } => {
            within(&name("limit_packets"), limit_packets, 1..=MAX_BYTES)?;
            within(&name("queues"), queues, 1..=MAX_QUEUES)?;
            within(&name("quantum_bytes"), quantum_bytes, MIN_QUANTUM_BYTES..=u32::MAX)?;
            within(&name("target_ns"), target_ns, 1..=MAX_NS)?;
            within(&name("interval_ns"), interval_ns, 1..=MAX_NS)
        }
        QueueSpec::Pie { limit, target_ns, update_ns, alpha, beta, ecn: _ } => {
            limit_holds_a_packet(at, limit)?;
            within(&name("target_ns"), target_ns, 1..=MAX_NS)?;
            within(&name("update_ns"), update_ns, 1..=MAX_NS)?;
            within(&name("alpha"), alpha, 0.0..=f64::MAX)?;
            within(&name("beta"), beta, 0.0..=f64::MAX)
        }
        QueueSpec::StepMark { limit, threshold_ns } => {
            limit_holds_a_packet(at, limit)?;
            within(&name("threshold_ns"), threshold_ns, 1..=MAX_NS)
        }
        QueueSpec::Dualpi2 {
            limit,
            target_ns,
            update_ns,
            alpha,
            beta,
            coupling,
            threshold_ns,
            ramp_ns,
            scheduler: _,
            classic_share,
            time_shift_ns,
        } => {
            limit_holds_a_packet(at, limit)?;
            within(&name("target_ns"), target_ns, 1..=MAX_NS)?;
            within(&name("update_ns"), update_ns, 1..=MAX_NS)?;
            within(&name("alpha"), alpha, 0.0..=f64::MAX)?;
            within(&name("beta"), beta, 0.0..=f64::MAX)?;
            within(&name("coupling"), coupling, 0.0..=f64::MAX)?;
            within(&name("threshold_ns"), threshold_ns, 1..=MAX_NS)?;
            within(&name("ramp_ns"), ramp_ns, 0..=MAX_NS)?;
            probability(&name("classic_share"), classic_share)?;
            within(&name("time_shift_ns"), time_shift_ns, 1..=MAX_NS)
        }
    }
}

/// A queue that cannot hold one full packet lets nothing through.
fn limit_holds_a_packet(at: &str, limit: Limit) -> Result<(), SpecError> {
    match limit {
        Limit::Bytes(bytes) => {
            within(&format!("{at}.limit.bytes"), bytes, u64::from(FULL_PACKET_BYTES)..=MAX_BYTES)
        }
        Limit::Packets(packets) => within(&format!("{at}.limit.packets"), packets, 1..=MAX_BYTES),
    }
}

/// More than 0, at most `max`.
fn positive(at: &str, given: f64, max: f64) -> Result<(), SpecError> {
    if given > 0.0 && given <= max {
        return Ok(());
    }
    Err(SpecError::unfit(at, given, format!("more than 0, at most {max}")))
}

fn delay(at: &str, delay: &DelaySpec) -> Result<(), SpecError> {
    let list = format!("{at}.steps");
    steps(&list, delay.steps.iter().map(|step| step.at_ns))?;
    for (i, step) in delay.steps.iter().enumerate() {
        within(&format!("{list}[{i}].delay_ns"), step.delay_ns, 0..=MAX_NS)?;
    }
    let Some(jitter) = &delay.jitter else { return Ok(()) };
    quantiles(&format!("{at}.jitter.quantiles"), &jitter.quantiles)?;
    within(&format!("{at}.jitter.correlation_ns"), jitter.correlation_ns, 0..=MAX_NS)
}

/// A quantile function must say something for every probability.
fn quantiles(at: &str, points: &[Quantile]) -> Result<(), SpecError> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Err(SpecError::unfit(at, "empty", "points from probability 0 to 1"));
    };
    if first.probability != 0.0 || last.probability != 1.0 {
        let given =
            format!("points from probability {} to {}", first.probability, last.probability);
        return Err(SpecError::unfit(at, given, "points from probability 0 to 1"));
    }
    for (i, pair) in points.windows(2).enumerate() {
        let rises = pair[0].probability < pair[1].probability;
        if !rises || pair[0].value_ns > pair[1].value_ns {
            return Err(SpecError::unfit(
                &format!("{at}[{}]", i + 1),
                format!("{} ns at probability {}", pair[1].value_ns, pair[1].probability),
                format!(
                    "at least {} ns at a probability above {}, after the point before it",
                    pair[0].value_ns, pair[0].probability
                ),
            ));
        }
    }
    within(&format!("{at}[{}].value_ns", points.len() - 1), last.value_ns, 0..=MAX_NS)
}

fn loss(at: &str, loss: &LossSpec) -> Result<(), SpecError> {
    match *loss {
        LossSpec::None => Ok(()),
        LossSpec::Independent { probability: p } => probability(&format!("{at}.probability"), p),
        LossSpec::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
            probability(&format!("{at}.good_to_bad"), good_to_bad)?;
            probability(&format!("{at}.bad_to_good"), bad_to_good)?;
            probability(&format!("{at}.loss_good"), loss_good)?;
            probability(&format!("{at}.loss_bad"), loss_bad)
        }
    }
}

fn outage(at: &str, outages: &OutageSpec) -> Result<(), SpecError> {
    within(&format!("{at}.mean_interval_ns"), outages.mean_interval_ns, 1..=MAX_NS)?;
    quantiles(&format!("{at}.durations"), &outages.durations)
}
