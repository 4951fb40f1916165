"""The scenario format: every key that a file may hold, and what is written for it.

The models check each value by itself. What depends on several values (a flow's path names a link
that exists, a phase ends before the run) is checked where a run's specification is resolved.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from jostle.scenario import fields as f
from jostle.scenario.receivers import Receiver
from jostle.scenario.sources import Arrivals, Source
from jostle.scenario.table import Table
from jostle.scenario.transports import (
    AckFrequency,
    Implementation,
    Quic,
    Tcp,
    Transport,
    Udp,
)

__all__ = [
    "AckFrequency",
    "Algorithm",
    "Capture",
    "Edge",
    "Flow",
    "Frames",
    "FromFile",
    "Graph",
    "Handover",
    "Implementation",
    "Jitter",
    "Link",
    "NamedLink",
    "Outage",
    "Part",
    "Pep",
    "Queue",
    "QueueClass",
    "Quic",
    "QuickStart",
    "RandomRate",
    "ScenarioFile",
    "Slots",
    "Tcp",
    "Transport",
    "Udp",
    "keys_of",
]


def keys_of(model: type[BaseModel]) -> list[str]:
    """List the keys of a table, as they are written."""
    return [field.alias or name for name, field in model.model_fields.items()]


class Algorithm(BaseModel):
    """A controller or slow start: its name, or a table with its name and parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)

    name: str

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys beside `name`."""
        return dict(self.model_extra or {})


class Part(BaseModel):
    """A queue discipline or losses: their kind, or a table with it and parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)

    kind: str

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys beside `kind`."""
        return dict(self.model_extra or {})


class QueueClass(Table):
    """A class of flows that share a queue, and the link with other classes by weight."""

    weight: Annotated[float, Field(ge=0.001, le=1000)] = 1.0
    """Of what the link carries while all classes have something to send."""
    queue: Annotated[Part, BeforeValidator(f.named("kind"))] | None = None
    """Its queue: `drop_tail` with the `limit` of the queue around it if absent."""


class Queue(Part):
    """A queue discipline: its kind, or a table with it, its parameters, and its classes."""

    classes: dict[f.Name, QueueClass] | None = None
    """Classes of flows by name: `{ calls = { weight = 3, queue = "codel" }, default = {} }`."""


class Jitter(Table):
    """Random delay on top of a link's own."""

    quantiles: f.SpanQuantiles
    """The distribution of the extra delay: `[["0 %", "0 ms"], …, ["100 %", "9 ms"]]` or a table
    `{ "0 %" = "0 ms", … }`; linear in between."""
    correlation: f.Span
    """Time after which the delay is nearly independent of what it was; "0 s" for every packet a
    new draw."""
    reorder: bool = False
    """Whether a packet may overtake its predecessor."""


class Outage(Table):
    """Spans of time in which everything sent on a link is lost."""

    every: f.PositiveSpan
    """Mean time from the end of one to the start of the next; they come as a Poisson process."""
    durations: f.Durations
    """One length for all, or quantiles as for jitter."""
    fade: f.PositiveSpan | None = None
    """Length of the shortest outages, instead of the first of `durations`: so many more of them
    that they take the same share of the time."""


class QuickStart(Table):
    """A router that grants Quick-Start requests (RFC 4782): it has an allowance to give."""

    allowance: f.PositiveRate
    """Rate that traffic and grants may use together."""
    interval: f.PositiveSpan = 150_000_000
    """Time over which traffic is measured, and for which a grant counts as used."""


class RandomRate(Table):
    """A rate that is drawn from the seed: normally distributed, correlated in time."""

    mean: f.PositiveRate
    deviation: f.PositiveRate
    """Standard deviation; both are those of the rate before its bounds."""
    correlation: f.PositiveSpan
    """Time after which the rate is nearly independent of what it was."""
    step: f.PositiveSpan | None = None
    """How long a rate lasts: a 16th of the correlation, 1 ms at least."""
    min: f.PositiveRate | None = None
    """Lower bound: three deviations below the mean, but at least a tenth of it."""
    max: f.PositiveRate | None = None
    """Upper bound: three deviations above the mean."""


class FromFile(Table):
    """What was recorded of a link: a column of a file, from its start, again and again."""

    file: str
    """A file of delivery opportunities, a CSV table, or what iperf3, irtt or ping wrote, relative
    to the scenario's folder."""
    column: str | None = None
    """Name of the column; need not be said where only one fits."""
    where: dict[str, str] = Field(default_factory=dict)
    """Only rows of a table with these values: `{ transport_protocol = "UDP" }`."""
    from_: f.Span = Field(default=0, alias="from")
    """Where in the recording to begin …"""
    to: f.PositiveSpan | None = None
    """… and to end; its end if absent."""
    gaps: Literal["close", "hold", "stop"] | None = None
    """What becomes of spans of time without a sample: cut out, the value before them holds, or
    nothing is carried."""
    scale: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """Factor of all values: 0.5 takes half of a round trip for one way."""


