//! When Sprout takes arrivals for all that the link could do.

use super::*;
use crate::test_support::ack;

const RTT: Span = Span::from_ms(40);

fn sprout() -> Sprout {
    let mut sprout = Sprout::new(Parameters::new(&ROW.entry.defaults()));
    sprout.on_established(&EstablishedEvent {
        now: Time::ZERO + RTT,
        mss_bytes: 1448,
        initial_window: 10,
        rtt: Some(RTT),
        prospect: Default::default(),
    });
    sprout
}

/// A second of `per_tick` arrivals per tick that measured `rtt`.
fn run(sprout: &mut Sprout, per_tick: u32, rtt: Span) {
    for _ in 0..50 {
        let now = sprout.tick_end;
        sprout.on_ack(&AckSample { now, acked: per_tick, rtt: Some(rtt), ..ack(0) });
    }
}

#[test]
fn a_queue_makes_arrivals_the_rate_of_the_link() {
    let mut sprout = sprout();
    run(&mut sprout, 5, RTT + Span::from_ms(25));
    assert_eq!(sprout.mode(), "busy");
    let rate = sprout.model.mean_pps();
    assert!((rate - 250.0).abs() < 30.0, "{rate}");
    // 140 ms of 250 per second, cautiously.
    assert!((10..35).contains(&sprout.cwnd()), "{}", sprout.cwnd());
}

#[test]
fn without_a_queue_the_link_may_be_faster() {
    let mut sprout = sprout();
    run(&mut sprout, 5, RTT);
    assert_eq!(sprout.mode(), "probing");
    assert!(sprout.model.mean_pps() > 400.0, "{}", sprout.model.mean_pps());
}

/// Packets wait for 30 ms on a path of 40 ms; then the path itself takes 100 ms. Ten seconds after
/// the last RTT of 40 ms the packets in flight are reduced, and the next packet shows the new RTT.
#[test]
fn the_minimum_rtt_of_a_longer_path_is_found() {
    let mut sprout = sprout();
    let minimum_at = sprout.min_rtt_at;
    let mut window = 0;
    let longer = Span::from_ms(100);
    while sprout.probe == MinRttProbe::Off {
        window = sprout.cwnd();
        let now = sprout.tick_end;
        sprout.on_ack(&AckSample { now, acked: 5, rtt: Some(longer), in_flight: 40, ..ack(0) });
    }
    assert_eq!(sprout.probe, MinRttProbe::Draining);
    let age = sprout.last_event.since(minimum_at);
    assert!(age > MIN_RTT_WINDOW && age < MIN_RTT_WINDOW + Span::from_ms(40), "{age:?}");
    assert!(2 * sprout.cwnd() < window, "{} of {window}", sprout.cwnd());
    let drained = sprout.tick_end;
    let low = AckSample { now: drained, rtt: Some(longer), in_flight: sprout.cwnd(), ..ack(0) };
    sprout.on_ack(&low);
    assert_eq!((sprout.probe, sprout.min_rtt), (MinRttProbe::Measuring(drained), RTT));
    // A packet from before the reduction may have waited; the first one after it has not.
    for (sent_at, min_rtt) in [(drained - RTT, RTT), (drained, longer)] {
        sprout.on_ack(&AckSample { now: drained + longer, sent_at, ..low });
        assert_eq!(sprout.min_rtt, min_rtt);
    }
    assert_eq!((sprout.probe, sprout.mode()), (MinRttProbe::Off, "probing"));
}

#[test]
fn silence_with_packets_overdue_is_an_outage_and_without_any_is_nothing() {
    for (in_flight, outage) in [(9, true), (0, false)] {
        let mut sprout = sprout();
        run(&mut sprout, 10, RTT + Span::from_ms(25));
        sprout.on_ack(&AckSample { now: sprout.last_event, in_flight, acked: 0, ..ack(0) });
        sprout.busy = false;
        sprout.on_wakeup(sprout.tick_end + Span::from_ms(400));
        assert_eq!(sprout.cwnd() <= 2, outage, "{}", sprout.cwnd());
    }
}

#[test]
fn a_long_silence_costs_a_bounded_number_of_ticks() {
    let mut sprout = sprout();
    let now = Time::ZERO + Span::from_secs(100_000);
    sprout.on_wakeup(now);
    assert_eq!(sprout.next_wakeup(), Some(now + Span::from_ms(20)));
}
