//! When BBR v3 forgets a bandwidth, and when not: `AdvanceMaxBwFilter` runs "if (IsInAProbeBWState()
//! && !RS.is_app_limited)", a round after a probe. Draft and release agree.

use super::*;

fn flavoured(flavour: &str) -> [(&'static str, ParameterValue); 1] {
    [("flavour", ParameterValue::Text(flavour.to_owned()))]
}

/// A probe that ProbeRTT cuts short, on a path that has dropped to a quarter: 5 s pass in UP without
/// a smaller RTT. `marks`: the transport marks what is in flight in ProbeRTT, as the draft has it.
fn cut_short(bbr: &mut Bbr3, path: &mut Rounds40, marks: bool) {
    let quarter = |path: &mut Rounds40| AckSample {
        cwnd_limited: false,
        rtt: Some(Span::from_ms(41)),
        ..path.round(BDP / 4)
    };
    let start = path.now;
    while bbr.mode() != "probe_bw_up" {
        bbr.on_ack(&quarter(path));
        assert_ne!(bbr.mode(), "probe_rtt", "there is time for a probe");
        assert!(path.now < start + Span::from_secs(10), "{}", bbr.mode());
    }
    path.now += Span::from_secs(5);
    bbr.on_ack(&quarter(path));
    assert_eq!(bbr.mode(), "probe_rtt");
    let start = path.now;
    while bbr.mode() == "probe_rtt" {
        bbr.on_ack(&AckSample { in_flight: 4, ..quarter(path) });
        assert!(path.now < start + Span::from_secs(1), "{:?}", bbr.probe_rtt);
    }
    // The round after it: what was in flight when ProbeRTT ended, and what was sent meanwhile.
    for _ in 0..2 {
        bbr.on_ack(&AckSample { app_limited: marks, ..quarter(path) });
    }
}

/// "HandleProbeRTT(): /* Ignore low rate samples during ProbeRTT: */ MarkConnectionAppLimited()". The
/// round of a probe that ProbeRTT cuts short ends in ProbeRTT, which is no state of ProbeBW; the round
/// after ProbeRTT has samples that count as application-limited. So neither ages the bandwidth, and
/// where RTTs are so long that every probe is cut short, an estimate stands for ever.
#[test]
fn a_probe_that_probe_rtt_cuts_short_does_not_age_the_bandwidth() {
    for flavour in ["draft", "google"] {
        let (mut bbr, mut path) = cruising(&flavoured(flavour));
        let full = bbr.max_bandwidth.get();
        for _ in 0..20 {
            cut_short(&mut bbr, &mut path, true);
        }
        assert_eq!(bbr.max_bandwidth.get(), full, "{flavour}, after {}", path.now);
        // It is the marks that do it.
        for _ in 0..2 {
            cut_short(&mut bbr, &mut path, false);
        }
        assert!(bbr.max_bandwidth.get() < full / 3, "{flavour}");
    }
}

/// "StartProbeBW_REFILL(): BBR.ack_phase = ACKS_REFILLING", whatever it was: where a round trip takes
/// longer than the wait for the next probe, the round after the last one never ends.
#[test]
fn a_refill_within_the_round_after_a_probe_does_not_age_the_bandwidth() {
    for (flavour, ages) in [("draft", false), ("draft", true), ("google", false), ("google", true)]
    {
        let never = ParameterValue::Integer(0);
        let given = [flavoured(flavour)[0].clone(), ("probe_rtt_duration", never)];
        let (mut bbr, mut path) = cruising(&given);
        until("probe_bw_up", &mut bbr, &mut path);
        let full = bbr.max_bandwidth.get();
        for _ in 0..3 {
            until("probe_bw_up", &mut bbr, &mut path);
            until("probe_bw_down", &mut bbr, &mut path);
            let before = bbr.max_bandwidth;
            assert_eq!(before.get(), full);
            // Nothing was sent in DOWN yet that could be acknowledged: its round goes on.
            let prior_delivered = if ages { path.delivered } else { 0 };
            path.now += Span::from_secs(4);
            let late = path.round(BDP / 4);
            bbr.on_ack(&AckSample { prior_delivered, in_flight: 2 * BDP, ..late });
            assert_eq!(bbr.mode(), "probe_bw_refill");
            assert_eq!(bbr.max_bandwidth == before, !ages, "{flavour}");
        }
    }
}
