//! Data that a host saves about its peers between connections (temporal sharing, RFC 9040).

mod host_cache;
mod path_estimate;
mod peer_clusters;
mod peer_table;
mod saved_capacity;

pub use host_cache::{PeerCache, PeerCacheContext};
pub use path_estimate::PathEstimate;
pub use peer_clusters::{Cluster, PeerClusters, STEP};
pub use peer_table::{PeerAddress, PeerLookup, PeerTable, PeerTableConfig};
pub use saved_capacity::SavedCapacity;
