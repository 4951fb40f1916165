use jostle_registry::ParameterValue;

use super::*;
use crate::test_support::{ack, loss};
use jostle_congestion::FirstFlightLimits;

const RTT: Span = Span::from_ms(100);
const GAP: Span = Span::from_us(200);

fn chirping(parameters: &[(&str, ParameterValue)]) -> (PacedChirping, CongestionWindow) {
    let given = parameters.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    let mut start = PacedChirping::new(&ROW.entry.resolve(&given).unwrap());
    let mut window = CongestionWindow::default();
    start.on_established(&mut window, &established(10));
    (start, window)
}

fn established(initial_window: u32) -> EstablishedEvent {
    EstablishedEvent {
        now: Time::ZERO,
        mss_bytes: 1448,
        initial_window,
        rtt: Some(RTT),
        prospect: FirstFlightLimits::default(),
    }
}

/// A sender that keeps to the gaps, and a path that delays nothing.
struct Sender {
    start: PacedChirping,
    window: CongestionWindow,
    now: Time,
    next: u64,
    acked: u64,
}

impl Sender {
    fn new() -> Self {
        let (start, window) = chirping(&[]);
        Self { start, window, now: Time::ZERO, next: 0, acked: 0 }
    }

    fn in_flight(&self) -> u32 {
        (self.next - self.acked) as u32
    }

    /// Sends all that the window lets out. Returns the gaps after each packet.
    fn send(&mut self) -> Vec<Span> {
        let mut gaps = Vec::new();
        while self.in_flight() < self.window.cwnd {
            let prior_in_flight = self.in_flight();
            self.next += 1;
            self.start.on_send(&mut self.window, &sent(self.now, self.next, prior_in_flight));
            gaps.push(self.start.next_packet_gap().unwrap());
            self.now += gaps[gaps.len() - 1];
        }
        gaps
    }

    fn acknowledge(&mut self, packets: u64, rtt: Span) {
        for _ in 0..packets {
            self.acked += 1;
            let sample = self.sample(rtt);
            self.start.on_ack(&mut self.window, &sample);
        }
    }

    fn sample(&self, rtt: Span) -> AckSample {
        AckSample {
            rtt: Some(rtt),
            srtt: RTT,
            min_rtt: RTT,
            in_flight: self.in_flight(),
            next_to_send: self.next,
            ..ack(self.acked)
        }
    }
}

fn sent(now: Time, next_to_send: u64, prior_in_flight: u32) -> SendEvent {
    SendEvent {
        now,
        packets: 1,
        total_sent: next_to_send,
        next_to_send,
        prior_in_flight,
        after_idle: false,
    }
}

fn us(gaps: &[Span]) -> Vec<u64> {
    gaps.iter().map(|gap| gap.as_us()).collect()
}

fn gaps_of(chirp: Chirp) -> Vec<u64> {
    (1..chirp.size).map(|i| chirp.gap(i).as_us()).collect()
}

/// Gaps of 2 μ, each shorter than the one before by 2 (2 − 1) μ / N.
#[test]
fn a_chirp_runs_from_twice_the_mean_gap_to_a_quarter_of_it() {
    let chirp = Chirp::around(Span::from_us(160), 2 * RATIO_ONE, 16);
    let expected: Vec<u64> = (0..15).map(|i| 320 - 20 * i).collect();
    assert_eq!(gaps_of(chirp), expected);
    // 16.875 mean gaps.
    assert_eq!(chirp.length(), Span::from_us(2700));
    let five = Chirp::around(GAP, 2 * RATIO_ONE, 5);
    assert_eq!(gaps_of(five), [400, 320, 240, 160]);
    // A geometry of 3 would go below zero, one of 1 is a train.
    assert_eq!(Chirp::around(GAP, 3 * RATIO_ONE, 16).gap(15), Span::ZERO);
    assert_eq!(gaps_of(Chirp::around(GAP, RATIO_ONE, 4)), [200, 200, 200]);
}

