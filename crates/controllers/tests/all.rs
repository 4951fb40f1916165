//! Controllers as tests, one file a subject. One program: each would be linked with the crate anew.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod common;

mod allegro;
mod background;
mod bbr;
mod bbr3;
mod bbr3_draft;
mod conformance;
mod copa;
mod delay_aware;
mod first_flights;
mod golden;
mod harness;
mod high_speed;
mod literature;
mod low_delay;
mod responses;
mod rfc_responses;
mod sprout;
mod start_up;
mod stopeg;
mod vivace;
