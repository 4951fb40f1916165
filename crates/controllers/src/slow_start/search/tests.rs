use super::*;
use crate::test_support;
use jostle_registry::ParameterValue;

const RTT_MS: usize = 100;

fn search(given: &[(&str, &str)]) -> Search {
    let given =
        given.iter().map(|(name, word)| (name.to_string(), ParameterValue::Text(word.to_string())));
    Search::new(&ROW.entry.resolve(&given.collect()).unwrap())
}

/// Slow start from 10 packets over a path of 100 ms, a millisecond at a time: two packets leave for
/// each that is acknowledged, at most `capacity_per_ms` arrive.
struct Path {
    search: Search,
    window: CongestionWindow,
    /// Packets sent by the end of each millisecond.
    sent: Vec<f64>,
    delivered: f64,
}

impl Path {
    fn new(search: Search) -> Self {
        Self { search, window: CongestionWindow::default(), sent: vec![10.0], delivered: 0.0 }
    }

    fn hear(&mut self, now_ms: usize, rtt_ms: usize) {
        self.search.on_ack_before_loss_detection(
            &mut self.window,
            &RawAckSample {
                now: Time::ZERO + Span::from_ms(now_ms as u64),
                rtt: Some(Span::from_ms(rtt_ms as u64)),
                packets: 1,
                first_unacked: self.delivered as u64,
                next_to_send: self.sent[self.sent.len() - 1] as u64,
                ..RawAckSample::default()
            },
        );
    }

    /// Until SEARCH decides or `until_ms` has come; when that is.
    fn run(&mut self, until_ms: usize, capacity_per_ms: f64) -> usize {
        while self.sent.len() < until_ms
            && self.window.in_slow_start()
            && self.search.mode() == "slow_start"
        {
            let now_ms = self.sent.len();
            let before = self.delivered;
            let arrived = if now_ms < RTT_MS { 0.0 } else { self.sent[now_ms - RTT_MS] };
            self.delivered = arrived.min(before + capacity_per_ms);
            if self.delivered > before {
                let left_ms = self.sent.partition_point(|sent| *sent < self.delivered);
                self.hear(now_ms, now_ms - left_ms);
            }
            self.sent.push(2.0 * self.delivered + 10.0);
        }
        self.sent.len()
    }
}

#[test]
fn what_all_arrives_goes_on() {
    for compare in ["sent", "delivered"] {
        let mut path = Path::new(search(&[("compare", compare)]));
        assert_eq!(path.run(2_500, 1e18), 2_500, "{compare}");
    }
}

/// algorithms.md: one to three round trips after the window has reached the BDP, 1,000 packets
/// here. It goes on doubling in each, however long they have become.
#[test]
fn at_capacity_delivery_falls_behind() {
    for compare in ["sent", "delivered"] {
        let mut path = Path::new(search(&[("compare", compare)]));
        path.run(2_500, 10.0);
        let doublings = libm::log2((path.delivered + 10.0) / 1_000.0);
        assert!((1.0..=3.0).contains(&doublings), "{compare}: after {doublings}");
    }
}

/// draft-chung-ietf-ccwg-00 §3: THRESH (line 6) and the exit (lines 39 to 42) of what
/// compares with deliveries.
#[test]
fn exits_as_the_drafts_have_them() {
    for (given, exit, threshold) in [
        (vec![], ExitAction::Drain, 0.26),
        (vec![("compare", "delivered")], ExitAction::Rollback, 0.35),
        (vec![("exit", "stay")], ExitAction::Stay, 0.26),
        (vec![("exit", "rollback")], ExitAction::Rollback, 0.26),
        (vec![("compare", "delivered"), ("exit", "stay")], ExitAction::Stay, 0.35),
        (vec![("compare", "delivered"), ("exit", "drain")], ExitAction::Drain, 0.35),
    ] {
        let search = search(&given);
        assert_eq!((search.exit, search.threshold), (exit, threshold), "{given:?}");
    }
}

/// 300 packets delivered in each of the last bins of 35 ms.
fn steady() -> Bins {
    let mut bins = Bins::new(Time::ZERO, Span::from_ms(RTT_MS as u64), 0.35, 0, 0);
    for i in 1..=10 {
        bins.advance(Time::ZERO + Span::from_ms(35 * i), 300 * i, 300 * i, 1);
    }
    bins
}

/// draft-chung-ietf-ccwg-00 §3, lines 39 to 41: 2 · 100 ms / 35 ms is five bins.
#[test]
fn a_rollback_takes_back_two_round_trips_but_no_initial_window() {
    for (cwnd, after) in [(4_000, 2_500), (1_505, 10), (800, 10), (7, 7)] {
        let mut search = search(&[("exit", "rollback")]);
        let mut window = CongestionWindow { cwnd, ..CongestionWindow::default() };
        search.leave(&mut window, &steady());
        assert_eq!((window.cwnd, window.ssthresh), (after, after));
    }
}

#[test]
fn a_drain_sends_one_packet_for_three_until_the_target() {
    let mut search = search(&[]);
    let mut window = CongestionWindow { cwnd: 1_500, ..CongestionWindow::default() };
    search.leave(&mut window, &steady());
    assert_eq!((search.mode(), window.in_slow_start()), ("drain", true));
    let mut in_flight: u32 = 1_500;
    let mut acked = 0;
    while search.mode() == "drain" {
        in_flight -= 1;
        acked += 1;
        let ack = AckSample { in_flight, ..test_support::ack(acked) };
        assert_eq!(search.grow(&mut window, &ack), 0);
        in_flight = window.cwnd.max(in_flight);
    }
    // Three bins' worth.
    assert_eq!((window.cwnd, window.ssthresh), (900, 900));
    // 600 fewer in flight, two of every three ACKs; the last one leaves nothing to be sent.
    assert_eq!(acked, 899);
}

#[test]
fn a_loss_ends_the_drain_and_a_timeout_forgets_everything() {
    let mut path = Path::new(search(&[]));
    path.run(2_500, 10.0);
    assert_eq!(path.search.mode(), "drain");
    path.window.ssthresh = path.window.cwnd;
    path.hear(2_500, 100);
    assert_eq!(path.search.mode(), "slow_start");
    path.search.on_timeout(Time::ZERO, 0);
    assert!(path.search.bins.is_none());
}

#[test]
fn a_silence_of_more_than_a_window_starts_anew() {
    let mut path = Path::new(search(&[]));
    path.run(700, 1e18);
    assert_ne!(path.search.bins.as_ref().unwrap().delivered(WINDOW_BINS), None);
    path.hear(700 + 35 + 350, 80);
    assert_eq!(path.search.bins.as_ref().unwrap().delivered(1), None);
}
