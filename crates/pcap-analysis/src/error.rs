//! Errors of the analysis.

use std::path::PathBuf;

/// Reason why a capture cannot be measured. A truncated file is not an error: the packets before
/// its end are measured, and a note is added.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a valid capture.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        what: String,
    },
    /// The file contains nothing that can be measured.
    #[error("{}: {what}", path.display())]
    Empty {
        /// The file, or the first one of several.
        path: PathBuf,
        /// Description of the problem.
        what: String,
    },
    /// The caller cancelled the analysis.
    #[error("stopped before the end")]
    Cancelled,
}

impl Error {
    pub(crate) fn format(path: &std::path::Path, what: impl Into<String>) -> Self {
        Self::Format { path: path.to_owned(), what: what.into() }
    }
}
