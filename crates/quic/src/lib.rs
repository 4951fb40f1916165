//! Both endpoints of a QUIC connection, sans-IO: datagrams in, datagrams and the next deadline out.
//!
//! The QUIC stack is `noq-proto`, driven in virtual time: a [`QuicEndpoint`] receives every time as
//! an argument and reads no clock. Both a simulator and a program with sockets can therefore drive
//! it. Data flow from the client to the server, as in jostle's TCP.
//!
//! A [`Congestion`] is one of the stack's own controllers or any
//! [`jostle_congestion::CongestionController`]. In the latter case this crate implements cwnd,
//! pacing, recovery and undo (`congestion`). The stack implements RFC 9000 and loss detection.

mod congestion;
mod crypto;
mod endpoint;
mod error;
mod frames;
mod noq_controller;
mod qlog;
mod sender_observer;
mod settings;
mod stats;

pub use congestion::AckOutcome;
pub use endpoint::QuicEndpoint;
pub use error::Error;
pub use jostle_qlog::SenderState;
pub use sender_observer::SenderObserver;
pub use settings::{
    AckFrequency, Congestion, Crypto, Handshake, Recovery, Settings, StackController,
};
pub use stats::{SenderCounters, Transmission};
