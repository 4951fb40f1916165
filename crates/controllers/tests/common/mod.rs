//! One flow over one bottleneck, packet by packet: the smallest world in which a controller shows
//! its behaviour. A FIFO of fixed rate and buffer, a fixed delay after it, a source that always
//! has data. It calls a [`CongestionController`] in the order the trait prescribes, and leaves out
//! everything else an endpoint does (handshake, reordering, TSO, windows decaying while idle).
//!
//! Every transmission has its own number, as in QUIC: a lost packet's data goes out under a new
//! number, so `first_unacked` passes a hole when the hole is declared lost; TCP's would when the
//! retransmission arrives. Recovery lasts until then here, too.

#![allow(dead_code, unused_imports)] // Each test crate uses its own part.
#![allow(clippy::unwrap_used)] // Clippy takes only functions marked `#[test]` for tests.

mod settings;
mod transfer;

use jostle_congestion::CongestionController;
use jostle_controllers::registry;
use jostle_registry::ParameterValue;
use jostle_units::{FULL_PACKET_BYTES, RandomStream, Rate, Span};

pub use settings::{Given, settings};
pub use transfer::Transfer;

/// The path. May be changed while a transfer runs.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Rate of the bottleneck, which counts [`FULL_PACKET_BYTES`] per packet.
    pub rate: Rate,
    /// Round trip without queueing and without transmission at the bottleneck.
    pub rtt: Span,
    /// Packets that fit into the bottleneck, the one in transmission included.
    pub buffer: usize,
    /// Probability that a packet is lost before it reaches the bottleneck.
    pub loss: f64,
    /// Of how many packets the last one is lost there, again and again; 0 for none.
    pub lose_every: u64,
    /// Packets that may wait, the one in transmission included, before arrivals are marked, if the
    /// controller is one that needs marks.
    pub mark_above: usize,
    /// Packets that the bottleneck lets pass at once when it was idle, as a token bucket does
    /// (`htb`, `tbf`); 0 for a link, which takes its time for every one.
    pub bucket: u64,
    /// Packets per ACK. An ACK waits 40 ms at most, and never while packets are missing.
    pub ack_every: usize,
}

impl Path {
    /// A path without random loss and marks whose receiver acknowledges every packet.
    pub fn new(rate: Rate, rtt: Span, buffer: usize) -> Self {
        Self {
            rate,
            rtt,
            buffer,
            loss: 0.0,
            lose_every: 0,
            mark_above: usize::MAX,
            bucket: 0,
            ack_every: 1,
        }
    }

    /// Bandwidth-delay product in packets.
    pub fn bdp(&self) -> f64 {
        self.rate.bytes_in(self.rtt) as f64 / f64::from(FULL_PACKET_BYTES)
    }
}

/// A controller of the registry with its usual slow start, every parameter at its default.
pub fn default_controller(name: &str) -> Box<dyn CongestionController> {
    build(name, &[], None)
}

/// A controller of the registry with parameters, and another slow start if `slow_start` names one.
pub fn build(
    name: &str,
    parameters: &[(&str, ParameterValue)],
    slow_start: Option<&str>,
) -> Box<dyn CongestionController> {
    build_with(name, parameters, slow_start, &[])
}

/// The same, with parameters of the slow start.
pub fn build_with(
    name: &str,
    parameters: &[(&str, ParameterValue)],
    slow_start: Option<&str>,
    start_parameters: &[(&str, ParameterValue)],
) -> Box<dyn CongestionController> {
    let given = |parameters: &[(&str, ParameterValue)]| {
        parameters.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
    };
    let row = registry::controller(name).unwrap();
    let own = match row.start {
        registry::SlowStartChoice::Composed(own) => own,
        registry::SlowStartChoice::BuiltIn => "standard",
    };
    let start = registry::slow_start(slow_start.unwrap_or(own)).unwrap();
    let start = start.create(&given(start_parameters)).unwrap();
    row.create(&given(parameters), start, RandomStream::new(1, name)).unwrap()
}
