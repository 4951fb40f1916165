//! CoDel (RFC 8289) with three additions of Linux: ECN marking, no drop if at most one packet would
//! remain (RFC 8289 §4.1), and an approximate square root in the control law
//! (`include/net/codel_impl.h`, `net/sched/sch_codel.c`).

use jostle_registry::{Parameter, ParameterValues, QueueLimit, RegistryEntry};
use jostle_units::{FULL_PACKET_BYTES, Span, Time};

use super::{Fifo, QueueDiscipline, mark};
use crate::packet::{DropReason, Packet, PacketOutcome};
use crate::parameters::{self, span};
use crate::registry::{QueueEntry, unrelated};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "codel",
    summary: "drops at the head while the queueing delay exceeds a target",
    class: "active",
    based_on: &["drop_tail"],
    source: "RFC 8289; Linux include/net/codel_impl.h, net/sched/sch_codel.c",
    parameters: &[parameters::limit(Some(1_000)), TARGET, INTERVAL, parameters::ecn(false)],
};

pub(super) const TARGET: Parameter =
    span("target", Span::from_ms(5)).summary("acceptable standing queueing delay");
pub(super) const INTERVAL: Parameter = span("interval", Span::from_ms(100))
    .summary("time in which the minimum delay must fall below the target");

/// A FIFO queue with CoDel.
#[derive(Debug)]
pub struct Codel<B> {
    limit: QueueLimit,
    parameters: CodelParameters,
    state: CodelState,
    fifo: Fifo<B>,
}

/// Parameters of CoDel. FQ-CoDel uses one set for all queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodelParameters {
    pub target: Span,
    pub interval: Span,
    pub ecn: bool,
}

impl CodelParameters {
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            target: values.span("target"),
            interval: values.span("interval"),
            ecn: values.bool("ecn"),
        }
    }
}

/// Linux's approximation of 1 / √count: a fraction of 16 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReciprocalRoot(u16);

impl ReciprocalRoot {
    /// The value for a count of 1.
    const OF_FIRST_DROP: Self = Self(u16::MAX);

    /// Approaches 1 / √count by a single Newton step, as Linux does at each change of the count. The
    /// steps of the first drops are inexact: the second drop gives 1/2 instead of 1/√2, so that the
    /// third follows after half an interval.
    /// `codel_impl.h::codel_Newton_step`.
    fn approach(self, count: u32) -> Self {
        let root = u64::from(self.0) << 16;
        let square = (root * root) >> 32;
        // A quarter of 3 - count · root², so that the product fits into 64 bits.
        let factor = (3_u64 << 32).wrapping_sub(u64::from(count) * square) >> 2;
        Self((factor.wrapping_mul(root) >> 47) as u16)
    }
}

/// State of CoDel for one queue (`struct codel_vars` in Linux).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CodelState {
    /// Time at which the delay will have exceeded the target for one interval. `None` while the
    /// delay is below the target.
    first_above_time: Option<Time>,
    dropping: bool,
    drop_next: Time,
    /// Drops since the dropping state began.
    pub count: u32,
    /// Value of `count` when the dropping state last began.
    last_count: u32,
    reciprocal_root: ReciprocalRoot,
}

/// A queue from which CoDel removes packets.
pub(super) trait DequeueSource<B> {
    /// Removes the packet at the head.
    fn pop_head(&mut self) -> Option<Packet<B>>;
    /// Returns the bytes in the queue without the packet that was just removed.
    fn backlog_bytes(&self) -> u64;
}

impl<B: Copy> DequeueSource<B> for Fifo<B> {
    #[inline]
    fn pop_head(&mut self) -> Option<Packet<B>> {
        self.pop()
    }

    #[inline]
    fn backlog_bytes(&self) -> u64 {
        self.backlog().bytes
    }
}

impl CodelState {
    /// Returns the time of the next drop (RFC 8289 §3.3, `control_law`):
    /// `after + interval / sqrt(count)`, where `count` is the number of drops since the dropping
    /// state began.
    /// `codel_impl.h::codel_control_law`.
    fn control_law(&self, parameters: &CodelParameters, after: Time) -> Time {
        after + parameters.interval.mul_div(u64::from(self.reciprocal_root.0), 1 << 16)
    }

