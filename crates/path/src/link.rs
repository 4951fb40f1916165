//! A link: a queue in front of a capacity, then a delay, then losses.

mod parts;

use jostle_units::{Ring, Time};

use self::parts::{Propagation, Queue, Sending, Travelling};
use crate::queue::Backlog;
use crate::{Capacity, Delay, Frames, Hosts, Loss, Packet, Probe, QueueDiscipline, Reason};

/// One direction of a link.
///
/// # One event per packet
/// When a packet starts to be sent, the end of sending and the exit at the far end follow from
/// capacity and delay, so it goes straight into the pipe with its exit time. Departures from the
/// queue need no events of their own: every call first catches up on the services that were due
/// by then ([`advance`](Self::advance)), each at its own logical time, so that the discipline
/// decides on what it would have seen then. [`next_time`](Self::next_time) is the exit of the
/// pipe's head.
///
/// # Order of things at one instant
/// A service due at the instant of an arrival starts before that arrival is queued. An arrival that
/// finds the link free and nothing waiting starts at once, through the discipline's `enqueue` and
/// `dequeue`. When the link gets free and nothing waits, the discipline is asked all the same: RED
/// and CoDel learn from it that the queue ran empty, as under Linux.
///
/// # Frames
/// A link with [`Frames`] waits for the medium before it sends, then takes what its queue gives, up to
/// the frame's limits. The packets of a frame are sent one after the other and exit together, when the
/// last of them has been sent.
///
/// # What counts
/// The packet being sent is not in the queue, as Linux's disciplines do not count what the card
/// holds. Lost packets take their time on the wire, are judged in order of departure, and never
/// surface. Without reordering, an exit is held back to the one before it.
pub struct Link<B> {
    queue: Queue<B>,
    capacity: Sending,
    delay: Propagation,
    losses: Vec<Box<dyn Loss>>,
    frames: Option<Box<Frames<B>>>,
    may_reorder: bool,
    /// Being sent or propagating, in order of exit; behind them what waits, with an exit that is never,
    /// where the queue leaves it here.
    pipe: Ring<Travelling<B>>,
    /// Latest exit so far.
    last_exit: Time,
    /// When the next service starts; [`Time::NEVER`] while nothing waits or stopped for good.
    free_at: Time,
    /// The discipline had nothing to send when it was last asked.
    idle: bool,
    /// What the discipline was given and has neither handed over nor dropped.
    waiting: Backlog,
}

impl<B: Copy> Link<B> {
    /// A link from its parts. All of `losses` see every packet that was sent; the first verdict
    /// counts.
    pub fn new(
        queue: Box<dyn QueueDiscipline<B>>,
        capacity: Box<dyn Capacity>,
        delay: Box<dyn Delay>,
        losses: Vec<Box<dyn Loss>>,
    ) -> Self {
        let may_reorder = delay.may_reorder();
        Self {
            may_reorder,
            queue: Queue::of(queue, !may_reorder && losses.is_empty()),
            capacity: Sending::of(capacity),
            delay: Propagation::of(delay),
            losses,
            frames: None,
            pipe: Ring::default(),
            last_exit: Time::ZERO,
            free_at: Time::NEVER,
            idle: true,
            waiting: Backlog::default(),
        }
    }

    /// Lets it send packets together.
    #[must_use]
    pub fn with_frames(self, frames: Frames<B>) -> Self {
        Self { frames: Some(Box::new(frames)), queue: self.queue.apart(), ..self }
    }

    /// Tells the queue between which hosts flows are, by their numbers, before any packet comes.
    pub fn know_hosts(&mut self, hosts: &[Hosts]) {
        if let Some(queue) = self.queue.other() {
            queue.know_hosts(hosts);
        }
    }

    /// From here on packets of `flow` come with the number of a connection as well.
    pub fn admit(&mut self, connection: u32, flow: u32) {
        if let Some(queue) = self.queue.other() {
            queue.admit(connection, flow);
        }
    }

    /// A packet arrives. Calls to `push`, `pop` and `advance` come in order of time. Always a part of its
    /// callers, which put a packet together in its place.
    #[inline(always)]
    pub fn push<P: Probe<B>>(&mut self, now: Time, packet: Packet<B>, probe: &mut P) {
        self.advance(now, probe);
        self.queue.enqueue(now, packet, (&mut self.waiting, &mut self.pipe), probe);
        probe.queue_changed(now, self.waiting.bytes, self.waiting.packets);
        if self.idle {
            self.idle = false;
            self.free_at = now;
            self.advance(now, probe);
        }
    }

