//! Receiving application: reads all data immediately, in the order of each stream.

use noq_proto::{Connection, Dir, StreamId};

/// Reads the streams that the peer opened, and returns the number of bytes.
pub(super) fn opened(connection: &mut Connection, dir: Dir) -> u64 {
    let mut bytes = 0;
    while let Some(id) = connection.streams().accept(dir) {
        bytes += read(connection, id);
    }
    bytes
}

/// Reads the available data of a stream, and returns the number of bytes.
pub(super) fn read(connection: &mut Connection, id: StreamId) -> u64 {
    let mut bytes = 0;
    let mut stream = connection.recv_stream(id);
    if let Ok(mut chunks) = stream.read(true) {
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            bytes += chunk.bytes.len() as u64;
        }
        // Flow control frames are sent with the next packet.
        let _ = chunks.finalize();
    }
    bytes
}
