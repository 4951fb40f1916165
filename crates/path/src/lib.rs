//! Links without a clock of their own: a queue in front of a capacity, then a delay, then losses.
//!
//! A [`Link`] is driven from outside with `push(now, packet)`, `pop(now)` and `next_time()`. The
//! simulator drives it from its event heap; an emulator can drive the same code from a timer.

pub mod capacity;
pub mod delay;
mod error;
mod frames;
mod headers;
mod link;
pub mod loss;
mod packet;
mod parameters;
mod probe;
pub mod queue;
pub mod registry;

pub use capacity::Capacity;
pub use delay::Delay;
pub use error::Error;
pub use frames::Frames;
pub use headers::{Headers, Hosts, PureAck};
pub use link::Link;
pub use loss::Loss;
pub use packet::{Ecn, Fate, Packet, Reason};
pub use probe::Probe;
pub use queue::QueueDiscipline;
