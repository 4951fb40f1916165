//! The transfers of flows that are many connections: a row of each.

use jostle_units::Span;

use crate::arrivals::wire_bytes;
use crate::tables::{TransferTable, seconds};
use crate::{CapacitySpec, FlowSpec, RunSpec, SourceSpec};

/// What the transfers of a flow would take on a path that is empty.
#[derive(Clone, Copy, Debug)]
struct Least {
    /// Round trip, and the part of it that data take.
    rtt_ns: u64,
    one_way_ns: u64,
    /// Of the slowest link; none if its rate varies.
    rate_bps: Option<u64>,
    mtu_bytes: u32,
    /// A transfer is over when it has arrived, and not when that is known.
    is_asked: bool,
}

impl Least {
    fn of(spec: &RunSpec, flow: &FlowSpec) -> Self {
        let delay_ns = |links: &[u32]| -> u64 {
            let delays = links.iter().map(|link| &spec.links[*link as usize].delay.steps);
            delays.filter_map(|steps| Some(steps.first()?.delay_ns)).sum()
        };
        let one_way_ns = delay_ns(&flow.path);
        let rates = flow.path.iter().map(|link| match spec.links[*link as usize].capacity {
            CapacitySpec::Constant { rate_bps } => Some(rate_bps),
            _ => None,
        });
        Self {
            rtt_ns: one_way_ns + delay_ns(&flow.reverse_path) + flow.access_delay_ns,
            one_way_ns,
            rate_bps: rates.min().flatten(),
            mtu_bytes: flow.mtu_bytes,
            is_asked: matches!(flow.source, SourceSpec::RequestResponse { .. }),
        }
    }

    /// The handshake of the first transfer of a connection, all packets at the rate of the slowest
    /// link, their way, and the last ACK's where it counts.
    fn completion_s(&self, bytes: u64, first: bool) -> Option<f64> {
        let sending_s = wire_bytes(bytes, self.mtu_bytes) as f64 * 8.0 / self.rate_bps? as f64;
        let handshake_ns = if first { self.rtt_ns } else { 0 };
        let way_ns = if self.is_asked { self.one_way_ns } else { self.rtt_ns };
        Some(sending_s + seconds(handshake_ns + way_ns))
    }
}

/// Where what is told of a connection belongs.
#[derive(Clone, Copy, Debug)]
struct Place {
    flow: u32,
    /// Of the transfer that was asked for last.
    row: Option<u32>,
}

/// All connections of a run's flows that are many, and their transfers.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    /// Number of the first connection.
    first: u32,
    places: Vec<Place>,
    least: Vec<Option<Least>>,
    pub table: TransferTable,
}

impl Connections {
    pub(crate) fn new(spec: &RunSpec) -> Self {
        let least = |flow: &FlowSpec| flow.arrivals.as_ref().map(|_| Least::of(spec, flow));
        Self {
            first: spec.flows.len() as u32,
            places: Vec::new(),
            least: spec.flows.iter().map(least).collect(),
            table: TransferTable::default(),
        }
    }

    fn place(&mut self, connection: u32) -> Option<&mut Place> {
        self.places.get_mut(connection.checked_sub(self.first)? as usize)
    }

    /// The flow that a connection is of.
    #[cold]
    #[inline(never)]
    pub(crate) fn flow_of(&self, connection: u32) -> usize {
        self.places[(connection - self.first) as usize].flow as usize
    }

    pub(crate) fn connected(&mut self, flow: u32) {
        self.places.push(Place { flow, row: None });
    }

    pub(crate) fn asked(&mut self, now_s: f64, connection: u32, bytes: u64) {
        let row = self.table.start_s.len() as u32;
        let number = connection.wrapping_sub(self.first);
        let Some(place) = self.place(connection) else { return };
        let first = place.row.is_none();
        place.row = Some(row);
        let flow = place.flow;
        let least = self.least[flow as usize].and_then(|least| least.completion_s(bytes, first));
        self.table.push(now_s, flow, number, bytes, least.unwrap_or(f64::NAN));
    }

    /// Packets of a connection were sent again.
    #[cold]
    pub(crate) fn repeated(&mut self, connection: u32, packets: u32) {
        let row = self.place(connection).and_then(|place| place.row);
        if let Some(row) = row {
            self.table.retransmitted_packets[row as usize] += packets;
        }
    }

    /// The transfer that a connection was asked for last is over, unless it was before.
    pub(crate) fn ended(&mut self, connection: u32, after: Span) {
        let row = self.place(connection).and_then(|place| place.row);
        if let Some(row) = row {
            self.table.end(row as usize, seconds(after.as_ns()));
        }
    }
}
