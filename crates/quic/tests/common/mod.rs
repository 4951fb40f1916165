//! Two ends over one link: a rate, a drop-tail queue, a delay, and a way back that only delays.
#![allow(dead_code, clippy::unwrap_used, reason = "each test uses what it needs, and may panic")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jostle_congestion::CongestionController;
use jostle_controllers::registry::{self, SlowStartChoice};
use jostle_quic::{Congestion, QuicEndpoint, SenderCounters, SenderObserver, Settings};
use jostle_units::{Ecn, RandomStream, Rate, Span, Time};

/// Ethernet, IPv4 and UDP.
const HEADER_BYTES: u64 = 14 + 20 + 8;

/// What the link does with a packet of the sender, counted from 0.
pub enum Fate {
    Pass,
    Drop,
    Mark,
    Delay(Span),
}

/// A controller of the registry with its usual slow start and its defaults.
pub fn controller(name: &str, seed: u64) -> Box<dyn CongestionController> {
    let row = registry::controller(name).unwrap();
    let own = match row.start {
        SlowStartChoice::Composed(own) => own,
        SlowStartChoice::BuiltIn => "standard",
    };
    let start = registry::slow_start(own).unwrap().create(&Default::default()).unwrap();
    row.create(&Default::default(), start, RandomStream::new(seed, "controller")).unwrap()
}

pub fn ours(name: &str) -> Congestion {
    Congestion::Ours(controller(name, 1))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    at: Time,
    number: u64,
    to_server: bool,
    ecn: u8,
    payload: Vec<u8>,
}

pub struct Link {
    pub rate: Rate,
    pub one_way: Span,
    pub queue_bytes: u64,
    /// ECN-capable packets are marked that find more than this in the queue.
    pub mark_above_bytes: u64,
    /// Datagrams that are larger do not pass.
    pub largest_bytes: usize,
    pub fate: Box<dyn FnMut(u64, Time) -> Fate>,
}

impl Link {
    /// `queue_bdp`: the queue in bandwidth-delay products.
    pub fn new(rate: Rate, rtt: Span, queue_bdp: f64) -> Self {
        let bdp = rate.bytes_in(rtt) as f64;
        let queue_bytes = (bdp * queue_bdp) as u64;
        let one_way = rtt.mul_div(1, 2);
        Self {
            rate,
            one_way,
            queue_bytes,
            mark_above_bytes: u64::MAX,
            largest_bytes: usize::MAX,
            fate: Box::new(|_, _| Fate::Pass),
        }
    }

    pub fn with(mut self, fate: impl FnMut(u64, Time) -> Fate + 'static) -> Self {
        self.fate = Box::new(fate);
        self
    }
}

/// The ends, the link between them, and what went over it.
pub struct World<O> {
    pub client: QuicEndpoint,
    pub server: QuicEndpoint,
    pub observer: O,
    pub now: Time,
    /// Bytes of streams that reached the application.
    pub delivered: u64,
    /// Packets of the client that were given to the link, and that it dropped.
    pub sent: u64,
    pub dropped: u64,
    pub acks: u64,
    /// Depends on every byte and time of every packet.
    pub digest: u64,
    /// When the client sent datagrams, and their sizes.
    pub departures: Vec<(Time, usize)>,
    link: Link,
    free_at: Time,
    flying: BinaryHeap<Reverse<Packet>>,
    number: u64,
    buffer: Vec<u8>,
}

const fn bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotCapable => 0,
        Ecn::L4s => 1,
        Ecn::Capable => 2,
        Ecn::Marked => 3,
    }
}

const fn field(bits: u8) -> Ecn {
    match bits {
        0 => Ecn::NotCapable,
        1 => Ecn::L4s,
        2 => Ecn::Capable,
        _ => Ecn::Marked,
    }
}

impl World<()> {
    pub fn new(settings: &Settings, congestion: Congestion, link: Link) -> Self {
        World::observed(settings, congestion, link, ())
    }
}

impl<O: SenderObserver> World<O> {
    pub fn observed(settings: &Settings, congestion: Congestion, link: Link, observer: O) -> Self {
        Self {
            client: QuicEndpoint::client(settings, 1, congestion).unwrap(),
            server: QuicEndpoint::server(settings, 2).unwrap(),
            observer,
            now: Time::ZERO,
            delivered: 0,
            sent: 0,
            dropped: 0,
            acks: 0,
            digest: 0,
            departures: Vec::new(),
            link,
            free_at: Time::ZERO,
            flying: BinaryHeap::new(),
            number: 0,
            buffer: Vec::new(),
        }
    }

