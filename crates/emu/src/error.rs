//! Why an emulation cannot start, or broke off.

use std::io;

use jostle_record::SpecError;
use thiserror::Error;

/// Why an emulation cannot start, or broke off.
#[derive(Debug, Error)]
pub enum Error {
    /// The specification is none, or makes no sense.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A link cannot be built.
    #[error("{link}: {why}")]
    Link {
        /// Its name.
        link: String,
        /// What is wrong with it.
        why: jostle_path::Error,
    },
    /// The operating system refuses something.
    #[error("{what}: {why}")]
    System {
        /// What was asked of it.
        what: String,
        /// Its answer.
        why: io::Error,
    },
}

impl Error {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Self {
        |errno| Self::System { what: what.into(), why: errno.into() }
    }
}
