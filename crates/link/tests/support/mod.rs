//! Checkers of what every queue and every link must keep, and the operations that they are driven
//! with.

#![allow(dead_code)] // Each test binary uses its part.

pub mod build;

use jostle_link::queue::QueueLimit;
use jostle_link::{
    Capacity, DropReason, Ecn, Link, LinkObserver, Packet, PacketOutcome, PureAck, QueueDiscipline,
    TransportHeader,
};
use jostle_units::{ConnectionId, Span, Time};
use proptest::prelude::*;

/// What is done to a queue or a link.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// A packet of a flow arrives.
    Arrive { flow: u32, size_bytes: u32, ecn: Ecn },
    /// A queue is asked for a packet; a link hands over what has arrived by its next time.
    Take,
    /// Time passes.
    Wait(Span),
}

/// Random operations: bursts, idle times, packets of all sizes.
pub fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let ecn = prop_oneof![
        3 => Just(Ecn::NotCapable),
        2 => Just(Ecn::Capable),
        1 => Just(Ecn::L4s),
        1 => Just(Ecn::Marked)
    ];
    let size = prop_oneof![4 => Just(1514u32), 1 => Just(66u32), 1 => 1u32..9_000];
    let arrive = (0u32..build::FLOWS as u32, size, ecn)
        .prop_map(|(flow, size_bytes, ecn)| Operation::Arrive { flow, size_bytes, ecn });
    let wait = prop_oneof![
        6 => 0u64..200_000,
        2 => 0u64..20_000_000,
        1 => 0u64..2_000_000_000
    ];
    let operation = prop_oneof![
        5 => arrive,
        4 => Just(Operation::Take),
        3 => wait.prop_map(|ns| Operation::Wait(Span::from_ns(ns)))
    ];
    prop::collection::vec(operation, 1..600)
}

/// The number of a packet, as its body. One of three is an ACK; what it acknowledges and its flags change
/// now and then. All go the same way: to and fro packets of a flow may have queues of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serial(pub usize);

impl TransportHeader for Serial {
    fn pure_ack(&self) -> Option<PureAck> {
        let number = (self.0 / 8) as u32;
        let marks = (self.0 % 32 < 4, 0);
        let ack = PureAck { number, marks, ..PureAck::default() };
        self.0.is_multiple_of(3).then_some(ack)
    }
}