class Slots(Table):
    """A path that is assigned anew at fixed times, with another rate and another delay."""

    every: f.PositiveSpan
    """From one assignment to the next. Links of a run are reconfigured together, first after a
    time that is drawn from the seed."""
    gap: f.Span = 0
    """How long nothing is carried then."""
    rate: f.RateQuantiles | None = None
    """Distribution of the rate: quantiles as for jitter; without it the link has a `rate`."""
    delay: f.SpanQuantiles | None = None
    """Distribution of what each assignment has beyond the link's `delay`."""
    place: f.SpanQuantiles | None = None
    """Distribution of what a run has beyond that, the same for all of its assignments: where the
    terminal stands, and where its packets come down."""
    step: f.PositiveSpan = 1_000_000_000
    """How long a rate lasts."""
    correlation: f.PositiveSpan = 10_000_000_000
    """Time after which the rate is nearly independent of what it was within an assignment."""
    lasting: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the rate's variance that a new assignment leaves as it was …"""
    lasting_for: f.PositiveSpan = 60_000_000_000
    """… and the time after which nearly nothing is left of it."""


class Frames(Table):
    """Packets that a link sends together, after a wait for the medium."""

    contention: f.Waits
    """How long the link waits before each frame: a time, or quantiles as for jitter."""
    packets: Annotated[int, Field(ge=1, le=1024)] = 64
    """Most packets of a frame."""
    bytes: f.PositiveSize = 65_535
    """Most bytes of a frame; it has one packet at least."""


class AckThinning(Table):
    """ACKs of a connection of which a newer one takes the place before they wait in the queue."""

    most: Annotated[int, Field(ge=1, le=1024)]
    """ACKs that one stands for, at most."""
    hold: f.PositiveSpan = 5_000_000
    """How long one waits for a newer one, at most 200 ms."""


class Handover(Table):
    """From one way to another: for a time nothing is sent, then at another rate and delay."""

    at: f.PositiveSpan
    """When the old way ends."""
    gap: f.Span = 0
    """How long nothing is sent; what comes meanwhile waits in the queue."""
    rate: f.PositiveRate | None = None
    """From the end of the gap on; as before if absent."""
    delay: f.Span | None = None
    """Of what is sent after the gap; as before if absent."""
    reorder: bool = False
    """Whether what comes by the new way may arrive before what still travels on the old one."""


class Link(Table):
    """One direction of a link: queue, then capacity, then delay, then loss."""

    profile: str | None = None
    """A named link that fills in every key that is not given beside it."""
    rate: (
        Annotated[
            Annotated[RandomRate, Tag("random")]
            | Annotated[FromFile, Tag("recorded")]
            | Annotated[f.Rates, Tag("steps")],
            Discriminator(f.rate_form),
        ]
        | None
    ) = None
    """`"144 Mbit/s"`, steps `[["0 s", "100 Mbit/s"], ["10 s", "20 Mbit/s"]]`, or random:
    `{ mean = "128 Mbit/s", deviation = "20 Mbit/s", correlation = "10 s" }`, or recorded:
    `{ file = "starlink.csv", column = "down" }`."""
    trace: str | None = None
    """A file of delivery opportunities in Mahimahi's format, relative to the scenario's folder."""
    queue: Annotated[Queue, BeforeValidator(f.named("kind"))] | None = None
    delay: Annotated[
        Annotated[FromFile, Tag("recorded")] | Annotated[f.Delays, Tag("steps")],
        Discriminator(f.delay_form),
    ] = ((0, 0),)
    """Propagation delay: `"20 ms"`, steps as for `rate`, or recorded:
    `{ file = "pings.txt", scale = 0.5 }`."""
    jitter: Annotated[Jitter | None, BeforeValidator(f.jitter_table)] = None
    """A table of quantiles, or a model: `{ model = "wifi", average = "7 ms" }`."""
    loss: Annotated[
        Annotated[
            Annotated[FromFile, Tag("recorded")] | Annotated[Part, Tag("kind")],
            Discriminator(f.loss_form),
        ]
        | None,
        BeforeValidator(f.loss_table),
    ] = None
    """`"0.1 %"`, or a table whose kind is `independent` or `gilbert_elliott`, or recorded:
    `{ file = "starlink.csv", column = "loss" }`."""
    outage: Annotated[Outage | None, BeforeValidator(f.absent)] = None
    slots: Annotated[Slots | None, BeforeValidator(f.absent)] = None
    """A path that is assigned anew at fixed times, as that of a terminal below satellites."""
    frames: Annotated[Frames | None, BeforeValidator(f.absent)] = None
    """Whether packets are sent together: `{ contention = "2 ms", packets = 64 }`."""
    ack_thinning: Annotated[AckThinning | None, BeforeValidator(f.absent)] = None
    """Whether ACKs are thinned out on the way in: `{ most = 8, hold = "5 ms" }`."""
    handovers: list[Handover] = Field(default_factory=list)
    """Times at which the link goes over to another way."""
    quick_start: Annotated[QuickStart | None, BeforeValidator(f.quick_start_table)] = None
    """`"45 Mbit/s"`, what its router may grant to Quick-Start requests beside the traffic, or a
    table; a link without it grants nothing."""


