//! Faults of packets after their transmission, and habits of netem's delay.

use jostle_units::Time;

use super::Link;
use super::components::{Impairments, PacketInPipe};
use crate::delay_queue::Batch;
use crate::faults::Shift;
use crate::{DelayQueue, DropReason, Ecn, Faults, LinkObserver, Packet, TransportHeader};

impl<B: TransportHeader + Copy> Link<B> {
    /// Sets the faults of packets, the limit of the packets in the delay, and whether all packets
    /// of a GSO batch have one random delay.
    #[must_use]
    pub fn with_impairments(
        self,
        faults: Faults,
        delay_queue: Option<DelayQueue>,
        per_batch: bool,
    ) -> Self {
        let wakes_for_service = self.wakes_for_service || faults.may_reorder();
        let batch = per_batch.then(Batch::default);
        let impairments = Some(Box::new(Impairments { faults, delay_queue, batch }));
        Self { wakes_for_service, impairments, queue: self.queue.apart(), ..self }
    }

    /// Counts a packet that arrives for the grants. Returns whether it may enter the queue: not if
    /// the limit of netem's delay includes the queue and is reached.
    #[cold]
    #[inline(never)]
    pub(super) fn admits<P: LinkObserver<B>>(
        &mut self,
        now: Time,
        packet: &Packet<B>,
        probe: &mut P,
    ) -> bool {
        let limit = self.impairments.as_ref().and_then(|it| it.delay_queue);
        if let Some(DelayQueue { limit_packets, includes_queue: true }) = limit
            && self.waiting.packets + self.packets_in_delay(now) >= limit_packets
        {
            probe.dropped(now, &Packet { queued_at: now, ..*packet }, DropReason::Overflow);
            return false;
        }
        if let Some(grants) = &mut self.grants {
            grants.grants.on_arrival(packet.size_bytes);
        }
        true
    }

    /// Returns the packets that exit after `now`, among those that were sent.
    fn packets_in_delay(&self, now: Time) -> u64 {
        let (mut low, mut high) = (0, self.pipe.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.pipe.get(middle) {
                Some(packet) if packet.exit <= now => low = middle + 1,
                _ => high = middle,
            }
        }
        (self.pipe.len() - low) as u64
    }

    /// Puts a packet that was sent at `finish` into the pipe, with its faults.
    #[cold]
    #[inline(never)]
    pub(super) fn travel_impaired<P: LinkObserver<B>>(
        &mut self,
        finish: Time,
        mut packet: Packet<B>,
        probe: &mut P,
    ) {
        let Some(mut impairments) = self.impairments.take() else { return };
        let delay = match &mut impairments.batch {
            None => self.delay.delay(finish),
            Some(batch) => batch.delay(&packet, || self.delay.delay(finish)),
        };
        let fate = impairments.faults.next(packet.connection, packet.transport.class());
        let verdict = self.verdict(finish);
        if let Some(reason) = verdict.or(fate.lost.then_some(DropReason::Loss)) {
            probe.dropped(finish, &packet, reason);
            self.impairments = Some(impairments);
            return;
        }
        let limit = impairments.delay_queue;
        let room = match limit {
            Some(DelayQueue { limit_packets, includes_queue: false }) => {
                limit_packets.saturating_sub(self.packets_in_delay(finish))
            }
            _ => u64::MAX,
        };
        if room == 0 {
            probe.dropped(finish, &packet, DropReason::DelayQueue);
            self.impairments = Some(impairments);
            return;
        }
        if fate.marked && packet.ecn != Ecn::NotCapable {
            packet.ecn = Ecn::Marked;
            probe.marked(finish, &packet, DropReason::Fault);
        }
        // The copy is intact, draws a new delay unless it is of a batch, and has no other fault.
        let copy = (fate.duplicated && room > 1).then(|| {
            let mut copy = packet;
            probe.duplicated(finish, &mut copy);
            copy
        });
        if fate.corrupted && !packet.is_corrupted {
            packet.is_corrupted = true;
            probe.corrupted(finish, &packet);
        }
        match fate.shift {
            None => self.put_in_order(finish + delay, packet),
            Some(Shift::Early) => self.put_out_of_order(finish, packet),
            Some(Shift::Late(span)) => {
                self.put_out_of_order((finish + delay).max(self.last_exit) + span, packet);
            }
        }
        if let Some(copy) = copy {
            let delay = if impairments.batch.is_none() { self.delay.delay(finish) } else { delay };
            self.put_in_order(finish + delay, copy);
        }
        self.impairments = Some(impairments);
    }

    /// Puts a packet into the pipe that only a packet with a fault, or random delays that may
    /// reorder, let others overtake.
    fn put_in_order(&mut self, exit: Time, packet: Packet<B>) {
        let exit = if self.may_reorder { exit } else { exit.max(self.last_exit) };
        self.last_exit = exit.max(self.last_exit);
        self.put_out_of_order(exit, packet);
    }

    fn put_out_of_order(&mut self, exit: Time, packet: Packet<B>) {
        self.pipe.push_before(PacketInPipe { exit, packet }, |other| other.exit > exit);
    }
}
