//! The memory of a host.

use jostle_units::Time;

use super::capacity::Capacity;
use super::clusters::Clusters;
use super::path::Path;
use super::table::{Peer, Table};

/// The memory of one host. It belongs to the transport, which shows it to every connection when it
/// opens and when it closes.
#[derive(Clone, Debug, Default)]
pub struct HostMemory {
    pub(super) paths: Table<Path>,
    pub(super) windows: Table<u32>,
    pub(super) clusters: Clusters,
    pub(super) capacities: Table<Capacity>,
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
