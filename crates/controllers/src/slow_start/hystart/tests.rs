use super::*;
use crate::registry;
use jostle_registry::ParameterValue;

const BASE: Span = Span::from_ms(100);

/// HyStart with parameters, its connection established, at a window of 100.
fn hystart(parameters: &[(&str, &str)]) -> (HyStart, CongestionWindow) {
    establish(HyStart::new(&resolve(&ROW, parameters)))
}

fn resolve(row: &SlowStartEntry, parameters: &[(&str, &str)]) -> ParameterValues {
    let given = parameters
        .iter()
        .map(|(name, choice)| (name.to_string(), ParameterValue::Text(choice.to_string())))
        .collect();
    row.entry.resolve(&given).unwrap()
}

fn establish(mut hystart: HyStart) -> (HyStart, CongestionWindow) {
    let mut window = CongestionWindow { cwnd: 100, ..CongestionWindow::default() };
    let established = EstablishedEvent {
        now: Time::ZERO + BASE,
        mss_bytes: 1448,
        initial_window: 10,
        rtt: Some(BASE),
        prospect: Default::default(),
    };
    hystart.on_established(&mut window, &established);
    (hystart, window)
}

fn ack(now: Time, rtt: Span, number: u64, pacing_rate: Option<Rate>) -> RawAckSample {
    RawAckSample {
        now,
        rtt: Some(rtt),
        packets: 1,
        first_unacked: number,
        next_to_send: number + 100,
        state: jostle_congestion::RecoveryState::Open,
        pacing_rate,
        ..RawAckSample::default()
    }
}

/// ACKs every `gap` from the first ACK of a round on, until slow start ends: how long the
/// train was.
fn train_length(parameters: &[(&str, &str)], gap: Span, pacing: Option<Rate>) -> Option<Span> {
    let (mut hystart, mut window) = hystart(parameters);
    let start = Time::ZERO + BASE + BASE;
    let mut now = start;
    for i in 0..1_000 {
        // The first ACK starts a round in which the rest of 1,000 packets falls.
        let next_to_send = if i == 0 { 1_000 } else { 2_000 };
        let m = RawAckSample { next_to_send, ..ack(now, BASE, i + 1, pacing) };
        hystart.on_ack_before_loss_detection(&mut window, &m);
        if hystart.kernel == LinuxRelease::V4_15 && i == 0 {
            hystart.start_round(now, next_to_send);
        }
        if !window.in_slow_start() {
            assert_eq!(window.ssthresh, 100);
            return Some(now.since(start));
        }
        now += gap;
    }
    None
}

/// algorithms.md: at 100 ms without pacing, a train of more than 50 ms (plus half the slack).
#[test]
fn a_train_of_half_the_rtt_ends_slow_start_without_pacing() {
    let length = train_length(&[], Span::from_us(250), None).unwrap();
    assert_eq!(length, Span::from_us(50_750), "the first ACK after 50 + 0.5 ms");
}

#[test]
fn pacing_asks_for_a_train_of_a_whole_rtt() {
    let length = train_length(&[], Span::from_us(250), Some(Rate::from_mbps(10))).unwrap();
    assert_eq!(length, Span::from_us(101_250), "the first ACK after 100 + 1 ms");
    let fast = train_length(&[], Span::from_us(250), Some(Rate::from_mbps(10_000))).unwrap();
    assert_eq!(fast, Span::from_us(100_250), "four bursts take 0.2 ms at 10 Gbit/s");
}

#[test]
fn a_gap_of_more_than_2_ms_breaks_the_train() {
    assert_eq!(train_length(&[], Span::from_us(2_001), None), None);
    assert!(train_length(&[], Span::from_us(2_000), None).is_some());
    assert_eq!(train_length(&[("detect", "delay")], Span::from_us(250), None), None);
}

/// Rounds of 20 ACKs, 3 ms apart, whose RTT rises by 0.1 ms from round to round: the queueing
/// delay at which slow start ends.
fn delay_at_exit(parameters: &[(&str, &str)]) -> Option<Span> {
    delay_at_exit_of(hystart(parameters), Span::from_us(100))
}

