//! RTO, loss probes, F-RTO.

use super::*;

/// algorithms.md asks: "RTO at 40 ms RTT ≥ 240 ms"; each one doubles.
#[test]
fn timeouts_back_off() {
    let mut script = Script::bulk(10);
    assert_eq!(script.sender.rto.span(), Span::from_ms(240));
    script.left();
    script.until(ms(4_000));
    // The probe, of new data, 2·SRTT + 2 ms after the last packet; the RTO counts from it.
    let probe = (ms(40 + 82), 10);
    let first = 122 + 240;
    let expected = [
        probe,
        (ms(first), 0),
        (ms(first + 480), 0),
        (ms(first + 480 + 960), 0),
        (ms(first + 480 + 960 + 1920), 0),
    ];
    assert_eq!(script.timed_numbers(), expected);
    assert_eq!((script.sender.cwnd(), script.state()), (1, RecoveryState::Loss));
}

#[test]
fn the_back_off_ends_with_a_valid_rtt_sample_and_is_capped() {
    let mut script = Script::bulk(10);
    script.until(ms(600_000));
    assert_eq!(script.sender.rto.span(), Span::from_secs(120));
    let at: Vec<_> = script.left().iter().map(|it| it.at).collect();
    let last_gap = at[at.len() - 1].since(at[at.len() - 2]);
    assert_eq!(last_gap, Span::from_secs(120));
    script.until(at[at.len() - 1] + Span::from_secs(120) + RTT);
    // Echoes the last retransmission: the timestamp makes it valid (RFC 7323 §4).
    script.receive(script.ack(1));
    assert_eq!(script.sender.rto.span(), Span::from_ms(240));
}

#[test]
fn a_probe_waits_two_round_trips_and_2_ms() {
    let mut script = Script::bulk(10);
    script.until(ms(80));
    script.receive(script.ack(8));
    script.sender.withdraw();
    script.left();
    script.until(ms(161));
    script.sends_nothing();
    script.until(ms(162));
    assert_eq!(script.left().len(), 1);
}

/// A lone packet's ACK may be delayed by 200 ms.
#[test]
fn a_probe_of_a_lone_packet_waits_200_ms_longer() {
    let rtt = Span::from_ms(600);
    let mut script = Script::new(OPTIONS, reno());
    script.supply(Some(100));
    script.connect(rtt);
    script.left();
    assert_eq!(script.sender.rto.span(), Span::from_ms(600 + 4 * 300));
    script.until(ms(5_000));
    let probe_ms = 600 + 2 * 600 + 200;
    assert_eq!(script.timed_numbers()[..2], [(ms(probe_ms), 0), (ms(probe_ms + 1_800), 0)]);
}

/// RFC 8985 §7.2: "PTO … is … never … after the RTO".
#[test]
fn a_probe_never_comes_after_the_timeout() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(Some(100));
    script.connect(RTT);
    script.left();
    script.until(ms(40 + 240));
    assert_eq!(script.timed_numbers(), [(ms(280), 0)]);
    assert_eq!(script.state(), RecoveryState::Open, "a probe, not a timeout");
}

#[test]
fn a_probe_sends_new_data_first() {
    let mut script = Script::bulk(10);
    script.until(ms(122));
    assert_eq!(script.numbers().pop(), Some(10));
    assert_eq!(script.wire.retransmitted, 0);
    assert_eq!(script.sender.in_flight(), 11, "whatever the window says");
}

/// One probe per tail: afterwards the RTO decides.
#[test]
fn only_one_probe_is_out() {
    let mut script = Script::bulk(10);
    script.sender.withdraw();
    script.left();
    script.until(ms(122 + 239));
    assert_eq!(script.numbers(), [9]);
    assert_eq!(script.state(), RecoveryState::Open);
    script.until(ms(122 + 240));
    assert_eq!(script.numbers(), [0]);
    assert_eq!(script.state(), RecoveryState::Loss);
}

