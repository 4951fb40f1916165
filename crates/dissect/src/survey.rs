//! The first pass over a file: which connections it has, and what they look like.

use std::path::{Path, PathBuf};

use crate::connections::{Connections, Ends};
use crate::error::Error;
use crate::file::{About, Frame, Packets, Position};
use crate::packet::{self, Body, Packet, Segment};

/// What one direction of a connection has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Direction {
    pub packets: u64,
    pub payload_bytes: u64,
    pub largest_payload_bytes: u32,
    pub first_ns: u64,
    pub last_ns: u64,
    /// What its SYN offered.
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    /// Packets of it carry time stamps.
    pub has_stamps: bool,
    pub understands_marks: bool,
    /// Least time from one of its packets until the other end's answer to it came by: the way from
    /// here to that end and back.
    pub echo_ns: Option<u64>,
    probe: Probe,
    stamp_probe: Probe,
}

/// A packet whose answer is waited for.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    /// What the answer acknowledges or echoes.
    waits_for: Option<u32>,
    at_ns: u64,
}

/// A connection as its file has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    pub ends: Ends,
    pub is_quic: bool,
    pub directions: [Direction; 2],
    /// Direction and number of its SYN.
    pub opened: Option<(usize, u32)>,
    pub syn_ns: Option<u64>,
    pub syn_ack_ns: Option<u64>,
    /// Both ends were done.
    pub closed: [bool; 2],
}

impl Connection {
    fn new(ends: Ends) -> Self {
        Self {
            ends,
            is_quic: false,
            directions: [Direction::default(); 2],
            opened: None,
            syn_ns: None,
            syn_ack_ns: None,
            closed: [false; 2],
        }
    }

    pub fn last_ns(&self) -> u64 {
        self.directions.iter().map(|direction| direction.last_ns).max().unwrap_or(0)
    }

    /// Payload of a full segment of a direction: what both ends offered less what every segment
    /// spends on time stamps (RFC 6691), unless less was ever sent.
    pub fn mss_bytes(&self, direction: usize) -> u32 {
        const STAMPS_BYTES: u32 = 12;
        let [a, b] = self.directions;
        let largest = self.directions[direction].largest_payload_bytes.max(1);
        let offered = match (a.mss, b.mss) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        match offered {
            Some(offered) => {
                let stamps = if a.has_stamps && b.has_stamps { STAMPS_BYTES } else { 0 };
                u32::from(offered).saturating_sub(stamps).clamp(1, largest)
            }
            // Its opening was not seen. What is larger than any frame is several segments that a
            // card was to cut.
            None if largest > JUMBO_BYTES => jostle_units::FULL_PAYLOAD_BYTES,
            None => largest,
        }
    }

    fn add(&mut self, packet: &Packet, direction: usize, now_ns: u64) {
        let payload_bytes = match &packet.body {
            Body::Tcp(segment) => segment.payload_bytes,
            Body::Udp { payload_bytes, is_quic } => {
                self.is_quic |= is_quic;
                *payload_bytes
            }
        };
        let one = &mut self.directions[direction];
        if one.packets == 0 {
            one.first_ns = now_ns;
        }
        one.last_ns = one.last_ns.max(now_ns);
        one.packets += 1;
        one.payload_bytes += u64::from(payload_bytes);
        one.largest_payload_bytes = one.largest_payload_bytes.max(payload_bytes);
        one.understands_marks |= packet.understands_marks;
        if let Body::Tcp(segment) = &packet.body {
            self.add_segment(segment, direction, now_ns);
        }
    }

