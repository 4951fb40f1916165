"""What applications write: the sources of flows, and when connections come."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from jostle.scenario import fields as f
from jostle.scenario.table import Table

__all__ = [
    "Arrivals",
    "Bulk",
    "ByBuffer",
    "ByThroughput",
    "Cbr",
    "Fixed",
    "Media",
    "OnOff",
    "Ping",
    "RequestResponse",
    "Sessions",
    "Source",
    "Trace",
    "Video",
    "Web",
]


class Bulk(Table):
    """Always something to send."""

    kind: Literal["bulk"]


class Fixed(Table):
    """A given amount, then the connection ends."""

    kind: Literal["fixed"]
    bytes: f.Sizes
    """A size, or its distribution: `{ distribution = "lognormal", mean = "20 kB", sigma = 1 }`."""


class OnOff(Table):
    """Bulk while on, silent while off."""

    kind: Literal["on_off"]
    on: f.PositiveSpans
    """A time, or how it is distributed, as sizes are."""
    off: f.PositiveSpans
    exponential: bool = False
    """Draw both lengths from exponential distributions with these means."""


class RequestResponse(Table):
    """Responses of a given size, each a think time after the last was acknowledged."""

    kind: Literal["request_response"]
    bytes: f.Sizes
    think: f.Spans
    exponential: bool = False
    """Draw think times from an exponential distribution with this mean."""
    count: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    """Responses after which the connection ends; without it there is no end."""


class Sessions(Table):
    """Sessions that come as a Poisson process, each a connection with some responses."""

    kind: Literal["sessions"]
    bytes: f.Sizes
    """Size of a response."""
    think: f.Spans
    """From the end of one to the request of the next."""
    count: f.Counts
    """Responses of a session: a number, or how it is distributed."""
    rate: f.PerSecond | None = None
    """Sessions per second, `"5 /s"`."""
    load: f.Load | None = None
    """In place of `rate`: what they offer a link as a share of its rate, `"85 %"`."""
    of: f.Name | None = None
    """The link of `load`, if the flow's path has several."""


class Arrivals(Table):
    """When the connections of a flow come, if it is many: one of `rate`, `load` and `file`."""

    rate: f.PerSecond | None = None
    """A Poisson process of so many per second: `"5 /s"`."""
    load: f.Load | None = None
    """A Poisson process that offers a link a share of its rate: `"60 %"`."""
    of: f.Name | None = None
    """The link of `load`, if the flow's path has several."""
    file: str | None = None
    """As a file lists them: a line per connection, seconds from the flow's start and, if the file
    says sizes, bytes."""


class Ping(Table):
    """A datagram at fixed times, each of which the receiver sends back as it came."""

    kind: Literal["ping"]
    bytes: f.PositiveSize
    """Payload; headers of UDP and IP come on top."""
    every: f.PositiveSpan
    timeout: f.PositiveSpan = 10_000_000_000
    """A ping that is not back by then is lost: 10 s, as `ping` of iputils waits."""


class ByBuffer(Table):
    """A player that chooses by what is in its buffer: BBA-0 (Huang et al., SIGCOMM 2014)."""

    kind: Literal["buffer"]
    reservoir: f.Span | None = None
    """The lowest bitrate, up to here: 3/8 of the buffer if absent, 90 s of 240 s."""
    cushion: f.PositiveSpan | None = None
    """From there on the bitrate grows, until so much later the highest is reached: 21/40 of the
    buffer if absent, 126 s of 240 s."""


class ByThroughput(Table):
    """A player that chooses by the throughput of the last segments (Jiang et al., CoNEXT 2012)."""

    kind: Literal["throughput"]
    samples: Annotated[int, Field(ge=1, le=1000)] = 20
    """Segments whose harmonic mean it takes."""
    safety: f.Probability = 0.85
    """The share of that mean which a bitrate may need."""


class Video(Table):
    """Adaptive streaming: segments of a video, as a player asks for them."""

    kind: Literal["video"]
    ladder: Annotated[list[f.PositiveRate], Field(min_length=1, max_length=100)] | None = None
    """Bitrates, rising; if absent those of Netflix until 2015, from 235 to 5800 kbit/s."""
    segment: f.PositiveSpan = 4_000_000_000
    length: f.PositiveSpan | None = None
    """Playing time, in whole segments; without it there is no end."""
    variation: f.Probability = 0.0
    """By which share of its mean size a segment may be larger or smaller."""
    choice: Annotated[
        Annotated[ByBuffer | ByThroughput, Field(discriminator="kind")],
        BeforeValidator(f.named("kind")),
    ] = ByBuffer(kind="buffer")
    startup: f.PositiveSpan | None = None
    """The player begins with so much in its buffer, and again after that ran empty: with one
    segment if absent."""
    buffer: f.PositiveSpan = 240_000_000_000
    """What the player keeps at most."""


class Web(Table):
    """Pages, as a browser asks for them: by default those of IEEE 802.16m's model."""

    kind: Literal["web"]
    main: f.Sizes | None = None
    """Size of a page's main object: a size, or its distribution."""
    objects: f.CountsOrNone | None = None
    """How many objects the main one refers to."""
    object: f.Sizes | None = None
    """Size of each of them."""
    request: f.PositiveSize = 350
    """Size of a request."""
    parse: f.Spans | None = None
    """From the moment at which the main object is there to the requests for the others."""
    think: f.Spans | None = None
    """From the moment at which a page is there to the request for the next."""
    connections: Annotated[int, Field(ge=1, le=256)] | None = None
    """Connections that load a page beside each other: 6 if absent, 1 if multiplexed."""
    multiplexed: bool = False
    """Ask for all objects at once over a single connection, as in HTTP/2."""
    pages: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    """Pages after which there is no other; without it there always is."""


class Cbr(Table):
    """Datagrams at a rate, which nobody answers."""

    kind: Literal["cbr"]
    rate: f.Rates | None = None
    """Of the payload: `"64 kbit/s"`, or steps as a link's rate has, in the time of the run."""
    bytes: f.PositiveSize | None = None
    """Payload of a datagram; headers of UDP and IP come on top."""
    codec: Literal["g711", "g711-no-plc", "g729", "g723.1", "gsm-efr"] | None = None
    """Speech, with the rate and the size of this codec's packets, instead of `rate` and `bytes`."""
    playout: f.PlayoutBuffer | None = None
    """When speech is played: `"best"` (with the best R), `"99 %"` (when so many have come), or
    `"60 ms"` after the packet that took least."""


class Media(Table):
    """Frames at a constant rate, some of them key frames, each with a deadline."""

    kind: Literal["media"]
    fps: Annotated[float, Field(ge=0.001, le=10_000)]
    """Frames in a second."""
    key: f.PositiveSize
    """Size of a key frame."""
    delta: f.PositiveSize | None = None
    """Size of every other frame: as a key frame's if absent."""
    key_every: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    """Frames from one key frame to the next: those of a second if absent."""
    deadline: f.PositiveSpan
    """A frame that is whole later than this after it was written is late."""


class Trace(Table):
    """What a file says, at the times that it says; then the connection ends."""

    kind: Literal["trace"]
    file: str
    """A table of times in seconds and of bytes, relative to the scenario's folder."""
    deadline: f.PositiveSpan | None = None
    """What is whole later than this after it was written is late."""


Source = Annotated[
    Annotated[
        Bulk
        | Fixed
        | OnOff
        | RequestResponse
        | Sessions
        | Ping
        | Cbr
        | Media
        | Trace
        | Video
        | Web,
        Field(discriminator="kind"),
    ],
    BeforeValidator(f.named("kind")),
]
