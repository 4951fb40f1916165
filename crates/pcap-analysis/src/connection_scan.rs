//! The first pass over a file: finds its connections and their properties.

use std::path::{Path, PathBuf};

use std::sync::atomic::Ordering;

use crate::capture_file::{CaptureInfo, Packets, Position};
use crate::connection_table::{Connections, EndpointPair};
use crate::error::Error;
use crate::packet::{Body, Packet, Segment};
use crate::packet_stream::{PacketStream, StreamCounts, StreamOptions};

/// Properties of one direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Direction {
    pub packets: u64,
    pub payload_bytes: u64,
    pub largest_payload_bytes: u32,
    /// The largest payload of packets that fit in an Ethernet frame without segmentation offload.
    pub largest_on_wire_bytes: u32,
    /// Number of packets with that payload, and with any payload.
    largest_on_wire_packets: u64,
    data_packets: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    /// MSS option of its SYN.
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    /// Sequence numbers of its SYN and its FIN.
    syn: Option<u32>,
    fin: Option<u32>,
    /// Whether the snap length cut the options of its SYN.
    pub has_cut_syn: bool,
    /// Whether its packets carry time stamps.
    pub has_stamps: bool,
    pub understands_marks: bool,
    /// Minimum time from a packet of this direction to the reply of the other end: the RTT between
    /// the capture point and that end.
    pub echo_ns: Option<u64>,
    /// Packets whose ACK was awaited.
    probed: u32,
    /// Those whose ACK passed much later than `echo_ns`, although it was due: they were queued
    /// between the capture point and the other end.
    queued: u32,
    probe: Probe,
    stamp_probe: Probe,
}

impl Direction {
    /// Returns whether most packets were queued between the capture point and the other end.
    pub fn queues_ahead(&self) -> bool {
        const FEWEST: u32 = 20;
        self.probed >= FEWEST && self.queued > self.probed / 2
    }

    /// Returns the bytes of data, each counted once, if the capture includes SYN and FIN.
    pub fn data_bytes(&self) -> Option<u64> {
        const NUMBERS: u64 = 1 << 32;
        let low = u64::from(self.fin?.wrapping_sub(self.syn?.wrapping_add(1)));
        // The payload, which includes retransmissions, says how often the numbers wrapped.
        let wraps = (self.payload_bytes.saturating_sub(low) + NUMBERS / 2) / NUMBERS;
        Some(low + wraps * NUMBERS)
    }

    /// Returns whether payloads that fit into no Ethernet frame consist of several that do.
    fn has_merged_packets(&self) -> bool {
        /// Smallest usual MSS (RFC 9293 §3.7.1).
        const SMALLEST_BYTES: u32 = 536;
        let (frame, largest) = (self.largest_on_wire_bytes, self.largest_payload_bytes);
        frame >= SMALLEST_BYTES
            && largest > frame
            && (largest.is_multiple_of(frame)
                || self.largest_on_wire_packets * 20 > self.data_packets)
    }

    fn record_reply(&mut self, at_ns: u64, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(at_ns);
        self.echo_ns = Some(self.echo_ns.map_or(passed_ns, |least| least.min(passed_ns)));
    }

    /// Counts the probe, whose ACK passes. `back_ns` is `echo_ns` of the reverse direction.
    fn count_if_queued(&mut self, now_ns: u64, back_ns: Option<u64>) {
        /// Packets after the probe from which its ACK is not a delayed one (RFC 9293 §3.8.6.3).
        const DUE: u64 = 4;
        if let (Some(least_ns), Some(back_ns)) = (self.echo_ns, back_ns) {
            self.probed += 1;
            let margin_ns = (least_ns + back_ns) / 4;
            let passed_ns = now_ns.saturating_sub(self.probe.at_ns);
            let is_due = self.packets - self.probe.packets >= DUE;
            self.queued += u32::from(is_due && passed_ns > least_ns + margin_ns);
        }
    }
}

/// A packet that waits for its reply to measure the RTT.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    /// Acknowledgment number or echoed time stamp of the reply.
    waits_for: Option<u32>,
    at_ns: u64,
    /// Packets of the direction up to this one.
    packets: u64,
}

/// A connection found in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    pub ends: EndpointPair,
    pub is_quic: bool,
    pub directions: [Direction; 2],
    /// Direction and sequence number of its SYN.
    pub opened: Option<(usize, u32)>,
    pub syn_ns: Option<u64>,
    pub syn_ack_ns: Option<u64>,
}

