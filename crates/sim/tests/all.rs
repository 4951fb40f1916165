//! Simulations as tests, one file a subject. One program: each would compile the simulator anew.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;
#[path = "common/ledger.rs"]
mod ledger;
#[path = "common/random.rs"]
mod random;
#[path = "../../run-spec/tests/common/mod.rs"]
mod specs;

mod arrivals;
mod bbr;
mod captures;
mod conservation;
mod copa;
mod determinism;
mod ecn;
mod episodes;
mod gro;
mod interruption;
mod literature;
mod nimbus;
mod overload;
mod paced_chirping;
mod pings;
mod proteus;
mod proxies;
mod quic;
mod receivers;
mod routes;
mod scenarios;
mod shared_connections;
mod slow_readers;
mod slow_starts;
mod tunnels;
mod video;
mod web;
