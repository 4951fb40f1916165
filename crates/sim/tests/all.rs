//! Simulations as tests, one file a subject. One program: each would compile the simulator anew.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;
#[path = "common/ledger.rs"]
mod ledger;
#[path = "common/random.rs"]
mod random;
#[path = "../../record/tests/common/mod.rs"]
mod specs;

mod arrivals;
mod bbr;
mod captures;
mod conservation;
mod copa;
mod determinism;
mod episodes;
mod interrupted;
mod literature;
mod marks;
mod nimbus;
mod offload;
mod paced_chirping;
mod pings;
mod proteus;
mod quic;
mod receivers;
mod relays;
mod scenarios;
mod starts;
mod video;
mod web;
