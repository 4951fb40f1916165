//! A sink that keeps the books of a run and says whether they balance.

use jostle_congestion::CwndReductionBy;
use jostle_controllers::registry;
use jostle_controllers::slow_start::Standard;
use jostle_link::DropReason;
use jostle_link::queue::CAKE_MEMORY_MAX_BYTES;
use jostle_link::registry::queue as queue_row;
use jostle_metrics::{AckEvent, EndpointRole, EventSink, FlowState, HeaderKind, SegmentHeader};
use jostle_registry::ParameterType;
use jostle_run_spec::{
    FlowSpec, LinkPart, LinkSpec, Quantity, QueueLimit, ReceiverSpec, RunSpec, SourceSpec,
    Transport,
};
use jostle_units::{
    ConnectionId, DATAGRAM_HEADER_BYTES, FlowId, HEADER_BYTES, LINK_HEADER_BYTES, LinkId,
    RandomStream, Span, Time, mss_of,
};

/// Allowance beyond cwnd for what is in flight: a loss probe, and what F-RTO may send.
const FLIGHT_ALLOWANCE_PACKETS: u64 = 3;
/// `TCP_RTO_MAX`, to which timeouts and probes of the window back off, and some for what applications
/// wait.
const LONGEST_SILENCE: Span = Span::from_secs(130);
/// When SYNs are repeated, after the flow's start.
const SYNS_S: [u64; 7] = [0, 1, 3, 7, 15, 31, 63];

/// What is in flight after an ACK.
#[derive(Clone, Copy, Debug)]
struct Flight {
    cwnd_bytes: u64,
    in_flight_bytes: u64,
    /// Sent so far.
    sent_bytes: u64,
}

impl Flight {
    fn of(row: &AckEvent, sent_bytes: u64) -> Self {
        Self { cwnd_bytes: row.cwnd_bytes, in_flight_bytes: row.in_flight_bytes, sent_bytes }
    }

    /// Whether between this and `next` more was sent than the window allowed. It may have shrunk
    /// below what is in flight, and a loss probe of `probe_bytes` may be sent beyond that; and an
    /// undo, which takes back marks of loss, may bring into flight what nobody sent.
    fn is_overfilled_by(self, next: Self, probe_bytes: u64, allowance_bytes: u64) -> bool {
        let allowed = (next.cwnd_bytes + allowance_bytes)
            .max(self.cwnd_bytes + allowance_bytes)
            .max(self.in_flight_bytes + probe_bytes);
        let sent_bytes = next.sent_bytes - self.sent_bytes;
        let undone = next.in_flight_bytes > self.in_flight_bytes + sent_bytes;
        next.in_flight_bytes > allowed && !undone
    }
}

#[derive(Clone, Debug, Default)]
struct Flow {
    start: Time,
    /// The flow whose completion it waits for, and how long it waits afterwards.
    after: Option<FlowId>,
    wait: Span,
    forward: Vec<LinkId>,
    /// Payload of a full-sized segment, or of a datagram as long as no larger one is known to arrive.
    mss_bytes: u64,
    /// Sizes that a packet has on the wire, and how much of it at least is no payload.
    wire_bytes: (u64, u64),
    header_bytes: u64,
    acks_packets: bool,
    /// Its receiver acknowledges what never comes.
    acks_anything: bool,
    size_bytes: Option<u64>,
    /// Its window changes with ACKs and timeouts only, so that it is known at every ACK.
    window_based: bool,
    latest: Time,
    first_sent: Option<Time>,
    last_sent: Time,
    sent_packets: u64,
    sent_bytes: u64,
    received_packets: u64,
    received_bytes: u64,
    dropped_packets: u64,
    /// Copies that links made.
    duplicated_packets: u64,
    delivered_bytes: u64,
    acked_bytes: u64,
    /// Unknown before the first ACK, which may be what makes the window smaller.
    flight: Option<Flight>,
    /// A loss probe has left since the window shrank below what was in flight.
    probed: bool,
    completions: u64,
    completed: Option<Time>,
}

impl Flow {
    /// SYNs that may still be on their way when the first data leave: none that was sent counts
    /// as data, but all that are dropped do.
    fn stray_syns(&self) -> u64 {
        let since = self.first_sent.unwrap_or(Time::NEVER).since(self.start);
        SYNS_S.iter().filter(|&&s| s > 0 && Span::from_secs(s) <= since).count() as u64
    }
}

#[derive(Clone, Debug)]
struct Link {
    limit: QueueLimit,
    latest: Time,
}

/// The books of one run. The first thing that is wrong stays.
#[derive(Clone, Debug)]
pub struct Ledger {
    flows: Vec<Flow>,
    links: Vec<Link>,
    error: Option<String>,
}

