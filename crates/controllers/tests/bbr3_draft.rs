//! Test cases of draft-ietf-ccwg-bbr-06 §A that a path can show. Those of single ACKs are
//! unit tests of the controller.

use crate::common::{Path, Transfer, build, default_controller};
use jostle_congestion::StateObserver;
use jostle_registry::ParameterValue;
use jostle_units::{FULL_PACKET_BYTES, FULL_PAYLOAD_BYTES, Rate, Span};

/// A path of 40 ms with a buffer of so many bandwidth-delay products.
fn path(mbps: u64, buffer_bdp: f64) -> Path {
    let mut path = Path::new(Rate::from_mbps(mbps), Span::from_ms(40), 0);
    path.buffer = (path.bdp() * buffer_bdp) as usize;
    path.ack_every = 2;
    path
}

fn transfer(path: Path) -> Transfer {
    Transfer::new(path, default_controller("bbr3"))
}

struct Wanted(&'static str, f64);

impl StateObserver for Wanted {
    fn record_value(&mut self, name: &'static str, value: f64) {
        if name == self.0 {
            self.1 = value;
        }
    }
}

/// `max_bw` as a share of what the bottleneck carries of payload.
fn max_bw(transfer: &Transfer) -> f64 {
    let mut bps = Wanted("bottleneck_bps", f64::NAN);
    transfer.controller.observe(&mut bps);
    let payload = f64::from(FULL_PAYLOAD_BYTES) / f64::from(FULL_PACKET_BYTES);
    bps.1 / (transfer.path.rate.as_bps() as f64 * payload)
}

/// Runs until `seconds` after time 0, and returns the modes in which the controller was.
fn modes_until(transfer: &mut Transfer, seconds: f64) -> Vec<&'static str> {
    let mut modes = vec![transfer.controller.mode()];
    while transfer.now.as_secs_f64() < seconds {
        transfer.step();
        if modes.last() != Some(&transfer.controller.mode()) {
            modes.push(transfer.controller.mode());
        }
    }
    modes
}

/// "the estimated bandwidth (BBR.max_bw) is close (i.e., within 2%) to the simulated bandwidth"
#[test]
fn a1_startup_ends_when_the_bandwidth_is_known() {
    let mut transfer = transfer(path(50, 3.0));
    while transfer.controller.mode() == "startup" {
        transfer.step();
    }
    assert_eq!(transfer.controller.mode(), "drain");
    let share = max_bw(&transfer);
    assert!((0.98..1.02).contains(&share), "{share}");
}

/// "Verify the connection skips entering PROBE_RTT because BBR.idle_restart is true"; nor does an
/// application that pauses ever let STARTUP end (A.7).
#[test]
fn a7_and_a11_pauses_neither_end_startup_nor_ask_for_probe_rtt() {
    let mut transfer = Transfer::of(20, path(50, 3.0), default_controller("bbr3"));
    for burst in 1..10 {
        let now_s = transfer.now.as_secs_f64();
        assert_eq!(modes_until_idle(&mut transfer), ["startup"], "burst {burst} at {now_s} s");
        transfer.run_until(now_s + 6.0);
        transfer.offer(20 * (burst + 1));
    }
}

fn modes_until_idle(transfer: &mut Transfer) -> Vec<&'static str> {
    let mut modes = vec![transfer.controller.mode()];
    while transfer.in_flight > 0 {
        transfer.step();
        if modes.last() != Some(&transfer.controller.mode()) {
            modes.push(transfer.controller.mode());
        }
    }
    modes
}

/// "upon exiting PROBE_RTT, the connection correctly transitions back to STARTUP"
#[test]
fn a20_probe_rtt_returns_to_a_startup_that_was_not_over() {
    let mut transfer = Transfer::of(40, path(50, 3.0), default_controller("bbr3"));
    let (mut offered, mut modes) = (40, vec!["startup"]);
    while transfer.now.as_secs_f64() < 12.0 {
        // Always a little to send: limited by the application, but never idle.
        if transfer.in_flight < 20 {
            offered += 2;
            transfer.offer(offered);
        }
        transfer.step();
        if modes.last() != Some(&transfer.controller.mode()) {
            modes.push(transfer.controller.mode());
        }
    }
    assert_eq!(modes, ["startup", "probe_rtt", "startup", "probe_rtt", "startup"]);
}

