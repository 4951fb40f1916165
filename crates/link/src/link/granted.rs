//! Service of a link whose capacity a gateway assigns on demand.

use jostle_units::Time;

use super::Link;
use super::components::GrantedService;
use crate::{Grants, LinkObserver, TransportHeader};

impl<B: TransportHeader + Copy> Link<B> {
    /// Replaces the capacity by grants. The capacity should be constant, at the largest rate that
    /// is granted: the utilisation refers to it.
    #[must_use]
    pub fn with_grants(self, grants: Grants) -> Self {
        let grants = Some(Box::new(GrantedService { grants, unfinished: None }));
        Self { grants, wakes_for_service: true, queue: self.queue.apart(), ..self }
    }

    /// Returns whether a packet has left the queue and has not been sent completely.
    pub(super) fn has_unfinished_packet(&self) -> bool {
        self.grants.as_ref().is_some_and(|it| it.unfinished.is_some())
    }

    /// Handles all requests, superframes and services that are due by `now`, in order of time. If
    /// two are due at one time, the service is last.
    #[cold]
    #[inline(never)]
    pub(super) fn advance_granted<P: LinkObserver<B>>(&mut self, now: Time, probe: &mut P) {
        let Some(mut service) = self.grants.take() else { return };
        loop {
            let event = service.grants.next_event();
            if event <= now && event <= self.free_at {
                let unsent_bits = service.unfinished.as_ref().map_or(0, |(_, bits, _)| *bits);
                service.grants.step(self.waiting.bytes * 8 + unsent_bits);
            } else if self.free_at <= now && self.free_at != Time::NEVER {
                self.serve_granted(&mut service, probe);
            } else {
                break;
            }
        }
        self.grants = Some(service);
    }

    /// Sends the packet in fragments, or the next one, in the slots of the current superframe.
    fn serve_granted<P: LinkObserver<B>>(
        &mut self,
        service: &mut GrantedService<B>,
        probe: &mut P,
    ) {
        let start = self.free_at;
        let available_bits = service.grants.available_bits(start);
        if available_bits == 0 {
            let waits = self.waiting.packets > 0 || service.unfinished.is_some();
            self.idle = !waits;
            self.free_at = if waits { service.grants.next_superframe() } else { Time::NEVER };
            return;
        }
        let unfinished = service.unfinished.take();
        let next = unfinished.or_else(|| {
            let packet = self.take(start, probe)?;
            Some((packet, u64::from(packet.size_bytes) * 8, start))
        });
        let Some((mut packet, bits, dequeued)) = next else { return };
        if bits > available_bits {
            service.unfinished = Some((packet, bits - available_bits, dequeued));
            self.free_at = service.grants.next_superframe();
            return;
        }
        let finish = start + service.grants.time_for(bits);
        self.free_at = finish;
        probe.sent(dequeued, start, finish, &mut packet);
        self.travel(finish, packet, probe);
    }
}
