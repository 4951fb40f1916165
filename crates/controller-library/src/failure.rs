//! Failures of controllers.

use std::sync::{Arc, OnceLock};

/// The first failure of the controllers of a run, shared with the owner of the run.
#[derive(Clone, Default)]
pub struct Failure(Arc<OnceLock<String>>);

impl Failure {
    /// Returns whether a controller failed.
    pub fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns the place and the message.
    pub fn text(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Stores a failure, unless there is one.
    pub(crate) fn set(&self, text: String) {
        // The first failure stays.
        let _ = self.0.set(text);
    }
}