    /// Returns whether the delay has exceeded the target for one interval (RFC 8289 §5.6, §3.1,
    /// §3.2, §4.2 and §4.3). `packet` was just removed from `head`.
    /// `codel_impl.h::codel_should_drop`.
    #[inline]
    fn is_above_target<B>(
        &mut self,
        parameters: &CodelParameters,
        now: Time,
        packet: Option<&Packet<B>>,
        head: &impl DequeueSource<B>,
    ) -> bool {
        // RFC 8289, `dodeque`: do not drop if at most one packet would remain.
        let standing = packet
            .is_some_and(|packet| now.since(packet.queued_at) >= parameters.target)
            && head.backlog_bytes() > u64::from(FULL_PACKET_BYTES);
        if !standing {
            self.first_above_time = None;
            return false;
        }
        now >= *self.first_above_time.get_or_insert(now + parameters.interval)
    }

    /// Removes and returns the next packet to send. Drops or marks packets first, if drops are due.
    #[inline]
    pub fn dequeue<B>(
        &mut self,
        parameters: &CodelParameters,
        now: Time,
        head: &mut impl DequeueSource<B>,
        outcome: &mut dyn PacketOutcome<B>,
    ) -> Option<Packet<B>> {
        let mut packet = head.pop_head();
        if self.is_above_target(parameters, now, packet.as_ref(), head) {
            self.drop_or_mark_due(parameters, now, &mut packet, head, outcome);
        } else {
            self.dropping = false;
        }
        packet
    }

    /// Drops or marks all packets that are due. Called if the delay is above the target.
    /// `codel_impl.h::codel_dequeue`.
    #[cold]
    fn drop_or_mark_due<B>(
        &mut self,
        parameters: &CodelParameters,
        now: Time,
        packet: &mut Option<Packet<B>>,
        head: &mut impl DequeueSource<B>,
        outcome: &mut dyn PacketOutcome<B>,
    ) {
        if !self.dropping {
            self.drop_or_mark_head(parameters, now, packet, head, outcome);
            self.enter_dropping_state(parameters, now);
            return;
        }
        // In a long queue the next drop can be due immediately (RFC 8289, `deque`).
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            self.reciprocal_root = self.reciprocal_root.approach(self.count);
            let action = self.drop_or_mark_head(parameters, now, packet, head, outcome);
            match action {
                HeadAction::Dropped { still_above: false } => self.dropping = false,
                _ => self.drop_next = self.control_law(parameters, self.drop_next),
            }
            if matches!(action, HeadAction::Marked) {
                return;
            }
        }
    }

    /// Marks the packet, or drops it and replaces it by the next one.
    fn drop_or_mark_head<B>(
        &mut self,
        parameters: &CodelParameters,
        now: Time,
        packet: &mut Option<Packet<B>>,
        head: &mut impl DequeueSource<B>,
        outcome: &mut dyn PacketOutcome<B>,
    ) -> HeadAction {
        if let Some(packet) = packet {
            if parameters.ecn && mark(packet) {
                outcome.marked(now, packet, DropReason::Codel);
                return HeadAction::Marked;
            }
            outcome.dropped(now, packet, DropReason::Codel);
        }
        *packet = head.pop_head();
        HeadAction::Dropped {
            still_above: self.is_above_target(parameters, now, packet.as_ref(), head),
        }
    }

    /// Enters the dropping state after its first drop. If the last dropping state ended less than
    /// 16 intervals ago, the drop rate continues where it ended (RFC 8289, `deque`).
    fn enter_dropping_state(&mut self, parameters: &CodelParameters, now: Time) {
        self.dropping = true;
        let recent = now.since(self.drop_next) < parameters.interval.mul_div(16, 1);
        let drops_last_time = self.count.saturating_sub(self.last_count);
        (self.count, self.reciprocal_root) = if drops_last_time > 1 && recent {
            (drops_last_time, self.reciprocal_root.approach(drops_last_time))
        } else {
            (1, ReciprocalRoot::OF_FIRST_DROP)
        };
        self.last_count = self.count;
        self.drop_next = self.control_law(parameters, now);
    }
}

enum HeadAction {
    Marked,
    Dropped { still_above: bool },
}

impl<B: Copy + Send + 'static> Codel<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::new(values.limit("limit"), CodelParameters::new(values))),
    };
}

impl<B> Codel<B> {
    fn new(limit: QueueLimit, parameters: CodelParameters) -> Self {
        Self { limit, parameters, state: CodelState::default(), fifo: Fifo::default() }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for Codel<B> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        self.fifo.push_or_drop(self.limit, now, packet, outcome);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.state.dequeue(&self.parameters, now, &mut self.fifo, outcome)
    }

    fn backlog_bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.fifo.backlog().packets
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{RecordedOutcomes, capable, packet};
    use super::*;

