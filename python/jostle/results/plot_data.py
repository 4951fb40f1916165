"""Data of plots over a grid: lines, heat maps, distributions, boxes and scatter plots.

Samples that differ in a key that was not requested are never pooled; they get separate charts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.errors import InputError, unknown
from jostle.figures.data import (
    FEWEST_IN_A_BOX,
    Chart,
    Cloud,
    Curve,
    CurvesData,
    GroupsData,
    HeatMapData,
    Multiples,
    ScatterData,
)
from jostle.results.compared_phase import OVERALL
from jostle.results.condition_names import short_names
from jostle.results.grid_axis import Axis, key_name, without_unit
from jostle.results.measure_samples import OWN_KEYS, MeasureSample, grid_keys, key_of, samples
from jostle.results.measures import Measure, measure
from jostle.results.operating_points import (
    DELAY_AXIS,
    ENVELOPE_CAPTION,
    RATE_AXIS,
    operating_points,
)
from jostle.results.pivot import facet_title, facets
from jostle.results.plot_captions import interval_caption, per_flow, runs_caption
from jostle.results.sample_maps import axes_of, map_data, scattered
from jostle.stats import box, ecdf, envelope, estimate, sigma_ellipse

if TYPE_CHECKING:
    import polars as pl

    from jostle.results.finished_runs import FinishedRuns
    from jostle.stats.descriptive import Floats
    from jostle.stats.distribution import Box

_FROM_ZERO: Final = 0.5
"""Ratio of the smallest to the largest value below which an axis of boxes begins at 0."""

_OF_ACKS: Final = {"rtt": "rtt_s", "segment_rtt": "segment_rtt_s"}
"""Columns of the per-ACK record, by the measure of a flow."""
_MOST_POINTS: Final = 5000
"""Largest number of points drawn of a distribution function."""

_DEFAULT_PHASES: Final = (OVERALL,)


@dataclass(frozen=True)
class PlotSelection:
    """Selection of runs for a plot.

    Attributes
    ----------
    phases
        Names of phases; the complete run if empty.
    flows
        Names of flows, groups or links; all if empty.
    each
        Whether each flow of an entry with `count` is shown separately.
    """

    phases: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    each: bool = False

    def samples(self, results: FinishedRuns, wanted: Measure) -> list[MeasureSample]:
        """Return the selected samples of a measure.

        Raises
        ------
        InputError
            When the selection has no sample.
        """
        return with_value(results, self.expected(results, wanted), wanted)

    def expected(self, results: FinishedRuns, wanted: Measure) -> list[MeasureSample]:
        """Return the selected samples, and conditions in which no run has a value.

        A flow that has a value in no condition is left out, unless it should have finished.
        """
        found = samples(results, wanted, self.phases or _DEFAULT_PHASES, each=self.each)
        if self.flows and wanted.scope != "run":
            known = {sample.place[wanted.scope] for sample in found}
            known |= {sample.group for sample in found}
            for name in self.flows:
                if name not in known:
                    raise InputError(unknown(wanted.scope, name, sorted(known)))
            found = [
                sample
                for sample in found
                if {sample.place[wanted.scope], sample.group} & set(self.flows)
            ]
        known = {s.place.get(wanted.scope, "") for s in found if _has_value(s)}
        return [
            sample
            for sample in found
            if sample.place.get(wanted.scope, "") in known
            or (sample.finish is not None and sample.finish.unfinished)
        ]


def with_value(
    results: FinishedRuns, found: Sequence[MeasureSample], wanted: Measure
) -> list[MeasureSample]:
    """Return the samples that have a value.

    Raises
    ------
    InputError
        When none has.
    """
    present = [sample for sample in found if _has_value(sample)]
    if not present:
        if not results.results:
            raise results.unfinished_error("nothing to draw: ")
        failed = f" ({results.run_counts})" if results.failures else ""
        raise InputError(f"nothing to draw: no run has a `{wanted.name}` there{failed}")
    return present


def _has_value(sample: MeasureSample) -> bool:
    return any(value is not None for value in sample.values)


def lines_data(
    results: FinishedRuns,
    x: str,
    y: str,
    by: Sequence[str] = (),
    choice: PlotSelection | None = None,
) -> Multiples:
    """Return a measure over a key of the grid, with the confidence interval of every point.

    Parameters
    ----------
    results
        The runs.
    x
        A key. Its values are placed by number if they are numbers.
    y
        The measure.
    by
        Keys whose values have a line each; if empty, the flows if there are several.
    choice
        Selection of runs.

    Raises
    ------
    InputError
        When a key, measure, phase or flow is not known.
    """
    wanted = measure(y)
    every = (choice or PlotSelection()).expected(results, wanted)
    found = with_value(results, every, wanted)
    key = key_of(results, found, x)
    lines = _keys(results, found, by, (key,))
    axis = Axis.of(results, key, [sample.place.get(key, "") for sample in found])
    parts = []
    others = [other for other in grid_keys(results) if other != key]
    for place, part in facets(found, (key, *lines)):
        groups = _by_label(results, part, lines)
        curves = [_curve(results, label, members, key, axis) for label, members in groups]
        # Sampled keys change together from point to point, so points are not joined by lines. A key
        # that is constant within each curve does not count: `controller` has its own grid key.
        alone = bool(axis.names) or all(
            len({sample.place.get(other) for sample in members}) == 1
            for _, members in groups
            for other in others
        )
        data = CurvesData(
            axis.label, wanted.axis, tuple(curves), log_x=axis.log, x_names=axis.names,
            joined=alone, y_limits=wanted.axis_limits,
        )  # fmt: skip
        parts.append((facet_title(place), data))
    return Multiples(tuple(parts), interval_caption(found, every))


def heat_map_data(
    results: FinishedRuns, x: str, y: str, by: Sequence[str], choice: PlotSelection | None = None
) -> Multiples:
    """Return a heat map of a measure: columns are values of `x`, rows values of `by`."""
    wanted = measure(y)
    found = (choice or PlotSelection()).expected(results, wanted)
    present = with_value(results, found, wanted)
    if len(by) != 1:
        raise InputError("a heat map has one key of columns (x) and one of rows (by)")
    column, row = key_of(results, found, x), key_of(results, found, by[0])
    if column == row:
        raise InputError(f"rows and columns are both `{row}`: choose two keys")
    parts = facets(found, (column, row))
    columns, rows = (
        tuple(dict.fromkeys(sample.place.get(key, "") for sample in found)) for key in (column, row)
    )
    means = {
        (at, s.place.get(row, ""), s.place.get(column, "")): _mean(s) * wanted.factor
        for at, (_, part) in enumerate(parts)
        for s in part
        if _has_value(s)
    }
    failed = {
        (at, s.place.get(row, ""), s.place.get(column, "")): _incomplete(results, [s])
        for at, (_, part) in enumerate(parts)
        for s in part
    }
    low, high = min(means.values()), max(means.values())
    diverging = wanted.is_balance and low < 0 < high
    if diverging:
        high = max(abs(low), abs(high))
        low = -high
    elif low == high:
        high = low + 1.0
    row_names, row_label = without_unit(rows, key_name(results, row))
    column_names, column_label = without_unit(columns, key_name(results, column))
    made: list[tuple[str, Chart]] = []
    axes = axes_of(results, (column, row), (columns, rows))
    if scattered(axes, {(s.place.get(column, ""), s.place.get(row, "")) for s in found}):
        for at, (place, _) in enumerate(parts):
            here = {(c, r): value for (part, r, c), value in means.items() if part == at}
            data = map_data(axes, wanted, here, (low, high, diverging))
            texts = tuple(failed[at, r, c] for c, r in here)
            made.append((facet_title(place), replace(data, incomplete=texts)))
        near = " Between points: the nearest one."
        return Multiples(tuple(made), f"{runs_caption(present, found)}{per_flow(present)}{near}")
    for at, (place, _) in enumerate(parts):
        values = np.array([[means.get((at, r, c), np.nan) for c in columns] for r in rows])
        made.append(
            (
                facet_title(place),
                HeatMapData(
                    wanted.heading, wanted.display_unit, row_names, column_names, values, low, high,
                    diverging, ("less", "more"), row_label, column_label,
                    incomplete=tuple(
                        tuple(failed.get((at, r, c), "") for c in columns) for r in rows
                    ),
                ),
            )
        )  # fmt: skip
    return Multiples(tuple(made), f"{runs_caption(present, found)}{per_flow(present)}")


def box_data(
    results: FinishedRuns,
    y: str,
    x: str = "",
    by: Sequence[str] = (),
    choice: PlotSelection | None = None,
) -> Multiples:
    """Return boxes of the values of runs and of groups' flows, side by side for each `x`."""
    wanted = measure(y)
    expected = (choice or PlotSelection()).expected(results, wanted)
    found = with_value(results, expected, wanted)
    key = key_of(results, found, x) if x else ""
    inner = _keys(results, found, by, (key,))
    parts = []
    every = _values(found)
    from_zero = bool(np.nanmin(every) < _FROM_ZERO * np.nanmax(every))
    labels = [label for label, _ in _by_label(results, found, inner)]
    names = list(dict.fromkeys(s.place.get(key, "") for s in expected)) if key else [""]
    for place, part in facets(found, tuple(k for k in (key, *inner) if k)):
        by_place = {
            (name, label): (box(_values(members) * wanted.factor), _incomplete(results, members))
            for name in names
            for label, members in _by_label(
                results, [s for s in part if not key or s.place.get(key, "") == name], inner
            )
        }
        cells = [[by_place.get((name, label), (None, "")) for label in labels] for name in names]
        parts.append(
            (
                facet_title(place),
                GroupsData(
                    wanted.axis, tuple(names), tuple(labels),
                    tuple(tuple(one for one, _ in row) for row in cells), from_zero=from_zero,
                    y_limits=wanted.axis_limits,
                    incomplete=tuple(tuple(text for _, text in row) for row in cells),
                ),
            )
        )  # fmt: skip
    boxes = [one for _, part in parts for row in part.boxes for one in row if one is not None]
    return Multiples(tuple(parts), f"{runs_caption(found, expected)} {_box_marks(boxes)}")


