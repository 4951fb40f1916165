"""A run's specification as Python sees it: its schema in types.

Written by `JOSTLE_BLESS=1 pytest tests/test_run_spec.py`.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict


class AckFrequencySpec(TypedDict):
    """What an `ACK_FREQUENCY` frame asks for (draft-ietf-quic-ack-frequency)."""

    ack_eliciting_threshold: int
    max_ack_delay_ns: NotRequired[int | None]
    reordering_threshold: int


class AckThinningSpec(TypedDict):
    """ACKs of a connection of which a newer one takes the place (RFC 3449 §5.2.1)."""

    hold_ns: int
    most: int


class ArrivalsSpec1(TypedDict):
    """A Poisson process."""

    kind: Literal["poisson"]
    rate_per_s: float


class ArrivalsSpec2(TypedDict):
    """A Poisson process whose connections offer a link a share of its rate."""

    kind: Literal["load"]
    link: int
    share: float


class ArrivalsSpec3(TypedDict):
    """As they are listed."""

    at_ns: list[int]
    bytes: NotRequired[list[int] | None]
    kind: Literal["listed"]


ArrivalsSpec: TypeAlias = ArrivalsSpec1 | ArrivalsSpec2 | ArrivalsSpec3


class CapacitySpec1(TypedDict):
    """One rate for the whole run."""

    kind: Literal["constant"]
    rate_bps: int


class CapacitySpec3(TypedDict):
    """Delivery opportunities as in a Mahimahi trace: each carries up to `opportunity_bytes`."""

    kind: Literal["trace"]
    opportunities_ms: list[int]
    opportunity_bytes: int


class CapacitySpec4(TypedDict):
    """Normally distributed steps, each correlated with the one before."""

    correlation_ns: int
    deviation_bps: int
    kind: Literal["autoregressive"]
    max_bps: int
    mean_bps: int
    min_bps: int
    step_ns: int


class CaptureSpec(TypedDict):
    """What the files of a capture say beside the packets."""

    qlog: NotRequired[bool]
    scenario: str


class CdfPoint(TypedDict):
    """A point of a distribution function."""

    probability: float
    value: float


class DelayStep(TypedDict):
    """From `at_ns` on the delay is `delay_ns`."""

    at_ns: int
    delay_ns: int


class Law1(TypedDict):
    """P(X > x) = e^(−x ⁄ mean)."""

    kind: Literal["exponential"]
    mean: float


class Law2(TypedDict):
    """ln X is normally distributed."""

    kind: Literal["lognormal"]
    median: float
    sigma: float


class Law3(TypedDict):
    """P(X > x) = (scale ⁄ x)^shape from `scale` on."""

    kind: Literal["pareto"]
    scale: float
    shape: float


class Law4(TypedDict):
    """P(X > x) = e^(−(x ⁄ scale)^shape)."""

    kind: Literal["weibull"]
    scale: float
    shape: float


class Law5(TypedDict):
    """As it was measured: points of its distribution function, linear in between."""

    kind: Literal["empirical"]
    points: list[CdfPoint]


Law: TypeAlias = Law1 | Law2 | Law3 | Law4 | Law5


class Limit1(TypedDict):
    """In bytes on the wire, as Linux's `bfifo`."""

    bytes: int


class Limit2(TypedDict):
    """In packets of any size, as Linux's `pfifo`."""

    packets: int


Limit: TypeAlias = Limit1 | Limit2


Linux: TypeAlias = Literal["6.1", "4.15"]


class LossStep(TypedDict):
    """From `at_ns` on packets are lost with `probability`."""

    at_ns: int
    probability: float


class MeasuredFile(TypedDict):
    """A file that packets were captured into."""

    name: str
    sha256: str


class PhaseSpec(TypedDict):
    """A window of time, `from_ns` included, `to_ns` excluded."""

    from_ns: int
    name: str
    to_ns: int


class PlayoutSpec1(TypedDict):
    """As late as gives the largest R: no fixed buffer does better."""

    kind: Literal["best"]


