//! Classes of packets that classful disciplines have in common: by flow, else by DSCP.

use jostle_units::{ConnectionId, FlowId};

use super::QueueDiscipline;
use crate::packet::Packet;
use crate::service_rate::Shaper;

/// Number of codepoints of the DSCP field, which has six bits.
pub const CODEPOINTS: usize = 64;

/// A class: its quantum per round, and its queue.
pub struct Class<B> {
    /// Bytes that the class can send per round, if classes take turns.
    pub quantum_bytes: u32,
    /// Queue of the class.
    pub queue: Box<dyn QueueDiscipline<B>>,
}

/// Mapping from packets to classes.
#[derive(Clone, Debug)]
pub struct ClassMap {
    /// Class of each flow number, for the flows that are known.
    pub by_flow: Vec<u32>,
    /// Class of each codepoint, for all other flows.
    pub by_dscp: [u8; CODEPOINTS],
}

impl ClassMap {
    /// Returns the index of a packet's class.
    #[inline]
    pub(super) fn class_of<B>(&self, packet: &Packet<B>) -> usize {
        let by_dscp = || u32::from(self.by_dscp[usize::from(packet.dscp) % CODEPOINTS]);
        self.by_flow.get(packet.connection.index()).copied().unwrap_or_else(by_dscp) as usize
    }

    /// Assigns a connection to the class of its flow.
    pub(super) fn admit(&mut self, connection: ConnectionId, flow: FlowId) {
        if let Some(class) = self.by_flow.get(flow.index()).copied() {
            let known = self.by_flow.len().max(connection.index() + 1);
            self.by_flow.resize(known, 0);
            self.by_flow[connection.index()] = class;
        }
    }
}

/// Returns the shapers of all classes: none if any class can send at the rate of the link.
pub(super) fn shapers(of_classes: impl Iterator<Item = Vec<Shaper>>) -> Vec<Shaper> {
    let of_classes: Vec<_> = of_classes.collect();
    if of_classes.iter().any(Vec::is_empty) { Vec::new() } else { of_classes.concat() }
}
