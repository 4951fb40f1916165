//! Proxies that split a flow into connections (RFC 3135 §2.4): when what came over one goes on over
//! the next.
//!
//! Each connection is a flow of the network, with its own ends, way and timers. A proxy is the
//! receiver of one and the sender of the next, which it opens when the SYN of the first arrives. It
//! reads what has arrived in order as soon as it may write it, and writes as long as it holds less
//! than its buffer: what the next receiver has not acknowledged. What it does not read stays in the
//! receive buffer of the connection before it, whose window closes.

use crate::messages::Messages;

/// What a connection has to do with the proxies that split its flow.
#[derive(Debug)]
pub(crate) struct Part {
    /// The first connection of the flow, whose sender the flow's is.
    pub origin: u32,
    /// The one before it, if its sender is a proxy.
    pub before: Option<u32>,
    /// The one after it, if its receiver is a proxy.
    pub next: Option<u32>,
    /// Most that the proxy at its sender holds.
    pub buffer_bytes: u64,
    /// What that has written so far.
    pub written_bytes: u64,
    /// What has arrived at the flow's receiver since this was looked at.
    pub arrived_bytes: u64,
    /// Of the first connection: those of which it is measured how long they take to the flow's receiver.
    pub messages: Messages,
    /// Of the first connection: all that the application wrote has arrived, and that was told.
    pub is_settled: bool,
}

impl Part {
    pub fn new(origin: u32, before: Option<u32>, next: Option<u32>) -> Self {
        Self {
            origin,
            before,
            next,
            buffer_bytes: 0,
            written_bytes: 0,
            arrived_bytes: 0,
            messages: Messages::default(),
            is_settled: false,
        }
    }
}
