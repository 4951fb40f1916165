//! An endpoint and its socket: what arrives, what is due, what is to be sent.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use jostle_quic::{End, Observer, Transmission};
use jostle_units::{DATAGRAM_HEADER_BYTES, LINK_HEADER_BYTES, Time};

use crate::HostError;
use crate::clock::Clock;
use crate::socket::Socket;

/// Headers of a datagram on the wire: Ethernet, IPv4, UDP.
pub(crate) const HEADER_BYTES: u64 = (LINK_HEADER_BYTES + DATAGRAM_HEADER_BYTES) as u64;

pub(crate) struct Wired {
    pub end: End,
    pub clock: Clock,
    socket: Socket,
    peer: SocketAddr,
    buffer: Vec<u8>,
    /// Bytes of datagrams that came, headers included.
    pub received_bytes: u64,
}

impl Wired {
    pub(crate) fn new(end: End, clock: Clock, socket: Socket, peer: SocketAddrV4) -> Self {
        let (peer, buffer) = (SocketAddr::V4(peer), Vec::new());
        Self { end, clock, socket, peer, buffer, received_bytes: 0 }
    }

    /// One that answers whoever connects to it.
    pub(crate) fn waiting(end: End, clock: Clock, socket: Socket) -> Self {
        Self::new(end, clock, socket, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
    }

    /// Waits until something arrives or `deadline` has come, the endpoint's own included, and works on
    /// all that has arrived. Returns the time.
    pub(crate) fn turn(
        &mut self,
        deadline: Time,
        observer: &mut impl Observer,
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

    /// Sends all that is to be sent now; `told` hears of each handing over.
    pub(crate) fn flush(
        &mut self,
        now: Time,
        mut told: impl FnMut(&Transmission),
    ) -> Result<(), HostError> {
        while let Some(sent) = self.end.transmit(now, &mut self.buffer) {
            told(&sent);
            self.socket.send(self.peer, &sent, &self.buffer)?;
        }
        Ok(())
    }
}
