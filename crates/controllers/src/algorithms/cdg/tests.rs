use alloc::collections::BTreeMap;

use jostle_registry::ParameterValue;
use jostle_units::Span;

use super::*;
use crate::slow_start::Standard;
use crate::test_support::{ack, measurement};
use jostle_congestion::{CongestionController, CongestionSignal, RecoveryState};

const LOSS: CongestionEvent = CongestionEvent {
    now: Time::ZERO,
    signal: CongestionSignal::Loss,
    in_flight: 0,
    next_to_send: 0,
};

fn cdg(parameters: &[(&str, ParameterValue)]) -> Cdg {
    let given: BTreeMap<_, _> =
        parameters.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    let values = ROW.entry.resolve(&given).unwrap();
    Cdg::new(&values, RandomStream::new(1, "cdg"))
}

fn at(cwnd: u32) -> CongestionWindow {
    CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() }
}

/// A round with RTTs from `min_us` to `max_us` is over: the gradient.
fn round(law: &mut Cdg, min_us: i32, max_us: i32) -> i32 {
    law.round = RttExtremes { min: min_us, max: max_us };
    let known = law.last_round != RttExtremes::NONE;
    let gradient = if known { law.gradient() } else { 0 };
    law.restart_round(0);
    gradient
}

/// algorithms.md: a sum of 16.5 ms means a back-off in one of two rounds.
#[test]
fn the_probability_of_a_backoff_follows_the_gradient() {
    for (gradient_us, promised) in [(1, 0.0), (2_000, 0.081), (16_500, 0.50), (100_000, 0.985)] {
        let mut law = cdg(&[("use_ineff", ParameterValue::Integer(0))]);
        let backoffs = (0..10_000).filter(|_| law.backs_off(gradient_us, 10)).count();
        let share = backoffs as f64 / 10_000.0;
        assert!((share - promised).abs() < 0.02, "{share} at {gradient_us} us");
    }
}

#[test]
fn gradients_are_summed_over_eight_rounds() {
    let mut law = cdg(&[]);
    assert_eq!(round(&mut law, 50_000, 51_000), 0);
    // A millisecond more in every round: eight of them in eight rounds, also while they fill up.
    for i in 1..20 {
        assert_eq!(round(&mut law, 50_000 + i * 1_000, 51_000 + i * 1_000), 8_000, "round {i}");
    }
    // The minimum stands still, the maximum grows: the latter counts once the former is out.
    let sums = (0..9).map(|i| round(&mut law, 69_000, 70_000 + i * 2_000));
    assert_eq!(sums.collect::<Vec<_>>()[7..], [14_000, 16_000]);
}

#[test]
fn a_window_of_one_takes_the_last_gradient_alone() {
    let mut law = cdg(&[("window", ParameterValue::Integer(1))]);
    assert_eq!(round(&mut law, 50_000, 60_000), 0);
    assert_eq!(round(&mut law, 53_000, 60_000), 3_000);
    assert_eq!(round(&mut law, 53_000, 65_000), 5_000);
}

/// 42 · 10⁻⁶ · 8 · 100 ms is more than the exponential's range: certain.
const CERTAIN_US: i32 = 1_000_000;

#[test]
fn ineffective_backoffs_are_suspended_until_the_delay_falls() {
    let mut law = cdg(&[]);
    let row: Vec<_> = (0..8).map(|_| law.backs_off(CERTAIN_US, 10)).collect();
    assert_eq!(row, [true, true, true, true, true, false, false, false]);
    round(&mut law, 50_000, 51_000);
    round(&mut law, 49_969, 51_000);
    assert!(!law.backs_off(CERTAIN_US, 10), "− 31 us is no effect");
    round(&mut law, 49_968, 51_000);
    assert!(law.backs_off(CERTAIN_US, 10), "− 32 us is one");
}

#[test]
fn a_backoff_keeps_seven_tenths_and_a_loss_after_it_is_cheaper() {
    let (mut law, window) = (cdg(&[]), at(100));
    law.shadow = 100;
    assert_eq!(law.ssthresh_after(&window, &LOSS), 50, "Reno's half without a back-off");
    law.shadow = 100;
    assert!(law.backs_off(CERTAIN_US, 100));
    assert_eq!(law.ssthresh_after(&window, &LOSS), 70);
    law.on_cwr_complete(&mut at(70), Time::ZERO);
    assert_eq!(law.ssthresh_after(&at(70), &LOSS), 50, "half of the shadow, not of 70");
    law.shadow = 500;
    assert_eq!(law.ssthresh_after(&at(70), &LOSS), 70, "never above the window");
    let mut law = cdg(&[("use_shadow", ParameterValue::Bool(false))]);
    law.shadow = 100;
    assert_eq!(law.ssthresh_after(&at(70), &LOSS), 35);
}

