use alloc::collections::BTreeMap;

use jostle_registry::ParameterValue;
use jostle_units::{RandomStream, Rate, Span, Time};

use crate::registry;
use crate::test_support::ack;
use jostle_congestion::peer_cache::{PeerCache, PeerCacheContext};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, EstablishedEvent, SendEvent,
};

const RTT: Span = Span::from_ms(100);
const MSS: u64 = 1448;

fn on(name: &str, parameters: &[(&str, ParameterValue)]) -> Box<dyn CongestionController> {
    let none = BTreeMap::new();
    let start = registry::slow_start("standard").unwrap().create(&none).unwrap();
    let row = registry::controller(name).unwrap();
    let inner = row.create(&none, start, RandomStream::new(1, "test")).unwrap();
    let given = parameters.iter().map(|(name, value)| (name.to_string(), value.clone()));
    registry::memory("careful-resume").unwrap().create(&given.collect(), inner).unwrap()
}

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn open(controller: &mut dyn CongestionController, memory: &mut PeerCache, now: Time) {
    controller.host_extension().unwrap().on_connection_open(&mut PeerCacheContext {
        now,
        peer: 7,
        memory,
    });
    controller.on_established(&EstablishedEvent {
        now,
        mss_bytes: MSS as u32,
        initial_window: 10,
        rtt: Some(RTT),
        prospect: Default::default(),
    });
}

fn close(controller: &mut dyn CongestionController, memory: &mut PeerCache, now: Time) {
    controller.host_extension().unwrap().on_connection_close(&mut PeerCacheContext {
        now,
        peer: 7,
        memory,
    });
}

/// A connection that has `window` packets acknowledged in a round trip, ten times over.
fn remember(memory: &mut PeerCache, window: u64, now: Time) {
    let mut first = on("reno", &[]);
    open(first.as_mut(), memory, now);
    assert_eq!(first.mode(), "slow_start", "nothing is saved: nothing to confirm");
    for round in 1..=10 {
        let (delivered, next) = (round * window, (round + 1) * window);
        let sample = AckSample {
            now: now + RTT.mul_div(round, 1),
            rtt: Some(RTT),
            min_rtt: RTT,
            next_to_send: next,
            can_increase_cwnd: false,
            ..ack(delivered)
        };
        first.on_ack(&sample);
    }
    close(first.as_mut(), memory, now + Span::from_secs(2));
}

/// The ACK of packet number `delivered` with `in_flight` behind it.
fn acked(delivered: u64, in_flight: u32) -> AckSample {
    AckSample {
        now: at_ms(5_000) + Span::from_us(delivered),
        rtt: Some(RTT),
        srtt: RTT,
        min_rtt: RTT,
        in_flight,
        next_to_send: delivered + u64::from(in_flight),
        ..ack(delivered)
    }
}

fn sent(next_to_send: u64, prior_in_flight: u32, packets: u32) -> SendEvent {
    SendEvent {
        now: at_ms(5_010),
        packets,
        total_sent: next_to_send,
        next_to_send,
        prior_in_flight,
        after_idle: false,
    }
}

fn lost(next_to_send: u64, signal: CongestionSignal) -> CongestionEvent {
    CongestionEvent { now: at_ms(5_150), signal, in_flight: 50, next_to_send }
}

/// A second connection with `saved` packets of memory, at the ACK that confirms the path: 29 packets
/// in flight, as in RFC 9959 §B.
fn resumed(
    saved: u64,
    name: &str,
    parameters: &[(&str, ParameterValue)],
) -> (Box<dyn CongestionController>, PeerCache) {
    let mut memory = PeerCache::default();
    remember(&mut memory, saved, at_ms(0));
    let mut second = on(name, parameters);
    open(second.as_mut(), &mut memory, at_ms(5_000));
    assert_eq!((second.cwnd(), second.mode()), (10, "reconnaissance"), "no jump before an ACK");
    second.on_ack(&acked(9, 20));
    assert_eq!(second.mode(), "reconnaissance", "not all of the initial data is acknowledged");
    second.on_ack(&acked(10, 29));
    (second, memory)
}

