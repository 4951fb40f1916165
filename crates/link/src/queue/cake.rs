//! CAKE (Høiland-Jørgensen, Täht and Morton, "Piece of CAKE: A Comprehensive Queue Management
//! Solution for Home Gateways", LANMAN 2018), as in Linux `net/sched/sch_cake.c`: a shaper
//! without bursts, tins by DSCP, flow isolation, and COBALT in each queue.
//!
//! Not implemented: `ingress`, `autorate-ingress` and `wash`.

mod ack_filter;
mod cobalt;
mod diffserv;
mod host_isolation;
mod memory;
mod set_associative_hash;
mod tin;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{ConnectionId, FlowId, LINK_HEADER_BYTES, RandomStream, Rate, Span, Time};

use super::{Backlog, CODEPOINTS, QueueDiscipline, mark};
use crate::framing::{Cells, Framing};
use crate::packet::{DropReason, Ecn, Packet, PacketOutcome};
use crate::parameters::{FASTEST, span};
use crate::registry::{QueueEntry, unrelated};
use crate::service_rate;
use crate::transport_headers::{FlowHosts, TransportHeader};
pub use memory::CAKE_MEMORY_MAX_BYTES;

use ack_filter::{Filter, superfluous};
use cobalt::CobaltAction;
use host_isolation::{Isolation, ends_of};
use tin::{Queue, Tin};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "cake",
    summary: "shaper and flow queueing with COBALT per queue, for home gateways",
    class: "fair",
    based_on: &["fq_codel"],
    source: "Høiland-Jørgensen et al. 2018; Linux net/sched/sch_cake.c",
    parameters: &[
        Parameter::rate("rate", Rate::ZERO, Rate::ZERO..=FASTEST)
            .summary("rate of the shaper; 0: no shaper"),
        Parameter::choice("diffserv", "besteffort", diffserv::MODES)
            .summary("tins by DSCP; besteffort: a single one"),
        Parameter::choice("isolation", "flows", host_isolation::MODES)
            .summary("flow and host isolation"),
        Parameter::choice("ack_filter", "none", &["none", "filter", "aggressive"])
            .summary("drop queued ACKs that later ones make redundant"),
        Parameter::integer("overhead", LINK_HEADER_BYTES as i64, -64..=256)
            .summary("bytes that the shaper adds to the IP packet; 14: the Ethernet header"),
        Parameter::integer("mpu", 0, 0..=256)
            .summary("smallest packet size that the shaper counts, including the overhead"),
        Parameter::choice("atm", "noatm", Cells::NAMES)
            .summary("cells that the shaper counts: of ATM, or the codewords of PTM"),
        span("rtt", Span::from_ms(100))
            .summary("typical RTT: COBALT's interval, 20 times its target"),
        Parameter::size("memory_limit", Some(0), 0..=memory::LARGEST_BYTES).summary(
            "largest kernel memory of all queues, more than the bytes of their packets; 0: the \
             default of tc, four `rtt` at `rate`, from 4 MiB to 15.5 MB",
        ),
    ],
};

/// Tins of queues behind a shaper.
#[derive(Debug)]
pub struct Cake<B> {
    /// `buffer_limit` and `buffer_used`.
    memory_limit_bytes: u64,
    memory_used_bytes: u64,
    isolation: Isolation,
    /// Hosts by flow number, if the isolation uses hosts.
    hosts: Vec<FlowHosts>,
    ack_filter: Option<Filter>,
    /// Size of packets for the shaper and for the shares of tins and flows.
    framing: Framing,
    shaper: Option<Shaper>,
    ready_at: Time,
    tins: Vec<Tin<B>>,
    /// Tin by codepoint.
    tin_index: [u8; CODEPOINTS],
    /// Tin whose turn it is, if there is no shaper.
    tin: usize,
    total: Backlog,
    random: RandomStream,
}

/// `sch_cake.c::cake_advance_shaper`: the time of the next departure advances by the duration of
/// each packet, not from its actual departure, so that delays are compensated without a token
/// bucket.
#[derive(Debug)]
struct Shaper {
    rate: Rate,
    next: Time,
    /// Like `next` at two thirds of the rate, counted only for packets that are sent.
    failsafe: Time,
}

impl Shaper {
    #[inline]
    fn ready_at(&self) -> Time {
        self.next.min(self.failsafe)
    }

    fn sent(&mut self, counted_bytes: u32) {
        let takes = self.rate.time_for(u64::from(counted_bytes));
        self.next += takes;
        self.failsafe += takes.mul_div(3, 2);
    }
}

