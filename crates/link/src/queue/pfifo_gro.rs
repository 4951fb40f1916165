//! A FIFO queue whose limit counts socket buffers on a node with generic receive offload (GRO).
//!
//! `txqueuelen` and `limit` of `pfifo` count socket buffers (skbs). On a Linux node that forwards
//! packets, GRO (`net/core/gro.c`) merges packets of one flow that arrived in one poll of the
//! network card into one buffer. The buffer waits and is dropped as a unit; the sending card splits
//! it again. A queue of 1000 buffers therefore contains more than 1000 packets, and the larger the
//! senders' bursts are, the more.
//!
//! # The model
//! - A poll collects the packets since the interrupt, which the card delays (`ethtool -C`,
//!   `rx-usecs`). Packets of a flow join the buffer that its first packet opened up to `coalesce`
//!   before, regardless of packets of other flows in between (`gro_list` has an entry for each
//!   flow).
//! - A buffer accepts packets of the size of its first one and finally a smaller one, which closes
//!   it (`tcp_offload.c::tcp_gro_receive`), while its size is below `gro_max_size`, headers counted once
//!   (`gro.c::skb_gro_receive`), and while the ECN field is the same (`af_inet.c::inet_gro_receive`).
//! - Packets without payload are never merged. Payload sizes are not known here: packets below 100
//!   bytes are treated as ACKs (the longest has 94; data of that size occur only at the end of a
//!   message).
//! - A buffer that arrives at a full queue is dropped, with all packets that would have joined it.
//! - A buffer counts until its first packet is sent. The remaining packets are then in the card's
//!   ring, like a buffer that the card splits.
//!
//! # Limitations
//! - Packets keep their order of arrival and do not wait for the interrupt. In Linux the packets of
//!   a buffer leave back to back, and wait up to `coalesce` before they are queued.
//! - In Linux a buffer also ends at a gap in the sequence numbers (after a loss), at PSH, and if
//!   more than eight flows share a hash bucket (`MAX_GRO_SKBS`). This is not modelled.
//! - In a nearly empty queue a buffer may begin to leave before its last packet has arrived. The
//!   remaining packets then form a new buffer.

use std::collections::VecDeque;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{ConnectionId, Ecn, HEADER_BYTES, LINK_HEADER_BYTES, Span, Time};

use super::QueueDiscipline;
use super::fifo::Backlog;
use crate::packet::{DropReason, Packet, PacketOutcome};
use crate::parameters::{self, LARGEST_PACKETS, packets};
use crate::registry::{QueueEntry, unrelated};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "pfifo_gro",
    summary: "FIFO limited in socket buffers, into which the router's NIC merges packets of a \
        flow (GRO)",
    class: "passive",
    based_on: &["drop_tail"],
    source: "Linux net/sched/sch_fifo.c (pfifo), net/core/gro.c, net/ipv4/tcp_offload.c",
    parameters: &[
        Parameter::packets("limit", 1_000, 1..=LARGEST_PACKETS)
            .summary("largest number of socket buffers in the queue (txqueuelen)"),
        // 20,000 interrupts per second, the initial value of Intel's drivers (igb: IGB_20K_ITR);
        // for bulk traffic they use fewer (IGB_4K_ITR).
        parameters::span("coalesce", Span::from_us(50)).summary(
            "time after the first packet of a buffer in which packets of the flow are merged into \
             it (rx-usecs)",
        ),
        // include/linux/netdevice.h: GRO_LEGACY_MAX_SIZE.
        Parameter::size("gro_max_size", Some(65_536), packets(1)..=1 << 20)
            .summary("upper limit of a buffer's size in bytes, including IP headers"),
    ],
};

/// Packets below this size are treated as packets without payload.
const LEAST_DATA_BYTES: u32 = 100;

