//! DualPI2 (RFC 9332): coupled AQM with a queue for L4S and a queue for classic traffic on one
//! link.
//!
//! A controller keeps the longer of both delays at its target by a base probability p'. Classic
//! packets are dropped or marked with the probability p'², L4S packets are marked with k · p'. The
//! square fits controllers whose window is proportional to 1/√p, the linear probability those with
//! 1/p, so that flows of both kinds get similar windows in either queue (RFC 9332 §2.1). The L4S
//! queue is also marked by its own delay with a low threshold, and has priority within limits
//! (RFC 9332 §2.2).
//!
//! Details follow `net/sched/sch_dualpi2.c` in Linux 6.17 with its defaults: drops on dequeue,
//! random decisions instead of `recur`, no coupled action while fewer than two packets wait. The
//! ramp of RFC 9332 (`laqm`) is available in addition to Linux's step. Linux applies the step to
//! every L4S packet, while RFC 9332 (`Th_len`) exempts a queue of one packet: `min_qlen_step`.

mod pi2;
mod scheduler;

use std::collections::VecDeque;

use jostle_registry::{Parameter, ParameterValues, QueueLimit, RegistryEntry};
use jostle_units::{FULL_PACKET_BYTES, RandomStream, Span, Time};

use super::{Backlog, Fifo, QueueDiscipline, mark};
use crate::packet::{DropReason, Ecn, Packet, PacketOutcome};
use crate::parameters::{LONGEST_DELAY, limit, period, span};
use crate::registry::{QueueEntry, unrelated};
use pi2::Pi2;
use scheduler::{DualQueue, Scheduler, Scheduling};

const ENTRY: RegistryEntry = RegistryEntry {
    name: "dualpi2",
    summary: "coupled AQM with a queue for L4S and a queue for classic traffic",
    class: "active",
    based_on: &["pie"],
    source: "RFC 9332; Linux 6.17 net/sched/sch_dualpi2.c",
    parameters: &[
        limit(Some(10_000)).summary("largest sum of both queue lengths"),
        span("target", Span::from_ms(15)).summary("target queueing delay of the classic queue"),
        period("update", Span::from_ms(16)).summary("interval between updates of the probability"),
        Parameter::number("alpha", 0.16, 0.0..=1000.0)
            .summary("weight of the deviation from the target, per s"),
        Parameter::number("beta", 3.2, 0.0..=1000.0).summary("weight of the delay's trend, per s"),
        Parameter::number("coupling", 2.0, 0.0..=100.0).summary(
            "ratio of the L4S marking probability to the square root of the classic drop \
             probability",
        ),
        span("threshold", Span::from_ms(1))
            .summary("queueing delay above which L4S packets are marked"),
        Parameter::integer("min_qlen_step", 0, 0..=1_000_000).summary(
            "number of L4S packets ahead of an arriving one from which the threshold applies to \
             it; 0: always",
        ),
        Parameter::span("ramp", Span::ZERO, Span::ZERO..=LONGEST_DELAY).summary(
            "range of delay above the threshold in which the marking probability rises to 1; 0: a \
             step",
        ),
        Parameter::choice("scheduler", "weighted", &["weighted", "time_shifted"]).summary(
            "weighted round robin, or the packet that has waited longest, with time_shift added \
             for L4S",
        ),
        Parameter::probability("classic_share", Some(0.1))
            .summary("share of the classic queue in the weighted round robin"),
        span("time_shift", Span::from_ms(30))
            .summary("time added to the waiting time of L4S packets (time_shifted)"),
    ],
};

/// As in Linux, after `min_th` of RED: no drops and no coupled marks while less than two full-sized
/// packets wait.
const QUIET_BYTES: u64 = 2 * FULL_PACKET_BYTES as u64;

#[derive(Clone, Copy, Debug, PartialEq)]
struct DualPi2Parameters {
    /// Limit of both queues together.
    limit: QueueLimit,
    control: pi2::Parameters,
    /// Marking threshold: L4S packets that waited longer are marked.
    threshold: Span,
    /// Length of the L4S queue, in packets, from which the threshold applies to an arriving packet.
    min_qlen_step: u64,
    /// Range above the threshold in which the marking probability increases from 0 to 1; zero for a
    /// step.
    ramp: Span,
    /// Scheduling between both queues.
    scheduling: Scheduling,
}

impl DualPi2Parameters {
    fn new(values: &ParameterValues) -> Self {
        Self {
            limit: values.limit("limit"),
            control: pi2::Parameters {
                target: values.span("target"),
                update: values.span("update"),
                alpha: values.number("alpha"),
                beta: values.number("beta"),
                coupling: values.number("coupling"),
            },
            threshold: values.span("threshold"),
            min_qlen_step: u64::from(values.u32("min_qlen_step")),
            ramp: values.span("ramp"),
            scheduling: match values.choice("scheduler") {
                "time_shifted" => Scheduling::TimeShifted(values.span("time_shift")),
                _ => Scheduling::Weighted(values.number("classic_share")),
            },
        }
    }
}

/// Two queues with coupled marks and drops.
#[derive(Debug)]
pub struct DualPi2<B> {
    limit: QueueLimit,
    threshold: Span,
    min_qlen_step: u64,
    ramp: Span,
    control: Pi2,
    scheduler: Scheduler,
    classic: Fifo<B>,
    l4s: VecDeque<QueuedPacket<B>>,
    total: Backlog,
    random: RandomStream,
}