impl<B: TransportHeader + Copy + Send + 'static> Cake<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, random| Box::new(Self::new(values, random)),
    };
}

impl<B> Cake<B> {
    fn new(values: &ParameterValues, random: RandomStream) -> Self {
        let rate = Some(values.rate("rate")).filter(|rate| rate.as_bps() > 0);
        let (isolation, rtt) = (Isolation::of(values.choice("isolation")), values.span("rtt"));
        let (tin_index, shares) = diffserv::tins(values.choice("diffserv"), rate);
        Self {
            memory_limit_bytes: memory::limit_bytes(values.amount("memory_limit"), rate, rtt),
            memory_used_bytes: 0,
            isolation,
            hosts: Vec::new(),
            ack_filter: match values.choice("ack_filter") {
                "filter" => Some(Filter::Filter),
                "aggressive" => Some(Filter::Aggressive),
                _ => None,
            },
            framing: Framing {
                overhead_bytes: values.integer("overhead") as i32,
                min_bytes: values.integer("mpu") as u32,
                cells: Cells::of(values.choice("atm")),
            },
            shaper: rate.map(|rate| Shaper { rate, next: Time::ZERO, failsafe: Time::ZERO }),
            ready_at: Time::NEVER,
            tins: shares.into_iter().map(|share| Tin::new(share, isolation, rtt)).collect(),
            tin_index,
            tin: 0,
            total: Backlog::default(),
            random,
        }
    }

    /// Returns the tin and the queue of a packet.
    fn tin_and_queue_of(&mut self, packet: &Packet<B>) -> (usize, usize)
    where
        B: TransportHeader,
    {
        let ends = match self.isolation.knows_hosts() {
            true => ends_of(packet, &self.hosts),
            false => [0; 2],
        };
        let tin = usize::from(self.tin_index[usize::from(packet.dscp) % CODEPOINTS]);
        let hash = self.isolation.hash(packet.connection, ends);
        (tin, self.tins[tin].index_of(hash, ends))
    }

    /// Drops the ACK that the newest ACK of a queue makes redundant.
    fn filter_acks(
        &mut self,
        now: Time,
        (tin, index): (usize, usize),
        filter: Filter,
        outcome: &mut dyn PacketOutcome<B>,
    ) where
        B: TransportHeader + Copy,
    {
        let packets = &mut self.tins[tin].queues[index].packets;
        let Some(position) = superfluous(packets, filter) else { return };
        if let Some(packet) = packets.remove(position) {
            self.tins[tin].remove(index, packet.size_bytes);
            self.remove(packet.size_bytes);
            outcome.dropped(now, &packet, DropReason::AckFilter);
        }
    }

    #[inline]
    fn take(&mut self, tin: usize, index: usize) -> Option<Packet<B>>
    where
        B: Copy,
    {
        let packet = self.tins[tin].take(index)?;
        self.remove(packet.size_bytes);
        Some(packet)
    }

    /// Counts a packet that left.
    #[inline]
    fn remove(&mut self, size_bytes: u32) {
        self.total.remove(size_bytes);
        self.memory_used_bytes -= memory::of_packet(size_bytes);
    }

    /// `sch_cake.c::cake_drop`: drops the oldest packet of the queue with the most bytes.
    #[cold]
    fn drop_from_fattest(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>)
    where
        B: Copy,
    {
        let (mut fattest, mut most_bytes) = ((0, 0), 0);
        for (tin, Tin { bytes, .. }) in self.tins.iter().enumerate() {
            for (index, bytes) in bytes.iter().enumerate() {
                if *bytes > most_bytes {
                    (fattest, most_bytes) = ((tin, index), *bytes);
                }
            }
        }
        let (tin, index) = fattest;
        let Tin { queues, parameters, .. } = &mut self.tins[tin];
        queues[index].cobalt.overflowed(parameters, now);
        if let Some(packet) = self.take(tin, index) {
            outcome.dropped(now, &packet, DropReason::Overflow);
        }
    }

    /// Returns the tin to serve. With a shaper: the last tin that is within its rate, else the one
    /// that is next within its rate. Without: the next one in deficit round robin.
    fn next_tin(&mut self, now: Time) -> Option<usize> {
        if self.tins.len() == 1 {
            return Some(0);
        }
        if self.shaper.is_none() {
            return self.next_tin_in_turn();
        }
        let mut best: Option<(usize, Time)> = None;
        for (index, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.is_active()) {
            if tin.next <= now || best.is_none_or(|(_, next)| tin.next <= next) {
                best = Some((index, tin.next));
            }
        }
        best.map(|(index, _)| index)
    }

