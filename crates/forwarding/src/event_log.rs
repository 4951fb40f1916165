//! Log of drops and marks.

use std::collections::BTreeMap;

use jostle_link::DropReason;
use jostle_units::Time;

use crate::ip_header::FlowKey;

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEventKind {
    /// The packet was dropped.
    Dropped,
    /// The packet was marked with CE.
    Marked,
}

/// A drop or a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Logical time of the link since the start.
    pub at: Time,
    /// Direction: 0 is forward, 1 is reverse.
    pub direction: u8,
    /// Index of the link in its direction.
    pub hop: u8,
    /// Whether the packet was dropped or marked.
    pub what: PacketEventKind,
    /// Reason for the drop or mark.
    pub reason: DropReason,
    /// Size of the packet, including the Ethernet header.
    pub size_bytes: u32,
    /// Index of the packet's flow in [`EventLog::flows`]. `None` if it is not an IP packet.
    pub flow: Option<u32>,
}

/// All drops and marks of an emulation.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    /// Events, sorted by time after the end of the emulation.
    pub events: Vec<Event>,
    /// Flows of the events, in order of appearance.
    pub flows: Vec<FlowKey>,
    positions: BTreeMap<FlowKey, u32>,
}

impl EventLog {
    /// Adds an event for a packet of `flow`.
    pub(crate) fn add(&mut self, event: Event, flow: Option<FlowKey>) {
        let flow = flow.map(|flow| self.position(flow));
        self.events.push(Event { flow, ..event });
    }

    fn position(&mut self, flow: FlowKey) -> u32 {
        *self.positions.entry(flow).or_insert_with(|| {
            self.flows.push(flow);
            self.flows.len() as u32 - 1
        })
    }

    /// Sorts the events by time. Links report random losses already when the transmission starts.
    pub fn finish(mut self) -> Self {
        self.events.sort_by_key(|event| event.at);
        self
    }
}
