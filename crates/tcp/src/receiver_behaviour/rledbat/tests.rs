use std::collections::BTreeMap;

use jostle_controllers::registry;
use jostle_controllers::slow_start::Standard;
use jostle_units::RandomStream;

use super::*;
use crate::segment::test_support::{ack, data};

fn at_ms(ms: u64) -> Time {
    Time::from_ns(ms * 1_000_000)
}

/// A receiver that has answered a SYN at 0 ms, and the window that it offered.
fn greeted(most_bytes: u64) -> (Rledbat, u32) {
    let row = registry::controller("ledbat++").unwrap();
    let random = RandomStream::new(0, "unused");
    let controller = row.create(&BTreeMap::new(), Box::new(Standard), random).unwrap();
    let mut rledbat = Rledbat::new(controller, 1448, most_bytes);
    let mut window = 45;
    rledbat.on_syn(at_ms(0), &mut window);
    (rledbat, window)
}

/// A segment arrives `rtt_ms` after the ACK whose clock it echoes.
fn arrive(rledbat: &mut Rledbat, ms: u64, rtt_ms: u64, number: u32, tsval_ms: u32) {
    let tsecr_ms = timestamp_ms(at_ms(ms - rtt_ms));
    rledbat.see(at_ms(ms), &Data { tsecr_ms, ..data(number, 1448, tsval_ms, false) });
}

/// Eighteen segments over a path of 200 ms, where GAIN is 1: RLWND is 20.
fn grown() -> Rledbat {
    let (mut rledbat, _) = greeted(1 << 20);
    (0..18).for_each(|number| arrive(&mut rledbat, 200, 200, number, 50));
    assert_eq!(rledbat.controller.cwnd(), 20);
    rledbat
}

/// Window of an ACK of everything before `number`, from a receiver with room for 700 segments.
fn window(rledbat: &mut Rledbat, number: u32) -> u32 {
    let mut due = ack(number, 1, 700, false);
    rledbat.limit(&mut due);
    due.window
}

/// LEDBAT++, section 4.1: two packets at first, and GAIN more for each that has come. At 200 ms GAIN
/// is 1, at 5 ms a sixteenth.
#[test]
fn the_window_that_is_offered_grows_as_in_slow_start() {
    let (mut far, first) = greeted(1 << 20);
    assert_eq!(first, 2);
    arrive(&mut far, 200, 200, 0, 50);
    assert_eq!(window(&mut far, 1), 3);
    arrive(&mut far, 200, 200, 1, 50);
    assert_eq!(window(&mut far, 2), 4);
    let (mut near, _) = greeted(1 << 20);
    (0..15).for_each(|number| arrive(&mut near, 5, 5, number, 2));
    assert_eq!(window(&mut near, 15), 2);
    arrive(&mut near, 5, 5, 15, 2);
    assert_eq!(window(&mut near, 16), 3);
}

/// A buffer that holds less decides.
#[test]
fn the_smaller_of_both_windows_is_offered() {
    let mut rledbat = grown();
    let mut due = ack(18, 1, 7, false);
    rledbat.limit(&mut due);
    assert_eq!(due.window, 7);
    assert_eq!(window(&mut rledbat, 18), 20);
}

/// Section 4.3 at twice the target, a queue of 120 ms: half of RLWND in a round trip, which is one for
/// every second segment. What was offered stays offered.
#[test]
fn delay_closes_the_window_by_what_arrives() {
    let mut rledbat = grown();
    // Of four samples the least counts: three more grow it.
    for i in 0..3 {
        arrive(&mut rledbat, 600 + i, 320, 18 + i as u32, 300);
    }
    assert_eq!(window(&mut rledbat, 21), 23);
    arrive(&mut rledbat, 603, 320, 21, 300);
    assert_eq!(window(&mut rledbat, 22), 23);
    arrive(&mut rledbat, 604, 320, 22, 300);
    assert_eq!((rledbat.controller.cwnd(), window(&mut rledbat, 23)), (22, 22));
}