class PlayoutSpec2(TypedDict):
    """When so large a share of the packets that arrive have arrived."""

    kind: Literal["quantile"]
    share: float


class PlayoutSpec3(TypedDict):
    """So long after the packet that took least would have come."""

    kind: Literal["buffer"]
    length_ns: int


PlayoutSpec: TypeAlias = PlayoutSpec1 | PlayoutSpec2 | PlayoutSpec3


class Quantile(TypedDict):
    """A point of a quantile function."""

    probability: float
    value_ns: int


class QuicCommands(TypedDict):
    """Programs with their arguments, in which `{address}`, `{port}` and the like stand for values."""

    client: list[str]
    server: list[str]


QuicCrypto: TypeAlias = Literal["none", "tls"]


QuicHandshake: TypeAlias = Literal["1rtt", "0rtt"]


class QuicImplementation(TypedDict):
    """Another implementation of QUIC than the one that is built in."""

    commands: QuicCommands
    name: str


QuicRecovery: TypeAlias = Literal["rfc9002", "prr"]


class QuicSpec(TypedDict):
    """A QUIC connection (RFC 9000) from the flow's sender to its receiver."""

    ack_frequency: NotRequired[AckFrequencySpec | None]
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
    """A router that takes part in Quick-Start (RFC 4782). It grants what is left of an allowance."""

    allowance_bps: int
    interval_ns: int


class RateStep(TypedDict):
    """From `at_ns` on the rate is `rate_bps`."""

    at_ns: int
    rate_bps: int


class ReceiverSpec1(TypedDict):
    """Sends each ACK that acknowledges something in pieces."""

    kind: Literal["divided_acks"]
    pieces: int


class ReceiverSpec2(TypedDict):
    """Sends each ACK several times."""

    copies: int
    kind: Literal["repeated_acks"]


class ReceiverSpec3(TypedDict):
    """Acknowledges whatever was sent before what arrives, and some of what was sent after it."""

    kind: Literal["optimistic_acks"]
    lead: float


class ReceiverSpec4(TypedDict):
    """Never says that a packet was marked."""

    kind: Literal["hidden_marks"]


class ReceiverSpec5(TypedDict):
    """Offers no more than LEDBAT++ allows, which it runs itself (rLEDBAT, RFC 9840)."""

    constant: float
    kind: Literal["rledbat"]
    slowdowns: bool
    target_ns: int


ReceiverSpec: TypeAlias = (
    ReceiverSpec1 | ReceiverSpec2 | ReceiverSpec3 | ReceiverSpec4 | ReceiverSpec5
)


class SourceSpec1(TypedDict):
    """Always something to send."""

    kind: Literal["bulk"]


class SourceSpec5(TypedDict):
    """A datagram at fixed times, each of which the receiver sends back as it came."""

    bytes: int
    every_ns: int
    kind: Literal["ping"]
    timeout_ns: int


class SourceSpec7(TypedDict):
    """Frames at fixed times, each as large as it is."""

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


TraceLevel: TypeAlias = Literal["none", "acks"]


Transport: TypeAlias = Literal["tcp", "udp", "quic"]


Value: TypeAlias = bool | int | float | Limit | str


class VideoChoice1(TypedDict):
    """By what is in its buffer: BBA-0 (Huang et al., SIGCOMM 2014)."""

    cushion_ns: int
    kind: Literal["buffer"]
    reservoir_ns: int


class VideoChoice2(TypedDict):
    """By the throughput of earlier segments: their harmonic mean (Jiang et al., CoNEXT 2012)."""

    kind: Literal["throughput"]
    safety: float
    samples: int


VideoChoice: TypeAlias = VideoChoice1 | VideoChoice2


class VoiceSpec(TypedDict):
    """Speech, as the E-model (ITU-T G.107) wants to know it."""

    coding_delay_ns: int
    equipment_impairment: float
    loss_robustness: float
    playout: PlayoutSpec


class WriteSpec(TypedDict):
    """Something that an application writes at once."""

    at_ns: int
    bytes: int


