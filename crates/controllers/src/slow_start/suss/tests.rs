use jostle_congestion::FirstFlightLimits;

use super::*;
use crate::cwnd::INFINITE_SSTHRESH;

const MSS_BYTES: u32 = 1_448;

/// A connection with an RTT of 100 ms and an initial window of 10, and its ACKs one by one.
struct Connection {
    suss: Suss,
    window: CongestionWindow,
    first_unacked: u64,
    next_to_send: u64,
}

fn ms(ms: f64) -> Time {
    Time::from_ns((ms * 1e6) as u64)
}

impl Connection {
    fn new() -> Self {
        let mut suss = Suss::new(&ROW.entry.defaults());
        let mut window = CongestionWindow::default();
        suss.on_established(
            &mut window,
            &EstablishedEvent {
                now: ms(0.0),
                mss_bytes: MSS_BYTES,
                initial_window: 10,
                rtt: Some(Span::from_ms(100)),
                prospect: FirstFlightLimits::default(),
            },
        );
        Self { suss, window, first_unacked: 0, next_to_send: 10 }
    }

    /// Acknowledges one packet, and sends what the window allows.
    fn ack(&mut self, now: Time, rtt_ms: u64) {
        self.first_unacked += 1;
        let rtt = Some(Span::from_ms(rtt_ms));
        let (suss, window) = (&mut self.suss, &mut self.window);
        let raw = RawAckSample {
            now,
            rtt,
            packets: 1,
            first_unacked: self.first_unacked,
            next_to_send: self.next_to_send,
            ..RawAckSample::default()
        };
        suss.on_ack_before_loss_detection(window, &raw);
        let in_flight = (self.next_to_send - self.first_unacked) as u32;
        let ack = AckSample {
            rtt,
            in_flight,
            first_unacked: self.first_unacked,
            next_to_send: self.next_to_send,
            now,
            ..crate::test_support::ack(self.first_unacked)
        };
        suss.on_ack(window, &ack);
        if window.in_slow_start() {
            suss.grow(window, &ack);
        }
        self.send(now);
    }

    fn send(&mut self, now: Time) {
        loop {
            let in_flight = (self.next_to_send - self.first_unacked) as u32;
            let room = self.window.cwnd.saturating_sub(in_flight);
            if room == 0 {
                return;
            }
            self.next_to_send += u64::from(room);
            let sent = SendEvent {
                now,
                packets: room,
                total_sent: self.next_to_send,
                next_to_send: self.next_to_send,
                prior_in_flight: in_flight,
                after_idle: false,
            };
            self.suss.on_send(&mut self.window, &sent);
        }
    }

    /// Acknowledges `packets` from `start_ms` on at equal intervals.
    fn train(&mut self, start_ms: f64, spacing_ms: f64, packets: u32, rtt_ms: u64) {
        for packet in 0..packets {
            self.ack(ms(start_ms + spacing_ms * f64::from(packet)), rtt_ms);
        }
    }

    fn plan(&self) -> RedPackets {
        match self.suss.state {
            SussState::Quadrupling(plan) => plan,
            state => panic!("{state:?}"),
        }
    }
}

/// Ten ACKs 0.2 ms apart: 1.8 ms for nine intervals, 2 ms for ten packets. The blue packets of the
/// next round have 50 ms, and the guard is half of what they leave: 24 ms. 20 red packets follow at
/// the rate that spreads them over the other 50 ms.
#[test]
fn the_guard_is_half_of_what_the_blue_packets_leave() {
    let mut connection = Connection::new();
    connection.train(100.0, 0.2, 10, 100);
    let plan = connection.plan();
    assert_eq!(plan.start, ms(100.0 + 1.8 + 24.0));
    assert_eq!(plan.window, 40);
    assert_eq!(plan.rate, Rate::of(20 * u64::from(MSS_BYTES), Span::from_ms(50)));
    // The window opens with the packets, not in advance.
    assert_eq!(connection.window.cwnd, 20);
    connection.suss.on_wakeup(&mut connection.window, plan.start);
    assert_eq!(connection.window.cwnd, 22);
    connection.send(plan.start);
    assert_eq!(connection.window.cwnd, 40, "it is full whenever it grows");
}

