//! A connection of a browser: the client, which opens the connection, sends requests, and the server
//! sends responses. Only the flow of the responses is measured.

use jostle_congestion::QuickStartRate;
use jostle_metrics::EventSink;
use jostle_units::ConnectionId;

use super::{ACCEPTING, Directions, OPENING, SharedConnection};
use crate::tcp_connection::TcpConnection;
use crate::transport::EndpointContext;

/// Requests of a browser on a connection.
pub(super) struct Requests {
    /// Size of each request.
    bytes: u64,
    /// Bytes at the server that do not yet make a whole request.
    partial_bytes: u64,
    /// Whole requests at the server since the last query.
    whole: u32,
}

/// Requests that are complete at the server, and responses that are complete at the browser.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompletedMessages {
    pub requests: u32,
    pub responses: u32,
}

impl Requests {
    /// Counts bytes that the server has read. Returns whether a request is complete.
    fn read(&mut self, bytes: u64) -> bool {
        let bytes = self.partial_bytes + bytes;
        self.partial_bytes = bytes % self.bytes;
        let whole = (bytes / self.bytes) as u32;
        self.whole += whole;
        whole > 0
    }
}

impl Directions {
    /// Reports bytes that the application of a direction can read.
    pub(super) fn deliver<S: EventSink>(
        &mut self,
        direction: usize,
        bytes: u64,
        host: &mut EndpointContext<'_, S>,
    ) {
        let mut own = self.host(direction, host);
        let is_complete = match &mut self.requests {
            Some(requests) if direction == OPENING => requests.read(bytes),
            requests => {
                self.connections[direction].deliver(bytes, &mut own);
                requests.is_some() && self.connections[direction].source.has_completed()
            }
        };
        if is_complete {
            own.network.relayed.push(self.ids[ACCEPTING]);
        }
    }
}

impl SharedConnection {
    /// Joins the directions of a browser's connection, with requests of `request_bytes`. Returns the
    /// shares of the requests and of the responses.
    pub fn of_browser(
        connections: [TcpConnection; 2],
        ids: [ConnectionId; 2],
        request_bytes: u16,
    ) -> [Self; 2] {
        let requests = Requests { bytes: request_bytes.into(), partial_bytes: 0, whole: 0 };
        let granted_rate = QuickStartRate::NONE;
        Self::of(Directions { connections, ids, requests: Some(requests), granted_rate })
    }

    /// Sends a request of the browser. The first request opens the connection.
    pub fn send_request<S: EventSink>(&mut self, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        let mut directions = self.lock();
        let Some(Requests { bytes, .. }) = directions.requests else { return };
        directions.with_sender(OPENING, host, |sender, port| {
            sender.supply(now, Some(bytes), port);
            sender.open(now, port);
        });
    }

    /// Sends a response of `bytes`.
    pub fn send_response<S: EventSink>(&mut self, bytes: u64, host: &mut EndpointContext<'_, S>) {
        let now = host.now;
        let mut directions = self.lock();
        directions.connections[ACCEPTING].messages.write(bytes, now);
        directions
            .with_sender(ACCEPTING, host, |sender, port| sender.supply(now, Some(bytes), port));
    }

    /// Returns the messages that were completed since the last call.
    pub fn take_completed(&mut self) -> CompletedMessages {
        let mut directions = self.lock();
        let requests = directions.requests.as_mut();
        CompletedMessages {
            requests: requests.map_or(0, |requests| std::mem::take(&mut requests.whole)),
            responses: directions.connections[ACCEPTING].source.take_completed(),
        }
    }
}