#[test]
fn tolerance_keeps_the_window_while_the_queue_is_not_full() {
    let judged = |changes: [(i32, i32); 2]| {
        let mut law = cdg(&[("use_tolerance", ParameterValue::Bool(true))]);
        round(&mut law, 50_000, 60_000);
        for (min, max) in changes {
            round(&mut law, min, max);
        }
        (law.queue, law.ssthresh_after(&at(100), &LOSS))
    };
    assert_eq!(judged([(51_000, 61_000), (52_000, 62_000)]), (QueueState::NotFull, 100));
    assert_eq!(judged([(51_000, 60_000), (52_000, 60_000)]), (QueueState::Full, 50));
    // 31 us round to nothing: no opinion.
    assert_eq!(judged([(50_031, 60_000), (50_031, 60_000)]), (QueueState::Unknown, 50));
}

/// The whole way: the law asks, the transport reduces, the round begins anew.
#[test]
fn a_growing_delay_makes_the_controller_ask_for_a_reduction() {
    let random = RandomStream::new(1, "cdg");
    let law = Cdg::new(&ROW.entry.defaults(), random);
    let mut controller = WindowBasedController::new(law, Box::new(Standard));
    controller.set_cwnd(100);
    controller.set_ssthresh(2);
    let mut asked = 0;
    for number in 1..=60 {
        controller.on_ack_before_loss_detection(&RawAckSample {
            next_to_send: number,
            ..measurement(Span::from_ms(50 + 10 * number))
        });
        let sample = AckSample { state: RecoveryState::Open, ..ack(number) };
        controller.on_ack(&AckSample { next_to_send: number, ..sample });
        if controller.take_cwr_request() {
            asked += 1;
            controller.on_congestion_event(&CongestionEvent {
                signal: CongestionSignal::Request,
                ..LOSS
            });
            let ssthresh = controller.ssthresh().unwrap();
            assert_eq!(ssthresh, controller.cwnd() * 724 / 1024);
            controller.set_cwnd(ssthresh);
            controller.on_cwr_complete(Time::ZERO);
        }
        assert!(!controller.take_cwr_request(), "a request is taken once");
    }
    assert_eq!(asked, 5, "the delay goes on growing, so these had no effect");
}

#[test]
fn single_acks_after_stretched_ones_are_taken_for_delayed_ones() {
    let (mut law, mut window) = (cdg(&[]), at(100));
    let mut hear = |packets, sacked, rtt_ms| {
        let m = RawAckSample { packets, sacked, ..measurement(Span::from_ms(rtt_ms)) };
        law.on_ack_before_loss_detection(&mut window, &m);
        (law.round.min / 1_000, law.round.max / 1_000)
    };
    assert_eq!(hear(2, 0, 50), (50, 50));
    assert_eq!(hear(1, 0, 90), (50, 50), "held back by a timer");
    assert_eq!(hear(1, 0, 90), (50, 90), "one stretched ACK excuses one");
    assert_eq!(hear(2, 0, 60), (50, 90));
    assert_eq!(hear(1, 0, 40), (40, 90), "a shorter one is no delayed one");
    assert_eq!(hear(2, 0, 60), (40, 90));
    assert_eq!(hear(1, 3, 95), (40, 95), "nothing is delayed beside a gap");
}

#[test]
fn a_long_silence_forgets_the_path() {
    let (mut law, mut window) = (cdg(&[]), at(30));
    for i in 0..4 {
        round(&mut law, 50_000 + i * 5_000, 60_000);
    }
    law.backs_off(CERTAIN_US, 100);
    law.next_to_send = 77;
    law.on_idle_restart(&mut window, Time::ZERO);
    assert_eq!((law.sum, law.tail, law.shadow), (RttExtremes::NONE, 0, 30));
    assert_eq!((law.round_end, law.backoffs, law.queue), (77, 0, QueueState::Unknown));
    assert_eq!(round(&mut law, 90_000, 90_000), 0);
}
