//! Errors of an emulation.

use std::io;

use jostle_forwarding::LinkError;
use jostle_run_spec::SpecError;
use thiserror::Error;

/// Reason why an emulation could not start, or failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The specification is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A link cannot be built.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A system call failed.
    #[error("{what}: {why}")]
    System {
        /// Description of the operation.
        what: String,
        /// Error of the operating system.
        why: io::Error,
    },
}

impl Error {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Self {
        |errno| Self::System { what: what.into(), why: errno.into() }
    }
}
