//! The start, course and end of reductions of the window, and what begins none.

use super::recovery::twenty;
use super::*;
use crate::sender::recovery::AckFindings;

/// `tcp_input.c::tcp_ack_is_dubious`: an ACK without progress or with `FLAG_CA_ALERT`.
#[test]
fn an_ack_is_dubious_without_progress_or_with_an_alert() {
    let progress = AckFindings { advanced: true, ..AckFindings::default() };
    for (findings, dubious) in [
        (progress, false),
        (AckFindings { window_update: true, ..AckFindings::default() }, false),
        (AckFindings::default(), true),
        (AckFindings { sacked: true, ..progress }, true),
        (AckFindings { ecn_echo: true, ..progress }, true),
        (AckFindings { duplicate: true, ..progress }, true),
    ] {
        assert_eq!(findings.is_dubious(), dubious, "{findings:?}");
    }
}

/// `tcp_input.c::tcp_any_retrans_done` also checks whether the first segment was ever retransmitted:
/// a loss probe is not counted as a retransmission in flight.
#[test]
fn a_probed_segment_keeps_the_sender_in_disorder() {
    let mut script = Script::bulk(1);
    script.sender.withdraw();
    while script.wire.retransmitted == 0 {
        script.until(script.deadline());
    }
    assert_eq!((script.state(), script.sender.board.retransmitted()), (RecoveryState::Open, 0));
    script.receive(script.ack(0));
    assert_eq!(script.state(), RecoveryState::Disorder);
}

/// RFC 8985 §7.4.2: a duplicate ACK at the end of the probe says that probe and original arrived,
/// also if the receiver reports no D-SACK.
#[test]
fn a_duplicate_ack_ends_a_needless_probe() {
    let mut script = Script::bulk(10);
    script.sender.withdraw();
    script.until(ms(320));
    assert_eq!(script.numbers().last(), Some(&9), "the probe");
    for _ in 0..2 {
        script.receive(script.ack(10));
    }
    script.supply(Some(10 * 1448));
    script.until(ms(360));
    script.receive(script.ack(20));
    assert_eq!(script.sender.ssthresh, u32::MAX);
}

/// "if (newly_acked_sacked <= 0) return" in `tcp_input.c::tcp_cwnd_reduction`.
#[test]
fn a_mark_without_a_delivery_lets_nothing_out() {
    let options = SenderConfig { initial_window: 20, ecn: true, ..OPTIONS };
    let mut script = Script::new(options, reno());
    script.supply(None);
    script.connect(RTT);
    script.left();
    script.until(ms(80));
    script.receive(Ack { ece: true, ..script.ack(0) });
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Cwr, 10));
    assert_eq!(script.sender.cwnd(), 20);
    script.sends_nothing();
}

/// RFC 9937 §6.2: SafeACK requires that SND.UNA advances and that the ACK indicates no further loss.
/// If only one of both holds, as much is sent as was delivered.
#[test]
fn prr_slow_starts_only_with_progress_and_without_further_losses() {
    let below_ssthresh = || {
        let mut script = Script::bulk(100);
        script.left();
        script.until(ms(80));
        script.receive(script.sack(0, &[(80, 100)]));
        assert_eq!(script.numbers(), range(0, 20));
        script.until(ms(120));
        script
    };
    let mut script = below_ssthresh();
    script.receive(script.ack(1));
    assert_eq!(script.numbers().len(), 2, "progress");
    let mut script = below_ssthresh();
    script.receive(script.sack(0, &[(21, 22)]));
    assert_eq!(script.numbers().len(), 1, "SND.UNA did not advance");
    let mut script = below_ssthresh();
    script.receive(script.sack(1, &[(2, 3)]));
    assert_eq!(script.sender.board.total_lost(), 80 + 1, "the retransmission of segment 1");
    assert_eq!(script.numbers(), [1, 20], "as many as were delivered");
    assert_eq!(script.sender.in_flight(), 20 - 2 - 1 + 2);
}

/// RFC 9937 §6.1: RecoverFS counts what is outstanding and what the first ACK of the recovery
/// delivered, five packets here. 14 deliveries let ⌈14 · 20/28⌉ packets leave.
#[test]
fn recover_flight_size_includes_what_the_first_ack_delivered() {
    let options = SenderConfig {
        initial_window: 40,
        recover_flight_size: RecoverFlightSize::Outstanding,
        ..OPTIONS
    };
    let mut script = Script::new(options, reno());
    script.supply(Some(30 * 1448));
    script.connect(RTT);
    script.until(ms(80));
    script.left();
    script.receive(script.sack(0, &[(1, 3)]));
    script.receive(script.sack(0, &[(1, 8)]));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Recovery, 20));
    script.supply(None);
    for end in 9..=17 {
        script.receive(script.sack(0, &[(1, end)]));
    }
    assert_eq!(script.left().len(), 10);
}

/// `TCP_INFINITE_SSTHRESH` in `tcp_input.c::tcp_end_cwnd_reduction`: without a threshold, the window
/// stays.
#[test]
fn a_recovery_without_ssthresh_keeps_the_window() {
    let mut script = Script::new(OPTIONS, Box::new(Still { cwnd: 20, ssthresh: None }));
    script.supply(None);
    script.connect(RTT);
    script.until(ms(80));
    script.receive(script.sack(0, &[(1, 20)]));
    assert_eq!(script.state(), RecoveryState::Recovery);
    script.until(ms(120));
    script.receive(script.ack(script.sender.board.next()));
    assert_eq!(script.state(), RecoveryState::Open);
    assert!(script.sender.cwnd() <= 20 + 1, "{}", script.sender.cwnd());
}

/// `tcp_recovery.c::tcp_rack_mark_lost` returns unless an ACK delivered something: at 91 ms, segment
/// 0 is later than the reordering window allows, but the timer waits until 92 ms.
#[test]
fn an_ack_that_delivers_nothing_detects_no_loss() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 2)]));
    script.left();
    script.until(ms(91));
    script.receive(script.sack(0, &[(1, 2)]));
    script.sends_nothing();
    script.until(ms(92));
    assert_eq!(script.numbers()[0], 0);
}

/// `tcp_input.c::tcp_sacktag_one`: a hole below the highest SACK that a SACK fills is reordering,
/// unless the segment was retransmitted.
#[test]
fn a_sack_below_the_highest_is_reordering() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(5, 6)]));
    assert!(!script.sender.reordering.is_seen());
    script.receive(script.sack(0, &[(2, 3), (5, 6)]));
    assert_eq!(
        (script.state(), script.sender.reordering.is_seen()),
        (RecoveryState::Disorder, true)
    );
    assert_eq!(script.sender.reordering.degree(), 6 - 2);

    let mut script = twenty();
    script.receive(script.sack(0, &[(2, 6)]));
    assert_eq!(script.wire.retransmitted, 2);
    script.until(ms(120));
    script.receive(script.sack(0, &[(1, 6)]));
    assert!(!script.sender.reordering.is_seen(), "segment 1 was retransmitted");
}
