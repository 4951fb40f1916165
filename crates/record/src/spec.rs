//! One run, fully resolved. Units stand at the end of names; nothing is optional because of a
//! default, only because it may be absent from the run.

mod arrivals;
mod datagrams;
mod media;
mod quantity;
mod quic;
mod receivers;
mod video;
mod web;

use std::collections::BTreeMap;

pub use arrivals::*;
pub use datagrams::*;
pub use jostle_catalogue::{Limit, Linux, Value};
use jostle_path::Hosts;
pub use media::*;
pub use quantity::*;
pub use quic::*;
pub use receivers::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use video::*;
pub use web::*;

/// Name of the format of a [`RunSpec`], the `$id` of its schema. The number grows when a reader of the
/// old one would refuse a specification or misunderstand it; a key that may be absent changes nothing.
/// Specifications do not carry it, since the names of runs are digests of them.
pub const RUN_SPEC_ID: &str = "urn:jostle:run-spec:2";

/// One run: a network, the flows that share it, and what to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("$id" = RUN_SPEC_ID))]
pub struct RunSpec {
    /// Every random stream of the run is derived from this number and a component's name.
    pub seed: u64,
    /// Length of the run.
    pub duration_ns: u64,
    /// Bin of the time series.
    pub interval_ns: u64,
    /// What is recorded beyond the series.
    pub trace: TraceLevel,
    /// Whether packets, or their headers, are written to files, one for each end of each flow.
    pub capture: Option<CaptureSpec>,
    /// The files that this is a measurement of, instead of a run: nothing can run it, and of its network
    /// nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Vec<MeasuredFile>>,
    /// Windows of time for every statistic. They may overlap; `overall` is among them.
    pub phases: Vec<PhaseSpec>,
    /// All links of the network. Flows name them by position.
    pub links: Vec<LinkSpec>,
    /// All flows.
    pub flows: Vec<FlowSpec>,
}

/// What is recorded beyond the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceLevel {
    /// Nothing.
    None,
    /// One row for every ACK that reaches a sender.
    Acks,
}

/// What the files of a capture say beside the packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureSpec {
    /// Title of the scenario.
    pub scenario: String,
    /// Whether the ends of QUIC flows also write down what they do, as qlogs.
    #[serde(default)]
    pub qlog: bool,
}

/// A file that packets were captured into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredFile {
    /// Its name, without the folder.
    pub name: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// A window of time, `from_ns` included, `to_ns` excluded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpec {
    /// Name of the phase.
    pub name: String,
    /// Start.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
}

/// One direction of a link: queue, then capacity, then delay, then loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Name of the link; names its random streams too.
    pub name: String,
    /// Rate at which it sends.
    pub capacity: CapacitySpec,
    /// Discipline of the queue in front of it.
    pub queue: LinkPart,
    /// Classes of flows that a classful queue shares the link among (absent: every flow is one by
    /// itself).
    pub classes: Option<Vec<ClassSpec>>,
    /// How ACKs are thinned out before they wait in the queue (absent: not at all).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_thinning: Option<AckThinningSpec>,
    /// Propagation delay after sending.
    pub delay: DelaySpec,
    /// How it sends packets together (absent: one by one).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FramesSpec>,
    /// Loss of packets that were sent (absent: none).
    pub loss: Option<LinkPart>,
    /// Independent loss with a probability that changes, beside `loss`; the first step, if there is
    /// one, is at 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss_steps: Vec<LossStep>,
    /// Spans of time in which everything sent is lost.
    pub outages: Option<OutageSpec>,
    /// How its router answers Quick-Start requests (absent: it grants nothing).
    pub quick_start: Option<QuickStartSpec>,
}

/// A class of flows, with a queue of its own and a share of the link by weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassSpec {
    /// Name of the class.
    pub name: String,
    /// Bytes that it may send per round.
    pub quantum_bytes: u32,
    /// Its flows, as positions in `flows`.
    pub flows: Vec<u32>,
    /// Discipline of its queue.
    pub queue: LinkPart,
}

