//! One run, fully resolved. Names end with the unit. A key is optional only if the run may not have
//! it, never because it has a default.

mod algorithm;
mod arrivals;
mod capacity;
mod datagrams;
mod faults;
mod framing;
mod grants;
mod media;
mod quantity;
mod quic;
mod reader;
mod receivers;
mod routes;
mod timers;
mod tunnels;
mod video;
mod web;

use std::collections::BTreeMap;

pub use algorithm::*;
pub use arrivals::*;
pub use capacity::*;
pub use datagrams::*;
pub use faults::*;
pub use framing::*;
pub use grants::*;
use jostle_link::FlowHosts;
pub use jostle_registry::{LinuxRelease, ParameterValue, QueueLimit};
use jostle_units::{FlowId, LinkId};
pub use media::*;
pub use quantity::*;
pub use quic::*;
pub use reader::*;
pub use receivers::*;
pub use routes::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use timers::*;
pub use tunnels::*;
pub use video::*;
pub use web::*;

/// Name of the format of a [`RunSpec`], the `$id` of its schema. The number increases when a reader
/// of the old format would reject or misunderstand a specification; a new optional key does not
/// change it. Specifications do not contain the name, because run names are digests of
/// specifications.
pub const RUN_SPEC_ID: &str = "urn:jostle:run-spec:3";

/// One run: a network, the flows that share it, and the data to record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("$id" = RUN_SPEC_ID))]
pub struct RunSpec {
    /// Seed from which every random stream of the run is derived, together with a component's name.
    pub seed: u64,
    /// Length of the run.
    pub duration_ns: u64,
    /// Bin width of the time series.
    pub interval_ns: u64,
    /// Data recorded in addition to the time series.
    pub record: TraceLevel,
    /// Capture of packets or their headers to files, one for each end of each flow (absent: no
    /// capture).
    pub capture: Option<CaptureSpec>,
    /// Files that were measured, if this describes a measurement and not a run: it cannot be run,
    /// and its network is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Vec<MeasuredFile>>,
    /// Time windows for all statistics. They may overlap; `overall` is one of them.
    pub phases: Vec<PhaseSpec>,
    /// All links of the network. Flows refer to them by position.
    pub links: Vec<LinkSpec>,
    /// All flows.
    pub flows: Vec<FlowSpec>,
}

/// Data recorded in addition to the time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceLevel {
    /// No additional data.
    None,
    /// One row for every ACK that reaches a sender.
    Acks,
}

/// Content of capture files in addition to the packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureSpec {
    /// Title of the scenario.
    pub scenario: String,
    /// Whether both ends of QUIC flows write qlogs.
    #[serde(default)]
    pub qlog: bool,
}

/// A file with captured packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredFile {
    /// File name without the directory.
    pub name: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// A time window, `from_ns` included, `to_ns` excluded.
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
    /// Name of the link; also determines its random streams.
    pub name: String,
    /// Rate of the link.
    pub capacity: CapacitySpec,
    /// Framing of packets on the wire, whose sizes the capacity counts (absent: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<FramingSpec>,
    /// Queue discipline of the link.
    pub queue: LinkPart,
    /// Classes of packets between which a classful queue shares the link, for strict priority in
    /// decreasing order (absent: with `drr`, every flow is a separate class; with `prio`, there are
    /// the three bands of Linux).
    pub classes: Option<Vec<ClassSpec>>,
    /// Thinning of ACKs in front of the queue (absent: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_thinning: Option<AckThinningSpec>,
    /// Propagation delay after the transmission.
    pub delay: DelaySpec,
    /// Frame aggregation (absent: packets are sent one by one).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FramesSpec>,
    /// Loss of packets after the transmission (absent: none).
    pub loss: Option<LinkPart>,
    /// Independent loss with a piecewise constant probability, in addition to `loss`. The first
    /// step, if there is one, is at 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss_steps: Vec<LossStep>,
    /// Periods in which all packets are lost.
    pub outages: Option<OutageSpec>,
    /// Duplication, corruption and reordering, and faults by packet number (absent: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsSpec>,
    /// Habits of netem's delay (absent: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netem: Option<NetemSpec>,
    /// Capacity on demand (absent: the capacity is always there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<GrantsSpec>,
    /// Response of the link's router to Quick-Start requests (absent: it grants nothing).
    pub quick_start: Option<QuickStartSpec>,
}