/// The same with another rise.
fn delay_at_exit_of(
    (mut hystart, mut window): (HyStart, CongestionWindow),
    per_round: Span,
) -> Option<Span> {
    let mut now = Time::ZERO + BASE + BASE;
    for i in 0..20 * 300 {
        let queued = per_round.mul_div(i / 20, 1);
        let next_to_send = i + 20;
        let m = RawAckSample { next_to_send, ..ack(now, BASE + queued, i + 1, None) };
        hystart.on_ack_before_loss_detection(&mut window, &m);
        if hystart.kernel == LinuxRelease::V4_15 && i % 20 == 0 {
            hystart.start_round(now, next_to_send);
        }
        if !window.in_slow_start() {
            return Some(queued);
        }
        now += Span::from_ms(3);
    }
    None
}

/// algorithms.md: at 100 ms, when the queueing delay first exceeds 12.5 ms.
#[test]
fn a_delay_of_an_eighth_ends_slow_start() {
    assert_eq!(delay_at_exit(&[]), Some(Span::from_us(12_600)));
    assert_eq!(delay_at_exit(&[("detect", "train")]), None);
    // In eighths of a millisecond: 12.5 ms is 100 of them, exceeded at 12.625 ms.
    assert_eq!(delay_at_exit(&[("linux", "4.15")]), Some(Span::from_us(12_700)));
}

fn published(baseline: &str) -> (HyStart, CongestionWindow) {
    establish(HyStart::published(&resolve(&PAPER_ROW, &[("baseline", baseline)])))
}

#[test]
fn the_papers_wait_for_a_sixteenth() {
    // 6.25 ms of 100 ms are 50 eighths of a millisecond, exceeded at 6.375 ms.
    let exit = delay_at_exit_of(published("connection"), Span::from_us(100));
    assert_eq!(exit, Some(Span::from_us(6_400)));
}

#[test]
fn compared_with_the_last_round_only_a_sudden_rise_counts() {
    for (rise_ms, exit) in [(6, None), (7, Some(Span::from_ms(7)))] {
        let found = delay_at_exit_of(published("last round"), Span::from_ms(rise_ms));
        assert_eq!(found, exit, "{rise_ms} ms per round");
    }
}

#[test]
fn the_published_form_follows_no_kernel() {
    let (mut hystart, _) = published("connection");
    hystart.set_linux_release(LinuxRelease::V6_1);
    assert_eq!(hystart.kernel, LinuxRelease::V4_15);
}

#[test]
fn small_windows_are_left_alone() {
    let (mut hystart, mut window) = hystart(&[]);
    window.cwnd = 15;
    for i in 0..100 {
        let now = Time::ZERO + BASE + Span::from_ms(i);
        hystart
            .on_ack_before_loss_detection(&mut window, &ack(now, BASE + Span::from_ms(i), i, None));
    }
    assert!(window.in_slow_start());
}

#[test]
fn the_old_kernel_halves_the_train_whatever_the_pacing() {
    let old = [("linux", "4.15")];
    let paced = train_length(&old, Span::from_us(250), Some(Rate::from_mbps(10))).unwrap();
    assert_eq!(paced, Span::from_ms(51), "the first ACK whose millisecond exceeds 50");
    assert_eq!(train_length(&old, Span::from_us(250), None), Some(paced));
}

#[test]
fn the_controller_names_the_kernel_unless_a_parameter_does() {
    for (linux, followed) in
        [("as the controller", LinuxRelease::V4_15), ("6.1", LinuxRelease::V6_1)]
    {
        let (mut hystart, _) = hystart(&[("linux", linux)]);
        hystart.set_linux_release(LinuxRelease::V4_15);
        assert_eq!(hystart.kernel, followed);
    }
    assert!(registry::slow_start("hystart").is_some());
}

#[test]
fn a_timeout_starts_anew() {
    let (mut hystart, mut window) = hystart(&[]);
    hystart.found = true;
    hystart.delay_min = Some(1);
    hystart.on_timeout(Time::ZERO + Span::from_secs(5), 500);
    assert!(!hystart.found);
    window.cwnd = 20;
    hystart.on_ack_before_loss_detection(
        &mut window,
        &ack(Time::ZERO + Span::from_secs(6), BASE, 501, None),
    );
    assert_eq!(hystart.delay_min, Some(100_000));
}
