//! What the network costs: a transfer through the kit and through a pipe in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, dead_code)] // As in the tests, whose endpoint it uses.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use jostle_testkit::{
    CLIENT, Datagram, Endpoint, Link, PacketLimit, Rate, SERVER, Span, Time, simulate,
};

use quinn_stack::host::{QuicEndpoint, transport};

#[path = "../tests/quinn_stack.rs"]
mod quinn_stack;

const BYTES: u64 = 100_000_000;

fn endpoints() -> (QuicEndpoint, QuicEndpoint) {
    let mut client = QuicEndpoint::client(1, transport(), SERVER);
    client.send(BYTES);
    (client, QuicEndpoint::server(1, transport()))
}

/// Moves all datagrams of one endpoint to the other. Returns whether there were any.
fn forward(
    now: Time,
    from: (&mut QuicEndpoint, SocketAddr),
    to: (&mut QuicEndpoint, SocketAddr),
) -> bool {
    let mut buffer = Vec::new();
    let mut moved = false;
    while let Some(transmit) = from.0.poll_transmit(now, &mut buffer) {
        let segment_bytes = transmit.segment_bytes.unwrap_or(buffer.len());
        for payload in buffer.chunks(segment_bytes) {
            let (source, destination) = (from.1, to.1);
            to.0.handle(now, &Datagram { source, destination, ecn: transmit.ecn, payload });
        }
        buffer.clear();
        moved = true;
    }
    moved
}

fn through_a_pipe() {
    let (mut client, mut server) = endpoints();
    let mut now = Time::ZERO;
    while server.received.is_empty() {
        let there = forward(now, (&mut client, CLIENT), (&mut server, SERVER));
        let back = forward(now, (&mut server, SERVER), (&mut client, CLIENT));
        if !there && !back {
            let deadlines = [client.deadline(), server.deadline()];
            now = deadlines.into_iter().flatten().min().unwrap().max(now);
            client.on_deadline(now);
            server.on_deadline(now);
        }
    }
}

fn through_the_kit() {
    let link = Link::new(Rate::from_mbps(10_000), Span::from_us(50));
    let link = link.queue(PacketLimit::Packets(100_000));
    let is_complete = |_: &_, server: &QuicEndpoint| !server.received.is_empty();
    simulate(link, 1, endpoints(), Span::from_secs(100), is_complete).unwrap();
}

/// Shortest of three runs.
#[expect(clippy::disallowed_methods, reason = "the cost in real time is measured")]
fn cost(run: fn()) -> Duration {
    let once = || {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap()
}

fn main() {
    let (pipe, kit) = (cost(through_a_pipe), cost(through_the_kit));
    let ratio = kit.as_secs_f64() / pipe.as_secs_f64();
    println!(
        "100 MB: {pipe:.2?} through a pipe, {kit:.2?} through the kit: {ratio:.2} (goal: 1.5)"
    );
}