/// A class of flows with a separate queue and a weighted share of the link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassSpec {
    /// Name of the class.
    pub name: String,
    /// Bytes that the class may send per round.
    pub quantum_bytes: u32,
    /// Flows of the class, as positions in `flows`.
    #[schemars(with = "Vec<u32>")]
    pub flows: Vec<FlowId>,
    /// Codepoints of the class, for packets of unknown flows. Packets with other codepoints belong
    /// to the first class without codepoints, or else to the last class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<u8>,
    /// Queue discipline of the class.
    pub queue: LinkPart,
}

/// A router that supports Quick-Start (RFC 4782). It grants the unused part of an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuickStartSpec {
    /// Rate that traffic and grants may use together.
    pub allowance_bps: u64,
    /// Interval over which traffic is measured, together with the elapsed part of the next one;
    /// grants count for the same time.
    pub interval_ns: u64,
}

/// An entry of a link component registry with a value for each of its parameters: times in ns,
/// rates in bit/s, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkPart {
    /// Name in the registry.
    pub kind: String,
    /// Values by parameter name.
    pub parameters: BTreeMap<String, ParameterValue>,
}

/// Propagation delay of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelaySpec {
    /// Piecewise constant base delay. The first step is at 0.
    pub steps: Vec<DelayStep>,
    /// Random delay in addition to the base delay.
    pub jitter: Option<JitterSpec>,
}

/// The delay is `delay_ns` from `at_ns` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayStep {
    /// Time of the step.
    pub at_ns: u64,
    /// Delay from then on.
    pub delay_ns: u64,
}

/// Random delay with a given distribution and correlation in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JitterSpec {
    /// Distribution of the delay, as points of its quantile function, linear in between. Without
    /// `reorder`, the delays are larger if they would otherwise end before earlier ones.
    pub quantiles: Vec<Quantile>,
    /// Time after which the delay is nearly independent of its earlier value (0: every packet draws
    /// a new value).
    pub correlation_ns: u64,
    /// Whether a packet can overtake its predecessor. If not, and the delay drops faster than 1 s
    /// per s, later packets are held back.
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

/// ACK thinning: a newer ACK of a connection replaces older ones (RFC 3449 §5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckThinningSpec {
    /// Maximum number of ACKs that one ACK replaces, including itself.
    pub most: u32,
    /// Maximum time for which an ACK waits for a newer one.
    pub hold_ns: u64,
}

/// Packets are lost with `probability` from `at_ns` on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossStep {
    /// Time of the step.
    pub at_ns: u64,
    /// Probability of loss from then on.
    pub probability: f64,
}

/// Outages: a Poisson process in time, with a distribution of durations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutageSpec {
    /// Mean time from the end of one outage to the start of the next.
    pub mean_interval_ns: u64,
    /// Durations, as points of their quantile function, linear in between.
    pub durations: Vec<Quantile>,
}

