"""A run's specification as Python sees it: its schema in types.

Written by `JOSTLE_BLESS=1 pytest tests/test_run_spec.py`.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict


class AckFrequencySpec(TypedDict):
    """Request of an `ACK_FREQUENCY` frame (draft-ietf-quic-ack-frequency)."""

    ack_eliciting_threshold: int
    max_ack_delay_ns: NotRequired[int | None]
    reordering_threshold: int


class AckThinningSpec(TypedDict):
    """ACK thinning: a newer ACK of a connection replaces older ones (RFC 3449 §5.2.1)."""

    hold_ns: int
    most: int


class PoissonArrivals(TypedDict):
    """A Poisson process."""

    kind: Literal["poisson"]
    rate_per_s: float


class LoadArrivals(TypedDict):
    """A Poisson process whose connections offer a fraction of a link's rate as load."""

    kind: Literal["load"]
    link: int
    share: float


class ListedArrivals(TypedDict):
    """A list of arrivals."""

    at_ns: list[int]
    bytes: NotRequired[list[int] | None]
    kind: Literal["listed"]


ArrivalsSpec: TypeAlias = PoissonArrivals | LoadArrivals | ListedArrivals


class ConstantCapacity(TypedDict):
    """One rate for the whole run."""

    kind: Literal["constant"]
    rate_bps: int


class TraceCapacity(TypedDict):
    """Delivery opportunities of a Mahimahi trace, each for up to `opportunity_bytes`."""

    kind: Literal["trace"]
    opportunities_ms: list[int]
    opportunity_bytes: int


class AutoregressiveCapacity(TypedDict):
    """Normally distributed steps, each correlated with the previous one."""

    correlation_ns: int
    deviation_bps: int
    kind: Literal["autoregressive"]
    max_bps: int
    mean_bps: int
    min_bps: int
    step_ns: int


class TunnelCapacity(TypedDict):
    """Packets that the connection of a tunnel accepts."""

    flow: int
    kind: Literal["tunnel"]


class CaptureSpec(TypedDict):
    """Content of capture files in addition to the packets."""

    qlog: NotRequired[bool]
    scenario: str


class CdfPoint(TypedDict):
    """A point of a distribution function."""

    probability: float
    value: float


CellsSpec: TypeAlias = Literal["none", "atm", "ptm"]


class ContentionSpec(TypedDict):
    """Contention slots."""

    backoff_superframes: int
    bytes: int
    collision: float


class DelayStep(TypedDict):
    """The delay is `delay_ns` from `at_ns` on."""

    at_ns: int
    delay_ns: int


class ExponentialDistribution(TypedDict):
    """P(X > x) = e^(−x ⁄ mean)."""

    kind: Literal["exponential"]
    mean: float


class LognormalDistribution(TypedDict):
    """ln X is normally distributed."""

    kind: Literal["lognormal"]
    median: float
    sigma: float


class ParetoDistribution(TypedDict):
    """P(X > x) = (scale ⁄ x)^shape from `scale` on."""

    kind: Literal["pareto"]
    scale: float
    shape: float


class WeibullDistribution(TypedDict):
    """P(X > x) = e^(−(x ⁄ scale)^shape)."""

    kind: Literal["weibull"]
    scale: float
    shape: float


class EmpiricalDistribution(TypedDict):
    """A measured distribution: points of its distribution function, linear in between."""

    kind: Literal["empirical"]
    points: list[CdfPoint]


DistributionKind: TypeAlias = (
    ExponentialDistribution
    | LognormalDistribution
    | ParetoDistribution
    | WeibullDistribution
    | EmpiricalDistribution
)


class LoseFault(TypedDict):
    """The packet is lost."""

    kind: Literal["lose"]


class MarkFault(TypedDict):
    """The packet is marked with CE, if it is ECN-capable."""

    kind: Literal["mark"]


class CorruptFault(TypedDict):
    """The packet is corrupted."""

    kind: Literal["corrupt"]


class DuplicateFault(TypedDict):
    """The packet arrives twice."""

    kind: Literal["duplicate"]


