//! RACK, PRR, undo, ECN.

use jostle_units::HEADER_BYTES;

use super::*;

/// Twenty packets are out, and 40 ms have passed since.
pub(super) fn twenty() -> Script {
    let mut script = Script::bulk(20);
    script.left();
    script.until(ms(80));
    script
}

#[test]
fn three_packets_beyond_a_hole_prove_a_loss() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 2)]));
    script.receive(script.sack(0, &[(1, 3)]));
    assert_eq!(script.state(), RecoveryState::Disorder);
    assert!(!script.numbers().contains(&0));
    script.receive(script.sack(0, &[(1, 4)]));
    assert_eq!(script.state(), RecoveryState::Recovery);
    assert_eq!(script.numbers()[0], 0);
    assert_eq!(script.sender.ssthresh, 10);
    let (retransmitted, wire_bytes) =
        (script.wire.retransmitted, script.wire.retransmitted_wire_bytes);
    assert_eq!((retransmitted, wire_bytes), (1, 1448 + u64::from(HEADER_BYTES)));
}

/// `tcp_output.c::tcp_xmit_retransmit_queue`: the retransmission of the first outstanding segment
/// restarts the timer.
#[test]
fn the_retransmission_of_the_first_segment_restarts_the_timer() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 4)]));
    assert_eq!((script.numbers()[0], script.wire.retransmitted), (0, 1));
    assert_eq!(script.sender.pending, PendingTimer::Retransmission);
    assert_eq!(script.deadline(), ms(80) + script.sender.rto.span());
}

/// Fewer than three: RFC 8985 waits for min RTT / 4, Linux for 2 ms more.
#[test]
fn one_packet_beyond_a_hole_is_enough_after_a_quarter_of_the_rtt() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 2)]));
    script.left();
    script.until(us(91_999));
    script.sends_nothing();
    script.until(ms(92));
    assert_eq!(script.numbers()[0], 0);
    assert_eq!(script.state(), RecoveryState::Recovery);
}

/// Packets 0 and 1 arrive after 2 and 3; nothing is repeated.
fn reordered() -> Script {
    let mut script = twenty();
    script.receive(script.sack(0, &[(2, 4)]));
    script.receive(script.ack(4));
    assert!(script.sender.reordering.is_seen());
    assert_eq!((script.state(), script.wire.retransmitted), (RecoveryState::Open, 0));
    script.left();
    script
}

/// RFC 8985 §6.2 step 4: once reordering was seen, the window of time always applies.
#[test]
fn after_reordering_three_packets_prove_nothing() {
    let mut script = reordered();
    script.receive(script.sack(4, &[(5, 9)]));
    assert_eq!(script.state(), RecoveryState::Disorder);
    assert!(!script.numbers().contains(&4));
    script.until(us(91_999));
    assert!(!script.numbers().contains(&4));
    script.until(ms(92));
    assert_eq!(script.numbers()[0], 4);
}

/// A round of twenty packets of which the first is repeated needlessly, as its duplicate shows.
fn needless_repair(script: &mut Script) {
    let (first, end) = (script.sender.board.first(), script.sender.board.next());
    script.until(script.now + RTT);
    script.receive(script.sack(first, &[(first + 1, end)]));
    script.until(script.now + script.sender.reordering_window() + Span::from_ms(2));
    assert!(script.numbers().contains(&first));
    let next = script.sender.board.next();
    script.until(script.now + RTT);
    script.receive(script.ack(next));
    script.receive(script.dsack(next, &[(first, first + 1)]));
    script.until(script.now + RTT);
    script.receive(script.ack(next + 1));
}

/// Every round with a duplicate widens the window by a quarter of the min RTT, up to the SRTT.
#[test]
fn duplicates_widen_the_reordering_window() {
    let mut script = reordered();
    for quarters in 2..=9 {
        needless_repair(&mut script);
        let window = script.sender.reordering_window();
        assert_eq!(window, RTT.mul_div(quarters, 4).min(script.sender.srtt()));
    }
}

