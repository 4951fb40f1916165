//! Start-ups that send more than the initial window in the first round trips, on the harness.

use crate::common::{Path, Transfer, build};
use jostle_units::{Rate, Span};

fn finish_s(start: &str, packets: u64, path: Path) -> (f64, u64) {
    let mut transfer = Transfer::of(packets, path, build("cubic", &[], Some(start)));
    while transfer.delivered() < packets {
        transfer.step();
    }
    (transfer.now.as_secs_f64(), transfer.total_lost)
}

/// algorithms.md: 100 packets over an RTT of 100 ms and infinite capacity: a handshake, a round trip
/// of sending, half of one for the last packet to arrive, and here another half for its ACK. The
/// last packet leaves a hundredth of a round trip before the end of the second.
#[test]
fn a_jump_takes_two_and_a_half_round_trips() {
    let path = Path::new(Rate::from_mbps(1_000_000), Span::from_ms(100), usize::MAX);
    let (took_s, _) = finish_s("jumpstart", 100, path);
    assert!((took_s - 0.299).abs() < 1e-3, "{took_s} s until the last ACK");
    // Slow start needs 10, 20, 40 and 30 packets.
    let (slow_s, _) = finish_s("standard", 100, path);
    assert!((slow_s - 0.500).abs() < 1e-3, "{slow_s} s");
}

/// A jump far beyond what the path holds: 1,000 packets into 10 Mbit/s, 40 ms and a buffer of 33.
#[test]
fn a_failed_jump_ends_with_half_of_what_got_through() {
    let path = Path::new(Rate::from_mbps(10), Span::from_ms(40), 33);
    let mut transfer = Transfer::of(1_000, path, build("reno", &[], Some("jumpstart")));
    // The harness sends copies of lost packets as new ones.
    transfer.offer(u64::MAX);
    while transfer.recoveries == 0 {
        transfer.step();
    }
    while transfer.state != jostle_congestion::RecoveryState::Open {
        transfer.step();
    }
    let got_through = 1_000 - transfer.total_lost;
    let cwnd = u64::from(transfer.controller.cwnd());
    assert!(transfer.total_lost > 800, "{} lost", transfer.total_lost);
    assert!(cwnd.abs_diff(got_through / 2) <= 2, "{cwnd}, {got_through} got through");
}

/// algorithms.md: 1 MB at 50 Mbit/s and 100 ms: at least a round trip saved, no loss.
#[test]
fn suss_saves_a_round_trip() {
    let path = Path::new(Rate::from_mbps(50), Span::from_ms(100), 413);
    let (hystart_s, hystart_lost) = finish_s("hystart", 691, path);
    let (suss_s, suss_lost) = finish_s("suss", 691, path);
    assert!(suss_s < hystart_s - 0.100, "{suss_s} s against {hystart_s} s");
    assert_eq!((hystart_lost, suss_lost), (0, 0));
}

/// "r < 5", and a round whose fourfold window would not fit is not taken: 10, 40, 160 packets, then
/// twice that, for a fourth quadrupling would be 640 of a BDP of 413.
#[test]
fn suss_quadruples_while_there_is_room() {
    let path = Path::new(Rate::from_mbps(50), Span::from_ms(100), 10_000);
    let mut transfer = Transfer::new(path, build("cubic", &[], Some("suss")));
    let mut windows = Vec::new();
    let mut round = transfer.rounds;
    while windows.len() < 4 {
        transfer.step();
        if transfer.rounds != round {
            // The sender has answered the first ACK of the next round already.
            windows.push(transfer.in_flight - 1);
            round = transfer.rounds;
        }
    }
    assert_eq!(windows[0], 10);
    for (window, expected) in windows[1..].iter().zip([40u32, 160, 320]) {
        assert!(window.abs_diff(expected) <= expected / 20, "{windows:?}");
    }
}

/// Round trips of no more than 10 ms are left alone.
#[test]
fn suss_leaves_short_paths_alone() {
    let path = Path::new(Rate::from_mbps(1_000), Span::from_us(9_900), 10_000);
    let (hystart_s, _) = finish_s("hystart", 691, path);
    let (suss_s, _) = finish_s("suss", 691, path);
    assert!((suss_s - hystart_s).abs() < 1e-4, "{suss_s} s and {hystart_s} s");
}
