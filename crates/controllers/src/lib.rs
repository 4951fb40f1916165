//! Congestion control algorithms, slow starts, peer caches and learned controllers.
//!
//! Each implements [`CongestionController`](jostle_congestion::CongestionController) and has an
//! entry in [`registry`]. A controller draws random numbers only from the stream that it is created
//! with.

#![cfg_attr(not(any(feature = "std", test)), no_std)]

extern crate alloc;

pub mod algorithms;
mod cwnd;
mod estimators;
mod jiffies;
pub mod learning;
mod pcc;
pub mod peer_cache;
mod recipe;
pub mod registry;
mod registry_rows;
pub mod slow_start;
#[cfg(test)]
mod test_support;
mod window_based;

pub use cwnd::{CongestionWindow, INFINITE_SSTHRESH};
pub use estimators::WindowedMax;
pub use recipe::{ControllerRecipe, NamedAlgorithm, PeerCacheRecipe};
pub use slow_start::SlowStart;
pub use window_based::{CongestionAvoidance, WindowBasedController};
