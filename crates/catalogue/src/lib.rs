//! Rows of the registries: what an algorithm, queue or source is called, where it comes from, and
//! which parameters it takes. Command-line help, documentation, schemas and the test matrix are
//! derived from these rows.

mod entry;
mod limit;
mod linux;
mod parameter;
mod values;

pub use entry::{Entry, ParameterError};
pub use limit::Limit;
pub use linux::Linux;
pub use parameter::{Kind, Parameter, Value};
pub use values::Values;