/// `suss_speedup` checks the RTT from the second decision on.
#[test]
fn the_first_decision_does_not_check_the_rtt() {
    let mut connection = Connection::new();
    connection.ack(ms(100.0), 100);
    connection.train(100.2, 0.2, 9, 140);
    assert_eq!(connection.plan().window, 40);
}

/// A train of a quarter of the RTT allows no growth, and plain HyStart follows.
#[test]
fn a_first_round_without_room_disables_suss() {
    let mut connection = Connection::new();
    connection.train(100.0, 2.5, 10, 100);
    assert_eq!(connection.suss.state, SussState::Disabled);
}

/// The application may fill the initial window only after many rounds.
#[test]
fn a_first_decision_in_a_later_round_disables_suss() {
    let mut connection = Connection::new();
    connection.train(100.0, 0.2, 9, 100);
    connection.suss.round = 40;
    connection.ack(ms(101.8), 100);
    assert_eq!(connection.suss.state, SussState::Disabled);
}

/// Lets the second round of `connection` send its red packets.
fn grown() -> Connection {
    let mut connection = Connection::new();
    connection.train(100.0, 0.2, 10, 100);
    let start = connection.plan().start;
    connection.suss.on_wakeup(&mut connection.window, start);
    connection.send(start);
    connection
}

/// HyStart's limit is half of 101 ms. Blue ACKs 1.9 ms apart that stand for twice as many packets
/// exceed it after 26.6 ms, with the fifteenth. Slow start then goes on: up to the window of 54 of
/// that moment and the 14 packets that the red ones add.
#[test]
fn an_ack_train_sets_a_cap_instead_of_ending_slow_start() {
    let mut connection = grown();
    connection.train(200.0, 1.9, 14, 100);
    assert_eq!((connection.suss.cap, connection.window.cwnd), (None, 54));
    connection.ack(ms(200.0 + 14.0 * 1.9), 100);
    assert_eq!(connection.suss.cap, Some(68));
    assert_eq!(connection.window.ssthresh, INFINITE_SSTHRESH);
    connection.train(230.0, 1.9, 13, 100);
    assert_eq!((connection.window.cwnd, connection.window.ssthresh), (68, INFINITE_SSTHRESH));
    connection.train(260.0, 1.9, 2, 100);
    assert_eq!((connection.window.cwnd, connection.window.ssthresh), (69, 69));
    assert_eq!(connection.suss.state, SussState::Ended);
}

/// After two rounds of red packets, HyStart's delay condition leaves what is in flight.
#[test]
fn the_window_at_the_exit_is_what_is_in_flight() {
    let mut connection = grown();
    connection.train(200.0, 0.2, 20, 100);
    assert_eq!(connection.suss.quadruplings, 2);
    // The round is not over, and its red packets wait for their start.
    connection.train(210.0, 1.0, 20, 100);
    assert_eq!(connection.window.cwnd, 40);
    assert_eq!(connection.plan().withheld, 20);
    connection.train(300.0, 0.2, 10, 130);
    assert_eq!(connection.suss.state, SussState::Ended);
    let in_flight = (connection.next_to_send - connection.first_unacked) as u32;
    assert!(connection.window.ssthresh <= in_flight + 1, "{:?}", connection.window);
}

/// `tcp_init_cwnd_reduction`: the law reduces what is in flight, not the window.
#[test]
fn a_loss_leaves_what_is_in_flight() {
    let mut connection = grown();
    let loss = CongestionEvent {
        now: ms(190.0),
        signal: CongestionSignal::Loss,
        in_flight: 31,
        next_to_send: connection.next_to_send,
    };
    connection.suss.before_congestion_event(&mut connection.window, &loss);
    assert_eq!(connection.window.cwnd, 31);
    assert_eq!(connection.suss.state, SussState::Ended);
}
