//! What a sender tells its controller, and what it does at a controller's request.

use std::sync::{Arc, Mutex};

use jostle_congestion::{CongestionSignal, LostPacket, RawAckSample, Timestamps};

use super::*;

/// What a controller was told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Congestion(CongestionSignal),
    State(RecoveryState),
    ReductionEnd,
    IdleRestart(u32),
}

#[derive(Default)]
pub(super) struct Notes {
    told: Vec<Told>,
    measurements: Vec<RawAckSample>,
    pub samples: Vec<AckSample>,
    lost: Vec<LostPacket>,
    /// Ask for a reduction at the next ACK.
    ask: bool,
}

/// A window of `Still` that writes everything down.
struct Secretary {
    still: Still,
    notes: Arc<Mutex<Notes>>,
}

impl CongestionController for Secretary {
    fn on_established(&mut self, _established: &EstablishedEvent) {}
    fn on_ack_before_loss_detection(&mut self, measurement: &RawAckSample) {
        self.notes.lock().unwrap().measurements.push(*measurement);
    }
    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.notes.lock().unwrap().lost.push(*lost);
    }
    fn on_ack(&mut self, ack: &AckSample) {
        self.notes.lock().unwrap().samples.push(*ack);
    }
    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        self.still.ssthresh = Some(self.still.cwnd / 2);
        self.notes.lock().unwrap().told.push(Told::Congestion(congestion.signal));
    }
    fn take_cwr_request(&mut self) -> bool {
        std::mem::take(&mut self.notes.lock().unwrap().ask)
    }
    fn on_cwr_complete(&mut self, _now: Time) {
        self.notes.lock().unwrap().told.push(Told::ReductionEnd);
    }
    fn on_idle_restart(&mut self, _now: Time) {
        self.notes.lock().unwrap().told.push(Told::IdleRestart(self.still.cwnd));
    }
    fn on_recovery_state(&mut self, _now: Time, state: RecoveryState) {
        self.notes.lock().unwrap().told.push(Told::State(state));
    }
    fn on_undo(&mut self, _now: Time) {}
    fn set_cwnd(&mut self, cwnd: u32) {
        self.still.cwnd = cwnd;
    }
    fn cwnd(&self) -> u32 {
        self.still.cwnd
    }
    fn ssthresh(&self) -> Option<u32> {
        self.still.ssthresh
    }
    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Transport
    }
    fn mode(&self) -> &'static str {
        "still"
    }
}

/// A sender with a window of 20, connected at 40 ms; its first ACKs come at 80 ms.
pub(super) fn noted(options: SenderConfig) -> (Script, Arc<Mutex<Notes>>) {
    let notes = Arc::new(Mutex::new(Notes::default()));
    let still = Still { cwnd: 20, ssthresh: None };
    let secretary = Secretary { still, notes: Arc::clone(&notes) };
    (Script::new(options, Box::new(secretary)), notes)
}

/// `tcp_input.c::tcp_enter_cwr`: PRR takes the window to ssthresh over a round trip, once per
/// request, and the answer cannot be undone.
#[test]
fn a_request_reduces_the_window_as_a_mark_does() {
    let (mut script, notes) = noted(OPTIONS);
    script.supply(None);
    script.connect(RTT);
    script.until(ms(80));
    script.receive(script.ack(1));
    notes.lock().unwrap().ask = true;
    script.receive(script.ack(2));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Cwr, 10));
    // The answer to a request cannot be taken back, nor is there another one meanwhile.
    assert!(!script.sender.recovery.undo.reversible);
    notes.lock().unwrap().ask = true;
    let end = script.sender.board.next();
    for number in 3..=end {
        script.receive(script.ack(number));
    }
    assert_eq!(script.state(), RecoveryState::Cwr, "until something later is acknowledged");
    assert!(script.sender.in_flight() <= 11, "{}", script.sender.in_flight());
    script.until(ms(120));
    script.receive(script.ack(end + 1));
    assert_eq!((script.state(), script.sender.cwnd()), (RecoveryState::Open, 10));
    assert_eq!(
        notes.lock().unwrap().told,
        [
            Told::Congestion(CongestionSignal::Request),
            Told::State(RecoveryState::Cwr),
            Told::ReductionEnd,
            Told::State(RecoveryState::Open),
        ]
    );
}

/// `ack_sample` and what modules read of `tcp_sock` beside it.
#[test]
fn measurements_count_what_was_delivered_and_what_is_beyond_a_gap() {
    let (mut script, notes) = noted(OPTIONS);
    script.supply(None);
    script.connect(RTT);
    script.until(ms(80));
    for ack in [script.ack(2), script.sack(2, &[(4, 8)]), script.sack(4, &[(4, 8)])] {
        script.receive(ack);
    }
    // The second ACK made the sender repeat segments 2 and 3, which thus knew of six deliveries;
    // segment 20 knew of two.
    script.until(ms(120));
    script.receive(script.ack(21));
    let notes = notes.lock().unwrap();
    let counts: Vec<_> =
        notes.measurements.iter().map(|m| (m.packets, m.delivered, m.sacked)).collect();
    assert_eq!(counts, [(2, 2, 0), (0, 6, 4), (2, 2, 4), (17, 19, 0)]);
}

