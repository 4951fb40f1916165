"""The measures: names, units, definitions, and their position in a run's summary.

The engine contains the registry (`crates/metrics/src/measures.rs`). Python adds the bounds, and
measures that are computed in Python.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from jostle.errors import InputError, unknown

if TYPE_CHECKING:
    from jostle.backends import Spec

Bounds = tuple[float | None, float | None]
"""Smallest and largest possible value; None if there is no limit."""

_SHARES: Final = {
    "share", "retransmission_ratio", "utilisation", "jain", "efficiency", "conformance",
    "repeatability", "application_limited", "cwnd_limited", "receive_window_limited",
    "send_buffer_limited", "pacing_limited", "cwnd_or_pacing_limited", "datagram_loss",
    "late_frames", "echo_share", "single_losses", "marked_share", "mode_time", "mode_followed",
    "rebuffering", "cut_options", "timestamped_share", "path_loss",
}  # fmt: skip
_BOUNDS: Final[dict[str, Bounds]] = {
    # ITU-T G.107, Annex B: R = 0 and below is a MOS of 1, and R = 100 is 4.5.
    "mos": (1.0, 4.5),
    "r_factor": (None, 100.0),
    # The largest goodput is divided by the smallest one.
    "starvation": (1.0, None),
    # A flow can gain without limit.
    "harm": (None, 1.0),
    "lead": (None, None),
    "throughput_shift": (None, None),
    "delay_shift": (None, None),
    "internal": (None, None),
}
"""Bounds of measures that are neither shares nor amounts."""
_BALANCES: Final = {"harm", "lead", "throughput_shift", "delay_shift"}
_OF_FINISHED: Final = {
    "completion_time", "completion_rate", "efficiency", "group_completion_time",
    "group_completion_rate", "slowdown", "small_completion_time", "small_slowdown",
    "medium_completion_time", "medium_slowdown", "large_completion_time", "large_slowdown",
}  # fmt: skip
_RATES: Final = {"completion_rate", "group_completion_rate", "efficiency"}
_OPINIONS: Final = (1.0, 5.0)
"""The scale of opinions of ITU-T P.800."""

_PERCENTILE: Final = re.compile(r"p\d")

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
        Name in estimates and studies; title in tables and figures.
    key
        Key in the summary; empty if the summary does not contain the measure.
    unit
        Unit of the number.
    display_unit, factor
        Unit in tables and figures (empty for a bare number), and the factor from `unit` to it.
    scope
        Whether each flow, each group of flows, each link, or the run has a value.
    place
        Position in the summary: `phases` (phases of a flow, group or link), `fairness`, `totals`,
        or `flow` and `group` (values of the complete run). The others are not in summaries:
        `asked` (needs a parameter), `conditions` (compares two conditions), `pairs` (compares two
        runs) and `states` (needs the name of a mode or quantity).
    any_window
        Whether it can be computed from the series over any time window.
    column
        Column of the series that shows it over time, if there is one.
    definition
        Definition.
    """

    name: str
    title: str
    key: str
    unit: str
    display_unit: str
    factor: float
    scope: Scope
    place: Place
    any_window: bool
    column: str | None
    definition: str

    @property
    def bounds(self) -> Bounds:
        """Smallest and largest possible value in any scenario, in `unit`."""
        return _BOUNDS.get(self.name, (0.0, 1.0 if self.name in _SHARES else None))

    @property
    def display_bounds(self) -> Bounds:
        """Smallest and largest possible value, in the unit of tables and figures."""
        low, high = self.bounds
        return (
            low if low is None else low * self.factor,
            high if high is None else high * self.factor,
        )

    @property
    def is_balance(self) -> bool:
        """Whether 0 separates gains from losses."""
        return self.name in _BALANCES

    @property
    def is_of_finished(self) -> bool:
        """Whether what did not finish has no value, although its value would be an extreme one."""
        return self.name in _OF_FINISHED or self.percent is not None

    @property
    def is_least_if_unfinished(self) -> bool:
        """Whether this extreme value is the smallest one, not the largest one."""
        return self.name in _RATES

    @property
    def axis_limits(self) -> tuple[float, float] | None:
        """Ends of an axis: the scale of opinions; None for other measures."""
        return _OPINIONS if self.name == "mos" else None

    def bounds_in(self, spec: Spec) -> Bounds:
        """Return the smallest and largest possible value in a run."""
        return self.bounds_among(sum(flow["source"]["kind"] != "ping" for flow in spec["flows"]))

    def bounds_among(self, flows: int) -> Bounds:
        """Return the smallest and largest possible value among flows; Jain's index is ≥ 1/n."""
        return (1.0 / max(flows, 1), 1.0) if self.name == "jain" else self.bounds

    @property
    def percent(self) -> float | None:
        """Percentile over a group's flows that the measure is; None for other measures."""
        name, _, percent = self.name.rpartition("_p")
        return float(percent) if self.scope == "group" and name == "completion_time" else None

    @property
    def tabled(self) -> bool:
        """Whether summaries contain the measure, or it is computed from several of them."""
        return not self.elsewhere or self.place == "conditions"

    @property
    def elsewhere(self) -> str:
        """Where to obtain a measure that summaries do not contain; empty if they contain it."""
        if self.place == "asked":
            return f"`{self.name}` takes a parameter: ask for it in a study"
        if self.place == "conditions":
            return f"`{self.name}` is of two conditions: `jostle run`, studies and Python have it"
        if self.place == "pairs":
            command = "`jostle compare --method envelope`"
            return f"`{self.name}` is of two runs: {command} and studies have it"
        if self.place == "states":
            return f"`{self.name}` is of a mode or a quantity that is named: ask for it in a study"
        return ""

    @property
    def heading(self) -> str:
        """The title, capitalised unless it begins with a variable or a percentile."""
        if self.title == self.name == "cwnd" or _PERCENTILE.match(self.title):
            return self.title
        return self.title[0].upper() + self.title[1:]

    @property
    def axis(self) -> str:
        """The heading with the unit of tables and figures."""
        return f"{self.heading} ({self.display_unit})" if self.display_unit else self.heading

    def of_summary(self, summary: Mapping[str, Any], phase: str, who: str = "") -> float | None:
        """Return the value in a run's summary.

        Parameters
        ----------
        summary
            The summary.
        phase
            Name of a phase; ignored for measures of the complete run.
        who
            Name of the flow, group or link; ignored for measures of the run.

        Returns
        -------
        float or None
            Value in `unit`; None without data, or if there is no such phase, flow, group or link.
        """
        if self.place in ("fairness", "totals"):
            of_run: float | None = summary[self.place].get(phase, {}).get(self.key)
            return of_run
        # Summaries of 0.1.0 have no groups.
        part = summary.get(f"{self.scope}s", ())
        entry = next((one for one in part if one["name"] == who), None)
        return None if entry is None else self.of_entry(entry, phase)

    def of_entry(self, entry: Mapping[str, Any], phase: str) -> float | None:
        """Return the value in a summary's entry of one flow, group or link; see `of_summary`."""
        whole = self.place in ("flow", "group")
        values = entry if whole else entry["phases"].get(phase, {})
        value: float | None = values.get(self.key)
        return value


