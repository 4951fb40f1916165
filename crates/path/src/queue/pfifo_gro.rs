//! First in, first out, limited in socket buffers on a node whose card puts packets together.
//!
//! `txqueuelen` and `limit` of `pfifo` count socket buffers (skbs). On a Linux node that forwards,
//! generic receive offload (GRO, `net/core/gro.c`) has put packets of one flow that came in one poll
//! of the card into one buffer, which waits, and is dropped, as a whole; the card that sends takes
//! it apart again. So a queue of 1000 holds more than 1000 packets, the more so the larger the
//! senders' bursts are.
//!
//! # The model
//! - A poll collects what has come since the interrupt, which the card holds back (`ethtool -C`,
//!   `rx-usecs`): packets of a flow join the buffer that its first packet opened up to `coalesce`
//!   before, whatever other flows send in between (`gro_list` has a place for each flow).
//! - A buffer takes packets of the size of its first and at last a smaller one, which closes it
//!   (`tcp_gro_receive`), as long as it stays below `gro_max_size`, headers counted once
//!   (`skb_gro_receive`), and as the ECN field is the same (`inet_gro_receive`).
//! - What has no payload is never put together. Payloads are not known here: packets below 100 bytes
//!   are taken for ACKs (94 is the longest; data that short comes at the end of a message alone).
//! - A buffer that finds the queue full is dropped, with all packets that would have joined it.
//! - A buffer counts until its first packet is sent: the rest is in the card's ring, as a buffer is
//!   that the card takes apart.
//!
//! # What it leaves out
//! - Packets keep their order of arrival, and none waits for the interrupt. In Linux a buffer's packets
//!   leave back to back, and wait `coalesce` at most before they are queued.
//! - Buffers end early where a sequence number is not the next (after a loss), at PSH, and where more
//!   than eight flows share a hash bucket (`MAX_GRO_SKBS`); that is not seen here.
//! - When the queue is nearly empty a buffer may have begun to leave before its last packet has
//!   come: the rest is a new one.

use std::collections::VecDeque;

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{Ecn, HEADER_BYTES, LINK_HEADER_BYTES, Span, Time};

use super::QueueDiscipline;
use super::fifo::Backlog;
use crate::packet::{Fate, Packet, Reason};
use crate::parameters::{self, LARGEST_PACKETS, packets};
use crate::registry::{QueueRow, unrelated};

const ENTRY: Entry = Entry {
    name: "pfifo_gro",
    summary: "First in, first out, limited in socket buffers, into which the node's card puts \
              packets of a flow that come together (GRO)",
    class: "passive",
    based_on: &["drop_tail"],
    source: "Linux net/sched/sch_fifo.c (pfifo), net/core/gro.c, net/ipv4/tcp_offload.c",
    parameters: &[
        Parameter {
            name: "limit",
            summary: "most socket buffers that it holds, whatever is in them (txqueuelen)",
            kind: Kind::Packets { default: 1_000, min: 1, max: LARGEST_PACKETS },
        },
        // 20,000 interrupts a second, what Intel's drivers begin with (igb: IGB_20K_ITR) and go
        // below for bulk (IGB_4K_ITR).
        parameters::span(
            "coalesce",
            "for how long after a buffer's first packet those of its flow join it (rx-usecs)",
            50_000,
        ),
        // include/linux/netdevice.h: GRO_LEGACY_MAX_SIZE.
        Parameter {
            name: "gro_max_size",
            summary: "bytes that a buffer stays below, IP header included",
            kind: Kind::Size {
                default_bytes: Some(65_536),
                min_bytes: packets(1),
                max_bytes: 1 << 20,
            },
        },
    ],
};

/// Packets below this size have no payload.
const LEAST_DATA_BYTES: u32 = 100;

/// A queue that counts socket buffers.
#[derive(Debug)]
pub struct PfifoGro<B> {
    limit: u64,
    coalesce: Span,
    gro_max_bytes: u32,
    /// What waits, and whether it is the first of its buffer.
    waiting: VecDeque<(Packet<B>, bool)>,
    backlog: Backlog,
    /// Buffers that came in, and those whose first packet is gone. They leave in order.
    came: u64,
    left: u64,
    /// The latest buffer of each flow, by its number.
    open: Vec<Buffer>,
}

/// A buffer that a flow's next packets may join.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    until: Time,
    /// Size of its packets on the wire, and of itself without the link's header.
    packet_bytes: u32,
    bytes: u32,
    ecn: Ecn,
    /// Its number among those that came in; none if it found no room.
    number: Option<u64>,
}

/// A place for a flow that has none: nothing joins it.
const CLOSED: Buffer =
    Buffer { until: Time::ZERO, packet_bytes: 0, bytes: 0, ecn: Ecn::NotCapable, number: None };

impl<B: Send + 'static> PfifoGro<B> {
    pub(crate) const ROW: QueueRow<B> =
        QueueRow { entry: ENTRY, check: unrelated, build: |values, _| Box::new(Self::new(values)) };
}