/// "The sender initialises the PipeSize to the flight_size (in this case, 29 packets) and then sets
/// the CWND to 150 packets (based upon half of the previously observed saved_cwnd of 300 packets)."
#[test]
fn appendix_b_without_loss() {
    let (mut second, mut memory) = resumed(300, "reno", &[]);
    assert_eq!((second.cwnd(), second.mode()), (150, "unvalidated"));
    assert_eq!(second.pacing_rate(), Some(Rate::of(150 * MSS, RTT)), "ITT = RTT x MPS / jump_cwnd");
    second.on_ack(&acked(11, 60));
    assert_eq!(second.cwnd(), 150, "not increased");
    // Packets 0 to 9 are acknowledged, 29 were in flight: 39 is the first unvalidated one.
    second.on_send(&sent(161, 140, 10));
    assert_eq!((second.cwnd(), second.mode(), second.pacing_rate()), (150, "validating", None));
    second.on_ack(&acked(100, 70));
    assert_eq!((second.cwnd(), second.mode()), (151, "validating"), "normal rules");
    second.on_ack(&acked(161, 70));
    assert_eq!(second.mode(), "slow_start");
    // What was in use comes back, since too little was observed afterwards.
    close(second.as_mut(), &mut memory, at_ms(9_000));
    let mut third = on("reno", &[]);
    open(third.as_mut(), &mut memory, at_ms(9_500));
    assert_eq!(third.mode(), "reconnaissance");
}

/// "It then enters the Validating Phase and resets the CWND to the current flight_size, (i.e., 50
/// packets)"; with a flight within the PipeSize it is done.
#[test]
fn a_rate_limited_sender_keeps_what_it_used() {
    let (mut second, _) = resumed(300, "reno", &[]);
    second.on_ack(&AckSample { next_to_send: 89, ..acked(40, 50) });
    assert_eq!((second.cwnd(), second.mode()), (50, "validating"), "packet 39 is acknowledged");
    let (mut second, _) = resumed(300, "reno", &[]);
    second.on_ack(&acked(40, 20));
    assert_eq!((second.cwnd(), second.mode()), (30, "slow_start"), "29 and one validated");
    let (mut second, _) = resumed(300, "reno", &[]);
    second.on_ack(&AckSample { now: at_ms(5_101), ..acked(12, 45) });
    assert_eq!((second.cwnd(), second.mode()), (45, "validating"), "more than an RTT has elapsed");
}

/// "The PipeSize at this point is equal to 63 (29 + 34) packets … the CWND is reset to … 31"; then
/// ssthresh is no more than PipeSize * Beta.
#[test]
fn appendix_b_with_a_loss() {
    for (signal, beta) in [(CongestionSignal::Loss, 0.5), (CongestionSignal::Ecn, 0.7)] {
        let (mut second, mut memory) =
            resumed(300, "reno", &[("beta", ParameterValue::Number(beta))]);
        second.on_send(&sent(160, 140, 10));
        // 10 before, 29 in flight on entry, 34 unvalidated.
        second.on_ack(&acked(73, 87));
        second.on_congestion_event(&lost(160, signal));
        assert_eq!((second.cwnd(), second.mode()), (31, "safe_retreat"));
        second.set_cwnd(70);
        assert_eq!(second.cwnd(), 31, "PRR does not raise it");
        second.on_ack(&AckSample { first_unacked: 73, ..acked(159, 0) });
        assert_eq!((second.cwnd(), second.mode()), (31, "safe_retreat"));
        second.on_ack(&AckSample { can_increase_cwnd: false, ..acked(160, 0) });
        // 29 + 121 acknowledged; the transport's own reduction may have left less.
        let bound = (150.0 * beta) as u32;
        assert!(second.ssthresh().unwrap() <= bound, "{:?} > {bound}", second.ssthresh());
        assert_ne!(second.mode(), "safe_retreat");
        close(second.as_mut(), &mut memory, at_ms(9_000));
        let mut third = on("reno", &[]);
        open(third.as_mut(), &mut memory, at_ms(9_500));
        assert_ne!(third.mode(), "reconnaissance", "the saved parameters are deleted");
    }
}

