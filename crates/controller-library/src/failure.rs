//! Failures of controllers.

use std::sync::{Arc, Mutex, PoisonError};

/// The first failure of the controllers of a run, shared with the owner of the run.
#[derive(Clone, Default)]
pub struct Failure(Arc<Mutex<Option<String>>>);

impl Failure {
    /// Returns whether a controller failed.
    pub fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes the place and the message.
    pub fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Stores a failure, unless there is one.
    pub(crate) fn set(&self, text: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
    }
}
