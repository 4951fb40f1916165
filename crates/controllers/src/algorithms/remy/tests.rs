use jostle_units::{RandomStream, Span, Time};

use super::memory::{AXES, Memory};
use super::whisker_tree::{Action, LIMIT, WhiskerTree};
use super::{BY_HAND, Remy};
use crate::test_support::ack;
use jostle_congestion::{AckSample, CongestionController, EstablishedEvent, SendEvent};

fn field(number: u8, wire_type: u8, content: &[u8]) -> Vec<u8> {
    let tag = u16::from(number) << 3 | u16::from(wire_type);
    let tag = if tag < 0x80 { vec![tag as u8] } else { vec![tag as u8 | 0x80, (tag >> 7) as u8] };
    [&tag, content].concat()
}

fn message(number: u8, fields: &[Vec<u8>]) -> Vec<u8> {
    let content = fields.concat();
    let length = content.len();
    let length = if length < 0x80 {
        vec![length as u8]
    } else {
        vec![length as u8 | 0x80, (length >> 7) as u8]
    };
    field(number, 2, &[&length, &content[..]].concat())
}

fn double(number: u8, value: f64) -> Vec<u8> {
    field(number, 1, &value.to_le_bytes())
}

/// Corners 11 and 12 with one axis.
fn domain(number: u8, axis: u8, lower: f64, upper: f64) -> Vec<u8> {
    let corners = [message(11, &[double(axis, lower)]), message(12, &[double(axis, upper)])];
    message(number, &corners)
}

/// A whisker with an increment already in zigzag.
fn whisker(zigzag: u8, multiple: f64, intersend_ms: f64) -> Vec<u8> {
    let increment = field(31, 0, &[zigzag]);
    message(3, &[increment, double(32, multiple), double(33, intersend_ms)])
}

/// Two boxes, divided at an RTT of twice the least one.
fn two() -> Vec<u8> {
    let low = message(2, &[domain(1, 23, 0.0, 2.0), whisker(4, 1.0, 0.25)]);
    let high = message(2, &[domain(1, 23, 2.0, LIMIT), whisker(5, 0.5, 3.0)]);
    [low, high].concat()
}

const LOW: Action = Action { increment: 2, multiple: 1.0, intersend_ms: 0.25 };
const HIGH: Action = Action { increment: -3, multiple: 0.5, intersend_ms: 3.0 };

fn ratio(rtt_ratio: f64) -> Memory {
    Memory::of([0.0, 0.0, rtt_ratio, 0.0, 0.0, 0.0])
}

#[test]
fn a_table_is_read_as_remy_writes_it() {
    // A tree of one whisker, byte by byte: increment −1 in zigzag, multiple 1.5, 2 ms.
    let bytes = [
        &[0x1a, 0x17][..], // field 3, a message of 23 bytes
        &[0xf8, 0x01, 0x01],
        &[0x81, 0x02],
        &1.5_f64.to_le_bytes(),
        &[0x89, 0x02],
        &2.0_f64.to_le_bytes(),
    ]
    .concat();
    let table = WhiskerTree::parse(&bytes).unwrap();
    let action = Action { increment: -1, multiple: 1.5, intersend_ms: 2.0 };
    assert_eq!(table.action(&ratio(0.0)), Some(action));
    assert_eq!(table.whiskers().count(), 1);
}

#[test]
fn boxes_contain_their_lower_end_only() {
    let table = WhiskerTree::parse(&two()).unwrap();
    assert_eq!(table.action(&ratio(1.999)), Some(LOW));
    assert_eq!(table.action(&ratio(2.0)), Some(HIGH));
    assert_eq!(table.action(&ratio(LIMIT)), None);
}