/// Delays, in microseconds, of a queue that serves a packet every `service_us`.
fn delays(chirp: Chirp, service_us: u64) -> Vec<u64> {
    let mut delays = vec![0];
    for i in 1..chirp.size {
        delays.push((delays[i - 1] + service_us).saturating_sub(chirp.gap(i).as_us()));
    }
    delays
}

fn sixteen() -> Chirp {
    Chirp::around(Span::from_us(160), 2 * RATIO_ONE, 16)
}

/// The last gap before the queue began to grow: 320 − 20·9 = 140 before packet 10, 120 before 11.
#[test]
fn what_is_left_of_the_queue_tells_the_capacity() {
    let delays = delays(sixteen(), 130);
    assert_eq!(delays[10..], [0, 10, 40, 90, 160, 250]);
    assert_eq!(sixteen().capacity_gap(&delays, 5), Span::from_us(140));
}

#[test]
fn without_a_queue_the_shortest_gap_is_what_is_known() {
    assert_eq!(sixteen().capacity_gap(&[0; 16], 5), Span::from_us(40));
}

/// Packets 3 to 8 wait for those of another flow: gaps of those after which the queue grew count by
/// themselves, the others as the shortest one does.
#[test]
fn a_queue_that_recedes_counts_if_it_delays_five_packets() {
    let mut delays = [0; 16];
    delays[4..8].copy_from_slice(&[100, 150, 140, 130]);
    // Packets 3 to 7; 3 and 4 are followed by more delay: gaps 280 and 260.
    let expected = Span::from_us(13 * 40 + 280 + 260).mul_div(1, 15);
    assert_eq!(sixteen().capacity_gap(&delays, 5), expected);
    assert_eq!(sixteen().capacity_gap(&delays, 6), Span::from_us(40));
    // More than 5/8 of the highest delay is needed to belong to it: 93 of 150.
    delays[6] = 93;
    assert_eq!(sixteen().capacity_gap(&delays, 5), Span::from_us(40));
}

#[test]
fn the_first_round_trip_has_two_chirps_of_five() {
    let mut sender = Sender::new();
    assert_eq!(sender.window.cwnd, 5);
    let gaps = sender.send();
    // Chirps have half of the round trip each: 50 ms less 1.12 ms for the rest of the first.
    assert_eq!(us(&gaps), [400, 320, 240, 160, 48_880, 400, 320, 240, 160, 48_880]);
    assert_eq!(sender.window.cwnd, 10);
    assert_eq!(sender.start.pacing_rate(), Some(Rate::of(1448, GAP)));
}

/// 8 and 8 when the first chirp is analysed, 16 and 16 with the first ACK of these, and from then on
/// twice as many chirps with every first ACK.
#[test]
fn rounds_double_after_the_sixth_chirp() {
    let mut sender = Sender::new();
    sender.send();
    sender.acknowledge(4, RTT);
    assert_eq!(sender.send(), []);
    for (to_acknowledge, sent) in [(1, 16), (6, 32), (16, 64), (32, 128)] {
        sender.acknowledge(to_acknowledge, RTT);
        assert_eq!(sender.send().len(), sent, "{} were sent", sender.next);
    }
}

/// Two chirps without any queue: 160 us are the shortest gap of the first, as of the second, which
/// was sent before that was known. (200 + 160) / 2, and that and 160 once more.
#[test]
fn the_mean_gap_moves_half_way() {
    let mut sender = Sender::new();
    sender.send();
    sender.acknowledge(5, RTT);
    assert_eq!(sender.start.mean_gap, Span::from_us(180));
    sender.acknowledge(5, RTT);
    assert_eq!(sender.start.mean_gap, Span::from_us(170));
}

/// Chirps 6 to 9 are the fourth round. Its growth needs the first ACK of chirp 6 to find it sent as
/// planned.
#[test]
fn a_round_that_was_held_back_does_not_grow() {
    for (pause_ms, chirps) in [(0, 8), (100, 4)] {
        let mut sender = Sender::new();
        for to_acknowledge in [0, 5, 6, 16] {
            sender.acknowledge(to_acknowledge, RTT);
            if sender.start.scheduled == 7 {
                sender.now += Span::from_ms(pause_ms);
            }
            sender.send();
        }
        sender.acknowledge(32, RTT);
        assert_eq!(sender.start.round_max, chirps * RATIO_ONE, "{pause_ms} ms");
    }
}

