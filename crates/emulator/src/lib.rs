//! Real-time emulation with the links of the simulator.
//!
//! An [`Emulator`] forwards packets between two devices. Packets from one device pass through the
//! same [`Link`](jostle_link::Link)s as in the simulator, and are sent to the other device when
//! they leave the last link. Links work in logical time, so that a late wake-up delays single
//! packets without shifting later ones. The lateness of departures is measured. The result is
//! invalid if the lateness exceeds its bound.
//!
//! Only [`open`] and the event loop use the operating system. The other modules do not read a
//! clock, like the links.
#![cfg(target_os = "linux")]

mod emulator;
mod error;
mod monotonic_clock;
mod spec;
mod summary;
mod tun_device;

pub use emulator::{Emulator, Outcome, Stop};
pub use error::Error;
pub use spec::EmulationSpec;
pub use summary::{Lateness, Summary, Validity};
pub use tun_device::{Device, open};
