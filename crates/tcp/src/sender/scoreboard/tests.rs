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
    // What has not arrived at all is still awaited.
    board.mark_lost(5);
    board.retransmit(5, stamp(101));
    board.retransmission_arrived(5);
    assert_eq!((board.in_flight(), board.retransmitted()), (9, 1));
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
