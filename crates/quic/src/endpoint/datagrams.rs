//! Unreliable datagrams (RFC 9221).

use super::{ActiveConnection, QuicEndpoint};
use crate::Error;

impl QuicEndpoint {
    /// Passes an unreliable datagram of `bytes` to the stack (RFC 9221). Its contents do not matter.
    ///
    /// # Errors
    ///
    /// If no datagram of this size can be sent, or the peers exchange none.
    pub fn send_datagram(&mut self, bytes: usize) -> Result<(), Error> {
        let Some(live) = &mut self.live else { return Ok(()) };
        let mut datagrams = live.connection.datagrams();
        self.datagram_space = self.datagram_space.max(datagrams.send_buffer_space());
        datagrams
            .send(vec![0; bytes].into(), false)
            .map_err(|error| Error::Datagram { bytes, why: error.to_string() })?;
        if let Some(sending) = &mut self.sending {
            sending.writing.note_datagram(bytes as u64);
        }
        Ok(())
    }

    /// Returns whether the stack has not sent all datagrams.
    pub fn has_unsent_datagram(&mut self) -> bool {
        let space = |live: &mut ActiveConnection| live.connection.datagrams().send_buffer_space();
        self.live.as_mut().is_some_and(|live| space(live) < self.datagram_space)
    }

    /// Returns the bytes of the datagrams that arrived since the last call.
    pub fn take_datagram_bytes(&mut self) -> u64 {
        let Some(live) = &mut self.live else { return 0 };
        let mut datagrams = live.connection.datagrams();
        std::iter::from_fn(|| datagrams.recv()).map(|data| data.len() as u64).sum()
    }
}
