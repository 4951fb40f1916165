//! What a host remembers of its peers from one connection to the next (RFC 9040 calls it temporal
//! sharing), and the layers that make use of it. A layer goes over any controller. One file each.

mod cached_window;
mod estimators;
mod gcbe;
mod layer;
mod stateful;
mod table;
mod wise;

use jostle_units::Time;

pub use gcbe::Gcbe;

pub(crate) use cached_window::{PACED_ROW as TCP_CACHE_PLUS, ROW as TCP_CACHE};
pub(crate) use stateful::ROW as STATEFUL;
pub(crate) use wise::ROW as TCP_WISE;

/// Address of a peer, as an IPv4 one.
pub type Peer = u32;

/// The memory of one host. It belongs to the transport, which shows it to every connection when it
/// opens and when it closes.
#[derive(Clone, Debug, Default)]
pub struct HostMemory {
    paths: table::Table<stateful::Path>,
    windows: table::Table<u32>,
    clusters: wise::Clusters,
}

/// A connection opens or closes.
pub struct Occasion<'a> {
    /// When.
    pub now: Time,
    /// To or from whom.
    pub peer: Peer,
    /// What the host remembers.
    pub memory: &'a mut HostMemory,
}