impl<B> PfifoGro<B> {
    fn new(values: &Values) -> Self {
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

    /// The place of a flow's latest buffer.
    #[inline]
    fn buffer_of(&mut self, flow: u32) -> &mut Buffer {
        let place = flow as usize;
        if place >= self.open.len() {
            self.open.resize(place + 1, CLOSED);
        }
        &mut self.open[place]
    }

    /// Puts a packet into its flow's latest buffer if that can take it; says whether it is dropped
    /// with it.
    fn join(&mut self, now: Time, packet: &Packet<B>) -> Option<bool> {
        let (left, gro_max_bytes) = (self.left, self.gro_max_bytes);
        let buffer = self.buffer_of(packet.flow);
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
    }
}

impl<B: Send> QueueDiscipline<B> for PfifoGro<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        match self.join(now, &packet) {
            Some(true) => return fate.dropped(now, &packet, Reason::Overflow),
            Some(false) => return self.keep(packet, false),
            None => {}
        }
        let has_room = self.came - self.left < self.limit;
        let number = has_room.then_some(self.came);
        let until = now + self.coalesce;
        let Packet { flow, size_bytes, ecn, .. } = packet;
        let bytes = size_bytes.saturating_sub(LINK_HEADER_BYTES);
        let packet_bytes = if size_bytes < LEAST_DATA_BYTES { 0 } else { size_bytes };
        *self.buffer_of(flow) = Buffer { until, packet_bytes, bytes, ecn, number };
        if has_room {
            self.came += 1;
            self.keep(packet, true);
        } else {
            fate.dropped(now, &packet, Reason::Overflow);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn Fate<B>) -> Option<Packet<B>> {
        let (packet, first) = self.waiting.pop_front()?;
        self.left += u64::from(first);
        self.backlog.remove(packet.size_bytes);
        Some(packet)
    }

    fn bytes(&self) -> u64 {
        self.backlog.bytes
    }

    fn packets(&self) -> u64 {
        self.backlog.packets
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jostle_catalogue::Value;
    use jostle_units::{FULL_PACKET_BYTES, Stream};

    use super::super::testing::{Fates, packet};
    use super::*;

    fn queue(limit: i64) -> PfifoGro<()> {
        let given = BTreeMap::from([("limit".to_owned(), Value::Integer(limit))]);
        PfifoGro::new(&ENTRY.resolve(&given).unwrap())
    }

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn of(flow: u32, size_bytes: u32) -> Packet<()> {
        Packet { flow, ..packet(size_bytes) }
    }

    /// Buffers that wait after packets of flows and sizes came at the given microseconds.
    fn buffers(list: &[(u64, u32, u32)]) -> u64 {
        let (mut queue, mut fates) = (queue(1_000), Fates::default());
        for (at, flow, size_bytes) in list {
            queue.enqueue(us(*at), of(*flow, *size_bytes), &mut fates);
        }
        assert!(fates.dropped.is_empty());
        assert_eq!(queue.packets(), list.len() as u64);
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
        let (mut queue, mut fates) = (queue(10), Fates::default());
        for ecn in [Ecn::Capable, Ecn::Capable, Ecn::Marked, Ecn::Marked] {
            queue.enqueue(us(0), Packet { ecn, ..packet(FULL) }, &mut fates);
        }
        assert_eq!(queue.came, 2);
    }

    #[test]
    fn what_finds_no_room_is_dropped_as_a_whole() {
        let (mut queue, mut fates) = (queue(1), Fates::default());
        for flow in [0, 1, 0, 1, 1] {
            queue.enqueue(us(0), of(flow, FULL), &mut fates);
        }
        assert_eq!((queue.packets(), fates.dropped.len()), (2, 3));
        // The buffer of flow 0 has left with its first packet, and there is room; but what belongs
        // to a buffer that was dropped is gone.
        queue.dequeue(us(10), &mut fates).unwrap();
        queue.enqueue(us(20), of(1, FULL), &mut fates);
        assert_eq!((queue.packets(), fates.dropped.len()), (1, 4));
        queue.enqueue(us(60), of(1, FULL), &mut fates);
        assert_eq!((queue.packets(), fates.dropped.len()), (2, 4));
    }

    #[test]
    fn nothing_joins_a_buffer_that_is_leaving() {
        let (mut queue, mut fates) = (queue(10), Fates::default());
        queue.enqueue(us(0), of(0, FULL), &mut fates);
        queue.enqueue(us(1), of(0, FULL), &mut fates);
        queue.dequeue(us(2), &mut fates).unwrap();
        assert_eq!((queue.packets(), queue.came - queue.left), (1, 0));
        queue.enqueue(us(3), of(0, FULL), &mut fates);
        assert_eq!((queue.packets(), queue.came - queue.left), (2, 1));
    }

    /// Any sequence: what is in a buffer is of one flow and came in one poll, no buffer that could
    /// have taken a packet was passed over, and there are never more than the limit.
    #[test]
    fn buffers_are_what_their_packets_say() {
        for seed in 0..200 {
            let mut random = Stream::new(seed, "gro");
            let (mut queue, mut fates) = (queue(8), Fates::default());
            // Flow, time of the first packet, packets, and whether any of them has left.
            let mut listed: Vec<(u32, Time, u64, bool)> = Vec::new();
            let mut now = Time::ZERO;
            for _ in 0..2_000 {
                now += Span::from_us(random.below(20));
                if random.chance(0.4) {
                    if let Some((first, gone)) =
                        queue.waiting.front().map(|(p, _)| (p.flow, p.queued_at))
                    {
                        let taken = queue.dequeue(now, &mut fates).unwrap();
                        assert_eq!((taken.flow, taken.queued_at), (first, gone));
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