class LateFault(TypedDict):
    """The packet exits later, without delaying other packets."""

    by_ns: int
    kind: Literal["late"]


FaultSpec: TypeAlias = LoseFault | MarkFault | CorruptFault | DuplicateFault | LateFault


class FramingSpec(TypedDict):
    """Sizes of packets on the wire of a link."""

    cells: CellsSpec
    mpu_bytes: int
    overhead_bytes: int


LinuxRelease: TypeAlias = Literal["6.1", "4.15"]


class LossStep(TypedDict):
    """Packets are lost with `probability` from `at_ns` on."""

    at_ns: int
    probability: float


class MeasuredFile(TypedDict):
    """A file with captured packets."""

    name: str
    sha256: str


class NetemSpec(TypedDict):
    """Habits of netem's delay."""

    jitter_per_batch: bool
    limit_includes_queue: bool
    limit_packets: NotRequired[int | None]


class NumberedFaultSpec(TypedDict):
    """A fault of one packet."""

    fault: FaultSpec
    number: int


class OccurrenceSpec(TypedDict):
    """A random event per packet."""

    correlation: float
    probability: float


PacketClassSpec: TypeAlias = Literal["data", "acks", "handshake"]


class PauseSpec(TypedDict):
    """A time in which an application does not read."""

    at_ns: int
    duration_ns: int
    every_ns: NotRequired[int | None]


class PhaseSpec(TypedDict):
    """A time window, `from_ns` included, `to_ns` excluded."""

    from_ns: int
    name: str
    to_ns: int


class BestPlayout(TypedDict):
    """The delay with the largest R, which no fixed buffer can exceed."""

    kind: Literal["best"]


class QuantilePlayout(TypedDict):
    """The delay at which a given fraction of the packets that arrive have arrived."""

    kind: Literal["quantile"]
    share: float


class BufferPlayout(TypedDict):
    """A fixed time after the smallest delay of a packet."""

    kind: Literal["buffer"]
    length_ns: int


PlayoutSpec: TypeAlias = BestPlayout | QuantilePlayout | BufferPlayout


Prr: TypeAlias = Literal["linux", "rfc9937"]


class Quantile(TypedDict):
    """A point of a quantile function."""

    probability: float
    value_ns: int


class BytesQueueLimit(TypedDict):
    """In bytes on the wire, like Linux's `bfifo`."""

    bytes: int


class PacketsQueueLimit(TypedDict):
    """In packets of any size, like Linux's `pfifo`."""

    packets: int


QueueLimit: TypeAlias = BytesQueueLimit | PacketsQueueLimit


class QuicCommands(TypedDict):
    """Commands with arguments, in which `{address}`, `{port}` and other placeholders are replaced."""

    client: list[str]
    server: list[str]


QuicCrypto: TypeAlias = Literal["none", "tls"]


QuicHandshake: TypeAlias = Literal["1rtt", "0rtt"]


class QuicImplementation(TypedDict):
    """A QUIC implementation other than the built-in one."""

    commands: QuicCommands
    name: str


QuicRecovery: TypeAlias = Literal["rfc9002", "prr"]


class QuicSpec(TypedDict):
    """A QUIC connection (RFC 9000) from the flow's sender to its receiver."""

    ack_frequency: NotRequired[AckFrequencySpec | None]
    burst_limit_packets: NotRequired[int | None]
    crypto: QuicCrypto
    gso_packets: int
    handshake: QuicHandshake
    implementation: NotRequired[QuicImplementation | None]
    initial_mtu_bytes: int
    mtu_discovery: bool
    pacing: bool
    packet_threshold: NotRequired[int | None]
    recovery: QuicRecovery
    stream_receive_window_bytes: int
    streams: int


class QuickStartSpec(TypedDict):
    """A router that supports Quick-Start (RFC 4782). It grants the unused part of an allowance."""

    allowance_bps: int
    interval_ns: int