    const LIMIT: QueueLimit = QueueLimit::Packets(1_000_000);
    const LAW: CodelParameters =
        CodelParameters { target: Span::from_ms(5), interval: Span::from_ms(100), ecn: false };

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// A queue of packets that all came at 0, with nothing below target any more.
    fn filled_queue(parameters: CodelParameters, fates: &mut RecordedOutcomes) -> Codel<()> {
        let mut queue = Codel::new(LIMIT, parameters);
        for _ in 0..100_000 {
            queue.enqueue(Time::ZERO, capable(Time::ZERO, 1500), fates);
        }
        queue
    }

    #[test]
    fn drops_come_at_intervals_that_shrink_with_the_root_of_their_number() {
        let mut fates = RecordedOutcomes::default();
        let mut queue = filled_queue(LAW, &mut fates);
        for us in 10_000..1_000_000 {
            if us % 10 == 0 {
                queue.dequeue(Time::from_ns(us * 1_000), &mut fates).unwrap();
            }
        }
        // Above target since 10 ms, so the first drop is due at 110 ms, then 100/√n after drop n. The
        // Newton steps of `codel_impl.h::codel_Newton_step` give 1, 1/2 = 1 · (3 - 2 · 1²) / 2 and
        // 9/16 = 1/2 · (3 - 3 · 1/4) / 2 for √1, √2 and √3.
        let due_ms = [110.0, 210.0, 260.0, 316.25];
        let at_ms: Vec<_> = fates.dropped.iter().map(|(at, _)| at.as_secs_f64() * 1e3).collect();
        for (at, due) in at_ms.iter().zip(due_ms) {
            assert!((-0.002..0.011).contains(&(at - due)), "{at} instead of {due}");
        }
        for (n, pair) in at_ms.windows(2).enumerate().skip(3) {
            let (gap, exact) = (pair[1] - pair[0], 100.0 / (n as f64 + 1.0).sqrt());
            assert!((0.97..1.001).contains(&(gap / exact)), "drop {n}: {gap} instead of {exact}");
        }
        assert_eq!(at_ms.len(), 28);
        assert!(fates.dropped.iter().all(|(_, reason)| *reason == DropReason::Codel));
    }

    /// RFC 8289 §5.6: a delay of exactly TARGET is above target, and `now >= first_above_time` and
    /// `now >= drop_next` are due. 205 ms + 100 ms / √2 = 275.710678 ms.
    #[test]
    fn drops_are_due_to_the_nanosecond() {
        let mut fates = RecordedOutcomes::default();
        let mut queue = filled_queue(LAW, &mut fates);
        for (at_ns, drops) in [
            (4_999_999, 0),
            (5_000_000, 0),
            (104_999_999, 0),
            (105_000_000, 1),
            (204_998_473, 1),
            (204_998_474, 2),
            (254_999_998, 2),
            (254_999_999, 3),
        ] {
            queue.dequeue(Time::from_ns(at_ns), &mut fates).unwrap();
            assert_eq!(fates.dropped.len(), drops, "{at_ns} ns");
        }
    }

    #[test]
    fn capable_packets_are_marked_at_the_times_of_drops_and_none_is_lost() {
        let (mut drops, mut marks) = (RecordedOutcomes::default(), RecordedOutcomes::default());
        let mut dropping = filled_queue(LAW, &mut drops);
        let mut marking = filled_queue(CodelParameters { ecn: true, ..LAW }, &mut marks);
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
        let (mut queue, mut fates) = (Codel::new(LIMIT, LAW), RecordedOutcomes::default());
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
        let parameters = LAW;
        let left = CodelState {
            count: 30,
            last_count: 10,
            drop_next: ms(1_000),
            reciprocal_root: ReciprocalRoot(11_965),
            ..CodelState::default()
        };
        // From 11,965/65,536 ≈ 1/√30 a step towards 1/√20: 0.1826 · (3 - 20/30) / 2 = 0.2130.
        let mut soon = left;
        soon.enter_dropping_state(&parameters, ms(2_599));
        assert_eq!(soon.count, 20);
        let gap_us = soon.drop_next.since(ms(2_599)).as_ns() / 1_000;
        assert!((21_290..21_310).contains(&gap_us), "{gap_us}");
        let mut late = left;
        late.enter_dropping_state(&parameters, ms(2_600));
        assert_eq!(late.count, 1);
        assert_eq!(late.drop_next, ms(2_600) + Span::from_ns(99_998_474));
        let mut single = CodelState { last_count: 29, ..left };
        single.enter_dropping_state(&parameters, ms(1_001));
        assert_eq!(single.count, 1);
    }
}
