//! Congestion controllers, one file each.

mod reno;

pub use reno::Reno;

pub(crate) use reno::ROW as RENO;