class RateBasedSpec(TypedDict):
    """Rate-based dynamic capacity."""

    gain_per_mille: int
    over_per_mille: int
    persistence_ns: int


class RateStep(TypedDict):
    """The rate is `rate_bps` from `at_ns` on."""

    at_ns: int
    rate_bps: int


class ReaderSpec(TypedDict):
    """
    An application that reads slowly. It reads what has arrived, but at most `read_bytes`, handles
    these data at its rate, and reads again.
    """

    pauses: NotRequired[list[PauseSpec]]
    rate_bps: NotRequired[int | None]
    read_bytes: int


class AckDivisionReceiver(TypedDict):
    """ACK division: splits each ACK of new data into several ACKs."""

    kind: Literal["ack_division"]
    pieces: int


class DupackSpoofingReceiver(TypedDict):
    """DupACK spoofing: sends copies of each ACK."""

    copies: int
    kind: Literal["dupack_spoofing"]


class OptimisticAckingReceiver(TypedDict):
    """
    Optimistic ACKs: acknowledges all data sent before the segment that arrives, and a part of
    the data sent after it.
    """

    kind: Literal["optimistic_acking"]
    lead: float


class HiddenEcnMarksReceiver(TypedDict):
    """Hides CE marks from the sender."""

    kind: Literal["hidden_ecn_marks"]


class RledbatReceiver(TypedDict):
    """Limits the receive window by LEDBAT++ at the receiver (rLEDBAT, RFC 9840)."""

    constant: float
    kind: Literal["rledbat"]
    slowdowns: bool
    target_ns: int


ReceiverSpec: TypeAlias = (
    AckDivisionReceiver
    | DupackSpoofingReceiver
    | OptimisticAckingReceiver
    | HiddenEcnMarksReceiver
    | RledbatReceiver
)


class ReorderingSpec(TypedDict):
    """Reordering of single packets, as by netem."""

    gap: int
    late_ns: NotRequired[int | None]
    occurrence: OccurrenceSpec


class RouteSpec(TypedDict):
    """
    A change of a flow's route. Every router forwards by the new route from `at_ns` on: packets that
    are on a link of the old route stay there, and continue on the new route if they meet a link of
    it.
    """

    at_ns: int
    path: list[int]
    reverse_path: list[int]


class BulkSource(TypedDict):
    """Unlimited data."""

    kind: Literal["bulk"]


class PingSource(TypedDict):
    """Datagrams at fixed times, which the receiver echoes."""

    bytes: int
    every_ns: int
    kind: Literal["ping"]
    timeout_ns: int


class MediaSource(TypedDict):
    """Frames of given sizes at fixed times."""

    deadline_ns: int
    delta_bytes: int
    frames_per_1000_s: int
    key_bytes: int
    key_every: int
    kind: Literal["media"]


RelaySource = TypedDict(
    "RelaySource",
    {
        "buffer_bytes": int,
        "from": int,
        "kind": Literal["relay"],
    },
)


class TunnelSource(TypedDict):
    """Packets of other flows."""

    header_bytes: int
    kind: Literal["tunnel"]
    link: int
    send_buffer_bytes: int


class TcpSpec(TypedDict):
    """Properties of a TCP connection that differ from Linux's."""

    accecn_option: bool
    prr: Prr


class TimersSpec(TypedDict):
    """Timers of both hosts of a flow, which may be coarse or late."""

    hz: NotRequired[int | None]
    resolution_ns: int
    slack_ns: int


TraceLevel: TypeAlias = Literal["none", "acks"]


Transport: TypeAlias = Literal["tcp", "udp", "quic"]


class BufferVideoChoice(TypedDict):
    """Buffer-based: BBA-0 (Huang et al., SIGCOMM 2014)."""

    cushion_ns: int
    kind: Literal["buffer"]
    reservoir_ns: int


class ThroughputVideoChoice(TypedDict):
    """Throughput-based: harmonic mean over earlier segments (Jiang et al., CoNEXT 2012)."""

    kind: Literal["throughput"]
    safety: float
    samples: int


