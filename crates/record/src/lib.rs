//! What goes into a run and what comes out of it.
//!
//! [`RunSpec`] describes ONE run, fully resolved: base units, no defaults left. Its JSON Schema is
//! the contract with everything that plans runs.

mod sink;
mod spec;

pub use sink::{AckRow, FlowState, Nothing, Sink};
pub use spec::*;
