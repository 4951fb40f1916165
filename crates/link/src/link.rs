//! A link: a queue in front of a capacity, then a delay, then losses.

mod components;
mod granted;
mod impaired;

use jostle_units::{ConnectionId, FlowId, RingBuffer, Time};

use self::components::{
    GrantedService, Impairments, InlineQueue, PacketInPipe, Propagation, Transmission,
};
use crate::queue::Backlog;
use crate::{
    Capacity, Delay, DropReason, FlowHosts, FrameAggregation, Framing, LinkObserver, Loss, Packet,
    QueueDiscipline, Service, ServiceRate, TransportHeader,
};

/// One direction of a link.
///
/// # One event per packet
/// When the transmission of a packet begins, its finish time and its exit time at the far end
/// follow from capacity and delay. The packet is therefore put into the pipe with its exit time
/// immediately. Departures from the queue need no events: every call first starts all services that
/// were due before ([`advance`](Self::advance)), each at its own logical time, so that the queue
/// discipline sees the state of that time. [`next_time`](Self::next_time) is the exit time of the
/// head of the pipe.
///
/// # Order of events at one time
/// A service that is due when a packet arrives starts before that packet is queued. A packet that
/// arrives at an idle link with an empty queue is sent immediately, through `enqueue` and `dequeue`
/// of the discipline. When the link becomes idle with an empty queue, `dequeue` is called as well,
/// because RED and CoDel thereby detect that the queue is empty, as under Linux.
///
/// # Frames
/// A link with [`FrameAggregation`] waits for the medium before it sends, then takes packets from
/// its queue up to the limits of the frame. The packets of a frame are sent one after the other and
/// exit together, when the last of them has been sent.
///
/// # Accounting
/// The packet in transmission does not count as queued, because Linux queue disciplines do not
/// count packets in the network card. Lost packets take their transmission time, are evaluated in
/// order of departure, and never exit. Without reordering, an exit is not earlier than the previous
/// one.
pub struct Link<B> {
    queue: InlineQueue<B>,
    capacity: Transmission,
    delay: Propagation,
    losses: Vec<Box<dyn Loss>>,
    frames: Option<Box<FrameAggregation<B>>>,
    /// Capacity on demand, instead of `capacity`.
    grants: Option<Box<GrantedService<B>>>,
    /// Faults, and habits of netem.
    impairments: Option<Box<Impairments>>,
    may_reorder: bool,
    /// A service can result in an exit before the head of the pipe exits.
    wakes_for_service: bool,
    /// Packets in transmission or propagation, in order of exit. Waiting packets follow with the
    /// exit [`Time::NEVER`], if the queue is stored here.
    pipe: RingBuffer<PacketInPipe<B>>,
    /// Latest exit time so far.
    last_exit: Time,
    /// Start of the next service; [`Time::NEVER`] if nothing waits or the link has stopped for
    /// good.
    free_at: Time,
    /// The queue discipline had nothing to send at the last service.
    idle: bool,
    /// Packets that the discipline has accepted and neither returned nor dropped.
    waiting: Backlog,
    /// Service rate, if it is not the capacity.
    service: Option<Box<ServiceRate>>,
    /// Bytes sent so far, if another component takes the packets instead of the capacity.
    taken_bytes: Option<u64>,
}

impl<B: TransportHeader + Copy> Link<B> {
    /// Creates a link from its components. Each of `losses` sees every packet that was sent; the
    /// first one that loses a packet determines the reason.
    pub fn new(
        queue: Box<dyn QueueDiscipline<B>>,
        capacity: Box<dyn Capacity>,
        delay: Box<dyn Delay>,
        losses: Vec<Box<dyn Loss>>,
    ) -> Self {
        let may_reorder = delay.may_reorder();
        Self {
            may_reorder,
            wakes_for_service: may_reorder,
            queue: InlineQueue::of(queue, !may_reorder && losses.is_empty()),
            capacity: Transmission::of(capacity),
            delay: Propagation::of(delay),
            losses,
            frames: None,
            grants: None,
            impairments: None,
            pipe: RingBuffer::default(),
            last_exit: Time::ZERO,
            free_at: Time::NEVER,
            idle: true,
            waiting: Backlog::default(),
            service: None,
            taken_bytes: None,
        }
    }