/// What was sent after the repair arrives, the repair does not: it is repeated without a timeout.
#[test]
fn a_lost_repair_is_detected() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 20)]));
    let sent = script.numbers();
    assert_eq!(sent[0], 0);
    let new_data = sent[1..].to_vec();
    assert!(!new_data.is_empty(), "{sent:?}");
    script.until(ms(120));
    let end = *new_data.last().unwrap() + 1;
    script.receive(script.sack(0, &[(1, end)]));
    assert_eq!(script.numbers()[0], 0);
    assert_eq!(script.state(), RecoveryState::Recovery);
    assert_eq!(script.wire.retransmitted, 2);
    assert_eq!(script.sender.board.total_lost(), 2);
}

/// PRR (RFC 9937): never more than its share is sent, and cwnd ends at ssthresh.
#[test]
fn prr_ends_at_ssthresh_and_never_sends_more_than_it_should() {
    let mut script = Script::bulk(100);
    script.left();
    script.until(ms(80));
    let mut sent = 0;
    for end in 2..=100 {
        script.receive(script.sack(0, &[(1, end)]));
        let left = script.left().len() as u32;
        if end < 4 {
            continue;
        }
        sent += left;
        assert_eq!(script.state(), RecoveryState::Recovery);
        let delivered = end - 3;
        // "sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out", at least the repair.
        let share = (delivered * 50).div_ceil(100).max(1);
        assert!(sent <= share + 1, "{sent} sent for {delivered} delivered");
        assert!(sent + 2 >= share, "{sent} sent for {delivered} delivered");
    }
    assert_eq!(sent, 49, "half of the 97 or so that were delivered in recovery");
    script.until(ms(120));
    script.receive(script.ack(script.sender.board.next()));
    assert_eq!(script.state(), RecoveryState::Open);
    assert_eq!(script.sender.ssthresh, 50);
    assert!((49..=51).contains(&script.sender.cwnd()), "{}", script.sender.cwnd());
}

/// Of a window of 40 only 30 packets are in flight, of which two were selectively acknowledged
/// before the ACK that starts recovery: RecoverFS is 40 in Linux and 28 in RFC 9937. Eleven
/// deliveries let ⌈11 · 20/40⌉ or ⌈11 · 20/28⌉ packets leave.
#[test]
fn prr_is_proportional_to_the_window_or_to_what_is_outstanding() {
    let sent = |recover_flight_size| {
        let options = SenderConfig { initial_window: 40, recover_flight_size, ..OPTIONS };
        let mut script = Script::new(options, reno());
        script.supply(Some(30 * 1448));
        script.connect(RTT);
        script.until(ms(80));
        assert_eq!(script.left().len(), 30);
        for end in 2..=14 {
            script.receive(script.sack(0, &[(1, end)]));
            if end == 4 {
                assert_eq!(script.state(), RecoveryState::Recovery);
                script.supply(None);
            }
        }
        assert_eq!(script.sender.ssthresh, 20);
        script.left().len()
    };
    assert_eq!(sent(RecoverFlightSize::PriorCwnd), 6);
    assert_eq!(sent(RecoverFlightSize::Outstanding), 8);
}

/// When much more was lost than half, PRR sends what was delivered plus one per ACK that shows
/// progress (its slow-start bound), no faster.
#[test]
fn prr_is_bound_below_ssthresh() {
    let mut script = Script::bulk(100);
    script.left();
    script.until(ms(80));
    // 80 lost at once, only the last 20 arrive.
    script.receive(script.sack(0, &[(80, 100)]));
    assert_eq!(script.numbers(), range(0, 20), "as many as were delivered");
    assert_eq!(script.sender.in_flight(), 20);
    script.until(ms(120));
    for number in 1..=20 {
        script.receive(script.ack(number));
        let sent = script.numbers();
        assert_eq!(sent.len(), 2, "ACK {number}: {sent:?}");
        assert!(script.sender.cwnd() <= 50);
    }
    assert_eq!(script.sender.in_flight(), 40);
}

