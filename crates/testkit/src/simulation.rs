//! The event loop: hosts, directions and virtual time.

use std::fmt;
use std::io::{self, Write};
use std::net::IpAddr;
use std::ops::{Index, IndexMut};

use jostle_forwarding::{
    Departure, Direction, Header, PacketCount, PacketPool, Shared, size_bytes,
};
use jostle_metrics::Histogram;
use jostle_pcap::HostCapture;
use jostle_units::{Span, Time};
use thiserror::Error;

use crate::host_log::HostLog;
use crate::measures::DirectionMeasures;
use crate::{Host, Measures, Network, NetworkError};

/// Calls of a host at one time after which it is considered to be in an endless loop.
const CALLS_MAX: u32 = 1_000_000;

/// Side of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Packets of these hosts cross the forward links.
    Left,
    /// Packets of these hosts cross the reverse links.
    Right,
}

/// Number of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(usize);

/// Packets of a host, Ethernet headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Packets that the host sent, also those that were dropped before the first link.
    pub sent: PacketCount,
    /// Packets that the host received.
    pub received: PacketCount,
    /// Packets that were dropped on arrival because a link had corrupted them.
    pub corrupted: PacketCount,
}

/// Reason why a simulation ended before its condition was met.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum Unfinished {
    /// The time limit was reached.
    #[error("the condition was not met by {0}")]
    TimeLimit(Time),
    /// No packet is in transit, and no host has a deadline: nothing can happen any more.
    #[error("nothing can happen after {0}: no packet is in transit and no host has a deadline")]
    Idle(Time),
    /// A host sends without end, or its deadline does not move after it has passed.
    #[error("host {} was called {CALLS_MAX} times at {at}: it sends without end, or its deadline does not move", host.0)]
    EndlessLoop {
        /// Time.
        at: Time,
        /// Host.
        host: HostId,
    },
}

/// As its text, so that `unwrap` prints a readable message.
impl fmt::Debug for Unfinished {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

struct Station<H> {
    host: H,
    side: Side,
    counts: HostCounts,
    capture: Option<HostCapture<Box<dyn Write>>>,
    log: Option<HostLog>,
    deadline: Time,
    /// Whether the host may have something to send or another deadline.
    is_changed: bool,
    /// Calls without progress of time.
    calls: u32,
}

/// Hosts, the network between them, and virtual time.
///
/// A host is accessed by indexing with its [`HostId`]. Mutable access lets it send at once: the next
/// call that moves the time polls it first.
pub struct Simulation<H> {
    now: Time,
    directions: [Direction; 2],
    delays_ns: [Histogram; 2],
    too_large: [u64; 2],
    unroutable: [u64; 2],
    shared: Shared,
    stations: Vec<Station<H>>,
    mtu_bytes: usize,
    /// Reusable buffer for the packet that a host sends.
    packet: Vec<u8>,
    /// First error of a file.
    file_error: Option<io::Error>,
}

impl<H: Host> Simulation<H> {
    /// Creates a simulation without hosts at time 0. The seed determines all random events of the
    /// network.
    ///
    /// # Errors
    /// If the network is invalid.
    pub fn new(network: &Network, seed: u64) -> Result<Self, NetworkError> {
        network.validate()?;
        let mtu_bytes = usize::from(network.mtu_bytes);
        Ok(Self {
            now: Time::ZERO,
            directions: [
                Direction::new(0, &network.forward, seed)?,
                Direction::new(1, &network.reverse, seed)?,
            ],
            delays_ns: Default::default(),
            too_large: [0; 2],
            unroutable: [0; 2],
            // The queues of the links limit the memory.
            shared: Shared { slots: PacketPool::new(mtu_bytes, usize::MAX), journal: None },
            stations: Vec::new(),
            mtu_bytes,
            packet: Vec::new(),
            file_error: None,
        })
    }

    /// Adds a host.
    pub fn add(&mut self, side: Side, host: H) -> HostId {
        self.stations.push(Station {
            host,
            side,
            counts: HostCounts::default(),
            capture: None,
            log: None,
            deadline: Time::NEVER,
            is_changed: true,
            calls: 0,
        });
        HostId(self.stations.len() - 1)
    }

    /// Ends the simulation and returns its hosts, in the order in which they were added.
    pub fn into_hosts(self) -> impl Iterator<Item = H> {
        self.stations.into_iter().map(|station| station.host)
    }

    /// Returns the time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Returns a host for a look that changes nothing it would send, such as its statistics. Unlike
    /// indexing, it does not poll the host, which would cost time in the condition of
    /// [`run_until`](Self::run_until).
    pub fn peek_mut(&mut self, host: HostId) -> &mut H {
        &mut self.stations[host.0].host
    }