impl Connection {
    fn new(ends: EndpointPair) -> Self {
        Self {
            ends,
            is_quic: false,
            directions: [Direction::default(); 2],
            opened: None,
            syn_ns: None,
            syn_ack_ns: None,
        }
    }

    pub fn last_ns(&self) -> u64 {
        self.directions.iter().map(|direction| direction.last_ns).max().unwrap_or(0)
    }

    /// Returns the payload of a full-sized segment of a direction: the MSS option of its receiver,
    /// less the bytes of the time stamp option (RFC 6691). A sender that offers a smaller MSS
    /// has a smaller MTU, unless it sent larger segments that are no multiples of it. It is never
    /// more than the largest payload seen.
    ///
    /// Without the handshake, it is the largest payload in one Ethernet frame if larger ones are
    /// multiples of it, or if many packets have it: the larger ones are segments before segmentation
    /// (TSO), or after reassembly (GRO).
    pub fn mss_bytes(&self, direction: usize) -> u32 {
        const STAMPS_BYTES: u32 = 12;
        let [own, other] = [self.directions[direction], self.directions[1 - direction]];
        let largest = own.largest_payload_bytes.max(1);
        let offered = match (own.mss, other.mss) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (one, other) => one.or(other),
        };
        match offered {
            Some(offered) => {
                let stamps = if own.has_stamps && other.has_stamps { STAMPS_BYTES } else { 0 };
                let offered = u32::from(offered).saturating_sub(stamps);
                let sent = own.largest_on_wire_bytes;
                let is_merged = offered > 0 && sent.is_multiple_of(offered);
                if is_merged { offered } else { offered.max(sent) }.clamp(1, largest)
            }
            None if own.has_merged_packets() => own.largest_on_wire_bytes,
            // A payload larger than a jumbo frame is a TSO segment.
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
        let stats = &mut self.directions[direction];
        if stats.packets == 0 {
            stats.first_ns = now_ns;
        }
        stats.last_ns = stats.last_ns.max(now_ns);
        stats.packets += 1;
        stats.payload_bytes += u64::from(payload_bytes);
        stats.largest_payload_bytes = stats.largest_payload_bytes.max(payload_bytes);
        stats.data_packets += u64::from(payload_bytes > 0);
        if packet.wire_bytes <= jostle_units::FULL_PACKET_BYTES {
            if payload_bytes > stats.largest_on_wire_bytes {
                (stats.largest_on_wire_bytes, stats.largest_on_wire_packets) = (payload_bytes, 0);
            }
            stats.largest_on_wire_packets +=
                u64::from(payload_bytes == stats.largest_on_wire_bytes);
        }
        stats.understands_marks |= packet.understands_marks;
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
        let (one, other) = {
            let [a, b] = &mut self.directions;
            if direction == 0 { (a, b) } else { (b, a) }
        };
        if segment.fin {
            one.fin = Some(segment.sequence.wrapping_add(segment.payload_bytes));
        }
        if segment.syn {
            one.syn = Some(segment.sequence);
            one.mss = segment.mss.or(one.mss);
            one.scale = segment.scale.or(one.scale);
            one.has_cut_syn |= segment.is_cut;
        }
        if segment.ack
            && let Some(end) = other.probe.waits_for
            && (segment.acknowledgment.wrapping_sub(end) as i32) >= 0
        {
            other.count_if_queued(now_ns, one.echo_ns);
            other.record_reply(other.probe.at_ns, now_ns);
            other.probe.waits_for = None;
        }
        if let Some((value, echo)) = segment.stamps {
            one.has_stamps = true;
            if other.stamp_probe.waits_for == Some(echo) {
                other.record_reply(other.stamp_probe.at_ns, now_ns);
                other.stamp_probe.waits_for = None;
            }
            if one.stamp_probe.waits_for.is_none() && !segment.syn {
                one.stamp_probe =
                    Probe { waits_for: Some(value), at_ns: now_ns, packets: one.packets };
            }
        }
        if one.probe.waits_for.is_none() && segment.length() > 0 {
            let end = segment.sequence.wrapping_add(segment.length());
            one.probe = Probe { waits_for: Some(end), at_ns: now_ns, packets: one.packets };
        }
    }
}

