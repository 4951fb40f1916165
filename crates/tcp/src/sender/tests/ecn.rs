//! Marks that are told packet by packet: DCTCP's and counted ones.

use super::*;
use jostle_congestion::{AckSample, CongestionEvent, CwndReductionBy, EcnMarks, EstablishedEvent};
use std::sync::{Arc, Mutex};

/// What a controller hears of ECN.
#[derive(Default)]
struct Heard {
    agreed: Option<EcnFeedback>,
    /// Delivered and marked as of every ACK.
    totals: Vec<(u64, u64)>,
    /// Marked by every ACK.
    news: Vec<u32>,
}

/// Reno's window with an ear for marks.
struct Listener {
    needs: EcnFeedback,
    window: Box<dyn CongestionController>,
    heard: Arc<Mutex<Heard>>,
}

impl CongestionController for Listener {
    fn required_ecn_feedback(&self) -> EcnFeedback {
        self.needs
    }
    fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {
        self.heard.lock().unwrap().agreed = Some(feedback);
    }
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.window.on_established(established);
    }
    fn on_ecn_feedback(&mut self, marks: &EcnMarks) {
        self.heard.lock().unwrap().totals.push((marks.delivered, marks.marked));
    }
    fn on_ack(&mut self, ack: &AckSample) {
        self.heard.lock().unwrap().news.push(ack.ce_marked);
        self.window.on_ack(ack);
    }
    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        self.window.on_congestion_event(congestion);
    }
    fn on_undo(&mut self, now: Time) {
        self.window.on_undo(now);
    }
    fn set_cwnd(&mut self, cwnd: u32) {
        self.window.set_cwnd(cwnd);
    }
    fn cwnd(&self) -> u32 {
        self.window.cwnd()
    }
    fn ssthresh(&self) -> Option<u32> {
        self.window.ssthresh()
    }
    fn recovery_owner(&self) -> CwndReductionBy {
        self.window.recovery_owner()
    }
    fn mode(&self) -> &'static str {
        self.window.mode()
    }
}

/// Twenty packets out at 80 ms, the first ACKs about to arrive.
fn listening(needs: EcnFeedback) -> (Script, Arc<Mutex<Heard>>) {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let listener = Listener { needs, window: reno(), heard: heard.clone() };
    let mut script =
        Script::new(SenderConfig { initial_window: 20, ..OPTIONS }, Box::new(listener));
    script.supply(None);
    script.connect(RTT);
    script.left();
    script.until(ms(80));
    (script, heard)
}

fn ece(ack: Ack) -> Ack {
    Ack { ece: true, ..ack }
}

fn counting(marks: u64, ack: Ack) -> Ack {
    Ack { accecn: AccEcnFeedback::with_option(marks), ..ack }
}

/// `TCP_CONG_NEEDS_ECN`: offered whatever the flow's own setting is, and on every packet.
#[test]
fn a_controller_that_needs_ecn_gets_it_on_every_packet() {
    for (needs, codepoint) in
        [(EcnFeedback::DctcpEcho, Ecn::Capable), (EcnFeedback::AccEcn, Ecn::L4s)]
    {
        let (mut script, heard) = listening(needs);
        assert_eq!(heard.lock().unwrap().agreed, Some(needs));
        assert!(script.wire.departures[0].flag(), "the SYN offers it");
        script.receive(script.sack(0, &[(1, 20)]));
        assert_eq!(script.left()[0].number(), 0, "a retransmission");
        assert!(script.wire.departures.iter().all(|it| it.ecn == codepoint), "{needs:?}");
    }
}

