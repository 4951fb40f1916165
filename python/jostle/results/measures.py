"""The measures: names, units, definitions, and where a run's summary has them.

The engine has the registry (`crates/record/src/measures.rs`); of names of rows only the bounds are
known here.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from jostle.errors import InputError, unknown

if TYPE_CHECKING:
    from jostle.backends import Spec

Bounds = tuple[float | None, float | None]
"""Smallest and largest value that something can have; None where there is no end."""

_SHARES: Final = {
    "share", "retransmission_ratio", "utilisation", "jain", "efficiency", "conformance",
    "repeatability",
}  # fmt: skip
_SIGNED: Final = {"lead", "throughput_shift", "delay_shift"}

Scope = Literal["flow", "group", "link", "run"]
Place = Literal[
    "phases", "fairness", "totals", "flow", "group", "asked", "conditions", "pairs", "states"
]


@dataclass(frozen=True)
class Measure:
    """A measure.

    Attributes
    ----------
    name, title
        Name in estimates and studies; what it is called in tables and figures.
    key
        Key in the summary; empty where that has none.
    unit
        Unit of the number.
    reads, factor
        Unit that a person reads it in, empty for a bare number, and what the number is multiplied
        by for that.
    scope
        Whether each flow, each group of flows that were written as one, each link, or a run as a
        whole has a value.
    place
        Where the summary has it: in each phase of a flow, group or link, of `fairness` or of
        `totals`, beside the phases of a flow or group, or nowhere, since it is asked for with a
        parameter, compares two conditions, is of two runs, or of a mode or quantity that is
        named.
    any_window
        Whether the series is enough to compute it over any window of time.
    column
        Column of the series that shows it over time, if there is one.
    definition
        What it is.
    """

    name: str
    title: str
    key: str
    unit: str
    reads: str
    factor: float
    scope: Scope
    place: Place
    any_window: bool
    column: str | None
    definition: str

    @property
    def bounds(self) -> Bounds:
        """Smallest and largest value that it can have, in `unit`, whatever the scenario."""
        if self.name in _SIGNED:
            return None, None
        if self.name == "harm":
            # To be better off than alone has no limit.
            return None, 1.0
        return 0.0, 1.0 if self.name in _SHARES else None

    def bounds_in(self, spec: Spec) -> Bounds:
        """Smallest and largest value that it can have in a run."""
        return self.bounds_among(sum(flow["source"]["kind"] != "ping" for flow in spec["flows"]))

    def bounds_among(self, flows: int) -> Bounds:
        """Smallest and largest value that it can have among flows: Jain's index is 1/n at least."""
        return (1.0 / max(flows, 1), 1.0) if self.name == "jain" else self.bounds

    @property
    def percent(self) -> float | None:
        """Percentile of a group's flows that it is; None if it is none."""
        name, _, percent = self.name.rpartition("_p")
        return float(percent) if self.scope == "group" and name == "completion" else None

    @property
    def tabled(self) -> bool:
        """Whether tables of results have it: it is in summaries, or follows from several."""
        return not self.elsewhere or self.place == "conditions"

    @property
    def elsewhere(self) -> str:
        """Who answers for it, where no run's summary has it; empty if that has it."""
        if self.place == "asked":
            return f"`{self.name}` takes a parameter: ask for it in a study"
        if self.place == "conditions":
            return f"`{self.name}` is of two conditions: `jostle run`, studies and Python have it"
        if self.place == "pairs":
            return f"`{self.name}` is of two runs: `jostle conformance` and studies have it"
        if self.place == "states":
            return f"`{self.name}` is of a mode or a quantity that is named: ask for it in a study"
        return ""

    @property
    def heading(self) -> str:
        """The title as a heading has it; names of variables stay as they are."""
        if self.title == self.name == "cwnd":
            return self.title
        return self.title[0].upper() + self.title[1:]

    @property
    def axis(self) -> str:
        """The heading with the unit that is read."""
        return f"{self.heading} ({self.reads})" if self.reads else self.heading

    def of_summary(self, summary: Mapping[str, Any], phase: str, who: str = "") -> float | None:
        """Look it up in a run's summary.

        Parameters
        ----------
        summary
            The summary.
        phase
            Name of a phase; of no matter for what is of the whole run.
        who
            Name of the flow, the group or the link, unless it is of the run.

        Returns
        -------
        float or None
            In `unit`; None without data, or if there is no such phase, flow, group or link.
        """
        if self.place in ("fairness", "totals"):
            of_run: float | None = summary[self.place].get(phase, {}).get(self.key)
            return of_run
        # Summaries of 0.1.0 have no groups.
        part = summary.get(f"{self.scope}s", ())
        entry = next((one for one in part if one["name"] == who), None)
        return None if entry is None else self.of_entry(entry, phase)

    def of_entry(self, entry: Mapping[str, Any], phase: str) -> float | None:
        """Look it up in what a summary has of one flow, group or link; see `of_summary`."""
        whole = self.place in ("flow", "group")
        values = entry if whole else entry["phases"].get(phase, {})
        value: float | None = values.get(self.key)
        return value