    /// The next packet that has arrived at the far end by `now`.
    #[inline]
    pub fn pop<P: Probe<B>>(&mut self, now: Time, probe: &mut P) -> Option<Packet<B>> {
        let packet = *self.first(now, probe)?;
        self.forget_first();
        Some(packet)
    }

    /// As [`pop`](Self::pop), for who looks at the packet before it is copied; then
    /// [`forget_first`](Self::forget_first) takes it out.
    #[inline]
    pub fn first<P: Probe<B>>(&mut self, now: Time, probe: &mut P) -> Option<&Packet<B>> {
        self.advance(now, probe);
        let head = self.pipe.front()?;
        (head.exit <= now && head.exit != Time::NEVER).then_some(&head.packet)
    }

    /// The packet that [`first`](Self::first) has given, once more.
    #[inline]
    pub fn head(&self) -> Option<&Packet<B>> {
        self.pipe.front().map(|head| &head.packet)
    }

    /// The packet that [`first`](Self::first) has given leaves the link.
    #[inline]
    pub fn forget_first(&mut self) {
        self.pipe.forget_front();
    }

    /// When to call [`pop`](Self::pop) next; [`Time::NEVER`] if nothing is on its way. To be asked
    /// again after every other call.
    ///
    /// It is the exit of the pipe's head, except where a service that has not started yet may come
    /// before it: when packets wait while everything sent so far was lost, and when packets may
    /// overtake each other. Then it may be the start of that service, and `pop` returns nothing but
    /// moves on.
    #[inline]
    pub fn next_time(&self) -> Time {
        let exit = self.pipe.front().map_or(Time::NEVER, |head| head.exit);
        let service_matters = self.may_reorder || exit == Time::NEVER;
        if service_matters && self.waiting.packets > 0 { exit.min(self.free_at) } else { exit }
    }

    /// Starts every service that is due by `now`.
    #[inline]
    pub fn advance<P: Probe<B>>(&mut self, now: Time, probe: &mut P) {
        while self.free_at <= now && self.free_at != Time::NEVER {
            self.serve(probe);
        }
    }

    /// Starts every service that is due by `now`, and draws and updates what depends on time alone.
    /// Nothing that happens later is another for it; without it, all that was put off is done at
    /// once when the next packet comes.
    pub fn pass<P: Probe<B>>(&mut self, now: Time, probe: &mut P) {
        self.advance(now, probe);
        if let Some(queue) = self.queue.other() {
            queue.pass(now);
        }
        // What is sent from here on is judged at `now` or later.
        for loss in &mut self.losses {
            loss.pass(now);
        }
    }

    /// Bytes waiting as of the last call.
    #[inline]
    pub fn queue_bytes(&self) -> u64 {
        self.waiting.bytes
    }

    /// Packets waiting as of the last call.
    #[inline]
    pub fn queue_packets(&self) -> u64 {
        self.waiting.packets
    }

