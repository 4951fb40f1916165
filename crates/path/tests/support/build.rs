//! One of every kind, with parameters that make things happen in short sequences.

#![allow(clippy::unwrap_used)] // Clippy takes this for no test, as it is a module beside them.

use jostle_path::loss::Transitions;
use jostle_path::queue::{
    Codel, CodelParameters, DropTail, DualPi2, DualPi2Parameters, FqCodel, FqCodelParameters,
    Limit, OccupancyDrop, Pie, PieParameters, Red, RedParameters, Scheduling, StepMark,
};
use jostle_path::{Capacity, Delay, Loss, QueueDiscipline, capacity, delay, loss};
use jostle_units::{Rate, Span, Stream, Time};

/// Number of kinds of queue.
pub const QUEUES: usize = 8;
/// Positions of kinds that are not like the others.
pub const OCCUPANCY_DROP: usize = 1;
pub const STEP_MARK: usize = 6;
pub const DUALPI2: usize = 7;
/// Number of kinds of capacity.
pub const CAPACITIES: usize = 4;
/// Number of kinds of delay.
pub const DELAYS: usize = 5;

/// A queue of the given kind, and the limit that it keeps.
pub fn queue(
    kind: usize,
    limit: Limit,
    ecn: bool,
    seed: u64,
) -> (Box<dyn QueueDiscipline<usize>>, Limit) {
    let random = Stream::new(seed, "queue");
    let (target, interval) = (Span::from_us(300), Span::from_ms(2));
    let packets = match limit {
        Limit::Packets(n) => n,
        Limit::Bytes(n) => n / 1514,
    };
    let queue: Box<dyn QueueDiscipline<usize>> = match kind {
        0 => Box::new(DropTail::new(limit)),
        1 => Box::new(OccupancyDrop::new(limit, 8_000, 0.3, random).unwrap()),
        2 => {
            let (min_bytes, max_bytes) = (4_000, 20_000);
            let parameters = RedParameters {
                limit,
                min_bytes,
                max_bytes,
                max_probability: 0.3,
                weight: 0.2,
                ecn,
            };
            Box::new(Red::new(parameters, random).unwrap())
        }
        3 => Box::new(Codel::new(CodelParameters { limit, target, interval, ecn }).unwrap()),
        4 => {
            let limit_packets = packets;
            let (queues, quantum_bytes) = (4, 1514);
            let parameters =
                FqCodelParameters { limit_packets, queues, quantum_bytes, target, interval, ecn };
            return (Box::new(FqCodel::new(parameters).unwrap()), Limit::Packets(limit_packets));
        }
        5 => {
            let (update, alpha, beta) = (Span::from_us(400), 20.0, 200.0);
            let parameters = PieParameters { limit, target, update, alpha, beta, ecn };
            Box::new(Pie::new(parameters, random).unwrap())
        }
        STEP_MARK => Box::new(StepMark::new(limit, target)),
        _ => {
            let scheduling = if ecn {
                Scheduling::Weighted(0.1)
            } else {
                Scheduling::TimeShifted(Span::from_ms(2))
            };
            let parameters = DualPi2Parameters {
                limit,
                target,
                update: Span::from_us(400),
                alpha: 20.0,
                beta: 200.0,
                coupling: 2.0,
                threshold: target,
                ramp: Span::from_us(100),
                scheduling,
            };
            Box::new(DualPi2::new(parameters, random).unwrap())
        }
    };
    (queue, limit)
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// A capacity of the given kind.
pub fn capacity(kind: usize) -> Box<dyn Capacity> {
    match kind {
        0 => Box::new(capacity::Constant::new(Rate::from_mbps(100))),
        1 => {
            let steps = [(0, 100), (20, 3), (25, 0), (60, 100_000), (300, 7), (900, 0), (901, 50)];
            let steps = steps.map(|(ms, mbps)| (at(ms), Rate::from_mbps(mbps)));
            Box::new(capacity::Steps::new(steps.to_vec()).unwrap())
        }
        2 => Box::new(capacity::Trace::new(&[0, 1, 1, 2, 2, 2, 3, 40, 41, 50], 1500).unwrap()),
        _ => {
            let steps = vec![(at(0), Rate::from_mbps(100)), (at(400), Rate::ZERO)];
            Box::new(capacity::Steps::new(steps).unwrap())
        }
    }
}

/// A delay of the given kind, and the least that it can be.
pub fn delay(kind: usize, seed: u64) -> (Box<dyn Delay>, Span) {
    let random = Stream::new(seed, "delay");
    let steps = |list: &[(u64, u64)]| {
        let steps = list.iter().map(|(ms, us)| (at(*ms), Span::from_us(*us))).collect();
        delay::Steps::new(steps).unwrap()
    };
    let table = || {
        let points = [(0.0, 0), (0.5, 1), (0.9, 4), (1.0, 30)];
        let points = points.map(|(p, ms)| (p, Span::from_ms(ms)));
        delay::Quantiles::new(points.to_vec()).unwrap()
    };
    match kind {
        0 => (Box::new(delay::Constant::new(Span::from_ms(10))), Span::from_ms(10)),
        1 => (Box::new(delay::Constant::new(Span::ZERO)), Span::ZERO),
        2 => {
            let list = [(0, 40_000), (30, 100), (90, 70_000), (500, 0)];
            (Box::new(steps(&list)), Span::ZERO)
        }
        n => {
            let correlation = Span::from_ms(if n == 3 { 5 } else { 0 });
            let base = steps(&[(0, 2_000)]);
            let jitter = delay::Jitter::new(base, table(), correlation, n == 4, random);
            (Box::new(jitter), Span::from_ms(2))
        }
    }
}

/// Losses by the bits of `mask`.
pub fn losses(mask: u8, seed: u64) -> Vec<Box<dyn Loss>> {
    let random = |name| Stream::new(seed, name);
    let mut losses: Vec<Box<dyn Loss>> = Vec::new();
    if mask & 1 != 0 {
        losses.push(Box::new(loss::Independent::new(0.2, random("independent")).unwrap()));
    }
    if mask & 2 != 0 {
        let transitions =
            Transitions { good_to_bad: 0.1, bad_to_good: 0.3, loss_good: 0.01, loss_bad: 0.9 };
        losses.push(Box::new(loss::GilbertElliott::new(transitions, random("chain")).unwrap()));
    }
    if mask & 4 != 0 {
        let durations = delay::Quantiles::new(vec![(0.0, Span::ZERO), (1.0, Span::from_ms(20))]);
        let interval = Span::from_ms(30);
        losses.push(Box::new(
            loss::Outages::new(interval, durations.unwrap(), random("outages")).unwrap(),
        ));
    }
    losses
}
