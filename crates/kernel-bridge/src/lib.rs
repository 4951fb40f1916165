//! Controllers behind C functions, for a module of the Linux kernel and for shared libraries.
//!
//! `jostle_bridge.h` declares the functions. `link.sh` compiles them without the standard
//! library and links them into one object, `bridge.o`, which needs `memcpy` and its relatives, and
//! the three functions of [`kernel`](self) that the module defines. With the feature `library`, they
//! are a shared library, which `jostle-controller-library` loads.
//!
//! A [`Registration`] is a controller, slow start and peer cache with their parameters and a random
//! stream, read from a line of text. Each of its connections has a separate controller.

#![no_std]

extern crate alloc;

#[cfg(feature = "functions")]
mod calls;
mod conversion;
mod events;
#[cfg(feature = "functions")]
mod exported;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(feature = "library")]
mod library;
mod numbers;
mod registration;

#[cfg(feature = "functions")]
pub use calls::Connection;
pub use events::{
    AckEvent, CongestionCall, ControllerState, EstablishedCall, LostCall, MarksCall, Properties,
    RawAckEvent, SendCall,
};
pub use numbers::{ecn_feedback, ecn_feedback_number, recovery_state_number};
pub use registration::Registration;

/// Value of `ssthresh` that limits nothing (`TCP_INFINITE_SSTHRESH` in Linux).
pub const NO_SSTHRESH: u32 = 0x7fff_ffff;

/// Receives a value of a controller's state: the context, the name and its length, and the bits of
/// the value.
pub type RecordValue = unsafe extern "C" fn(
    context: *mut core::ffi::c_void,
    name: *const u8,
    length: usize,
    bits: u64,
);

/// Exports the controllers of a crate from the library or module that is linked with it:
/// `export!(&[my_crate::ROW]);`
#[macro_export]
macro_rules! export {
    ($controllers:expr) => {
        /// Returns the controllers that can be registered.
        #[unsafe(no_mangle)]
        extern "Rust" fn jostle_exported_controllers()
        -> &'static [::jostle_controllers::registry::ControllerEntry] {
            $controllers
        }
    };
}