    /// Opens the connection and writes.
    pub fn start(&mut self, bytes: Option<u64>) {
        self.client.supply(bytes);
        self.client.open(self.now).unwrap();
        self.flush();
    }

    fn flush(&mut self) {
        for to_server in [true, false] {
            let end = if to_server { &mut self.client } else { &mut self.server };
            while let Some(sent) = end.transmit(self.now, &mut self.buffer) {
                for datagram in sent.datagrams(&self.buffer) {
                    self.number += 1;
                    let mut packet = Packet {
                        at: self.now + self.link.one_way,
                        number: self.number,
                        to_server,
                        ecn: bits(sent.ecn),
                        payload: datagram.to_vec(),
                    };
                    if to_server {
                        self.departures.push((self.now, datagram.len()));
                        self.sent += 1;
                        let size = datagram.len() as u64 + HEADER_BYTES;
                        let begin = self.free_at.max(self.now);
                        let queued = self.link.rate.bytes_in(begin.since(self.now));
                        let mut fate = (self.link.fate)(self.sent - 1, self.now);
                        if datagram.len() > self.link.largest_bytes {
                            fate = Fate::Drop;
                        }
                        if queued + size > self.link.queue_bytes.max(2 * size) {
                            fate = Fate::Drop;
                        }
                        let marks = queued > self.link.mark_above_bytes && packet.ecn != 0;
                        if matches!(fate, Fate::Pass) && marks {
                            fate = Fate::Mark;
                        }
                        match fate {
                            Fate::Drop => {
                                self.dropped += 1;
                                continue;
                            }
                            Fate::Mark => packet.ecn = bits(Ecn::Marked),
                            Fate::Delay(span) => packet.at += span,
                            Fate::Pass => {}
                        }
                        self.free_at = begin + self.link.rate.time_for(size);
                        packet.at += self.free_at.since(self.now);
                    } else {
                        self.acks += 1;
                    }
                    self.flying.push(Reverse(packet));
                }
            }
        }
    }

    /// Runs until `end`, or until `done`.
    pub fn run(&mut self, end: Time, mut done: impl FnMut(&Self) -> bool) {
        let mut calls_at_now = 0;
        while !done(self) {
            let arrival = self.flying.peek().map_or(Time::NEVER, |packet| packet.0.at);
            let (client, server) = (self.client.next_time(), self.server.next_time());
            let next = arrival.min(client).min(server);
            if next > end {
                self.now = end;
                return;
            }
            calls_at_now = if next > self.now { 0 } else { calls_at_now + 1 };
            assert!(calls_at_now < 10_000, "no progress at {:?}", self.now);
            self.now = self.now.max(next);
            if arrival == next {
                let Reverse(packet) = self.flying.pop().unwrap();
                let byte = u64::from(packet.payload[packet.payload.len() / 2]);
                let length = packet.payload.len() as u64;
                self.digest = (self.digest ^ packet.at.as_ns() ^ length << 48 ^ byte)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .rotate_left(23);
                let ecn = field(packet.ecn);
                if packet.to_server {
                    self.server.receive(self.now, ecn, &packet.payload, &mut ());
                    self.delivered += self.server.take_delivered();
                } else {
                    self.client.receive(self.now, ecn, &packet.payload, &mut self.observer);
                }
            } else if client == next {
                self.client.on_time(self.now, &mut self.observer);
            } else {
                self.server.on_time(self.now, &mut ());
            }
            self.flush();
            assert_eq!(self.client.take_error(), None);
            assert_eq!(self.server.take_error(), None);
        }
    }

    /// The application has acted.
    pub fn kick(&mut self) {
        self.flush();
    }

    pub fn run_for(&mut self, span: Span) {
        let end = self.now + span;
        self.run(end, |_| false);
    }

    /// Transfers `bytes`: how long it took.
    pub fn transfer(&mut self, bytes: u64) -> Span {
        let begin = self.now;
        self.start(Some(bytes));
        self.run(begin + Span::from_secs(600), |world| world.client.is_drained());
        assert!(self.client.is_drained(), "{} of {bytes} bytes", self.delivered);
        self.now.since(begin)
    }

    pub fn counters(&self) -> SenderCounters {
        self.client.counters().unwrap()
    }
}
