//! The specification of one run, fully resolved: base units, no defaults.
//!
//! The JSON Schema of [`RunSpec`] is the contract with every program that plans runs.

mod arrivals;
mod impairments;
mod limits;
mod link_builder;
mod link_faults;
mod quantity;
mod random_streams;
mod spec;
mod validate;

pub use arrivals::{Arrivals, listed_bytes, nth_connection, rate_per_s, requests_of, wire_bytes};
pub use impairments::{ImpairmentSchedule, LossState};
pub use limits::{CAPTURED_FLOWS_MAX, MAX_ACK_ROWS, MOST_OBJECTS};
pub use link_builder::ConstantService;
pub use quantity::{QuantitySampler, Sizes, responses};
pub use random_streams::FlowRandomStreams;
pub use spec::*;
pub use validate::SpecError;
