//! What can be wrong with a capture.

use std::path::PathBuf;

/// Why a capture cannot be measured. A file that is merely cut off is no error: what is there is
/// measured, and a note says so.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no capture.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What it is or has instead.
        what: String,
    },
    /// Nothing in it can be measured.
    #[error("{}: {what}", path.display())]
    Empty {
        /// The (first) file.
        path: PathBuf,
        /// What is missing.
        what: String,
    },
    /// Whoever asked wants the answer no more.
    #[error("stopped before the end")]
    Cancelled,
}

impl Error {
    pub(crate) fn format(path: &std::path::Path, what: impl Into<String>) -> Self {
        Self::Format { path: path.to_owned(), what: what.into() }
    }
}
