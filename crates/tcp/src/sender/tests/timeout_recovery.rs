//! Recovery after a timeout: what is lost, the window, and F-RTO (RFC 5682).

use super::recovery::twenty;
use super::timers::{ambiguous, timed_out};
use super::*;

/// `tcp_input.c::tcp_timeout_mark_lost`: packets sent less than an RTT ago are not lost, and cwnd
/// allows one packet more than those (`tcp_input.c::tcp_enter_loss`).
#[test]
fn packets_sent_within_the_last_rtt_survive_a_timeout() {
    let mut script = twenty();
    script.receive(script.ack(2));
    let new = script.sender.board.next() - 20;
    assert_eq!(new, 4, "two acknowledged, and two more for slow start");
    script.until(ms(100));
    script.sender.enter_loss(script.now);
    assert_eq!((script.sender.board.lost(), script.sender.in_flight()), (18, new));
    assert_eq!(script.sender.cwnd(), new + 1);
}

/// `tcp_input.c::tcp_enter_loss` reduces ssthresh if the timeout is the first sign of a loss.
#[test]
fn a_timeout_in_disorder_reduces_ssthresh() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 3)]));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Disorder, u32::MAX));
    script.sender.enter_loss(script.now);
    assert_eq!(script.sender.ssthresh, 10);
}

/// "!after(tp->high_seq, tp->snd_una)": a reduction of an earlier window does not spare the next.
#[test]
fn a_timeout_after_a_marked_window_reduces_ssthresh_again() {
    for (end, ssthresh) in [(19, 10), (20, 5)] {
        let options = SenderConfig { initial_window: 20, ecn: true, ..OPTIONS };
        let mut script = Script::new(options, reno());
        script.supply(None);
        script.connect(RTT);
        script.until(ms(80));
        script.receive(Ack { ece: true, ..script.ack(1) });
        for number in 2..=end {
            script.receive(script.ack(number));
        }
        assert_eq!((script.state(), script.sender.recovery.high()), (RecoveryState::Cwr, 20));
        script.sender.enter_loss(script.now);
        assert_eq!(script.sender.ssthresh, ssthresh, "{end} of 20 acknowledged");
    }
}

/// RFC 5682 §3.1, step 2 waits for the ACK of the retransmission, whatever duplicates come before
/// (`tcp_input.c::tcp_process_loss`).
#[test]
fn a_duplicate_ack_before_that_of_the_retransmission_leaves_frto_alone() {
    let mut script = timed_out();
    script.receive(ambiguous(&script, 0));
    script.sends_nothing();
    script.receive(ambiguous(&script, 1));
    assert_eq!(script.numbers(), [11, 12], "step 2.b");
}

/// `FLAG_ORIG_SACK_ACKED`: step 3.b applies to SACKs of originals, too.
#[test]
fn a_sack_of_an_original_undoes_a_timeout() {
    let mut script = timed_out();
    script.receive(ambiguous(&script, 1));
    let sack = Ack { tsecr_ms: timestamp_ms(ms(362)), ..script.sack(1, &[(2, 3)]) };
    script.receive(sack);
    assert_eq!(script.sender.ssthresh, u32::MAX);
}

/// `FLAG_ORIG_SACK_ACKED` ends at `high_seq`: segment 10 was sent after the timeout. Segments 0 and 1
/// had been retransmitted before two timeouts, and the others were SACKed.
#[test]
fn an_ack_of_data_sent_after_a_timeout_does_not_undo_it() {
    let mut script = Script::bulk(10);
    script.sender.withdraw();
    script.until(ms(80));
    script.receive(script.sack(0, &[(2, 10)]));
    assert_eq!((script.state(), script.wire.retransmitted), (RecoveryState::Recovery, 2));
    while script.sender.rto.expiries() < 2 {
        script.until(script.deadline());
    }
    assert!(script.sender.recovery.frto);
    script.left();
    script.until(script.now + RTT);
    script.supply(Some(2 * 1448));
    script.receive(script.ack(1));
    assert_eq!((script.numbers(), script.sender.recovery.high()), (vec![10, 11], 10));
    let ssthresh = script.sender.ssthresh;
    script.until(script.now + RTT);
    script.receive(Ack { tsecr_ms: script.stamp_of(10), ..script.ack(11) });
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Open, ssthresh));
}

/// `FLAG_LOST_RETRANS` of `tcp_input.c::tcp_fastretrans_alert`: the retransmission of segment 1 is
/// lost, because that of segment 2, sent at the same time, arrived.
#[test]
fn a_lost_retransmission_turns_a_timeout_into_a_recovery() {
    let mut script = timed_out();
    script.receive(ambiguous(&script, 1));
    script.until(ms(442));
    for end in [12, 13] {
        script.receive(Ack { tsecr_ms: timestamp_ms(ms(362)), ..script.sack(1, &[(11, end)]) });
    }
    assert_eq!(script.numbers(), [11, 12, 1, 2], "new data in step 2.b, then what was lost");
    assert_eq!(script.state(), RecoveryState::Loss);
    script.until(ms(482));
    let sack = script.sack(1, &[(2, 3), (11, 13)]);
    script.receive(Ack { tsecr_ms: timestamp_ms(ms(362)), ..sack });
    assert_eq!((script.state(), script.numbers()[0]), (RecoveryState::Recovery, 1));
}

/// `tcp_input.c::tcp_clean_rtx_queue`: a SACK restarts the timer if its segment left before the latest
/// transmission of the first segment.
#[test]
fn a_sack_of_data_older_than_the_retransmission_restarts_the_timeout() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 4)]));
    assert_eq!(script.state(), RecoveryState::Recovery);
    script.until(ms(90));
    script.receive(script.sack(0, &[(1, 5)]));
    assert_eq!(script.sender.pending, PendingTimer::Retransmission);
    assert_eq!(script.sender.deadlines().retransmission, ms(90) + script.sender.rto.span());
}

/// The same if both left at the same time: the network card is full, so that segment 0 is not
/// retransmitted yet.
#[test]
fn a_sack_of_data_sent_with_the_first_segment_leaves_the_timer_alone() {
    let mut script = twenty();
    script.wire.card_bytes = Some(1 << 30);
    script.receive(script.sack(0, &[(1, 4)]));
    assert_eq!((script.state(), script.wire.retransmitted), (RecoveryState::Recovery, 0));
    let timer = (script.sender.pending, script.sender.deadlines().retransmission);
    script.until(ms(81));
    script.receive(script.sack(0, &[(1, 5)]));
    assert_eq!((script.sender.pending, script.sender.deadlines().retransmission), timer);
}

/// Step 2 of RFC 8985 §6.2: an ACK of the retransmission, which echoes its timestamp, proves that
/// what left before it is lost.
#[test]
fn the_ack_of_a_retransmission_proves_older_packets_lost() {
    for (echo, lost) in [(ms(80), 16), (ms(79), 0)] {
        let mut script = twenty();
        script.receive(script.sack(0, &[(1, 4)]));
        script.until(ms(120));
        let total = script.sender.board.total_lost();
        // Acknowledges segment 0, and 1 to 3 that were SACKed; 4 to 19 left at 40 ms.
        script.receive(Ack { tsecr_ms: timestamp_ms(echo), ..script.ack(4) });
        assert_eq!(script.sender.board.total_lost() - total, lost, "echo of {echo:?}");
    }
}
