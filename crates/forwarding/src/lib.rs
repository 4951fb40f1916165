//! Forwarding of IP packets through links, in logical time.
//!
//! A [`Direction`] is a row of [`Link`](jostle_link::Link)s that carry packets of others: their bytes
//! wait in a [`PacketPool`] while the links process slot numbers. The caller tells the time. The
//! emulator forwards the packets of TUN devices in real time, and the test kit forwards packets of
//! any protocol stack in virtual time.

mod direction;
mod event_log;
mod ip_header;
mod packet_pool;
mod path;
mod summary;

pub use direction::{Departure, Direction, PacketCount, Shared, size_bytes};
pub use event_log::{Event, EventLog, PacketEventKind};
pub use ip_header::{FlowKey, Header, mark_congestion};
pub use packet_pool::{PacketId, PacketPool};
pub use path::validate_paths;
pub use summary::{DirectionSummary, LinkSummary};

/// Bytes of the Ethernet header. The simulator and Linux's traffic control include it in the packet
/// size; the packets that are forwarded do not contain it.
pub const ETHERNET_HEADER_BYTES: u32 = jostle_units::LINK_HEADER_BYTES;

/// A link cannot be built.
#[derive(Debug, thiserror::Error)]
#[error("{link}: {why}")]
pub struct LinkError {
    /// Name of the link.
    pub link: String,
    /// Description of the problem.
    pub why: jostle_link::Error,
}
