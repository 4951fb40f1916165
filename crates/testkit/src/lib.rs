//! Networks in virtual time for the tests of any sans-IO protocol stack.
//!
//! Your endpoints run on the links of the jostle simulator: a rate, a queue discipline, a delay,
//! jitter, loss, faults by packet number. Virtual time makes a test of a minute take
//! milliseconds. A seed determines everything that the network does.
//!
//! # A first test
//! Implement [`Endpoint`] for your stack: it handles datagrams, returns datagrams to send, and has a
//! deadline. [`Simulation`] moves the datagrams and the time.
//!
//! ```
//! use std::net::SocketAddr;
//!
//! use jostle_testkit::{
//!     Datagram, Endpoint, Link, Rate, SERVER, Span, Time, Transmit, for_each_seed, simulate,
//! };
//!
//! /// Sends datagrams of 1,200 bytes, one per millisecond, or counts them.
//! #[derive(Default)]
//! struct Counter {
//!     to: Option<SocketAddr>,
//!     sent: u64,
//!     received: u64,
//! }
//!
//! impl Counter {
//!     fn next_send(&self) -> Option<Time> {
//!         let left = self.to.is_some() && self.sent < 1_000;
//!         left.then(|| Time::ZERO + Span::from_ms(self.sent))
//!     }
//! }
//!
//! impl Endpoint for Counter {
//!     fn handle(&mut self, _: Time, _: &Datagram<'_>) {
//!         self.received += 1;
//!     }
//!
//!     fn poll_transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Transmit> {
//!         self.next_send().filter(|at| *at <= now)?;
//!         self.sent += 1;
//!         payload.resize(1_200, 0);
//!         Some(Transmit::to(self.to?))
//!     }
//!
//!     fn deadline(&mut self) -> Option<Time> {
//!         self.next_send()
//!     }
//! }
//!
//! let link = Link::new(Rate::from_mbps(20), Span::from_ms(10)).loss(0.1);
//! for_each_seed(0..5, |seed| {
//!     let endpoints = (Counter { to: Some(SERVER), ..Counter::default() }, Counter::default());
//!     let run = simulate(&link, seed, endpoints, Span::from_secs(2), |_, server| server.received == 850);
//!     assert!(run.unwrap().measures.forward.dropped_packets > 50);
//! });
//! ```
//!
//! [`simulate`] connects a client and a server. For other hosts, or to change something during the
//! run, use a [`Simulation`].
//!
//! # Seeds
//! [`for_each_seed`] runs a test with several seeds, prints those that failed, and keeps them in a
//! file next to the test, `tests/transfers.seeds` for `tests/transfers.rs`. Later runs begin with
//! them. Commit the file, as you would commit the regressions of proptest.
//!
//! # Hosts
//! [`Host`] sends and receives complete IP packets, for a TCP or a stack with its own UDP.
//! [`UdpHost`] makes one of an [`Endpoint`]. Hosts are on the left or on the right [`Side`]; all
//! packets from left to right cross the forward links of the [`Network`], so that several
//! connections share a bottleneck.
//!
//! # Results
//! [`Simulation::measures`] returns throughput, delays, drops and marks.
//! [`Estimate`] is their mean over seeds, and judges it as jostle's suites do.
//! [`Simulation::run_until`] returns the time of a condition, or the reason why it did not occur.
//! [`Simulation::capture`] writes the packets of a host for Wireshark. [`Simulation::qlog`] writes
//! its QUIC packets, and the window and RTT that it reports, for qvis and `jostle analyze`.

mod endpoint;
mod host_log;
mod link;
mod measures;
mod network;
mod pair;
mod quic_packets;
mod seeds;
mod simulation;
mod verdict;

pub use endpoint::{Datagram, Endpoint, Host, Transmit, UdpHost};
pub use jostle_forwarding::{DirectionSummary, LinkSummary, PacketCount};
pub use jostle_qlog::SenderState;
pub use jostle_registry::ParameterValue;
pub use jostle_run_spec::{FaultSpec, FramesSpec, LinkSpec, Quantile, SpecError};
pub use jostle_units::{Ecn, Rate, Span, Time, VirtualClock};
pub use link::{Link, PacketLimit};
pub use measures::{Delays, DirectionMeasures, Measures};
pub use network::{Network, NetworkError};
pub use pair::{CLIENT, Outcome, SERVER, simulate};
pub use seeds::{SEED_VARIABLE, for_each_seed};
pub use simulation::{HostCounts, HostId, Side, Simulation, Unfinished};
pub use verdict::{Estimate, Verdict};

/// The example of the README is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