    /// Packets that are being sent or propagate, and will arrive unless the link stops for good.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        let waiting = if let Queue::InPipe(_) = self.queue { self.waiting.packets } else { 0 };
        self.pipe.len() as u64 - waiting
    }

    /// Bytes that could have been sent until `now`: what utilisation is measured against.
    /// Not to be asked for a time before that of any other call.
    pub fn offered_bytes(&mut self, now: Time) -> f64 {
        self.capacity.offered_bytes(now)
    }

    /// Starts the service that is due at `free_at`.
    fn serve<P: Probe<B>>(&mut self, probe: &mut P) {
        if let Queue::InPipe(_) = self.queue {
            return self.serve_in_pipe(probe);
        }
        if self.frames.is_some() {
            return self.serve_framed(probe);
        }
        let start = self.free_at;
        let Some(mut packet) = self.take(start, probe) else { return };
        let finish = self.capacity.finish(start, packet.size_bytes);
        self.free_at = finish;
        probe.sent(start, finish, &mut packet);
        self.travel(finish, packet, probe);
    }

    /// The same where what waits lies in the pipe: the first of it gets its exit, and stays where it is.
    #[inline(always)]
    fn serve_in_pipe<P: Probe<B>>(&mut self, probe: &mut P) {
        let start = self.free_at;
        let first = self.pipe.len() - self.waiting.packets as usize;
        let Some(Travelling { exit, packet }) = self.pipe.get_mut(first) else {
            // The next arrival starts the link.
            self.idle = true;
            self.free_at = Time::NEVER;
            return;
        };
        self.idle = false;
        self.waiting.remove(packet.size_bytes);
        probe.queue_changed(start, self.waiting.bytes, self.waiting.packets);
        let finish = self.capacity.finish(start, packet.size_bytes);
        self.free_at = finish;
        probe.sent(start, finish, packet);
        if finish < Time::NEVER {
            self.last_exit = (finish + self.delay.delay(finish)).max(self.last_exit);
            *exit = self.last_exit;
        }
    }

    /// The same of a link with frames. Its frames are taken out meanwhile, here and not where links
    /// without any would pay for it.
    #[cold]
    #[inline(never)]
    fn serve_framed<P: Probe<B>>(&mut self, probe: &mut P) {
        if let Some(frames) = self.frames.take() {
            self.frames = Some(self.serve_frame(frames, probe));
        }
    }

    /// It begins to wait for the medium, or has it and sends.
    fn serve_frame<P: Probe<B>>(
        &mut self,
        mut frames: Box<Frames<B>>,
        probe: &mut P,
    ) -> Box<Frames<B>> {
        let start = self.free_at;
        if self.waiting.packets == 0 {
            frames.give_up();
        } else if let Some(contention) = frames.contend() {
            self.free_at = start + contention;
            return frames;
        }
        frames.begin();
        while frames.has_room() {
            let Some(packet) = self.take(start, probe) else { break };
            frames.add(packet);
        }
        if frames.packets.is_empty() {
            return frames;
        }
        // Full or not, it leaves: what the queue had not is for the next one.
        self.idle = false;
        let mut finish = start;
        for packet in &mut frames.packets {
            let begin = finish;
            if begin < Time::NEVER {
                finish = self.capacity.finish(begin, packet.size_bytes);
            }
            probe.sent(begin, finish, packet);
        }
        self.free_at = finish;
        for packet in &frames.packets {
            self.travel(finish, *packet, probe);
        }
        frames
    }

    /// Takes the next packet from the queue; there may be none.
    #[inline(always)]
    fn take<P: Probe<B>>(&mut self, start: Time, probe: &mut P) -> Option<Packet<B>> {
        let before = self.waiting.packets;
        let Some(packet) = self.queue.dequeue(start, &mut self.waiting, probe) else {
            // The next arrival starts the link, or what a shaper holds back when it says so.
            self.idle = true;
            self.free_at = self.queue.ready_at();
            debug_assert!(self.free_at > start, "a time to ask again that has passed");
            if self.waiting.packets != before {
                probe.queue_changed(start, self.waiting.bytes, self.waiting.packets);
            }
            return None;
        };
        self.idle = false;
        self.waiting.remove(packet.size_bytes);
        debug_assert!(
            self.queue.agrees(&self.waiting),
            "the discipline's account differs from what it was given, handed over and dropped"
        );
        probe.queue_changed(start, self.waiting.bytes, self.waiting.packets);
        Some(packet)
    }

    /// A packet that has been sent at `finish` goes on its way, unless it is lost.
    #[inline(always)]
    fn travel<P: Probe<B>>(&mut self, finish: Time, packet: Packet<B>, probe: &mut P) {
        if finish == Time::NEVER {
            self.pipe.push_back(Travelling { exit: Time::NEVER, packet });
            return;
        }
        let exit = finish + self.delay.delay(finish);
        if let Some(reason) = self.verdict(finish) {
            probe.dropped(finish, &packet, reason);
            return;
        }
        if self.may_reorder && exit < self.last_exit {
            self.pipe.push_before(Travelling { exit, packet }, |other| other.exit > exit);
        } else {
            self.last_exit = exit.max(self.last_exit);
            self.pipe.push_back(Travelling { exit: self.last_exit, packet });
        }
    }

    /// Every process sees every departure: none depends on what another one does.
    #[inline]
    fn verdict(&mut self, finish: Time) -> Option<Reason> {
        let mut verdict = None;
        for loss in &mut self.losses {
            verdict = verdict.or(loss.verdict(finish));
        }
        verdict
    }
}

#[cfg(test)]
mod tests;
