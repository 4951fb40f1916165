use jostle_units::{RandomStream, Span, Time};

use super::BY_HAND;
use crate::learning::{Policy, parse_design, parse_policy};
use crate::test_support::ack;
use jostle_congestion::{
    AckSample, CongestionController, EstablishedEvent, FirstFlightLimits, SendEvent,
};

const MSS: u32 = 1_000;

const fn ms(ms: u64) -> Time {
    Time::from_ns(1_000_000 * ms)
}

/// One feature, its value added to a bias: what is done does not depend on anything else.
fn policy(interval: &str, action: &str, rows: &str) -> Box<dyn CongestionController> {
    let outputs = rows.lines().count();
    let text = format!(
        "jostle-policy 1\nfeatures loss_ratio\nhistory 1\ninterval {interval}\naction {action}\n\
         layer linear 1 {outputs}\n{rows}\n"
    );
    let (design, network) = parse_policy(text.as_bytes()).unwrap();
    crate::learning::learned(design, network, || super::cubic_below(RandomStream::new(1, "test")))
}

fn establish(controller: &mut dyn CongestionController) {
    controller.on_established(&EstablishedEvent {
        now: ms(100),
        mss_bytes: MSS,
        initial_window: 10,
        rtt: Some(Span::from_ms(100)),
        prospect: FirstFlightLimits::default(),
    });
}

fn at(now_ms: u64, rtt_ms: u64) -> AckSample {
    let rtt = Span::from_ms(rtt_ms);
    let sent_at = ms(now_ms - rtt_ms);
    AckSample {
        sent_at,
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: rtt,
        now: ms(now_ms),
        acked: 2,
        ..ack(2)
    }
}

#[test]
fn a_rate_is_multiplied_and_divided() {
    // Aurora, equation 1, with α = 0.5: × 2 for a = 2; ÷ 2 for a = −2.
    let mut up = policy("50 ms", "rate 0.5", "2 0");
    let mut down = policy("50 ms", "rate 0.5", "-2 0");
    for controller in [&mut up, &mut down] {
        establish(controller.as_mut());
        assert_eq!(controller.next_wakeup(), Some(ms(150)));
        // Ten packets of 8 kbit in 100 ms.
        assert_eq!(controller.pacing_rate().unwrap().as_bps(), 800_000);
        controller.on_wakeup(ms(150));
        assert_eq!(controller.next_wakeup(), Some(ms(200)));
    }
    assert_eq!(up.pacing_rate().unwrap().as_bps(), 1_600_000);
    assert_eq!(up.cwnd(), 40, "twice what the rate has in flight");
    assert_eq!(down.pacing_rate().unwrap().as_bps(), 400_000);
}

#[test]
fn an_interval_ends_with_the_first_event_after_it() {
    let mut controller = policy("0.5 rtt", "window 1", "1 0");
    establish(controller.as_mut());
    assert_eq!((controller.cwnd(), controller.next_wakeup()), (10, Some(ms(150))));
    controller.on_ack(&at(149, 80));
    assert_eq!(controller.cwnd(), 10);
    // The mean RTT of the interval that ended was 80 ms: the next one has half of that.
    controller.on_ack(&at(160, 40));
    assert_eq!((controller.cwnd(), controller.next_wakeup()), (20, Some(ms(200))));
    controller.on_send(&SendEvent {
        now: ms(201),
        packets: 1,
        total_sent: 30,
        next_to_send: 30,
        prior_in_flight: 4,
        after_idle: false,
    });
    assert_eq!((controller.cwnd(), controller.next_wakeup()), (40, Some(ms(221))));
}

#[test]
fn cubic_is_corrected() {
    // 4^0.5 = 2.
    let mut controller = policy("20 ms", "cubic", "0.5 0");
    establish(controller.as_mut());
    controller.on_wakeup(ms(120));
    assert_eq!(controller.cwnd(), 20);
    let mut cubic = super::cubic_below(RandomStream::new(1, "test"));
    assert_eq!(controller.recovery_owner(), cubic.recovery_owner());
    establish(cubic.as_mut());
    assert_eq!(controller.pacing_rate(), cubic.pacing_rate());
}

#[test]
fn window_and_rate_can_be_set() {
    let mut controller = policy("20 ms", "absolute", "5 0\n3 0");
    establish(controller.as_mut());
    controller.on_wakeup(ms(120));
    assert_eq!(controller.cwnd(), 32);
    assert_eq!(controller.pacing_rate().unwrap().as_bps(), 8_000_000);
}

#[test]
fn a_network_is_what_its_file_says() {
    let text = "jostle-policy 1 # the format\nfeatures rtt_ratio loss_ratio\n\nhistory 1\n\
                interval 20 ms\naction cubic\nlayer relu 2 2\n1 2 3\n-1 0 0.5\n\
                layer tanh 2 1\n0.25 0.5 -8\n";
    let (design, mut network) = parse_policy(text.as_bytes()).unwrap();
    assert_eq!(design.observation_len(), 2);
    // relu(1 + 2 × 0.5 + 3 × 1), relu(−1 + 0.5 × 1); tanh(0.25 + 0.5 × 5 − 8 × 0).
    assert_eq!(network.act(&[0.5, 1.0])[0], libm::tanh(2.75));
    assert!(parse_policy(BY_HAND).is_ok());
}

#[test]
fn mistakes_are_found_with_their_lines() {
    let head = "jostle-policy 1\nfeatures rtt_ratio\nhistory 2\ninterval 1 rtt\naction rate 1\n";
    for (text, message) in [
        ("jostle-policy 2\n", "its first line is not `jostle-policy 1`"),
        ("jostle-policy 1\nfeatures rtt_ratio\n", "it ends where `history …` is expected"),
        (head, "its last layer has to have 1 outputs, one per action"),
        (&format!("{head}layer tanh 2 2\n1 2 3\n1 2 3"), "its last layer has to have 1 outputs"),
        (&format!("{head}layer tanh 3 1\n1 2 3 4"), "line 6: 2 numbers come in, not 3"),
        (&format!("{head}layer sin 2 1\n1 2 3"), "line 6: no activation `sin`: linear, tanh, relu"),
        (&format!("{head}layer tanh 2 1\n1 2"), "line 7: 2 numbers, not a bias and 2 weights"),
        (&format!("{head}layer tanh 2 1\n1 2 NaN"), "line 7: `NaN` is no number"),
        (&format!("{head}layer tanh 2 1\n"), "it ends where one of 1 lines of weights is expected"),
        (&format!("{head}layer tanh 2 1\n1 2 3\n4"), "line 8: expected `layer ACTIVATION"),
    ] {
        let error = parse_policy(text.as_bytes()).map(drop).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    assert_eq!(
        parse_policy(b"\xff").map(drop).unwrap_err().split(':').next(),
        Some("it is no text")
    );
    let more = format!("{head}layer tanh 2 1\n");
    let error = parse_design(&more).map(drop).unwrap_err();
    assert_eq!(error, "line 6: a design ends before this");
}
