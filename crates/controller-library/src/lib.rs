//! Controllers of a user's crate: its shared library behind the interface `CongestionController`.
//!
//! The library has the C functions of `jostle-kernel-bridge`, compiled with the user's controllers
//! from the sources of this engine. The kernel's module is linked from the same functions, so that
//! a controller gets the same calls in all stacks.

mod controller;
mod failure;
mod functions;
mod registration;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jostle_congestion::CongestionController;
use jostle_registry::ParameterValue;
use jostle_run_spec::{Algorithm, FlowSpec};

use crate::controller::LibraryController;
pub use crate::failure::Failure;
use crate::functions::Functions;
pub use crate::registration::registration_line;

/// A loaded library. It remains in memory until the process ends, because modes and names of values
/// are in it.
#[derive(Clone, Copy)]
pub struct Library(&'static Functions);

impl Library {
    /// Loads a library, which executes its code.
    ///
    /// # Errors
    /// If the file is no such library, or not for this machine.
    pub fn load(path: &Path) -> Result<Self, String> {
        Functions::load(path).map(|functions| Self(Box::leak(Box::new(functions))))
    }

    /// Returns the rows of its controllers as JSON.
    ///
    /// # Errors
    /// If a controller panicked.
    pub fn describe(&self) -> Result<String, String> {
        match self.0.described() {
            text if text.is_empty() => Err(self.0.failure()),
            text => Ok(text),
        }
    }

    fn create(
        &self,
        flow: &FlowSpec,
        seed: u64,
        failure: &Failure,
    ) -> Result<Box<dyn CongestionController>, String> {
        let registration = self.0.register(&registration_line(flow, seed, false))?;
        let controller = LibraryController::new(self.0, registration, &flow.name, failure)?;
        Ok(Box::new(controller))
    }
}

/// The libraries of a run.
#[derive(Default)]
pub struct Libraries {
    /// Files by the digest of the crate.
    paths: BTreeMap<String, PathBuf>,
    loaded: Mutex<BTreeMap<String, Library>>,
    failure: Failure,
}

impl Libraries {
    /// Creates the libraries from their files by the digest of the crate.
    pub fn new(paths: BTreeMap<String, PathBuf>) -> Self {
        Self { paths, ..Self::default() }
    }

    /// Returns the first failure of a controller.
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// Creates the controller of a flow of a run with a seed.
    ///
    /// # Errors
    /// If there is no library for it, the library has no such controller or parameter, or the
    /// controller panicked.
    pub fn create(
        &self,
        flow: &FlowSpec,
        seed: u64,
    ) -> Result<Box<dyn CongestionController>, String> {
        let digest = match flow.controller.parameters.get(Algorithm::SOURCE_DIGEST) {
            Some(ParameterValue::Text(digest)) => digest.as_str(),
            _ => "",
        };
        self.library(digest, flow)?.create(flow, seed, &self.failure)
    }

    fn library(&self, digest: &str, flow: &FlowSpec) -> Result<Library, String> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = loaded.get(digest) {
            return Ok(*library);
        }
        let path = self
            .paths
            .get(digest)
            .ok_or_else(|| format!("no one here has the crate of `{}`", flow.controller.name))?;
        let library = Library::load(path)?;
        loaded.insert(digest.to_owned(), library);
        Ok(library)
    }
}