    /// Writes all packets that a host sends and receives from now on to a pcapng file.
    ///
    /// # Errors
    /// If `out` cannot be written. Later errors are returned by
    /// [`finish_files`](Self::finish_files).
    pub fn capture(
        &mut self,
        host: HostId,
        name: &str,
        address: IpAddr,
        out: impl Write + 'static,
    ) -> io::Result<()> {
        let out: Box<dyn Write> = Box::new(out);
        let capture = HostCapture::begin(out, name, address, "time 0 is the start")?;
        self.stations[host.0].capture = Some(capture);
        Ok(())
    }

    /// Adds TLS secrets to the capture of a host, lines in the format of `SSLKEYLOGFILE`, which
    /// decrypt later packets.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_secrets(&mut self, host: HostId, lines: &str) -> io::Result<()> {
        self.stations[host.0].capture.as_mut().map_or(Ok(()), |capture| capture.secrets(lines))
    }

    /// Writes a qlog of the QUIC packets that a host sends and receives from now on, with the changes
    /// of its [`sender_state`](Host::sender_state). A host on the left side is a client.
    ///
    /// The packets are encrypted: the log contains their types and sizes. A stack that writes a qlog
    /// itself also knows their numbers and frames; its times are simulated, too.
    ///
    /// # Errors
    /// If `out` cannot be written. Later errors are returned by
    /// [`finish_files`](Self::finish_files).
    pub fn qlog(&mut self, host: HostId, title: &str, out: impl Write + 'static) -> io::Result<()> {
        let station = &mut self.stations[host.0];
        station.log = Some(HostLog::begin(title, station.side == Side::Left, Box::new(out))?);
        station.is_changed = true;
        Ok(())
    }

    /// Ends all captures and logs, and writes their files.
    ///
    /// # Errors
    /// If a file could not be written.
    pub fn finish_files(&mut self) -> io::Result<()> {
        for station in &mut self.stations {
            if let Some(capture) = station.capture.take() {
                capture.finish(self.now)?;
            }
            if let Some(log) = station.log.take() {
                log.finish()?;
            }
        }
        self.file_error.take().map_or(Ok(()), Err)
    }

    /// Returns the packets of a host.
    pub fn counts(&self, host: HostId) -> HostCounts {
        self.stations[host.0].counts
    }

    /// Returns the measures from 0 to now.
    pub fn measures(&mut self) -> Measures {
        let now = self.now;
        let mut measure = |i: usize| {
            let direction = &mut self.directions[i];
            direction.advance(now, &mut self.shared);
            let (too_large, unroutable) = (self.too_large[i], self.unroutable[i]);
            let summary = direction.summary(now);
            DirectionMeasures::new(summary, now, &self.delays_ns[i], too_large, unroutable)
        };
        let (forward, reverse) = (measure(0), measure(1));
        Measures { duration_s: now.as_secs_f64(), forward, reverse }
    }

    /// Runs until a condition is met, and returns that time. The condition is checked at the start
    /// and after all events of each time.
    ///
    /// # Errors
    /// If the condition is not met by `limit`, or can no longer be met.
    pub fn run_until(
        &mut self,
        limit: Time,
        mut is_met: impl FnMut(&mut Self) -> bool,
    ) -> Result<Time, Unfinished> {
        loop {
            self.send()?;
            if is_met(self) {
                return Ok(self.now);
            }
            // The condition may have changed a host.
            self.send()?;
            let next = self.next_time();
            if next == Time::NEVER {
                return Err(Unfinished::Idle(self.now));
            }
            if next > limit {
                self.now = self.now.max(limit);
                return Err(Unfinished::TimeLimit(self.now));
            }
            self.step(next);
        }
    }

    /// Runs to a time.
    ///
    /// # Errors
    /// If a host is in an endless loop.
    pub fn run_to(&mut self, time: Time) -> Result<(), Unfinished> {
        match self.run_until(time, |_| false) {
            Err(Unfinished::TimeLimit(_)) => Ok(()),
            Err(Unfinished::Idle(_)) => {
                self.now = self.now.max(time);
                Ok(())
            }
            other => other.map(|_| ()),
        }
    }

    /// Runs for a time.
    ///
    /// # Errors
    /// If a host is in an endless loop.
    pub fn run_for(&mut self, span: Span) -> Result<(), Unfinished> {
        self.run_to(self.now + span)
    }

    /// Returns the time of the next event.
    fn next_time(&self) -> Time {
        let hosts = self.stations.iter().map(|station| station.deadline);
        let links = self.directions.iter().map(Direction::next_time);
        hosts.chain(links).min().unwrap_or(Time::NEVER).max(self.now)
    }

