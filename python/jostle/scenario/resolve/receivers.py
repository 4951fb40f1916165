"""Receivers of flows: receive windows, deviations from Linux's behaviour, and slow readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from jostle.run_spec import PauseSpec, ReaderSpec, ReceiverSpec
from jostle.scenario.models import Flow, Quic
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import LARGEST, format_amount
from jostle.scenario.receivers import HiddenEcnMarks, OptimisticAcking, Pause, Rledbat
from jostle.scenario.resolve.links import LinkFacts, bdp_bytes
from jostle.scenario.resolve.sources import datagrams
from jostle.scenario.resolve.transports import implementation, is_quic
from jostle.scenario.sources import Bulk, FixedSize, OnOff, Web

__all__ = ["path_bdp", "reader_spec", "receive_windows", "receiver_spec"]

_RECEIVE_WINDOW_BYTES: Final = 32 * 2**20
_SYN_WINDOW_BYTES: Final = 65_535
"""Largest window of a SYN-ACK, which is not scaled (RFC 7323 §2.2)."""


def receiver_spec(
    flow: Flow, path: KeyPath, report: Report, *, knows_ecn: bool
) -> ReceiverSpec | None:
    """Return the receiver in the form of the run specification; None for one like Linux's.

    Parameters
    ----------
    flow, path
        Flow, and its key path in the scenario.
    report
        Collects problems.
    knows_ecn
        Whether both ends of the flow support ECN.
    """
    receiver = flow.receiver
    # For QUIC flows, the key is reported with the other keys that only TCP supports.
    if receiver is None or is_quic(flow):
        return None
    at = (*path, "receiver")
    what = datagrams(flow)
    if what is not None:
        message = f"{what} have no misbehaving receiver — remove this key"
        report.add(at, message, (*path, "source"))
    elif flow.proxy:
        message = (
            "the flow's sender sees the proxy's receiver and not this one — remove one of both"
        )
        report.add(at, message, (*path, "proxy"))
    elif isinstance(receiver, HiddenEcnMarks) and not knows_ecn:
        message = "both ends ignore ECN, so that there are no marks to hide — write ecn = true"
        report.add(at, message, (*path, "ecn"))
    elif isinstance(receiver, OptimisticAcking | Rledbat) and flow.peer_cache is not None:
        message = "of senders that remember, some send beyond the window, which alone bounds them"
        report.add(at, f"{message} here — remove one of both", (*path, "peer_cache"))
    elif isinstance(receiver, OptimisticAcking) and not _goes_without(flow):
        message = "what is lost never comes, and the source waits for it — only bulk, fixed and"
        report.add(at, f"{message} on_off sources do not", (*path, "source"))
    if isinstance(receiver, OptimisticAcking):
        return {"kind": receiver.kind, "lead": receiver.lead_rtts}
    keys = receiver.model_dump()
    if isinstance(receiver, Rledbat):
        keys["target_ns"] = keys.pop("target")
    return cast("ReceiverSpec", keys)


def reader_spec(flow: Flow, path: KeyPath, duration_ns: int, report: Report) -> ReaderSpec | None:
    """Return the slow application at the receiver; None for one that reads at once.

    Parameters
    ----------
    flow, path
        Flow, and its key path in the scenario.
    duration_ns
        Duration of the run.
    report
        Collects problems.
    """
    reader = flow.reader
    if reader is None:
        return None
    at = (*path, "reader")
    refusal = _reader_refusal(flow)
    if refusal is not None:
        message, key = refusal
        report.add(at, f"{message} — remove one of both", (*path, *key))
    if reader.rate is None and not reader.pauses:
        report.add(at, 'nothing is slow — write a rate, such as "4 Mbit/s", or pauses')
    repeated = [number for number, pause in enumerate(reader.pauses) if pause.every is not None]
    for number in repeated[1:]:
        message = "another pause repeats — write times of single pauses"
        report.add((*at, "pauses", number, "every"), message, (*at, "pauses", repeated[0], "every"))
    for number, pause in enumerate(reader.pauses):
        _check_pause(pause, (*at, "pauses", number), duration_ns, report)
    spec: ReaderSpec = {"read_bytes": reader.size}
    if reader.rate is not None:
        spec["rate_bps"] = reader.rate
    if reader.pauses:
        spec["pauses"] = [_pause_spec(pause) for pause in reader.pauses]
    return spec


def _reader_refusal(flow: Flow) -> tuple[str, KeyPath] | None:
    """Return why a flow has no slow reader, and the key that excludes it; None if it can have."""
    what = datagrams(flow)
    streams = isinstance(flow.transport, Quic) and flow.transport.stream_receive_window is not None
    refusals: list[tuple[bool, str, KeyPath]] = [
        (
            what is not None,
            f"{what} have no receive window, which a slow application closes",
            ("source",),
        ),
        (
            flow.arrivals is not None,
            "connections of the flow end before all their data are read",
            ("arrivals",),
        ),
        (isinstance(flow.source, Web), "a browser reads its pages itself", ("source",)),
        (
            implementation(flow) is not None,
            "this program reads its data itself",
            ("transport", "implementation"),
        ),
        (
            streams,
            "unread data close the window of the connection, not of a stream",
            ("transport", "stream_receive_window"),
        ),
        (
            isinstance(flow.receiver, OptimisticAcking),
            "an optimistic receiver keeps no data",
            ("receiver",),
        ),
    ]
    return next(((why, key) for applies, why, key in refusals if applies), None)


def _check_pause(pause: Pause, at: KeyPath, duration_ns: int, report: Report) -> None:
    shown = format_amount(pause.duration, "time")
    if pause.at >= duration_ns:
        begin, run = (format_amount(ns, "time") for ns in (pause.at, duration_ns))
        message = f"{begin} is not before the end of the run at {run}"
        report.add((*at, "at"), message, ("duration",))
    if pause.every is not None and pause.every <= pause.duration:
        every = format_amount(pause.every, "time")
        message = f"{every} is not longer than the pause of {shown}, so that it never reads"
        report.add((*at, "every"), message, (*at, "duration"))


def _pause_spec(pause: Pause) -> PauseSpec:
    spec: PauseSpec = {"at_ns": pause.at, "duration_ns": pause.duration}
    if pause.every is not None:
        spec["every_ns"] = pause.every
    return spec


def _goes_without(flow: Flow) -> bool:
    """Return whether no application of the flow waits for complete messages."""
    return flow.source is None or isinstance(flow.source, Bulk | FixedSize | OnOff)


def _receive_window(flow: Flow, paths: Sequence[tuple[int, Sequence[LinkFacts]]]) -> int:
    """Return the receive window; by default one that never limits the flow.

    The default is twice the BDP plus the queue, because a controller may overshoot before it
    detects losses.
    """
    if flow.receive_window is None:
        needed = [
            bdp_bytes(one.peak_bps, rtt) + one.queue_bytes for rtt, there in paths for one in there
        ]
        return min(LARGEST, max(_RECEIVE_WINDOW_BYTES, 2 * max(needed, default=0)))
    return min(LARGEST, flow.receive_window.to_bytes(path_bdp(*paths[0])))


def receive_windows(
    flow: Flow,
    rtt: int,
    there: Sequence[LinkFacts],
    later: Sequence[tuple[int, Sequence[LinkFacts]]] = (),
) -> tuple[int, int]:
    """Return the largest receive window, and the window of the SYN-ACK.

    `later` are the RTTs and paths of the flow after changes of its route.
    """
    largest = _receive_window(flow, [(rtt, there), *later])
    if is_quic(flow):
        return largest, largest
    if flow.initial_receive_window is None:
        return largest, min(_SYN_WINDOW_BYTES, largest)
    return largest, min(LARGEST, flow.initial_receive_window.to_bytes(path_bdp(rtt, there)))


def path_bdp(rtt: int, there: Sequence[LinkFacts]) -> int:
    """Return the BDP of a path, with the rate of its slowest link."""
    return min((bdp_bytes(one.initial_bps, rtt) for one in there), default=0)
