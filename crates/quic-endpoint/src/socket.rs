//! UDP socket that sends and receives several datagrams per call.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};

use jostle_quic::Transmission;
use jostle_units::{Ecn, Time};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, poll};

use crate::HostError;
use crate::monotonic_clock::Clock;

/// Size of a receive buffer. The kernel merges datagrams up to this size (GRO).
const BUFFER_BYTES: usize = 1 << 16;

pub(crate) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    buffers: Vec<Vec<u8>>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl Socket {
    pub(crate) fn bind(local: SocketAddrV4) -> Result<Self, HostError> {
        let socket = UdpSocket::bind(local).map_err(HostError::system("cannot bind a socket"))?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))
            .map_err(HostError::system("cannot set a socket up"))?;
        let buffers = vec![vec![0; BUFFER_BYTES]; BATCH_SIZE];
        Ok(Self { socket, state, buffers, metas: [RecvMeta::default(); BATCH_SIZE] })
    }

    /// Passes each received datagram to `take`: its sender, ECN field and payload. Returns whether
    /// any datagram was received.
    pub(crate) fn receive(
        &mut self,
        mut take: impl FnMut(SocketAddr, Ecn, &[u8]),
    ) -> Result<bool, HostError> {
        let mut slices: Vec<IoSliceMut<'_>> =
            self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let socket = UdpSockRef::from(&self.socket);
        let filled = match self.state.recv(socket, &mut slices, &mut self.metas) {
            Ok(filled) => filled,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // An ICMP message reported that the peer is not listening yet.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(true),
            Err(error) => return Err(HostError::system("cannot receive")(error)),
        };
        for (meta, buffer) in self.metas[..filled].iter().zip(&self.buffers) {
            let ecn = match meta.ecn {
                None => Ecn::NotCapable,
                Some(EcnCodepoint::Ect0) => Ecn::Capable,
                Some(EcnCodepoint::Ect1) => Ecn::L4s,
                Some(EcnCodepoint::Ce) => Ecn::Marked,
            };
            for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                take(meta.addr, ecn, datagram);
            }
        }
        Ok(filled > 0)
    }

    /// Sends the datagrams in `buffer`.
    pub(crate) fn send(
        &self,
        to: SocketAddr,
        sent: &Transmission,
        buffer: &[u8],
    ) -> Result<(), HostError> {
        let ecn = match sent.ecn {
            Ecn::NotCapable => None,
            Ecn::Capable => Some(EcnCodepoint::Ect0),
            Ecn::L4s => Some(EcnCodepoint::Ect1),
            Ecn::Marked => Some(EcnCodepoint::Ce),
        };
        // The kernel's limit for one call, independent of the settings.
        let most_bytes = self.state.max_gso_segments().max(1) * sent.datagram_bytes;
        for contents in buffer[..sent.bytes].chunks(most_bytes) {
            let segment_size =
                (contents.len() > sent.datagram_bytes).then_some(sent.datagram_bytes);
            let transmit = Transmit { destination: to, ecn, contents, segment_size, src_ip: None };
            match self.state.try_send(UdpSockRef::from(&self.socket), &transmit) {
                Ok(()) => {}
                // The datagram exceeds the MTU of the device, as in MTU discovery, the peer does not
                // listen, or the send buffer is full. QUIC handles all of them as losses.
                Err(error) if is_loss(&error) => {}
                Err(error) => return Err(HostError::system("cannot send")(error)),
            }
        }
        Ok(())
    }

    /// Waits until a datagram arrives or until `time`.
    pub(crate) fn wait(&self, clock: Clock, time: Time) -> Result<(), HostError> {
        let mut waiting = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut waiting, clock.until(time).as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(HostError::system("cannot wait")(error.into())),
        }
    }
}

fn is_loss(error: &io::Error) -> bool {
    let too_long = rustix::io::Errno::MSGSIZE.raw_os_error();
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock)
        || error.raw_os_error() == Some(too_long)
}
