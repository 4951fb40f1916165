//! CoDel (RFC 8289), with what Linux adds: ECN, and the guard on what is left in the queue
//! (`include/net/codel_impl.h`, `net/sched/sch_codel.c`). The square root of the control law is
//! computed here, approximated by Newton steps on 16 bits there.

use jostle_catalogue::{Entry, Limit, Parameter, Values};
use jostle_units::{FULL_PACKET_BYTES, Span, Time};

use super::{Fifo, QueueDiscipline, mark};
use crate::packet::{Fate, Packet, Reason};
use crate::parameters::{self, MS, span};
use crate::registry::{QueueRow, unrelated};

const ENTRY: Entry = Entry {
    name: "codel",
    summary: "Controlled delay: drops at the head while the delay stays above a target",
    class: "active",
    based_on: &["drop_tail"],
    source: "RFC 8289; Linux include/net/codel_impl.h, net/sched/sch_codel.c",
    parameters: &[parameters::limit(Some(1_000)), TARGET, INTERVAL, parameters::ecn(false)],
};

pub(super) const TARGET: Parameter = span("target", "acceptable standing delay", 5 * MS);
pub(super) const INTERVAL: Parameter =
    span("interval", "window in which the minimum delay must fall below the target", 100 * MS);

/// A queue under CoDel's control.
#[derive(Debug)]
pub struct Codel<B> {
    limit: Limit,
    law: Law,
    state: State,
    fifo: Fifo<B>,
}

/// What CoDel aims at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    pub target: Span,
    pub interval: Span,
    pub ecn: bool,
}

impl Law {
    pub fn new(values: &Values) -> Self {
        Self {
            target: values.span("target"),
            interval: values.span("interval"),
            ecn: values.bool("ecn"),
        }
    }

    /// RFC 8289, `control_law`: the time to the next drop shrinks in inverse proportion to the
    /// square root of the number of drops since the drop state was entered.
    fn next_drop(&self, after: Time, count: u32) -> Time {
        let gap_ns = self.interval.as_ns() as f64 / libm::sqrt(f64::from(count.max(1)));
        after + Span::from_ns(gap_ns as u64)
    }
}

/// What CoDel remembers of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// When the delay will have been above target for an interval; absent while it is below.
    first_above: Option<Time>,
    dropping: bool,
    next_drop: Time,
    /// Drops since the drop state was entered.
    pub count: u32,
    /// `count` as the drop state was last entered.
    last_count: u32,
}

/// The head of a queue that CoDel takes packets from.
pub(super) trait Head<B> {
    /// Takes the head.
    fn take(&mut self) -> Option<Packet<B>>;
    /// Bytes that are left behind it.
    fn left_bytes(&self) -> u64;
}

impl<B: Copy> Head<B> for Fifo<B> {
    #[inline]
    fn take(&mut self) -> Option<Packet<B>> {
        self.pop()
    }

    #[inline]
    fn left_bytes(&self) -> u64 {
        self.backlog().bytes
    }
}

impl State {
    /// Whether the delay has been above target for a whole interval, as the packet just taken from
    /// `head` shows it.
    #[inline]
    fn above<B>(
        &mut self,
        law: &Law,
        now: Time,
        packet: Option<&Packet<B>>,
        head: &impl Head<B>,
    ) -> bool {
        // RFC 8289, `dodeque`: never drop when less than a packet's worth would be left.
        let standing = packet.is_some_and(|packet| now.since(packet.queued_at) >= law.target)
            && head.left_bytes() > u64::from(FULL_PACKET_BYTES);
        if !standing {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + law.interval)
    }

    /// The packet to send, after the drops that are due.
    #[inline]
    pub fn dequeue<B>(
        &mut self,
        law: &Law,
        now: Time,
        head: &mut impl Head<B>,
        fate: &mut dyn Fate<B>,
    ) -> Option<Packet<B>> {
        let mut packet = head.take();
        if self.above(law, now, packet.as_ref(), head) {
            self.strike(law, now, &mut packet, head, fate);
        } else {
            self.dropping = false;
        }
        packet
    }

    /// The delay has been above target for long enough: drop or mark what is due.
    #[cold]
    fn strike<B>(
        &mut self,
        law: &Law,
        now: Time,
        packet: &mut Option<Packet<B>>,
        head: &mut impl Head<B>,
        fate: &mut dyn Fate<B>,
    ) {
        if !self.dropping {
            self.strike_one(law, now, packet, head, fate);
            self.enter(law, now);
            return;
        }
        // A long queue may call for drops so fast that the next one is due at once, hence the loop
        // (RFC 8289, `deque`).
        while self.dropping && now >= self.next_drop {
            self.count = self.count.saturating_add(1);
            let struck = self.strike_one(law, now, packet, head, fate);
            match struck {
                Struck::Dropped { still_above: false } => self.dropping = false,
                _ => self.next_drop = law.next_drop(self.next_drop, self.count),
            }
            if matches!(struck, Struck::Marked) {
                return;
            }
        }
    }

    /// Marks the packet, or drops it and takes the next.
    fn strike_one<B>(
        &mut self,
        law: &Law,
        now: Time,
        packet: &mut Option<Packet<B>>,
        head: &mut impl Head<B>,
        fate: &mut dyn Fate<B>,
    ) -> Struck {
        if let Some(packet) = packet {
            if law.ecn && mark(packet) {
                fate.marked(now, packet, Reason::Codel);
                return Struck::Marked;
            }
            fate.dropped(now, packet, Reason::Codel);
        }
        *packet = head.take();
        Struck::Dropped { still_above: self.above(law, now, packet.as_ref(), head) }
    }

