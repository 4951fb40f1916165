//! A log of every drop and mark.

use std::collections::BTreeMap;

use jostle_path::Reason;
use jostle_units::Time;

use crate::header::FlowKey;

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is gone.
    Dropped,
    /// It carries a congestion-experienced mark from here on.
    Marked,
}

/// One drop or mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in the link's logical time, since the start.
    pub at: Time,
    /// Position of the direction: 0 is forward, 1 is reverse.
    pub direction: u8,
    /// Position of the link on its direction's way.
    pub hop: u8,
    /// What happened.
    pub what: What,
    /// Why.
    pub reason: Reason,
    /// Size of the packet as the link counts it.
    pub size_bytes: u32,
    /// Position of the packet's flow in [`Journal::flows`]; none if it was no IP packet.
    pub flow: Option<u32>,
}

/// Every drop and mark of an emulation.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// In order of time once the emulation has ended.
    pub events: Vec<Event>,
    /// The flows that events name by position, in order of appearance.
    pub flows: Vec<FlowKey>,
    positions: BTreeMap<FlowKey, u32>,
}

impl Journal {
    /// Adds an event of a packet of `flow`.
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

    /// Sorts by time: links tell losses on the wire when sending starts.
    pub(crate) fn finish(mut self) -> Self {
        self.events.sort_by_key(|event| event.at);
        self
    }
}
