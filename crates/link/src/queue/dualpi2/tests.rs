use super::super::test_support::{RecordedOutcomes, capable, packet};
use super::pi2::Parameters;
use super::*;

const PARAMETERS: DualPi2Parameters = DualPi2Parameters {
    limit: QueueLimit::Packets(10_000),
    control: CONTROL,
    threshold: Span::from_ms(1),
    min_qlen_step: 0,
    ramp: Span::ZERO,
    scheduling: Scheduling::Weighted(0.1),
};

const CONTROL: Parameters = Parameters {
    target: Span::from_ms(15),
    update: Span::from_ms(16),
    alpha: 0.16,
    beta: 3.2,
    coupling: 2.0,
};

fn us(us: u64) -> Time {
    Time::from_ns(us * 1_000)
}

fn queue(parameters: DualPi2Parameters) -> DualPi2<()> {
    DualPi2::new(parameters, RandomStream::new(1, "dualpi2"))
}

fn l4s(now: Time) -> Packet<()> {
    Packet { ecn: Ecn::L4s, ..capable(now, 1500) }
}

fn is_l4s(packet: &Packet<()>) -> bool {
    matches!(packet.ecn, Ecn::L4s | Ecn::Marked)
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() < tolerance, "{a} instead of {b}");
}

#[test]
fn the_probability_moves_as_the_specification_says() {
    let after = |probability: f64, delay_ms: u64, before_ms: u64| {
        let mut control = Pi2::new(CONTROL);
        control.catch_up(us(16_000), [Some(us(16_000 - 1_000 * before_ms)), None]);
        control.probability = probability;
        // The longer delay of both queues counts.
        let heads = [Some(us(32_000)), Some(us(32_000 - 1_000 * delay_ms))];
        control.catch_up(us(32_000), heads);
        control.probability
    };
    // 0.16 · (25 − 15) ms + 3.2 · (25 − 15) ms = 0.0016 + 0.032.
    close(after(0.1, 25, 15), 0.1336, 1e-12);
    // 0.16 · (5 − 15) ms + 3.2 · (5 − 10) ms = −0.0016 − 0.016.
    close(after(0.1, 5, 10), 0.0824, 1e-12);
    close(after(0.0, 5, 10), 0.0, 1e-12);
    close(after(0.999, 30, 10), 1.0, 1e-12);
}

#[test]
fn updates_made_up_for_are_those_a_timer_would_have_made() {
    let (mut eager, mut lazy) = (Pi2::new(CONTROL), Pi2::new(CONTROL));
    let heads = [None, Some(us(3_000))];
    for ms in 0..400 {
        eager.catch_up(us(1_000 * ms), heads);
    }
    lazy.catch_up(us(399_000), heads);
    assert!(eager.probability > 0.1, "{}", eager.probability);
    assert_eq!(eager.probability, lazy.probability);
    // Empty queues bring it back to nothing, and then nothing happens any more.
    lazy.catch_up(us(1_000_000_000), [None, None]);
    assert_eq!(lazy.probability, 0.0);
    lazy.catch_up(us(1_000_000_000_000_000), [None, None]);
}

/// At p' = 0.2 and k = 2: L4S is marked with 0.4, classic hit with 0.04 (RFC 9332 §2.1).
#[test]
fn marks_are_linear_and_drops_are_squared() {
    for (probability, coupled, squared) in [(0.2, 0.4, 0.04), (0.05, 0.1, 0.0025)] {
        for ecn in [Ecn::L4s, Ecn::Capable, Ecn::NotCapable] {
            let (mut queue, mut fates) = (queue(PARAMETERS), RecordedOutcomes::default());
            let arrival = Packet { ecn, ..packet(1500) };
            for _ in 0..100_000 {
                queue.control.probability = probability;
                while queue.backlog_packets() < 5 {
                    queue.enqueue(us(0), arrival, &mut fates);
                }
                queue.dequeue(us(0), &mut fates);
            }
            let (marks, drops) = (fates.marked.len() as f64, fates.dropped.len() as f64);
            let (expected_marks, expected_drops) = match ecn {
                Ecn::L4s => (coupled, 0.0),
                Ecn::Capable => (squared, 0.0),
                _ => (0.0, squared),
            };
            close(marks / 1e5, expected_marks, 0.005);
            // A drop brings out another packet at once.
            close(drops / (1e5 + drops), expected_drops, 0.005);
            let fates = fates.marked.iter().chain(&fates.dropped);
            assert!(fates.into_iter().all(|(_, reason)| *reason == DropReason::Pi2));
        }
    }
}

/// RFC 9332 §A.2: when even marks of all L4S packets do not suffice, both kinds are dropped
/// alike, and nothing classic is marked.
#[test]
fn under_overload_everything_is_dropped_alike() {
    for ecn in [Ecn::L4s, Ecn::Capable] {
        let (mut queue, mut fates) = (queue(PARAMETERS), RecordedOutcomes::default());
        for _ in 0..50_000 {
            queue.control.probability = 0.6;
            // Many, so that a run of drops does not leave less than two.
            while queue.backlog_packets() < 40 {
                queue.enqueue(us(0), Packet { ecn, ..packet(1500) }, &mut fates);
            }
            queue.dequeue(us(0), &mut fates);
        }
        let drops = fates.dropped.len() as f64;
        close(drops / (drops + 5e4), 0.36, 0.01);
        assert_eq!(fates.marked.len(), if ecn == Ecn::L4s { 50_000 } else { 0 });
    }
}

