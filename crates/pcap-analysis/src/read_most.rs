//! Reading of bytes that a file may not have.

use std::io::{self, Read};

/// Longest supported packet. Wireshark stores at most 256 KiB.
pub(crate) const PACKET_MAX_BYTES: u32 = 1 << 18;

/// Fills `into`, or as much as the file contains.
pub(crate) fn read_most(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match from.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
