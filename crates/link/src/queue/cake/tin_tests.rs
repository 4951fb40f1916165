use jostle_registry::ParameterValue;
use jostle_units::{ConnectionId, Span};

use super::super::test_support::{RecordedOutcomes, packet};
use super::*;

const BEST_EFFORT: u8 = 0;
const LE: u8 = 1;
const AF41: u8 = 34;
const EF: u8 = 46;

fn text(name: &'static str, value: &str) -> (&'static str, ParameterValue) {
    (name, ParameterValue::Text(value.to_owned()))
}

fn cake(given: &[(&'static str, ParameterValue)]) -> Cake<()> {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    Cake::new(&ENTRY.resolve(&given.collect()).unwrap(), RandomStream::new(1, "cake"))
}

/// Shares of flows with these codepoints that always have packets waiting, in order.
fn shares(queue: &mut Cake<()>, codepoints: &[u8]) -> Vec<f64> {
    let mut outcomes = RecordedOutcomes::default();
    let mut now = Time::ZERO;
    let arrive = |queue: &mut Cake<()>, now, flow: usize, outcomes: &mut RecordedOutcomes| {
        let connection = ConnectionId(flow as u32);
        let dscp = codepoints[flow];
        queue.enqueue(now, Packet { connection, dscp, queued_at: now, ..packet(1_514) }, outcomes);
    };
    for _ in 0..3 {
        (0..codepoints.len()).for_each(|flow| arrive(queue, now, flow, &mut outcomes));
    }
    let mut sent = vec![0.0; codepoints.len()];
    for _ in 0..20_000 {
        loop {
            if let Some(packet) = queue.dequeue(now, &mut outcomes) {
                sent[packet.connection.index()] += 1.0 / 20_000.0;
                arrive(queue, now, packet.connection.index(), &mut outcomes);
                break;
            }
            now = queue.next_dequeue_time();
        }
        // The AQM may have dropped packets.
        for flow in 0..codepoints.len() {
            if queue.total.packets < 3 * codepoints.len() as u64 {
                arrive(queue, now, flow, &mut outcomes);
            }
        }
    }
    sent
}

/// With a shaper, a tin above its share gets what the tins below leave: voice has a quarter of the
/// rate, video half, bulk a sixteenth, and best effort the rest. Without, tins have the weights
/// 16 to 1 to 8 to 4.
#[test]
fn tins_share_by_their_rates_or_weights() {
    let near = |found: &[f64], expected: &[f64]| {
        let pairs = found.iter().zip(expected);
        assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 0.02), "{found:?} {expected:?}");
    };
    let rate = ("rate", ParameterValue::Integer(100_000_000));
    let four = [rate.clone(), text("diffserv", "diffserv4")];
    let codepoints = [BEST_EFFORT, LE, AF41, EF];
    near(&shares(&mut cake(&four), &codepoints), &[0.1875, 0.0625, 0.5, 0.25]);
    near(&shares(&mut cake(&four), &[BEST_EFFORT, LE]), &[0.9375, 0.0625]);
    let weights = [16.0, 1.0, 8.0, 4.0].map(|weight| weight / 29.0);
    near(&shares(&mut cake(&[text("diffserv", "diffserv4")]), &codepoints), &weights);
    let three = [rate.clone(), text("diffserv", "diffserv3")];
    near(&shares(&mut cake(&three), &[BEST_EFFORT, LE, EF]), &[0.6875, 0.0625, 0.25]);
    near(&shares(&mut cake(&[rate]), &codepoints), &[0.25; 4]);
}

/// A tin within its rate is served before best effort, however long that has waited; flows of one
/// tin keep their order.
#[test]
fn voice_overtakes_best_effort_and_nothing_overtakes_its_own_flow() {
    let rate = ("rate", ParameterValue::Integer(8_000_000));
    let mut queue = cake(&[rate, text("diffserv", "diffserv4")]);
    let mut outcomes = RecordedOutcomes::default();
    let mut number = 0;
    for (dscp, packets) in [(BEST_EFFORT, 6), (EF, 3)] {
        for _ in 0..packets {
            let connection = ConnectionId(u32::from(dscp));
            let arrived = Packet { connection, dscp, ..packet(200 + number) };
            queue.enqueue(Time::ZERO, arrived, &mut outcomes);
            number += 1;
        }
    }
    let mut now = Time::ZERO;
    let mut left = Vec::new();
    while queue.total.packets > 0 {
        match queue.dequeue(now, &mut outcomes) {
            Some(packet) => left.push((packet.dscp, packet.size_bytes)),
            None => now = queue.next_dequeue_time(),
        }
    }
    assert_eq!(left[0], (EF, 206), "first, although it came last");
    for dscp in [BEST_EFFORT, EF] {
        let sizes: Vec<_> = left.iter().filter(|it| it.0 == dscp).map(|it| it.1).collect();
        assert!(sizes.is_sorted(), "{left:?}");
    }
    assert_eq!((left.len(), outcomes.dropped.len()), (9, 0));
}

/// `sch_cake.c::cake_set_rate` computes the target of each tin from the tin's rate: 1.5 packets take
/// 18.2 ms at 1 Mbit/s, a sixteenth of the shaper's rate.
#[test]
fn a_slow_tin_has_a_longer_target() {
    let rate = ("rate", ParameterValue::Integer(16_000_000));
    let queue = cake(&[rate, text("diffserv", "diffserv4")]);
    let targets: Vec<_> = queue.tins.iter().map(|tin| tin.parameters.target).collect();
    let (five, bulk) = (Span::from_ms(5), Span::from_us(18_168));
    assert_eq!(targets, [five, bulk, five, Span::from_us(4_542).max(five)]);
}

#[test]
fn the_shaper_counts_cells() {
    for (atm, counted) in [("noatm", 1_540), ("atm", 1_749), ("ptm", 1_565)] {
        let rate = ("rate", ParameterValue::Integer(8_000_000));
        let overhead = ("overhead", ParameterValue::Integer(40));
        let mut queue = cake(&[rate, overhead, text("atm", atm)]);
        let mut outcomes = RecordedOutcomes::default();
        for _ in 0..2 {
            queue.enqueue(Time::ZERO, packet(1_514), &mut outcomes);
        }
        assert!(queue.dequeue(Time::ZERO, &mut outcomes).is_some());
        assert!(queue.dequeue(Time::ZERO, &mut outcomes).is_none());
        assert_eq!(queue.next_dequeue_time(), Time::ZERO + Span::from_us(counted), "{atm}");
    }
}
