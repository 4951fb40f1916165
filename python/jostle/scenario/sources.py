"""Traffic sources of flows, and arrival processes of connections."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from jostle.scenario import fields
from jostle.scenario.base_model import ScenarioTable
from jostle.scenario.registry_choices import Queue

__all__ = [
    "Arrivals",
    "BufferBasedAbr",
    "Bulk",
    "Cbr",
    "FixedSize",
    "Media",
    "OnOff",
    "Ping",
    "RequestResponse",
    "RequestSessions",
    "Source",
    "ThroughputBasedAbr",
    "Trace",
    "Tunnel",
    "Video",
    "Web",
]


class Bulk(ScenarioTable):
    """A source that always has data to send."""

    kind: Literal["bulk"]


class FixedSize(ScenarioTable):
    """A transfer of a given size, after which the connection ends."""

    kind: Literal["fixed"]
    size: fields.Sizes
    """A size or a distribution: `{ distribution = "lognormal", mean = "20 kB", sigma = 1 }`."""


class OnOff(ScenarioTable):
    """A source that alternates between sending without limit and silence."""

    kind: Literal["on_off"]
    on: fields.PositiveSpans
    """Length of a sending period: a time or a distribution."""
    off: fields.PositiveSpans
    exponential: bool = False
    """Draw both lengths from exponential distributions with these means."""


class RequestResponse(ScenarioTable):
    """Responses of a given size. Each follows the ACK of the previous one after a think time."""

    kind: Literal["request_response"]
    size: fields.Sizes
    think_time: fields.Spans
    exponential: bool = False
    """Draw think times from an exponential distribution with this mean."""
    count: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    """Number of responses after which the connection ends; unlimited if absent."""


class RequestSessions(ScenarioTable):
    """Sessions that arrive as a Poisson process. Each is a connection with several responses."""

    kind: Literal["sessions"]
    size: fields.Sizes
    """Size of a response."""
    think_time: fields.Spans
    """Time from the end of a response to the next request."""
    count: fields.Counts
    """Responses per session: a number or a distribution."""
    rate: fields.PerSecond | None = None
    """Sessions per second: `"5 /s"`."""
    load: fields.Load | None = None
    """Offered load as a share of a link's rate, instead of `rate`: `"85 %"`."""
    load_link: fields.Name | None = None
    """Link of `load`; required if the flow's path has several links."""


class Arrivals(ScenarioTable):
    """Arrival process of a flow's connections: one of `rate`, `load` and `file`."""

    rate: fields.PerSecond | None = None
    """Connections per second of a Poisson process: `"5 /s"`."""
    load: fields.Load | None = None
    """Offered load of a Poisson process as a share of a link's rate: `"60 %"`."""
    load_link: fields.Name | None = None
    """Link of `load`; required if the flow's path has several links."""
    file: str | None = None
    """File with one line per connection: seconds from the flow's start and, if the file contains
    sizes, bytes."""


class Ping(ScenarioTable):
    """Datagrams sent at fixed times. The receiver echoes each of them."""

    kind: Literal["ping"]
    size: fields.PositiveSize
    """Payload of a datagram, without UDP and IP headers."""
    period: fields.PositiveSpan
    timeout: fields.PositiveSpan = 10_000_000_000
    """Time after which an unanswered ping counts as lost."""


class BufferBasedAbr(ScenarioTable):
    """Adaptive bitrate by buffer level: BBA-0 (Huang et al., SIGCOMM 2014)."""

    kind: Literal["buffer"]
    reservoir: fields.Span | None = None
    """Buffer level up to which the lowest bitrate is used; by default 3/8 of `buffer`."""
    cushion: fields.PositiveSpan | None = None
    """Range of buffer levels above the reservoir over which the bitrate rises to the highest; by
    default 21/40 of `buffer`."""


class ThroughputBasedAbr(ScenarioTable):
    """Adaptive bitrate by the throughput of the last segments (Jiang et al., CoNEXT 2012)."""

    kind: Literal["throughput"]
    samples: Annotated[int, Field(ge=1, le=1000)] = 20
    """Number of segments whose harmonic mean throughput is used."""
    safety: fields.Probability = 0.85
    """Largest share of that mean that the chosen bitrate may use."""


