"""The scenario format: all keys and their types.

The models validate each value on its own. Conditions that involve several values (a path names an
existing link, a phase ends before the run) are checked when the run specification is resolved.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, Discriminator, Field, Tag

from jostle.scenario import fields
from jostle.scenario.base_model import ScenarioTable
from jostle.scenario.dscp import Codepoint
from jostle.scenario.framing import Framing, framing_table
from jostle.scenario.link_extras import (
    Contention,
    Faults,
    Grants,
    Netem,
    NumberedFaults,
    Occurrence,
    RateBased,
    Reordering,
)
from jostle.scenario.receivers import Reader, Receiver
from jostle.scenario.registry_choices import Algorithm, Queue, QueueClass, RegistryChoice
from jostle.scenario.sources import Arrivals, Source
from jostle.scenario.transports import AckFrequency, Implementation, Quic, Tcp, Transport, Udp

__all__ = [
    "AckFrequency",
    "Algorithm",
    "Capture",
    "Contention",
    "Edge",
    "Faults",
    "Flow",
    "FrameAggregation",
    "Framing",
    "Grants",
    "Graph",
    "Handover",
    "Implementation",
    "Jitter",
    "Link",
    "NamedLink",
    "Netem",
    "NumberedFaults",
    "Occurrence",
    "Outage",
    "Proxy",
    "Queue",
    "QueueClass",
    "Quic",
    "QuickStart",
    "RandomRate",
    "RateBased",
    "ReassignmentSlots",
    "RecordedSeries",
    "RegistryChoice",
    "Reordering",
    "RouteChange",
    "ScenarioFile",
    "Tcp",
    "Timers",
    "Transport",
    "Udp",
    "keys_of",
]


def keys_of(model: type[BaseModel]) -> list[str]:
    """Return the keys of a table in the spelling of a scenario file."""
    return [field.alias or name for name, field in model.model_fields.items()]


class Jitter(ScenarioTable):
    """Random delay in addition to the link's delay."""

    quantiles: fields.SpanQuantiles
    """Distribution of the extra delay: `[["0 %", "0 ms"], …, ["100 %", "9 ms"]]` or a table
    `{ "0 %" = "0 ms", … }`. Values between the quantiles are interpolated linearly."""
    correlation: fields.Span
    """Time after which the delay is nearly independent of its earlier value; with "0 s" each packet
    gets a new random delay."""
    reorder: bool = False
    """Whether a packet may overtake packets sent before it."""


class Outage(ScenarioTable):
    """Periods in which the link loses all packets."""

    every: fields.PositiveSpan
    """Mean time from the end of an outage to the start of the next (Poisson process)."""
    durations: fields.Durations
    """Length of each outage: a time, or quantiles as for jitter."""
    fade: fields.PositiveSpan | None = None
    """Length of the shortest outages, instead of the first value of `durations`. Their number
    changes so that they take the same share of the time."""


class QuickStart(ScenarioTable):
    """A router that grants Quick-Start requests (RFC 4782) up to an allowance."""

    allowance: fields.PositiveRate
    """Rate that traffic and granted requests may use together."""
    interval: fields.PositiveSpan = 150_000_000
    """Time over which traffic is measured and for which a grant counts as used."""


class RandomRate(ScenarioTable):
    """A rate drawn from the seed: normally distributed and correlated in time."""

    mean: fields.PositiveRate
    deviation: fields.PositiveRate
    """Standard deviation; `mean` and `deviation` apply to the rate before it is bounded."""
    correlation: fields.PositiveSpan
    """Time after which the rate is nearly independent of its earlier value."""
    step: fields.PositiveSpan | None = None
    """Time between rate changes; by default `correlation` / 16, at least 1 ms."""
    min: fields.PositiveRate | None = None
    """Lower bound; by default the mean minus three deviations, at least a tenth of the mean."""
    max: fields.PositiveRate | None = None
    """Upper bound; by default the mean plus three deviations."""


class RecordedSeries(ScenarioTable):
    """A recorded time series, such as a column of a CSV file. It is repeated when it ends."""

    file: str
    """File of delivery opportunities, CSV table, or output of iperf3, irtt or ping, relative to the
    scenario's folder."""
    column: str | None = None
    """Name of the column; required if several columns fit."""
    where: dict[str, str] = Field(default_factory=dict)
    """Values that a row must have to be used: `{ transport_protocol = "UDP" }`."""
    from_: fields.Span = Field(default=0, alias="from")
    """Start of the used part of the recording."""
    to: fields.PositiveSpan | None = None
    """End of the used part of the recording; by default the end of the recording."""
    gaps: Literal["close", "hold", "stop"] | None = None
    """Handling of periods without a sample: `"close"` cuts them out, `"hold"` repeats the last
    value, `"stop"` carries nothing."""
    scale: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """Factor of all values; 0.5 converts an RTT to a one-way delay."""


