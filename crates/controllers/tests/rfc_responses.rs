//! The controllers of RFCs against the numbers that RFC 9438 gives, on the harness.

use crate::common::{Path, Transfer, build};
use jostle_congestion::{CongestionController, CongestionEvent, CongestionSignal};
use jostle_registry::ParameterValue;
use jostle_units::{Rate, Span};

/// CUBIC with 10/1024 of `bic_scale` as C.
fn cubic(flavour: &str, bic_scale: i64) -> Box<dyn CongestionController> {
    let given = [
        ("flavour", ParameterValue::Text(flavour.to_owned())),
        ("bic_scale", ParameterValue::Integer(bic_scale)),
        // RFC 9438 §4.7: "with only a single CUBIC flow and without any other traffic, Fast Convergence
        // SHOULD be disabled".
        ("fast_convergence", ParameterValue::Bool(false)),
    ];
    build("cubic", &given, Some("standard"))
}

/// Mean window of a flow of which every `every`th packet is lost, which begins with a loss at a window
/// of `w_max`.
fn mean_window(
    controller: Box<dyn CongestionController>,
    w_max: f64,
    rtt_ms: u64,
    every: u64,
) -> f64 {
    let mut path = Path::new(Rate::from_mbps(10_000_000), Span::from_ms(rtt_ms), 1_000_000);
    path.lose_every = every;
    let mut transfer = Transfer::new(path, controller);
    let w_max = (w_max as u32).max(10);
    transfer.controller.set_cwnd(w_max);
    transfer.controller.on_congestion_event(&CongestionEvent {
        now: transfer.now,
        signal: CongestionSignal::Loss,
        in_flight: w_max,
        next_to_send: w_max.into(),
    });
    transfer.controller.set_cwnd(transfer.controller.ssthresh().unwrap_or(w_max));
    // Twenty losses, from the fifth on.
    while transfer.total_sent < 5 * every {
        transfer.step();
    }
    let (mut area, from) = (0.0, transfer.now);
    while transfer.total_sent < 25 * every {
        let (before, cwnd) = (transfer.now, transfer.controller.cwnd());
        transfer.step();
        area += f64::from(cwnd) * transfer.now.since(before).as_secs_f64();
    }
    area / transfer.now.since(from).as_secs_f64()
}

/// W_max of the cycle in which every `every`th packet is lost (RFC 9438 §B). A flow that begins
/// elsewhere comes there slowly, for at the plateau it matters little when the next loss comes.
fn w_max(bic_scale: i64, rtt_ms: u64, every: u64) -> f64 {
    let c = 10.0 * bic_scale as f64 / 1024.0;
    let rtt_s = rtt_ms as f64 / 1000.0;
    let k = libm::pow(4.0 * 0.3 / (c * 3.7) * rtt_s * every as f64, 0.25);
    c * k * k * k / 0.3
}

/// RFC 9438 §5.1, tables 1 and 2: average windows "under a deterministic loss model", of equation 6
/// or of the Reno-friendly region.
#[test]
fn the_response_function_is_that_of_the_rfc() {
    for (bic_scale, rtt_ms, every, window) in [
        (41, 100, 100, 12.0),
        (41, 100, 1_000, 38.0),
        (41, 100, 10_000, 187.0),
        (41, 100, 100_000, 1054.0),
        (410, 100, 1_000, 59.0),
        (410, 100, 10_000, 333.0),
        (41, 10, 10_000, 120.0),
        (41, 10, 100_000, 379.0),
    ] {
        // Whole packets are coarse where there are a dozen of them.
        let tolerance = if window < 20.0 { 0.13 } else { 0.04 };
        for flavour in ["rfc9438", "linux"] {
            let w_max = w_max(bic_scale, rtt_ms, every);
            let mean = mean_window(cubic(flavour, bic_scale), w_max, rtt_ms, every);
            let apart = (mean / window - 1.0).abs();
            let what = format!("{flavour}, C = {bic_scale}, {rtt_ms} ms, every {every}");
            assert!(apart <= tolerance, "{what}: {mean:.1} packets, not {window}");
        }
    }
}

/// Table 1, column Reno, which is 1.2 / √p: 38, 120 and 379 packets. Over a cycle that is exact √1.5 is
/// in place of 1.2, 2 % more.
#[test]
fn reno_has_the_windows_of_the_table() {
    for (every, window) in [(1_000u64, 38.0), (10_000, 120.0), (100_000, 379.0)] {
        for flavour in ["rfc9002", "linux"] {
            let given = [("flavour", ParameterValue::Text(flavour.to_owned()))];
            let w_max = f64::sqrt(8.0 / 3.0 * every as f64);
            let mean = mean_window(build("reno", &given, None), w_max, 100, every);
            let apart = (mean / window - 1.0).abs();
            assert!(apart <= 0.04, "{flavour}, every {every}: {mean:.1} packets, not {window}");
        }
    }
}