def _box_marks(boxes: Sequence[Box]) -> str:
    """Explain the marks of boxes, and of the points that replace boxes of few values."""
    sizes = {one.values.size for one in boxes}
    if max(sizes) < FEWEST_IN_A_BOX:
        return "Circle: a value. Cross: mean."
    marks = "Box: quartiles and median. Cross: mean. Circles: outliers."
    if min(sizes) < FEWEST_IN_A_BOX:
        marks += f" Fewer than {FEWEST_IN_A_BOX} values: circles only."
    return marks


def cdf_data(
    results: FinishedRuns, y: str, by: Sequence[str] = (), choice: PlotSelection | None = None
) -> Multiples:
    """Return distribution functions over ACKs, sampling intervals, or runs and flows.

    RTTs of all ACKs within the phase are used if every run recorded its ACKs (`record = "acks"`).
    Other measures with a column in the series have a value per sampling interval. The remaining
    ones have a value per run, and per flow of a group. The caption names the case. At most a few
    thousand points are drawn, evenly spaced in the share.
    """
    wanted = measure(y)
    choice = choice or PlotSelection()
    expected = choice.expected(results, wanted)
    found = with_value(results, expected, wanted)
    inner = _keys(results, found, by, ())
    over_time = wanted.column is not None and wanted.scope != "run"
    per_ack = wanted.name in _OF_ACKS and all(r.run.acks is not None for r in results.results)
    take = _acks if per_ack else _bins
    parts = []
    for place, part in facets(found, inner):
        curves = []
        for label, members in _by_label(results, part, inner):
            sample = (
                np.concatenate([take(results, one, wanted) for one in members])
                if over_time
                else _values(members)
            )
            values, share = ecdf(sample * wanted.factor)
            if wanted.is_of_finished:
                share = _share_of_all(share, sample.size, wanted)
            x, share = _thinned(values, share)
            if x.size:
                none = np.full(x.size, np.nan)
                texts = (_incomplete(results, members),) * x.size
                curves.append(Curve(label, x, share, none, none, incomplete=texts))
        parts.append(
            (facet_title(place), CurvesData(wanted.axis, "Share", tuple(curves), steps=True))
        )
    what = "runs and flows"
    if over_time:
        what = "ACKs" if per_ack else "intervals of the series, each with its mean"
    hint = ' (record = "acks" records every ACK)' if wanted.name in _OF_ACKS and not per_ack else ""
    extreme = "smallest" if wanted.is_least_if_unfinished else "largest"
    rest = f"the others, which count as the {extreme}," if wanted.is_of_finished else "the others"
    runs = runs_caption(found, [] if over_time else expected, rest=rest)
    return Multiples(tuple(parts), f"Of all {what}{hint}. {runs}")