#[test]
fn a_retransmission_halves_the_window_once_in_a_round_trip() {
    let mut rledbat = grown();
    assert_eq!(window(&mut rledbat, 18), 20);
    arrive(&mut rledbat, 201, 200, 20, 60);
    arrive(&mut rledbat, 201, 200, 19, 60);
    assert_eq!(rledbat.controller.cwnd(), 22, "19 was overtaken");
    arrive(&mut rledbat, 202, 200, 18, 61);
    assert_eq!(rledbat.controller.cwnd(), 11);
    arrive(&mut rledbat, 203, 200, 17, 62);
    assert_eq!(rledbat.controller.cwnd(), 11, "of the same loss");
    // 38 was offered before.
    assert_eq!((window(&mut rledbat, 21), window(&mut rledbat, 28)), (17, 11));
    arrive(&mut rledbat, 403, 200, 16, 262);
    assert_eq!(rledbat.controller.cwnd(), 5);
}

/// The drafts ask for a shift count below 12, so that the unit is 2 kB at most, whatever the buffer.
#[test]
fn a_window_is_rounded_up_to_what_a_header_can_say() {
    for (most_bytes, of_three) in [(60_000_000, 3), (1 << 27, 4), (1 << 28, 4), (1 << 30, 4)] {
        let (mut rledbat, segments) = greeted(most_bytes);
        assert_eq!(segments, 2, "{most_bytes} bytes at most");
        rledbat.controller.set_cwnd(3);
        assert_eq!(window(&mut rledbat, 10), of_three, "{most_bytes} bytes at most");
    }
}

/// RFC 7323 §2.2: a header holds 65,535 units.
#[test]
fn no_more_is_offered_than_a_header_can_say() {
    let (mut rledbat, _) = greeted(1 << 30);
    rledbat.controller.set_cwnd(u32::MAX / 4096);
    let mut due = ack(0, 1, 700_000, false);
    rledbat.limit(&mut due);
    assert_eq!(due.window, 65_535 * 2048 / 1448);
}

#[test]
fn the_first_segment_that_echoes_a_clock_tells_the_rtt() {
    let (mut rledbat, _) = greeted(1 << 20);
    arrive(&mut rledbat, 200, 200, 0, 50);
    arrive(&mut rledbat, 290, 290, 1, 140);
    assert_eq!(rledbat.rtt.srtt(), Span::from_ms(200));
    arrive(&mut rledbat, 290, 210, 2, 140);
    assert_eq!(rledbat.measure(at_ms(290), timestamp_ms(at_ms(80))), None);
    assert_eq!(rledbat.rtt.srtt(), Span::from_ms(200), "the least of four counts");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut rledbat = grown();
    arrive(&mut rledbat, 600, 200, 18, 450);
    assert_eq!(rledbat.controller.cwnd(), 21, "eighteen came in the round trip before");
    arrive(&mut rledbat, 1_000, 200, 19, 850);
    assert_eq!(rledbat.controller.cwnd(), 21);
}

/// A sender that had nothing to send echoes an ACK from before its pause: that is none of the path's time.
#[test]
fn a_pause_of_the_sender_is_no_round_trip() {
    let mut rledbat = grown();
    (1..5).for_each(|i| arrive(&mut rledbat, 200 + i, 200, 17 + i as u32, 50 + i as u32));
    let before = rledbat.rtt.srtt();
    arrive(&mut rledbat, 4_000, 3_700, 22, 3_850);
    assert_eq!(rledbat.rtt.srtt(), before);
}

/// draft-bagnulo-iccrg-rledbat: nothing changes until the reduction has had its round trip.
#[test]
fn a_window_that_was_just_halved_is_left_alone() {
    let mut rledbat = grown();
    arrive(&mut rledbat, 201, 200, 20, 60);
    arrive(&mut rledbat, 202, 200, 18, 61);
    assert_eq!(rledbat.controller.cwnd(), 10);
    (21..40).for_each(|number| arrive(&mut rledbat, 300, 200, number, 160));
    assert_eq!(rledbat.controller.cwnd(), 10);
}

#[test]
fn a_probe_of_the_tail_is_no_loss() {
    let mut rledbat = grown();
    arrive(&mut rledbat, 700, 200, 17, 560);
    assert!(rledbat.controller.cwnd() >= 20);
}

#[test]
fn an_echo_that_was_overtaken_counts_no_more() {
    let mut rledbat = grown();
    arrive(&mut rledbat, 300, 200, 18, 150);
    assert_eq!(rledbat.measure(at_ms(301), timestamp_ms(at_ms(50))), None);
    assert_eq!(rledbat.measure(at_ms(301), timestamp_ms(at_ms(100))), None);
    assert_eq!(rledbat.measure(at_ms(301), timestamp_ms(at_ms(101))), Some(Span::from_ms(200)));
}
