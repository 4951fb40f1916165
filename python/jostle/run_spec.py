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


class ArrivalsSpec1(TypedDict):
    """A Poisson process."""

    kind: Literal["poisson"]
    rate_per_s: float


class ArrivalsSpec2(TypedDict):
    """A Poisson process whose connections offer a fraction of a link's rate as load."""

    kind: Literal["load"]
    link: int
    share: float


class ArrivalsSpec3(TypedDict):
    """A list of arrivals."""

    at_ns: list[int]
    bytes: NotRequired[list[int] | None]
    kind: Literal["listed"]


ArrivalsSpec: TypeAlias = ArrivalsSpec1 | ArrivalsSpec2 | ArrivalsSpec3


class CapacitySpec1(TypedDict):
    """One rate for the whole run."""

    kind: Literal["constant"]
    rate_bps: int


class CapacitySpec3(TypedDict):
    """Delivery opportunities of a Mahimahi trace, each for up to `opportunity_bytes`."""

    kind: Literal["trace"]
    opportunities_ms: list[int]
    opportunity_bytes: int


class CapacitySpec4(TypedDict):
    """Normally distributed steps, each correlated with the previous one."""

    correlation_ns: int
    deviation_bps: int
    kind: Literal["autoregressive"]
    max_bps: int
    mean_bps: int
    min_bps: int
    step_ns: int


class CaptureSpec(TypedDict):
    """Content of capture files in addition to the packets."""

    qlog: NotRequired[bool]
    scenario: str


class CdfPoint(TypedDict):
    """A point of a distribution function."""

    probability: float
    value: float


class DelayStep(TypedDict):
    """The delay is `delay_ns` from `at_ns` on."""

    at_ns: int
    delay_ns: int


class DistributionKind1(TypedDict):
    """P(X > x) = e^(−x ⁄ mean)."""

    kind: Literal["exponential"]
    mean: float


class DistributionKind2(TypedDict):
    """ln X is normally distributed."""

    kind: Literal["lognormal"]
    median: float
    sigma: float


class DistributionKind3(TypedDict):
    """P(X > x) = (scale ⁄ x)^shape from `scale` on."""

    kind: Literal["pareto"]
    scale: float
    shape: float


class DistributionKind4(TypedDict):
    """P(X > x) = e^(−(x ⁄ scale)^shape)."""

    kind: Literal["weibull"]
    scale: float
    shape: float


class DistributionKind5(TypedDict):
    """A measured distribution: points of its distribution function, linear in between."""

    kind: Literal["empirical"]
    points: list[CdfPoint]


DistributionKind: TypeAlias = (
    DistributionKind1
    | DistributionKind2
    | DistributionKind3
    | DistributionKind4
    | DistributionKind5
)


LinuxRelease: TypeAlias = Literal["6.1", "4.15"]


class LossStep(TypedDict):
    """Packets are lost with `probability` from `at_ns` on."""

    at_ns: int
    probability: float


class MeasuredFile(TypedDict):
    """A file with captured packets."""

    name: str
    sha256: str


class PhaseSpec(TypedDict):
    """A time window, `from_ns` included, `to_ns` excluded."""

    from_ns: int
    name: str
    to_ns: int


class PlayoutSpec1(TypedDict):
    """The delay with the largest R, which no fixed buffer can exceed."""

    kind: Literal["best"]


class PlayoutSpec2(TypedDict):
    """The delay at which a given fraction of the packets that arrive have arrived."""

    kind: Literal["quantile"]
    share: float


class PlayoutSpec3(TypedDict):
    """A fixed time after the smallest delay of a packet."""

    kind: Literal["buffer"]
    length_ns: int


PlayoutSpec: TypeAlias = PlayoutSpec1 | PlayoutSpec2 | PlayoutSpec3


Prr: TypeAlias = Literal["linux", "rfc9937"]


class Quantile(TypedDict):
    """A point of a quantile function."""

    probability: float
    value_ns: int


class QueueLimit1(TypedDict):
    """In bytes on the wire, like Linux's `bfifo`."""

    bytes: int


class QueueLimit2(TypedDict):
    """In packets of any size, like Linux's `pfifo`."""

    packets: int


QueueLimit: TypeAlias = QueueLimit1 | QueueLimit2


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
    recovery: QuicRecovery
    stream_receive_window_bytes: int
    streams: int


class QuickStartSpec(TypedDict):
    """A router that supports Quick-Start (RFC 4782). It grants the unused part of an allowance."""

    allowance_bps: int
    interval_ns: int


class RateStep(TypedDict):
    """The rate is `rate_bps` from `at_ns` on."""

    at_ns: int
    rate_bps: int


class ReceiverSpec1(TypedDict):
    """ACK division: splits each ACK of new data into several ACKs."""

    kind: Literal["ack_division"]
    pieces: int


class ReceiverSpec2(TypedDict):
    """DupACK spoofing: sends copies of each ACK."""

    copies: int
    kind: Literal["dupack_spoofing"]


class ReceiverSpec3(TypedDict):
    """
    Optimistic ACKs: acknowledges all data sent before the segment that arrives, and a part of
    the data sent after it.
    """

    kind: Literal["optimistic_acking"]
    lead: float


class ReceiverSpec4(TypedDict):
    """Hides CE marks from the sender."""

    kind: Literal["hidden_ecn_marks"]