class Algorithm(TypedDict):
    """An algorithm of the registry with a value for each of its parameters."""

    name: str
    parameters: dict[str, Value]


class CapacitySpec2(TypedDict):
    """Piecewise constant rate. The first step is at 0."""

    kind: Literal["steps"]
    steps: list[RateStep]


CapacitySpec: TypeAlias = CapacitySpec1 | CapacitySpec2 | CapacitySpec3 | CapacitySpec4


class Distribution(TypedDict):
    """
    A law, and the bounds outside of which nothing of it is left: what lies between them keeps its
    proportions.
    """

    law: Law
    max: NotRequired[float | None]
    min: NotRequired[float | None]


class FramesSpec(TypedDict):
    """Packets that a link sends together, after a wait for the medium."""

    bytes: int
    contention: list[Quantile]
    packets: int


class JitterSpec(TypedDict):
    """Random delay with a given distribution, correlated in time."""

    correlation_ns: int
    quantiles: list[Quantile]
    reorder: bool


class LinkPart(TypedDict):
    """
    A row of the registries of links with a value for each of its parameters: times in ns, rates in
    bit/s, sizes in bytes.
    """

    kind: str
    parameters: dict[str, Value]


class OutageSpec(TypedDict):
    """Outages: events in time, Poisson, with a distribution of durations."""

    durations: list[Quantile]
    mean_interval_ns: int


Quantity: TypeAlias = int | Distribution


class SourceSpec2(TypedDict):
    """A given amount, then the connection ends."""

    bytes: Quantity
    kind: Literal["fixed"]


class SourceSpec3(TypedDict):
    """Bulk while on, silent while off."""

    kind: Literal["on_off"]
    off_ns: Quantity
    on_ns: Quantity


class SourceSpec4(TypedDict):
    """Responses of a given size: the next is sent a think time after the last was acknowledged."""

    bytes: Quantity
    count: NotRequired[Quantity | None]
    kind: Literal["request_response"]
    think_ns: Quantity


class SourceSpec6(TypedDict):
    """Datagrams at a rate, which nobody answers."""

    bytes: int
    kind: Literal["cbr"]
    steps: list[RateStep]
    voice: NotRequired[VoiceSpec | None]


class SourceSpec8(TypedDict):
    """What a list says, at the times that it says; then the connection ends."""

    deadline_ns: NotRequired[int | None]
    kind: Literal["trace"]
    writes: list[WriteSpec]


class SourceSpec9(TypedDict):
    """Segments of a video, as a player asks for them."""

    bitrates_bps: list[int]
    buffer_ns: int
    choice: VideoChoice
    kind: Literal["video"]
    segment_ns: int
    segments: NotRequired[int | None]
    startup_ns: int
    variation: float


class SourceSpec10(TypedDict):
    """Pages, as a browser asks for them."""

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


class ClassSpec(TypedDict):
    """A class of flows, with a queue of its own and a share of the link by weight."""

    flows: list[int]
    name: str
    quantum_bytes: int
    queue: LinkPart


class DelaySpec(TypedDict):
    """Propagation delay of a link."""

    jitter: NotRequired[JitterSpec | None]
    steps: list[DelayStep]


class FlowSpec(TypedDict):
    """One flow: a sender, a receiver, and the way between them."""

    access_delay_ns: int
    after: NotRequired[int | None]
    arrivals: NotRequired[ArrivalsSpec | None]
    controller: Algorithm
    ecn: bool
    gro: bool
    group: NotRequired[str | None]
    initial_pacing: bool
    initial_receive_window_bytes: int
    initial_window_packets: int
    linux: Linux
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
    transport: Transport


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
    """One run: a network, the flows that share it, and what to measure."""

    capture: NotRequired[CaptureSpec | None]
    duration_ns: int
    flows: list[FlowSpec]
    interval_ns: int
    links: list[LinkSpec]
    measured: NotRequired[list[MeasuredFile] | None]
    phases: list[PhaseSpec]
    seed: int
    trace: TraceLevel
