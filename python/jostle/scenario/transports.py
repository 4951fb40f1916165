"""Transport protocols: the keys of `transport`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from jostle.scenario import fields
from jostle.scenario.base_model import ScenarioTable

__all__ = ["AckFrequency", "Implementation", "Quic", "Tcp", "Transport", "Udp"]


class Tcp(ScenarioTable):
    """TCP, the default of all flows except pings and constant rates."""

    kind: Literal["tcp"]
    prr: Literal["linux", "rfc9937"] = "linux"
    """Data from which Proportional Rate Reduction is proportional: cwnd (`linux`), or what is
    outstanding and not selectively acknowledged (`rfc9937`)."""
    accecn_option: bool = True
    """Whether ACKs with AccECN feedback carry its option, besides the three bits of the header."""


class Udp(ScenarioTable):
    """UDP datagrams without congestion control, for pings and constant rates."""

    kind: Literal["udp"]


class AckFrequency(ScenarioTable):
    """ACK frequency that the sender requests of the receiver (draft-ietf-quic-ack-frequency)."""

    ack_eliciting_threshold: Annotated[int, Field(ge=0)] = 1
    """Number of ack-eliciting packets that may arrive without an ACK; the next one triggers it."""
    max_ack_delay: fields.PositiveSpan | None = None
    """Maximum delay of an ACK; by default the receiver's 25 ms."""
    reordering_threshold: Annotated[int, Field(ge=0)] = 2
    """Reordering, in packets, that triggers an immediate ACK; 0 disables this trigger."""


class Implementation(ScenarioTable):
    """An external QUIC implementation: the name of a recipe, or your own programs."""

    name: fields.Name
    server: list[str] | None = None
    """Program and arguments of the server, which accepts the connection."""
    client: list[str] | None = None
    """Program and arguments of the client, which opens the connection."""
    qlog: bool = True
    """Whether the server of a recipe writes a qlog."""


class Quic(ScenarioTable):
    """QUIC (RFC 9000)."""

    kind: Literal["quic"]
    implementation: Annotated[
        Implementation | None, BeforeValidator(fields.implementation_table)
    ] = None
    """QUIC implementation of both ends; by default the built-in "noq"."""
    initial_mtu: fields.PositiveSize = 1200
    """UDP payload size until path MTU discovery has confirmed a larger one."""
    mtu_discovery: bool = True
    """Whether larger packets are probed, up to the flow's `mtu`."""
    ack_frequency: Annotated[AckFrequency | None, BeforeValidator(fields.ack_frequency_table)] = (
        None
    )
    """When the receiver sends ACKs: "none" for every second packet (RFC 9000), a number of packets
    that may arrive without an ACK, or a table."""
    packet_threshold: Annotated[int, Field(ge=3, le=1 << 20)] = 3
    """Number of later packets whose ACK declares an earlier packet lost (RFC 9002 §6.1.1);
    more tolerates more reordering."""
    recovery: Literal["rfc9002", "prr"] = "rfc9002"
    """Whether a window-based controller reduces cwnd at once (`rfc9002`) or gradually during
    recovery, as TCP does (`prr`)."""
    gso: Annotated[int, Field(ge=1, le=64)] = 10
    """Maximum number of packets that the sender passes to its host at once (GSO)."""
    pacing: bool = True
    """Whether packets of window-based controllers are paced."""
    burst_limit: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    """Maximum number of packets sent at once if `pacing = false`; by default the initial window."""
    streams: Annotated[int, Field(ge=1, le=100)] = 1
    """Number of streams that carry the data; each response uses one stream."""
    stream_receive_window: fields.PositiveAmount | None = None
    """Receive window of each stream; by default the connection's `receive_window`."""
    handshake: Literal["1rtt", "0rtt"] = "1rtt"
    """Whether the first data wait for the server's response (1-RTT) or not (0-RTT)."""
    crypto: Literal["none", "tls"] = "none"
    """Packet protection; packet sizes do not depend on it."""


Transport = Annotated[
    Annotated[Tcp | Udp | Quic, Field(discriminator="kind")], BeforeValidator(fields.named("kind"))
]