def _paired(name: str, title: str, reads: str, factor: float, definition: str) -> Measure:
    place: Place = "pairs"
    return Measure(name, title, "", "1", reads, factor, "flow", place, False, None, definition)


PAIRED: Final = (
    _paired(
        "conformance", "conformance", "", 1.0,
        "Share of the operating points of a flow and of a reference that lie inside the other's "
        "Performance Envelope (QUICbench, Mishra et al. 2022).",
    ),
    _paired(
        "deviation", "deviation", "", 1.0,
        "Distance of the mean operating points of a flow and of a reference, in parts of the "
        "path's rate and base RTT.",
    ),
    _paired(
        "throughput_shift", "shift of the throughput", "% of the rate", 100.0,
        "Mean throughput of a flow's operating points less that of a reference's.",
    ),
    _paired(
        "delay_shift", "shift of the delay", "% of the base RTT", 100.0,
        "Mean queueing delay of a flow's operating points less that of a reference's.",
    ),
    _paired(
        "repeatability", "conformance to itself", "", 1.0,
        "Mean conformance of a flow to itself in the other runs of its condition: what another "
        "flow's conformance to it can be at most but for chance.",
    ),
)  # fmt: skip
"""Measures of a flow and a reference, which may be another run's; see `results/conformance.py`."""


def _of_states(
    name: str, title: str, unit: str, read: tuple[str, float], definition: str
) -> Measure:
    place: Place = "states"
    return Measure(name, title, "", unit, *read, "flow", place, False, None, definition)


STATES: Final = (
    _of_states(
        "mode_entered", "entry into a mode", "s", ("s", 1.0),
        "Time from the flow's start to the end of the first interval, of the window, in which its "
        "controller is in a mode.",
    ),
    _of_states(
        "mode_left", "leaving of a mode", "s", ("s", 1.0),
        "Time from the flow's start to the end of the first interval, of the window, in which its "
        "controller is no longer in a mode in which it was.",
    ),
    _of_states(
        "mode_time", "time in a mode", "1", ("%", 100.0),
        "Share of the window's intervals, of those in which the flow lived, at whose end its "
        "controller is in a mode.",
    ),
    _of_states(
        "mode_visits", "visits to a mode", "1", ("", 1.0),
        "How often the controller comes into a mode.",
    ),
    _of_states(
        "mode_length", "length of a visit to a mode", "s", ("ms", 1e3),
        "Mean length of the visits to a mode that begin and end in the window.",
    ),
    _of_states(
        "mode_rounds", "rounds of a visit to a mode", "1", ("rounds", 1.0),
        "Mean number of round trips of these visits, by the controller's `round_count`.",
    ),
    _of_states(
        "mode_followed", "what follows a mode", "1", ("%", 100.0),
        "Share of the visits to a mode that are followed by another one that is named.",
    ),
    _of_states(
        "internal", "internal quantity", "1", ("", 1.0),
        "A quantity of the controller's inside, over the intervals of the window, or those of them "
        "in which it is in a mode: mean, smallest, largest or last.",
    ),
)  # fmt: skip
"""Measures of what a controller shows of its state; see `studies/states.py`."""


@functools.cache
def measures() -> Mapping[str, Measure]:
    """Every measure by name: those of the engine's registry in its order, then the others."""
    from jostle import _core

    return {row["name"]: Measure(**row) for row in json.loads(_core.registry())["measures"]} | {
        one.name: one for one in (*PAIRED, *STATES)
    }


def keys(scope: Scope, place: Place) -> tuple[str, ...]:
    """Keys of the summary at a place, of what has a value there."""
    return tuple(m.key for m in measures().values() if (m.scope, m.place) == (scope, place))


def measure(name: str) -> Measure:
    """Find a measure by its name or its key.

    Raises
    ------
    InputError
        When there is none.
    """
    every = measures()
    if name in every:
        return every[name]
    for candidate in every.values():
        if name == candidate.key:
            return candidate
    raise InputError(unknown("measure", name, every))
