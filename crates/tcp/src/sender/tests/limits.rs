//! What a sender reports as its limit, and when.

use super::*;

/// The limit since each change.
fn limits(script: &Script) -> Vec<(u64, SendLimit)> {
    script.wire.limits.iter().map(|(at, limit)| (at.as_ns() / 1_000_000, *limit)).collect()
}

#[test]
fn a_bulk_sender_waits_for_cwnd_and_a_small_window_for_the_receiver() {
    let script = Script::bulk(10);
    assert_eq!(limits(&script), [(40, SendLimit::Cwnd)]);

    let mut script = Script::new(OPTIONS, reno());
    script.supply(None);
    script.connect_with(RTT, 9);
    assert_eq!(limits(&script), [(40, SendLimit::ReceiveWindow)]);
    // The window opens beyond cwnd: from then on cwnd is the limit.
    script.until(ms(80));
    script.receive(script.ack(9));
    assert_eq!(limits(&script)[1..], [(80, SendLimit::Cwnd)]);
}

#[test]
fn the_application_is_the_limit_until_it_writes_more_than_cwnd() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(Some(3 * 1448));
    script.connect(RTT);
    assert_eq!(limits(&script), [(40, SendLimit::Application)]);
    script.until(ms(50));
    script.supply(Some(100 * 1448));
    assert_eq!(limits(&script)[1..], [(50, SendLimit::Cwnd)]);
}

#[test]
fn pacing_is_the_limit_between_two_departures() {
    let mut script = Script::new(SenderConfig { pacing: true, ..OPTIONS }, reno());
    script.supply(None);
    script.connect(RTT);
    // The tenth packet of the window is paced. Its departure time passes, and cwnd is the limit.
    assert_eq!(limits(&script), [(40, SendLimit::Pacing)]);
    script.until(ms(80));
    assert_eq!(limits(&script).last().map(|it| it.1), Some(SendLimit::Cwnd));
    let before = limits(&script).len();
    script.receive(script.ack(10));
    assert_eq!(limits(&script)[before..], [(80, SendLimit::Pacing)]);
    script.until(ms(119));
    assert_eq!(limits(&script).last().map(|it| it.1), Some(SendLimit::Cwnd));
}

#[test]
fn a_full_queue_of_the_host_counts_as_pacing() {
    let mut script = Script::new(OPTIONS, reno());
    script.wire.card_bytes = Some(1 << 20);
    script.supply(None);
    script.connect(RTT);
    assert_eq!(limits(&script).last().map(|it| it.1), Some(SendLimit::Pacing));
}

/// `tcp_rate.c::tcp_rate_check_app_limited`: "All lost packets have been retransmitted".
#[test]
fn a_lost_packet_without_room_in_cwnd_is_no_limit_of_the_application() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(Some(10 * 1448));
    script.connect(RTT);
    script.until(ms(80));
    script.sender.set_cwnd(1);
    script.receive(script.sack(0, &[(5, 8)]));
    let board = &script.sender.board;
    assert!(board.lost() > board.retransmitted(), "{:?}", board.counts());
    assert_eq!(limits(&script).last().map(|it| it.1), Some(SendLimit::Cwnd));
}
