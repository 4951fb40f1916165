//! What a sender does while the window keeps it from sending, and what two ends make of it.

use super::*;
use jostle_units::FULL_PAYLOAD_BYTES;

const FULL: u64 = FULL_PAYLOAD_BYTES as u64;

/// Ten segments were offered, sent and acknowledged, and no more were offered.
fn closed() -> Script {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(None);
    script.connect_with(RTT, 10);
    assert_eq!(script.numbers(), range(0, 10));
    script.until(ms(80));
    script.receive(Ack { window: 0, ..script.ack(10) });
    script.sends_nothing();
    script
}

/// RFC 9293 §3.8.6.1: after an RTO, then at intervals that double, up to `TCP_RTO_MAX`.
#[test]
fn a_closed_window_is_probed_ever_more_rarely() {
    let mut script = closed();
    let rto = script.sender.rto.span();
    script.until(ms(1_000_000));
    let probes = script.left();
    assert!(probes.iter().all(|it| (it.number(), it.payload_bytes()) == (9, 0)));
    let mut expected = ms(80);
    for (i, probe) in (0..).zip(&probes) {
        expected += Span::from_ns(rto.as_ns() << i.min(20)).min(RTO_MAX);
        assert_eq!(probe.at, expected, "probe {i}");
    }
    // 240 ms, doubled nine times, are 123 s.
    assert!((15..18).contains(&probes.len()), "{}", probes.len());
    assert_eq!((script.sender.total_sent, script.wire.retransmitted), (10, 0), "they are no data");
}

#[test]
fn a_window_update_ends_the_probes() {
    let mut script = closed();
    script.until(ms(1_000));
    assert_eq!(script.left().len(), 2);
    script.receive(Ack { window: 0, ..script.ack(10) });
    script.sends_nothing();
    script.receive(Ack { window: 3, ..script.ack(10) });
    assert_eq!(script.numbers(), range(10, 13));
    assert_eq!(
        (script.sender.pending, script.sender.peer_window.probes),
        (PendingTimer::LossProbe, 0)
    );
    // The next closed window is probed as soon as the first one was.
    script.until(ms(1_040));
    script.receive(Ack { window: 0, ..script.ack(13) });
    let rto = script.sender.rto.span();
    script.until(ms(1_040) + rto);
    assert_eq!(script.timed_numbers(), [(ms(1_040) + rto, 12)]);
}

/// `tcp_input.c::tcp_ack_update_window`: who waited for the receiver longer than an RTO begins as
/// after silence.
#[test]
fn a_window_that_opens_late_finds_the_senders_halved() {
    for (rtos, cwnd) in [(1, 20), (2, 10)] {
        let mut script = closed();
        script.sender.set_cwnd(20);
        script.until(
            script.sender.last_send + Span::from_ns(script.sender.rto.span().as_ns() * rtos),
        );
        script.left();
        // The first only offers nothing anew: it is no update.
        script.receive(Ack { window: 0, ..script.ack(10) });
        assert_eq!(script.sender.cwnd(), 20);
        script.receive(Ack { window: 100, ..script.ack(10) });
        assert_eq!(script.sender.cwnd(), cwnd, "after {rtos} RTOs");
        assert_eq!(script.numbers().len() as u32, cwnd);
    }
}

/// `tcp_input.c::tcp_ack_probe`: an answer that leaves the window closed counts the interval anew.
#[test]
fn an_answer_postpones_the_next_probe() {
    let mut script = closed();
    let rto = script.sender.rto.span();
    script.until(ms(80) + rto + RTT);
    assert_eq!(script.left().len(), 1);
    let answered = script.now;
    script.receive(Ack { window: 0, ..script.ack(10) });
    script.until(answered + rto + rto);
    assert_eq!(script.timed_numbers(), [(answered + rto + rto, 9)]);
}

#[test]
fn nothing_is_probed_for_when_the_application_has_nothing_to_send() {
    let mut script = closed();
    assert!(script.sender.withdraw());
    script.until(ms(100_000));
    script.sends_nothing();
    assert_eq!(script.sender.pending, PendingTimer::None);
}

/// `tcp_output.c::__tcp_retransmit_skb`: beyond the window only the first segment is retransmitted,
/// if a start ignored the window. PRR would permit all eight lost segments.
#[test]
fn nothing_is_retransmitted_beyond_the_window() {
    for (end, retransmitted) in [(4, range(0, 4)), (1, vec![0]), (0, vec![0]), (20, range(0, 8))] {
        let mut script = Script::bulk(20);
        script.sender.withdraw();
        script.left();
        script.sender.peer_window.end = end;
        script.until(ms(80));
        script.receive(Ack { window: end, ..script.sack(0, &[(8, 20)]) });
        assert_eq!(script.numbers(), retransmitted, "window of {end}");
    }
}

/// A loss probe retransmits the last segment only if it is within the window.
#[test]
fn no_loss_probe_is_sent_beyond_the_window() {
    for (end, probe) in [(10, vec![9]), (9, vec![])] {
        let mut script = Script::bulk(10);
        script.sender.withdraw();
        script.left();
        script.sender.peer_window.end = end;
        script.until(ms(122));
        assert_eq!(script.numbers(), probe, "window of {end}");
    }
}

/// The hole before a full window is mended, the buffer is read after the ACK that says so, and that
/// is told. If the telling is lost, a probe asks.
#[test]
fn a_window_that_opens_again_is_told_or_asked_for() {
    for update_is_lost in [false, true] {
        let mut path = Loopback::new(SenderConfig { initial_window: 45, ..OPTIONS }, reno(), RTT);
        path.receiver = Receiver::new(1448, 45 * FULL, RTT, EcnFeedback::Classic);
        path.lost = vec![0];
        path.drop_update = update_is_lost;
        path.start(Some(100 * FULL));
        path.until(ms(10_000));
        assert_eq!(path.delivered_bytes, 100 * FULL, "update lost: {update_is_lost}");
        assert!(path.script.sender.is_drained());
        let empty = path
            .script
            .wire
            .departures
            .iter()
            .filter(|it| it.data().is_some() && it.payload_bytes() == 0);
        assert_eq!(empty.count(), usize::from(update_is_lost));
    }
}