/// `tcp_output.c::tcp_send_loss_probe`: while a probe is out, the timer of the next one sends nothing.
/// The RTO then counts from the oldest packet, but ends 1 ms later at the earliest
/// (`tcp_input.c::tcp_rearm_rto`).
#[test]
fn the_timer_of_a_second_probe_becomes_that_of_the_timeout() {
    for (ack_ms, is_overdue) in [(130, false), (250, true)] {
        let mut script = Script::bulk(10);
        script.sender.withdraw();
        script.left();
        script.until(ms(ack_ms));
        assert_eq!(script.numbers(), [9]);
        script.receive(script.ack(5));
        assert_eq!(script.sender.pending, PendingTimer::LossProbe);
        let probe_at = script.deadline();
        script.until(probe_at);
        script.sends_nothing();
        assert_eq!(script.sender.pending, PendingTimer::Retransmission);
        let rto_at = ms(40) + script.sender.rto.span();
        assert_eq!(rto_at < probe_at, is_overdue);
        assert_eq!(script.deadline(), rto_at.max(probe_at + Span::from_ms(1)));
    }
}

/// RFC 8985 §7.3: new data only "if … the receive window allows".
#[test]
fn a_probe_does_not_exceed_the_receive_window() {
    for (window, probe) in [(11, 10), (10, 9)] {
        let mut script = Script::new(SenderConfig { initial_window: 10, ..OPTIONS }, reno());
        script.supply(None);
        script.connect_with(RTT, window);
        script.left();
        script.until(ms(122));
        assert_eq!(script.numbers(), [probe], "window of {window}");
    }
}

/// Ten packets of which the last was lost and repaired by the probe, then ten more.
fn after_a_probe(spurious: bool) -> Script {
    let mut script = Script::bulk(10);
    script.sender.withdraw();
    script.until(ms(80));
    if !spurious {
        script.receive(script.ack(9));
    }
    script.until(ms(320));
    assert_eq!(script.numbers().last(), Some(&9), "the probe");
    script.receive(script.ack(10));
    if spurious {
        script.receive(script.dsack(10, &[(9, 10)]));
    }
    script.supply(Some(10 * 1448));
    script.until(ms(360));
    script.receive(script.ack(20));
    script
}

/// RFC 8985 §7.4.2: the loss that the probe repaired calls for a congestion response.
#[test]
fn a_probe_that_repaired_a_loss_halves_the_window() {
    let script = after_a_probe(false);
    // The window had grown to 20.
    assert_eq!(script.sender.ssthresh, 20 / 2);
    assert!(script.sender.cwnd() <= 11, "{}", script.sender.cwnd());
    assert_eq!(script.state(), RecoveryState::Open);
}

/// `tcp_input.c::tcp_process_tlp_ack` ends the episode of the probe: the next ACK reduces nothing.
#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window_once() {
    let mut script = after_a_probe(false);
    script.supply(Some(1448));
    script.until(ms(400));
    script.receive(script.ack(21));
    assert_eq!(script.sender.ssthresh, 20 / 2);
}

/// `tcp_input.c::tcp_init_cwnd_reduction` ends it, too: the recovery that began meanwhile is the
/// only response.
#[test]
fn a_recovery_ends_the_episode_of_the_probe() {
    let mut script = Script::bulk(10);
    script.sender.withdraw();
    script.until(ms(122));
    assert_eq!(script.numbers().last(), Some(&9), "the probe");
    script.receive(script.sack(0, &[(1, 4)]));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Recovery, 5));
    script.supply(Some(1448));
    script.until(ms(162));
    script.receive(script.ack(10));
    script.until(ms(202));
    script.receive(script.ack(11));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Open, 5));
}

/// The duplicate comes when nothing is outstanding any more.
/// `tcp_input.c::tcp_any_retrans_done`: Linux does not count the probe as a retransmission in flight,
/// but notices that the first outstanding segment was sent twice.
#[test]
fn the_state_is_disordered_if_only_the_probe_is_outstanding() {
    let mut script = Script::bulk(10);
    script.until(ms(80));
    script.receive(script.ack(7));
    script.sender.withdraw();
    script.left();
    script.until(ms(162));
    let probe = script.sender.board.next() - 1;
    assert_eq!(script.numbers(), [probe]);
    for (number, state) in [
        (8, RecoveryState::Open),
        (8, RecoveryState::Open),
        (probe, RecoveryState::Open),
        (probe, RecoveryState::Disorder),
        (probe + 1, RecoveryState::Open),
    ] {
        script.receive(script.ack(number));
        assert_eq!(script.state(), state, "ACK of {number}");
    }
}

#[test]
fn a_needless_probe_costs_nothing() {
    let script = after_a_probe(true);
    assert_eq!(script.sender.ssthresh, u32::MAX);
    assert_eq!(script.sender.cwnd(), 20, "10 and one for each of the first 10");
}