    fn next_tin_in_turn(&mut self) -> Option<usize> {
        if !self.tins.iter().any(Tin::is_active) {
            return None;
        }
        loop {
            let tin = &mut self.tins[self.tin];
            if tin.tin_deficit_bytes >= 0 && tin.is_active() {
                return Some(self.tin);
            }
            if tin.tin_deficit_bytes <= 0 {
                tin.tin_deficit_bytes += tin.tin_quantum_bytes;
            }
            self.tin = (self.tin + 1) % self.tins.len();
        }
    }
}

impl<B: TransportHeader + Copy + Send> QueueDiscipline<B> for Cake<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        let (tin, index) = self.tin_and_queue_of(&packet);
        // An idle shaper does not accumulate credit, and neither does an idle tin.
        if self.tins[tin].backlog.packets == 0 {
            self.tins[tin].next = self.tins[tin].next.max(now);
        }
        if self.total.packets == 0
            && let Some(shaper) = &mut self.shaper
            && shaper.next < now
        {
            (shaper.next, shaper.failsafe) = (now, now);
        }
        self.total.add(packet.size_bytes);
        self.memory_used_bytes += memory::of_packet(packet.size_bytes);
        self.tins[tin].push(index, packet);
        if let Some(filter) = self.ack_filter {
            self.filter_acks(now, (tin, index), filter, outcome);
        }
        self.tins[tin].list(index, &mut self.random);
        while self.memory_used_bytes > self.memory_limit_bytes {
            self.drop_from_fattest(now, outcome);
        }
    }

    fn dequeue(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.ready_at = Time::NEVER;
        if self.total.packets == 0 {
            return None;
        }
        if let Some(shaper) = &self.shaper
            && shaper.ready_at() > now
        {
            self.ready_at = shaper.ready_at();
            return None;
        }
        let mut first = true;
        while self.total.packets > 0 {
            let tin = self.next_tin(now)?;
            let index = self.tins[tin].current(first, &mut self.random)?;
            first = false;
            while let Some(mut packet) = self.take(tin, index) {
                let Tin { queues, parameters, .. } = &mut self.tins[tin];
                let Queue { cobalt, packets, .. } = &mut queues[index];
                let waited = now.since(packet.queued_at);
                let capable = packet.ecn != Ecn::NotCapable;
                let verdict = cobalt.judge(parameters, now, waited, capable, &mut self.random);
                // The last packet of a queue is never dropped.
                if verdict == CobaltAction::Drop && !packets.is_empty() {
                    outcome.dropped(now, &packet, DropReason::Cobalt);
                    continue;
                }
                if verdict == CobaltAction::Mark && mark(&mut packet) {
                    outcome.marked(now, &packet, DropReason::Cobalt);
                }
                let counted_bytes = self.framing.wire_bytes(packet.size_bytes);
                if let Some(shaper) = &mut self.shaper {
                    shaper.sent(counted_bytes);
                }
                self.tins[tin].sent(now, counted_bytes);
                self.tins[tin].queues[index].deficit_bytes -= i64::from(counted_bytes);
                return Some(packet);
            }
            self.tins[tin].rest(index, now);
        }
        None
    }

    fn next_dequeue_time(&self) -> Time {
        self.ready_at
    }

    fn set_flow_hosts(&mut self, hosts: &[FlowHosts]) {
        if self.isolation.knows_hosts() {
            self.hosts = hosts.to_vec();
        }
    }

    fn register_connection(&mut self, connection: ConnectionId, flow: FlowId, is_opposite: bool) {
        if let Some(hosts) = self.hosts.get(flow.index()).copied() {
            let room = self.hosts.len().max(connection.index() + 1);
            self.hosts.resize(room, FlowHosts::default());
            let FlowHosts { sender, receiver } = hosts;
            self.hosts[connection.index()] = match is_opposite {
                false => hosts,
                true => FlowHosts { sender: receiver, receiver: sender },
            };
        }
    }

    fn shapers(&self) -> Vec<service_rate::Shaper> {
        let limit = |shaper: &Shaper| service_rate::Shaper {
            rate: shaper.rate,
            // The time of the next departure is behind while the link is slower.
            burst_bytes: None,
            framing: self.framing,
            delays: true,
        };
        self.shaper.iter().map(limit).collect()
    }

    fn backlog_bytes(&self) -> u64 {
        self.total.bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.total.packets
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tin_tests;
