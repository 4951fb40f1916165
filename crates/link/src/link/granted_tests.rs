use super::tests::{Notes, packet, us};
use super::*;
use crate::capacity::Constant as Rated;
use crate::delay::Constant;
use crate::queue::{DropTail, QueueLimit};
use crate::{Contention, GrantParameters, Grants, RateBased};
use jostle_units::{RandomStream, Rate, Span};

/// A packet has 1250 bytes: 10,000 bits.
const PACKET_BITS: u64 = 10_000;

fn parameters() -> GrantParameters {
    GrantParameters {
        superframe: Span::from_ms(50),
        latency: Span::from_ms(600),
        request_interval: Span::from_ms(100),
        constant_bps: 0,
        rate_based: None,
        volume_based: false,
        free_bps: 0,
        quantum_bps: 1,
        most_bps: 4_000_000,
        contention: None,
        request_loss: 0.0,
        spread: false,
    }
}

fn rate_based(over_per_mille: u64) -> Option<RateBased> {
    let persistence = Span::from_ms(500);
    Some(RateBased { over_per_mille, gain_per_mille: 1_000, persistence })
}

fn link(parameters: GrantParameters) -> Link<u32> {
    let random = |name: &str| RandomStream::new(3, name);
    Link::new(
        Box::new(DropTail::new(QueueLimit::Packets(10_000))),
        Box::new(Rated::new(Rate::from_bps(parameters.most_bps))),
        Box::new(Constant::new(Span::ZERO)),
        vec![],
    )
    .with_grants(Grants::new(parameters, &random))
}

/// Sends packets at the times in ms. Returns the times of their exits in ms.
fn exits(parameters: GrantParameters, times_ms: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let (mut link, mut notes) = (link(parameters), Notes::default());
    let mut exits = Vec::new();
    let ms = |time: Time| time.as_ns() as f64 / 1e6;
    for (body, at_ms) in (0..).zip(times_ms) {
        let now = us((at_ms * 1e3) as u64);
        while link.next_time() <= now {
            let at = link.next_time();
            exits.extend(link.pop(at, &mut notes).map(|_| ms(at)));
        }
        link.push(now, packet(body), &mut notes);
    }
    while link.next_time() != Time::NEVER {
        let at = link.next_time();
        assert!(at < us(60_000_000), "it never ends");
        exits.extend(link.pop(at, &mut notes).map(|_| ms(at)));
    }
    assert_eq!((link.in_flight(), link.queue_packets()), (0, 0));
    exits
}

/// 200 kbit/s are 10,000 bits per superframe: one packet, sent in 2.5 ms at 4 Mbit/s.
#[test]
fn below_the_constant_rate_a_packet_waits_for_its_slot() {
    let constant = GrantParameters { constant_bps: 200_000, ..parameters() };
    assert_eq!(exits(constant, [10.0, 20.0, 30.0]), [52.5, 102.5, 152.5]);
    // Spread over the superframe the slots are a rate of 200 kbit/s.
    let spread = GrantParameters { spread: true, ..constant };
    assert_eq!(exits(spread, [10.0, 70.0, 75.0]), [60.0, 120.0, 170.0]);
    // Half a packet per superframe: it is sent in two fragments of 1.25 ms.
    let half = GrantParameters { constant_bps: 100_000, ..parameters() };
    assert_eq!(exits(half, [10.0]), [101.25]);
}

/// A step to 400 kbit/s, a packet each 25 ms from 1,010 ms on. The opportunity at 1,100 ms sees four
/// packets, 40,000 bits. With a factor of 1 it asks for 400 kbit/s, 20,000 bits per superframe, which
/// are there from 1,700 ms on. Until then 28 packets have come.
#[test]
fn a_step_of_the_input_rate_waits_for_one_loop() {
    let given = GrantParameters { rate_based: rate_based(1_000), ..parameters() };
    let sent: Vec<f64> = (0..400).map(|n| 1_010.0 + 25.0 * f64::from(n)).collect();
    let arrived = exits(given, sent.iter().copied());
    assert_eq!(arrived[..3], [1_702.5, 1_705.0, 1_752.5]);
    // Without over-estimation the backlog of the first loop stays: each request is for what is
    // granted, and it is for data that have come before it.
    let waits = |arrived: &[f64]| -> Vec<f64> {
        arrived.iter().zip(&sent).map(|(out, at)| out - at).collect()
    };
    assert!(waits(&arrived).iter().all(|wait| (600.0..=750.0).contains(wait)), "{arrived:?}");
    // With a quarter more, 28 packets of backlog drain in the time of 112 packets. Then each waits for
    // a superframe at most.
    let over = GrantParameters { rate_based: rate_based(1_250), ..parameters() };
    let waits = waits(&exits(over, sent.iter().copied()));
    assert!(waits[..20].iter().all(|wait| *wait > 500.0), "{waits:?}");
    assert!(waits[160..].iter().all(|wait| *wait <= 55.0), "{waits:?}");
}

