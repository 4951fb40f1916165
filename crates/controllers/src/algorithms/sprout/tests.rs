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
