use super::*;
use proptest::prelude::*;

fn stamp(ns: u64) -> PacketDeliveryState {
    let mut stamp = PacketDeliveryState::default();
    stamp.sent_at = Time::from_ns(ns);
    stamp
}

fn filled(n: u32) -> Scoreboard {
    let mut board = Scoreboard::default();
    for i in 0..n {
        board.push(stamp(u64::from(i)), 1448);
    }
    board
}

fn sacked_by(board: &mut Scoreboard, start: u32, end: u32) -> Vec<u32> {
    let mut news = Vec::new();
    board.sack(SackBlock { start, end }, |number, _| news.push(number));
    news
}

#[test]
fn only_news_is_reported() {
    let mut board = filled(100);
    assert_eq!(sacked_by(&mut board, 10, 13), [10, 11, 12]);
    assert_eq!(sacked_by(&mut board, 10, 14), [13]);
    assert_eq!(sacked_by(&mut board, 20, 22), [20, 21]);
    assert_eq!(sacked_by(&mut board, 8, 22), [8, 9, 14, 15, 16, 17, 18, 19]);
    assert_eq!(board.in_flight(), 100 - 14);
}

#[test]
fn a_lost_retransmission_waits_for_another() {
    let mut board = filled(10);
    board.mark_lost(3);
    assert_eq!(board.next_lost(), Some(3));
    board.retransmit(3, stamp(100));
    assert_eq!((board.next_lost(), board.in_flight()), (None, 10));
    let lost =
        board.detect_lost(
            |number, _| if number == 3 { LossDecision::Lost } else { LossDecision::Later },
        );
    assert_eq!(lost, None);
    assert_eq!((board.next_lost(), board.in_flight(), board.total_lost()), (Some(3), 9, 2));
}

/// `tcp_output.c::tcp_send_loss_probe`: the segment stays in flight once, but its RTT is ambiguous.
#[test]
fn a_probe_makes_the_rtt_ambiguous() {
    let mut board = filled(10);
    board.probe(9, stamp(100));
    assert_eq!((board.in_flight(), board.retransmitted()), (10, 0));
    assert!(board.slot(9).ever_retransmitted() && !board.slot(8).ever_retransmitted());
    assert_eq!(board.slot(9).stamp.sent_at, Time::from_ns(100));
}

/// Segments before `wait` are lost, those before `later` wait, and others left later.
fn detect(board: &mut Scoreboard, wait: u32, later: u32) -> Option<Time> {
    board.detect_lost(|number, _| match number {
        _ if number < wait => LossDecision::Lost,
        _ if number < later => LossDecision::Wait,
        _ => LossDecision::Later,
    })
}

/// `tcp_recovery.c::tcp_rack_detect_loss`: the timer runs until the latest waiting segment is lost.
#[test]
fn detection_returns_the_send_time_of_the_latest_waiting_segment() {
    let mut board = filled(10);
    sacked_by(&mut board, 6, 7);
    assert_eq!(detect(&mut board, 2, 6), Some(Time::from_ns(5)));
    assert_eq!((board.lost(), board.next_lost()), (2, Some(0)));
    assert_eq!(detect(&mut board, 2, 8), Some(Time::from_ns(7)), "6 is SACKed");
    assert_eq!(detect(&mut board, 2, 2), None);
    // Retransmissions are examined, too, in the order in which they left.
    board.retransmit(0, stamp(100));
    board.retransmit(1, stamp(101));
    assert_eq!(detect(&mut board, 0, 1), Some(Time::from_ns(100)));
    assert_eq!(detect(&mut board, 0, 4), Some(Time::from_ns(101)));
    assert_eq!(detect(&mut board, 2, 4), Some(Time::from_ns(3)), "both are lost");
    assert_eq!((board.lost(), board.retransmitted(), board.total_lost()), (2, 0, 4));
}

/// Segments that are lost, or retransmitted, do not wait as originals.
#[test]
fn waiting_originals_exclude_lost_and_retransmitted_segments() {
    let mut board = filled(10);
    for number in [4, 5] {
        board.mark_lost(number);
    }
    assert_eq!(detect(&mut board, 0, 6), Some(Time::from_ns(3)));
    assert_eq!(detect(&mut board, 0, 7), Some(Time::from_ns(6)));
    board.retransmit(4, stamp(100));
    board.unmark_lost();
    sacked_by(&mut board, 4, 5);
    assert_eq!(detect(&mut board, 0, 6), Some(Time::from_ns(5)), "4 arrived");
}