/// One flow: a sender, a receiver, and the paths between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Name of the flow; also determines its random streams.
    pub name: String,
    /// Group of flows that one scenario entry created; they are summarised together (absent: the
    /// flow's own name).
    pub group: Option<String>,
    /// Transport protocol.
    pub transport: Transport,
    /// Properties of the TCP connection that differ from Linux's (absent: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpSpec>,
    /// Properties of the QUIC connection; absent for other transports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicSpec>,
    /// Congestion controller with all its parameters; `none` for datagrams.
    pub controller: Algorithm,
    /// Slow-start method with all its parameters; absent for a controller with a built-in slow
    /// start.
    pub slow_start: Option<Algorithm>,
    /// Peer cache of the sending host, with all its parameters (absent: earlier connections are not
    /// used).
    pub memory: Option<Algorithm>,
    /// IPv4 address of the receiver, by which the peer cache identifies it.
    pub peer: u32,
    /// Name of the sender's host, for queues with host isolation (absent: a separate host).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_host: Option<String>,
    /// Name of the receiver's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_host: Option<String>,
    /// Differentiated services codepoint of all packets, in both directions (absent: 0, best
    /// effort).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// Links from sender to receiver, as positions in `links`.
    #[schemars(with = "Vec<u32>")]
    pub path: Vec<LinkId>,
    /// Links from receiver to sender.
    #[schemars(with = "Vec<u32>")]
    pub reverse_path: Vec<LinkId>,
    /// Changes of the route, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteSpec>,
    /// Delay of this flow in addition to the delays of its links. It is part of the reverse path,
    /// after all queues of `path`.
    pub base_delay_ns: u64,
    /// Flow over TCP whose connection this flow shares, as a position lower than this flow's: it
    /// sends data from that flow's receiver to its sender (absent: it has its own connection).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>")]
    pub connection_of: Option<FlowId>,
    /// Flow that has to complete before this one opens, as a position lower than this flow's.
    #[schemars(with = "Option<u32>")]
    pub after: Option<FlowId>,
    /// Time at which the sender opens the connection, counted from the completion of `after`, if
    /// set.
    pub start_ns: u64,
    /// Time at which the application stops sending (absent: at the end of the run).
    pub stop_ns: Option<u64>,
    /// Data that the application sends.
    pub source: SourceSpec,
    /// Arrivals of connections, if the flow has many; absent for a single connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsSpec>,
    /// Maximum IP packet size of both ends: 52 bytes of headers and a full-sized segment, or 28
    /// bytes of headers and a datagram of a ping or QUIC. On the wire each packet has 14 more
    /// bytes.
    pub mtu_bytes: u32,
    /// Whether packets of a window-based controller are paced, as with Linux's `fq`.
    pub pacing: bool,
    /// Whether the endpoints negotiate classic ECN (RFC 3168).
    pub ecn: bool,
    /// Initial congestion window.
    pub initial_window_packets: u32,
    /// Whether the initial window is paced over the RTT measured in the handshake instead of sent in
    /// a burst.
    pub initial_pacing: bool,
    /// Maximum window that the receiver advertises.
    pub receive_window_bytes: u64,
    /// Window that the receiver advertises before any data have arrived: at most 65,535 bytes in a
    /// SYN-ACK (RFC 7323 §2.2), more in a segment that the receiver sends after it.
    pub initial_receive_window_bytes: u64,
    /// Whether the window grows from the initial one with the data that the application reads per
    /// RTT, as Linux tunes receive buffers. Otherwise it has its maximum from the beginning.
    pub receive_window_autotuning: bool,
    /// Misbehaving or yielding receiver (absent: the receiver behaves as Linux TCP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<ReceiverSpec>,
    /// Slow application at the receiver (absent: it reads data as they arrive).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<ReaderSpec>,
    /// Timers of both hosts (absent: all of them expire at the exact time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timers: Option<TimersSpec>,
    /// Whether the receiver's network card merges segments that arrive at the same time, as Linux
    /// does (generic receive offload). Its TCP then processes, and acknowledges, one segment.
    pub gro: bool,
    /// Linux release whose bursts and ACKs the TCP of both ends reproduces.
    pub linux: LinuxRelease,
    /// Rate of the sender's network card (absent: infinite).
    pub nic_rate_bps: Option<u64>,
}

/// Properties of a TCP connection that differ from Linux's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpSpec {
    /// Proportional Rate Reduction.
    pub prr: Prr,
    /// Whether ACKs with AccECN feedback carry the AccECN option (RFC 9768 §3.2.3).
    pub accecn_option: bool,
}

/// Variant of Proportional Rate Reduction. They differ in the data from which the reduction is
/// proportional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Prr {
    /// The congestion window before the reduction, as in Linux.
    Linux,
    /// The outstanding packets that are not selectively acknowledged (RFC 9937).
    Rfc9937,
}

/// Transport protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP as in Linux 6.1.
    Tcp,
    /// Datagrams (RFC 768) without congestion control.
    Udp,
    /// QUIC (RFC 9000).
    Quic,
}

