//! DualPI2 (RFC 9332): a queue for L4S and one for everybody else, on one link.
//!
//! A controller steers the longer delay to its target by a base probability p'. Classic packets are
//! dropped or marked with p'², L4S packets marked with k · p': what is squared for a window that
//! goes with 1/√p is linear for one that goes with 1/p, so that flows of both kinds get windows of
//! the same order, whichever queue they are in (§2.1). The L4S queue marks by its own short delay
//! beside that, and goes first, within limits.
//!
//! Details are those of `net/sched/sch_dualpi2.c` in Linux 6.17 in its defaults: drops when packets
//! leave, chances instead of `recur`, no coupled action while less than two packets wait. The ramp
//! of RFC 9332 (`laqm`) is there beside Linux's step.

mod pi2;
mod scheduler;

use std::collections::VecDeque;

use jostle_catalogue::{Entry, Kind, Limit, Parameter, Values};
use jostle_units::{FULL_PACKET_BYTES, Span, Stream, Time};

use super::{Backlog, Fifo, QueueDiscipline, mark};
use crate::packet::{Ecn, Fate, Packet, Reason};
use crate::parameters::{LONGEST_DELAY_NS, MS, limit_of, number, period, probability, span};
use crate::registry::{QueueRow, unrelated};
use pi2::Pi2;
use scheduler::{Lane, Scheduler, Scheduling};

const ENTRY: Entry = Entry {
    name: "dualpi2",
    summary: "Two queues, one for L4S, whose marks are coupled to the other's drops",
    class: "active",
    based_on: &["pie"],
    source: "RFC 9332; Linux 6.17 net/sched/sch_dualpi2.c",
    parameters: &[
        limit_of("most that both queues hold together", Some(10_000)),
        span("target", "delay that the classic queue is steered to", 15 * MS),
        period("update", "period of the probability's update", 16 * MS),
        number("alpha", "weight of the deviation from the target, per s", 0.16, (0.0, 1000.0)),
        number("beta", "weight of the delay's trend, per s", 3.2, (0.0, 1000.0)),
        number("coupling", "L4S marks per square root of a classic drop", 2.0, (0.0, 100.0)),
        span("threshold", "L4S packets that have waited longer are marked", MS),
        Parameter {
            name: "ramp",
            summary: "delay above the threshold over which marks become certain; 0: a step",
            kind: Kind::Span { default_ns: 0, min_ns: 0, max_ns: LONGEST_DELAY_NS },
        },
        Parameter {
            name: "scheduler",
            summary: "weighted turns, or whoever has waited longest with L4S ahead by time_shift",
            kind: Kind::Choice { default: "weighted", choices: &["weighted", "time_shifted"] },
        },
        probability("classic_share", "weighted: the classic queue's share of turns", Some(0.1)),
        span("time_shift", "time_shifted: head start of L4S packets", 30 * MS),
    ],
};

/// Linux, after `min_th` of RED: nothing is dropped, nor marked for the other queue's sake, while
/// less than two full packets wait.
const QUIET_BYTES: u64 = 2 * FULL_PACKET_BYTES as u64;

#[derive(Clone, Copy, Debug, PartialEq)]
struct DualPi2Parameters {
    /// Most that both queues hold together.
    limit: Limit,
    control: pi2::Parameters,
    /// L4S packets that have waited longer are marked, if others waited when they came.
    threshold: Span,
    /// Over so much more than the threshold the chance of that mark rises from 0 to 1; zero for a
    /// step.
    ramp: Span,
    /// How the queues share the link.
    scheduling: Scheduling,
}

impl DualPi2Parameters {
    fn new(values: &Values) -> Self {
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
            ramp: values.span("ramp"),
            scheduling: match values.choice("scheduler") {
                "time_shifted" => Scheduling::TimeShifted(values.span("time_shift")),
                _ => Scheduling::Weighted(values.number("classic_share")),
            },
        }
    }
}

/// Two queues whose marks and drops are coupled.
#[derive(Debug)]
pub struct DualPi2<B> {
    limit: Limit,
    threshold: Span,
    ramp: Span,
    control: Pi2,
    scheduler: Scheduler,
    classic: Fifo<B>,
    l4s: VecDeque<Waiting<B>>,
    total: Backlog,
    random: Stream,
}

/// A packet in the L4S queue.
#[derive(Debug)]
struct Waiting<B> {
    packet: Packet<B>,
    /// Others waited when it came: its delay is that of a queue, not only of the link.
    behind: bool,
}