/// A router that takes part in Quick-Start (RFC 4782). It grants what is left of an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuickStartSpec {
    /// Rate that traffic and grants may use together.
    pub allowance_bps: u64,
    /// Traffic is measured over this and the elapsed part of the next; grants count as long.
    pub interval_ns: u64,
}

/// Rate of a link over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum CapacitySpec {
    /// One rate for the whole run.
    Constant {
        /// Bits per second, Ethernet header included.
        rate_bps: u64,
    },
    /// Piecewise constant rate. The first step is at 0.
    Steps {
        /// Steps in order of time.
        steps: Vec<RateStep>,
    },
    /// Delivery opportunities as in a Mahimahi trace: each carries up to `opportunity_bytes`.
    Trace {
        /// Millisecond of each opportunity, never decreasing; the trace repeats after the last.
        opportunities_ms: Vec<u32>,
        /// Bytes that one opportunity carries (1500 of IP, 1514 with the Ethernet header).
        opportunity_bytes: u32,
    },
    /// Normally distributed steps, each correlated with the one before.
    Autoregressive(AutoregressiveSpec),
}

/// A rate of random steps: a stationary AR(1) process, kept within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AutoregressiveSpec {
    /// Mean of the rate before bounds are applied.
    pub mean_bps: u64,
    /// Its standard deviation.
    pub deviation_bps: u64,
    /// Steps a time t apart have the correlation e^(−t / this).
    pub correlation_ns: u64,
    /// How long a rate lasts.
    pub step_ns: u64,
    /// Lower bound of the rate.
    pub min_bps: u64,
    /// Upper bound of the rate.
    pub max_bps: u64,
}

/// From `at_ns` on the rate is `rate_bps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Time of the step.
    pub at_ns: u64,
    /// Rate from then on; 0 stops the link.
    pub rate_bps: u64,
}

/// A row of the registries of links with a value for each of its parameters: times in ns, rates in
/// bit/s, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkPart {
    /// Name in the registry.
    pub kind: String,
    /// Values by parameter name.
    pub parameters: BTreeMap<String, Value>,
}

/// Propagation delay of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelaySpec {
    /// Piecewise constant base delay. The first step is at 0.
    pub steps: Vec<DelayStep>,
    /// Random delay on top.
    pub jitter: Option<JitterSpec>,
}

/// From `at_ns` on the delay is `delay_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayStep {
    /// Time of the step.
    pub at_ns: u64,
    /// Delay from then on.
    pub delay_ns: u64,
}

/// Random delay with a given distribution, correlated in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JitterSpec {
    /// The distribution, as points of its quantile function, linear in between: that of the delay
    /// with `reorder`, else of what it would be if it ended no earlier delay.
    pub quantiles: Vec<Quantile>,
    /// Time constant after which the delay is nearly independent of what it was (0: every packet
    /// draws anew).
    pub correlation_ns: u64,
    /// Whether a packet may overtake its predecessor. If not, no delay ends before one that began
    /// earlier, whether a packet had that one or not (if a packet had it, without correlation).
    pub reorder: bool,
}

/// A point of a quantile function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quantile {
    /// Probability in 0 … 1.
    pub probability: f64,
    /// Value not exceeded with that probability.
    pub value_ns: u64,
}

/// Packets that a link sends together, after a wait for the medium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FramesSpec {
    /// Packets of a frame, at most.
    pub packets: u32,
    /// Bytes of a frame, at most; a frame has one packet at least.
    pub bytes: u64,
    /// What passes before a frame is sent, as points of its quantile function: each draws anew.
    pub contention: Vec<Quantile>,
}

/// ACKs of a connection of which a newer one takes the place (RFC 3449 §5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckThinningSpec {
    /// ACKs that one stands for, at most.
    pub most: u32,
    /// How long one waits for a newer one, at most.
    pub hold_ns: u64,
}

/// From `at_ns` on packets are lost with `probability`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossStep {
    /// Time of the step.
    pub at_ns: u64,
    /// Probability of loss from then on.
    pub probability: f64,
}