/// Data that the application passes to the transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SourceSpec {
    /// Unlimited data.
    Bulk,
    /// A given amount of data, then the connection ends.
    Fixed {
        /// Payload bytes.
        bytes: Quantity,
    },
    /// Unlimited data in on periods, no data in off periods.
    OnOff {
        /// Length of an on period.
        on_ns: Quantity,
        /// Length of an off period.
        off_ns: Quantity,
    },
    /// Responses of a given size. Each is sent a think time after the previous one was
    /// acknowledged.
    RequestResponse {
        /// Payload bytes of a response.
        bytes: Quantity,
        /// Think time.
        think_ns: Quantity,
        /// Number of responses after which the connection ends (absent: unlimited).
        count: Option<Quantity>,
    },
    /// Datagrams at fixed times, which the receiver echoes.
    Ping {
        /// Payload bytes of a datagram.
        bytes: u32,
        /// Time between two datagrams.
        every_ns: u64,
        /// Timeout: a ping is lost if its reply has not arrived by then, even if it arrives later.
        timeout_ns: u64,
    },
    /// One-way datagrams at a given rate.
    Cbr(CbrSpec),
    /// Frames of given sizes at fixed times.
    Media(MediaSpec),
    /// Writes of a list at given times, then the connection ends.
    Trace(TraceSpec),
    /// Segments of a video, as a player requests them.
    Video(VideoSpec),
    /// Web pages, as a browser requests them.
    Web(WebSpec),
    /// Data of another connection, which a proxy at its receiver forwards (RFC 3135 §2.4: split
    /// connections).
    Relay {
        /// Connection whose data are forwarded, as a position lower than this flow's.
        #[schemars(with = "u32")]
        from: FlowId,
        /// Maximum data that the proxy has read and the receiver of this flow has not acknowledged.
        buffer_bytes: u64,
    },
    /// Packets of other flows.
    Tunnel(TunnelSpec),
}

impl SourceSpec {
    /// Returns the connection whose data the source forwards, if it is a relay.
    pub const fn relays(&self) -> Option<FlowId> {
        match *self {
            Self::Relay { from, .. } => Some(from),
            _ => None,
        }
    }

    /// Returns the tunnel whose packets the source sends, if it is one.
    pub const fn tunnel(&self) -> Option<&TunnelSpec> {
        match self {
            Self::Tunnel(tunnel) => Some(tunnel),
            _ => None,
        }
    }
}

impl RunSpec {
    /// Returns, for each flow, the flow in which a proxy forwards its data, if there is one.
    pub fn continuations(&self) -> Vec<Option<FlowId>> {
        let mut next = vec![None; self.flows.len()];
        for (position, flow) in self.flows.iter().enumerate() {
            let before = flow.source.relays().and_then(|from| next.get_mut(from.index()));
            if let Some(before) = before {
                *before = Some(FlowId::at(position));
            }
        }
        next
    }

    /// Returns, for each flow, the flow that sends data in the opposite direction of its connection,
    /// if there is one.
    pub fn opposites(&self) -> Vec<Option<FlowId>> {
        let mut opposites = vec![None; self.flows.len()];
        for (position, flow) in self.flows.iter().enumerate() {
            let Some(of) = flow.connection_of.filter(|of| of.index() < position) else { continue };
            opposites[of.index()] = Some(FlowId::at(position));
            opposites[position] = Some(of);
        }
        opposites
    }

    /// Returns the hosts at both ends of each flow. Hosts of the same name have the same number.
    pub fn hosts(&self) -> Vec<FlowHosts> {
        let ends = self.flows.iter().flat_map(|flow| [&flow.sender_host, &flow.receiver_host]);
        let mut names: Vec<&str> = ends.filter_map(|name| name.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        // Named hosts have numbers after the hosts of single flows.
        let number = |name: &Option<String>, own: u32| match name {
            None => own,
            Some(name) => {
                (2 * self.flows.len() + names.partition_point(|it| it < &name.as_str())) as u32
            }
        };
        let of = |(flow, spec): (usize, &FlowSpec)| {
            let own = match spec.connection_of {
                None => FlowHosts::dedicated(FlowId::at(flow).into()),
                Some(of) => {
                    let FlowHosts { sender, receiver } = FlowHosts::dedicated(of.into());
                    FlowHosts { sender: receiver, receiver: sender }
                }
            };
            FlowHosts {
                sender: number(&spec.sender_host, own.sender),
                receiver: number(&spec.receiver_host, own.receiver),
            }
        };
        self.flows.iter().enumerate().map(of).collect()
    }
}