/// What becomes of a packet.
enum Verdict {
    Pass,
    Mark(Reason),
    Drop,
}

impl<B: Copy + Send + 'static> DualPi2<B> {
    pub(crate) const ROW: QueueRow<B> = QueueRow {
        entry: ENTRY,
        check: unrelated,
        build: |values, random| Box::new(Self::new(DualPi2Parameters::new(values), random)),
    };
}

impl<B: Copy> DualPi2<B> {
    fn new(parameters: DualPi2Parameters, random: Stream) -> Self {
        Self {
            limit: parameters.limit,
            threshold: parameters.threshold,
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

    /// RFC 9332, `laqm`: the chance of a mark for the L4S queue's own delay.
    #[inline]
    fn native(&self, waited: Span) -> f64 {
        if waited <= self.threshold {
            return 0.0;
        }
        let beyond = waited - self.threshold;
        if beyond >= self.ramp { 1.0 } else { beyond.as_secs_f64() / self.ramp.as_secs_f64() }
    }

    fn judge_l4s(&mut self, now: Time, waiting: &Waiting<B>) -> Verdict {
        let waited = now.since(waiting.packet.queued_at);
        let native = if waiting.behind { self.native(waited) } else { 0.0 };
        let coupled = if self.total.bytes < QUIET_BYTES { 0.0 } else { self.control.coupled() };
        // RFC 9332, appendix A.2: under overload the delay is kept by drops in both queues.
        if coupled > 1.0 && self.control.hits_squared(&mut self.random) {
            return Verdict::Drop;
        }
        // "p_L = max(p'_L, p_CL)"
        let reason = if native >= coupled.min(1.0) { Reason::Step } else { Reason::Pi2 };
        if self.random.chance(native.max(coupled).min(1.0)) {
            return Verdict::Mark(reason);
        }
        Verdict::Pass
    }

    fn judge_classic(&mut self, packet: &Packet<B>) -> Verdict {
        if self.total.bytes < QUIET_BYTES || !self.control.hits_squared(&mut self.random) {
            return Verdict::Pass;
        }
        // RFC 9332, appendix A.2: overload disables ECN.
        if packet.ecn == Ecn::NotCapable || self.control.coupled() > 1.0 {
            Verdict::Drop
        } else {
            Verdict::Mark(Reason::Pi2)
        }
    }
}

impl<B: Copy + Send> QueueDiscipline<B> for DualPi2<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>) {
        self.control.catch_up(now, self.heads());
        if !self.total.has_room(packet.size_bytes, self.limit) {
            fate.dropped(now, &packet, Reason::Overflow);
            return;
        }
        self.total.add(packet.size_bytes);
        // RFC 9331 §5.1: ECT(1) is L4S, and so is CE, of which nobody knows what it was.
        if matches!(packet.ecn, Ecn::L4s | Ecn::Marked) {
            self.l4s.push_back(Waiting { packet, behind: !self.l4s.is_empty() });
        } else {
            self.classic.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<B>) -> Option<Packet<B>> {
        self.control.catch_up(now, self.heads());
        loop {
            let [l4s, classic] = self.heads();
            let Some(lane) = self.scheduler.turn(l4s, classic) else {
                self.scheduler.reset();
                return None;
            };
            let (mut packet, verdict) = match lane {
                Lane::L4s => {
                    let waiting = self.l4s.pop_front()?;
                    self.total.remove(waiting.packet.size_bytes);
                    let verdict = self.judge_l4s(now, &waiting);
                    (waiting.packet, verdict)
                }
                Lane::Classic => {
                    let packet = self.classic.pop()?;
                    self.total.remove(packet.size_bytes);
                    let verdict = self.judge_classic(&packet);
                    (packet, verdict)
                }
            };
            match verdict {
                Verdict::Pass => {}
                Verdict::Mark(reason) => {
                    mark(&mut packet);
                    fate.marked(now, &packet, reason);
                }
                Verdict::Drop => {
                    fate.dropped(now, &packet, Reason::Pi2);
                    continue;
                }
            }
            let other_waits = match lane {
                Lane::L4s => classic.is_some(),
                Lane::Classic => l4s.is_some(),
            };
            self.scheduler.sent(lane, packet.size_bytes, other_waits);
            return Some(packet);
        }
    }

    fn bytes(&self) -> u64 {
        self.total.bytes
    }

    fn packets(&self) -> u64 {
        self.total.packets
    }

    fn pass(&mut self, now: Time) {
        self.control.catch_up(now, self.heads());
    }
}

#[cfg(test)]
mod tests;