def _paired(name: str, title: str, display_unit: str, factor: float, definition: str) -> Measure:
    place: Place = "pairs"
    return Measure(
        name, title, "", "1", display_unit, factor, "flow", place, False, None, definition
    )


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
        "Mean throughput of a flow's operating points, minus the reference's mean.",
    ),
    _paired(
        "delay_shift", "shift of the delay", "% of the base RTT", 100.0,
        "Mean queueing delay of a flow's operating points, minus the reference's mean.",
    ),
    _paired(
        "repeatability", "conformance to itself", "", 1.0,
        "Mean conformance of a flow to itself in the other runs of its condition: what another "
        "flow's conformance to it can be at most but for chance.",
    ),
)  # fmt: skip
"""Measures of a flow and a reference, which may be from another run; see `conformance.py`."""


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
        "An internal quantity of the controller, over the intervals of the window, or only the "
        "intervals of one mode: mean, smallest, largest or last.",
    ),
)  # fmt: skip
"""Measures of a controller's state; see `studies/controller_states.py`."""


@functools.cache
def measures() -> Mapping[str, Measure]:
    """Return every measure by name: the engine's registry in its order, then the others."""
    from jostle.scenario.registry import engine_rows

    return {row["name"]: Measure(**row) for row in engine_rows()["measures"]} | {
        one.name: one for one in (*PAIRED, *STATES)
    }


def keys(scope: Scope, place: Place) -> tuple[str, ...]:
    """Return the summary keys of the measures of a scope and place."""
    return tuple(m.key for m in measures().values() if (m.scope, m.place) == (scope, place))


def measure(name: str) -> Measure:
    """Return a measure, given its name or its key.

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
    raise InputError(unknown_measure(name))


def unknown_measure(name: str) -> str:
    """Say that there is no such measure: its new name if it was renamed, else what was meant."""
    from jostle.scenario.parsing.renamed_keys import MEASURES

    if name in MEASURES:
        return f"no measure `{name}`: it is now called `{MEASURES[name]}`"
    return unknown("measure", name, measures())
