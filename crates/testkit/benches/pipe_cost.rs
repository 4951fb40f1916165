//! What the network costs: a transfer through the kit and through a pipe in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, dead_code)] // As in the tests, whose endpoint it uses.

use std::fs;
use std::time::{Duration, Instant};

use jostle_testkit::{
    CLIENT, Datagram, Endpoint, Link, PacketLimit, Rate, SERVER, Span, Time, simulate,
};

use quinn_stack::host::{QuicEndpoint, transport};

#[path = "../tests/quinn_stack.rs"]
mod quinn_stack;

const BYTES: u64 = 100_000_000;

/// Eight BDPs of the link below. quinn searches its send buffer for each packet: with 64 MB in
/// flight, which the pipe never has, quinn itself costs 1.4 times as much.
const WINDOW_BYTES: u64 = 1 << 20;

fn endpoints() -> (QuicEndpoint, QuicEndpoint) {
    let mut sending = transport();
    sending.send_window(WINDOW_BYTES);
    let mut client = QuicEndpoint::client(1, sending, SERVER);
    client.send(BYTES);
    (client, QuicEndpoint::server(1, transport()))
}

/// Ends of a pipe.
struct Pipe {
    client: QuicEndpoint,
    server: QuicEndpoint,
    now: Time,
    /// Whether the receiver answers each datagram before the next one, as behind a link, and not
    /// each burst of the sender.
    answers_each: bool,
}

impl Pipe {
    /// Moves all datagrams of the client, or of the server, to the other. Returns whether there were
    /// any.
    fn forward(&mut self, is_client: bool) -> bool {
        let mut buffer = Vec::new();
        let mut moved = false;
        let (source, destination) = if is_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let now = self.now;
        loop {
            let (from, to) = if is_client {
                (&mut self.client, &mut self.server)
            } else {
                (&mut self.server, &mut self.client)
            };
            let Some(transmit) = from.poll_transmit(now, &mut buffer) else { return moved };
            moved = true;
            let segment_bytes = transmit.segment_bytes.unwrap_or(buffer.len());
            let datagrams = buffer.chunks(segment_bytes).map(|payload| Datagram {
                source,
                destination,
                ecn: transmit.ecn,
                payload,
            });
            if !self.answers_each {
                datagrams.for_each(|datagram| to.handle(now, &datagram));
            } else {
                for datagram in datagrams {
                    let to = if is_client { &mut self.server } else { &mut self.client };
                    to.handle(now, &datagram);
                    // Answers of the client are its data, which come later.
                    if is_client {
                        self.forward(false);
                    }
                }
            }
            buffer.clear();
        }
    }
}

fn through_a_pipe(answers_each: bool) {
    let (client, server) = endpoints();
    let mut pipe = Pipe { client, server, now: Time::ZERO, answers_each };
    while pipe.server.received.is_empty() {
        let (there, back) = (pipe.forward(true), pipe.forward(false));
        if !there && !back {
            let deadlines = [pipe.client.deadline(), pipe.server.deadline()];
            pipe.now = deadlines.into_iter().flatten().min().unwrap().max(pipe.now);
            pipe.client.on_deadline(pipe.now);
            pipe.server.on_deadline(pipe.now);
        }
    }
}

fn through_the_kit() {
    let link = Link::new(Rate::from_mbps(10_000), Span::from_us(50));
    let link = link.queue(PacketLimit::Packets(2_000));
    let is_complete = |_: &_, server: &QuicEndpoint| !server.received.is_empty();
    simulate(link, 1, endpoints(), Span::from_secs(100), is_complete).unwrap();
}

/// CPU time of this thread in Linux, which other processes change little. Elsewhere, the time.
fn cpu_time(start: Instant) -> Duration {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = statistics.and_then(|text| text.split(' ').next()?.parse().ok());
    ns.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// Shortest of ten runs each, which alternate.
#[expect(clippy::disallowed_methods, reason = "the cost in real time is measured")]
fn costs<const N: usize>(runs: [fn(); N]) -> [Duration; N] {
    let start = Instant::now();
    let mut shortest = [Duration::MAX; N];
    for _ in 0..10 {
        for (run, shortest) in runs.iter().zip(&mut shortest) {
            let before = cpu_time(start);
            run();
            *shortest = cpu_time(start).saturating_sub(before).min(*shortest);
        }
    }
    shortest
}

fn main() {
    let runs = [|| through_a_pipe(true), || through_a_pipe(false), through_the_kit];
    let [pipe, bursts, kit] = costs(runs);
    let ratio = |pipe: Duration| kit.as_secs_f64() / pipe.as_secs_f64();
    println!("CPU time of 100 MB: {kit:.2?} through the kit");
    println!("{pipe:.2?} through a pipe, datagram by datagram: {:.2} (goal: 1.5)", ratio(pipe));
    println!("{bursts:.2?} through a pipe, ten datagrams at once: {:.2}", ratio(bursts));
}
