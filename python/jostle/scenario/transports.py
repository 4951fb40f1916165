"""What carries a flow's data: the keys of `transport`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from jostle.scenario import fields as f
from jostle.scenario.table import Table

__all__ = ["AckFrequency", "Implementation", "Quic", "Tcp", "Transport", "Udp"]


class Tcp(Table):
    """TCP: the default of everything but pings and constant rates."""

    kind: Literal["tcp"]


class Udp(Table):
    """Datagrams without congestion control: those of pings and of constant rates."""

    kind: Literal["udp"]


class AckFrequency(Table):
    """What the sender of data asks of the receiver's ACKs (draft-ietf-quic-ack-frequency)."""

    ack_eliciting_threshold: Annotated[int, Field(ge=0)] = 1
    """An ACK leaves when more packets than this have come since the last one."""
    max_ack_delay: f.PositiveSpan | None = None
    """… or when the first of them has waited so long: the receiver's own 25 ms if absent."""
    reordering_threshold: Annotated[int, Field(ge=0)] = 2
    """… or when a packet comes so far out of order; 0: that is no reason."""


class Implementation(Table):
    """A QUIC of other people: the name of a recipe, or programs of one's own."""

    name: f.Name
    server: list[str] | None = None
    """Program and arguments of the end that waits for the connection."""
    client: list[str] | None = None
    """Program and arguments of the end that opens it."""
    qlog: bool = True
    """Whether the server of a recipe writes a log."""


class Quic(Table):
    """QUIC (RFC 9000)."""

    kind: Literal["quic"]
    implementation: Annotated[Implementation | None, BeforeValidator(f.implementation_table)] = None
    """Whose QUIC both ends speak: "noq", which is built in, if absent."""
    initial_mtu: f.PositiveSize = 1200
    """Largest UDP payload until a larger one is known to arrive."""
    mtu_discovery: bool = True
    """Whether larger packets are probed for, up to what the flow's `mtu` can carry."""
    ack_frequency: Annotated[AckFrequency | None, BeforeValidator(f.ack_frequency_table)] = None
    """When the receiver acknowledges: "none" for RFC 9000's every second packet, a number for the
    packets that may come without an ACK, or a table."""
    recovery: Literal["rfc9002", "prr"] = "rfc9002"
    """Whether a window-based controller's window comes down at once, or packet by packet as TCP's
    does."""
    gso: Annotated[int, Field(ge=1, le=64)] = 10
    """Packets that the sender gives its host at once, at most."""
    pacing: bool = True
    """Whether a window-based controller's packets are paced."""
    streams: Annotated[int, Field(ge=1, le=100)] = 1
    """Streams over which data are spread; each response has one of its own."""
    stream_receive_window: f.PositiveAmount | None = None
    """Window of each stream, that of the connection if absent: the flow's `receive_window`."""
    handshake: Literal["1rtt", "0rtt"] = "1rtt"
    """Whether the first data wait for the receiver's answer."""
    crypto: Literal["none", "tls"] = "none"
    """What protects the packets; it changes no size."""


Transport = Annotated[
    Annotated[Tcp | Udp | Quic, Field(discriminator="kind")], BeforeValidator(f.named("kind"))
]