    fn add_segment(&mut self, segment: &Segment, direction: usize, now_ns: u64) {
        if segment.syn && segment.ack {
            self.syn_ack_ns.get_or_insert(now_ns);
        } else if segment.syn && self.opened.is_none() {
            self.opened = Some((direction, segment.sequence));
            self.syn_ns = Some(now_ns);
        }
        self.closed[direction] |= segment.fin;
        let (one, other) = {
            let [a, b] = &mut self.directions;
            if direction == 0 { (a, b) } else { (b, a) }
        };
        if segment.syn {
            one.mss = segment.mss.or(one.mss);
            one.scale = segment.scale.or(one.scale);
        }
        let mut answered = |at_ns: u64| {
            let passed_ns = now_ns.saturating_sub(at_ns);
            other.echo_ns = Some(other.echo_ns.map_or(passed_ns, |least| least.min(passed_ns)));
        };
        if segment.ack
            && let Some(end) = other.probe.waits_for
            && (segment.acknowledgment.wrapping_sub(end) as i32) >= 0
        {
            answered(other.probe.at_ns);
            other.probe.waits_for = None;
        }
        if let Some((value, echo)) = segment.stamps {
            one.has_stamps = true;
            if other.stamp_probe.waits_for == Some(echo) {
                answered(other.stamp_probe.at_ns);
                other.stamp_probe.waits_for = None;
            }
            if one.stamp_probe.waits_for.is_none() && !segment.syn {
                one.stamp_probe = Probe { waits_for: Some(value), at_ns: now_ns };
            }
        }
        if one.probe.waits_for.is_none() && segment.length() > 0 {
            let end = segment.sequence.wrapping_add(segment.length());
            one.probe = Probe { waits_for: Some(end), at_ns: now_ns };
        }
    }
}

/// Largest payload of a single frame of Ethernet.
const JUMBO_BYTES: u32 = 9_000;

/// A file that was read once.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    pub path: PathBuf,
    pub about: About,
    pub connections: Vec<Connection>,
    pub packets: u64,
    /// Packets that are neither TCP nor UDP over IP, or whose headers are not whole.
    pub others: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Connections beyond those that are told apart.
    pub too_many: bool,
}

impl Survey {
    /// Reads a file once; `go_on` is asked every now and then.
    pub fn of(path: &Path, position: Position, go_on: &dyn Fn() -> bool) -> Result<Self, Error> {
        Self::of_packets(path, Packets::open(path, position)?, go_on)
    }

    pub fn of_packets(
        path: &Path,
        mut packets: Packets,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let mut all = Connections::default();
        let mut survey = Self {
            path: path.to_owned(),
            about: About::default(),
            connections: Vec::new(),
            packets: 0,
            others: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            too_many: false,
        };
        let mut unknown = None;
        while let Some(frame) = packets.next()? {
            survey.add(&frame, &mut all, &mut unknown);
            if survey.packets.is_multiple_of(ASKED_EVERY) && !go_on() {
                return Err(Error::Cancelled);
            }
        }
        survey.about = packets.about;
        if survey.connections.is_empty() {
            let what = match unknown {
                Some(link) if survey.packets > 0 => format!(
                    "packets of link type {link}, which cannot be read: Ethernet, IP (raw), Linux's \
                     cooked and loopback can"
                ),
                _ if survey.packets > 0 => "no packet of TCP or UDP over IP".to_owned(),
                _ => "no packets".to_owned(),
            };
            return Err(Error::Empty { path: path.to_owned(), what });
        }
        Ok(survey)
    }

    fn add(&mut self, frame: &Frame<'_>, all: &mut Connections, unknown: &mut Option<i32>) {
        self.packets += 1;
        if !packet::is_known(frame.link) {
            unknown.get_or_insert(frame.link.0);
        }
        let Some(packet) = packet::read(frame) else {
            self.others += 1;
            return;
        };
        self.first_ns = self.first_ns.min(frame.time_ns);
        self.last_ns = self.last_ns.max(frame.time_ns);
        let Some((number, direction, ends)) = all.of(&packet) else {
            self.too_many = true;
            return;
        };
        if number as usize == self.connections.len() {
            self.connections.push(Connection::new(ends));
        }
        self.connections[number as usize].add(&packet, direction, frame.time_ns);
    }
}

/// Packets between two looks at whether anybody still wants the answer.
pub(crate) const ASKED_EVERY: u64 = 1 << 14;
