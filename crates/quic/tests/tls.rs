//! TLS 1.3 in place of nothing: what it changes, and what it must not.

use crate::common::{Link, World, ours};
use jostle_quic::{Crypto, Handshake, Settings};
use jostle_units::{Rate, Span, Time};

const LABELS: [&str; 5] = [
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "EXPORTER_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_TRAFFIC_SECRET_0",
];

fn settings(crypto: Crypto) -> Settings {
    Settings { crypto, ..Settings::default() }
}

/// Enough for losses, on a queue of half a bandwidth-delay product.
fn run(crypto: Crypto) -> World<()> {
    let link = Link::new(Rate::from_mbps(20), Span::from_ms(40), 0.5);
    let mut world = World::new(&settings(crypto), ours("cubic"), link);
    world.transfer(3_000_000);
    world
}

#[test]
fn packets_leave_when_they_do_without_it_and_are_as_long() {
    let (plain, protected) = (run(Crypto::None), run(Crypto::Tls));
    assert!(plain.dropped > 0);
    assert_eq!(protected.departures, plain.departures);
    assert_eq!(protected.counters(), plain.counters());
    assert_ne!(protected.digest, plain.digest);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let (first, second) = (run(Crypto::Tls), run(Crypto::Tls));
    assert_eq!(first.digest, second.digest);
    assert_eq!(first.now, second.now);
}

#[test]
fn both_ends_write_the_same_secrets_down() {
    let mut world = run(Crypto::Tls);
    let mut lines: Vec<Vec<String>> = Vec::new();
    for end in [&mut world.client, &mut world.server] {
        let text = end.take_secrets().unwrap();
        let mut of_end: Vec<_> = text.lines().map(str::to_owned).collect();
        of_end.sort();
        lines.push(of_end);
        assert_eq!(end.take_secrets(), None);
    }
    assert_eq!(lines[0], lines[1]);
    let labels: Vec<_> = lines[0].iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(labels, LABELS);
    for line in &lines[0] {
        let words: Vec<_> = line.split(' ').collect();
        // A random of 32 bytes, a secret as long as SHA-384.
        assert_eq!((words.len(), words[1].len(), words[2].len()), (3, 64, 96));
        assert!(words[1..].iter().all(|word| word.bytes().all(|c| c.is_ascii_hexdigit())));
    }
    assert!(run(Crypto::None).server.take_secrets().is_none());
}

/// Initial packets are protected, too (RFC 9001 §5.2).
#[test]
fn what_was_changed_on_its_way_is_thrown_away() {
    let mut world = World::new(
        &settings(Crypto::Tls),
        ours("reno"),
        Link::new(Rate::from_mbps(20), Span::from_ms(40), 2.0),
    );
    world.client.supply(Some(10_000));
    world.client.open(Time::ZERO).unwrap();
    let mut buffer = Vec::new();
    let sent = world.client.transmit(Time::ZERO, &mut buffer).unwrap();
    buffer[700] ^= 1;
    for datagram in sent.datagrams(&buffer) {
        world.server.receive(Time::ZERO, sent.ecn, datagram, &mut ());
    }
    assert!(world.server.transmit(Time::ZERO, &mut Vec::new()).is_none());
    let error = world.server.take_error().unwrap().to_string();
    assert!(error.ends_with("authentication failed"), "{error}");
    // It is sent again, as it was.
    world.run(Time::ZERO + Span::from_secs(10), |world| world.client.is_drained());
    assert_eq!(world.delivered, 10_000);
}

#[test]
fn there_is_no_early_data() {
    let settings = Settings { handshake: Handshake::ZeroRtt, ..settings(Crypto::Tls) };
    let error = jostle_quic::QuicEndpoint::server(&settings, 1).err().unwrap();
    assert!(error.to_string().contains("0-RTT needs a session to resume"), "{error}");
}