def _share_of_all(share: Floats, total: int, wanted: Measure) -> Floats:
    """Count what did not finish in the shares of a distribution function, at its upper end.

    Rates of what did not finish are at the lower end.
    """
    missing = total - share.size
    below = missing if wanted.is_least_if_unfinished else 0
    found: Floats = (share * share.size + below) / max(total, 1)
    return found


def _thinned(x: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Remove points of a distribution function that a figure cannot resolve."""
    if x.size <= _MOST_POINTS:
        return x, share
    kept = np.unique(np.linspace(0, x.size - 1, _MOST_POINTS).round().astype(np.int64))
    return x[kept], share[kept]


def scatter_data(
    results: FinishedRuns,
    x: str = "rtt",
    y: str = "throughput",
    by: Sequence[str] = ("controller",),
    choice: PlotSelection | None = None,
) -> Multiples:
    """Return one measure over another: a point per run and flow, an ellipse per `by`."""
    across, up = measure(x), measure(y)
    if across.scope != up.scope:
        raise InputError(f"`{x}` is of each {across.scope} and `{y}` of each {up.scope}")
    choice = choice or PlotSelection()
    expected = choice.expected(results, up)
    found = with_value(results, expected, up)
    other = {_identity(s): s for s in choice.samples(results, across)}
    inner = _keys(results, found, by, ())
    parts = []
    for place, part in facets(found, (*inner, *_pooled(inner))):
        clouds = []
        for label, members in _by_label(results, part, inner):
            pairs = [(other[_identity(s)], s) for s in members if _identity(s) in other]
            if pairs:
                xs = _values([s for s, _ in pairs]) * across.factor
                ys = _values([s for _, s in pairs]) * up.factor
                failed = _incomplete(results, members)
                clouds.append(Cloud(label, xs, ys, sigma_ellipse(xs, ys), incomplete=failed))
        reverse = across.unit == "s"
        parts.append(
            (facet_title(place), ScatterData(across.axis, up.axis, tuple(clouds), reverse))
        )
    around = any(cloud.around for _, part in parts for cloud in part.clouds)
    words = "; ellipses: one standard deviation around their mean" if around else ""
    caption = f"A point for every run and flow{words}. {runs_caption(found, expected)}"
    return Multiples(tuple(parts), caption)


def envelope_data(
    results: FinishedRuns, by: Sequence[str] = (), choice: PlotSelection | None = None
) -> Multiples:
    """Return operating points of flows and their Performance Envelopes.

    Points are from the first run of each condition, relative to the path's base RTT and rate.
    `by` and `choice` are as in `lines_data`. Without a phase, points are from 95 % of each flow's
    lifetime.
    """
    choice = choice or PlotSelection()
    found = PlotSelection(choice.phases, choice.flows, each=True).samples(
        results, measure("throughput")
    )
    inner = _keys(results, found, by, ())
    parts = []
    for place, part in facets(found, inner):
        clouds = []
        for label, members in _by_label(results, part, inner):
            points = [
                operating_points(
                    results.runs_of(one.condition)[0].run,
                    one.place["flow"],
                    one.place["phase"] if choice.phases else "",
                )
                for one in members
            ]
            x = np.concatenate([one.delay for one in points])
            y = np.concatenate([one.throughput for one in points])
            failed = _incomplete(results, members)
            clouds.append(Cloud(label, x, y, envelope(x, y), incomplete=failed))
        parts.append((facet_title(place), ScatterData(DELAY_AXIS, RATE_AXIS, tuple(clouds))))
    return Multiples(tuple(parts), f"{ENVELOPE_CAPTION} First run of each condition.")


def _pooled(inner: Sequence[str]) -> tuple[str, ...]:
    """Return the keys to pool: flows of one controller form one cloud."""
    return ("flow",) if "controller" in inner else ()


def _keys(
    results: FinishedRuns, found: Sequence[MeasureSample], by: Sequence[str], taken: Sequence[str]
) -> tuple[str, ...]:
    """Return the keys with a line each: the requested ones, or else flow or link if several."""
    if by:
        return tuple(key_of(results, found, key) for key in by)
    own = [key for key in ("flow", "link") if len({s.place.get(key) for s in found}) > 1]
    if own:
        return tuple(key for key in own if key not in taken)
    varying = [k for k in grid_keys(results) if k not in taken and not _follows(found, k, taken)]
    return tuple(k for k in varying if len({s.place.get(k) for s in found}) > 1)[:1]


def _follows(found: Sequence[MeasureSample], key: str, taken: Sequence[str]) -> bool:
    """Return whether the values of `taken` determine the value of a key, as for sampled keys."""
    values: dict[tuple[str | None, ...], str | None] = {}
    places = [(tuple(s.place.get(k) for k in taken), s.place.get(key)) for s in found]
    return any(taken) and all(values.setdefault(at, value) == value for at, value in places)


def _by_label(
    results: FinishedRuns, found: Iterable[MeasureSample], keys: Sequence[str]
) -> list[tuple[str, list[MeasureSample]]]:
    """Group samples by the values of some keys, and label each group with them."""
    short = short_names(grid_keys(results))
    parts: dict[str, list[MeasureSample]] = {}
    for sample in found:
        words = [
            value if len(keys) == 1 or key in OWN_KEYS else f"{short.get(key, key)} {value}"
            for key in keys
            if (value := sample.place.get(key, ""))
        ]
        parts.setdefault(", ".join(words), []).append(sample)
    return list(parts.items())


def _incomplete(results: FinishedRuns, members: Iterable[MeasureSample]) -> str:
    """Return how many runs of the samples' conditions failed, and why; empty if none did."""
    return results.incomplete(*dict.fromkeys(sample.condition for sample in members))


def _curve(
    results: FinishedRuns, label: str, members: Sequence[MeasureSample], key: str, axis: Axis
) -> Curve:
    points: dict[float, list[float | None]] = {}
    at: dict[float, list[MeasureSample]] = {}
    for sample in members:
        x = axis.places[sample.place.get(key, "")]
        points.setdefault(x, []).extend(sample.values)
        at.setdefault(x, []).append(sample)
    shown = members[0].measure
    xs = sorted(points)
    found = [estimate(points[x], shown.unit, bounds=members[0].bounds) for x in xs]

    def column(values: Iterable[float | None]) -> Floats:
        return np.array([np.nan if v is None else v * shown.factor for v in values])

    return Curve(
        label,
        np.array(xs),
        column(one.value for one in found),
        column(one.low for one in found),
        column(one.high for one in found),
        incomplete=tuple(_incomplete(results, at[x]) for x in xs),
    )


def _mean(sample: MeasureSample) -> float:
    present = [value for value in sample.values if value is not None]
    return sum(present) / len(present)


def _values(members: Sequence[MeasureSample]) -> Floats:
    """Return the values of all flows and runs."""
    return np.array(
        [np.nan if v is None else v for sample in members for run in sample.flows for v in run],
        dtype=np.float64,
    )


def _identity(sample: MeasureSample) -> tuple[object, ...]:
    return (sample.condition, *sample.place.items())


def _bins(results: FinishedRuns, sample: MeasureSample, wanted: Measure) -> Floats:
    """Return the values of all sampling intervals that end within the phase, of all runs."""
    import polars as pl

    assert wanted.column is not None
    found = []
    for result in results.runs_of(sample.condition):
        frame = result.run.links if wanted.scope == "link" else result.run.flows
        rows = frame.filter(_within(results, sample) & _alike(sample, wanted))
        found.append(rows[wanted.column].cast(pl.Float64).fill_null(np.nan).to_numpy())
    return np.concatenate(found)


def _acks(results: FinishedRuns, sample: MeasureSample, wanted: Measure) -> Floats:
    """Return the RTTs of all ACKs that arrived within the phase, of all runs; NaN without RTT."""
    import polars as pl

    found = []
    for result in results.runs_of(sample.condition):
        assert result.run.acks is not None
        rows = result.run.acks.filter(_within(results, sample) & _alike(sample, wanted))
        found.append(rows[_OF_ACKS[wanted.name]].cast(pl.Float64).fill_null(np.nan).to_numpy())
    return np.concatenate(found)


def _within(results: FinishedRuns, sample: MeasureSample) -> pl.Expr:
    import polars as pl

    phases = {phase.name: phase for phase in results.phases_of(sample.condition)}
    window = phases[sample.place.get("phase", OVERALL)]
    return (pl.col("time_s") > window.from_s) & (pl.col("time_s") <= window.to_s + 1e-9)


def _alike(sample: MeasureSample, wanted: Measure) -> pl.Expr:
    """Return an expression that selects the rows of a flow, group or link."""
    import polars as pl

    name, who = sample.place[wanted.scope], pl.col(wanted.scope)
    return (who == name) | who.str.contains(rf"^{re.escape(name)}-[1-9]\d*$")