/// Linux removes packets that RACK marks lost from the list that RACK examines
/// (`tcp_recovery.c::tcp_rack_detect_loss`), and an undo does not insert them again.
#[test]
fn after_an_undo_rack_examines_only_what_a_timeout_had_marked() {
    let mut board = filled(10);
    let examined = |board: &mut Scoreboard| {
        let mut examined = Vec::new();
        board.detect_lost(|number, _| {
            examined.push(number);
            if number < 3 { LossDecision::Lost } else { LossDecision::Later }
        });
        examined
    };
    assert_eq!(examined(&mut board), [0, 1, 2, 3]);
    board.mark_lost_where(|number, _| number == 3);
    board.retransmit(0, stamp(100));
    board.unmark_lost();
    assert_eq!((board.lost(), board.in_flight()), (0, 11));
    assert_eq!(examined(&mut board), [3, 0], "the retransmission, too");
    board.retransmit(1, stamp(200));
    assert_eq!(examined(&mut board), [3, 1]);
}

/// The cost per ACK is bounded: the search ends 32 segments after the first that waits.
#[test]
fn the_search_for_the_latest_waiting_segment_is_bounded() {
    let mut board = filled(100);
    assert_eq!(detect(&mut board, 10, 100), Some(Time::from_ns(10 + 32)));
    let mut board = filled(100);
    for number in 0..100 {
        board.mark_lost(number);
        board.retransmit(number, stamp(1_000 + u64::from(number)));
    }
    assert_eq!(detect(&mut board, 0, 100), Some(Time::from_ns(1_000 + 31)));
}

/// An acknowledged or lost retransmission leaves a stale entry, which detection skips.
#[test]
fn stale_retransmissions_are_not_examined() {
    let mut board = filled(10);
    for number in 0..4 {
        board.mark_lost(number);
        board.retransmit(number, stamp(100 + u64::from(number)));
    }
    board.acknowledge(1, |_, _| ());
    sacked_by(&mut board, 1, 2);
    // A second retransmission of segment 2 makes the first one stale.
    board.mark_lost(2);
    board.retransmit(2, stamp(200));
    let mut examined = Vec::new();
    board.detect_lost(|number, slot| {
        examined.push((number, slot.stamp.sent_at.as_ns()));
        if number < 4 { LossDecision::Lost } else { LossDecision::Later }
    });
    assert_eq!(examined, [(4, 4), (3, 103), (2, 200)]);
    assert_eq!(board.take_newly_lost(), [0, 1, 2, 3, 2, 3, 2]);
}

/// `tcp_input.c::tcp_mark_skb_lost` counts a transmission once, and a lost retransmission again.
#[test]
fn a_transmission_is_lost_once() {
    let mut board = filled(10);
    for _ in 0..2 {
        board.mark_lost(3);
    }
    assert_eq!((board.lost(), board.total_lost()), (1, 1));
    board.retransmit(3, stamp(100));
    board.mark_lost(3);
    assert_eq!((board.lost(), board.total_lost()), (1, 2));
    // A retransmission in flight whose original is not lost, as after an undo.
    board.retransmit(3, stamp(200));
    board.unmark_lost();
    board.mark_lost(3);
    assert_eq!((board.lost(), board.total_lost(), board.retransmitted()), (1, 3, 0));
}

#[test]
fn a_timeout_marks_what_is_late() {
    let mut board = filled(10);
    sacked_by(&mut board, 2, 3);
    board.mark_lost_where(|number, _| number < 4);
    assert_eq!(board.take_newly_lost(), [0, 1, 3]);
    assert_eq!((board.lost(), board.next_lost()), (3, Some(0)));
}

/// After an undo, a repair is in flight of what is not lost; it stays so when the original turns
/// up, until its copy does.
#[test]
fn a_copy_takes_a_repair_out_of_flight() {
    let mut board = filled(10);
    board.mark_lost(3);
    board.retransmit(3, stamp(100));
    board.unmark_lost();
    sacked_by(&mut board, 3, 4);
    assert_eq!((board.in_flight(), board.retransmitted()), (10, 1));
    board.retransmission_arrived(3);
    board.retransmission_arrived(3);
    assert_eq!((board.in_flight(), board.retransmitted()), (9, 0));
    assert!(board.adds_up() && board.slot(3).is_sacked());
    // What has not arrived at all is still awaited.
    board.mark_lost(5);
    board.retransmit(5, stamp(101));
    board.retransmission_arrived(5);
    assert_eq!((board.in_flight(), board.retransmitted()), (9, 1));
}

