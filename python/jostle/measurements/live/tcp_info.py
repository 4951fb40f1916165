"""The kernel's `struct tcp_info` (linux/tcp.h), in the format of ss.

A log of samples has the format of repeated `date +%s.%N; ss -tin`, so that no information is lost
and one parser reads both.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["BYTES", "Sample", "decoded", "line", "text_of"]

BYTES: Final = 512
"""Buffer size for the structure; present kernels fill about 250 bytes, older ones fewer."""

# Types in the order of linux/tcp.h. All fields are aligned, so there is no padding.
_LAYOUT: Final = (
    ("B", "state ca_state retransmits probes backoff options wscale app_limited"),
    ("I", "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets"),
    ("I", "last_data_sent last_ack_sent last_data_recv last_ack_recv"),
    ("I", "pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss reordering"),
    ("I", "rcv_rtt rcv_space total_retrans"),
    ("Q", "pacing_rate max_pacing_rate bytes_acked bytes_received"),
    ("I", "segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out"),
    ("Q", "delivery_rate busy_time rwnd_limited sndbuf_limited"),
    ("I", "delivered delivered_ce"),
    ("Q", "bytes_sent bytes_retrans"),
    ("I", "dsack_dups reord_seen rcv_ooopack snd_wnd"),
)
_FIELDS: Final = tuple(
    (f"={kind}", name) for kind, names in _LAYOUT for name in names.split()
)  # fmt: skip
_INFINITE: Final = 0x7FFFFFFF
"""TCP_INFINITE_SSTHRESH: ssthresh has not been set."""
_NO_RATE: Final = 2**64 - 1
"""Value of a pacing rate without limit, which is omitted."""


@dataclass(frozen=True)
class Sample:
    """TCP_INFO of a connection at a time.

    Attributes
    ----------
    at_s
        Seconds since 1970.
    local, peer
        Both ends in the format of ss: `192.0.2.1:443`, `[2001:db8::1]:443`.
    controller
        Controller of this host.
    info
        Result of `decoded`.
    """

    at_s: float
    local: str
    peer: str
    controller: str
    info: Mapping[str, int]

    @property
    def moved_bytes(self) -> int:
        """Payload in both directions so far."""
        return self.info.get("bytes_acked", 0) + self.info.get("bytes_received", 0)


def decoded(content: bytes) -> dict[str, int]:
    """Decode a `struct tcp_info`: times in microseconds, rates in bytes per second.

    Fields that this kernel does not have are absent.
    """
    found: dict[str, int] = {}
    at = 0
    for kind, name in _FIELDS:
        size = struct.calcsize(kind)
        if at + size > len(content):
            break
        (found[name],) = struct.unpack_from(kind, content, at)
        at += size
    return found


def line(info: Mapping[str, int], controller: str) -> str:
    """Return the second line that `ss -tin` prints for a connection; its times are in ms."""
    words = [controller]
    words.append(f"rtt:{_ms(info['rtt'])}/{_ms(info['rttvar'])}")
    # The receiver's own estimate, from time stamps that the peer echoes.
    if info.get("rcv_rtt"):
        words.append(f"rcv_rtt:{_ms(info['rcv_rtt'])}")
    words += [f"mss:{info['snd_mss']}", f"rcvmss:{info['rcv_mss']}", f"pmtu:{info['pmtu']}"]
    words.append(f"cwnd:{info['snd_cwnd']}")
    if info["snd_ssthresh"] < _INFINITE:
        words.append(f"ssthresh:{info['snd_ssthresh']}")
    for name in (
        "bytes_sent", "bytes_retrans", "bytes_acked", "bytes_received", "segs_out", "segs_in",
        "data_segs_out", "data_segs_in", "delivered",
    ):  # fmt: skip
        if info.get(name):
            words.append(f"{name}:{info[name]}")
    if 0 < info.get("pacing_rate", 0) < _NO_RATE:
        words.append(f"pacing_rate {info['pacing_rate'] * 8}bps")
    if info.get("delivery_rate"):
        words.append(f"delivery_rate {info['delivery_rate'] * 8}bps")
    # The lowest bit; the bits above it belong to TCP Fast Open.
    if info["app_limited"] & 1:
        words.append("app_limited")
    words += [f"{name}:{info[name]}" for name in ("unacked", "sacked", "lost") if info[name]]
    if info["retrans"] or info["total_retrans"]:
        words.append(f"retrans:{info['retrans']}/{info['total_retrans']}")
    if info.get("notsent_bytes"):
        words.append(f"notsent:{info['notsent_bytes']}")
    # Before the first RTT sample all bits are set.
    if 0 < info.get("min_rtt", 0) < 2**32 - 1:
        words.append(f"minrtt:{_ms(info['min_rtt'])}")
    if "snd_wnd" in info:
        words.append(f"snd_wnd:{info['snd_wnd']}")
    return "\t " + " ".join(words)


def text_of(sample: Sample) -> str:
    """Return the three lines of a sample: time, connection, TCP_INFO."""
    told = line(sample.info, sample.controller)
    waiting = sample.info["unacked"]
    return f"{sample.at_s:.6f}\nESTAB 0 {waiting} {sample.local} {sample.peer}\n{told}\n"


def _ms(us: int) -> str:
    return f"{us / 1e3:g}" if us < 1_000_000 else f"{us / 1e3:.3f}"