class ReassignmentSlots(ScenarioTable):
    """A path that is reassigned at fixed times, with a new rate and delay, as below satellites."""

    every: fields.PositiveSpan
    """Time between reassignments. The links of a run are reassigned together; the time of the first
    reassignment is drawn from the seed."""
    gap: fields.Span = 0
    """Time at each reassignment in which the link sends nothing."""
    rate: fields.RateQuantiles | None = None
    """Distribution of the rate: quantiles as for jitter. Without it, give the link a `rate`."""
    delay: fields.SpanQuantiles | None = None
    """Distribution of an extra delay that is drawn for each assignment."""
    per_run_delay: fields.SpanQuantiles | None = None
    """Distribution of an extra delay that is drawn once per run, such as for the location of the
    terminal and the ground station."""
    step: fields.PositiveSpan = 1_000_000_000
    """Time between rate changes."""
    correlation: fields.PositiveSpan = 10_000_000_000
    """Time after which the rate within an assignment is nearly independent of its earlier value."""
    variance_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the rate's variance that persists from one assignment to the next."""
    variance_share_time: fields.PositiveSpan = 60_000_000_000
    """Time after which nearly nothing of the persistent share is left."""


class FrameAggregation(ScenarioTable):
    """Packets that a link sends together in one frame, after it has waited for the medium."""

    access_delay: fields.Waits
    """Waiting time before each frame: a time, or quantiles as for jitter."""
    packets: Annotated[int, Field(ge=1, le=1024)] = 64
    """Maximum number of packets per frame."""
    size: fields.PositiveSize = 65_535
    """Maximum number of bytes per frame; a frame has at least one packet."""


class AckThinning(ScenarioTable):
    """ACK thinning before the queue: a newer ACK of a connection replaces an older one."""

    max_acks: Annotated[int, Field(ge=1, le=1024)]
    """Maximum number of ACKs that one ACK replaces, including itself."""
    max_delay: fields.PositiveSpan = 5_000_000
    """Maximum time that an ACK waits for a newer one, up to 200 ms."""


class Handover(ScenarioTable):
    """A handover: the link sends nothing for a time, then continues at another rate and delay."""

    at: fields.PositiveSpan
    """Time at which the old path ends."""
    gap: fields.Span = 0
    """Time in which the link sends nothing. Packets that arrive meanwhile wait in the queue."""
    rate: fields.PositiveRate | None = None
    """Rate after the gap; unchanged if absent."""
    delay: fields.Span | None = None
    """Delay of packets sent after the gap; unchanged if absent."""
    reorder: bool = False
    """Whether packets on the new path may overtake packets still in flight on the old path."""