#[test]
fn less_than_two_packets_are_left_alone() {
    let (mut queue, mut fates) = (queue(PARAMETERS), RecordedOutcomes::default());
    for _ in 0..1_000 {
        queue.control.probability = 1.0;
        queue.enqueue(us(0), l4s(us(0)), &mut fates);
        queue.enqueue(us(0), packet(1500), &mut fates);
        queue.dequeue(us(0), &mut fates);
        queue.dequeue(us(0), &mut fates);
    }
    assert!(fates.marked.is_empty() && fates.dropped.is_empty());
}

/// Delays of three packets that arrive together and the marks that they get from a step at 1 ms.
fn step_marks(min_qlen_step: u64) -> [bool; 3] {
    let mut queue = queue(DualPi2Parameters { min_qlen_step, ..PARAMETERS });
    let mut fates = RecordedOutcomes::default();
    for _ in 0..3 {
        queue.enqueue(us(0), l4s(us(0)), &mut fates);
    }
    let marks = [1_001, 1_001, 5_000]
        .map(|at| queue.dequeue(us(at), &mut fates).unwrap().ecn == Ecn::Marked);
    assert!(fates.marked.iter().all(|(_, reason)| *reason == DropReason::Step));
    marks
}

/// `skb_apply_step` in Linux 6.17 compares the queue length before the packet is added, and its
/// default of 0 marks a packet that waits for the link alone.
#[test]
fn the_step_applies_from_the_minimum_queue_length_on() {
    assert_eq!(step_marks(0), [true; 3]);
    assert_eq!(step_marks(1), [false, true, true]);
    assert_eq!(step_marks(2), [false, false, true]);
    assert_eq!(step_marks(3), [false; 3]);
}

#[test]
fn a_packet_is_marked_if_it_waited_longer_than_the_threshold() {
    let (mut queue, mut fates) = (queue(PARAMETERS), RecordedOutcomes::default());
    for _ in 0..2 {
        queue.enqueue(us(0), l4s(us(0)), &mut fates);
    }
    assert_eq!(queue.dequeue(us(1_000), &mut fates).unwrap().ecn, Ecn::L4s);
    assert_eq!(queue.dequeue(us(1_001), &mut fates).unwrap().ecn, Ecn::Marked);
    assert_eq!(fates.marked, [(us(1_001), DropReason::Step)]);
}

/// The defaults of `dualpi2_reset_default` in Linux 6.17.
#[test]
fn the_defaults_are_those_of_linux() {
    let limit = QueueLimit::Bytes(10_000 * u64::from(FULL_PACKET_BYTES));
    let expected = DualPi2Parameters { limit, ..PARAMETERS };
    assert_eq!(DualPi2Parameters::new(&ENTRY.defaults()), expected);
}

/// RFC 9332, `laqm` with its thresholds: 0 at 800 µs, 1 from 1200 µs on.
#[test]
fn a_ramp_marks_more_and_more() {
    let (threshold, ramp) = (Span::from_us(800), Span::from_us(400));
    let queue = queue(DualPi2Parameters { threshold, ramp, ..PARAMETERS });
    for (waited_us, chance) in [(0, 0.0), (800, 0.0), (900, 0.25), (1_100, 0.75), (1_200, 1.0)] {
        close(queue.native(Span::from_us(waited_us)), chance, 1e-9);
    }
}

/// Both queues always have something to send; who sends how much?
fn shares(scheduling: Scheduling) -> f64 {
    let mut queue = queue(DualPi2Parameters { scheduling, ..PARAMETERS });
    let mut fates = RecordedOutcomes::default();
    let mut classic = 0;
    for _ in 0..10_000 {
        queue.control.probability = 0.0;
        while queue.l4s.len() < 2 {
            queue.enqueue(us(0), l4s(us(0)), &mut fates);
        }
        while queue.classic.backlog().packets < 2 {
            queue.enqueue(us(0), packet(1500), &mut fates);
        }
        classic += u32::from(!is_l4s(&queue.dequeue(us(0), &mut fates).unwrap()));
    }
    f64::from(classic) / 1e4
}

#[test]
fn turns_follow_the_weights() {
    for share in [0.0, 0.1, 0.5, 0.75] {
        close(shares(Scheduling::Weighted(share)), share, 0.001);
    }
}

#[test]
fn a_shift_of_time_puts_l4s_ahead_by_so_much() {
    let scheduler = Scheduler::new(Scheduling::TimeShifted(Span::from_ms(30)));
    let turn = |l4s, classic| scheduler.turn(Some(us(l4s)), Some(us(classic)));
    assert_eq!(turn(30_000, 0), Some(DualQueue::L4s));
    assert_eq!(turn(30_001, 0), Some(DualQueue::Classic));
    assert_eq!(scheduler.turn(None, Some(us(0))), Some(DualQueue::Classic));
    assert_eq!(scheduler.turn(None, None), None);
}

#[test]
fn both_queues_share_one_limit() {
    let limit = QueueLimit::Packets(4);
    let mut queue = queue(DualPi2Parameters { limit, ..PARAMETERS });
    let mut fates = RecordedOutcomes::default();
    for _ in 0..3 {
        queue.enqueue(us(0), l4s(us(0)), &mut fates);
        queue.enqueue(us(0), packet(1500), &mut fates);
    }
    assert_eq!(queue.backlog_packets(), 4);
    assert_eq!(fates.dropped, [(us(0), DropReason::Overflow); 2]);
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    use jostle_registry::ParameterValue::{Integer, Number};
    for (name, wrong) in [
        ("update", Integer(0)),
        ("alpha", Number(-1.0)),
        ("beta", Number(f64::NAN)),
        ("coupling", Number(-1.0)),
        ("classic_share", Number(1.1)),
    ] {
        let given = [(name.to_owned(), wrong)].into_iter().collect();
        assert!(DualPi2::<()>::ROW.resolve(&given).is_err(), "{name}");
    }
}
