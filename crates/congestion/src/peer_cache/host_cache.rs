//! The peer cache of a host.

use jostle_units::Time;

use super::path_estimate::PathEstimate;
use super::peer_clusters::PeerClusters;
use super::peer_table::{PeerAddress, PeerTable};
use super::saved_capacity::SavedCapacity;

/// The peer cache of one host. The transport owns it and passes it to each connection when the
/// connection opens and closes.
#[derive(Clone, Debug, Default)]
pub struct PeerCache {
    /// Path estimates of Stateful-TCP.
    pub paths: PeerTable<PathEstimate>,
    /// Congestion windows in packets (TCP cache).
    pub windows: PeerTable<u32>,
    /// Rewards of initial windows (TCP-WISE).
    pub clusters: PeerClusters,
    /// Saved parameters of Careful Resume.
    pub capacities: PeerTable<SavedCapacity>,
}

/// Arguments of the calls at the opening and closing of a connection.
pub struct PeerCacheContext<'a> {
    /// Current time.
    pub now: Time,
    /// Remote host of the connection.
    pub peer: PeerAddress,
    /// Peer cache of the local host.
    pub memory: &'a mut PeerCache,
}