class Link(ScenarioTable):
    """One direction of a link: queue, then capacity, then delay, then loss."""

    profile: str | None = None
    """A named link that sets all keys not given in this table."""
    rate: (
        Annotated[
            Annotated[RandomRate, Tag("random")]
            | Annotated[RecordedSeries, Tag("recorded")]
            | Annotated[fields.Rates, Tag("steps")],
            Discriminator(fields.rate_form),
        ]
        | None
    ) = None
    """`"144 Mbit/s"`, steps `[["0 s", "100 Mbit/s"], ["10 s", "20 Mbit/s"]]`, random
    `{ mean = "128 Mbit/s", deviation = "20 Mbit/s", correlation = "10 s" }`, or recorded
    `{ file = "starlink.csv", column = "down" }`."""
    trace: str | None = None
    """File of delivery opportunities in Mahimahi's format, relative to the scenario's folder."""
    queue: Annotated[Queue, BeforeValidator(fields.named("kind"))] | None = None
    delay: Annotated[
        Annotated[RecordedSeries, Tag("recorded")] | Annotated[fields.Delays, Tag("steps")],
        Discriminator(fields.delay_form),
    ] = ((0, 0),)
    """Propagation delay: `"20 ms"`, steps as for `rate`, or recorded
    `{ file = "pings.txt", scale = 0.5 }`."""
    jitter: Annotated[Jitter | None, BeforeValidator(fields.jitter_table)] = None
    """Random extra delay: a table of quantiles, or `{ model = "wifi", average = "7 ms" }`."""
    loss: Annotated[
        Annotated[
            Annotated[RecordedSeries, Tag("recorded")] | Annotated[RegistryChoice, Tag("kind")],
            Discriminator(fields.loss_form),
        ]
        | None,
        BeforeValidator(fields.loss_table),
    ] = None
    """`"0.1 %"`, a table with the kind `independent` or `gilbert_elliott`, or recorded
    `{ file = "starlink.csv", column = "loss" }`."""
    outage: Annotated[Outage | None, BeforeValidator(fields.absent)] = None
    framing: Annotated[Framing | None, BeforeValidator(framing_table)] = None
    """Framing of packets on the wire, whose bytes `rate` counts: a keyword of `tc`'s CAKE, such as
    `"bridged-ptm"`, or `{ overhead = 22, atm = "ptm" }`."""
    reassignment: Annotated[ReassignmentSlots | None, BeforeValidator(fields.absent)] = None
    """Reassignment of the path at fixed times, as for a satellite terminal."""
    frame_aggregation: Annotated[FrameAggregation | None, BeforeValidator(fields.absent)] = None
    """Frame aggregation: `{ access_delay = "2 ms", packets = 64 }`."""
    ack_thinning: Annotated[AckThinning | None, BeforeValidator(fields.absent)] = None
    """ACK thinning before the queue: `{ max_acks = 8, max_delay = "5 ms" }`."""
    faults: Faults | None = None
    """Duplicated, corrupted, reordered, lost and marked packets, at random or by number."""
    netem: Annotated[Netem | None, BeforeValidator(fields.absent)] = None
    """Habits of netem: `{ limit = 1000 }`."""
    grants: Annotated[Grants | None, BeforeValidator(fields.absent)] = None
    """Capacity on demand, as in the return channel of a satellite system."""
    handovers: list[Handover] = Field(default_factory=list)
    """Handovers to another rate and delay."""
    quick_start: Annotated[QuickStart | None, BeforeValidator(fields.quick_start_table)] = None
    """Rate that the router may grant to Quick-Start requests: `"45 Mbit/s"`, or a table. A link
    without this key grants nothing."""


class NamedLink(Link):
    """A link with a name, which flows list in their `path`."""

    name: fields.Name


class Edge(ScenarioTable):
    """Two nodes that are connected by one link in each direction."""

    between: list[str]
    """Names of the two nodes."""
    rate: fields.PositiveRate | None = None
    delay: fields.Span | None = None
    queue: Annotated[Queue, BeforeValidator(fields.named("kind"))] | None = None


class Graph(ScenarioTable):
    """A network of nodes and edges. Flows take the path with the lowest delay."""

    file: str | None = None
    """GML or GraphML file, relative to the scenario's folder, with node labels, node positions and
    edge rates (`LinkSpeedRaw`)."""
    edges: list[Edge] = Field(default_factory=list)
    """Edges to add to the file's edges, or to change."""
    rate: fields.PositiveRate | None = None
    """Rate of edges that do not set one."""
    delay: fields.Span | None = None
    """Delay of edges between nodes without a position."""
    queue: Annotated[Queue, BeforeValidator(fields.named("kind"))] | None = None
    """Queue of the links whose edge does not set one."""
    scale: Annotated[float, Field(gt=0, le=1e3)] = 1.0
    """Factor of the file's rates. At a scale of 0.01, a 10 Gbit/s network needs a hundredth of the
    packets."""
    detour: Annotated[float, Field(ge=1, le=10)] = 1.0
    """Length of cables divided by the great-circle distance."""


class Capture(ScenarioTable):
    """Capture settings of a run: packet headers, and optionally qlogs."""

    qlog: bool = False
    """Write qlogs of the QUIC endpoints as well."""


class Proxy(ScenarioTable):
    """A proxy that splits a flow's TCP connection (RFC 3135 §2.4)."""

    link: fields.Name | None = None
    """Link of the flow's `path` at whose entrance the proxy is; by default the slowest link."""
    reverse_link: fields.Name | None = None
    """Link of `reverse_path` at whose entrance the proxy is; by default the mirror of `link`."""
    controller: Annotated[Algorithm, BeforeValidator(fields.named("name"))]
    """Controller of the connection that the proxy opens."""
    slow_start: Annotated[Algorithm, BeforeValidator(fields.named("name"))] | None = None
    buffer: fields.PositiveAmount
    """Maximum of data that the proxy has read and the next receiver has not acknowledged: `"4 MB"`,
    or in BDPs of the flow's complete path."""
    receive_window: fields.PositiveAmount | None = None
    """Maximum receive window that the proxy offers to the previous sender, which bounds the data
    that it has not read; by default `buffer`."""
    rtt: fields.PositiveSpan | None = None
    """Base RTT between the previous host and the proxy, a part of the flow's `rtt`; by default the
    delay of the links in between, or 1 ms if they have none."""
    initial_window: fields.Packets | None = None
    """Initial window of the connection that the proxy opens; by default the flow's."""
    pacing: Literal["fq", "none"] | None = None
    """Pacing of the connection that the proxy opens; by default the flow's."""