class Video(ScenarioTable):
    """Adaptive video streaming: a player requests segments."""

    kind: Literal["video"]
    bitrates: Annotated[list[fields.PositiveRate], Field(min_length=1, max_length=100)] | None = (
        None
    )
    """Bitrates in rising order; by default Netflix's until 2015, 235 to 5800 kbit/s."""
    segment: fields.PositiveSpan = 4_000_000_000
    length: fields.PositiveSpan | None = None
    """Playing time, a multiple of the segment length; unlimited if absent."""
    variation: fields.Probability = 0.0
    """Maximum deviation of a segment's size from its mean, as a share."""
    abr: Annotated[
        Annotated[BufferBasedAbr | ThroughputBasedAbr, Field(discriminator="kind")],
        BeforeValidator(fields.named("kind")),
    ] = BufferBasedAbr(kind="buffer")
    startup_buffer: fields.PositiveSpan | None = None
    """Buffer level at which the player starts, and restarts after a stall; by default one
    segment."""
    buffer: fields.PositiveSpan = 240_000_000_000
    """Maximum buffer level of the player."""


class Web(ScenarioTable):
    """Web pages loaded by a browser; the default model is IEEE 802.16m."""

    kind: Literal["web"]
    main_object: fields.Sizes | None = None
    """Size of a page's main object: a size or a distribution."""
    object_count: fields.CountsOrNone | None = None
    """Number of embedded objects of a page."""
    object_size: fields.Sizes | None = None
    """Size of an embedded object."""
    request_size: fields.PositiveSize = 350
    """Size of a request."""
    parse_time: fields.Spans | None = None
    """Time from the end of the main object to the requests for the embedded objects."""
    think_time: fields.Spans | None = None
    """Time from the end of a page to the request for the next."""
    connections: Annotated[int, Field(ge=1, le=256)] | None = None
    """Number of parallel connections per page; by default 6, or 1 if `multiplexed`."""
    multiplexed: bool = False
    """Request all objects at once over a single connection, as in HTTP/2."""
    pages: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    """Number of pages to load; unlimited if absent."""


class Cbr(ScenarioTable):
    """Datagrams at a given rate, without feedback."""

    kind: Literal["cbr"]
    rate: fields.Rates | None = None
    """Rate of the payload: `"64 kbit/s"`, or steps in run time as for a link's rate."""
    size: fields.PositiveSize | None = None
    """Payload of a datagram, without UDP and IP headers."""
    codec: Literal["g711", "g711-no-plc", "g729", "g723.1", "gsm-efr"] | None = None
    """Voice codec that sets the rate and the packet size, instead of `rate` and `size`."""
    playout_delay: fields.PlayoutBuffer | None = None
    """Playout delay: `"best"` (highest R factor), `"99 %"` (late enough for that share of packets),
    or `"60 ms"` after the packet with the lowest delay."""


class Media(ScenarioTable):
    """Frames at a constant rate, some of them key frames, with a deadline."""

    kind: Literal["media"]
    fps: Annotated[float, Field(ge=0.001, le=10_000)]
    """Frames per second."""
    key_frame_size: fields.PositiveSize
    """Size of a key frame."""
    delta_frame_size: fields.PositiveSize | None = None
    """Size of the other frames; by default the size of a key frame."""
    key_frame_interval: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    """Distance of key frames in frames; by default one key frame per second."""
    deadline: fields.PositiveSpan
    """Time after the write by which a frame must be complete; else it is late."""


class Trace(ScenarioTable):
    """Messages with times and sizes from a file, after which the connection ends."""

    kind: Literal["trace"]
    file: str
    """Table of times in seconds and sizes in bytes, relative to the scenario's folder."""
    deadline: fields.PositiveSpan | None = None
    """Time after the write by which a message must be complete; else it is late."""


class Tunnel(ScenarioTable):
    """Packets of the flows that name this flow in `tunnel`, as the data of two connections."""

    kind: Literal["tunnel"]
    queue: Annotated[Queue, BeforeValidator(fields.named("kind"))] | None = None
    """Queue at both entrances, where packets wait for the connection; by default `drop_tail` with
    500 packets, as in a TUN device of Linux."""
    send_buffer: fields.PositiveAmount | None = None
    """Unacknowledged data of TCP from which on packets wait in the queue; by default 2 BDP, at
    least 65,536 bytes."""
    header: fields.PositiveSize | None = None
    """Bytes added to every inner IP packet, without headers of the transport; by default 26 over
    TCP (OpenVPN), 2 over QUIC (RFC 9484), 32 over UDP (WireGuard)."""


Source = Annotated[
    Annotated[
        Bulk
        | FixedSize
        | OnOff
        | RequestResponse
        | RequestSessions
        | Ping
        | Cbr
        | Media
        | Trace
        | Tunnel
        | Video
        | Web,
        Field(discriminator="kind"),
    ],
    BeforeValidator(fields.named("kind")),
]
