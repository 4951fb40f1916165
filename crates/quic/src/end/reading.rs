//! What the receiving application takes: everything, as soon as it is there, in the order of each
//! stream.

use noq_proto::{Connection, Dir, StreamId};

/// Streams were opened by the other end: bytes read of them.
pub(super) fn opened(connection: &mut Connection, dir: Dir) -> u64 {
    let mut bytes = 0;
    while let Some(id) = connection.streams().accept(dir) {
        bytes += read(connection, id);
    }
    bytes
}

/// Reads what a stream has: how many bytes.
pub(super) fn read(connection: &mut Connection, id: StreamId) -> u64 {
    let mut bytes = 0;
    let mut stream = connection.recv_stream(id);
    if let Ok(mut chunks) = stream.read(true) {
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            bytes += chunk.bytes.len() as u64;
        }
        // Frames of flow control leave with what is sent next.
        let _ = chunks.finalize();
    }
    bytes
}
