//! What the loop does for proxies; see `relay.rs`.

use jostle_record::Sink;
use jostle_units::Time;

use super::Simulation;
use crate::connection::Connection;
use crate::endpoints::Endpoints;
use crate::host::{Host, Progress};
use crate::relay::Part;

impl<S: Sink> Simulation<'_, S> {
    /// Proxies do what has become possible.
    #[cold]
    #[inline(never)]
    pub(super) fn relay(&mut self, now: Time) {
        while let Some(flow) = self.network.relayed.pop() {
            self.relay_at(now, flow);
        }
    }

    /// Something has come to an end of the connection `flow`: a SYN or data to its receiver, an ACK to
    /// its sender.
    fn relay_at(&mut self, now: Time, flow: u32) {
        let Some((connection, _)) = self.connection(now, flow) else { return };
        let Some(part) = connection.part_mut() else { return };
        let Part { origin, before, next, .. } = *part;
        let arrived_bytes = std::mem::take(&mut part.arrived_bytes);
        match next {
            Some(next) => {
                if self.flows[next as usize].times.start == Time::NEVER {
                    self.flows[next as usize].times.start = now;
                    self.act(now, next);
                }
                self.pass_on(now, flow, next);
            }
            None => {
                if let Some((first, mut host)) = self.connection(now, origin) {
                    first.answered(arrived_bytes, &mut host);
                }
            }
        }
        if let Some(before) = before {
            self.pass_on(now, before, flow);
        }
        self.settle(now, origin);
    }

    /// The proxy between two connections reads from one what it may write to the other.
    fn pass_on(&mut self, now: Time, from: u32, to: u32) {
        let unread_bytes = self.connection(now, from).map_or(0, |(it, _)| it.unread_bytes());
        if unread_bytes == 0 {
            return;
        }
        let bytes = self.connection(now, to).map_or(0, |(it, _)| it.writable_bytes(unread_bytes));
        if bytes == 0 {
            return;
        }
        if let Some((connection, mut host)) = self.connection(now, from) {
            connection.read(bytes, &mut host);
        }
        if let Some((connection, mut host)) = self.connection(now, to) {
            connection.write(bytes, &mut host);
        }
    }

    /// Finishes what the application of a split flow wrote, if all of it has arrived.
    fn settle(&mut self, now: Time, origin: u32) {
        let mut part = Some(origin);
        while let Some(at) = part {
            let Some((connection, _)) = self.connection(now, at) else { return };
            if !connection.is_empty() {
                return;
            }
            part = connection.part_mut().and_then(|part| part.next);
        }
        let Some((first, mut host)) = self.connection(now, origin) else { return };
        if first.settle_all(&mut host) == Progress::Complete {
            self.complete(now, origin);
        }
    }

    fn connection(&mut self, now: Time, flow: u32) -> Option<(&mut Connection, Host<'_, S>)> {
        match self.endpoints(now, flow)? {
            (Endpoints::Connection(connection), host) => Some((connection, host)),
            _ => None,
        }
    }
}
