"""Data of time–sequence diagrams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from jostle.figures.data import Bools
from jostle.stats.descriptive import Floats

KINDS: Final[Mapping[str, str]] = {
    "new": "sent",
    "fast": "retransmitted",
    "timeout": "retransmitted (timeout)",
    "probe": "retransmitted (probe)",
    "again": "retransmitted",
    "twice": "came twice",
    "out_of_order": "out of order",
}
"""Legend entries by kind of packet; kinds with the same text share an entry."""


@dataclass(frozen=True)
class Packets:
    """Data packets in order of time.

    Attributes
    ----------
    time_s
        Time at which each packet was captured.
    start, end
        First byte of the packet, and the byte after its last, relative to the flow's first byte.
    kind
        Indices into `kinds`.
    kinds
        Keys of `KINDS`.
    """

    time_s: Floats
    start: Floats
    end: Floats
    kind: np.ndarray[Any, np.dtype[np.uint8]]
    kinds: tuple[str, ...]

    def of(self, words: str) -> Bools:
        """Return which packets have the legend entry `words` in `KINDS`."""
        meant = [at for at, kind in enumerate(self.kinds) if KINDS[kind] == words]
        found: Bools = np.isin(self.kind, meant)
        return found


@dataclass(frozen=True)
class AckPackets:
    """Packets of the receiver in order of time.

    Attributes
    ----------
    time_s
        Time at which each packet was captured.
    acknowledged
        First byte that is not acknowledged.
    edge
        First byte beyond the receive window; NaN if the window scale is unknown.
    """

    time_s: Floats
    acknowledged: Floats
    edge: Floats


@dataclass(frozen=True)
class Sacks:
    """SACK blocks in order of time; duplicate ones (D-SACK) report data received twice."""

    time_s: Floats
    start: Floats
    end: Floats
    is_duplicate: Bools


@dataclass(frozen=True)
class SequenceData:
    """Packets and ACKs of a flow.

    Attributes
    ----------
    label
        Names of the flow and its file.
    start_s
        Start of the flow.
    from_s, to_s
        Time window of the data, in the clock of the other times.
    is_cut
        Whether the requested window has more packets than are included.
    """

    label: str
    start_s: float
    from_s: float
    to_s: float
    is_cut: bool
    packets: Packets
    answers: AckPackets
    sacks: Sacks

    def since(self, begun_s: float) -> SequenceData:
        """Return a copy with times relative to `begun_s`."""

        def moved(part: Any) -> Any:
            return type(part)(**{**vars(part), "time_s": part.time_s - begun_s})

        return SequenceData(
            self.label, self.start_s - begun_s, self.from_s - begun_s, self.to_s - begun_s,
            self.is_cut, moved(self.packets), moved(self.answers), moved(self.sacks),
        )  # fmt: skip


@dataclass(frozen=True)
class SequencesData:
    """A time–sequence diagram of one or several flows.

    Attributes
    ----------
    title
        Name of the condition, if there are several.
    flows
        Flows. If there are several, each has a colour.
    clock
        Origin of the times, for the axis; empty for the clock of the run or of the capture.
    """

    title: str
    flows: tuple[SequenceData, ...]
    caption: str = ""
    clock: str = ""


def overlay(
    flows: tuple[SequenceData, ...], title: str = "", *, one_clock: bool = True
) -> SequencesData:
    """Combine flows in one diagram, with the times of their run.

    Without a common clock, times of several flows are relative to the start of each flow.
    """
    moved = len(flows) > 1 and not one_clock
    shown = tuple(one.since(one.start_s) for one in flows) if moved else flows
    said = ["Times count from the start of each flow."] if moved else []
    cut = [one for one in shown if one.is_cut]
    if cut:
        until = ", ".join(f"{one.to_s:.6g} s" for one in cut)
        said.append(f"There are too many packets to show all: drawn up to {until}.")
    return SequencesData(
        title, shown, " ".join(said), "since the start of the flow" if moved else ""
    )
