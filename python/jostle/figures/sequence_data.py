"""What a time–sequence diagram shows, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from jostle.figures.data import Bools
from jostle.stats.describe import Floats

KINDS: Final[Mapping[str, str]] = {
    "new": "sent",
    "fast": "sent again",
    "timeout": "sent again (timeout)",
    "probe": "sent again (probe)",
    "again": "sent again",
    "twice": "came twice",
    "out_of_order": "out of order",
}
"""What a packet is, in the words of a legend; of the same words there is one entry."""


@dataclass(frozen=True)
class Packets:
    """Packets of data, by time.

    Attributes
    ----------
    time_s
        When each was seen.
    start, end
        Its first byte, and the one after its last; they count from the first of the flow.
    kind
        Positions in `kinds`.
    kinds
        Keys of `KINDS`.
    """

    time_s: Floats
    start: Floats
    end: Floats
    kind: np.ndarray[Any, np.dtype[np.uint8]]
    kinds: tuple[str, ...]

    def of(self, words: str) -> Bools:
        """Tell which packets are what some words of `KINDS` say."""
        meant = [at for at, kind in enumerate(self.kinds) if KINDS[kind] == words]
        found: Bools = np.isin(self.kind, meant)
        return found


@dataclass(frozen=True)
class Answers:
    """Segments of the receiver, by time.

    Attributes
    ----------
    time_s
        When each was seen.
    acknowledged
        The first byte that is not.
    edge
        The first byte beyond the receiver's window; NaN where its scale is not known.
    """

    time_s: Floats
    acknowledged: Floats
    edge: Floats


@dataclass(frozen=True)
class Sacks:
    """Blocks of selective acknowledgements, by time; duplicates tell of bytes that came twice."""

    time_s: Floats
    start: Floats
    end: Floats
    is_duplicate: Bools


@dataclass(frozen=True)
class SequenceData:
    """A flow, packet by packet.

    Attributes
    ----------
    label
        Which flow of which file.
    start_s
        When it began.
    from_s, to_s
        The window that is covered, on the clock of the others.
    is_cut
        There was more than is shown of the window that was asked for.
    """

    label: str
    start_s: float
    from_s: float
    to_s: float
    is_cut: bool
    packets: Packets
    answers: Answers
    sacks: Sacks

    def since(self, begun_s: float) -> SequenceData:
        """Count its times from another one."""

        def moved(part: Any) -> Any:
            return type(part)(**{**vars(part), "time_s": part.time_s - begun_s})

        return SequenceData(
            self.label, self.start_s - begun_s, self.from_s - begun_s, self.to_s - begun_s,
            self.is_cut, moved(self.packets), moved(self.answers), moved(self.sacks),
        )  # fmt: skip


@dataclass(frozen=True)
class SequencesData:
    """A time–sequence diagram: of one flow, or of several over each other.

    Attributes
    ----------
    title
        Name of the condition, if there are several.
    flows
        Of several, each has its own colour, and times count from when it began.
    """

    title: str
    flows: tuple[SequenceData, ...]
    caption: str = ""


def laid_over(flows: tuple[SequenceData, ...], title: str = "") -> SequencesData:
    """Put flows into one diagram: of several, each on a clock that begins with it."""
    several = len(flows) > 1
    shown = tuple(one.since(one.start_s) for one in flows) if several else flows
    said = ["Times and bytes count from the beginning of each flow."] if several else []
    cut = [one for one in shown if one.is_cut]
    if cut:
        until = ", ".join(f"{one.to_s:.6g} s" for one in cut)
        said.append(f"There are too many packets to show all: drawn up to {until}.")
    return SequencesData(title, shown, " ".join(said))
