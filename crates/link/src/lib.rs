//! Links without a clock: a queue in front of a capacity, then a delay, then losses.
//!
//! The caller drives a [`Link`] with `push(now, packet)`, `pop(now)` and `next_time()`. The
//! simulator calls it from its event heap; an emulator can call the same code from a timer.

pub mod capacity;
pub mod delay;
mod delay_queue;
mod error;
mod faults;
mod frame_aggregation;
mod framing;
mod grants;
mod link;
mod link_observer;
pub mod loss;
mod packet;
mod parameters;
pub mod queue;
pub mod registry;
mod service_rate;
mod transport_headers;

pub use capacity::Capacity;
pub use delay::Delay;
pub use delay_queue::DelayQueue;
pub use error::Error;
pub use faults::{Faults, NumberedFaults, Occurrence, PacketFault, Reordering, Shift};
pub use frame_aggregation::FrameAggregation;
pub use framing::{Cells, Framing};
pub use grants::{Contention, GrantParameters, Grants, RateBased};
pub use link::Link;
pub use link_observer::LinkObserver;
pub use loss::Loss;
pub use packet::{DropReason, Ecn, Packet, PacketOutcome};
pub use queue::QueueDiscipline;
pub use service_rate::{FrameLimits, Service, ServiceRate, Shaper};
pub use transport_headers::{FlowHosts, PacketClass, PureAck, TransportHeader};