impl Ledger {
    pub fn new(spec: &RunSpec) -> Self {
        let flows = spec.flows.iter().map(|flow| Flow {
            start: Time::from_ns(flow.start_ns),
            after: flow.after,
            wait: Span::from_ns(flow.start_ns),
            forward: flow.paths().flatten().copied().collect(),
            mss_bytes: match (&flow.quic, flow.transport) {
                (_, Transport::Udp) => 0,
                (None, _) => u64::from(mss_of(flow.mtu_bytes)),
                (Some(quic), _) => u64::from(quic.initial_mtu_bytes),
            },
            // A TCP's window probe is empty, and of the first packets of a burst none is.
            wire_bytes: (
                u64::from(if flow.quic.is_some() { 60 } else { HEADER_BYTES + 1 }),
                u64::from(flow.mtu_bytes + LINK_HEADER_BYTES),
            ),
            header_bytes: match flow.transport {
                Transport::Tcp => u64::from(HEADER_BYTES),
                Transport::Quic | Transport::Udp => {
                    u64::from(LINK_HEADER_BYTES + DATAGRAM_HEADER_BYTES)
                }
            },
            acks_packets: flow.quic.is_some(),
            acks_anything: matches!(flow.receiver, Some(ReceiverSpec::OptimisticAcking { .. })),
            size_bytes: size(&flow.source),
            // RFC 9002 §7.5: "Probe packets MUST NOT be blocked by the congestion controller", and they
            // count as in flight: after some timeouts there may be many.
            window_based: flow.transport == Transport::Tcp && window_based(flow),
            ..Flow::default()
        });
        let links = spec
            .links
            .iter()
            .map(|link| Link { limit: most_on(link, spec.flows.len()), latest: Time::ZERO });
        Self { flows: flows.collect(), links: links.collect(), error: None }
    }

    fn wrong(&mut self, what: impl FnOnce() -> String) {
        if self.error.is_none() {
            self.error = Some(what());
        }
    }

    /// The books of a flow, for which time never goes back.
    fn at(&mut self, now: Time, flow: ConnectionId, what: &str) -> &mut Flow {
        let latest = self.flows[flow.index()].latest;
        if now < latest {
            self.wrong(|| format!("flow {flow}: {what} at {now} after {latest}"));
        }
        let books = &mut self.flows[flow.index()];
        books.latest = now;
        books
    }

    /// Nothing may arrive or get lost that was not sent.
    fn balance(&mut self, flow: ConnectionId) {
        let books = &self.flows[flow.index()];
        let gone = books.received_packets + books.dropped_packets;
        if gone > books.sent_packets + books.duplicated_packets + books.stray_syns() {
            let books = books.clone();
            self.wrong(|| format!("flow {flow}: more is gone than was sent: {books:?}"));
        }
    }

    /// When the last packet was sent.
    pub fn last_sent(&self) -> Time {
        self.flows.iter().map(|flow| flow.last_sent).max().unwrap_or(Time::ZERO)
    }

