//! Assigns packets to connections.

use std::collections::BTreeMap;

use crate::packet::{Body, Endpoint, Packet};

/// Maximum number of connections that are distinguished in a file.
pub(crate) const CONNECTIONS_MAX: usize = 1 << 20;

/// Transport protocol and the two endpoints, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndpointPair {
    pub tcp: bool,
    pub lower: Endpoint,
    pub upper: Endpoint,
}

impl EndpointPair {
    /// Returns the endpoints of a packet and its direction. Direction 0 is from `lower` to `upper`.
    pub fn of(packet: &Packet) -> (Self, usize) {
        let tcp = matches!(packet.body, Body::Tcp(_));
        if packet.from <= packet.to {
            (Self { tcp, lower: packet.from, upper: packet.to }, 0)
        } else {
            (Self { tcp, lower: packet.to, upper: packet.from }, 1)
        }
    }

    /// Returns the endpoint from which a direction starts.
    pub fn source(&self, direction: usize) -> Endpoint {
        if direction == 0 { self.lower } else { self.upper }
    }

    /// Returns a cheap hash for the cache of recent connections.
    fn slot(&self) -> usize {
        let mixed = u32::from(self.lower.port).wrapping_mul(0x9e37_79b1)
            ^ u32::from(self.upper.port).wrapping_mul(0x85eb_ca6b);
        (mixed >> (32 - SLOT_BITS)) as usize
    }
}

/// State of the latest connection between two endpoints.
#[derive(Clone, Copy, Debug)]
struct Latest {
    number: u32,
    /// Sequence number of its SYN, if captured.
    opened: Option<u32>,
    /// Whether a FIN or RST was seen.
    closing: bool,
}

const SLOT_BITS: u32 = 10;

/// Numbers connections in the order of their first packets.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    known: BTreeMap<EndpointPair, Latest>,
    /// Cache of the last connection per hash, because most packets belong to few connections.
    recent: Vec<Option<(EndpointPair, u32)>>,
    count: u32,
}

impl Default for Connections {
    fn default() -> Self {
        Self { known: BTreeMap::new(), recent: vec![None; 1 << SLOT_BITS], count: 0 }
    }
}

impl Connections {
    /// Returns the number and the direction of a packet's connection. `None` if there are too many
    /// connections.
    pub fn of(&mut self, packet: &Packet) -> Option<(u32, usize)> {
        let (ends, direction) = EndpointPair::of(packet);
        let slot = ends.slot();
        let changes = match &packet.body {
            Body::Tcp(segment) => segment.syn || segment.fin || segment.rst,
            Body::Udp { .. } => false,
        };
        if !changes
            && let Some((of, number)) = &self.recent[slot]
            && *of == ends
        {
            let number = *number;
            return Some((number, direction));
        }
        let number = self.look_up(&ends, packet)?;
        self.recent[slot] = Some((ends, number));
        Some((number, direction))
    }

    fn look_up(&mut self, ends: &EndpointPair, packet: &Packet) -> Option<u32> {
        let opens = match &packet.body {
            Body::Tcp(segment) if segment.syn && !segment.ack => Some(segment.sequence),
            _ => None,
        };
        let closes = match &packet.body {
            Body::Tcp(segment) => segment.fin || segment.rst,
            Body::Udp { .. } => false,
        };
        if let Some(latest) = self.known.get_mut(ends) {
            latest.closing |= closes;
            // A SYN with another sequence number opens a new connection (RFC 9293 §3.10.7.4). If
            // the SYN of the old connection was not captured, a FIN or RST must precede. A SYN with
            // the same number is a retransmission.
            let again = match (opens, latest.opened) {
                (Some(new), Some(old)) => new != old,
                (Some(_), None) => latest.closing,
                (None, _) => false,
            };
            if !again {
                return Some(latest.number);
            }
        }
        if self.count as usize >= CONNECTIONS_MAX {
            return None;
        }
        let number = self.count;
        self.count += 1;
        self.known.insert(*ends, Latest { number, opened: opens, closing: closes });
        Some(number)
    }
}