/// A queue whose limit counts socket buffers.
#[derive(Debug)]
pub struct PfifoGro<B> {
    limit: u64,
    coalesce: Span,
    gro_max_bytes: u32,
    /// Waiting packets, each with a flag for the first packet of its buffer.
    waiting: VecDeque<(Packet<B>, bool)>,
    backlog: Backlog,
    /// Number of buffers that arrived, and of those whose first packet has left. Buffers leave in
    /// order.
    came: u64,
    left: u64,
    /// Latest buffer of each flow, by flow number.
    open: Vec<Buffer>,
}

/// A buffer that later packets of its flow can join.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    until: Time,
    /// Size of its packets on the wire, and size of the buffer without the link header.
    packet_bytes: u32,
    bytes: u32,
    ecn: Ecn,
    /// Number of the buffer in order of arrival; `None` if it was dropped.
    number: Option<u64>,
}

/// Placeholder for a flow without a buffer; no packet can join it.
const CLOSED: Buffer =
    Buffer { until: Time::ZERO, packet_bytes: 0, bytes: 0, ecn: Ecn::NotCapable, number: None };

impl<B: Send + 'static> PfifoGro<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::new(values)),
    };
}

impl<B> PfifoGro<B> {
    fn new(values: &ParameterValues) -> Self {
        Self {
            limit: values.amount("limit"),
            coalesce: values.span("coalesce"),
            gro_max_bytes: values.u32("gro_max_size"),
            waiting: VecDeque::new(),
            backlog: Backlog::default(),
            came: 0,
            left: 0,
            open: Vec::new(),
        }
    }

    /// Returns the latest buffer of a flow.
    #[inline]
    fn buffer_of(&mut self, connection: ConnectionId) -> &mut Buffer {
        let index = connection.index();
        if index >= self.open.len() {
            self.open.resize(index + 1, CLOSED);
        }
        &mut self.open[index]
    }

    /// Adds a packet to its flow's latest buffer if possible. Returns whether the packet is dropped
    /// with that buffer, or `None` if it cannot join.
    fn join(&mut self, now: Time, packet: &Packet<B>) -> Option<bool> {
        let (left, gro_max_bytes) = (self.left, self.gro_max_bytes);
        let buffer = self.buffer_of(packet.connection);
        let payload_bytes = packet.size_bytes.saturating_sub(HEADER_BYTES);
        let fits = now <= buffer.until
            && buffer.packet_bytes >= packet.size_bytes
            && packet.size_bytes >= LEAST_DATA_BYTES
            && buffer.ecn == packet.ecn
            && buffer.bytes + payload_bytes < gro_max_bytes
            && buffer.number.is_none_or(|number| number >= left);
        if !fits {
            return None;
        }
        buffer.bytes += payload_bytes;
        if packet.size_bytes < buffer.packet_bytes {
            buffer.packet_bytes = 0;
        }
        Some(buffer.number.is_none())
    }

    #[inline]
    fn keep(&mut self, packet: Packet<B>, first: bool) {
        self.backlog.add(packet.size_bytes);
        self.waiting.push_back((packet, first));
        debug_assert_eq!(self.waiting.len() as u64, self.backlog.packets);
    }
}

