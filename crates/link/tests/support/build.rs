//! One of every kind, with parameters that make things happen in short sequences.

#![allow(clippy::unwrap_used)] // Clippy takes this for no test, as it is a module beside them.

use std::collections::BTreeMap;

use jostle_link::queue::QueueLimit;
use jostle_link::{Capacity, Delay, Loss, QueueDiscipline, capacity, delay, loss, registry};
use jostle_registry::{ParameterType, ParameterValue};
use jostle_units::{RandomStream, Rate, Span, Time};

use super::Serial;

/// Number of kinds of capacity.
pub const CAPACITIES: usize = 5;
/// Number of flows of operations.
pub const FLOWS: u64 = 6;
/// Number of kinds of delay.
pub const DELAYS: usize = 5;

fn named<const N: usize>(values: [(&str, ParameterValue); N]) -> BTreeMap<String, ParameterValue> {
    values.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

/// A queue of the given row, and the limit that it keeps.
pub fn queue(
    row: usize,
    limit: QueueLimit,
    ecn: bool,
    seed: u64,
) -> (Box<dyn QueueDiscipline<Serial>>, QueueLimit) {
    let row = &registry::queues()[row];
    let packets = match limit {
        QueueLimit::Packets(n) => n,
        QueueLimit::Bytes(n) => n / 1514,
    };
    // Whatever has one of these names acts within a short sequence.
    let short = named([
        ("limit", ParameterValue::Limit(limit)),
        ("ecn", ParameterValue::Bool(ecn)),
        ("target", ParameterValue::Integer(300_000)),
        ("interval", ParameterValue::Integer(2_000_000)),
        ("rtt", ParameterValue::Integer(2_000_000)),
        ("update", ParameterValue::Integer(400_000)),
        ("alpha", ParameterValue::Number(20.0)),
        ("beta", ParameterValue::Number(200.0)),
        ("probability", ParameterValue::Number(0.3)),
        ("weight", ParameterValue::Number(0.2)),
        ("min", ParameterValue::Integer(4_000)),
        ("max", ParameterValue::Integer(20_000)),
        ("queues", ParameterValue::Integer(4)),
        ("ramp", ParameterValue::Integer(100_000)),
        ("time_shift", ParameterValue::Integer(2_000_000)),
    ]);
    let mut kept = limit;
    let mut given = BTreeMap::new();
    for parameter in row.entry.parameters {
        let value = match (parameter.name, parameter.kind) {
            ("limit", ParameterType::Packets { .. }) => {
                // Socket buffers of GRO hold up to 31 of the smallest packets here.
                let each = if row.entry.name == "pfifo_gro" { 31 } else { 1 };
                kept = QueueLimit::Packets(packets * each);
                Some(ParameterValue::Integer(packets as i64))
            }
            ("memory_limit", _) => {
                kept = QueueLimit::Bytes(packets * 1_514);
                Some(ParameterValue::Integer((packets * 1_514) as i64))
            }
            ("gro_max_size", _) => Some(ParameterValue::Integer(3_100)),
            ("threshold", ParameterType::Size { .. }) => Some(ParameterValue::Integer(8_000)),
            ("threshold", _) => Some(ParameterValue::Integer(300_000)),
            (_, ParameterType::Choice { choices, .. }) => {
                let chosen = (seed as usize).wrapping_add(usize::from(!ecn)) % choices.len();
                Some(ParameterValue::Text(choices[chosen].to_owned()))
            }
            (name, _) => short.get(name).cloned(),
        };
        given.extend(value.map(|value| (parameter.name.to_owned(), value)));
    }
    if row.entry.class == "classful" {
        // Each flow has a queue of its own.
        kept = match kept {
            QueueLimit::Packets(n) => QueueLimit::Packets(n * FLOWS),
            QueueLimit::Bytes(n) => QueueLimit::Bytes(n * FLOWS),
        };
    }
    (row.create(&given, RandomStream::new(seed, "queue")).unwrap(), kept)
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// A capacity of the given kind.
pub fn capacity(kind: usize, seed: u64) -> Box<dyn Capacity> {
    match kind {
        0 => Box::new(capacity::Constant::new(Rate::from_mbps(100))),
        1 => {
            let steps = [(0, 100), (20, 3), (25, 0), (60, 100_000), (300, 7), (900, 0), (901, 50)];
            let steps = steps.map(|(ms, mbps)| (at(ms), Rate::from_mbps(mbps)));
            Box::new(capacity::Steps::new(steps.to_vec()).unwrap())
        }
        2 => Box::new(
            capacity::DeliveryTrace::new(&[0, 1, 1, 2, 2, 2, 3, 40, 41, 50], 1500).unwrap(),
        ),
        3 => {
            let steps = vec![(at(0), Rate::from_mbps(100)), (at(400), Rate::ZERO)];
            Box::new(capacity::Steps::new(steps).unwrap())
        }
        _ => {
            let process = capacity::AutoregressiveParameters {
                mean: Rate::from_mbps(50),
                deviation: Rate::from_mbps(40),
                correlation: Span::from_ms(20),
                step: Span::from_ms(1),
                min: Rate::from_bps(100_000),
                max: Rate::from_mbps(150),
            };
            let random = RandomStream::new(seed, "capacity");
            Box::new(capacity::Autoregressive::new(process, random).unwrap())
        }
    }
}

/// A delay of the given kind, and the least that it can be.
pub fn delay(kind: usize, seed: u64) -> (Box<dyn Delay>, Span) {
    let random = RandomStream::new(seed, "delay");
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
    let random = |name| RandomStream::new(seed, name);
    let mut losses: Vec<Box<dyn Loss>> = Vec::new();
    if mask & 1 != 0 {
        let given = named([("probability", ParameterValue::Number(0.2))]);
        losses.push(loss::INDEPENDENT.create(&given, random("independent")).unwrap());
    }
    if mask & 2 != 0 {
        let given = named([
            ("good_to_bad", ParameterValue::Number(0.1)),
            ("bad_to_good", ParameterValue::Number(0.3)),
            ("loss_good", ParameterValue::Number(0.01)),
            ("loss_bad", ParameterValue::Number(0.9)),
        ]);
        losses.push(loss::GILBERT_ELLIOTT.create(&given, random("chain")).unwrap());
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
