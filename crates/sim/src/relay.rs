//! Proxies that split a flow into connections (RFC 3135 §2.4): when what came over one goes on over
//! the next.
//!
//! Each connection is a flow of the network, with its own ends, way and timers. A proxy is the
//! receiver of one and the sender of the next, which it opens when the SYN of the first arrives. It
//! reads what has arrived in order as soon as it may write it, and writes as long as it holds less
//! than its buffer: what the next receiver has not acknowledged. What it does not read stays in the
//! receive buffer of the connection before it, whose window closes.

use jostle_record::Sink;
use jostle_units::Time;

use crate::connection::Connection;
use crate::endpoints::Endpoints;
use crate::host::{Host, Progress};
use crate::simulation::Simulation;

/// What a connection has to do with the proxies that split its flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The first connection of the flow, whose sender the flow's is.
    pub origin: u32,
    /// The one before it, if its sender is a proxy.
    pub before: Option<u32>,
    /// The one after it, if its receiver is a proxy.
    pub next: Option<u32>,
    /// Most that the proxy at its sender holds.
    pub buffer_bytes: u64,
    /// What that has written so far.
    pub written_bytes: u64,
    /// What has arrived at the flow's receiver since this was looked at.
    pub arrived_bytes: u64,
    /// Of the first connection: bytes of the response that was asked for last that the flow's
    /// receiver does not have.
    pub unanswered_bytes: u64,
    /// Of the first connection: all that the application wrote has arrived, and that was told.
    pub is_settled: bool,
}

impl Part {
    pub const fn new(origin: u32, before: Option<u32>, next: Option<u32>) -> Self {
        Self {
            origin,
            before,
            next,
            buffer_bytes: 0,
            written_bytes: 0,
            arrived_bytes: 0,
            unanswered_bytes: 0,
            is_settled: false,
        }
    }
}

impl<S: Sink> Simulation<'_, S> {
    /// Proxies do what has become possible.
    #[cold]
    #[inline(never)]
    pub(crate) fn relay(&mut self, now: Time) {
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
        match self.endpoints(now, flow) {
            (Endpoints::Connection(connection), host) => Some((connection, host)),
            _ => None,
        }
    }
}