/// TSval is the receiver's clock plus an offset; TSecr and the local clock have none.
#[test]
fn measurements_carry_the_timestamps_of_the_ack() {
    let offset = u32::MAX - 20;
    let (mut script, notes) = noted(SenderConfig { timestamp_offset: offset, ..OPTIONS });
    script.supply(None);
    script.connect(RTT);
    script.until(ms(90_080));
    // Sent at 40 ms and acknowledged at 90.05 s, beyond what 16 bits of milliseconds hold.
    let ack = Ack { clock: TimestampClock::at(ms(90_050)), ..script.ack(1) };
    script.receive(Ack { tsecr_ms: timestamp_ms(ms(40)), ..ack });
    let timestamps = notes.lock().unwrap().measurements[0].timestamps.unwrap();
    let expected = Timestamps { value_ms: 90_051 - 21, echo_ms: 41, now_ms: 90_081 };
    assert_eq!(timestamps, expected);
}

/// `CA_EVENT_CWND_RESTART` comes before the window is taken down.
#[test]
fn a_long_silence_is_told_before_the_window_shrinks() {
    let (mut script, notes) = noted(OPTIONS);
    script.supply(Some(20 * 1448));
    script.connect(RTT);
    script.until(ms(80));
    script.receive(script.ack(20));
    script.until(ms(200));
    script.supply(Some(1448));
    assert_eq!(notes.lock().unwrap().told, [], "160 ms are less than the RTO");
    script.until(ms(240));
    script.receive(script.ack(21));
    script.until(ms(1_500));
    script.supply(Some(1448));
    assert_eq!(notes.lock().unwrap().told, [Told::IdleRestart(20)]);
    assert!(script.sender.cwnd() < 20);
}

#[test]
fn an_accepted_connection_is_not_idle_before_its_handshake() {
    for (written_ms, told) in [(9_200, vec![]), (9_900, vec![Told::IdleRestart(20)])] {
        let (script, notes) = noted(OPTIONS);
        let controller =
            Secretary { still: Still { cwnd: 20, ssthresh: None }, notes: Arc::clone(&notes) };
        let (mut sender, mut wire) = (Sender::new(OPTIONS, Box::new(controller)), script.wire);
        sender.on_syn(ms(9_000));
        sender.on_ack_of_syn(
            ms(9_040),
            false,
            QuickStartRate::NONE,
            &ack(0, 9_001, 45, false),
            &mut wire,
        );
        sender.supply(ms(written_ms), Some(1448), &mut wire);
        assert_eq!(notes.lock().unwrap().told, told);
    }
}

/// `skb_marked_lost`: each loss is reported once, with the counts since the packet was sent.
#[test]
fn each_lost_packet_is_reported_once() {
    let (mut script, notes) = noted(OPTIONS);
    script.supply(None);
    script.connect(RTT);
    script.until(ms(80));
    for blocks in [[(2, 5), (7, 9)], [(2, 5), (7, 10)]] {
        script.receive(script.sack(0, &blocks));
    }
    let lost: Vec<_> =
        notes.lock().unwrap().lost.iter().map(|it| (it.number, it.lost_since_send)).collect();
    assert_eq!(lost, [(0, 1), (1, 2), (5, 3), (6, 4)]);
}

/// `tcp_rate.c::tcp_rate_skb_delivered` compares the ends of segments that left at the same time,
/// also if an ACK that others overtook had SACKed one of them. Segment n was the (n + 1)th in
/// flight.
#[test]
fn samples_describe_the_newest_segment_that_was_delivered() {
    for (end, in_flight) in [(7, 7), (8, 8)] {
        let (mut script, notes) = noted(OPTIONS);
        script.supply(None);
        script.connect(RTT);
        script.until(ms(80));
        for ack in [script.ack(4), script.sack(2, &[(6, 7)]), script.ack(end)] {
            script.receive(ack);
        }
        let notes = notes.lock().unwrap();
        assert_eq!(notes.samples.last().unwrap().in_flight_at_send, in_flight);
    }
}

/// `tcp_input.c::tcp_try_keep_open`: segment 1 is lost and segment 2 SACKed, so that the end of a
/// needless recovery begins in Disorder and not in Open.
#[test]
fn an_undone_recovery_with_further_losses_passes_through_disorder() {
    let (mut script, notes) = noted(OPTIONS);
    script.supply(None);
    script.connect(RTT);
    script.until(ms(80));
    script.receive(script.sack(0, &[(2, 3)]));
    script.until(ms(92));
    assert_eq!((script.sender.board.lost(), script.wire.retransmitted), (2, 1));
    script.until(ms(132));
    notes.lock().unwrap().told.clear();
    script.receive(script.dsack(1, &[(0, 1), (2, 3)]));
    let told = &notes.lock().unwrap().told;
    assert_eq!(told[0], Told::State(RecoveryState::Disorder), "{told:?}");
}