/// Largest payload of one Ethernet frame.
const JUMBO_BYTES: u32 = 9_000;

/// Result of the first pass over a file.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionScan {
    pub path: PathBuf,
    pub about: CaptureInfo,
    pub connections: Vec<Connection>,
    pub counts: StreamCounts,
    /// How the packets have to be read.
    pub options: StreamOptions,
    /// Segments whose TCP options the snap length cut.
    pub cut_segments: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Whether the file contains more than
    /// [`CONNECTIONS_MAX`](crate::connection_table::CONNECTIONS_MAX) connections.
    pub too_many: bool,
}

impl ConnectionScan {
    /// Scans a file. `go_on` is called every [`CANCEL_CHECK_PACKETS`] packets and returns whether
    /// to continue.
    pub fn of(path: &Path, position: Position, go_on: &dyn Fn() -> bool) -> Result<Self, Error> {
        let before = position.load(Ordering::Relaxed);
        let open = || {
            position.store(before, Ordering::Relaxed);
            Packets::open(path, position.clone())
        };
        Self::of_packets(path, &open, go_on)
    }

    /// Scans packets. They are read again from the beginning if they turn out not to be in time
    /// order, or to be copies.
    pub fn of_packets(
        path: &Path,
        open: &dyn Fn() -> Result<Packets, Error>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let mut options = StreamOptions::default();
        let (mut survey, stream) = loop {
            let stream = PacketStream::new(open()?, options);
            let (survey, stream) = Self::of_stream(path, stream, go_on)?;
            if !survey.options.differs(options) {
                break (survey, stream);
            }
            options = survey.options;
        };
        (survey.about, survey.counts) = (stream.frames.about, stream.counts);
        if survey.connections.is_empty() {
            let what = match survey.counts.unread() {
                Some((_, kinds)) => format!("no packet of TCP or UDP over IP: {kinds}"),
                None if survey.counts.packets > 0 => "no packet of TCP or UDP over IP".to_owned(),
                None if survey.about.timeless > 0 => {
                    "packets without times (Simple Packet Blocks): nothing can be measured"
                        .to_owned()
                }
                None => "no packets".to_owned(),
            };
            return Err(Error::Empty { path: path.to_owned(), what });
        }
        Ok(survey)
    }

    /// Scans a stream, or as much of it as shows that it has to be read with other options.
    fn of_stream(
        path: &Path,
        mut stream: PacketStream,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(Self, PacketStream), Error> {
        let mut all = Connections::default();
        let mut survey = Self {
            path: path.to_owned(),
            about: CaptureInfo::default(),
            connections: Vec::new(),
            counts: StreamCounts::default(),
            options: StreamOptions::default(),
            cut_segments: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            too_many: false,
        };
        let mut read = 0_u64;
        while let Some((time_ns, packet)) = stream.next()? {
            survey.add(time_ns, packet, &mut all);
            read += 1;
            if read.is_multiple_of(CANCEL_CHECK_PACKETS) && !go_on() {
                return Err(Error::Cancelled);
            }
            if stream.has_to_sort() {
                break;
            }
        }
        survey.options = stream.needed_options();
        Ok((survey, stream))
    }

    /// Returns when the capture began: in captures by jostle, at the start of the run.
    pub fn began_ns(&self) -> u64 {
        if self.about.has_own_clock { 0 } else { self.first_ns }
    }

    /// Returns the time after the last packet, or in captures by jostle the end of the run.
    pub fn ended_ns(&self) -> u64 {
        let own = self.about.ended_ns.filter(|_| self.about.has_own_clock);
        own.unwrap_or(0).max(self.last_ns.saturating_add(1))
    }

    fn add(&mut self, time_ns: u64, packet: &Packet, all: &mut Connections) {
        self.first_ns = self.first_ns.min(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        self.cut_segments += u64::from(matches!(&packet.body, Body::Tcp(one) if one.is_cut));
        let Some((number, direction)) = all.of(packet) else {
            self.too_many = true;
            return;
        };
        if number as usize == self.connections.len() {
            self.connections.push(Connection::new(EndpointPair::of(packet).0));
        }
        self.connections[number as usize].add(packet, direction, time_ns);
    }
}

/// Packets between two checks for cancellation.
pub(crate) const CANCEL_CHECK_PACKETS: u64 = 1 << 14;