VideoChoice: TypeAlias = BufferVideoChoice | ThroughputVideoChoice


class VoiceSpec(TypedDict):
    """Speech parameters of the E-model (ITU-T G.107)."""

    coding_delay_ns: int
    equipment_impairment: float
    loss_robustness: float
    playout: PlayoutSpec


class WriteSpec(TypedDict):
    """One write of an application."""

    at_ns: int
    bytes: int


class StepsCapacity(TypedDict):
    """Piecewise constant rate. The first step is at 0."""

    kind: Literal["steps"]
    steps: list[RateStep]


CapacitySpec: TypeAlias = (
    ConstantCapacity | StepsCapacity | TraceCapacity | AutoregressiveCapacity | TunnelCapacity
)


class Distribution(TypedDict):
    """
    A distribution, truncated to bounds: values outside are excluded, the others keep their
    proportions.
    """

    law: DistributionKind
    max: NotRequired[float | None]
    min: NotRequired[float | None]


class FramesSpec(TypedDict):
    """Frame aggregation: packets that a link sends together, after waiting for the medium."""

    bytes: int
    contention: list[Quantile]
    packets: int


class GrantsSpec(TypedDict):
    """
    Capacity that a gateway assigns on demand, as in the return channel of a satellite system. The
    capacity of the link is the largest rate that is granted.
    """

    constant_bps: int
    contention: NotRequired[ContentionSpec | None]
    free_bps: int
    latency_ns: int
    quantum_bps: int
    rate_based: NotRequired[RateBasedSpec | None]
    request_interval_ns: int
    request_loss: float
    spread: bool
    superframe_ns: int
    volume_based: bool


class JitterSpec(TypedDict):
    """Random delay with a given distribution and correlation in time."""

    correlation_ns: int
    quantiles: list[Quantile]
    reorder: bool


NumberedFaultsSpec = TypedDict(
    "NumberedFaultsSpec",
    {
        "class": NotRequired[PacketClassSpec | None],
        "faults": list[NumberedFaultSpec],
        "flow": NotRequired[int | None],
    },
)


class OutageSpec(TypedDict):
    """Outages: a Poisson process in time, with a distribution of durations."""

    durations: list[Quantile]
    mean_interval_ns: int


ParameterValue: TypeAlias = bool | int | float | QueueLimit | str


Quantity: TypeAlias = int | Distribution


class FixedSource(TypedDict):
    """A given amount of data, then the connection ends."""

    bytes: Quantity
    kind: Literal["fixed"]


class OnOffSource(TypedDict):
    """Unlimited data in on periods, no data in off periods."""

    kind: Literal["on_off"]
    off_ns: Quantity
    on_ns: Quantity


class RequestResponseSource(TypedDict):
    """
    Responses of a given size. Each is sent a think time after the previous one was
    acknowledged.
    """

    bytes: Quantity
    count: NotRequired[Quantity | None]
    kind: Literal["request_response"]
    think_ns: Quantity


class CbrSource(TypedDict):
    """One-way datagrams at a given rate."""

    bytes: int
    kind: Literal["cbr"]
    steps: list[RateStep]
    voice: NotRequired[VoiceSpec | None]


class TraceSource(TypedDict):
    """Writes of a list at given times, then the connection ends."""

    deadline_ns: NotRequired[int | None]
    kind: Literal["trace"]
    writes: list[WriteSpec]


class VideoSource(TypedDict):
    """Segments of a video, as a player requests them."""

    bitrates_bps: list[int]
    buffer_ns: int
    choice: VideoChoice
    kind: Literal["video"]
    segment_ns: int
    segments: NotRequired[int | None]
    startup_ns: int
    variation: float


class WebSource(TypedDict):
    """Web pages, as a browser requests them."""

    connections: int
    kind: Literal["web"]
    main_bytes: Quantity
    multiplexed: bool
    object_bytes: Quantity
    objects: Quantity
    pages: NotRequired[int | None]
    parse_ns: Quantity
    request_bytes: int
    think_ns: Quantity


