//! Forwards data between the legs of split flows, and packets through tunnels; see `proxy.rs` and
//! `tunnel.rs`.

use jostle_metrics::EventSink;
use jostle_units::{ConnectionId, Time};

use super::Simulation;
use crate::endpoints::EndpointKind;
use crate::proxy::ProxyLeg;
use crate::tcp_connection::TcpConnection;
use crate::transport::{EndpointContext, FlowStatus};

impl<S: EventSink> Simulation<'_, S> {
    /// Handles the proxy legs that received packets and browsers whose messages are complete, and
    /// completes flows of shared connections.
    #[cold]
    #[inline(never)]
    pub(super) fn relay(&mut self, now: Time) {
        while let Some(leg) = self.world.network.relayed.pop() {
            let is_shared = matches!(self.endpoints(now, leg), Some((EndpointKind::Shared(_), _)));
            match leg.own_flow(self.world.flows.len()) {
                None => self.on_messages_complete(now, leg),
                Some(_) if is_shared => self.complete(now, leg),
                Some(_) => self.relay_at(now, leg),
            }
        }
    }

    /// Handles a packet that reached an end of a proxy leg: a SYN or data at its receiver, an
    /// ACK at its sender.
    fn relay_at(&mut self, now: Time, leg: ConnectionId) {
        let Some((connection, mut host)) = self.connection(now, leg) else { return };
        let Some(part) = connection.proxy_leg_mut() else { return };
        if part.tunnel.is_some() {
            return connection.carry_packets(&mut host);
        }
        let ProxyLeg { origin, previous_leg: before, next, .. } = *part;
        let arrived_bytes = std::mem::take(&mut part.arrived_bytes);
        match next {
            Some(next) => {
                if self.world.flows[next.index()].times.start == Time::NEVER {
                    self.world.flows[next.index()].times.start = now;
                    self.act(now, next);
                }
                self.pass_on(now, leg, next);
            }
            None => {
                if let Some((first, mut host)) = self.connection(now, origin) {
                    first.answered(arrived_bytes, &mut host);
                }
            }
        }
        if let Some(before) = before {
            self.pass_on(now, before, leg);
        }
        self.complete_if_empty(now, origin);
    }

    /// Passes the packets that wait at the entrance of a tunnel to its connection.
    #[cold]
    pub(super) fn enter_tunnel(&mut self, now: Time, connection: ConnectionId) {
        match self.endpoints(now, connection) {
            Some((EndpointKind::Connection(end), mut host)) => end.carry_packets(&mut host),
            Some((EndpointKind::Quic(end), mut host)) => end.carry_packets(&mut host),
            Some((EndpointKind::UdpTunnel(end), mut host)) => end.send_waiting(&mut host),
            _ => debug_assert!(false, "an entrance without a tunnel"),
        }
    }

    /// Moves data from one leg to the next, as far as the proxy may read and write.
    fn pass_on(&mut self, now: Time, from: ConnectionId, to: ConnectionId) {
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

    /// Completes the data written by the application of a split flow, if all of it has arrived.
    fn complete_if_empty(&mut self, now: Time, origin: ConnectionId) {
        let mut part = Some(origin);
        while let Some(at) = part {
            let Some((connection, _)) = self.connection(now, at) else { return };
            if !connection.is_empty() {
                return;
            }
            part = connection.proxy_leg_mut().and_then(|part| part.next);
        }
        let Some((first, mut host)) = self.connection(now, origin) else { return };
        if first.complete_split_flow(&mut host) == FlowStatus::Complete {
            self.complete(now, origin);
        }
    }

    fn connection(
        &mut self,
        now: Time,
        leg: ConnectionId,
    ) -> Option<(&mut TcpConnection, EndpointContext<'_, S>)> {
        match self.endpoints(now, leg)? {
            (EndpointKind::Connection(connection), host) => Some((connection, host)),
            _ => None,
        }
    }
}