/// 20 packets at 1,010 ms: 200,000 bits, as much as a superframe carries. The opportunity at 1,100 ms
/// asks for them, and no later one does. They are there at 1,700 ms.
#[test]
fn a_burst_gets_its_volume_after_one_loop() {
    let given = GrantParameters { volume_based: true, ..parameters() };
    let arrived = exits(given, vec![1_010.0; 20]);
    let expected: Vec<f64> = (1..=20).map(|n| 1_700.0 + 2.5 * f64::from(n)).collect();
    assert_eq!(arrived, expected);
    // With a volume and a rate the burst is asked for only once, too: as a rate.
    let both = GrantParameters { rate_based: rate_based(1_000), ..given };
    assert_eq!(exits(both, vec![1_010.0; 20]).len(), 20);
}

/// The input rate grows by `growth` per loop of 600 ms. A request is for a rate that is (factor − 1)
/// above the measured one, so that a slower growth leaves no backlog.
#[test]
fn a_ramp_is_followed_only_if_it_is_slower_than_the_over_estimation() {
    let last_wait = |growth: f64, over_per_mille| {
        let given = GrantParameters {
            rate_based: rate_based(over_per_mille),
            most_bps: 400_000_000,
            ..parameters()
        };
        let (mut at_ms, mut times) = (0.0, Vec::new());
        while at_ms < 12_000.0 {
            times.push(at_ms);
            let bps = 2e6 * libm::pow(1.0 + growth, at_ms / 600.0);
            at_ms += PACKET_BITS as f64 / bps * 1e3;
        }
        let arrived = exits(given, times.iter().copied());
        let tail = arrived.len() / 10;
        let waits = arrived.iter().zip(&times).rev().take(tail).map(|(out, at)| out - at);
        waits.sum::<f64>() / tail as f64
    };
    let (slow, fast) = (last_wait(0.05, 1_100), last_wait(0.30, 1_100));
    assert!(slow < 60.0 && fast > 100.0, "{slow} ms, {fast} ms");
    assert!(last_wait(0.30, 1_500) < 60.0);
}

#[test]
fn a_grant_expires_without_requests_and_free_capacity_does_not() {
    // The requests of the first second are for one packet each 100 ms. At 10 s nothing is left.
    let given = GrantParameters { rate_based: rate_based(1_100), ..parameters() };
    let times = (0..10).map(|n| 10.0 + 100.0 * f64::from(n));
    let arrived = exits(given, times.chain([10_010.0]));
    // The opportunity at 10,100 ms asks for 110 kbit/s. The slots at 10,700 ms carry 5,500 bits, and
    // those at 10,750 ms the other 4,500.
    assert_eq!(arrived.last(), Some(&10_751.125));
    let free = GrantParameters { free_bps: 4_000_000, ..parameters() };
    let wait = exits(free, [10_010.0])[0] - 10_010.0;
    assert!((40.0..=42.5).contains(&wait), "{wait} ms");
}

#[test]
fn contention_slots_carry_the_first_packet_unless_it_collides() {
    let contention = |collision| GrantParameters {
        rate_based: rate_based(1_100),
        contention: Some(Contention { bytes: 1_250, collision, backoff: 4 }),
        ..parameters()
    };
    assert_eq!(exits(contention(0.0), [10.0]), [52.5]);
    // With certain collisions, the request of 100 ms is what helps.
    assert_eq!(exits(contention(1.0), [10.0]), [751.125]);
}

#[test]
fn lost_requests_are_made_again() {
    let given =
        GrantParameters { rate_based: rate_based(1_000), request_loss: 1.0, ..parameters() };
    let (mut link, mut notes) = (link(given), Notes::default());
    link.push(us(10_000), packet(0), &mut notes);
    assert!(link.pop(us(5_000_000), &mut notes).is_none());
    assert_eq!(link.queue_packets(), 1);
    let half = GrantParameters { request_loss: 0.5, ..given };
    assert_eq!(exits(half, [10.0]).len(), 1);
}