class RouteChange(ScenarioTable):
    """A change of a flow's route. Packets in flight stay on the links of the old route."""

    at: fields.PositiveSpan
    """Time from which routers forward by the new route."""
    path: list[str] | None = None
    """Links from the sender to the receiver; unchanged if absent."""
    reverse_path: list[str] | None = None
    """Links from the receiver to the sender; unchanged if absent."""


class Timers(ScenarioTable):
    """Timers of both hosts of a flow, which may be coarse or late."""

    hz: Literal[100, 250, 300, 1000] | None = None
    """Ticks per second on which Linux lets the timers of TCP expire (`CONFIG_HZ`); by default 250,
    as in Debian and Ubuntu."""
    slack: fields.Span = 0
    """Time by which timers of pacing, and all timers of QUIC, expire too late, up to 100 ms."""
    resolution: fields.Span = 0
    """Time of which these timers expire at multiples, up to 100 ms."""


class Flow(ScenarioTable):
    """A sender, a receiver, and the path between them."""

    name: fields.Name
    controller: Annotated[Algorithm, BeforeValidator(fields.named("name"))]
    """Congestion controller; `"none"` for datagrams, which have no congestion control."""
    slow_start: Annotated[Algorithm, BeforeValidator(fields.named("name"))] | None = None
    peer_cache: Annotated[Algorithm | None, BeforeValidator(fields.peer_cache_table)] = None
    """Peer cache: what the sender reuses from earlier connections to the peer; `"none"` disables
    it."""
    proxy: Annotated[list[Proxy], BeforeValidator(fields.proxy_tables)] = Field(
        default_factory=list
    )
    """A proxy that splits the connection, or a list of proxies in path order; `"none"` for none."""
    peer: fields.Address | None = None
    """IPv4 address of the receiver in the sender's peer cache; by default each entry of `flows` has
    its own address."""
    sender_host: fields.Name | None = None
    """Host of the sender, for queues that share capacity between hosts. Flows with the same name
    share a host; by default each flow, including each copy of `count`, has its own host."""
    receiver_host: fields.Name | None = None
    """Host of the receiver; see `sender_host`."""
    rtt: fields.PositiveSpan | None = None
    """Base RTT of the path: link delays, their median jitter, and the remaining fixed delay."""
    start: fields.Span = 0
    start_jitter: fields.Span = 0
    """Random delay of the start: the flow starts uniformly in `start` … `start + start_jitter`."""
    tunnel: Annotated[fields.Name | None, BeforeValidator(fields.absent)] = None
    """Name of a flow with `source = { kind = "tunnel" }` that carries the packets of this flow, or
    `"none"`. It replaces its links in this flow's `path`, which by default is the tunnel's."""
    connection_of: fields.Name | None = None
    """Name of an earlier flow over TCP. This flow sends data over that flow's connection, from its
    receiver to its sender."""
    after: fields.Name | None = None
    """Name of a flow. This flow opens `start` after that flow is complete."""
    stop: fields.PositiveSpan | None = None
    size: fields.Sizes | None = None
    """Size of the transfer; short for `source = { kind = "fixed", size = … }`."""
    count: Annotated[int, Field(ge=0, le=10_000)] = 1
    """Number of copies of this flow, named `name-1`, `name-2`, …; 0 removes the flow."""
    one_at_a_time: fields.Span | None = None
    """Time between the completion of a copy and the start of the next. Without it, all copies of
    `count` start in parallel."""
    transport: Transport | None = None
    """Transport: `"quic"` or a table with its keys. The default is `"udp"` for pings and constant
    rates, else `"tcp"`."""
    source: Source | None = None
    arrivals: Arrivals | None = None
    """Arrival process of the flow's connections. Each connection transfers what `source` sets."""
    from_: str | None = Field(default=None, alias="from")
    """Node of the graph where the sender is."""
    to: str | None = None
    """Node of the graph where the receiver is."""
    path: list[str] | None = None
    """Names of the links from the sender to the receiver."""
    reverse_path: list[str] = Field(default_factory=list)
    """Names of the links from the receiver to the sender."""
    routes: list[RouteChange] = Field(default_factory=list)
    """Changes of `path` and `reverse_path` during the run."""
    direction: Literal["down", "up"] = "down"
    """Direction of the data: `"down"` uses `downlink`, `"up"` uses `uplink`. If the flow has a
    `path`, `"up"` swaps it with `reverse_path`."""
    class_: fields.Name | None = Field(default=None, alias="class")
    """Class of the flow in queues with classes; by default the class with the flow's name, else the
    class with its `dscp`, else `default`."""
    dscp: Codepoint = 0
    """Codepoint of the flow's packets in both directions: `"EF"`, `"AF41"`, `"LE"`, or a number."""
    pacing: Literal["fq", "none"] = "none"
    ecn: bool | None = None
    """Whether both ends support ECN; by default if the controller needs it."""
    mtu: fields.Mtu = 1500
    """Largest IP packet of both ends. It includes 52 bytes of headers; the frame adds 14 bytes."""
    initial_window: fields.Packets = 10
    initial_pacing: bool = False
    """Spread the initial window over the RTT of the handshake instead of sending it as a burst."""
    linux_version: Literal["6.1", "4.15"] | None = None
    """Linux release whose TCP and controllers both hosts use; by default 6.1."""
    receive_window: fields.PositiveAmount | None = None
    initial_receive_window: fields.PositiveAmount | None = None
    """Receive window before any data have arrived; by default the smaller of `receive_window` and
    65,535 bytes, the largest window of a SYN-ACK."""
    receive_window_autotuning: bool = False
    """Whether the limit of the receive window grows from `initial_receive_window` with the bytes
    read per RTT, like Linux's autotuning, or is `receive_window` from the start."""
    receiver: Receiver = None
    """Deviation of the receiver from Linux's behaviour; `"none"` for none."""
    reader: Annotated[Reader | None, BeforeValidator(fields.absent)] = None
    """Slow application at the receiver: `{ rate = "4 Mbit/s" }`, or with `pauses`; "none" reads at
    once."""
    timers: Annotated[Timers | None, BeforeValidator(fields.absent)] = None
    """Coarse or late timers of both hosts: `{ hz = 250 }`, `{ resolution = "1 ms" }`; "none" are
    exact."""
    receiver_gro: bool = False
    """Whether the receiver merges segments that arrive at the same time (GRO)."""
    nic_rate: fields.PositiveRate | None = None