    /// Sets the service rate of the link. Without it, the service rate is the capacity.
    #[must_use]
    pub fn with_service_rate(self, rate: ServiceRate) -> Self {
        let service = (!rate.is_capacity()).then(|| Box::new(rate));
        Self { service, ..self }
    }

    /// Enables frame aggregation.
    #[must_use]
    pub fn with_frames(self, frames: FrameAggregation<B>) -> Self {
        Self { frames: Some(Box::new(frames)), queue: self.queue.apart(), ..self }
    }

    /// Sets the framing of the wire: the capacity sends packets with their size on the wire. Queues
    /// and all other sizes are without it.
    #[must_use]
    pub fn with_framing(self, framing: Framing) -> Self {
        Self { capacity: self.capacity.framed(framing), queue: self.queue.apart(), ..self }
    }

    /// Lets another component, such as the connection of a tunnel, take the packets from the queue
    /// with [`take_next`](Self::take_next) and deliver them at the far end with
    /// [`deliver`](Self::deliver). The capacity is not used.
    #[must_use]
    pub fn served_on_demand(self) -> Self {
        // Neither idle nor free: no arrival starts a service.
        Self { taken_bytes: Some(0), idle: false, queue: self.queue.apart(), ..self }
    }

    /// Takes the next packet from the queue of a link that is served on demand.
    pub fn take_next<P: LinkObserver<B>>(&mut self, now: Time, probe: &mut P) -> Option<Packet<B>> {
        let packet = self.take(now, probe);
        (self.idle, self.free_at) = (false, Time::NEVER);
        let mut packet = packet?;
        if let Some(bytes) = &mut self.taken_bytes {
            *bytes += u64::from(packet.size_bytes);
        }
        probe.sent(now, now, now, &mut packet);
        Some(packet)
    }

    /// Delivers a packet at the far end of a link that is served on demand, after the delay.
    pub fn deliver<P: LinkObserver<B>>(&mut self, now: Time, packet: Packet<B>, probe: &mut P) {
        self.travel(now, packet, probe);
    }

    /// Passes the hosts of each flow, by flow number, to the queue. Call it before the first
    /// packet.
    pub fn know_hosts(&mut self, hosts: &[FlowHosts]) {
        if let Some(queue) = self.queue.boxed_discipline() {
            queue.set_flow_hosts(hosts);
        }
    }

    /// Registers that packets of `flow` can also have the number of a connection. `is_opposite`: the
    /// receiver of the flow is the sender of the connection.
    pub fn admit(&mut self, connection: ConnectionId, flow: FlowId, is_opposite: bool) {
        if let Some(impairments) = &mut self.impairments {
            impairments.faults.admit(connection, flow);
        }
        if let Some(queue) = self.queue.boxed_discipline() {
            queue.register_connection(connection, flow, is_opposite);
        }
    }

    /// Handles the arrival of a packet. The times of `push`, `pop` and `advance` must not decrease.
    /// Always inlined, so that callers construct the packet in place.
    #[inline(always)]
    pub fn push<P: LinkObserver<B>>(&mut self, now: Time, packet: Packet<B>, probe: &mut P) {
        self.advance(now, probe);
        if (self.impairments.is_some() || self.grants.is_some())
            && !self.admits(now, &packet, probe)
        {
            return;
        }
        if self.waiting.packets == 0
            && let Some(service) = &mut self.service
        {
            service.on_first_packet(now);
        }
        self.queue.enqueue(now, packet, (&mut self.waiting, &mut self.pipe), probe);
        probe.queue_changed(now, self.waiting.bytes, self.waiting.packets);
        if self.idle {
            self.idle = false;
            self.free_at = now;
            self.advance(now, probe);
        }
    }

    /// Removes and returns the next packet that has exited by `now`.
    #[inline]
    pub fn pop<P: LinkObserver<B>>(&mut self, now: Time, probe: &mut P) -> Option<Packet<B>> {
        let packet = *self.first(now, probe)?;
        self.forget_first();
        Some(packet)
    }

