use alloc::collections::BTreeMap;

use jostle_units::Time;

use super::*;

fn controller() -> DelayAimd {
    DelayAimd::new(&ROW.entry.resolve(&BTreeMap::new()).unwrap())
}

/// Acknowledges all packets of a window, one by one.
fn round_trip(avoidance: &mut DelayAimd, window: &mut CongestionWindow, queueing_ms: u64) {
    let min_rtt = Span::from_ms(40);
    let srtt = Span::from_ms(40 + queueing_ms);
    let ack =
        AckSample { acked: 1, srtt, min_rtt, can_increase_cwnd: true, ..AckSample::default() };
    for _ in 0..window.cwnd {
        avoidance.on_ack(window, &ack);
        avoidance.increase_cwnd(window, 1, &ack);
    }
}

fn cwnd_after(rounds: u32, queueing_ms: u64) -> u32 {
    let (mut avoidance, mut window) = (controller(), CongestionWindow::default());
    (window.cwnd, window.ssthresh) = (100, 50);
    for _ in 0..rounds {
        round_trip(&mut avoidance, &mut window, queueing_ms);
    }
    window.cwnd
}

#[test]
fn an_empty_path_adds_one_packet_per_round_trip() {
    assert!((109..=110).contains(&cwnd_after(10, 0)));
}

#[test]
fn at_the_target_the_window_stays() {
    assert_eq!(cwnd_after(10, 20), 100);
}

#[test]
fn a_longer_delay_shrinks_the_window() {
    // 100 · (7/8)^10 = 26.3, and fractions of packets.
    assert!((26..=28).contains(&cwnd_after(10, 200)));
}

#[test]
fn a_loss_multiplies_the_window_by_beta() {
    let window = CongestionWindow { cwnd: 100, ..CongestionWindow::default() };
    let mut event = CongestionEvent {
        now: Time::ZERO,
        signal: CongestionSignal::Loss,
        in_flight: 100,
        next_to_send: 200,
    };
    assert_eq!(controller().ssthresh_after(&window, &event), 70);
    event.signal = CongestionSignal::Timeout;
    assert_eq!(controller().ssthresh_after(&window, &event), 50);
}
