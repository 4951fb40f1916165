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
//!     Datagram, Ecn, Endpoint, Link, Network, Rate, Side, Simulation, Span, Time, Transmit, UdpHost,
//!     for_each_seed,
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
//! let network = Network::symmetric(&link);
//! for_each_seed(0..5, |seed| {
//!     let mut simulation = Simulation::new(&network, seed).unwrap();
//!     let to = "10.0.1.1:1000".parse().ok();
//!     let from = UdpHost::new("10.0.0.1:1000".parse().unwrap(), Counter { to, ..Counter::default() });
//!     simulation.add(Side::Left, from);
//!     let sink = UdpHost::new(to.unwrap(), Counter::default());
//!     let sink = simulation.add(Side::Right, sink);
//!     simulation.run_to(Time::ZERO + Span::from_secs(2)).unwrap();
//!     assert!((850..950).contains(&simulation[sink].received));
//!     let measures = simulation.measures();
//!     assert_eq!(measures.forward.dropped_packets, 1_000 - simulation[sink].received);
//! });
//! ```
//!
//! # Hosts
//! [`Host`] sends and receives complete IP packets, for a TCP or a stack with its own UDP.
//! [`UdpHost`] makes one of an [`Endpoint`]. Hosts are on the left or on the right [`Side`]; all
//! packets from left to right cross the forward links of the [`Network`], so that several
//! connections share a bottleneck.
//!
//! # Results
//! [`Simulation::measures`] returns throughput, delays, drops and marks.
//! [`Simulation::capture`] writes the packets of a host for Wireshark. [`Simulation::run_until`]
//! returns the time of a condition, or the reason why it did not occur.

mod endpoint;
mod link;
mod measures;
mod network;
mod seeds;
mod simulation;

pub use endpoint::{Datagram, Endpoint, Host, Transmit, UdpHost};
pub use jostle_forwarding::{DirectionSummary, LinkSummary, PacketCount};
pub use jostle_registry::ParameterValue;
pub use jostle_run_spec::{FaultSpec, FramesSpec, LinkSpec, Quantile, SpecError};
pub use jostle_units::{Ecn, Rate, Span, Time, VirtualClock};
pub use link::{Link, PacketLimit};
pub use measures::{Delays, DirectionMeasures, Measures};
pub use network::{Network, NetworkError};
pub use seeds::{SEED_VARIABLE, for_each_seed};
pub use simulation::{HostCounts, HostId, Side, Simulation, Unfinished};
