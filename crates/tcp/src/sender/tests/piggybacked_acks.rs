//! ACKs that come with data, and the sender of the end that accepts a connection.

use jostle_controllers::registry;

use super::*;

/// A sender in whose window ten segments are outstanding.
fn with_ten_outstanding() -> Script {
    let mut script = Script::bulk(10);
    assert_eq!(script.numbers().len(), 10);
    script.until(ms(80));
    script
}

/// Linux evaluates SACK blocks of data segments, too (`tcp_input.c::tcp_ack`).
#[test]
fn blocks_of_a_data_segment_show_losses() {
    let mut script = with_ten_outstanding();
    for end in 2..=4 {
        let ack = script.sack(0, &[(1, end)]);
        script.sender.on_ack_with_data(script.now, &ack, &mut script.wire).unwrap();
    }
    assert_eq!(script.state(), RecoveryState::Recovery);
    assert!(script.numbers().contains(&0), "retransmitted");
}

/// Lost data are sent by `tcp_input.c::tcp_ack`, new data later by `tcp_input.c::tcp_rcv_established`.
#[test]
fn new_data_leave_after_the_data_of_the_segment() {
    let mut script = with_ten_outstanding();
    let ack = script.ack(2);
    let done = script.sender.on_ack_with_data(script.now, &ack, &mut script.wire).unwrap();
    assert_eq!(done.acked_bytes, 2 * 1448);
    assert_eq!(script.numbers(), range(0, 0), "the data come first");
    script.sender.write_after_data(script.now, &mut script.wire);
    assert_eq!(script.numbers(), range(10, 14));
}

/// The conditions of `tcp_input.c::tcp_rcv_established` that an ACK decides.
#[test]
fn header_prediction_expects_no_blocks_and_the_same_window() {
    let mut script = with_ten_outstanding();
    let ack = script.ack(2);
    script.sender.on_ack(script.now, &ack, &mut script.wire);
    assert!(script.sender.predicts(&script.ack(4)));
    assert!(!script.sender.predicts(&script.sack(4, &[(6, 7)])));
    assert!(!script.sender.predicts(&Ack { ece: true, ..script.ack(4) }));
    assert!(!script.sender.predicts(&Ack { window: ack.window + 1, ..script.ack(4) }));
}

fn accepted() -> (Sender, Wire) {
    let mut sender = Sender::new(OPTIONS, reno());
    let mut wire = Wire::default();
    sender.supply(ms(0), Some(5 * 1448), &mut wire);
    sender.on_syn(ms(10));
    assert!(wire.departures.is_empty() && sender.awaits_ack_of_syn());
    (sender, wire)
}

#[test]
fn an_accepted_connection_sends_after_the_ack_of_its_syn() {
    let (mut sender, mut wire) = accepted();
    sender.on_ack_of_syn(ms(50), false, QuickStartRate::NONE, &ack(0, 11, 45, false), &mut wire);
    assert_eq!((sender.srtt(), wire.departures.len()), (RTT, 5));
    assert!(!sender.awaits_ack_of_syn());
}

/// JumpStart sends all data that the application has written, which a server has not before the request.
#[test]
fn the_controller_of_a_server_starts_with_its_response() {
    let jumpstart = registry::slow_start("jumpstart").unwrap().create(&BTreeMap::new()).unwrap();
    let controller = Box::new(WindowBasedController::new(Reno, jumpstart));
    let mut sender = Sender::new(SenderConfig { is_server: true, ..OPTIONS }, controller);
    let mut wire = Wire::default();
    sender.on_syn(ms(10));
    sender.on_ack_of_syn(ms(50), false, QuickStartRate::NONE, &ack(0, 11, 45, false), &mut wire);
    assert_eq!((sender.cwnd(), wire.departures.len()), (10, 0));
    // Later than an RTO: the window is not one that was idle.
    sender.supply(ms(2_000), Some(30 * 1448), &mut wire);
    assert_eq!(sender.cwnd(), 30);
    assert!(sender.visible_pacing_rate().is_some());
}

/// Linux measures no RTT from a SYN-ACK that it has sent twice (`tcp_input.c::tcp_synack_rtt_meas`): the
/// echoed timestamp is that of the second.
#[test]
fn a_syn_ack_is_retransmitted_after_a_second() {
    let (mut sender, mut wire) = accepted();
    assert_eq!(sender.deadlines().retransmission, ms(1_010));
    assert!(!sender.on_syn_ack_timer(ms(1_009)));
    assert!(sender.on_syn_ack_timer(ms(1_010)));
    assert_eq!(sender.deadlines().retransmission, ms(3_010));
    sender.on_ack_of_syn(
        ms(1_060),
        false,
        QuickStartRate::NONE,
        &ack(0, timestamp_ms(ms(1_010)), 45, false),
        &mut wire,
    );
    assert_eq!((sender.srtt(), sender.cwnd()), (Span::from_ms(50), 10));
}

/// Two clocks of 1 ms: an RTT from timestamps is a whole number of milliseconds, and at least one
/// (`tcp_input.c::tcp_ack_update_rtt`).
#[test]
fn an_rtt_from_timestamps_has_the_granularity_of_their_clock() {
    for (sent_us, acked_us, rtt_ms) in
        [(10_900, 51_100, 41), (10_100, 50_900, 40), (10_100, 10_300, 1)]
    {
        let mut sender = Sender::new(OPTIONS, reno());
        let mut wire = Wire::default();
        sender.on_syn(ms(0));
        assert!(sender.on_syn_ack_timer(ms(1_000)));
        let at = |it: u64| ms(1_000) + Span::from_us(it);
        let echo = timestamp_ms(at(sent_us));
        sender.on_ack_of_syn(
            at(acked_us),
            false,
            QuickStartRate::NONE,
            &ack(0, echo, 45, false),
            &mut wire,
        );
        assert_eq!(sender.srtt(), Span::from_ms(rtt_ms), "{sent_us} to {acked_us}");
    }
}