/// The late original of a packet: its ACK echoes a time before the repair was sent.
#[test]
fn a_timestamp_undoes_a_needless_recovery() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 4)]));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Recovery, 10));
    script.until(ms(85));
    let original = timestamp_ms(ms(40));
    script.receive(Ack { tsecr_ms: original, ..script.ack(4) });
    assert_eq!(script.sender.cwnd(), 21, "restored, and one for what the ACK delivered");
    assert_eq!(script.sender.ssthresh, u32::MAX);
    assert_eq!(script.state(), RecoveryState::Open);
    assert!(script.sender.reordering.is_seen(), "the hole that was filled");
}

/// The same without help by timestamps: the receiver reports the copy later.
#[test]
fn duplicates_of_all_repairs_undo_a_needless_recovery() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 4)]));
    script.until(ms(120));
    script.receive(script.ack(20));
    let end = script.sender.board.next();
    script.receive(script.ack(end));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Open, 10));
    let reduced = script.sender.cwnd();
    assert!(reduced <= 12, "{reduced}");
    script.receive(script.dsack(end, &[(0, 1)]));
    assert!(script.sender.cwnd() >= 20, "{}", script.sender.cwnd());
    assert_eq!(script.sender.ssthresh, u32::MAX);
}

#[test]
fn one_duplicate_of_two_repairs_undoes_nothing() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(2, 6)]));
    assert_eq!(script.wire.retransmitted, 2);
    script.until(ms(120));
    let end = script.sender.board.next();
    script.receive(script.ack(end));
    script.receive(script.dsack(end, &[(0, 1)]));
    assert_eq!(script.sender.ssthresh, 10);
}

/// More duplicates than there were retransmissions: the network makes copies, and no sender's
/// mistake is undone by them.
#[test]
fn copies_made_by_the_network_undo_nothing() {
    let mut script = twenty();
    script.receive(script.dsack(2, &[(0, 1)]));
    script.receive(script.dsack(4, &[(2, 3)]));
    script.receive(script.sack(4, &[(5, 8)]));
    assert_eq!(script.state(), RecoveryState::Recovery);
    script.until(ms(120));
    let end = script.sender.board.next();
    script.receive(script.ack(end));
    script.receive(script.dsack(end, &[(4, 5)]));
    assert_eq!(script.sender.ssthresh, 12, "half of 24");
}

fn marked() -> Script {
    let mut script = Script::new(SenderConfig { initial_window: 20, ecn: true, ..OPTIONS }, reno());
    script.supply(None);
    script.connect(RTT);
    script.left();
    script.until(ms(80));
    script
}

fn ece(ack: Ack) -> Ack {
    Ack { ece: true, ..ack }
}

/// RFC 3168 §6.1.2: "at most once per window of data"; the first new packet says CWR.
#[test]
fn marks_halve_the_window_once_per_window() {
    let mut script = marked();
    let mut cwr = Vec::new();
    for number in 1..=20 {
        script.receive(ece(script.ack(number)));
        assert_eq!(script.sender.ssthresh, 10);
        assert_eq!(script.state(), RecoveryState::Cwr);
        cwr.extend(script.left().iter().map(|it| (it.number(), it.flag())));
    }
    assert!(cwr.iter().all(|&(number, flag)| flag == (number == 20)), "{cwr:?}");
    assert!(script.sender.in_flight() <= 11, "{}", script.sender.in_flight());
    // The echo stops; the state ends with the first ACK beyond what was out when it began.
    script.until(ms(120));
    script.receive(script.ack(21));
    assert_eq!((script.state(), script.sender.cwnd()), (RecoveryState::Open, 10));
    // The next mark is a new one.
    script.receive(ece(script.ack(22)));
    assert_eq!(script.sender.ssthresh, 5);
}

/// RFC 3168 §6.1.5.
#[test]
fn new_data_is_ecn_capable_and_repairs_are_not() {
    let mut script = marked();
    assert_eq!(script.wire.departures[0].ecn, Ecn::NotCapable, "SYN");
    script.receive(script.sack(0, &[(1, 20)]));
    let sent = script.left();
    assert_eq!((sent[0].number(), sent[0].ecn), (0, Ecn::NotCapable));
    assert!(sent.len() > 2);
    assert!(sent[1..].iter().all(|it| it.ecn == Ecn::Capable), "{sent:?}");
    assert!(sent[1].flag(), "a loss is answered with CWR, too");
}