    /// Returns the packet that [`pop`](Self::pop) would return, without a copy.
    /// [`forget_first`](Self::forget_first) removes it.
    #[inline]
    pub fn first<P: LinkObserver<B>>(&mut self, now: Time, probe: &mut P) -> Option<&Packet<B>> {
        self.advance(now, probe);
        let head = self.pipe.front()?;
        (head.exit <= now && head.exit != Time::NEVER).then_some(&head.packet)
    }

    /// Returns the packet that [`first`](Self::first) returned, again.
    #[inline]
    pub fn head(&self) -> Option<&Packet<B>> {
        self.pipe.front().map(|head| &head.packet)
    }

    /// Removes the packet that [`first`](Self::first) returned.
    #[inline]
    pub fn forget_first(&mut self) {
        self.pipe.forget_front();
    }

    /// Returns the time for the next call of [`pop`](Self::pop); [`Time::NEVER`] if nothing is in
    /// the link. It can change with every other call.
    ///
    /// It is the exit time of the head of the pipe, unless a service that has not started yet can
    /// result in an earlier exit: if packets wait and all packets sent so far were lost, or if
    /// packets can be reordered. It may then be the start of that service, and `pop` returns `None`
    /// but advances the link.
    #[inline]
    pub fn next_time(&self) -> Time {
        let exit = self.pipe.front().map_or(Time::NEVER, |head| head.exit);
        let service_matters = self.wakes_for_service || exit == Time::NEVER;
        if service_matters && (self.waiting.packets > 0 || self.has_unfinished_packet()) {
            exit.min(self.free_at)
        } else {
            exit
        }
    }

    /// Starts every service that is due by `now`.
    #[inline]
    pub fn advance<P: LinkObserver<B>>(&mut self, now: Time, probe: &mut P) {
        if self.grants.is_some() {
            return self.advance_granted(now, probe);
        }
        while self.free_at <= now && self.free_at != Time::NEVER {
            self.serve(probe);
        }
    }

    /// Starts every service that is due by `now`, and updates all state that depends only on time.
    /// This does not change later results. Without it, all updates are made at once when the next
    /// packet arrives.
    pub fn pass<P: LinkObserver<B>>(&mut self, now: Time, probe: &mut P) {
        self.advance(now, probe);
        if let Some(queue) = self.queue.boxed_discipline() {
            queue.advance_to(now);
        }
        // All later packets finish at `now` or later.
        for loss in &mut self.losses {
            loss.advance_to(now);
        }
    }

    /// Returns the bytes in the queue at the last call.
    #[inline]
    pub fn queue_bytes(&self) -> u64 {
        self.waiting.bytes
    }

    /// Returns the packets in the queue at the last call.
    #[inline]
    pub fn queue_packets(&self) -> u64 {
        self.waiting.packets
    }