SourceSpec: TypeAlias = (
    BulkSource
    | FixedSource
    | OnOffSource
    | RequestResponseSource
    | PingSource
    | CbrSource
    | MediaSource
    | TraceSource
    | VideoSource
    | WebSource
    | RelaySource
    | TunnelSource
)


class Algorithm(TypedDict):
    """An algorithm of the registry with a value for each of its parameters."""

    name: str
    parameters: dict[str, ParameterValue]


class DelaySpec(TypedDict):
    """Propagation delay of a link."""

    jitter: NotRequired[JitterSpec | None]
    steps: list[DelayStep]


class FaultsSpec(TypedDict):
    """Faults of packets after their transmission. Each fault sees every packet that was sent."""

    corrupt: NotRequired[OccurrenceSpec | None]
    duplicate: NotRequired[OccurrenceSpec | None]
    packets: NotRequired[list[NumberedFaultsSpec]]
    reorder: NotRequired[ReorderingSpec | None]


class FlowSpec(TypedDict):
    """One flow: a sender, a receiver, and the paths between them."""

    after: NotRequired[int | None]
    arrivals: NotRequired[ArrivalsSpec | None]
    base_delay_ns: int
    connection_of: NotRequired[int | None]
    controller: Algorithm
    dscp: NotRequired[int | None]
    ecn: bool
    gro: bool
    group: NotRequired[str | None]
    initial_pacing: bool
    initial_receive_window_bytes: int
    initial_window_packets: int
    linux: LinuxRelease
    memory: NotRequired[Algorithm | None]
    mtu_bytes: int
    name: str
    nic_rate_bps: NotRequired[int | None]
    pacing: bool
    path: list[int]
    peer: int
    quic: NotRequired[QuicSpec | None]
    reader: NotRequired[ReaderSpec | None]
    receive_window_autotuning: bool
    receive_window_bytes: int
    receiver: NotRequired[ReceiverSpec | None]
    receiver_host: NotRequired[str | None]
    reverse_path: list[int]
    routes: NotRequired[list[RouteSpec]]
    sender_host: NotRequired[str | None]
    slow_start: NotRequired[Algorithm | None]
    source: SourceSpec
    start_ns: int
    stop_ns: NotRequired[int | None]
    tcp: NotRequired[TcpSpec | None]
    timers: NotRequired[TimersSpec | None]
    transport: Transport


class LinkPart(TypedDict):
    """
    An entry of a link component registry with a value for each of its parameters: times in ns,
    rates in bit/s, sizes in bytes.
    """

    kind: str
    parameters: dict[str, ParameterValue]


class ClassSpec(TypedDict):
    """A class of flows with a separate queue and a weighted share of the link."""

    dscp: NotRequired[list[int]]
    flows: list[int]
    name: str
    quantum_bytes: int
    queue: LinkPart


class LinkSpec(TypedDict):
    """One direction of a link: queue, then capacity, then delay, then loss."""

    ack_thinning: NotRequired[AckThinningSpec | None]
    capacity: CapacitySpec
    classes: NotRequired[list[ClassSpec] | None]
    delay: DelaySpec
    faults: NotRequired[FaultsSpec | None]
    frames: NotRequired[FramesSpec | None]
    framing: NotRequired[FramingSpec | None]
    grants: NotRequired[GrantsSpec | None]
    loss: NotRequired[LinkPart | None]
    loss_steps: NotRequired[list[LossStep]]
    name: str
    netem: NotRequired[NetemSpec | None]
    outages: NotRequired[OutageSpec | None]
    queue: LinkPart
    quick_start: NotRequired[QuickStartSpec | None]


class RunSpec(TypedDict):
    """One run: a network, the flows that share it, and the data to record."""

    capture: NotRequired[CaptureSpec | None]
    duration_ns: int
    flows: list[FlowSpec]
    interval_ns: int
    links: list[LinkSpec]
    measured: NotRequired[list[MeasuredFile] | None]
    phases: list[PhaseSpec]
    record: TraceLevel
    seed: int