#[test]
fn without_an_agreement_no_packet_is_capable() {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let (needs, window) = (EcnFeedback::DctcpEcho, reno());
    let listener = Listener { needs, window, heard: heard.clone() };
    let mut script = Script::new(OPTIONS, Box::new(listener));
    script.supply(None);
    script.open();
    script.until(ms(80));
    let answer = syn_ack(false, timestamp_ms(ms(40)), 45);
    script.sender.on_syn_ack(script.now, &answer, &mut script.wire);
    assert_eq!(heard.lock().unwrap().agreed, Some(EcnFeedback::None));
    assert_eq!(script.wire.departures[0].ecn, Ecn::Capable, "the SYN still was");
    assert!(script.wire.departures[1..].iter().all(|it| it.ecn == Ecn::NotCapable));
    script.receive(ece(script.ack(1)));
    assert_eq!(script.state(), RecoveryState::Open);
    assert!(heard.lock().unwrap().totals.is_empty());
}

/// RFC 3168 §6.1.1.1, `tcp_ecn_fallback`: the offer itself may be what was dropped.
#[test]
fn a_repeated_syn_offers_no_ecn() {
    let options = SenderConfig { ecn: true, ..OPTIONS };
    let mut script = Script::new(options, reno());
    script.supply(None);
    script.open();
    script.until(ms(1_500));
    let offers: Vec<_> = script.wire.departures.iter().map(|it| it.flag()).collect();
    assert_eq!(offers, [true, false]);
}

/// With ECE an ACK marks what it delivers, cumulatively or selectively
/// (`tcp_input.c::tcp_count_delivered`).
#[test]
fn ece_marks_what_the_ack_delivers() {
    let (mut script, heard) = listening(EcnFeedback::DctcpEcho);
    script.receive(script.ack(2));
    script.receive(ece(script.ack(5)));
    script.receive(script.ack(6));
    script.receive(ece(script.sack(6, &[(7, 9)])));
    let heard = heard.lock().unwrap();
    assert_eq!(heard.totals, [(2, 0), (5, 3), (6, 3), (8, 5)]);
    assert_eq!(heard.news, [0, 3, 0, 2]);
}

#[test]
fn counts_say_how_many_of_the_delivered_packets_were_marked() {
    let (mut script, heard) = listening(EcnFeedback::AccEcn);
    script.receive(counting(0, script.ack(2)));
    assert_eq!(script.state(), RecoveryState::Open);
    script.receive(counting(1, script.ack(5)));
    assert_eq!(script.state(), RecoveryState::Cwr, "a mark reduces as ECE would");
    script.receive(counting(1, script.ack(6)));
    script.receive(counting(4, script.ack(10)));
    // Overtaken: neither its count nor its flag means anything.
    script.receive(counting(3, script.ack(8)));
    script.receive(ece(counting(4, script.ack(11))));
    let heard = heard.lock().unwrap();
    assert_eq!(heard.totals, [(2, 0), (5, 1), (6, 1), (10, 4), (11, 4)]);
    assert_eq!(heard.news, [0, 1, 0, 3, 0]);
}

/// `__tcp_accecn_process` ignores the counter of an ACK that acknowledges nothing, unless its
/// timestamp shows that the receiver sent it later ("Reordered ACK or uncertain due to lack of data
/// to send and ts").
#[test]
fn a_newer_timestamp_validates_the_counter_of_an_ack_without_progress() {
    let (mut script, heard) = listening(EcnFeedback::AccEcn);
    for (sent_ms, marks) in [(60, 1), (60, 3), (59, 3), (61, 3)] {
        let clock = TimestampClock::at(ms(sent_ms));
        script.receive(Ack { clock, ..counting(marks, script.ack(5)) });
    }
    let heard = heard.lock().unwrap();
    assert_eq!(heard.news, [1, 0, 0, 2]);
    assert_eq!(heard.totals, [(5, 1), (5, 1), (5, 1), (5, 3)]);
}

/// CWR answers ECE, and there is none with counts.
#[test]
fn counted_marks_are_not_answered_with_cwr() {
    for (needs, answers) in [(EcnFeedback::DctcpEcho, true), (EcnFeedback::AccEcn, false)] {
        let (mut script, _) = listening(needs);
        for number in 1..=20 {
            script.receive(ece(counting(1, script.ack(number))));
        }
        let cwr = script.left().iter().any(|it| it.flag());
        assert_eq!(cwr, answers, "{needs:?}");
    }
}
