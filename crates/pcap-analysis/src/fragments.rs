//! Reassembly of IP fragments. Only lengths are put together, because captures seldom contain the
//! data.

use std::collections::{BTreeMap, VecDeque};

use crate::packet::{Body, DatagramKey, Fragment, Packet};

/// Maximum number of datagrams that are reassembled at a time.
const DATAGRAMS_MAX: usize = 1 << 10;
/// Maximum number of fragments of a datagram: 65,535 bytes in fragments of 256 bytes.
const FRAGMENTS_MAX: usize = 256;
/// Time after which a datagram is given up, as in Linux (`ipfrag_time`).
const TIMEOUT_NS: u64 = 30_000_000_000;

/// Time during which an identification belongs to one datagram. There are 65,536 of them.
const IDENTIFIED_NS: u64 = 10_000_000;

#[derive(Clone, Debug)]
struct Datagram {
    since_ns: u64,
    packet: Option<Packet>,
    first_bytes: u32,
    offsets: Vec<u32>,
    bytes: u32,
    total_bytes: Option<u32>,
    wire_bytes: u32,
    is_marked: bool,
    /// Whether later fragments are ignored.
    is_done: bool,
}

/// Datagrams of which some fragments are missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    datagrams: BTreeMap<DatagramKey, Datagram>,
    /// Keys in the order of the first fragment that was seen.
    order: VecDeque<(u64, DatagramKey)>,
    /// Datagrams that were given up.
    given_up: u64,
    /// Fragments that the capture contains several times.
    pub copies: u64,
}

impl Reassembly {
    /// Adds a fragment. Returns the complete packet if none is missing.
    pub fn add(&mut self, now_ns: u64, fragment: &Fragment) -> Option<Packet> {
        let starts_anew = self.datagrams.get(&fragment.key).is_some_and(|known| {
            known.is_done && now_ns.saturating_sub(known.since_ns) > IDENTIFIED_NS
        });
        if starts_anew {
            self.forget(&fragment.key);
        }
        let datagram = self.datagram(now_ns, &fragment.key);
        if datagram.offsets.contains(&fragment.offset) {
            self.copies += 1;
            return None;
        }
        if datagram.is_done || datagram.offsets.len() == FRAGMENTS_MAX {
            return None;
        }
        datagram.offsets.push(fragment.offset);
        datagram.bytes = datagram.bytes.saturating_add(fragment.bytes);
        datagram.wire_bytes = datagram.wire_bytes.saturating_add(fragment.wire_bytes);
        // RFC 3168 §5.3: a mark of one fragment marks the datagram.
        datagram.is_marked |= fragment.is_marked;
        if let Some(packet) = fragment.packet {
            (datagram.packet, datagram.first_bytes) = (Some(packet), fragment.bytes);
        }
        if !fragment.more {
            datagram.total_bytes = Some(fragment.offset.saturating_add(fragment.bytes));
        }
        let total_bytes = datagram.total_bytes.filter(|total| datagram.bytes >= *total)?;
        let mut packet = datagram.packet?;
        datagram.is_done = true;
        let added = total_bytes.saturating_sub(datagram.first_bytes);
        match &mut packet.body {
            Body::Tcp(segment) => segment.payload_bytes += added,
            Body::Udp { payload_bytes, .. } => *payload_bytes += added,
        }
        packet.wire_bytes = datagram.wire_bytes;
        packet.is_marked |= datagram.is_marked;
        Some(packet)
    }

    /// Ignores the other fragments of a datagram, whose contents were measured with the first.
    pub fn ignore(&mut self, now_ns: u64, key: &DatagramKey) {
        self.datagram(now_ns, key).is_done = true;
    }

    fn datagram(&mut self, now_ns: u64, key: &DatagramKey) -> &mut Datagram {
        while let Some((since_ns, oldest)) = self.order.front().copied()
            && (self.order.len() >= DATAGRAMS_MAX || since_ns + TIMEOUT_NS < now_ns)
        {
            self.order.pop_front();
            if self.datagrams.get(&oldest).is_some_and(|known| known.since_ns == since_ns) {
                self.forget(&oldest);
            }
        }
        self.datagrams.entry(*key).or_insert_with(|| {
            self.order.push_back((now_ns, *key));
            Datagram {
                since_ns: now_ns,
                packet: None,
                first_bytes: 0,
                offsets: Vec::new(),
                bytes: 0,
                total_bytes: None,
                wire_bytes: 0,
                is_marked: false,
                is_done: false,
            }
        })
    }

    fn forget(&mut self, key: &DatagramKey) {
        self.given_up += u64::from(self.datagrams.remove(key).is_some_and(|known| !known.is_done));
    }

    /// Returns the number of datagrams that were not completed.
    pub fn incomplete(&self) -> u64 {
        self.given_up + self.datagrams.values().filter(|known| !known.is_done).count() as u64
    }
}