    /// Processes the events of one time, without sending.
    fn step(&mut self, now: Time) {
        if now > self.now {
            self.stations.iter_mut().for_each(|station| station.calls = 0);
        }
        self.now = now;
        for i in 0..2 {
            while let Some(departure) = self.directions[i].due(now, &mut self.shared) {
                self.deliver(i, departure);
            }
        }
        for station in &mut self.stations {
            // A packet that has just arrived may have moved the deadline.
            if station.is_changed {
                station.deadline = station.host.deadline().unwrap_or(Time::NEVER);
            }
            if station.deadline <= now {
                station.host.on_deadline(now);
                station.is_changed = true;
                station.calls += 1;
            }
        }
    }

    /// Delivers a packet to its host. It may have none, if a host has changed its address.
    fn deliver(&mut self, i: usize, Departure { at, packet: slot, is_corrupted }: Departure) {
        let packet = self.shared.slots.get(slot);
        let side = if i == 0 { Side::Right } else { Side::Left };
        let station = Header::read(packet).and_then(|header| {
            let destination = header.flow.destination;
            let is_receiver =
                |it: &&mut Station<H>| it.side == side && it.host.has_address(destination);
            self.stations.iter_mut().find(is_receiver)
        });
        match station {
            None => self.directions[i].refused += 1,
            Some(station) => {
                let size_bytes = size_bytes(packet);
                self.directions[i].delivered.add(size_bytes);
                self.delays_ns[i].record(at.since(self.shared.slots.entered(slot)).as_ns(), 1);
                note(station, &mut self.file_error, at, packet, false);
                if is_corrupted && station.host.drops_corrupted() {
                    station.counts.corrupted.add(size_bytes);
                } else {
                    station.counts.received.add(size_bytes);
                    station.host.handle(at, packet);
                    station.is_changed = true;
                }
            }
        }
        self.shared.slots.give_back(slot);
    }

    /// Sends everything that hosts have to send now, and updates their deadlines.
    fn send(&mut self) -> Result<(), Unfinished> {
        let now = self.now;
        for host in 0..self.stations.len() {
            if !self.stations[host].is_changed {
                continue;
            }
            loop {
                let station = &mut self.stations[host];
                self.packet.clear();
                if !station.host.poll_transmit(now, &mut self.packet) {
                    break;
                }
                station.calls += 1;
                if station.calls > CALLS_MAX {
                    return Err(Unfinished::EndlessLoop { at: now, host: HostId(host) });
                }
                self.enter(host);
            }
            let station = &mut self.stations[host];
            station.is_changed = false;
            if let Some(log) = &mut station.log
                && let Some(state) = station.host.sender_state()
                && let Err(error) = log.state(now, &state)
            {
                self.file_error.get_or_insert(error);
            }
            station.deadline = station.host.deadline().unwrap_or(Time::NEVER);
            if station.calls > CALLS_MAX {
                return Err(Unfinished::EndlessLoop { at: now, host: HostId(host) });
            }
        }
        Ok(())
    }

    /// Puts the packet that a host sends on the first link.
    fn enter(&mut self, host: usize) {
        let (now, packet) = (self.now, &self.packet);
        let station = &mut self.stations[host];
        station.counts.sent.add(size_bytes(packet));
        note(station, &mut self.file_error, now, packet, true);
        let side = station.side;
        let i = if side == Side::Left { 0 } else { 1 };
        if packet.len() > self.mtu_bytes {
            self.too_large[i] += 1;
            return;
        }
        let destination = Header::read(packet).map(|header| header.flow.destination);
        let is_receiver = |it: &Station<H>| {
            it.side != side && destination.is_some_and(|address| it.host.has_address(address))
        };
        if !self.stations.iter().any(is_receiver) {
            self.unroutable[i] += 1;
            return;
        }
        let slot = self.shared.slots.exchange(&mut self.packet);
        self.directions[i].arrive(now, slot, &mut self.shared);
    }
}

/// Adds a packet to the files of a host.
fn note<H>(
    station: &mut Station<H>,
    error: &mut Option<io::Error>,
    now: Time,
    packet: &[u8],
    is_sent: bool,
) {
    let capture = station.capture.as_mut().map(|file| file.packet(now, packet, is_sent));
    let log = station.log.as_mut().map(|file| file.packet(now, packet, is_sent));
    for new in [capture, log].into_iter().flatten().filter_map(Result::err) {
        error.get_or_insert(new);
    }
}

impl<H> Index<HostId> for Simulation<H> {
    type Output = H;

    fn index(&self, host: HostId) -> &H {
        &self.stations[host.0].host
    }
}

impl<H> IndexMut<HostId> for Simulation<H> {
    fn index_mut(&mut self, host: HostId) -> &mut H {
        let station = &mut self.stations[host.0];
        station.is_changed = true;
        &mut station.host
    }
}