/// "Verify that BBR.MinPipeCwnd (4 packets) acts as a floor for C.cwnd. Ensure the pacing rate
/// correctly matches the low bandwidth"
#[test]
fn a14_a_path_of_less_than_a_packet_is_used() {
    let mut path = Path::new(Rate::from_bps(256_000), Span::from_ms(10), 20);
    path.ack_every = 2;
    assert!(path.bdp() < 0.3);
    let mut transfer = transfer(path);
    transfer.run_until(20.0);
    assert!(transfer.controller.cwnd() >= 4, "cwnd {}", transfer.controller.cwnd());
    let share = max_bw(&transfer);
    assert!((0.95..1.05).contains(&share), "max_bw {share}");
    let share = transfer.utilisation(20.0, 50.0);
    assert!(share > 0.95, "utilisation {share}");
}

/// "Ensure the connection discovers the full 100 Mbit/s bandwidth within a reasonable number of
/// round trips": a wait of 63 of them at most, and a probe that doubles the rate in three or four.
#[test]
fn a15_ten_times_the_bandwidth_is_found() {
    let mut transfer = transfer(path(10, 3.0));
    transfer.run_until(10.0);
    transfer.path.rate = Rate::from_mbps(100);
    transfer.path.buffer *= 10;
    let found = (0..).find(|second| {
        transfer.run_until(10.0 + f64::from(*second));
        max_bw(&transfer) > 0.98
    });
    assert!(found.unwrap() <= 5, "after {found:?} s");
    let share = transfer.utilisation(16.0, 30.0);
    assert!(share > 0.93, "utilisation {share}");
}

/// "Verify that BBR.bw_shortterm rapidly adapts downwards due to the resulting packet loss. Verify
/// that after the BBR.max_bw window expires (2 PROBE_BW cycles …), BBR.max_bw drops"
#[test]
fn a16_a_tenth_of_the_bandwidth_is_accepted() {
    let mut transfer = transfer(path(100, 0.5));
    transfer.run_until(12.0);
    let before = max_bw(&transfer) * transfer.path.rate.as_bps() as f64;
    transfer.path.rate = Rate::from_mbps(10);
    // Beta three times: a queue that takes five times the RTT leaves no more rounds in two seconds.
    let adapted = (1..=20).find(|tenth| {
        transfer.run_until(12.0 + 0.1 * f64::from(*tenth));
        let mut short = Wanted("bw_shortterm_bps", f64::NAN);
        transfer.controller.observe(&mut short);
        (1.0..0.35 * before).contains(&short.1)
    });
    assert!(adapted.is_some(), "no bw_shortterm below 0.35 of {before} bit/s");
    let modes = modes_until(&mut transfer, 22.0);
    assert!(modes.iter().filter(|mode| **mode == "probe_bw_up").count() >= 2, "{modes:?}");
    let share = max_bw(&transfer);
    assert!((0.9..1.1).contains(&share), "{share}");
    let share = transfer.utilisation(22.0, 40.0);
    assert!(share > 0.9, "utilisation {share}");
}

/// A.16 asks that after a fall of the bandwidth "`BBR.max_bw` drops to the new [...] limit, matching
/// the path's delivery rate" within two cycles of ProbeBW. It takes losses for granted. Where a buffer
/// takes all that is in flight, the round trip becomes so long that every probe is cut short by
/// ProbeRTT, nothing ages the bandwidth, and half of an inflated BDP drains no queue: the minimum RTT
/// learns the queue, and the window follows it. Both flavours do so; without ProbeRTT they would not.
#[test]
fn a16_in_a_buffer_that_takes_all_the_bandwidth_never_adapts_down() {
    for flavour in ["draft", "google"] {
        for probes_rtt in [true, false] {
            let mut path = path(16, 0.0);
            path.buffer = 10_000;
            let mut given = vec![("flavour", ParameterValue::Text(flavour.to_owned()))];
            if !probes_rtt {
                given.push(("probe_rtt_duration", ParameterValue::Integer(0)));
            }
            let mut transfer = Transfer::new(path, build("bbr3", &given, None));
            transfer.run_until(10.0);
            transfer.path.rate = Rate::from_mbps(2);
            transfer.run_until(60.0);
            let (share, queue) = (max_bw(&transfer), transfer.queue());
            if probes_rtt {
                assert!(share > 7.5, "{flavour}: {share} of what there is");
                assert!(queue > 1000, "{flavour}: {queue} packets queued");
            } else {
                assert!((0.9..1.2).contains(&share), "{flavour}: {share} of what there is");
            }
            assert_eq!(transfer.total_lost, 0);
        }
    }
}
