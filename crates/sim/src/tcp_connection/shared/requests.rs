//! Requests on a connection of a browser.

/// Requests of a browser on a connection.
pub(super) struct Requests {
    /// Size of each request.
    pub bytes: u64,
    /// Bytes at the server that do not yet make a whole request.
    partial_bytes: u64,
    /// Whole requests at the server since the last query.
    pub whole: u32,
}

/// Requests that are complete at the server, and responses that are complete at the browser.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompletedMessages {
    pub requests: u32,
    pub responses: u32,
}

impl Requests {
    /// Requests of `bytes` each.
    pub const fn new(bytes: u64) -> Self {
        Self { bytes, partial_bytes: 0, whole: 0 }
    }

    /// Counts bytes that the server has read. Returns whether a request is complete.
    pub fn read(&mut self, bytes: u64) -> bool {
        let bytes = self.partial_bytes + bytes;
        self.partial_bytes = bytes % self.bytes;
        let whole = (bytes / self.bytes) as u32;
        self.whole += whole;
        whole > 0
    }
}