impl<B: Send> QueueDiscipline<B> for PfifoGro<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        match self.join(now, &packet) {
            Some(true) => return outcome.dropped(now, &packet, DropReason::Overflow),
            Some(false) => return self.keep(packet, false),
            None => {}
        }
        let has_room = self.came - self.left < self.limit;
        let number = has_room.then_some(self.came);
        let until = now + self.coalesce;
        let Packet { connection, size_bytes, ecn, .. } = packet;
        let bytes = size_bytes.saturating_sub(LINK_HEADER_BYTES);
        let packet_bytes = if size_bytes < LEAST_DATA_BYTES { 0 } else { size_bytes };
        *self.buffer_of(connection) = Buffer { until, packet_bytes, bytes, ecn, number };
        if has_room {
            self.came += 1;
            self.keep(packet, true);
        } else {
            outcome.dropped(now, &packet, DropReason::Overflow);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        let (packet, first) = self.waiting.pop_front()?;
        self.left += u64::from(first);
        self.backlog.remove(packet.size_bytes);
        Some(packet)
    }

    fn backlog_bytes(&self) -> u64 {
        self.backlog.bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.backlog.packets
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jostle_registry::ParameterValue;
    use jostle_units::{FULL_PACKET_BYTES, RandomStream};

    use super::super::test_support::{RecordedOutcomes, packet};
    use super::*;

    fn queue(limit: i64) -> PfifoGro<()> {
        let given = BTreeMap::from([("limit".to_owned(), ParameterValue::Integer(limit))]);
        PfifoGro::new(&ENTRY.resolve(&given).unwrap())
    }

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn of(flow: u32, size_bytes: u32) -> Packet<()> {
        Packet { connection: ConnectionId(flow), ..packet(size_bytes) }
    }

    /// Buffers that wait after packets of flows and sizes came at the given microseconds.
    fn buffers(list: &[(u64, u32, u32)]) -> u64 {
        let (mut queue, mut fates) = (queue(1_000), RecordedOutcomes::default());
        for (at, flow, size_bytes) in list {
            queue.enqueue(us(*at), of(*flow, *size_bytes), &mut fates);
        }
        assert!(fates.dropped.is_empty());
        assert_eq!(queue.backlog_packets(), list.len() as u64);
        queue.came - queue.left
    }

    const FULL: u32 = FULL_PACKET_BYTES;

    #[test]
    fn packets_of_a_flow_in_one_poll_are_one_buffer() {
        assert_eq!(buffers(&[(0, 0, FULL), (12, 0, FULL), (50, 0, FULL)]), 1);
        // The poll begins with the first packet, not with the last.
        assert_eq!(buffers(&[(0, 0, FULL), (50, 0, FULL), (51, 0, FULL), (101, 0, FULL)]), 2);
        // Others in between do not matter.
        assert_eq!(buffers(&[(0, 0, FULL), (1, 1, FULL), (2, 0, FULL), (3, 1, FULL)]), 2);
    }

    #[test]
    fn a_smaller_packet_closes_a_buffer_and_a_larger_one_opens_one() {
        assert_eq!(buffers(&[(0, 0, FULL), (0, 0, 500), (0, 0, 500), (0, 0, 500)]), 2);
        assert_eq!(buffers(&[(0, 0, 500), (0, 0, FULL), (0, 0, FULL)]), 2);
    }

    #[test]
    fn acks_are_never_put_together() {
        assert_eq!(buffers(&[(0, 0, 66), (0, 0, 66), (0, 0, 78), (0, 0, 66)]), 4);
        // Nor does data join one.
        assert_eq!(buffers(&[(0, 0, 66), (0, 0, FULL), (0, 0, 66), (0, 0, FULL)]), 4);
    }

    #[test]
    fn a_buffer_holds_less_than_64_kib() {
        // 52 bytes of headers and 45 times 1448 of payload are 65,212 bytes; one more would be too much.
        assert_eq!(buffers(&[(0, 0, FULL); 45]), 1);
        assert_eq!(buffers(&[(0, 0, FULL); 46]), 2);
        assert_eq!(buffers(&[(0, 0, FULL); 91]), 3);
    }

    #[test]
    fn marks_are_kept_apart() {
        let (mut queue, mut fates) = (queue(10), RecordedOutcomes::default());
        for ecn in [Ecn::Capable, Ecn::Capable, Ecn::Marked, Ecn::Marked] {
            queue.enqueue(us(0), Packet { ecn, ..packet(FULL) }, &mut fates);
        }
        assert_eq!(queue.came, 2);
    }

    #[test]
    fn what_finds_no_room_is_dropped_as_a_whole() {
        let (mut queue, mut fates) = (queue(1), RecordedOutcomes::default());
        for flow in [0, 1, 0, 1, 1] {
            queue.enqueue(us(0), of(flow, FULL), &mut fates);
        }
        assert_eq!((queue.backlog_packets(), fates.dropped.len()), (2, 3));
        // The buffer of flow 0 has left with its first packet, and there is room; but what belongs
        // to a buffer that was dropped is gone.
        queue.dequeue(us(10), &mut fates).unwrap();
        queue.enqueue(us(20), of(1, FULL), &mut fates);
        assert_eq!((queue.backlog_packets(), fates.dropped.len()), (1, 4));
        queue.enqueue(us(60), of(1, FULL), &mut fates);
        assert_eq!((queue.backlog_packets(), fates.dropped.len()), (2, 4));
    }

    #[test]
    fn nothing_joins_a_buffer_that_is_leaving() {
        let (mut queue, mut fates) = (queue(10), RecordedOutcomes::default());
        queue.enqueue(us(0), of(0, FULL), &mut fates);
        queue.enqueue(us(1), of(0, FULL), &mut fates);
        queue.dequeue(us(2), &mut fates).unwrap();
        assert_eq!((queue.backlog_packets(), queue.came - queue.left), (1, 0));
        queue.enqueue(us(3), of(0, FULL), &mut fates);
        assert_eq!((queue.backlog_packets(), queue.came - queue.left), (2, 1));
    }

    /// Any sequence: what is in a buffer is of one flow and came in one poll, no buffer that could
    /// have taken a packet was passed over, and there are never more than the limit.
    #[test]
    fn buffers_are_what_their_packets_say() {
        for seed in 0..200 {
            let mut random = RandomStream::new(seed, "gro");
            let (mut queue, mut fates) = (queue(8), RecordedOutcomes::default());
            // Flow, time of the first packet, packets, and whether any of them has left.
            let mut listed: Vec<(u32, Time, u64, bool)> = Vec::new();
            let mut now = Time::ZERO;
            for _ in 0..2_000 {
                now += Span::from_us(random.below(20));
                if random.chance(0.4) {
                    if let Some((first, gone)) =
                        queue.waiting.front().map(|(p, _)| (p.connection.0, p.queued_at))
                    {
                        let taken = queue.dequeue(now, &mut fates).unwrap();
                        assert_eq!((taken.connection.0, taken.queued_at), (first, gone));
                        let owner = listed.iter_mut().find(|b| b.0 == first && b.2 > 0).unwrap();
                        owner.2 -= 1;
                        owner.3 = true;
                    }
                    continue;
                }
                let flow = random.below(3) as u32;
                let dropped = fates.dropped.len();
                let (came, latest) = (queue.came, listed.iter().rposition(|b| b.0 == flow));
                queue.enqueue(now, Packet { queued_at: now, ..of(flow, FULL) }, &mut fates);
                let held = listed.iter().filter(|b| b.2 > 0 && !b.3).count() as u64;
                if fates.dropped.len() > dropped {
                    // Full now, or when the buffer that it belongs to came.
                    let Some(open) = queue.open.get(flow as usize) else { panic!("seed {seed}") };
                    assert!(open.number.is_none() && now <= open.until, "seed {seed}");
                } else if queue.came > came {
                    assert!(held < 8, "seed {seed}");
                    listed.push((flow, now, 1, false));
                } else {
                    let buffer = &mut listed[latest.unwrap()];
                    assert!(now.since(buffer.1) <= Span::from_us(50) && !buffer.3, "seed {seed}");
                    buffer.2 += 1;
                }
                let held = listed.iter().filter(|b| b.2 > 0 && !b.3).count() as u64;
                assert_eq!(held, queue.came - queue.left, "seed {seed}");
            }
            assert!(listed.len() > 100 && !fates.dropped.is_empty(), "seed {seed}");
        }
    }
}
