//! What a host remembers of its peers from one connection to the next (RFC 9040 calls it temporal
//! sharing), and the layers that make use of it. A layer goes over any controller. One file each.

mod cached_window;
mod capacity;
mod careful_resume;
mod clusters;
mod estimators;
mod gcbe;
mod host;
mod layer;
mod path;
mod stateful;
mod table;
mod wise;

pub use gcbe::Gcbe;
pub use host::{HostMemory, Occasion};
pub use table::Peer;

pub(crate) use cached_window::{PLUS_ROW as TCP_CACHE_PLUS, ROW as TCP_CACHE};
pub(crate) use careful_resume::ROW as CAREFUL_RESUME;
pub(crate) use layer::{Layer, Layered};
pub(crate) use stateful::ROW as STATEFUL;
pub(crate) use wise::ROW as TCP_WISE;
