//! Which connection a packet is of.

use std::collections::BTreeMap;

use crate::packet::{Body, Endpoint, Packet};

/// Most connections of a file that are told apart.
pub(crate) const CONNECTIONS_MAX: usize = 1 << 20;

/// The two ends, the lower first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ends {
    pub tcp: bool,
    pub lower: Endpoint,
    pub upper: Endpoint,
}

impl Ends {
    /// The ends of a packet, and which of both directions it takes: 0 from the lower one.
    pub fn of(packet: &Packet) -> (Self, usize) {
        let tcp = matches!(packet.body, Body::Tcp(_));
        if packet.from <= packet.to {
            (Self { tcp, lower: packet.from, upper: packet.to }, 0)
        } else {
            (Self { tcp, lower: packet.to, upper: packet.from }, 1)
        }
    }

    /// The end that a direction comes from.
    pub fn source(&self, direction: usize) -> Endpoint {
        if direction == 0 { self.lower } else { self.upper }
    }

    /// A cheap number that differs for most connections.
    fn slot(&self) -> usize {
        let mixed = u32::from(self.lower.port).wrapping_mul(0x9e37_79b1)
            ^ u32::from(self.upper.port).wrapping_mul(0x85eb_ca6b);
        (mixed >> (32 - SLOT_BITS)) as usize
    }
}

/// What is known of the latest connection of two ends.
#[derive(Clone, Copy, Debug)]
struct Latest {
    number: u32,
    /// Sequence number of its SYN, if there was one.
    opened: Option<u32>,
    /// A FIN or RST was seen.
    closing: bool,
}

const SLOT_BITS: u32 = 10;

/// Numbers connections in the order in which their first packets come.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    known: BTreeMap<Ends, Latest>,
    /// The last one of each slot: most packets are of few connections.
    recent: Vec<Option<(Ends, u32)>>,
    count: u32,
}

impl Default for Connections {
    fn default() -> Self {
        Self { known: BTreeMap::new(), recent: vec![None; 1 << SLOT_BITS], count: 0 }
    }
}

impl Connections {
    /// Number of the packet's connection and its direction; none if there are too many.
    pub fn of(&mut self, packet: &Packet) -> Option<(u32, usize, Ends)> {
        let (ends, direction) = Ends::of(packet);
        let slot = ends.slot();
        let changes = match &packet.body {
            Body::Tcp(segment) => segment.syn || segment.fin || segment.rst,
            Body::Udp { .. } => false,
        };
        if !changes
            && let Some((of, number)) = self.recent[slot]
            && of == ends
        {
            return Some((number, direction, ends));
        }
        let number = self.look_up(&ends, packet)?;
        self.recent[slot] = Some((ends, number));
        Some((number, direction, ends))
    }

    fn look_up(&mut self, ends: &Ends, packet: &Packet) -> Option<u32> {
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
            // A SYN with another number opens another connection, once this one was there as well
            // (RFC 9293 §3.10.7.4); one with the same was sent again.
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