#[test]
fn without_ecn_nothing_is_capable_and_no_echo_is_believed() {
    let mut script = twenty();
    script.receive(ece(script.ack(1)));
    assert_eq!(script.state(), RecoveryState::Open);
    assert!(script.wire.departures.iter().all(|it| it.ecn == Ecn::NotCapable));
}

/// A mark rules out that the reduction was a mistake.
#[test]
fn a_recovery_with_marks_is_not_undone() {
    let mut script = marked();
    script.receive(ece(script.sack(0, &[(1, 4)])));
    assert_eq!(script.state(), RecoveryState::Recovery);
    script.until(ms(85));
    let original = timestamp_ms(ms(40));
    script.receive(Ack { tsecr_ms: original, ..script.ack(4) });
    assert_eq!(script.sender.ssthresh, 10);
}

/// ACKs that overtook each other: an old one may still bring SACK news.
#[test]
fn an_old_ack_with_news_starts_recovery() {
    let mut script = twenty();
    script.receive(script.ack(4));
    script.left();
    script.receive(script.sack(2, &[(5, 9)]));
    assert_eq!(script.state(), RecoveryState::Recovery);
    assert_eq!(script.numbers()[0], 4);
}

/// RFC 8985 §6.2 step 4 and `tcp_recovery.c::tcp_rack_reo_wnd`: the window is 0 in recovery and
/// after three SACKs.
#[test]
fn the_reordering_window_is_a_quarter_of_the_rtt_before_three_sacks() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 3)]));
    assert_eq!(script.sender.reordering_window(), Span::from_ms(10));
    script.receive(script.sack(0, &[(1, 4)]));
    assert_eq!(script.sender.reordering_window(), Span::ZERO);
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 2)]));
    script.until(ms(92));
    assert_eq!((script.state(), script.sender.board.sacked()), (RecoveryState::Recovery, 1));
    assert_eq!(script.sender.reordering_window(), Span::ZERO);
}

/// `tcp_input.c::tcp_check_sack_reordering`: the degree is the distance to the highest SACKed
/// segment.
#[test]
fn the_reordering_degree_is_the_distance_and_at_most_300() {
    let mut script = twenty();
    script.receive(script.ack(2));
    script.receive(script.sack(2, &[(7, 8)]));
    script.receive(script.ack(3));
    assert_eq!(script.sender.reordering.degree(), 8 - 2);
    let mut script = Script::bulk(400);
    script.until(ms(80));
    script.receive(script.sack(0, &[(399, 400)]));
    script.receive(script.ack(1));
    assert_eq!(script.sender.reordering.degree(), 300);
}

/// `tcp_input.c::tcp_enter_loss`: a timeout despite three SACKs resets the degree of reordering.
#[test]
fn a_timeout_after_three_sacks_lowers_the_reordering_degree() {
    for (end, degree) in [(7, 4), (8, 3)] {
        let mut script = reordered();
        assert_eq!(script.sender.reordering.degree(), 4);
        script.receive(script.sack(4, &[(5, end)]));
        assert_eq!(script.state(), RecoveryState::Disorder);
        script.sender.enter_loss(script.now);
        assert_eq!(script.sender.reordering.degree(), degree);
    }
}

/// RFC 5682 §3.2: no F-RTO after a recovery. ssthresh is reduced once per window of data.
#[test]
fn a_timeout_in_recovery_keeps_ssthresh_and_runs_no_frto() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 4)]));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Recovery, 10));
    while script.state() == RecoveryState::Recovery {
        script.until(script.deadline());
    }
    assert_eq!((script.state(), script.sender.rto.expiries()), (RecoveryState::Loss, 1));
    assert_eq!((script.sender.ssthresh, script.sender.recovery.frto), (10, false));
    while script.sender.rto.expiries() == 1 {
        script.until(script.deadline());
    }
    assert_eq!(
        (script.sender.ssthresh, script.sender.recovery.frto),
        (10, true),
        "a repeated timeout"
    );
}