class NamedLink(Link):
    """A link that flows name in their `path`."""

    name: f.Name


class Edge(Table):
    """Two nodes that are joined: a link each way."""

    between: list[str]
    """Names of the nodes."""
    rate: f.PositiveRate | None = None
    delay: f.Span | None = None
    queue: Annotated[Queue, BeforeValidator(f.named("kind"))] | None = None


class Graph(Table):
    """A network of nodes and edges, over which flows take the shortest way by delay."""

    file: str | None = None
    """GML or GraphML, relative to the scenario's folder: labels and places of nodes, and edges with
    their rates (`LinkSpeedRaw`)."""
    edges: list[Edge] = Field(default_factory=list)
    """Edges beside those of the file, or other values of them."""
    rate: f.PositiveRate | None = None
    """Of edges without a rate of their own."""
    delay: f.Span | None = None
    """Of edges whose ends have no place."""
    queue: Annotated[Queue, BeforeValidator(f.named("kind"))] | None = None
    """Of all links whose edge has none of its own."""
    scale: Annotated[float, Field(gt=0, le=1e3)] = 1.0
    """Factor of the file's rates: a network of 10 Gbit/s at a hundredth of its rates needs a
    hundredth of the packets."""
    detour: Annotated[float, Field(ge=1, le=10)] = 1.0
    """How much longer cables are than the way as the crow flies."""


class Capture(Table):
    """Packets that are written to files, and what else is."""

    qlog: bool = False
    """Write down, too, what the ends of QUIC flows do."""


class Pep(Table):
    """A proxy that ends a flow's connection and opens the next one (RFC 3135, section 2.4)."""

    at: f.Name | None = None
    """Link of the flow's `path` at whose entrance it stands; the slowest of them if absent."""
    back: f.Name | None = None
    """Link of `reverse_path` at whose entrance it stands: the one that mirrors `at` if absent."""
    controller: Annotated[Algorithm, BeforeValidator(f.named("name"))]
    """Of the connection that it opens."""
    slow_start: Annotated[Algorithm, BeforeValidator(f.named("name"))] | None = None
    buffer: f.PositiveAmount
    """Most that it has read and the next receiver has not acknowledged; `"4 MB"`, or in BDPs of the
    flow's whole way."""
    receive_window: f.PositiveAmount | None = None
    """What it offers on the connection before it, as much as `buffer` if absent: there lies what it
    does not read for want of room."""
    rtt: f.PositiveSpan | None = None
    """Round trip of the connection before it, which is a part of the flow's; that of its links if
    absent, 1 ms where they have none."""
    initial_window: f.Packets | None = None
    """Of the connection that it opens; the flow's if absent."""
    pacing: Literal["fq", "none"] | None = None
    """Of the connection that it opens; the flow's if absent."""


