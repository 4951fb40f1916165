//! Both ends of a QUIC connection, sans-IO: datagrams in, datagrams out, the next deadline.
//!
//! The stack is `noq-proto`, driven in virtual time: an [`End`] is given every point in time and reads no
//! clock, so that any loop can drive it, a simulator's or that of a program with sockets. The data go
//! from the end that connects to the other one, as in this project's TCP.
//!
//! A [`Congestion`] is one of the stack's own controllers, or any [`jostle_control::Controller`]: then
//! the window, the pacing, recovery and the undoing of it are this crate's (`governor`), and the
//! stack is left with what RFC 9000 is about and with the detection of losses.

mod clock;
mod crypto;
mod end;
mod error;
mod frames;
mod governor;
mod observer;
mod qlog;
mod settings;
mod shim;
mod state;

pub use end::End;
pub use error::Error;
pub use governor::Acknowledged;
pub use observer::Observer;
pub use settings::{AckFrequency, Congestion, Crypto, Handshake, Recovery, Settings, Stack};
pub use state::{Counters, State, Transmission};