    /// Checks what must hold at the end. `drained`: nothing is on its way any more.
    pub fn close(mut self, drained: bool) -> Result<Self, String> {
        for i in 0..self.flows.len() {
            let flow = self.flows[i].clone();
            let gone = flow.received_packets + flow.dropped_packets;
            let wrong = if flow.completions > 1 {
                Some("completed more than once")
            } else if flow.size_bytes.is_some_and(|size| flow.delivered_bytes > size) {
                Some("more was delivered than written")
            } else if flow.completions == 1
                && !flow.acks_anything
                && flow.size_bytes != Some(flow.delivered_bytes)
            {
                Some("completed without all its data")
            } else if drained && gone < flow.sent_packets + flow.duplicated_packets {
                Some("packets are missing at the end")
            } else {
                None
            };
            if let Some(what) = wrong {
                self.wrong(|| format!("flow {i}: {what}: {flow:?}"));
            }
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    /// A flow that has not completed and has sent nothing for longer than any timer waits.
    pub fn silent_since(&self, end: Time) -> Option<(usize, Time)> {
        self.flows.iter().enumerate().find_map(|(i, flow)| {
            let unfinished = flow.size_bytes.is_some() && flow.completions == 0;
            let connected = flow.first_sent.is_some();
            let silent = flow.last_sent + LONGEST_SILENCE < end;
            (unfinished && connected && silent).then_some((i, flow.last_sent))
        })
    }

    pub fn sent_packets(&self) -> u64 {
        self.flows.iter().map(|flow| flow.sent_packets).sum()
    }

    pub fn dropped_packets(&self) -> u64 {
        self.flows.iter().map(|flow| flow.dropped_packets).sum()
    }

    /// Whether every flow that sends a known amount has reported that it is done.
    pub fn all_completed(&self) -> bool {
        self.flows.iter().all(|flow| flow.size_bytes.is_none() || flow.completions == 1)
    }
}

/// What may wait on a link: in its queue, and an ACK of every flow that is held before it.
fn most_on(link: &LinkSpec, flows: usize) -> QueueLimit {
    let held = if link.ack_thinning.is_some() { flows as u64 } else { 0 };
    match limit(&link.queue, flows) {
        QueueLimit::Packets(packets) => QueueLimit::Packets(packets + held),
        QueueLimit::Bytes(bytes) => QueueLimit::Bytes(bytes + held * u64::from(HEADER_BYTES)),
    }
}

/// What a queue holds at most.
fn limit(queue: &LinkPart, flows: usize) -> QueueLimit {
    let row = queue_row::<()>(&queue.kind).unwrap();
    let values = row.resolve(&queue.parameters).unwrap();
    let Some(parameter) = row.entry.parameters.iter().find(|it| it.name == "limit") else {
        // CAKE's packets occupy more memory than their bytes.
        return QueueLimit::Bytes(match values.amount("memory_limit") {
            0 => CAKE_MEMORY_MAX_BYTES,
            bytes => bytes,
        });
    };
    match parameter.kind {
        // Every flow has a queue of its own.
        ParameterType::Limit { .. } if row.entry.class == "classful" => match values.limit("limit")
        {
            QueueLimit::Packets(packets) => QueueLimit::Packets(packets * flows as u64),
            QueueLimit::Bytes(bytes) => QueueLimit::Bytes(bytes * flows as u64),
        },
        ParameterType::Limit { .. } => values.limit("limit"),
        // FQ-CoDel takes the packet in and then makes room for it.
        // Buffers of data packets, the smallest of which has 34 bytes of payload.
        _ if row.entry.name == "pfifo_gro" => {
            let packets = u64::from(values.u32("gro_max_size")) / 34;
            QueueLimit::Packets(values.amount("limit") * packets)
        }
        _ => QueueLimit::Packets(values.amount("limit")),
    }
}

fn window_based(flow: &FlowSpec) -> bool {
    let row = registry::controller(&flow.controller.name).unwrap();
    let random = RandomStream::new(0, "unused");
    let controller = row.create(&flow.controller.parameters, Box::new(Standard), random).unwrap();
    // SUSS wakes up between ACKs to open the window, and paced chirping opens it with each packet.
    let opens_between_acks = flow
        .slow_start
        .as_ref()
        .is_some_and(|it| matches!(it.name.as_str(), "suss" | "paced-chirping"));
    controller.recovery_owner() == CwndReductionBy::Transport && !opens_between_acks
}

/// What an application sends in all, if that is known.
fn size(source: &SourceSpec) -> Option<u64> {
    match source {
        SourceSpec::Fixed { bytes: Quantity::Constant(bytes) } => Some(*bytes),
        SourceSpec::RequestResponse {
            bytes: Quantity::Constant(bytes),
            count: Some(Quantity::Constant(count)),
            ..
        } => Some(count * bytes),
        _ => None,
    }
}

impl EventSink for Ledger {
    fn opened(&mut self, now: Time, flow: FlowId) {
        let books = self.at(now, flow.into(), "opened");
        let (start, wait, after) = (books.start, books.wait, books.after);
        let due = match after {
            None => Some(start),
            Some(after) => self.flows[after.index()].completed.map(|completed| completed + wait),
        };
        if due != Some(now) {
            self.wrong(|| format!("flow {flow}: opened at {now} instead of {due:?}"));
        }
        self.flows[flow.index()].start = now;
    }

    fn wants_segments(&self) -> bool {
        true
    }

    /// The last ACK of a handshake leaves with the first data, but only this tells of it.
    fn segment(&mut self, now: Time, it: ConnectionId, end: EndpointRole, header: &SegmentHeader) {
        if header.kind != HeaderKind::HandshakeAck {
            return;
        }
        match end {
            EndpointRole::Sender => self.sent(now, it, 1, HEADER_BYTES.into(), false),
            EndpointRole::Receiver => self.received(now, it, HEADER_BYTES),
        }
    }

    fn sent(&mut self, now: Time, flow: ConnectionId, packets: u32, wire_bytes: u64, _: bool) {
        let books = self.at(now, flow, "sent");
        books.first_sent.get_or_insert(now);
        books.last_sent = now;
        books.sent_packets += u64::from(packets);
        books.sent_bytes += wire_bytes;
        let least = u64::from(packets) * books.wire_bytes.0 - 1;
        let most = u64::from(packets) * books.wire_bytes.1;
        if !(least..=most).contains(&wire_bytes) {
            self.wrong(|| format!("flow {flow}: {packets} packets of {wire_bytes} bytes"));
        }
    }

    fn options_sent(&mut self, now: Time, flow: ConnectionId, bytes: u32) {
        self.at(now, flow, "options_sent").sent_bytes += u64::from(bytes);
    }

    fn received(&mut self, now: Time, flow: ConnectionId, wire_bytes: u32) {
        let books = self.at(now, flow, "received");
        books.received_packets += 1;
        books.received_bytes += u64::from(wire_bytes);
        if books.received_bytes > books.sent_bytes + books.duplicated_packets * books.wire_bytes.1 {
            self.wrong(|| format!("flow {flow}: more bytes received than sent"));
        }
        self.balance(flow);
    }

    fn delivered(&mut self, now: Time, flow: ConnectionId, payload_bytes: u64) {
        let books = self.at(now, flow, "delivered");
        books.delivered_bytes += payload_bytes;
        let headers = books.received_packets * books.header_bytes;
        if books.delivered_bytes + headers > books.received_bytes {
            self.wrong(|| format!("flow {flow}: more payload delivered than received"));
        }
        if payload_bytes == 0 {
            self.wrong(|| format!("flow {flow}: nothing was delivered"));
        }
    }

    fn acked(&mut self, now: Time, flow: ConnectionId, row: &AckEvent) {
        let books = self.at(now, flow, "acked");
        let before = std::mem::replace(&mut books.acked_bytes, row.acked_bytes);
        let flight = Flight::of(row, books.sent_bytes);
        let before_it = books.flight.replace(flight);
        let allowance_bytes = FLIGHT_ALLOWANCE_PACKETS * books.mss_bytes;
        let beyond = |probe_bytes| {
            before_it.is_some_and(|it| it.is_overfilled_by(flight, probe_bytes, allowance_bytes))
        };
        let overfull = beyond(if books.probed { 0 } else { books.mss_bytes });
        let fits = row.in_flight_bytes <= row.cwnd_bytes + allowance_bytes;
        books.probed = !fits && (books.probed || beyond(0));
        // QUIC acknowledges packets, whatever of their streams is missing before them.
        let delivered =
            if books.acks_packets { books.received_bytes } else { books.delivered_bytes };
        let delivered = if books.acks_anything { u64::MAX } else { delivered };
        if row.acked_bytes < before || row.acked_bytes > delivered {
            let now_acked = row.acked_bytes;
            self.wrong(|| {
                format!("flow {flow}: {now_acked} acked after {before}, {delivered} delivered")
            });
        }
        if overfull && self.flows[flow.index()].window_based {
            self.wrong(|| format!("flow {flow}: {row:?} at {now} after {before_it:?}"));
        }
    }

    fn flow_completed(&mut self, now: Time, flow: ConnectionId, after: Span) {
        let books = self.at(now, flow, "completed");
        books.completions += 1;
        books.completed = Some(now);
        if books.start + after != now {
            self.wrong(|| format!("flow {flow}: completed at {now}, told {after}"));
        }
    }

    fn queue_changed(&mut self, now: Time, link: LinkId, bytes: u64, packets: u64) {
        let Link { limit, latest } = self.links[link.index()];
        if now < latest {
            self.wrong(|| format!("link {link}: its queue changed at {now} after {latest}"));
        }
        self.links[link.index()].latest = now;
        let fits = match limit {
            QueueLimit::Bytes(most) => bytes <= most,
            QueueLimit::Packets(most) => packets <= most,
        };
        if !fits || (bytes == 0) != (packets == 0) {
            self.wrong(|| format!("link {link}: {packets} packets of {bytes} bytes wait"));
        }
    }

    fn dropped(
        &mut self,
        now: Time,
        link: LinkId,
        flow: ConnectionId,
        reason: DropReason,
        _queued_bytes: u32,
    ) {
        let latest = self.links[link.index()].latest;
        if now < latest {
            self.wrong(|| format!("link {link}: dropped at {now} after {latest}"));
        }
        // Losses on the way are told early, when sending starts, with the time of its end.
        if !reason.is_after_queue() {
            self.links[link.index()].latest = now;
        }
        let books = &mut self.flows[flow.index()];
        // Neither ACKs nor the handshake are told as sent.
        if books.forward.contains(&link) && books.first_sent.is_some() {
            books.dropped_packets += 1;
            self.balance(flow);
        }
    }

    fn duplicated(&mut self, _: Time, link: LinkId, connection: ConnectionId) {
        let books = &mut self.flows[connection.index()];
        if books.forward.contains(&link) && books.first_sent.is_some() {
            books.duplicated_packets += 1;
        }
    }

    fn flow_state(&mut self, now: Time, flow: FlowId, state: &FlowState) {
        let mss_bytes = self.at(now, flow.into(), "shown").mss_bytes;
        if state.cwnd_bytes < mss_bytes {
            self.wrong(|| format!("flow {flow}: a window of {} bytes", state.cwnd_bytes));
        }
    }
}