/// A packet whose body is its number.
fn packet(serial: usize, now: Time, flow: u32, size_bytes: u32, ecn: Ecn) -> Packet<Serial> {
    Packet {
        connection: ConnectionId(flow),
        size_bytes,
        queued_at: now,
        ecn,
        hop: 0,
        is_corrupted: false,
        // Packets of a flow keep their order, so that they have one codepoint.
        dscp: [0, 1, 8, 34, 36, 46][flow as usize % 6],
        transport: Serial(serial),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Inside,
    Taken,
    Dropped,
}

/// Account of every packet that was handed over, and of the first thing that went wrong.
#[derive(Default)]
pub struct Account {
    packets: Vec<(Packet<Serial>, State)>,
    /// Packets of a flow keep their order only among those that the link takes for L4S, and among
    /// the others.
    pub two_queues: bool,
    /// Of each flow, in each of its orders, the last packet that came out.
    last: Vec<Option<usize>>,
    wrong: Option<String>,
    pub dropped: u64,
    pub taken: u64,
}

impl Account {
    fn note(&mut self, wrong: String) {
        self.wrong.get_or_insert(wrong);
    }

    fn arrive(&mut self, now: Time, flow: u32, size_bytes: u32, ecn: Ecn) -> Packet<Serial> {
        let packet = packet(self.packets.len(), now, flow, size_bytes, ecn);
        self.packets.push((packet, State::Inside));
        packet
    }

    fn leave(&mut self, packet: &Packet<Serial>, state: State) {
        let Some((original, before)) = self.packets.get_mut(packet.transport.0) else {
            return self.note(format!("packet {} was never handed over", packet.transport.0));
        };
        let (original, before) = (*original, std::mem::replace(before, state));
        if before != State::Inside {
            self.note(format!("packet {} left twice: {before:?}, {state:?}", packet.transport.0));
        }
        if (original.connection, original.size_bytes) != (packet.connection, packet.size_bytes) {
            self.note(format!("packet {} has changed", packet.transport.0));
        }
        if original.ecn == Ecn::NotCapable && packet.ecn != Ecn::NotCapable {
            self.note(format!(
                "packet {} is marked, but its transport is not able",
                packet.transport.0
            ));
        }
        match state {
            State::Dropped => self.dropped += 1,
            _ => self.taken += 1,
        }
    }

    /// A packet comes out; with `in_order`, after all of its flow that were handed over before it.
    fn take(&mut self, packet: &Packet<Serial>, in_order: bool) {
        self.leave(packet, State::Taken);
        let flow = packet.connection.index();
        let arrived = self.packets.get(packet.transport.0).map(|(original, _)| original.ecn);
        let l4s = matches!(arrived, Some(Ecn::L4s | Ecn::Marked));
        let order = 2 * flow + usize::from(self.two_queues && l4s);
        self.last.resize(self.last.len().max(order + 1), None);
        let last = self.last[order].replace(packet.transport.0);
        if in_order && last.is_some_and(|last| last > packet.transport.0) {
            self.note(format!("packet {} of flow {flow} came after {last:?}", packet.transport.0));
        }
    }

    fn inside(&self) -> (u64, u64) {
        let inside = self.packets.iter().filter(|(_, state)| *state == State::Inside);
        inside.fold((0, 0), |(bytes, n), (p, _)| (bytes + u64::from(p.size_bytes), n + 1))
    }

    fn verdict(&mut self) -> Result<(), String> {
        self.wrong.take().map_or(Ok(()), Err)
    }
}

impl PacketOutcome<Serial> for Account {
    fn dropped(&mut self, _: Time, packet: &Packet<Serial>, _: DropReason) {
        self.leave(packet, State::Dropped);
    }
    fn marked(&mut self, _: Time, packet: &Packet<Serial>, _: DropReason) {
        if packet.ecn != Ecn::Marked {
            self.note(format!("packet {} is told as marked and is not", packet.transport.0));
        }
    }
}

/// Drives a queue and checks after every operation that no packet is lost, doubled, changed or
/// overtaken by another of its flow, that its account is exact, its limit kept, and that it hands
/// something over while it has something.
///
/// # Errors
/// The first thing that it does wrong.
pub fn check_queue(
    queue: &mut dyn QueueDiscipline<Serial>,
    limit: QueueLimit,
    two_queues: bool,
    operations: &[Operation],
) -> Result<Account, String> {
    let (mut account, mut now) = (Account { two_queues, ..Account::default() }, Time::ZERO);
    let draining = std::iter::repeat_n(&Operation::Take, operations.len() + 1);
    for operation in operations.iter().chain(draining) {
        match *operation {
            Operation::Wait(span) => now += span,
            Operation::Arrive { flow, size_bytes, ecn } => {
                let packet = account.arrive(now, flow, size_bytes, ecn);
                queue.enqueue(now, packet, &mut account);
            }
            Operation::Take => match queue.dequeue(now, &mut account) {
                Some(packet) => account.take(&packet, true),
                None if account.inside().1 > 0 => {
                    // A shaper says when it will hand something over, and then does.
                    let held_back =
                        queue.next_dequeue_time() != Time::NEVER && queue.next_dequeue_time() > now;
                    now = if held_back { queue.next_dequeue_time() } else { now };
                    match queue.dequeue(now, &mut account).filter(|_| held_back) {
                        Some(packet) => account.take(&packet, true),
                        None => {
                            let inside = account.inside().1;
                            account.note(format!("{inside} packets inside, none handed over"));
                        }
                    }
                }
                None => {}
            },
        }
        let claimed = (queue.backlog_bytes(), queue.backlog_packets());
        if claimed != account.inside() {
            account.note(format!("it claims {claimed:?} and has {:?}", account.inside()));
        }
        let (bytes, packets) = account.inside();
        let kept = match limit {
            QueueLimit::Bytes(most) => bytes <= most,
            QueueLimit::Packets(most) => packets <= most,
        };
        if !kept {
            account.note(format!("{bytes} bytes in {packets} packets exceed {limit:?}"));
        }
        account.verdict()?;
    }
    Ok(account)
}

/// Watches a link and keeps account of what it tells.
#[derive(Default)]
struct Watch {
    account: Account,
    queue: (u64, u64),
    last_change: Time,
    last_finish: Time,
    sent_bytes: u64,
    /// End of sending by packet.
    finish: Vec<Option<Time>>,
    /// What utilisation was at the end of each packet: bytes sent by then.
    progress: Vec<(Time, u64)>,
}

impl LinkObserver<Serial> for Watch {
    fn queue_changed(&mut self, now: Time, bytes: u64, packets: u64) {
        if now < self.last_change {
            self.account.note(format!("the queue changed at {now} after {}", self.last_change));
        }
        self.last_change = now;
        self.queue = (bytes, packets);
    }

    fn sent(&mut self, dequeued: Time, start: Time, finish: Time, packet: &mut Packet<Serial>) {
        if start < self.last_finish
            || finish < start
            || packet.queued_at > dequeued
            || dequeued > start
        {
            self.account.note(format!(
                "packet {}, queued at {}, was sent from {start} to {finish}, its predecessor to {}",
                packet.transport.0, packet.queued_at, self.last_finish
            ));
        }
        self.last_finish = finish;
        self.sent_bytes += u64::from(packet.size_bytes);
        self.finish.resize(self.finish.len().max(packet.transport.0 + 1), None);
        self.finish[packet.transport.0] = Some(finish);
        self.progress.push((finish, self.sent_bytes));
    }

    fn dropped(&mut self, now: Time, packet: &Packet<Serial>, reason: DropReason) {
        let sent = self.finish.get(packet.transport.0).copied().flatten();
        let on_the_way = matches!(reason, DropReason::Loss | DropReason::Outage);
        if sent != on_the_way.then_some(now) {
            self.account.note(format!("{reason:?} at {now} of a packet sent at {sent:?}"));
        }
        self.account.leave(packet, State::Dropped);
    }
}

/// Drives a link and checks after every operation that packets handed over = taken + dropped +
/// waiting + in flight, that packets are sent one at a time and never faster than its capacity,
/// arrive no earlier than `least_delay` after that, in the order in which they were sent unless
/// `may_reorder`, and exactly when `next_time` says. `capacity` is one like the link's.
///
/// # Errors
/// The first thing that it does wrong.
pub fn check_link(
    mut link: Link<Serial>,
    mut capacity: Box<dyn Capacity>,
    least_delay: Span,
    may_reorder: bool,
    two_queues: bool,
    operations: &[Operation],
) -> Result<Account, String> {
    let (mut watch, mut now, mut last_exit) = (Watch::default(), Time::ZERO, Time::ZERO);
    watch.account.two_queues = two_queues;
    let draining = std::iter::repeat_n(&Operation::Take, 4 * operations.len() + 4);
    for operation in operations.iter().chain(draining) {
        match *operation {
            // Like the simulator: everything that is due on the way is done.
            Operation::Wait(span) => {
                let until = now + span;
                while link.next_time() <= until && link.next_time() != Time::NEVER {
                    now = link.next_time();
                    take(&mut link, &mut watch, now, &mut last_exit, (least_delay, may_reorder));
                    watch.account.verdict()?;
                }
                now = until;
                link.advance(now, &mut watch);
            }
            Operation::Arrive { flow, size_bytes, ecn } => {
                let packet = watch.account.arrive(now, flow, size_bytes, ecn);
                link.push(now, packet, &mut watch);
            }
            Operation::Take => {
                let next = link.next_time();
                if next != Time::NEVER {
                    if next < now {
                        watch.account.note(format!("next time {next} is before {now}"));
                    }
                    now = next;
                    take(&mut link, &mut watch, now, &mut last_exit, (least_delay, may_reorder));
                }
            }
        }
        let inside = watch.account.inside().1;
        if inside != link.queue_packets() + link.in_flight() {
            watch.account.note(format!(
                "{inside} packets inside: {} waiting, {} in flight",
                link.queue_packets(),
                link.in_flight()
            ));
        }
        if watch.queue != (link.queue_bytes(), link.queue_packets()) {
            watch.account.note(format!("told {:?} of a queue that differs", watch.queue));
        }
        watch.account.verdict()?;
    }
    for (sent, (finish, bytes)) in (1..).zip(&watch.progress) {
        // The times of packets are rounded down to nanoseconds; back to back at one rate, they share it.
        let offered = capacity.offered_bytes(*finish + Span::from_ns(sent));
        if *finish != Time::NEVER && *bytes as f64 > offered * (1.0 + 1e-12) + 1e-6 {
            return Err(format!("{bytes} bytes sent by {finish}, {offered} offered"));
        }
    }
    Ok(watch.account)
}

fn take(
    link: &mut Link<Serial>,
    watch: &mut Watch,
    now: Time,
    last_exit: &mut Time,
    (least_delay, may_reorder): (Span, bool),
) {
    let before = link.next_time();
    let Some(packet) = link.pop(now, watch) else {
        if link.next_time() <= before && link.next_time() <= now {
            watch.account.note(format!("nothing came at {now}, and that is still the next time"));
        }
        return;
    };
    watch.account.take(&packet, !may_reorder);
    let finish = watch.finish.get(packet.transport.0).copied().flatten();
    if finish.is_none_or(|finish| finish + least_delay > now) {
        watch.account.note(format!("packet {} of {finish:?} came at {now}", packet.transport.0));
    }
    if now < *last_exit {
        watch.account.note(format!("an exit at {now} after one at {last_exit}"));
    }
    *last_exit = now;
}
