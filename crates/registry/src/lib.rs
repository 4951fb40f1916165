//! Registry entries: name, source and parameters of an algorithm, queue or traffic source.
//! Command-line help, documentation, schemas and the test matrix are generated from these entries.

#![cfg_attr(not(any(feature = "std", test)), no_std)]

extern crate alloc;

mod entry;
mod linux_release;
mod parameter;
mod parameter_values;
mod queue_limit;

pub use entry::{ParameterError, RegistryEntry};
pub use linux_release::LinuxRelease;
pub use parameter::{Parameter, ParameterType, ParameterValue};
pub use parameter_values::ParameterValues;
pub use queue_limit::QueueLimit;
