//! Proxies that split a flow into several TCP connections (RFC 3135 §2.4).
//!
//! Each connection (proxy leg) is a flow of the network with its own endpoints, route and timers. A
//! proxy is the receiver of one leg and the sender of the next, which it opens when the SYN of the
//! first arrives. It forwards data that arrived in order as long as its buffer has room. The buffer
//! holds the data that the next receiver has not acknowledged. Data that the proxy has not read
//! stays in the receive buffer of the previous leg and reduces its receive window.

use jostle_traffic::MessageTracker;
use jostle_units::ConnectionId;

use crate::tunnel::TunnelStream;

/// Role of a connection in a flow that proxies split, or in a tunnel: its data come from elsewhere in
/// the network and go there.
#[derive(Debug)]
pub(crate) struct ProxyLeg {
    /// First leg of the flow, which starts at the flow's sender.
    pub origin: ConnectionId,
    /// Previous leg, if the sender of this leg is a proxy.
    pub previous_leg: Option<ConnectionId>,
    /// Next leg, if the receiver of this leg is a proxy.
    pub next: Option<ConnectionId>,
    /// Buffer size of the proxy that sends this leg.
    pub buffer_bytes: u64,
    /// Bytes that this proxy has written so far.
    pub written_bytes: u64,
    /// Bytes that arrived at the receiver of this leg since the last call of `relay_at`.
    pub arrived_bytes: u64,
    /// Packets in the byte stream, if the connection is a tunnel and no proxy is involved.
    pub tunnel: Option<TunnelStream>,
    /// First leg only: messages whose completion time at the flow's receiver is measured.
    pub messages: MessageTracker,
    /// First leg only: whether the completion of all written data was reported.
    pub is_completion_reported: bool,
}

impl ProxyLeg {
    pub fn new(
        origin: ConnectionId,
        before: Option<ConnectionId>,
        next: Option<ConnectionId>,
    ) -> Self {
        Self {
            origin,
            previous_leg: before,
            next,
            buffer_bytes: 0,
            written_bytes: 0,
            arrived_bytes: 0,
            tunnel: None,
            messages: MessageTracker::default(),
            is_completion_reported: false,
        }
    }
}
