//! Peer caches of a host (temporal sharing, RFC 9040) and the layers that use them, one per file. A
//! layer can be combined with any controller.

mod bandwidth_estimators;
mod careful_resume;
mod gap_compensated_bandwidth;
mod stateful_tcp;
mod tcp_cache;
mod tcp_wise;

pub use gap_compensated_bandwidth::GapCompensatedBandwidth;

pub(crate) use careful_resume::ROW as CAREFUL_RESUME;
pub(crate) use stateful_tcp::ROW as STATEFUL;
pub(crate) use tcp_cache::{PLUS_ROW as TCP_CACHE_PLUS, ROW as TCP_CACHE};
pub(crate) use tcp_wise::ROW as TCP_WISE;