class Flow(Table):
    """A sender, a receiver, and the way between them."""

    name: f.Name
    controller: Annotated[Algorithm, BeforeValidator(f.named("name"))]
    """`"none"` for datagrams, which no controller governs."""
    slow_start: Annotated[Algorithm, BeforeValidator(f.named("name"))] | None = None
    memory: Annotated[Algorithm | None, BeforeValidator(f.memory_table)] = None
    """What the sending host makes of earlier connections to the peer; `"none"` for nothing."""
    pep: Annotated[list[Pep], BeforeValidator(f.pep_tables)] = Field(default_factory=list)
    """A proxy that splits the connection in two, or several in their order; `"none"` for none."""
    peer: f.Address | None = None
    """IPv4 address by which the host remembers the receiver; every entry of `flows` has its own
    unless it says so."""
    sender_host: f.Name | None = None
    """Host where its sender is, for queues that share between hosts: those of one name are one; a
    flow, of `count` each, has one of its own if absent."""
    receiver_host: f.Name | None = None
    """Host where its receiver is."""
    rtt: f.PositiveSpan | None = None
    """Round trip of the quiet path in all: links, their median jitter, and the rest of the way."""
    start: f.Span = 0
    start_jitter: f.Span = 0
    """The flow starts at a time drawn uniformly from `start` … `start + start_jitter`."""
    after: f.Name | None = None
    """Name of a flow: this one opens `start` after that one is complete."""
    stop: f.PositiveSpan | None = None
    bytes: f.Sizes | None = None
    """Short for `source = { kind = "fixed", bytes = … }`."""
    count: Annotated[int, Field(ge=0, le=10_000)] = 1
    """So many flows like this one, named `name-1`, `name-2`, …; 0 for a condition without it."""
    sequence: f.Span | None = None
    """The flows of `count` open one after the other, each so long after the one before it is
    complete."""
    transport: Transport | None = None
    """`"quic"`, or a table with its keys; `"udp"` for pings and constant rates and `"tcp"` for
    everything else need not be said."""
    source: Source | None = None
    arrivals: Arrivals | None = None
    """The flow is many connections: when they come. Each transfers what the source says."""
    from_: str | None = Field(default=None, alias="from")
    """Node of the graph where its sender is."""
    to: str | None = None
    """Node of the graph where its receiver is."""
    path: list[str] | None = None
    """Names of the links from sender to receiver."""
    reverse_path: list[str] = Field(default_factory=list)
    """Names of the links from receiver to sender."""
    direction: Literal["down", "up"] = "down"
    """Which way the data go: by `downlink` or by `uplink`; `"up"` with a path is that path the
    other way round."""
    class_: f.Name | None = Field(default=None, alias="class")
    """Class that it is of where a queue has classes; the one called as the flow if absent, or
    `default`."""
    pacing: Literal["fq", "none"] = "none"
    ecn: bool | None = None
    """Whether both ends know ECN: as the controller needs it if absent."""
    mtu: f.Mtu = 1500
    """Largest IP packet of either end; 52 bytes of it are headers, and 14 more are on the wire."""
    initial_window: f.Packets = 10
    initial_pacing: bool = False
    """Spread the initial window over the round trip of the handshake instead of sending it at
    once."""
    linux: Literal["6.1", "4.15"] | None = None
    """Linux whose TCP the hosts have, 6.1 if absent; also of a controller that knows others."""
    receive_window: f.PositiveAmount | None = None
    initial_receive_window: f.PositiveAmount | None = None
    """What the receiver offers before any data have arrived: 65,535 bytes, which a SYN-ACK can say,
    or `receive_window` if that is less."""
    receive_window_autotuning: bool = False
    """Whether the window's limit grows from `initial_receive_window` with what is read in a round
    trip, as Linux tunes receive buffers, or is `receive_window` from the beginning."""
    receiver: Receiver = None
    """What the receiver does otherwise than Linux's; `"none"` for nothing."""
    gro: bool = False
    """Whether the receiver's card puts segments together that arrive at the same moment."""
    nic_rate: f.PositiveRate | None = None


LINK_TABLES: Final = ("bottleneck", "downlink", "uplink")
"""Links that are tables of a scenario by their names, and not in `links`."""


class ScenarioFile(Table):
    """A scenario as a person writes it."""

    format: Literal["jostle.scenario/1"] = "jostle.scenario/1"
    """Which format the file is in."""
    title: Annotated[str, Field(max_length=1000)] = ""
    duration: f.PositiveSpan
    repeats: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Runs of each condition; their seeds are `seed`, `seed + 1`, …"""
    until: f.Until | None = None
    """More runs of each condition until an interval is narrow enough: `"goodput ± 2 %"`, `"rtt of
    web in steady ± 1 ms"`."""
    most_repeats: Annotated[int, Field(ge=5, le=1_000_000)] = 50
    """Runs of a condition after which `until` is given up."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 1
    interval: f.PositiveSpan | None = None
    """Bin of the time series: 1 s, or a tenth of the duration if that is shorter."""
    trace: Literal["none", "acks"] = "none"
    """`"acks"` also records every ACK."""
    capture: Annotated[Capture | None, BeforeValidator(f.capture_table)] = None
    """Write the headers of all packets to files, one for each end of each flow."""
    phases: dict[f.Name, f.Phase] = Field(default_factory=dict)
    """Windows of time for every statistic: `steady = ["60 s", "120 s"]`."""
    bottleneck: Link | None = None
    """The one link that every flow crosses."""
    downlink: Link | None = None
    """Together with `uplink`, instead of `bottleneck`: data go by one of them, by the flow's
    `direction`, and ACKs by the other."""
    uplink: Link | None = None
    links: list[NamedLink] = Field(default_factory=list)
    """Links by name, instead of `bottleneck`; each flow names those on its `path`."""
    graph: Graph | None = None
    """A network of nodes and edges, instead of links; flows say `from` and `to`."""
    flows: Annotated[list[Flow], Field(min_length=1)]
    grid: dict[str, Any] = Field(default_factory=dict)
    """Keys that vary, with the values of each: every combination is one condition."""
    sample: dict[str, Any] = Field(default_factory=dict)
    """Keys that are drawn from ranges, and `points`, `method`, `seed`, `where`: how many are drawn,
    by which design, and what has to hold of them."""
