//! The controllers that can be registered, from the registry or from a user's crate.

use jostle_controllers::registry::ControllerEntry;

/// Returns the controllers that can be registered.
#[cfg(feature = "exported")]
pub(crate) fn controllers() -> &'static [ControllerEntry] {
    unsafe extern "Rust" {
        /// Defined by [`export!`](crate::export).
        safe fn jostle_exported_controllers() -> &'static [ControllerEntry];
    }
    jostle_exported_controllers()
}

/// Returns the controllers that can be registered.
#[cfg(not(feature = "exported"))]
pub(crate) fn controllers() -> &'static [ControllerEntry] {
    jostle_controllers::registry::CONTROLLERS
}
