//! QUIC connections as tests, one file a subject. One program: each would be linked with the crate anew.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod common;

mod congestion_events;
mod golden;
mod registry;
mod rfc9002;
mod settings;
mod stack_bbr3;
mod tls;
mod transfer;
