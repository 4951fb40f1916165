//! The simulator's links in real time.
//!
//! An [`Emulator`] carries packets between two devices: what it reads from one enters the very same
//! [`Link`](jostle_path::Link)s as in the simulator, and leaves for the other one when they say so.
//! Links work in logical time, so a loop that wakes up late delays single packets and never shifts
//! the ones behind them. How late packets left is measured; a run that was later than its bound is
//! no result.
//!
//! Everything of the operating system is in [`device`](open) and in the loop; the rest is as free of
//! clocks as the links are.
#![cfg(target_os = "linux")]

mod clock;
mod device;
mod direction;
mod emulator;
mod error;
mod header;
mod journal;
mod slots;
mod spec;
mod summary;

pub use device::{Device, open};
pub use emulator::{Emulator, Outcome, Stop};
pub use error::Error;
pub use header::{FlowKey, Header, mark_congestion};
pub use journal::{Event, Journal, What};
pub use spec::EmulationSpec;
pub use summary::{DirectionSummary, HopSummary, Lateness, Summary, Verdict};

/// Bytes of the Ethernet header that the simulator, and Linux's traffic control on Ethernet, count
/// for every packet. TUN devices carry packets without it.
pub const ETHERNET_HEADER_BYTES: u32 = 14;
