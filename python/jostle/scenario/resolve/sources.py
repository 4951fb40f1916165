"""Traffic sources: converts a flow's source to the form of the run specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jostle.run_spec import (
    Algorithm,
    CbrSource,
    PlayoutSpec,
    Quantity,
    SourceSpec,
    VoiceSpec,
    WriteSpec,
)
from jostle.scenario.distributions import DistributionKeyError, RandomQuantity, quantity_spec
from jostle.scenario.models import Flow
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.resolve.video import video_spec
from jostle.scenario.resolve.voice_codecs import CODECS
from jostle.scenario.resolve.web import web_spec
from jostle.scenario.resolve.write_traces import read_writes
from jostle.scenario.sources import (
    Bulk,
    Cbr,
    FixedSize,
    Media,
    OnOff,
    Ping,
    RequestResponse,
    RequestSessions,
    Trace,
    Tunnel,
    Video,
    Web,
)

__all__ = [
    "BACK",
    "DATAGRAM_HEADER_BYTES",
    "NO_CONTROLLER",
    "datagrams",
    "no_controller",
    "owner",
    "source_spec",
]

BACK: Final = "-back"
"""Suffix of the name of a tunnel's second connection."""

NO_CONTROLLER: Final = "none"
"""Value of `controller` in a scenario for flows of datagrams."""

DATAGRAM_HEADER_BYTES: Final = 20 + 8
"""IPv4 and UDP headers, which count towards the MTU."""

_LEAST_GAP_NS: Final = 1_000
"""Minimum time between two datagrams."""


def source_spec(flow: Flow, path: KeyPath, folder: Path, report: Report) -> SourceSpec:
    """Return the source of a flow; bulk by default.

    Parameters
    ----------
    flow, path
        Flow, and its key path in the scenario.
    folder
        Folder of the scenario, to which file names are relative.
    report
        Collects problems.
    """

    def drawn(quantity: int | RandomQuantity, *keys: str) -> Quantity:
        try:
            return quantity_spec(quantity, folder)
        except DistributionKeyError as error:
            report.add((*path, *keys, error.key), str(error))
            return 1

    def lasting(name: str, quantity: int | RandomQuantity, *, exponential: bool) -> Quantity:
        if not exponential:
            return drawn(quantity, "source", name)
        if isinstance(quantity, RandomQuantity):
            message = f'"{name}" has a distribution already — remove this key'
            report.add((*path, "source", "exponential"), message, (*path, "source", name))
            return 1
        if quantity == 0:
            return 0
        return {"law": {"kind": "exponential", "mean": float(quantity)}, "min": None, "max": None}

    listed = flow.source is None and flow.arrivals is not None and flow.arrivals.file is not None
    # A file that lists connections may contain their sizes, which replace `bytes`.
    size = 1 if listed and flow.size is None else flow.size
    if size is not None:
        if flow.source is not None:
            message = f'the source is "{flow.source.kind}" — write its size there, or keep one'
            report.add((*path, "size"), message, (*path, "source"))
        return {"kind": "fixed", "bytes": drawn(size, "size")}
    match flow.source:
        case FixedSize(size=size):
            return {"kind": "fixed", "bytes": drawn(size, "source", "size")}
        case OnOff() as source:
            return {
                "kind": "on_off",
                "on_ns": lasting("on", source.on, exponential=source.exponential),
                "off_ns": lasting("off", source.off, exponential=source.exponential),
            }
        case RequestResponse() | RequestSessions() as source:
            exponential = isinstance(source, RequestResponse) and source.exponential
            count = source.count
            return {
                "kind": "request_response",
                "bytes": drawn(source.size, "source", "size"),
                "think_ns": lasting("think_time", source.think_time, exponential=exponential),
                "count": None if count is None else drawn(count, "source", "count"),
            }
        case Web() as source:
            return web_spec(source, lambda quantity, key: drawn(quantity, "source", key))
        case source:
            return _undrawn(source, flow, path, folder, report)


def _undrawn(
    source: Bulk | Media | Trace | Tunnel | Ping | Cbr | Video | None,
    flow: Flow,
    path: KeyPath,
    folder: Path,
    report: Report,
) -> SourceSpec:
    """Return a source without random quantities."""
    match source:
        case Media() | Trace():
            return _by_the_clock(source, path, folder, report)
        case Cbr():
            return _cbr(source, flow, path, report)
        case Video():
            return video_spec(source, (*path, "source"), report)
        case Ping():
            _fits(source.size, flow, (*path, "source", "size"), path, report)
            return {
                "kind": "ping",
                "bytes": source.size,
                "every_ns": source.period,
                "timeout_ns": source.timeout,
            }
    return {"kind": "bulk"}