#[test]
fn a_chirp_that_was_held_back_says_nothing() {
    let mut sender = Sender::new();
    for i in 0..5 {
        sender.now += Span::from_ms(i);
        sender.next += 1;
        let sent = sent(sender.now, sender.next, i as u32);
        sender.start.on_send(&mut sender.window, &sent);
    }
    sender.acknowledge(5, RTT);
    assert_eq!((sender.start.round_first, sender.start.mean_gap), (2, GAP));
}

/// One ACK for all of a chirp tells nothing of its queue; those of every other packet do.
#[test]
fn a_chirp_needs_its_acks() {
    for (step, mean_us) in [(5, 200), (2, 180)] {
        let mut sender = Sender::new();
        sender.send();
        while sender.acked < 5 {
            sender.acked = (sender.acked + step).min(5);
            let sample = sender.sample(RTT);
            sender.start.on_ack(&mut sender.window, &sample);
        }
        assert_eq!(sender.start.mean_gap, Span::from_us(mean_us), "an ACK for {step}");
    }
}

#[test]
fn retransmissions_are_not_of_a_chirp() {
    let mut sender = Sender::new();
    sender.next = 3;
    for next in 1..=3 {
        sender.start.on_send(&mut sender.window, &sent(Time::ZERO, next, next as u32 - 1));
    }
    sender.start.on_send(&mut sender.window, &sent(Time::ZERO, 3, 3));
    assert_eq!(sender.start.remaining(), 2);
}

/// Once the chirps of a round take the round trip: twice the bandwidth-delay product is let out,
/// paced, and when a whole one is acknowledged, what is in flight is the window.
#[test]
fn it_ends_with_what_a_bdp_of_acks_leaves_in_flight() {
    let mut sender = Sender::new();
    while sender.start.mode() == "chirping" {
        sender.send();
        sender.acknowledge(1, RTT);
    }
    // Nothing ever queued, so that the gap is the shortest allowed.
    let gap = sender.start.mean_gap;
    assert!(gap < Span::from_us(31), "{gap:?}");
    let bdp = RTT.as_ns() / gap.as_ns();
    assert_eq!(sender.start.mode(), "pacing");
    assert_eq!(
        (u64::from(sender.window.cwnd), sender.start.next_packet_gap()),
        (2 * bdp, Some(gap))
    );
    sender.next = sender.acked + 2 * bdp;
    sender.acknowledge(bdp - 1, RTT);
    assert!(sender.window.in_slow_start());
    sender.acknowledge(1, RTT);
    assert_eq!((u64::from(sender.window.cwnd), sender.window.ssthresh), (bdp, bdp as u32));
    assert_eq!((sender.start.pacing_rate(), sender.start.next_packet_gap()), (None, None));
}

#[test]
fn congestion_ends_it() {
    let mut sender = Sender::new();
    sender.send();
    sender.start.on_congestion_event(&mut sender.window, &loss());
    assert_eq!((sender.start.mode(), sender.start.pacing_rate()), ("slow_start", None));
    // What follows a timeout is standard slow start.
    sender.window.cwnd = 1;
    assert_eq!(sender.start.grow(&mut sender.window, &ack(1)), 0);
    assert_eq!(sender.window.cwnd, 2);
}

/// An initial window of two or three packets holds no chirps.
#[test]
fn half_of_a_small_initial_window_is_a_chirp() {
    let (mut start, mut window) = chirping(&[]);
    for (initial_window, first, mode) in
        [(3, 3, "slow_start"), (6, 3, "chirping"), (40, 5, "chirping")]
    {
        window.cwnd = initial_window;
        start.on_established(&mut window, &established(initial_window));
        assert_eq!((window.cwnd, start.mode()), (first, mode));
    }
}
