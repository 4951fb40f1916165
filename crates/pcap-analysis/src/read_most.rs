//! Reading of bytes that a file may not have.

use std::io::{self, Read};

/// Longest supported packet. Wireshark stores at most 256 KiB.
pub(crate) const PACKET_MAX_BYTES: u32 = 1 << 18;

/// Fills `into`, or as much as the file contains.
pub(crate) fn read_most(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let (filled, failure) = read_ahead(from, into);
    failure.0.map_or(Ok(filled), Err)
}

/// Fills `into`, or as much as can be read. Returns the number of bytes, and a reader that fails as
/// the file did.
pub(crate) fn read_ahead(from: &mut impl Read, into: &mut [u8]) -> (usize, Failure) {
    let mut filled = 0;
    while filled < into.len() {
        match from.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Failure(Some(error))),
        }
    }
    (filled, Failure(None))
}

/// A reader that fails once, or is empty.
#[derive(Default)]
pub(crate) struct Failure(Option<io::Error>);

impl Read for Failure {
    fn read(&mut self, _into: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