    /// Returns the packets in transmission or propagation, which will exit unless the link stops
    /// for good.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        let waiting =
            if let InlineQueue::InPipe(_) = self.queue { self.waiting.packets } else { 0 };
        self.pipe.len() as u64 - waiting + u64::from(self.has_unfinished_packet())
    }

    /// Returns the service until `now`, from which the utilisation is computed. `now` must not be earlier than in any other call.
    pub fn service(&mut self, now: Time) -> Service {
        if let Some(bytes) = self.taken_bytes {
            return Service::of_drain(bytes as f64);
        }
        match &mut self.service {
            None => self.capacity.offered_bytes(now).into(),
            Some(service) => service.until(now),
        }
    }

    /// Starts the service that is due at `free_at`.
    fn serve<P: LinkObserver<B>>(&mut self, probe: &mut P) {
        if let InlineQueue::InPipe(_) = self.queue {
            return self.serve_in_pipe(probe);
        }
        if self.frames.is_some() {
            return self.serve_framed(probe);
        }
        let start = self.free_at;
        let Some(mut packet) = self.take(start, probe) else { return };
        let finish = self.capacity.finish(start, packet.size_bytes);
        self.free_at = finish;
        probe.sent(start, start, finish, &mut packet);
        self.travel(finish, packet, probe);
    }

    /// Starts the service of a queue that is stored in the pipe. The first waiting packet gets its
    /// exit time and is not moved.
    #[inline(always)]
    fn serve_in_pipe<P: LinkObserver<B>>(&mut self, probe: &mut P) {
        let start = self.free_at;
        let first = self.pipe.len() - self.waiting.packets as usize;
        let Some(PacketInPipe { exit, packet }) = self.pipe.get_mut(first) else {
            // The next arrival restarts the link.
            self.idle = true;
            self.free_at = Time::NEVER;
            return;
        };
        self.idle = false;
        self.waiting.remove(packet.size_bytes);
        probe.queue_changed(start, self.waiting.bytes, self.waiting.packets);
        let finish = self.capacity.finish(start, packet.size_bytes);
        self.free_at = finish;
        probe.sent(start, start, finish, packet);
        if finish < Time::NEVER {
            self.last_exit = (finish + self.delay.delay(finish)).max(self.last_exit);
            *exit = self.last_exit;
        }
    }

    /// Starts the service of a link with frames. The frames are moved out here, so that links
    /// without frames do not pay for it.
    #[cold]
    #[inline(never)]
    fn serve_framed<P: LinkObserver<B>>(&mut self, probe: &mut P) {
        if let Some(frames) = self.frames.take() {
            self.frames = Some(self.serve_frame(frames, probe));
        }
    }

    /// Starts to wait for the medium, or sends a frame if the link has gained it.
    fn serve_frame<P: LinkObserver<B>>(
        &mut self,
        mut frames: Box<FrameAggregation<B>>,
        probe: &mut P,
    ) -> Box<FrameAggregation<B>> {
        let start = self.free_at;
        if self.waiting.packets == 0 {
            frames.give_up();
        } else if let Some(contention) = frames.contend() {
            self.free_at = start + contention;
            return frames;
        }
        frames.begin();
        while frames.can_add_packet() {
            let Some(packet) = self.take(start, probe) else { break };
            frames.add(packet);
        }
        if frames.packets.is_empty() {
            return frames;
        }
        // The frame leaves even if it is not full. Later packets go into the next one.
        self.idle = false;
        let mut finish = start;
        for packet in &mut frames.packets {
            let begin = finish;
            if begin < Time::NEVER {
                finish = self.capacity.finish(begin, packet.size_bytes);
            }
            probe.sent(start, begin, finish, packet);
        }
        self.free_at = finish;
        for packet in &frames.packets {
            self.travel(finish, *packet, probe);
        }
        frames
    }

    /// Takes the next packet from the queue, if there is one.
    #[inline(always)]
    fn take<P: LinkObserver<B>>(&mut self, start: Time, probe: &mut P) -> Option<Packet<B>> {
        let before = self.waiting.packets;
        let Some(packet) = self.queue.dequeue(start, &mut self.waiting, probe) else {
            // The next arrival restarts the link, or the time at which a shaper releases a packet.
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
        if let Some(service) = &mut self.service {
            service.count(start, 1, f64::from(packet.size_bytes));
        }
        probe.queue_changed(start, self.waiting.bytes, self.waiting.packets);
        Some(packet)
    }

    /// Puts a packet that was sent at `finish` into the pipe, unless it is lost.
    #[inline(always)]
    fn travel<P: LinkObserver<B>>(&mut self, finish: Time, packet: Packet<B>, probe: &mut P) {
        if finish == Time::NEVER {
            self.pipe.push_back(PacketInPipe { exit: Time::NEVER, packet });
            return;
        }
        if self.impairments.is_some() {
            return self.travel_impaired(finish, packet, probe);
        }
        let exit = finish + self.delay.delay(finish);
        if let Some(reason) = self.verdict(finish) {
            probe.dropped(finish, &packet, reason);
            return;
        }
        if self.may_reorder && exit < self.last_exit {
            self.pipe.push_before(PacketInPipe { exit, packet }, |other| other.exit > exit);
        } else {
            self.last_exit = exit.max(self.last_exit);
            self.pipe.push_back(PacketInPipe { exit: self.last_exit, packet });
        }
    }

    /// Returns the reason if the packet is lost. Every loss process sees every departure, so that
    /// none depends on the results of another.
    #[inline]
    fn verdict(&mut self, finish: Time) -> Option<DropReason> {
        let mut verdict = None;
        for loss in &mut self.losses {
            verdict = verdict.or(loss.verdict(finish));
        }
        verdict
    }
}

#[cfg(test)]
mod granted_tests;
#[cfg(test)]
mod impaired_tests;
#[cfg(test)]
mod tests;
