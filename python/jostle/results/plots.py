"""`results.plot`: figures of any results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from jostle.errors import InputError, unknown
from jostle.results import plot_data, time_series_data
from jostle.results import rrul as load_response
from jostle.results import time_sequence as sequences
from jostle.results.measure_samples import find_key, full_key
from jostle.results.measures import measure
from jostle.results.phase_portrait import phase_data
from jostle.results.plot_data import PlotSelection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jostle.figures.renderer import FigureData
    from jostle.results.condition_names import Condition
    from jostle.results.finished_runs import FinishedRuns

Kind = Literal[
    "series", "lines", "heatmap", "cdf", "box", "scatter", "envelope", "phase", "rrul",
    "time-sequence",
]  # fmt: skip
KINDS: Final[tuple[Kind, ...]] = (
    "series", "lines", "heatmap", "cdf", "box", "scatter", "envelope", "phase",
    "rrul", "time-sequence",
)  # fmt: skip

Keys = str | Sequence[str]


class Plots:
    """Figures of results; each method returns a Matplotlib `Figure`.

    Keys are grid keys, by full names or their endings (`rtt` for `flows.web.rtt`), and `flow`,
    `link`, `controller`, `phase`. Samples that differ in other keys are not pooled: they get
    separate charts in the figure.

    Parameters
    ----------
    results
        The results.

    Examples
    --------
    >>> import jostle
    >>> results = jostle.run("scenarios/parking-lot.toml", store=False, repeats=1)
    >>> figure = results.plot.lines(x="controller", y="jain")
    >>> figure.axes[0].get_ylabel()
    "Jain's index"
    """

    def __init__(self, results: FinishedRuns) -> None:
        self._results = results

    def _drawn(self, data: FigureData, condition: int | None = None) -> Figure:
        """Draw data of one condition or, without `condition`, of all of them."""
        from jostle.figures.renderer import render_figure

        return render_figure(self._remarked(data, condition))

    def _remarked(self, data: FigureData, condition: int | None) -> FigureData:
        from jostle.results.figure_files import remarked

        return remarked(self._results, data, condition)

    def _choice(
        self, phase: Keys, flows: Keys, keys: Sequence[str], *, each: bool
    ) -> PlotSelection:
        """Return the selection of a plot over some keys: over `phase`, it has every phase."""
        phases = _several(phase)
        if not phases and any(full_key(self._results, key) == "phase" for key in keys if key):
            phases = tuple(one.name for one in self._results.phases)
        return PlotSelection(phases, _several(flows), each)

    def __call__(
        self,
        condition: int | str | Condition | None = None,
        kind: Literal["series", "jain", "difference"] | None = None,
    ) -> Figure:
        """Draw the default figure.

        Parameters
        ----------
        condition
            Condition of a `series` figure; may be omitted if there is one condition.
        kind
            `series`: stacked time series of one condition. `jain`, `difference`: heat maps of
            fairness and of throughput difference by condition and phase. If absent: `series`
            for one condition, otherwise `jain`.
        """
        from jostle.results import figure_files

        results = self._results
        if kind is None:
            kind = "jain" if condition is None and len(results.conditions) > 1 else "series"
        if kind == "series":
            return self.series(condition=condition)
        return figure_files.jain(results) if kind == "jain" else figure_files.difference(results)

    def series(
        self,
        y: Keys = time_series_data.PANELS,
        *,
        condition: int | str | Condition | None = None,
        flows: Keys = (),
        events: bool = False,
    ) -> Figure:
        """Draw measures over time, one panel each, or with `events` each flow's cwnd and losses.

        Parameters
        ----------
        y
            Measures of flows or links that have a column in the series.
        condition
            Position, label, or (part of) the grid's keys and values.
        flows
            Names of flows or groups; all if empty.
        events
            Draw cwnd of each flow in the first run, with its losses, recoveries and modes.
        """
        at = self._results.condition_index(condition)
        if events:
            from jostle.results.cwnd_events import events_data

            return self._drawn(events_data(self._results, at, _several(flows)), at)
        return self._drawn(
            time_series_data.series_data(self._results, at, _several(y), _several(flows)), at
        )

    def lines(
        self, x: str, y: str, by: Keys = (), *, phase: Keys = (), flows: Keys = (),
        each: bool = False,
    ) -> Figure:  # fmt: skip
        """Draw a measure against a key of the grid, with intervals; see `plot_data.lines_data`."""
        choice = self._choice(phase, flows, (x, *_several(by)), each=each)
        return self._drawn(plot_data.lines_data(self._results, x, y, _several(by), choice))

    def heatmap(
        self, x: str, y: str, by: Keys, *, phase: Keys = (), flows: Keys = (), each: bool = False
    ) -> Figure:
        """Draw a heat map of a measure: columns are values of `x`, rows values of `by`."""
        choice = self._choice(phase, flows, (x, *_several(by)), each=each)
        return self._drawn(plot_data.heat_map_data(self._results, x, y, _several(by), choice))

    def cdf(
        self, y: str, by: Keys = (), *, phase: Keys = (), flows: Keys = (), each: bool = False
    ) -> Figure:
        """Draw distribution functions of a measure; see `plot_data.cdf_data`."""
        choice = self._choice(phase, flows, _several(by), each=each)
        return self._drawn(plot_data.cdf_data(self._results, y, _several(by), choice))

    def box(
        self, y: str, x: str = "", by: Keys = (), *, phase: Keys = (), flows: Keys = (),
        each: bool = False,
    ) -> Figure:  # fmt: skip
        """Draw box plots of a measure over runs and flows, in groups of a key `x`."""
        choice = self._choice(phase, flows, (x, *_several(by)), each=each)
        return self._drawn(plot_data.box_data(self._results, y, x, _several(by), choice))

    def scatter(
        self, x: str = "rtt", y: str = "throughput", by: Keys = ("controller",), *,
        phase: Keys = (), flows: Keys = (),
    ) -> Figure:  # fmt: skip
        """Draw one measure over another, with an ellipse for every controller (or other key)."""
        choice = self._choice(phase, flows, _several(by), each=False)
        return self._drawn(plot_data.scatter_data(self._results, x, y, _several(by), choice))

    def envelope(self, by: Keys = (), *, phase: Keys = (), flows: Keys = ()) -> Figure:
        """Draw the Performance Envelope of each flow; see `plot_data.envelope_data`."""
        choice = self._choice(phase, flows, _several(by), each=True)
        return self._drawn(plot_data.envelope_data(self._results, _several(by), choice))

    def phase(
        self, x: str = "", y: str = "throughput", *,
        condition: int | str | Condition | None = None, flows: Keys = (),
    ) -> Figure:  # fmt: skip
        """Draw the trajectory over time in the plane of two flows (or, with `x`, two measures)."""
        at = self._results.condition_index(condition)
        return self._drawn(phase_data(self._results, at, x, y, _several(flows)), at)

    def rrul(self, *, condition: int | str | Condition | None = None) -> Figure:
        """Draw response under load like flent; see `rrul.rrul_data`."""
        at = self._results.condition_index(condition)
        return self._drawn(load_response.rrul_data(self._results, at), at)

    def time_sequence(
        self, *, condition: int | str | Condition | None = None, flows: Keys = (),
        from_s: float = 0.0, to_s: float = math.inf,
    ) -> Figure:  # fmt: skip
        """Draw each packet of captured TCP flows over time; see `sequences.sequences_data`."""
        at = 0 if self._results.sources else self._results.condition_index(condition)
        several = _several(flows)
        return self._drawn(sequences.sequences_data(self._results, at, several, from_s, to_s), at)


class _Data(Plots):
    """The same methods, but they return the data instead of a drawing."""

    def _drawn(  # type: ignore[override]
        self, data: FigureData, condition: int | None = None
    ) -> FigureData:
        return self._remarked(data, condition)


def data_of(results: FinishedRuns, kind: Kind, given: Mapping[str, object]) -> FigureData:
    """Return the data of a plot; `given` are its method's arguments, without the empty ones."""
    wanted = {name: value for name, value in given.items() if value}
    data: FigureData = getattr(_Data(results), kind.replace("-", "_"))(**wanted)
    return data


