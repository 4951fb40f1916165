"""How many runs, flows or transfers did not finish, so that a mean is of the others only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jostle.results.measures import Measure, measures
from jostle.results.number_format import count
from jostle.results.summary_values import Cells, cells_of

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns

_NAMED: Final = 3
"""Number of conditions that a text names; the remaining ones are counted."""


@dataclass(frozen=True)
class FinishCount:
    """Flows and transfers that should have ended by themselves.

    Attributes
    ----------
    unfinished
        How many were not complete at the end of their run.
    total
        How many there were.
    what
        `run` of one flow, `flow` of a group, or `transfer` of a flow that is many connections.

    Examples
    --------
    >>> str(FinishCount(4, 10, "run"))
    '4 of 10 runs did not finish'
    """

    unfinished: int
    total: int
    what: str

    def __add__(self, other: FinishCount) -> FinishCount:
        what = self.what if self.what == other.what else "flow"
        return FinishCount(self.unfinished + other.unfinished, self.total + other.total, what)

    @property
    def share(self) -> str:
        """The numbers, as text."""
        return f"{self.unfinished} of {count(self.total, self.what)}"

    def __str__(self) -> str:
        return f"{self.share} did not finish"


def finish_counts(cells: Cells) -> dict[str, FinishCount]:
    """Return flow or group → counts of a condition, of the flows that should end by themselves."""
    known = measures()
    begun: dict[str, float] = {}
    over: dict[str, float] = {}
    if cells.has_arrivals:
        begun, over = (_of_groups(cells, known[one]) for one in ("transfers", "transfers_finished"))
    found: dict[str, FinishCount] = {}
    groups: dict[str, FinishCount] = {}
    for entity in cells.of(known["unfinished"]):
        name = entity.place["flow"]
        if name in begun:
            waiting = int(begun[name] - over.get(name, 0.0))
            found[name] = FinishCount(waiting, int(begun[name]), "transfer")
            continue
        left, flows = cells.total(entity, known["unfinished"])
        if not flows:
            continue
        what = "run" if len(entity.names) == 1 else "flow"
        found[name] = FinishCount(int(left), flows, what)
        if entity.group != name:
            of_flow = FinishCount(int(left), flows, "flow")
            before = groups.get(entity.group)
            groups[entity.group] = of_flow if before is None else before + of_flow
    return groups | found


def _of_groups(cells: Cells, wanted: Measure) -> dict[str, float]:
    """Return group → sum over runs of a measure, without groups that do not have it."""
    sums = {}
    for entity in cells.of(wanted):
        total, present = cells.total(entity, wanted)
        if present:
            sums[entity.place["group"]] = total
    return sums


class UnfinishedFlows:
    """The flows of some results that did not finish.

    Attributes
    ----------
    counts
        Flow → counts over all conditions, of the flows of which something did not finish.
    """

    def __init__(self, results: FinishedRuns, phase: str) -> None:
        every: dict[str, dict[int, FinishCount]] = defaultdict(dict)
        names: set[str] = set()
        for index in range(len(results.conditions)):
            if results.runs_of(index):
                names.update(group.name for group in results.flow_groups(index))
                cells = cells_of(results, index, (phase,), each=False)
                for name, counted in finish_counts(cells).items():
                    every[name][index] = counted
        self._labels = results.labels
        self._conditions = {
            name: [at for at, one in by_condition.items() if one.unfinished]
            for name, by_condition in every.items()
        }
        self._is_alone = len(names) == 1
        self._of_several = len(results.conditions) > 1
        self.counts = {
            name: _sum(by_condition.values())
            for name, by_condition in every.items()
            if self._conditions[name]
        }

    def texts(self) -> list[str]:
        """Say how many did not finish, of which flows and in which conditions."""
        said: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, counted in self.counts.items():
            said[counted.share, self._where(name)].append(name)
        return [
            f"{share}{'' if self._is_alone else ' of ' + _listed(names)} did not finish{where}"
            for (share, where), names in said.items()
        ]

    def _where(self, name: str) -> str:
        return _where(self._labels, self._conditions[name]) if self._of_several else ""


def means_notes(
    results: FinishedRuns, counts: Iterable[tuple[int, FinishCount | None]]
) -> tuple[str, ...]:
    """Return a note below a table of means, if something did not finish.

    `counts` are of the table's samples, each with the position of its condition.
    """
    known = [(at, one) for at, one in counts if one is not None]
    total = _sum(one for _, one in known) if known else None
    if total is None or not total.unfinished:
        return ()
    conditions = dict.fromkeys(at for at, one in known if one.unfinished)
    where = _where(results.labels, conditions) if len(results.conditions) > 1 else ""
    return (f"{total}{where}: the means are of the others.",)


def _where(labels: Sequence[str], conditions: Iterable[int]) -> str:
    """Return the first conditions in brackets, and how many more there are."""
    named = [labels[at] for at in conditions]
    more = len(named) - _NAMED
    named = named[:_NAMED] + ([f"{count(more, 'more condition')}"] if more > 0 else [])
    return f" ({'; '.join(named)})"


def _sum(counts: Iterable[FinishCount]) -> FinishCount:
    first, *others = counts
    for other in others:
        first = first + other
    return first


def _listed(names: list[str]) -> str:
    if len(names) > _NAMED:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