LINK_TABLES: Final = ("bottleneck", "downlink", "uplink")
"""Names of the links that are tables of the scenario instead of entries of `links`."""


class ScenarioFile(ScenarioTable):
    """A scenario file."""

    format: Literal["jostle.scenario/2"] = "jostle.scenario/2"
    """Format of the file."""
    title: Annotated[str, Field(max_length=1000)] = ""
    duration: fields.PositiveSpan
    repeats: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Runs per condition, with the seeds `seed`, `seed + 1`, …"""
    repeat_until: fields.Until | None = None
    """Repeat each condition until a confidence interval is narrow enough: `"goodput ± 2 %"`, `"rtt
    of web in steady ± 1 ms"`."""
    max_repeats: Annotated[int, Field(ge=5, le=1_000_000)] = 50
    """Maximum number of runs per condition with `repeat_until`."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 1
    sampling_interval: fields.SamplingInterval = "auto"
    """Sampling interval of the time series, or `"auto"`: from base RTTs and duration, so that there
    are about 400 to 1,000 points and each covers at least one base RTT."""
    record: Literal["none", "acks"] = "none"
    """`"acks"` also records every ACK that a sender receives."""
    capture: Annotated[Capture | None, BeforeValidator(fields.capture_table)] = None
    """Write the headers of all packets to files, one file per end of each flow."""
    phases: dict[fields.Name, fields.Phase] = Field(default_factory=dict)
    """Time windows for which all statistics are computed: `steady = ["60 s", "120 s"]`."""
    bottleneck: Link | None = None
    """The single link that all flows share."""
    downlink: Link | None = None
    """Link towards the client, used together with `uplink` instead of `bottleneck`. A flow's
    `direction` sets which of the two carries data; the other carries ACKs."""
    uplink: Link | None = None
    links: list[NamedLink] = Field(default_factory=list)
    """Named links, used instead of `bottleneck`. Each flow lists its links in `path`."""
    graph: Graph | None = None
    """Network of nodes and edges, used instead of links. Flows set `from` and `to`."""
    flows: Annotated[list[Flow], Field(min_length=1)]
    grid: dict[str, Any] = Field(default_factory=dict)
    """Keys that vary, with the values of each. Every combination is a condition."""
    sample: dict[str, Any] = Field(default_factory=dict)
    """Keys that are drawn from ranges. `points`, `method` and `seed` set the design; `where` lists
    constraints."""