#[test]
fn what_does_not_confirm_the_path_ends_it() {
    let half = RTT.mul_div(1, 2);
    let long = RTT.mul_div(10, 1) + Span::from_ns(1);
    let cases: [(&str, AckSample); 5] = [
        ("rtt_not_validated", AckSample { min_rtt: half, ..acked(10, 29) }),
        ("path_changed", AckSample { rtt: Some(long), ..acked(10, 29) }),
        ("packet_loss", AckSample { lost: 1, ..acked(10, 29) }),
        ("ECN_CE", AckSample { ce_marked: 1, ..acked(10, 29) }),
        ("nothing to gain", AckSample { next_to_send: 40, ..acked(10, 29) }),
    ];
    for (why, sample) in cases {
        let mut memory = PeerCache::default();
        remember(&mut memory, 300, at_ms(0));
        let parameters =
            [("max_jump", ParameterValue::Integer(if why == "nothing to gain" { 8 } else { 0 }))];
        let mut second = on("reno", &parameters);
        open(second.as_mut(), &mut memory, at_ms(5_000));
        second.on_ack(&sample);
        assert_eq!((second.cwnd(), second.mode()), (11, "slow_start"), "{why}");
    }
}

#[test]
fn it_waits_for_data_and_ends_with_a_timeout() {
    let mut memory = PeerCache::default();
    remember(&mut memory, 300, at_ms(0));
    let mut second = on("reno", &[]);
    open(second.as_mut(), &mut memory, at_ms(5_000));
    second.on_ack(&AckSample { cwnd_limited: false, ..acked(10, 5) });
    assert_eq!(second.mode(), "reconnaissance");
    second.on_ack(&acked(20, 29));
    assert_eq!(second.mode(), "unvalidated");
    second.on_congestion_event(&lost(160, CongestionSignal::Timeout));
    assert_ne!(second.mode(), "safe_retreat");
    assert_eq!(second.pacing_rate(), None);
}

/// "Only one connection can use a specific set of saved CC parameters", and for a Lifetime.
#[test]
fn a_set_is_used_by_one_connection_and_not_for_ever() {
    let mut memory = PeerCache::default();
    remember(&mut memory, 300, at_ms(0));
    let (mut second, mut third) = (on("reno", &[]), on("reno", &[]));
    open(second.as_mut(), &mut memory, at_ms(5_000));
    open(third.as_mut(), &mut memory, at_ms(5_000));
    assert_eq!((second.mode(), third.mode()), ("reconnaissance", "slow_start"));
    close(second.as_mut(), &mut memory, at_ms(6_000));
    let lifetime = [("lifetime", ParameterValue::Integer(10_000_000_000))];
    // Saved at 2 s: using it at 6 s did not make it younger.
    for (at, mode) in [(12_000, "reconnaissance"), (12_001, "slow_start")] {
        let mut later = on("reno", &lifetime);
        open(later.as_mut(), &mut memory, at_ms(at));
        assert_eq!(later.mode(), mode, "at {at} ms");
        close(later.as_mut(), &mut memory, at_ms(at));
    }
}

#[test]
fn a_small_window_is_not_saved() {
    for (window, mode) in [(39, "slow_start"), (40, "reconnaissance")] {
        let mut memory = PeerCache::default();
        remember(&mut memory, window, at_ms(0));
        let mut second = on("reno", &[]);
        open(second.as_mut(), &mut memory, at_ms(5_000));
        assert_eq!(second.mode(), mode, "{window} packets");
    }
}

/// RFC 9959 §C: the rate of STARTUP has a floor, for two rounds.
#[test]
fn bbr_has_a_floor_for_two_rounds() {
    let (mut second, _) = resumed(300, "bbr", &[]);
    let floor = Rate::of(150 * MSS, RTT);
    assert_eq!((second.cwnd(), second.mode()), (300, "unvalidated"));
    assert!(second.pacing_rate().unwrap() >= floor);
    second.on_ack(&acked(60, 150));
    assert_eq!(second.mode(), "unvalidated", "a round");
    second.on_ack(&acked(211, 150));
    second.on_ack(&acked(362, 150));
    assert_eq!(second.mode(), "startup", "two rounds");
    let (mut second, _) = resumed(300, "bbr", &[]);
    second.on_congestion_event(&lost(160, CongestionSignal::Loss));
    assert_eq!((second.cwnd(), second.mode()), (11, "safe_retreat"), "its own, below half of 29");
}
