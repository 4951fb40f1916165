"""What a flow's receiver offers, and what it does otherwise than Linux's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jostle.scenario.models import Flow
from jostle.scenario.receivers import HiddenMarks, OptimisticAcks, Rledbat
from jostle.scenario.resolving.links import LinkFacts, bdp_bytes
from jostle.scenario.resolving.sources import datagrams
from jostle.scenario.resolving.transports import is_quic
from jostle.scenario.sources import Bulk, Fixed, OnOff
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report
from jostle.scenario.text.units import LARGEST

__all__ = ["path_bdp", "receive_windows", "receiver_spec"]

_RECEIVE_WINDOW_BYTES: Final = 32 * 2**20
_SYN_WINDOW_BYTES: Final = 65_535
"""Largest window that a SYN-ACK can offer: it cannot be scaled (RFC 7323, section 2.2)."""


def receiver_spec(flow: Flow, path: KeyPath, report: Report, *, knows_ecn: bool) -> dict[str, Any]:
    """Return the key `receiver` of a run's specification, if the flow has one.

    Parameters
    ----------
    flow, path
        The flow, and where it stands in the scenario.
    report
        Takes problems.
    knows_ecn
        Whether both ends of the flow know ECN.
    """
    receiver = flow.receiver
    # Of QUIC flows the key is refused with the others that only TCP has.
    if receiver is None or is_quic(flow):
        return {}
    at = (*path, "receiver")
    what = datagrams(flow)
    if what is not None:
        message = f"{what} have no receiver with a conduct of its own — remove this key"
        report.add(at, message, (*path, "source"))
    elif flow.pep:
        message = (
            "the flow's sender sees the proxy's receiver and not this one — remove one of both"
        )
        report.add(at, message, (*path, "pep"))
    elif isinstance(receiver, HiddenMarks) and not knows_ecn:
        message = "both ends ignore ECN, so that there are no marks to hide — write ecn = true"
        report.add(at, message, (*path, "ecn"))
    elif isinstance(receiver, OptimisticAcks | Rledbat) and flow.memory is not None:
        message = "of senders that remember, some send beyond the window, which alone bounds them"
        report.add(at, f"{message} here — remove one of both", (*path, "memory"))
    elif isinstance(receiver, OptimisticAcks) and not _goes_without(flow):
        message = "what is lost never comes, and the source waits for it — only bulk, fixed and"
        report.add(at, f"{message} on_off sources do not", (*path, "source"))
    if isinstance(receiver, Rledbat):
        said = receiver.model_dump(exclude={"target"})
        return {"receiver": {**said, "target_ns": receiver.target}}
    return {"receiver": receiver.model_dump()}


def _goes_without(flow: Flow) -> bool:
    """Whether nothing waits for a message of the flow to be whole."""
    return flow.source is None or isinstance(flow.source, Bulk | Fixed | OnOff)


def _receive_window(flow: Flow, rtt: int, there: Sequence[LinkFacts]) -> int:
    """Return what the scenario says, or so much that the window never limits the flow.

    The factor 2 leaves room for what a controller overshoots before it hears of its losses.
    """
    if flow.receive_window is None:
        needed = [bdp_bytes(one.peak_bps, rtt) + one.queue_bytes for one in there]
        return min(LARGEST, max(_RECEIVE_WINDOW_BYTES, 2 * max(needed, default=0)))
    return min(LARGEST, flow.receive_window.to_bytes(path_bdp(rtt, there)))


def receive_windows(flow: Flow, rtt: int, there: Sequence[LinkFacts]) -> tuple[int, int]:
    """Return the largest window and the first: what a SYN-ACK can say unless the scenario does."""
    largest = _receive_window(flow, rtt, there)
    if is_quic(flow):
        return largest, largest
    if flow.initial_receive_window is None:
        return largest, min(_SYN_WINDOW_BYTES, largest)
    return largest, min(LARGEST, flow.initial_receive_window.to_bytes(path_bdp(rtt, there)))


def path_bdp(rtt: int, there: Sequence[LinkFacts]) -> int:
    """Return the bandwidth-delay product of a way: that of its slowest link."""
    return min((bdp_bytes(one.initial_bps, rtt) for one in there), default=0)
