//! Tunnels: a connection that carries the packets of other flows.
//!
//! A tunnel has two connections, one for each direction, and each of them has a link: its queue is
//! the entrance of the tunnel, and the connection is its capacity. Flows inside the tunnel have this
//! link in their path, and only the connection crosses the links below.

use jostle_units::LinkId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One direction of a tunnel: packets that arrive at a link are the data of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TunnelSpec {
    /// Link whose capacity the connection is.
    #[schemars(with = "u32")]
    pub link: LinkId,
    /// Bytes that the tunnel adds to every inner IP packet, without the headers of the transport.
    pub header_bytes: u32,
    /// Data in the send buffer of a TCP connection, acknowledged data excluded, from which on packets
    /// wait in the queue of the link.
    pub send_buffer_bytes: u64,
}
