use super::*;

const SECOND: u64 = 1_000_000_000;

fn at(s: u64) -> Time {
    Time::from_ns(s * SECOND)
}

fn ack(rtt_ns: Option<u64>, cwnd_bytes: u64) -> AckEvent {
    AckEvent {
        rtt: rtt_ns.map(Span::from_ns),
        cwnd_bytes,
        in_flight_bytes: 0,
        acked_bytes: 0,
        lost_packets: 0,
    }
}

#[test]
fn cwnd_is_weighted_by_the_time_it_holds() {
    let mut meter = FlowMeter::new(Time::NEVER, 2);
    meter.acked(at(1), &ack(None, 1_000));
    meter.acked(at(4), &ack(None, 5_000));
    meter.close_segment(at(5));
    meter.close_segment(at(10));
    // 3 s of 1000 and 1 s of 5000; the second before the first ACK does not count.
    assert_eq!(meter.segments()[0].cwnd_mean_bytes(), Some(2_000.0));
    assert_eq!(meter.segments()[1].cwnd_mean_bytes(), Some(5_000.0));
}

#[test]
fn a_flow_without_acks_has_no_window() {
    let mut meter = FlowMeter::new(Time::NEVER, 1);
    meter.close_segment(at(5));
    assert_eq!(meter.segments()[0].cwnd_mean_bytes(), None);
    assert_eq!(meter.segments()[0].rtt_mean_s(), None);
}

#[test]
fn life_ends_with_the_last_ack_of_a_stopped_or_complete_flow() {
    let mut stopped = FlowMeter::new(at(3), 1);
    stopped.acked(at(1), &ack(None, 1_000));
    stopped.acked(at(5), &ack(None, 9_000));
    stopped.close_segment(at(10));
    assert_eq!(stopped.segments()[0].life_ns, 4 * SECOND);
    assert_eq!(stopped.segments()[0].cwnd_mean_bytes(), Some(1_000.0));

    let mut complete = FlowMeter::new(Time::NEVER, 2);
    complete.acked(at(1), &ack(None, 1_000));
    complete.acked(at(2), &ack(None, 2_000));
    complete.completed(at(2), Span::from_secs(2));
    complete.close_segment(at(5));
    complete.close_segment(at(9));
    assert_eq!(complete.segments()[0].life_ns, SECOND);
    assert_eq!(complete.segments()[1].cwnd_mean_bytes(), None);
    assert_eq!(complete.completion(), Some(Span::from_secs(2)));
}

#[test]
fn the_deviation_of_nearly_equal_round_trips_is_exact() {
    let mut meter = FlowMeter::new(Time::NEVER, 1);
    for rtt_ns in [600_000_001, 600_000_002, 600_000_003] {
        meter.acked(at(1), &ack(Some(rtt_ns), 1));
    }
    meter.close_segment(at(2));
    let totals = &meter.segments()[0];
    assert_eq!(totals.rtt_sd_s(), Some(1e-9));
    assert_eq!(totals.rtt_mean_s(), Some(0.600_000_002));
    assert_eq!(totals.rtt_ns.min(), Some(600_000_001));
}

#[test]
fn the_deviation_survives_sums_beyond_128_bits() {
    let totals = FlowTotals {
        counters: FlowCounters {
            rtt_samples: 1 << 32,
            rtt_sum_ns: 1 << 62,
            ..FlowCounters::default()
        },
        rtt_squares_ns2: 1 << 97,
        ..FlowTotals::default()
    };
    let sd_s = totals.rtt_sd_s().unwrap();
    // Variance: Σx²/n − mean² = 2⁶⁵ − 2⁶⁰.
    let expected_s = ((1u128 << 65) as f64 - (1u128 << 60) as f64).sqrt() / 1e9;
    assert!((sd_s / expected_s - 1.0).abs() < 1e-9, "{sd_s} beside {expected_s}");
}
