//! Log of the transfers of multi-connection flows.

use jostle_units::{ConnectionId, FlowId, LinkId, Span};

use crate::tables::{TransferTable, seconds};
use jostle_run_spec::wire_bytes;
use jostle_run_spec::{ConstantService, FlowSpec, LinkSpec, RunSpec, SourceSpec};

/// Minimum duration of a flow's transfers on an empty path.
#[derive(Clone, Copy, Debug)]
struct Least {
    /// Base RTT, and the one-way delay of the data path.
    rtt_ns: u64,
    one_way_ns: u64,
    /// Time of the first handshake: one RTT, or 0 with 0-RTT.
    handshake_ns: u64,
    /// Service of the slowest link; `None` if its rate or the flow's route varies.
    service: Option<ConstantService>,
    mtu_bytes: u32,
    /// A transfer completes on arrival, not when the last ACK returns.
    is_asked: bool,
}

impl Least {
    fn of(spec: &RunSpec, flow: &FlowSpec, services: &[Option<ConstantService>]) -> Self {
        let delay_ns = |links: &[LinkId]| -> u64 {
            let delays = links.iter().map(|link| &spec.links[link.index()].delay.steps);
            delays.filter_map(|steps| Some(steps.first()?.delay_ns)).sum()
        };
        let one_way_ns = delay_ns(&flow.path);
        let crossed: Option<Vec<_>> = flow.path.iter().map(|link| services[link.index()]).collect();
        let rtt_ns = one_way_ns + delay_ns(&flow.reverse_path) + flow.base_delay_ns;
        Self {
            rtt_ns,
            handshake_ns: if flow.skips_handshake() { 0 } else { rtt_ns },
            one_way_ns,
            service: crossed
                .filter(|_| flow.routes.is_empty())
                .and_then(|crossed| crossed.into_iter().min_by_key(|service| service.rate_bps)),
            mtu_bytes: flow.mtu_bytes,
            is_asked: matches!(flow.source, SourceSpec::RequestResponse { .. }),
        }
    }

    /// Returns the minimum completion time: the handshake for the first transfer of a connection,
    /// all packets at the rate of the slowest link, the one-way delay, and the last ACK if it
    /// counts.
    fn completion_time_s(&self, bytes: u64, first: bool) -> Option<f64> {
        let wire_bytes = wire_bytes(bytes, self.mtu_bytes) as f64;
        let sending_s = self.service?.shortest_time_s(wire_bytes);
        let handshake_ns = if first { self.handshake_ns } else { 0 };
        let way_ns = if self.is_asked { self.one_way_ns } else { self.rtt_ns };
        Some(sending_s + seconds(handshake_ns + way_ns))
    }
}

/// Flow and latest transfer of a connection.
#[derive(Clone, Copy, Debug)]
struct ConnectionState {
    flow: FlowId,
    /// Row of the latest transfer.
    row: Option<u32>,
}

/// Connections of the multi-connection flows of a run, and their transfers.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    /// Number of the first connection.
    first: ConnectionId,
    states: Vec<ConnectionState>,
    least: Vec<Option<Least>>,
    pub table: TransferTable,
}

impl Connections {
    pub(crate) fn new(spec: &RunSpec) -> Self {
        let services: Vec<_> = spec.links.iter().map(LinkSpec::constant_service).collect();
        let least =
            |flow: &FlowSpec| flow.arrivals.as_ref().map(|_| Least::of(spec, flow, &services));
        Self {
            first: ConnectionId::at(spec.flows.len()),
            states: Vec::new(),
            least: spec.flows.iter().map(least).collect(),
            table: TransferTable::default(),
        }
    }

    fn state(&mut self, connection: ConnectionId) -> Option<&mut ConnectionState> {
        self.states.get_mut(connection.index().checked_sub(self.first.index())?)
    }

    /// Returns the flow that owns a connection.
    #[cold]
    #[inline(never)]
    pub(crate) fn flow_of(&self, connection: ConnectionId) -> FlowId {
        self.states[connection.index() - self.first.index()].flow
    }

    pub(crate) fn connected(&mut self, flow: FlowId) {
        self.states.push(ConnectionState { flow, row: None });
    }

    pub(crate) fn requested(&mut self, now_s: f64, connection: ConnectionId, bytes: u64) {
        let row = self.table.start_s.len() as u32;
        let number = connection.0.wrapping_sub(self.first.0);
        let Some(state) = self.state(connection) else { return };
        let first = state.row.is_none();
        state.row = Some(row);
        let flow = state.flow;
        let least =
            self.least[flow.index()].and_then(|least| least.completion_time_s(bytes, first));
        self.table.push(now_s, flow, number, bytes, least.unwrap_or(f64::NAN));
    }

    /// Adds retransmissions to the latest transfer of a connection.
    #[cold]
    pub(crate) fn repeated(&mut self, connection: ConnectionId, packets: u32) {
        let row = self.state(connection).and_then(|state| state.row);
        if let Some(row) = row {
            self.table.retransmitted_packets[row as usize] += packets;
        }
    }

    /// Completes the latest transfer of a connection, if it is not complete yet.
    pub(crate) fn ended(&mut self, connection: ConnectionId, after: Span) {
        let row = self.state(connection).and_then(|state| state.row);
        if let Some(row) = row {
            self.table.end(row as usize, seconds(after.as_ns()));
        }
    }
}