/// An RTO that only a delay spike caused: `recovery.rs` has what follows from timestamps.
pub(super) fn timed_out() -> Script {
    let mut script = Script::bulk(10);
    script.until(ms(362));
    assert_eq!(script.state(), RecoveryState::Loss);
    // The probe was new data.
    assert_eq!(script.numbers(), [range(0, 11), vec![0]].concat());
    assert_eq!((script.sender.cwnd(), script.sender.in_flight()), (1, 1));
    script.until(ms(402));
    script
}

/// An ACK that echoes the retransmission, so that timestamps prove nothing.
pub(super) fn ambiguous(script: &Script, number: u32) -> Ack {
    Ack { tsecr_ms: timestamp_ms(ms(362)), ..script.ack(number) }
}

/// RFC 5682 §3.1: the first ACK after the timeout makes the sender send new data; if the next one
/// acknowledges data that was never repeated, the timeout was spurious.
#[test]
fn a_spurious_timeout_is_undone() {
    let mut script = timed_out();
    script.receive(ambiguous(&script, 1));
    assert_eq!(script.numbers(), [11, 12], "step 2.b");
    assert_eq!(script.state(), RecoveryState::Loss);
    script.receive(ambiguous(&script, 2));
    assert_eq!(script.state(), RecoveryState::Open);
    assert!(script.sender.cwnd() >= 10, "{}", script.sender.cwnd());
    assert_eq!(script.sender.ssthresh, u32::MAX);
    assert_eq!(script.sender.board.lost(), 0);
    assert_eq!(script.wire.retransmitted, 1, "only that of the timeout");
}

#[test]
fn a_real_timeout_is_not_undone() {
    let mut script = timed_out();
    script.receive(ambiguous(&script, 1));
    assert_eq!(script.numbers(), [11, 12]);
    script.until(ms(442));
    // Step 3.a: a duplicate ACK, of the new data.
    let ack = Ack { tsecr_ms: timestamp_ms(ms(362)), ..script.sack(1, &[(11, 12)]) };
    script.receive(ack);
    assert_eq!(script.state(), RecoveryState::Loss);
    assert_eq!(script.sender.ssthresh, 5);
    assert_eq!(script.numbers()[0], 1, "conventional recovery");
}

/// RFC 5682 §3.1 step 2.b requires unsent data and a window that permits them: without, the recovery
/// is conventional.
#[test]
fn frto_needs_new_data_within_the_window() {
    let mut without_data = timed_out();
    without_data.sender.withdraw();
    without_data.receive(ambiguous(&without_data, 1));

    let mut full = Script::new(SenderConfig { initial_window: 10, ..OPTIONS }, reno());
    full.supply(None);
    full.connect_with(RTT, 11);
    full.until(ms(402));
    full.left();
    assert_eq!(full.sender.board.next(), 11);
    full.receive(Ack { window: 10, ..ambiguous(&full, 1) });

    for mut script in [without_data, full] {
        assert!(!script.sender.recovery.frto);
        assert_eq!(script.numbers(), [1, 2]);
    }
}

/// A window update in between is no duplicate ACK and proves nothing.
#[test]
fn a_window_update_leaves_frto_alone() {
    let mut script = timed_out();
    script.receive(ambiguous(&script, 1));
    let update = Ack { window: 1 << 21, ..ambiguous(&script, 1) };
    script.receive(update);
    assert!(script.sender.recovery.frto);
    script.receive(ambiguous(&script, 1));
    assert!(!script.sender.recovery.frto, "a plain duplicate ACK does");
}

/// Everything not SACKed is repeated in order after a timeout, in slow start.
#[test]
fn a_timeout_repeats_what_was_lost() {
    let mut path = Loopback::new(SenderConfig { initial_window: 20, ..OPTIONS }, reno(), RTT);
    path.lost = range(0, 20);
    path.lost.push(19);
    path.start(Some(20 * 1448));
    path.until(ms(3_000));
    assert!(path.script.sender.is_drained());
    assert_eq!(path.delivered_bytes, 20 * 1448);
    let data: Vec<_> = path.script.wire.departures[1..].iter().map(|it| it.number()).collect();
    let probe = vec![19];
    assert_eq!(data, [range(0, 20), probe, range(0, 20)].concat());
}