class ReceiverSpec5(TypedDict):
    """Limits the receive window by LEDBAT++ at the receiver (rLEDBAT, RFC 9840)."""

    constant: float
    kind: Literal["rledbat"]
    slowdowns: bool
    target_ns: int


ReceiverSpec: TypeAlias = (
    ReceiverSpec1 | ReceiverSpec2 | ReceiverSpec3 | ReceiverSpec4 | ReceiverSpec5
)


class SourceSpec1(TypedDict):
    """Unlimited data."""

    kind: Literal["bulk"]


class SourceSpec5(TypedDict):
    """Datagrams at fixed times, which the receiver echoes."""

    bytes: int
    every_ns: int
    kind: Literal["ping"]
    timeout_ns: int


class SourceSpec7(TypedDict):
    """Frames of given sizes at fixed times."""

    deadline_ns: int
    delta_bytes: int
    frames_per_1000_s: int
    key_bytes: int
    key_every: int
    kind: Literal["media"]


SourceSpec11 = TypedDict(
    "SourceSpec11",
    {
        "buffer_bytes": int,
        "from": int,
        "kind": Literal["relay"],
    },
)


class TcpSpec(TypedDict):
    """Properties of a TCP connection that differ from Linux's."""

    accecn_option: bool
    prr: Prr


TraceLevel: TypeAlias = Literal["none", "acks"]


Transport: TypeAlias = Literal["tcp", "udp", "quic"]


class VideoChoice1(TypedDict):
    """Buffer-based: BBA-0 (Huang et al., SIGCOMM 2014)."""

    cushion_ns: int
    kind: Literal["buffer"]
    reservoir_ns: int


class VideoChoice2(TypedDict):
    """Throughput-based: harmonic mean over earlier segments (Jiang et al., CoNEXT 2012)."""

    kind: Literal["throughput"]
    safety: float
    samples: int


VideoChoice: TypeAlias = VideoChoice1 | VideoChoice2


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


class CapacitySpec2(TypedDict):
    """Piecewise constant rate. The first step is at 0."""

    kind: Literal["steps"]
    steps: list[RateStep]


CapacitySpec: TypeAlias = CapacitySpec1 | CapacitySpec2 | CapacitySpec3 | CapacitySpec4


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


class JitterSpec(TypedDict):
    """Random delay with a given distribution and correlation in time."""

    correlation_ns: int
    quantiles: list[Quantile]
    reorder: bool


class OutageSpec(TypedDict):
    """Outages: a Poisson process in time, with a distribution of durations."""

    durations: list[Quantile]
    mean_interval_ns: int


ParameterValue: TypeAlias = bool | int | float | QueueLimit | str


Quantity: TypeAlias = int | Distribution


class SourceSpec2(TypedDict):
    """A given amount of data, then the connection ends."""

    bytes: Quantity
    kind: Literal["fixed"]


class SourceSpec3(TypedDict):
    """Unlimited data in on periods, no data in off periods."""

    kind: Literal["on_off"]
    off_ns: Quantity
    on_ns: Quantity


class SourceSpec4(TypedDict):
    """
    Responses of a given size. Each is sent a think time after the previous one was
    acknowledged.
    """

    bytes: Quantity
    count: NotRequired[Quantity | None]
    kind: Literal["request_response"]
    think_ns: Quantity


class SourceSpec6(TypedDict):
    """One-way datagrams at a given rate."""

    bytes: int
    kind: Literal["cbr"]
    steps: list[RateStep]
    voice: NotRequired[VoiceSpec | None]


class SourceSpec8(TypedDict):
    """Writes of a list at given times, then the connection ends."""

    deadline_ns: NotRequired[int | None]
    kind: Literal["trace"]
    writes: list[WriteSpec]


class SourceSpec9(TypedDict):
    """Segments of a video, as a player requests them."""

    bitrates_bps: list[int]
    buffer_ns: int
    choice: VideoChoice
    kind: Literal["video"]
    segment_ns: int
    segments: NotRequired[int | None]
    startup_ns: int
    variation: float


class SourceSpec10(TypedDict):
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
    SourceSpec1
    | SourceSpec2
    | SourceSpec3
    | SourceSpec4
    | SourceSpec5
    | SourceSpec6
    | SourceSpec7
    | SourceSpec8
    | SourceSpec9
    | SourceSpec10
    | SourceSpec11
)


class Algorithm(TypedDict):
    """An algorithm of the registry with a value for each of its parameters."""

    name: str
    parameters: dict[str, ParameterValue]


class DelaySpec(TypedDict):
    """Propagation delay of a link."""

    jitter: NotRequired[JitterSpec | None]
    steps: list[DelayStep]


class FlowSpec(TypedDict):
    """One flow: a sender, a receiver, and the paths between them."""

    after: NotRequired[int | None]
    arrivals: NotRequired[ArrivalsSpec | None]
    base_delay_ns: int
    controller: Algorithm
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
    receive_window_autotuning: bool
    receive_window_bytes: int
    receiver: NotRequired[ReceiverSpec | None]
    receiver_host: NotRequired[str | None]
    reverse_path: list[int]
    sender_host: NotRequired[str | None]
    slow_start: NotRequired[Algorithm | None]
    source: SourceSpec
    start_ns: int
    stop_ns: NotRequired[int | None]
    tcp: NotRequired[TcpSpec | None]
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
    frames: NotRequired[FramesSpec | None]
    loss: NotRequired[LinkPart | None]
    loss_steps: NotRequired[list[LossStep]]
    name: str
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