def _by_the_clock(source: Media | Trace, path: KeyPath, folder: Path, report: Report) -> SourceSpec:
    if isinstance(source, Media):
        return {
            "kind": "media",
            "frames_per_1000_s": round(1000 * source.fps),
            "key_bytes": source.key_frame_size,
            "delta_bytes": source.delta_frame_size or source.key_frame_size,
            "key_every": source.key_frame_interval or max(1, round(source.fps)),
            "deadline_ns": source.deadline,
        }
    writes: list[WriteSpec] = []
    try:
        writes = read_writes(folder / source.file)
    except QuantityError as error:
        report.add((*path, "source", "file"), str(error))
    return {"kind": "trace", "writes": writes, "deadline_ns": source.deadline}


def datagrams(flow: Flow) -> str | None:
    """Return a noun for the datagrams that a flow sends; None if the flow has a connection."""
    match flow.source:
        case Ping():
            return "pings"
        case Cbr():
            return "datagrams"
        case Tunnel() if flow.transport is not None and flow.transport.kind == "udp":
            return "tunnels over UDP"
    return None


def _cbr(source: Cbr, flow: Flow, path: KeyPath, report: Report) -> CbrSource:
    """Return a constant-rate source with the configured rate or a codec's."""
    where = (*path, "source")
    given = {"rate": source.rate, "size": source.size}
    voice: VoiceSpec | None = None
    if source.codec is None:
        for key, value in given.items():
            if value is None:
                example = {"rate": "64 kbit/s", "size": "160 B"}[key]
                message = f'missing — write for example {key} = "{example}", or a codec'
                report.add((*where, key), message, (*where, "codec"))
        if source.playout_delay is not None:
            message = "only speech is played — name its codec, too"
            report.add((*where, "playout_delay"), message, (*where, "codec"))
        size, rates = source.size or 1, source.rate or ((0, 1),)
    else:
        codec = CODECS[source.codec]
        for key in (key for key, value in given.items() if value is not None):
            message = f'the codec says it — remove this key, or codec = "{source.codec}"'
            report.add((*where, key), message, (*where, "codec"))
        size, rates = codec.payload_bytes, ((0, codec.rate_bps),)
        voice = {
            "equipment_impairment": codec.equipment_impairment,
            "loss_robustness": codec.loss_robustness,
            "coding_delay_ns": codec.delay_ns,
            "playout": _playout(*(source.playout_delay or ("best", 0))),
        }
    _fits(size, flow, (*where, "size"), path, report)
    fastest = max(rate for _, rate in rates)
    if fastest * _LEAST_GAP_NS > 8 * 10**9 * size:
        message = (
            f"a datagram of {size} B more often than every {_LEAST_GAP_NS} ns — make it larger"
        )
        report.add((*where, "rate"), message, (*where, "size"))
    return {
        "kind": "cbr",
        "bytes": size,
        "steps": [{"at_ns": at, "rate_bps": rate} for at, rate in rates],
        "voice": voice,
    }


def _playout(kind: str, value: float) -> PlayoutSpec:
    match kind:
        case "quantile":
            return {"kind": "quantile", "share": value}
        case "buffer":
            return {"kind": "buffer", "length_ns": int(value)}
    return {"kind": "best"}


def _fits(size: int, flow: Flow, where: KeyPath, path: KeyPath, report: Report) -> None:
    """Report datagrams of `size` bytes that exceed the MTU."""
    largest = flow.mtu - DATAGRAM_HEADER_BYTES
    if size > largest:
        message = f"a datagram has at most {largest} bytes, or fragments would carry it"
        report.add(where, message, (*path, "mtu"))


def no_controller(flow: Flow, path: KeyPath, report: Report) -> Algorithm:
    """Return the placeholder for the controller of datagrams, which have none."""
    what = datagrams(flow)
    source = ((*path, "source"),)
    if flow.controller.name != NO_CONTROLLER or flow.controller.parameters:
        message = f'{what} have no controller — write controller = "{NO_CONTROLLER}"'
        report.add((*path, "controller"), message, *source)
    for key in ("slow_start", "peer_cache"):
        if getattr(flow, key) is not None:
            report.add((*path, key), f"{what} have no controller — remove this key", *source)
    return {"name": NO_CONTROLLER, "parameters": {}}


def owner(flows: Sequence[Mapping[str, Any]], position: int) -> int:
    """Return the position of the flow to which the connection at `position` belongs."""
    while flows[position]["source"]["kind"] == "relay":
        position = flows[position]["source"]["from"]
    return position
