//! The controllers behind C functions, for a module of the Linux kernel.
//!
//! `jostle_bridge.h` declares the functions. `link.sh` compiles them without the standard
//! library and links them into one object, `bridge.o`, which needs `memcpy` and its relatives, and
//! the three functions of [`kernel`](self) that the module defines.
//!
//! A [`Registration`] is a controller, slow start and peer cache with their parameters and a random
//! stream, read from a line of text. Each of its connections has a separate controller.

#![no_std]

extern crate alloc;

mod calls;
mod events;
#[cfg(feature = "kernel")]
mod kernel;
mod registration;

pub use calls::Connection;
pub use events::{
    AckEvent, CongestionCall, ControllerState, EstablishedCall, LostCall, MarksCall, Properties,
    RawAckEvent, SendCall,
};
pub use registration::Registration;

/// Value of `ssthresh` that limits nothing (`TCP_INFINITE_SSTHRESH` in Linux).
pub const NO_SSTHRESH: u32 = 0x7fff_ffff;