def check(
    kind: Kind,
    given: Mapping[str, Keys],
    conditions: Sequence[Condition],
    phases: Sequence[str],
) -> None:
    """Check that a plot can be drawn, before anything runs.

    Raises
    ------
    InputError
        When an argument is missing or not known, or a key, measure or phase is not known.
    """
    wanted = {name: value for name, value in given.items() if value}
    allowed, needed = _ARGUMENTS[kind]
    for name in wanted:
        if name not in allowed:
            raise InputError(f"{kind} has no {_options([name])}; it has {_options(allowed)}")
    missing = [name for name in needed if name not in wanted]
    if missing:
        raise InputError(f"{kind}: give {_options(missing)}{_HINTS.get(kind, '')}")
    for name in _several(wanted.get("y", ())):
        measure(name)
    if "x" in wanted:
        (name,) = _several(wanted["x"])
        measure(name) if kind in ("scatter", "phase") else find_key(conditions, name)
    for name in _several(wanted.get("by", ())):
        find_key(conditions, name)
    for name in _several(wanted.get("phase", ())):
        if name not in phases:
            raise InputError(unknown("phase", name, phases))


_GRID: Final = ("x", "y", "by", "phase", "flows", "each")
_ARGUMENTS: Final[Mapping[Kind, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "series": (("y", "condition", "flows", "events"), ()),
    "lines": (_GRID, ("x", "y")),
    "heatmap": (_GRID, ("x", "y", "by")),
    "cdf": (("y", "by", "phase", "flows", "each"), ("y",)),
    "box": (_GRID, ("y",)),
    "scatter": (("x", "y", "by", "phase", "flows"), ()),
    "envelope": (("by", "phase", "flows"), ()),
    "phase": (("x", "y", "condition", "flows"), ()),
    "rrul": (("condition",), ()),
    "time-sequence": (("condition", "flows", "from_s", "to_s"), ()),
}
"""Allowed and required arguments of each kind."""


_HINTS: Final[Mapping[Kind, str]] = {
    "heatmap": " (--x KEY is the horizontal axis, --group-by KEY the vertical one, "
    "--y MEASURE the colour)",
}
"""Meanings of required arguments of a kind, if their names do not show them."""

_OPTION: Final = {
    "by": "group-by", "each": "per-flow", "flows": "flow", "from_s": "from", "to_s": "to"
}  # fmt: skip


def _options(names: Sequence[str]) -> str:
    return ", ".join(
        f"--{_OPTION.get(name, name)}" for name in names if name not in ("condition", "events")
    )


def _several(names: Keys) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
