//! Event loop of an endpoint and its socket.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use jostle_quic::{QuicEndpoint, SenderObserver, Transmission};
use jostle_units::{DATAGRAM_HEADER_BYTES, LINK_HEADER_BYTES, Time};

use crate::HostError;
use crate::monotonic_clock::Clock;
use crate::socket::Socket;

/// Size of a datagram's headers on the wire: Ethernet, IPv4, UDP.
pub(crate) const HEADER_BYTES: u64 = (LINK_HEADER_BYTES + DATAGRAM_HEADER_BYTES) as u64;

pub(crate) struct SocketEndpoint {
    pub end: QuicEndpoint,
    pub clock: Clock,
    socket: Socket,
    peer: SocketAddr,
    buffer: Vec<u8>,
    /// Bytes of the received datagrams, including headers.
    pub received_bytes: u64,
}

impl SocketEndpoint {
    pub(crate) fn new(end: QuicEndpoint, clock: Clock, socket: Socket, peer: SocketAddrV4) -> Self {
        let (peer, buffer) = (SocketAddr::V4(peer), Vec::new());
        Self { end, clock, socket, peer, buffer, received_bytes: 0 }
    }

    /// Creates an endpoint that accepts a connection from any address.
    pub(crate) fn waiting(end: QuicEndpoint, clock: Clock, socket: Socket) -> Self {
        Self::new(end, clock, socket, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
    }

    /// Waits until a datagram arrives, or until `deadline` or a deadline of the endpoint. Processes
    /// all datagrams that have arrived, and returns the time.
    pub(crate) fn turn(
        &mut self,
        deadline: Time,
        observer: &mut impl SenderObserver,
    ) -> Result<Time, HostError> {
        self.socket.wait(self.clock, deadline.min(self.end.next_time()))?;
        let now = self.clock.now();
        let (end, peer, bytes) = (&mut self.end, &mut self.peer, &mut self.received_bytes);
        while self.socket.receive(|from, ecn, payload| {
            *peer = from;
            *bytes += payload.len() as u64 + HEADER_BYTES;
            end.receive(now, ecn, payload, observer);
        })? {}
        if self.end.next_time() <= now {
            self.end.on_time(now, observer);
        }
        match self.end.take_error() {
            None => Ok(now),
            Some(error) => Err(error.into()),
        }
    }

    /// Sends all datagrams that are due, and calls `on_transmission` for each transmission.
    pub(crate) fn flush(
        &mut self,
        now: Time,
        mut on_transmission: impl FnMut(&Transmission),
    ) -> Result<(), HostError> {
        while let Some(sent) = self.end.transmit(now, &mut self.buffer) {
            on_transmission(&sent);
            self.socket.send(self.peer, &sent, &self.buffer)?;
        }
        Ok(())
    }
}
