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

mod direction;
mod emulator;
mod error;
mod event_log;
mod ip_header;
mod monotonic_clock;
mod packet_pool;
mod spec;
mod summary;
mod tun_device;

pub use emulator::{Emulator, Outcome, Stop};
pub use error::Error;
pub use event_log::{Event, EventLog, PacketEventKind};
pub use ip_header::{FlowKey, Header, mark_congestion};
pub use spec::EmulationSpec;
pub use summary::{DirectionSummary, Lateness, LinkSummary, Summary, Validity};
pub use tun_device::{Device, open};

/// Bytes of the Ethernet header. The simulator and Linux's traffic control include it in the packet
/// size; TUN devices carry packets without it.
pub const ETHERNET_HEADER_BYTES: u32 = 14;