/// `tcp.h::tcp_highest_sack_seq`: the end of the highest SACKed segment that was sent, or
/// `snd_una`.
#[test]
fn the_highest_sack_is_at_least_the_first_segment() {
    let mut board = filled(10);
    assert_eq!(board.highest_sacked(), 0);
    sacked_by(&mut board, 4, 6);
    sacked_by(&mut board, 2, 3);
    assert_eq!(board.highest_sacked(), 6);
    board.acknowledge(8, |_, _| ());
    assert_eq!(board.highest_sacked(), 8);
    assert_eq!(sacked_by(&mut board, 9, 20), [9]);
    assert_eq!(board.highest_sacked(), 10);
}

/// Ten segments: 2 and 3 SACKed, 0 lost, 1 lost and retransmitted.
fn in_recovery() -> Scoreboard {
    let mut board = filled(10);
    sacked_by(&mut board, 2, 4);
    board.mark_lost(0);
    board.mark_lost(1);
    board.retransmit(1, stamp(100));
    board
}

#[test]
fn counts_are_those_of_the_segments() {
    let board = in_recovery();
    assert_eq!(board.counts(), [0, 10, 2, 2, 1]);
    assert!(board.is_consistent() && board.adds_up());
}

#[test]
fn impossible_counts_are_inconsistent() {
    let damages: [fn(&mut Scoreboard); 3] = [
        |board| board.first = 11,
        |board| (board.sacked, board.lost) = (6, 5),
        |board| board.retransmitted = 11,
    ];
    for (number, damage) in damages.iter().enumerate() {
        let mut board = in_recovery();
        damage(&mut board);
        assert!(!board.is_consistent(), "damage {number}");
    }
}

/// `tcp_verify_left_out`.
#[test]
fn counts_that_are_not_those_of_the_segments_do_not_add_up() {
    let damages: [fn(&mut Scoreboard); 4] = [
        |board| board.sacked += 1,
        |board| board.lost -= 1,
        |board| board.retransmitted = 0,
        |board| {
            board.slot_mut(0).flags |= SACKED;
            board.sacked += 1;
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        let mut board = in_recovery();
        damage(&mut board);
        assert!(!board.adds_up(), "damage {number}");
    }
}

/// The plainest possible model: one state per segment, every counter by counting.
#[derive(Default)]
struct Model {
    segments: Vec<(bool, bool, bool)>,
    first: u32,
}

impl Model {
    fn in_flight(&self) -> u32 {
        self.segments[self.first as usize..]
            .iter()
            .map(|&(sacked, lost, again)| {
                (1 + u32::from(again)) - u32::from(sacked) - u32::from(lost)
            })
            .sum()
    }
    fn next_lost(&self) -> Option<u32> {
        (self.first..self.segments.len() as u32).find(|&i| {
            let (sacked, lost, again) = self.segments[i as usize];
            lost && !again && !sacked
        })
    }
}

proptest! {
    #[test]
    fn agrees_with_the_plain_model(
        operations in prop::collection::vec((0u8..6, 0u32..400, 1u32..40), 1..300),
    ) {
        let mut board = Scoreboard::default();
        let mut model = Model::default();
        for (clock, (operation, a, b)) in operations.into_iter().enumerate() {
            let (first, next) = (board.first(), board.next());
            let span = next - first;
            match operation {
                0 => for _ in 0..b {
                    board.push(stamp(clock as u64), 1448);
                    model.segments.push((false, false, false));
                },
                1 => {
                    let end = first + (b / 4).min(span);
                    board.acknowledge(end, |_, _| ());
                    model.first = end;
                }
                2 if span > 0 => {
                    let start = first + a % span;
                    let end = (start + b).min(next);
                    let news = sacked_by(&mut board, start, end);
                    let mut expected = Vec::new();
                    for i in start..end {
                        let s = &mut model.segments[i as usize];
                        if !s.0 {
                            expected.push(i);
                            if s.1 { s.2 = false; }
                            (s.0, s.1) = (true, false);
                        }
                    }
                    prop_assert_eq!(news, expected);
                }
                3 if span > 0 => {
                    let number = first + a % span;
                    board.mark_lost(number);
                    let s = &mut model.segments[number as usize];
                    if !s.0 && (!s.1 || s.2) { (s.1, s.2) = (true, false); }
                }
                4 => if let Some(number) = board.next_lost() {
                    board.retransmit(number, stamp(clock as u64));
                    model.segments[number as usize].2 = true;
                },
                5 if a < 20 => {
                    board.unmark_lost();
                    for s in &mut model.segments[first as usize..] { s.1 = false; }
                }
                _ => {}
            }
            prop_assert_eq!(board.in_flight(), model.in_flight());
            prop_assert_eq!(board.next_lost(), model.next_lost());
        }
    }
}