#[test]
fn a_truncated_table_is_refused_wherever_it_is_cut() {
    let whole = two();
    let between = message(2, &[domain(1, 23, 0.0, 2.0), whisker(4, 1.0, 0.25)]).len();
    for length in 1..whole.len() {
        let problem = WhiskerTree::parse(&whole[..length]).unwrap_err();
        // Cut off between two boxes, the first one is whole, and only the second is missing.
        let expected = if length == between { "is the file cut off?" } else { "should follow" };
        assert!(problem.contains(expected), "{length}: {problem}");
    }
    assert!(WhiskerTree::parse(&[]).is_err());
    for length in 1..BY_HAND.len() {
        assert!(WhiskerTree::parse(&BY_HAND[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn a_tree_within_a_tree_has_to_fill_it_too() {
    let low = message(2, &[domain(1, 22, 0.0, 9.0), whisker(4, 1.0, 0.25)]);
    let high = message(2, &[domain(1, 22, 9.0, LIMIT), whisker(4, 1.0, 0.25)]);
    let tree = |children: &[&[u8]]| {
        let inner = message(2, &[vec![], children.concat()]);
        [two(), inner].concat()
    };
    assert!(WhiskerTree::parse(&tree(&[&low[..], &high])).is_ok());
    assert!(WhiskerTree::parse(&tree(&[&low[..]])).unwrap_err().contains("cut off"));
}

/// The sixth axis of Remy's later memories.
#[test]
fn tables_may_be_divided_by_the_queueing_delay() {
    let low = message(2, &[domain(1, 26, 0.0, 4.0), whisker(4, 1.0, 0.25)]);
    let high = message(2, &[domain(1, 26, 4.0, LIMIT), whisker(5, 0.5, 3.0)]);
    let table = WhiskerTree::parse(&[low, high].concat()).unwrap();
    let delay = |ms| Memory::of([0.0, 0.0, 0.0, 0.0, 0.0, ms]);
    assert_eq!((table.action(&delay(3.9)), table.action(&delay(4.0))), (Some(LOW), Some(HIGH)));
}

#[test]
fn what_would_change_the_meaning_of_a_table_is_refused() {
    let whisker = whisker(4, 1.0, 0.25);
    let problem = |fields: &[Vec<u8>]| WhiskerTree::parse(&fields.concat()).unwrap_err();
    // Remy's record of how it made the table does not matter, nor does a number beyond.
    let settings = [field(4, 2, &[0]), field(60, 0, &[7]), whisker.clone()].concat();
    assert_eq!(WhiskerTree::parse(&settings).unwrap().whiskers().count(), 1);
    // A box may name an axis that this memory lacks if it reaches over all of it, and only then.
    let wild = [domain(1, 27, 0.0, LIMIT), whisker.clone()];
    assert_eq!(WhiskerTree::parse(&wild.concat()).unwrap().whiskers().count(), 1);
    assert!(problem(&[domain(1, 27, 0.0, 0.5), whisker.clone()]).contains("along axis 27"));
    // A whisker that does something else.
    let other = message(3, &[double(35, 1.0)]);
    assert!(problem(&[other]).starts_with("byte 2: a whisker with field 35"));
    assert!(problem(&[message(3, &[double(32, -1.0)])]).contains("-1, not from 0"));
    assert!(problem(&[whisker.clone(), two()]).contains("both children and a whisker"));
    assert!(problem(&[domain(1, 23, 0.0, 2.0)]).contains("neither children nor a whisker"));
    assert!(problem(&[domain(1, 23, 3.0, 2.0), whisker.clone()]).contains("axis 23 is above"));
    // A tree of Remy's later senders: its fields begin at 90.
    assert!(problem(&[message(92, &[])]).contains("neither"));
    let deep = (0..30).fold(whisker, |inner, _| message(2, &[inner]));
    assert!(WhiskerTree::parse(&deep).is_ok());
}

#[test]
fn a_bottomless_tree_is_refused() {
    let mut deep = whisker(4, 1.0, 0.25);
    for _ in 0..100 {
        deep = message(2, &[deep]);
    }
    assert!(WhiskerTree::parse(&deep).unwrap_err().contains("more than 100 levels"));
}

/// The test of `algorithms.md`: what the tree finds is what a list of all whiskers says.
#[test]
fn a_lookup_equals_the_dump_for_a_thousand_memories() {
    let mut random = RandomStream::new(1, "memories");
    let mut uniform = || (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    for file in [BY_HAND.to_vec(), two()] {
        let table = WhiskerTree::parse(&file).unwrap();
        let mut used = 0;
        for _ in 0..1_000 {
            // Over all magnitudes, zero included.
            let values: [f64; AXES] =
                core::array::from_fn(|_| libm::exp2(uniform() * 20.0 - 6.0) - 1.0 / 64.0);
            let dump: Vec<Action> = table
                .whiskers()
                .filter(|(domain, _)| {
                    (0..AXES).all(|axis| {
                        (domain.lower[axis]..domain.upper[axis]).contains(&values[axis])
                    })
                })
                .map(|(_, action)| action)
                .collect();
            assert_eq!(dump.len(), 1, "boxes divide the memory: {values:?}");
            assert_eq!(table.action(&Memory::of(values)), Some(dump[0]), "{values:?}");
            used += usize::from(dump[0].multiple > 0.0);
        }
        assert!(used > 500);
    }
}

#[test]
fn windows_are_rounded_down_and_bounded() {
    let action = |increment, multiple| Action { increment, multiple, intersend_ms: 1.0 };
    assert_eq!(action(2, 1.0).window(0), 2);
    assert_eq!(action(0, 0.99).window(10), 9);
    assert_eq!(action(-7, 1.0).window(3), 0);
    assert_eq!(action(0, 1e6).window(1_000_000), 1_000_000);
}

#[test]
fn averages_are_those_of_the_equations() {
    let mut memory = Memory::default();
    let at = |ms| Time::ZERO + Span::from_ms(ms);
    assert_eq!(memory.gaps(at(0), at(40), 1), None);
    memory.begin(Span::from_ms(40));
    assert_eq!(memory.values(), &[0.0; AXES]);
    // Sent 8 ms later, acknowledged 16 ms later.
    let gaps = memory.gaps(at(8), at(56), 1).unwrap();
    memory.update(gaps, Span::from_ms(48), 0);
    assert_eq!(memory.values(), &[1.0, 2.0, 1.2, 0.0625, 8.0, 2.0]);
    // Two packets at once, 4 ms apart on average.
    let gaps = memory.gaps(at(16), at(64), 2).unwrap();
    assert_eq!(gaps, (4.0, 4.0));
    memory.update(gaps, Span::from_ms(30), 2);
    let [send, rec, ratio, slow, diff, delay] = *memory.values();
    assert_eq!(delay, 3.0 * rec, "the third packet after the last one");
    assert_eq!((send, rec, ratio, diff), (1.0 + 3.0 / 8.0, 2.0 + 2.0 / 8.0, 1.0, 0.0));
    assert!((slow - (0.0625 + 3.9375 / 256.0)).abs() < 1e-12);
}

fn remy(file: &[u8]) -> Remy {
    let mut remy = Remy::new(WhiskerTree::parse(file));
    remy.on_established(&EstablishedEvent {
        now: Time::ZERO,
        mss_bytes: 1_250,
        initial_window: 10,
        rtt: Some(Span::from_ms(40)),
        prospect: Default::default(),
    });
    remy
}

fn acked(packets: u32, sent_ms: u64, rtt_ms: u64) -> AckSample {
    let sent_at = Time::ZERO + Span::from_ms(sent_ms);
    let rtt = Span::from_ms(rtt_ms);
    AckSample { acked: packets, sent_at, now: sent_at + rtt, rtt: Some(rtt), ..ack(0) }
}

#[test]
fn the_box_of_no_memory_starts_the_flow() {
    let mut remy = remy(&two());
    assert_eq!(remy.cwnd(), 2);
    // 10,000 bits in 0.25 ms.
    assert_eq!(remy.pacing_rate().unwrap().as_bps(), 40_000_000);
    remy.on_ack(&acked(1, 0, 40));
    assert_eq!(remy.cwnd(), 4);
    // An ACK of three packets is three actions.
    remy.on_ack(&acked(3, 8, 40));
    assert_eq!(remy.cwnd(), 10);
    // ⌊0.5 · 10 − 3⌋.
    remy.on_ack(&acked(1, 16, 80));
    assert_eq!((remy.cwnd(), remy.pacing_rate().unwrap().as_bps()), (2, 3_333_333));
    let sent = SendEvent {
        now: Time::ZERO,
        packets: 1,
        total_sent: 9,
        next_to_send: 9,
        prior_in_flight: 0,
        after_idle: true,
    };
    remy.on_send(&sent);
    assert_eq!(remy.cwnd(), 2);
    assert_eq!(remy.memory.values(), &[0.0; AXES]);
}

#[test]
fn beyond_the_table_everything_stays() {
    let low = [domain(1, 23, 0.0, 2.0), whisker(4, 1.0, 0.25)].concat();
    let mut remy = remy(&low);
    remy.on_ack(&acked(1, 0, 40));
    remy.on_ack(&acked(1, 8, 80));
    assert_eq!((remy.cwnd(), remy.mode()), (4, "beyond_table"));
}