/// Outages: events in time, Poisson, with a distribution of durations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutageSpec {
    /// Mean time from the end of one outage to the start of the next.
    pub mean_interval_ns: u64,
    /// Durations, as points of their quantile function, linear in between.
    pub durations: Vec<Quantile>,
}

/// One flow: a sender, a receiver, and the way between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Name of the flow; names its random streams too.
    pub name: String,
    /// What it is measured together with: the name under which flows were written (absent: its own).
    pub group: Option<String>,
    /// Transport protocol.
    pub transport: Transport,
    /// How a QUIC connection is made; absent for other transports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicSpec>,
    /// Congestion controller with all its parameters; `none` of them for datagrams.
    pub controller: Algorithm,
    /// Slow-start method with all its parameters; absent for a controller that has its own.
    pub slow_start: Option<Algorithm>,
    /// What the sending host makes of earlier connections to the peer, with all its parameters
    /// (absent: nothing).
    pub memory: Option<Algorithm>,
    /// Address of the receiver, as an IPv4 one: what the host's memory knows it by.
    pub peer: u32,
    /// Name of the host where its sender is, for queues that share between hosts (absent: one of its
    /// own).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_host: Option<String>,
    /// Name of the host where its receiver is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_host: Option<String>,
    /// Links from sender to receiver, as positions in `links`.
    pub path: Vec<u32>,
    /// Links from receiver to sender.
    pub reverse_path: Vec<u32>,
    /// Delay of this flow beside the delays of its links. It lies on the way back, where a packet
    /// has left every queue of `path` behind.
    pub access_delay_ns: u64,
    /// The flow that has to be complete before this one opens, as a position before its own.
    pub after: Option<u32>,
    /// When the sender opens the connection, counted from the completion of `after` if that is there.
    pub start_ns: u64,
    /// When the application stops sending (absent: at the end of the run).
    pub stop_ns: Option<u64>,
    /// What the application sends.
    pub source: SourceSpec,
    /// When the flow's connections come, if it is many of them; absent of one that is a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsSpec>,
    /// Largest IP packet of either end: 52 bytes of headers and the payload of a full segment, or 28
    /// and a datagram of a ping or of QUIC. 14 more are on the wire.
    pub mtu_bytes: u32,
    /// Whether a window-based controller's packets are paced, as under Linux's `fq`.
    pub pacing: bool,
    /// Whether the endpoints negotiate classic ECN (RFC 3168).
    pub ecn: bool,
    /// Initial congestion window.
    pub initial_window_packets: u32,
    /// Whether the initial window is spread over the round trip that the handshake took, instead
    /// of leaving at once.
    pub initial_pacing: bool,
    /// Largest window that the receiver advertises.
    pub receive_window_bytes: u64,
    /// Window that it offers before any data have arrived: 65,535 bytes at most in a SYN-ACK
    /// (RFC 7323 §2.2), more in a segment that the receiver sends after it.
    pub initial_receive_window_bytes: u64,
    /// Whether the window's limit grows from the initial one with what the application reads in a
    /// round trip, as Linux tunes receive buffers, instead of being the largest from the beginning.
    pub receive_window_autotuning: bool,
    /// Its receiver, if that does otherwise than Linux's TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<ReceiverSpec>,
    /// Whether the receiver's card puts segments together that arrive at the same moment, as Linux
    /// does (generic receive offload): its TCP sees, and acknowledges, one.
    pub gro: bool,
    /// Which Linux's bursts and ACKs the endpoints' TCP has.
    pub linux: Linux,
    /// Rate of the sender's own network card (absent: sending takes no time there).
    pub nic_rate_bps: Option<u64>,
}

/// Transport protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP as Linux 6.1 speaks it.
    Tcp,
    /// Datagrams (RFC 768), without congestion control.
    Udp,
    /// QUIC (RFC 9000).
    Quic,
}