/// A packet in the L4S queue.
#[derive(Debug)]
struct QueuedPacket<B> {
    packet: Packet<B>,
    /// `skb_apply_step`: whether the L4S queue had reached `min_qlen_step` when it arrived.
    apply_step: bool,
}

/// Decision on a packet.
enum DualPi2Action {
    Pass,
    Mark(DropReason),
    Drop,
}

impl<B: Copy + Send + 'static> DualPi2<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, random| Box::new(Self::new(DualPi2Parameters::new(values), random)),
    };
}

impl<B: Copy> DualPi2<B> {
    fn new(parameters: DualPi2Parameters, random: RandomStream) -> Self {
        Self {
            limit: parameters.limit,
            threshold: parameters.threshold,
            min_qlen_step: parameters.min_qlen_step,
            ramp: parameters.ramp,
            control: Pi2::new(parameters.control),
            scheduler: Scheduler::new(parameters.scheduling),
            classic: Fifo::default(),
            l4s: VecDeque::new(),
            total: Backlog::default(),
            random,
        }
    }

    #[inline]
    fn heads(&self) -> [Option<Time>; 2] {
        [self.l4s.front().map(|waiting| waiting.packet.queued_at), self.classic.head_queued_at()]
    }

    /// RFC 9332, `laqm`: returns the marking probability from the L4S queue's own delay.
    #[inline]
    fn native(&self, waited: Span) -> f64 {
        if waited <= self.threshold {
            return 0.0;
        }
        let beyond = waited - self.threshold;
        if beyond >= self.ramp { 1.0 } else { beyond.as_secs_f64() / self.ramp.as_secs_f64() }
    }

    /// RFC 9332 §2.4: coupled and native probability.
    fn judge_l4s(&mut self, now: Time, waiting: &QueuedPacket<B>) -> DualPi2Action {
        let waited = now.since(waiting.packet.queued_at);
        let native = if waiting.apply_step { self.native(waited) } else { 0.0 };
        let coupled = if self.total.bytes < QUIET_BYTES { 0.0 } else { self.control.coupled() };
        // RFC 9332 §A.2: in overload, drops in both queues keep the delay at the target.
        if coupled > 1.0 && self.control.hits_squared(&mut self.random) {
            return DualPi2Action::Drop;
        }
        // "p_L = max(p'_L, p_CL)"
        let reason = if native >= coupled.min(1.0) { DropReason::Step } else { DropReason::Pi2 };
        if self.random.chance(native.max(coupled).min(1.0)) {
            return DualPi2Action::Mark(reason);
        }
        DualPi2Action::Pass
    }

    fn judge_classic(&mut self, packet: &Packet<B>) -> DualPi2Action {
        if self.total.bytes < QUIET_BYTES || !self.control.hits_squared(&mut self.random) {
            return DualPi2Action::Pass;
        }
        // RFC 9332 §A.2: overload disables ECN.
        if packet.ecn == Ecn::NotCapable || self.control.coupled() > 1.0 {
            DualPi2Action::Drop
        } else {
            DualPi2Action::Mark(DropReason::Pi2)
        }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for DualPi2<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        self.control.catch_up(now, self.heads());
        if !self.total.fits(packet.size_bytes, self.limit) {
            outcome.dropped(now, &packet, DropReason::Overflow);
            return;
        }
        self.total.add(packet.size_bytes);
        // RFC 9331 §5.1, RFC 9332 §2.3: ECT(1) is L4S, and so is CE, because its original codepoint
        // is unknown.
        if matches!(packet.ecn, Ecn::L4s | Ecn::Marked) {
            let apply_step = self.l4s.len() as u64 >= self.min_qlen_step;
            self.l4s.push_back(QueuedPacket { packet, apply_step });
        } else {
            self.classic.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.control.catch_up(now, self.heads());
        loop {
            let [l4s, classic] = self.heads();
            let Some(lane) = self.scheduler.turn(l4s, classic) else {
                self.scheduler.reset();
                return None;
            };
            let (mut packet, verdict) = match lane {
                DualQueue::L4s => {
                    let waiting = self.l4s.pop_front()?;
                    self.total.remove(waiting.packet.size_bytes);
                    let verdict = self.judge_l4s(now, &waiting);
                    (waiting.packet, verdict)
                }
                DualQueue::Classic => {
                    let packet = self.classic.pop()?;
                    self.total.remove(packet.size_bytes);
                    let verdict = self.judge_classic(&packet);
                    (packet, verdict)
                }
            };
            match verdict {
                DualPi2Action::Pass => {}
                DualPi2Action::Mark(reason) => {
                    mark(&mut packet);
                    outcome.marked(now, &packet, reason);
                }
                DualPi2Action::Drop => {
                    outcome.dropped(now, &packet, DropReason::Pi2);
                    continue;
                }
            }
            let other_waits = match lane {
                DualQueue::L4s => classic.is_some(),
                DualQueue::Classic => l4s.is_some(),
            };
            self.scheduler.sent(lane, packet.size_bytes, other_waits);
            return Some(packet);
        }
    }

    fn backlog_bytes(&self) -> u64 {
        self.total.bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.total.packets
    }

    fn advance_to(&mut self, now: Time) {
        self.control.catch_up(now, self.heads());
    }
}

#[cfg(test)]
mod tests;