    /// Enters the drop state after its first drop. RFC 8289, `deque`: if the last one was not long
    /// ago, resume with the drop rate that controlled the queue then.
    fn enter(&mut self, law: &Law, now: Time) {
        self.dropping = true;
        let recent = now.since(self.next_drop) < law.interval.mul_div(16, 1);
        let drops_last_time = self.count.saturating_sub(self.last_count);
        self.count = if drops_last_time > 1 && recent { drops_last_time } else { 1 };
        self.last_count = self.count;
        self.next_drop = law.next_drop(now, self.count);
    }
}

enum Struck {
    Marked,
    Dropped { still_above: bool },
}

impl<B: Copy + Send + 'static> Codel<B> {
    pub(crate) const ROW: QueueRow<B> = QueueRow {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::new(values.limit("limit"), Law::new(values))),
    };
}

impl<B> Codel<B> {
    fn new(limit: Limit, law: Law) -> Self {
        Self { limit, law, state: State::default(), fifo: Fifo::default() }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for Codel<B> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        self.fifo.push_within(self.limit, now, packet, fate);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<B>) -> Option<Packet<B>> {
        self.state.dequeue(&self.law, now, &mut self.fifo, fate)
    }

    fn bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }

    fn packets(&self) -> u64 {
        self.fifo.backlog().packets
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fates, capable, packet};
    use super::*;

    const LIMIT: Limit = Limit::Packets(1_000_000);
    const LAW: Law = Law { target: Span::from_ms(5), interval: Span::from_ms(100), ecn: false };

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// A queue of packets that all came at 0, with nothing below target any more.
    fn standing(law: Law, fates: &mut Fates) -> Codel<()> {
        let mut queue = Codel::new(LIMIT, law);
        for _ in 0..100_000 {
            queue.enqueue(Time::ZERO, capable(Time::ZERO, 1500), fates);
        }
        queue
    }

    #[test]
    fn drops_come_at_intervals_that_shrink_with_the_root_of_their_number() {
        let mut fates = Fates::default();
        let mut queue = standing(LAW, &mut fates);
        for us in 10_000..1_000_000 {
            if us % 10 == 0 {
                queue.dequeue(Time::from_ns(us * 1_000), &mut fates).unwrap();
            }
        }
        // Above target since 10 ms, so the first drop is due at 110 ms; then 100/√n after it.
        let mut due = 110.0;
        for (n, (at, reason)) in fates.dropped.iter().enumerate() {
            let at = at.as_secs_f64() * 1e3;
            assert!((0.0..0.011).contains(&(at - due)), "drop {n} at {at}, due at {due}");
            assert_eq!(*reason, Reason::Codel);
            due += 100.0 / (n as f64 + 1.0).sqrt();
        }
        // 110 + 100·Σ 1/√i reaches 1000 ms after 26 terms.
        assert_eq!(fates.dropped.len(), 27);
    }

    #[test]
    fn capable_packets_are_marked_at_the_times_of_drops_and_none_is_lost() {
        let (mut drops, mut marks) = (Fates::default(), Fates::default());
        let mut dropping = standing(LAW, &mut drops);
        let mut marking = standing(Law { ecn: true, ..LAW }, &mut marks);
        for n in 0..20_000 {
            let now = ms(10) + Span::from_us(n * 50);
            dropping.dequeue(now, &mut drops);
            marking.dequeue(now, &mut marks);
        }
        assert!(marks.dropped.is_empty());
        assert_eq!(marks.marked, drops.dropped);
    }

    #[test]
    fn a_delay_below_target_or_less_than_a_packet_left_never_drops() {
        let (mut queue, mut fates) = (Codel::new(LIMIT, LAW), Fates::default());
        for n in 0..2_000 {
            // One packet is ever left behind the head: the guard.
            queue.enqueue(ms(n), Packet { queued_at: Time::ZERO, ..packet(1514) }, &mut fates);
            if n > 0 {
                queue.dequeue(ms(n), &mut fates);
            }
        }
        let mut quick = Codel::new(LIMIT, LAW);
        for n in 0..2_000 {
            for _ in 0..2 {
                quick.enqueue(ms(n), capable(ms(n), 1500), &mut fates);
                quick.enqueue(ms(n), capable(ms(n), 1500), &mut fates);
            }
            for _ in 0..4 {
                quick.dequeue(ms(n) + Span::from_us(4_999), &mut fates);
            }
        }
        assert!(fates.dropped.is_empty());
    }

    #[test]
    fn the_drop_state_resumes_where_it_left_if_it_is_entered_again_soon() {
        let law = LAW;
        let left = State { count: 30, last_count: 10, next_drop: ms(1_000), ..State::default() };
        let mut soon = left;
        soon.enter(&law, ms(2_599));
        assert_eq!((soon.count, soon.next_drop), (20, law.next_drop(ms(2_599), 20)));
        let mut late = left;
        late.enter(&law, ms(2_600));
        assert_eq!((late.count, late.next_drop), (1, ms(2_700)));
        let mut single = State { last_count: 29, ..left };
        single.enter(&law, ms(1_001));
        assert_eq!(single.count, 1);
    }
}