/// An algorithm of the registry with a value for each of its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Algorithm {
    /// Name in the registry.
    pub name: String,
    /// Values by parameter name.
    pub parameters: BTreeMap<String, Value>,
}

impl Algorithm {
    /// What flows have that no congestion controller governs.
    pub const NONE: &'static str = "none";

    /// Whether it is no row of a registry but something that whoever starts the run brings along,
    /// named `module:Class`.
    pub fn is_python_controller(&self) -> bool {
        self.name.contains(':') && !self.is_of_stack()
    }

    /// Whether it is a part of the QUIC implementation ([`QUIC_CONTROLLERS`]), such as `noq:cubic`.
    pub fn is_of_stack(&self) -> bool {
        quic::is_of_stack(&self.name)
    }
}

/// What the application hands to the transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SourceSpec {
    /// Always something to send.
    Bulk,
    /// A given amount, then the connection ends.
    Fixed {
        /// Payload bytes.
        bytes: Quantity,
    },
    /// Bulk while on, silent while off.
    OnOff {
        /// Length of an on period.
        on_ns: Quantity,
        /// Length of an off period.
        off_ns: Quantity,
    },
    /// Responses of a given size: the next is sent a think time after the last was acknowledged.
    RequestResponse {
        /// Payload bytes of a response.
        bytes: Quantity,
        /// Think time.
        think_ns: Quantity,
        /// Responses after which the connection ends (absent: none).
        count: Option<Quantity>,
    },
    /// A datagram at fixed times, each of which the receiver sends back as it came.
    Ping {
        /// Payload bytes of a datagram.
        bytes: u32,
        /// Time from one to the next.
        every_ns: u64,
        /// A ping that is not back by then is lost, even if it comes back later.
        timeout_ns: u64,
    },
    /// Datagrams at a rate, which nobody answers.
    Cbr(CbrSpec),
    /// Frames at fixed times, each as large as it is.
    Media(MediaSpec),
    /// What a list says, at the times that it says; then the connection ends.
    Trace(TraceSpec),
    /// Segments of a video, as a player asks for them.
    Video(VideoSpec),
    /// Pages, as a browser asks for them.
    Web(WebSpec),
    /// What comes in over another connection, whose receiver is a proxy that passes it on (RFC 3135
    /// §2.4: split connections).
    Relay {
        /// That connection, as a position before its own.
        from: u32,
        /// Most that the proxy has read from it and the receiver of this one has not acknowledged.
        buffer_bytes: u64,
    },
}

impl SourceSpec {
    /// The connection whose data it passes on, if it does.
    pub const fn relays(&self) -> Option<u32> {
        match *self {
            Self::Relay { from, .. } => Some(from),
            _ => None,
        }
    }
}

impl RunSpec {
    /// For every flow the one that goes on where it ends, if a proxy passes its data on.
    pub fn continuations(&self) -> Vec<Option<u32>> {
        let mut next = vec![None; self.flows.len()];
        for (position, flow) in (0..).zip(&self.flows) {
            let before = flow.source.relays().and_then(|from| next.get_mut(from as usize));
            if let Some(before) = before {
                *before = Some(position);
            }
        }
        next
    }

    /// The hosts at the ends of every flow: those of one name have one number.
    pub fn hosts(&self) -> Vec<Hosts> {
        let ends = self.flows.iter().flat_map(|flow| [&flow.sender_host, &flow.receiver_host]);
        let mut names: Vec<&str> = ends.filter_map(|name| name.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        // Behind those that flows have of their own.
        let number = |name: &Option<String>, own: u32| match name {
            None => own,
            Some(name) => {
                (2 * self.flows.len() + names.partition_point(|it| it < &name.as_str())) as u32
            }
        };
        let of = |(flow, spec): (u32, &FlowSpec)| {
            let own = Hosts::of_its_own(flow);
            Hosts {
                sender: number(&spec.sender_host, own.sender),
                receiver: number(&spec.receiver_host, own.receiver),
            }
        };
        (0..).zip(&self.flows).map(of).collect()
    }
}
