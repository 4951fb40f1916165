"""Figures of a study, as data from runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.figures.data import (
    Cloud,
    Curve,
    CurvesData,
    GroupsData,
    HeatMapData,
    Multiples,
    PanelData,
    ScatterData,
    StackedData,
    flow_label,
    stacked,
)
from jostle.figures.data import Line as BandLine
from jostle.results.measures import measure
from jostle.results.number_format import count
from jostle.results.operating_points import DELAY_AXIS, ENVELOPE_CAPTION, RATE_AXIS
from jostle.results.time_series_data import FLOW_PANELS, panels
from jostle.scenario.parsing.quantities import parse_size
from jostle.stats import Estimate, box, ecdf, series_band
from jostle.stats.descriptive import Floats
from jostle.stats.distribution import Box
from jostle.studies.evaluate import value_estimate
from jostle.studies.models import ALL_FLOWS, FigureSpec, ModelCurve, Value
from jostle.studies.models import Curve as CurveSpec
from jostle.studies.published_models import MODELS, quantity
from jostle.studies.runs import Runs
from jostle.studies.time_windows import RunView, TimeWindow

if TYPE_CHECKING:
    import polars as pl

    from jostle.figures.renderer import FigureData

_POINTS: Final = 1000
"""Largest number of points of a distribution function, to limit the size of the page."""
_SINGLE_RUNS: Final = ("representative", "envelopes")
"""Kinds of figures that show one run of each condition."""
_SIZES: Final = tuple(f"{megabytes} MB" for megabytes in range(1, 51))
"""Sizes in a figure of download time over size."""


def figure_data(runs: Runs, figure: FigureSpec) -> FigureData | None:
    """Return the data of a figure; None if the backend ran none of its runs."""
    data = _KINDS[figure.kind](runs, figure)
    if data is None:
        return None
    from jostle.figures.renderer import with_remarks

    failed = {
        name: results.run_counts for name, results in runs.results.items() if results.failures
    }
    said = [f"{name}: {told}" for name, told in failed.items()]
    return with_remarks(data, [*_runs_of(runs, figure), *said])


def _runs_of(runs: Runs, figure: FigureSpec) -> list[str]:
    """Return how many values or runs are behind what a figure shows."""
    if figure.kind in _SINGLE_RUNS:
        return ["One run each"]
    if sizes := _sample_sizes(runs, figure) - {0}:
        low, high = min(sizes), max(sizes)
        return [f"n = {low}" if low == high else f"n = {low} to {high}"]
    chosen = figure.curves or [Value(experiment=figure.experiment, where=figure.where)]
    names = {runs.study.experiment_of(one)[0] for one in chosen if not one.backend}
    found = {
        len(results.runs_of(at))
        for name, results in runs.results.items()
        if name in names
        for at in range(len(results.conditions))
    } - {0}
    if not found:
        return []
    low, high = min(found), max(found)
    return [f"{count(low, 'run') if low == high else f'{low} to {high} runs'} of each condition"]


def _sample_sizes(runs: Runs, figure: FigureSpec) -> set[int]:
    """Return the numbers of values behind the points, bars, boxes or curves of a figure."""
    if figure.kind == "bars":
        return {value_estimate(runs, curve).n for curve in figure.curves}
    if figure.kind == "lines":
        return {
            value_estimate(runs, value).n
            for curve in figure.curves
            for _, value in _along(runs, figure, curve)
        }
    if figure.kind == "boxes":
        every = [runs.per_run(curve) for curve in figure.curves]
        return {len(_finite(values)) for values in every}
    return set()


def _series(runs: Runs, figure: FigureSpec) -> StackedData | None:
    chosen = Value(experiment=figure.experiment, where=figure.where)
    name, _ = runs.study.experiment_of(chosen)
    (condition,) = runs.study.conditions(chosen)
    if name not in runs.results:
        return None
    results = runs.results[name]
    at = runs.position(name, condition)
    if not results.runs_of(at):
        return None
    flows = results.runs_of(at)[0].run.summary["flows"]
    labels = {
        flow["name"]: flow_label(flow)
        for flow in flows
        if not figure.flows or flow["name"] in figure.flows
    }
    series = _while_anything_moves(results.condition_series(at))
    wanted = figure.panels or FLOW_PANELS
    of_flows = [name for name in wanted if name not in ALL_FLOWS]
    data = stacked(series, labels, panels(of_flows))
    shown_s = series["time_s"].to_numpy()
    views = runs.views(name, condition)

    def published(panel: PanelData, shown: str) -> PanelData:
        """Add the published values of a measure to the lines of its panel."""
        # Windows of a megabyte and more are in MB.
        factor = 1e-3 if (panel.unit, measure(shown).display_unit) == ("MB", "kB") else 1.0
        end_s = float(shown_s.max(initial=0.0))
        whose = labels if shown not in ALL_FLOWS else ("",)
        found = [
            tuple(
                (from_s, min(to_s, end_s), factor * number)
                for from_s, to_s, number in runs.published_spans(
                    chosen.model_copy(update={"flow": flow, "measure": shown}), views[0]
                )
                if from_s < end_s
            )
            for flow in whose
        ]
        lines = zip(panel.lines, found, strict=True)
        return replace(panel, lines=tuple(replace(line, published=spans) for line, spans in lines))

    together = tuple(
        PanelData(
            measure(one).heading, measure(one).display_unit or "1", (_line_of(one, views, shown_s),)
        )
        for one in wanted
        if one in ALL_FLOWS
    )
    names = [*of_flows, *(one for one in wanted if one in ALL_FLOWS)]
    rows = zip((*data.panels, *together), names, strict=True)
    shown = tuple(published(panel, one) for panel, one in rows)
    return StackedData(data.title, shown, data.phases, data.runs)


def _representative(runs: Runs, figure: FigureSpec) -> StackedData | None:
    chosen = [(curve, runs.representative(curve)) for curve in figure.curves]
    found = [(curve, view) for curve, view in chosen if view is not None]
    if not found:
        return None

    def line(curve: CurveSpec, view: RunView, panel: str) -> BandLine:
        time_s, values = view.since_start(measure(panel), curve.flow)
        return BandLine(curve.label, time_s, values, values, values)

    rows = tuple(
        PanelData(
            measure(panel).heading,
            measure(panel).display_unit,
            tuple(line(curve, view, panel) for curve, view in found),
        )
        for panel in figure.panels
    )
    return StackedData("", rows, (), 1)


def _while_anything_moves(series: pl.DataFrame) -> pl.DataFrame:
    """Remove the time after the last packet of any run."""
    import polars as pl

    last_s = series.filter(pl.col("throughput_bps") > 0)["time_s"].max()
    return series if last_s is None else series.filter(pl.col("time_s") <= last_s)


def _line_of(name: str, views: Sequence[RunView], shown_s: Floats) -> BandLine:
    """Return a measure of the run in each interval, as mean over runs."""
    ends = np.unique(shown_s)
    whole = TimeWindow(0.0, float(ends.max(initial=0.0)))
    shown = measure(name)
    band = series_band(
        np.array([view.bins(shown, "", whole, None) for view in views]), bounds=shown.bounds
    )
    starts = np.concatenate(([0.0], ends[:-1]))
    return BandLine("all flows", (starts + ends) / 2, band.mean, band.low, band.high)


def _cdf(runs: Runs, figure: FigureSpec) -> CurvesData | None:
    found = []
    for curve in figure.curves:
        by_bin = measure(curve.measure).any_window and curve.bin is not None
        x, share = ecdf(runs.per_bin(curve) if by_bin else runs.per_run(curve))
        # The curve stays below 1 by the share of runs in which the event never occurred.
        x, share = _thinned(x[np.isfinite(x)], share[np.isfinite(x)])
        if x.size:
            none = np.full(x.size, np.nan)
            found.append(Curve(curve.label, x, share, none, none))
    if not found:
        return None
    return CurvesData(measure(figure.curves[0].measure).axis, "Share", tuple(found), steps=True)


def _finite(values: Sequence[float | None]) -> list[float]:
    """Return the values of runs that have one, and in which the event occurred."""
    return [one for one in values if one is not None and np.isfinite(one)]


def _thinned(x: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Reduce a distribution function to visible points, including both ends."""
    if x.size <= _POINTS:
        return x, share
    kept = np.linspace(0, x.size - 1, _POINTS).astype(np.intp)
    return x[kept], share[kept]


def _lines(runs: Runs, figure: FigureSpec) -> CurvesData | None:
    found = []
    for curve in figure.curves:
        points = [
            (x, estimate)
            for x, value in _along(runs, figure, curve)
            if (estimate := value_estimate(runs, value)).finite is not None
        ]
        if points:
            points.sort(key=lambda point: point[0])
            found.append(_with_published(runs, figure, curve, _curve(curve.label, points)))
    if not found:
        return None
    # Draw formulas only together with runs.
    at = [one.x for one in found]
    found += [_of_model(one, np.unique(np.concatenate(at))) for one in figure.models]
    names: tuple[str, ...] = ()
    if figure.x_scale == "even":
        names = tuple(runs.study.labels(figure.curves[0], figure.x))
    return CurvesData(
        figure.x_label or figure.x,
        measure(figure.curves[0].measure).axis,
        tuple(found),
        log_x=figure.x_scale == "log",
        x_names=names,
        y_limits=measure(figure.curves[0].measure).axis_limits,
    )


def _along(runs: Runs, figure: FigureSpec, curve: CurveSpec) -> list[tuple[float, Value]]:
    """Return the values of a curve along the x axis."""
    name, experiment = runs.study.experiment_of(curve)
    if figure.x not in experiment.keys:
        return [
            (parse_size(size) * 1e-6, curve.model_copy(update={"size": size})) for size in _SIZES
        ]
    labels = runs.study.labels_of(name, figure.x)
    return [
        (
            float(place) if figure.x_scale == "even" else leading_number(label),
            curve.model_copy(update={"where": where}),
        )
        for place, label in enumerate(labels)
        if runs.study.conditions(
            curve.model_copy(update={"where": (where := {**curve.where, figure.x: label})})
        )
    ]


def _with_published(runs: Runs, figure: FigureSpec, curve: CurveSpec, drawn: Curve) -> Curve:
    """Add the published values at the points of a curve."""
    found = {x: runs.published.of(value) for x, value in _along(runs, figure, curve)}
    at = [found.get(float(x)) for x in drawn.x]
    if all(one is None for one in at):
        return drawn
    return replace(drawn, published=np.array([np.nan if one is None else one for one in at]))


def leading_number(label: str) -> float:
    """Return the number at the start of a label: 40 for `40 ms`; NaN if there is none."""
    try:
        return float(label.split(maxsplit=1)[0])
    except (ValueError, IndexError):
        return float("nan")


def _curve(label: str, points: list[tuple[float, Estimate]]) -> Curve:
    def column(values: list[float | None]) -> Floats:
        return np.array([np.nan if one is None else one for one in values])

    estimates = [estimate for _, estimate in points]
    return Curve(
        label,
        np.array([x for x, _ in points]),
        column([one.value for one in estimates]),
        column([one.low for one in estimates]),
        column([one.high for one in estimates]),
    )


def _of_model(model: ModelCurve, ends: Floats) -> Curve:
    """Return a formula's curve over the range of the runs' curves."""
    x = np.unique(np.concatenate((ends, np.geomspace(ends.min(), ends.max(), 60))))
    given = {name: quantity(model.model, name, one) for name, one in model.parameters.items()}
    y = np.array([MODELS[model.model].value(**given, **{model.x: float(one)}) for one in x])
    none = np.full(x.size, np.nan)
    return Curve(model.label, x, y, none, none)


def _groups(runs: Runs, figure: FigureSpec) -> GroupsData | None:
    names = figure.groups or ("",)
    per_group = len(figure.curves) // len(names)
    bars = figure.kind == "bars"
    found = [
        _bar(runs, curve) if bars else box(_finite(runs.per_run(curve))) for curve in figure.curves
    ]
    if not any(found):
        return None
    rows = tuple(tuple(found[at * per_group : (at + 1) * per_group]) for at in range(len(names)))
    labels = tuple(curve.label for curve in figure.curves[:per_group])
    shown = measure(figure.curves[0].measure)
    published = [runs.published.of(curve) for curve in figure.curves]
    return GroupsData(
        shown.axis,
        names,
        labels,
        rows,
        bars,
        y_limits=shown.axis_limits,
        published=tuple(
            tuple(published[at * per_group : (at + 1) * per_group]) for at in range(len(names))
        ),
    )


def _envelopes(runs: Runs, figure: FigureSpec) -> Multiples | None:
    names = figure.groups or ("",)
    per_group = len(figure.curves) // len(names)
    parts = []
    for at, name in enumerate(names):
        clouds = []
        for curve in figure.curves[at * per_group : (at + 1) * per_group]:
            (condition,) = runs.study.conditions(curve)
            for one in runs.points(curve, condition)[:1]:
                clouds.append(Cloud(curve.label, one.delay, one.throughput, one.envelope))
        if clouds:
            parts.append((name, ScatterData(DELAY_AXIS, RATE_AXIS, tuple(clouds))))
    return Multiples(tuple(parts), ENVELOPE_CAPTION) if parts else None


def _bar(runs: Runs, value: Value) -> Box | None:
    """Return mean and interval in the form of a box."""
    found = value_estimate(runs, value)
    if found.value is None or found.never:
        return None
    low = np.nan if found.low is None else found.low
    high = np.nan if found.high is None else found.high
    return Box(low, found.value, found.value, found.value, high, found.value, np.array([]))


def _heat_map(runs: Runs, figure: FigureSpec) -> Multiples | HeatMapData | None:
    """Return a heat map of one measure; several curves have a map each, on the same scale."""
    made = [(curve, _heat(runs, figure, curve)) for curve in figure.curves]
    found = [(curve, data) for curve, data in made if data is not None]
    if not found:
        return None
    if len(figure.curves) == 1:
        return found[0][1]
    shown = measure(figure.curves[0].measure)
    lowest = min(data.lowest for _, data in found)
    highest = max(data.highest for _, data in found)
    return Multiples(
        tuple(
            (curve.label, replace(data, quantity=shown.heading, lowest=lowest, highest=highest))
            for curve, data in found
        )
    )


def _heat(runs: Runs, figure: FigureSpec, curve: CurveSpec) -> HeatMapData | None:
    name, _ = runs.study.experiment_of(curve)
    if name not in runs.results and not curve.backend:
        return None
    rows = tuple(runs.study.labels_of(name, figure.rows))
    by_window = figure.columns == "window"
    columns = figure.windows if by_window else runs.study.labels_of(name, figure.columns)

    def cell(row: str, column: str) -> Value:
        where = {**curve.where, figure.rows: row}
        change: dict[str, object] = {
            "where": where if by_window else {**where, figure.columns: column}
        }
        if by_window:
            change["window"] = column
        return curve.model_copy(update=change)

    def table(number: Callable[[Value], float | None]) -> Floats:
        found = [[number(cell(row, column)) for column in columns] for row in rows]
        return np.array(found, dtype=np.float64)

    values = table(lambda one: value_estimate(runs, one).finite)
    ran = ~np.all(np.isnan(values), axis=1)
    if not ran.any():
        return None
    published = table(runs.published.of)
    # Omit rows without any runs.
    rows = tuple(row for row, there in zip(rows, ran.tolist(), strict=True) if there)
    values, published = values[ran], published[ran]
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if measure(curve.measure).place == "pairs" and measure(curve.measure).bounds == (0.0, 1.0):
        # Use the same colour scale for conformance in every figure.
        low, high = 0.0, 1.0
    if figure.diverging:
        high = max(abs(low), abs(high)) or 1.0
        low = -high
    elif low == high:
        high = low + 1.0
    return HeatMapData(
        quantity=curve.label,
        unit="×" if curve.relative_to else measure(curve.measure).display_unit,
        rows=tuple(rows),
        columns=tuple(columns),
        values=values,
        lowest=low,
        highest=high,
        diverging=figure.diverging,
        ends=("less", "more"),
        row_label=figure.row_label,
        column_label=figure.column_label,
        published=None if np.isnan(published).all() else published,
        caption="" if np.isnan(published).all() else "In brackets: published.",
    )


_KINDS: Final[Mapping[str, Callable[[Runs, FigureSpec], FigureData | None]]] = {
    "series": _series,
    "representative": _representative,
    "heat_map": _heat_map,
    "cdf": _cdf,
    "lines": _lines,
    "envelopes": _envelopes,
    "boxes": _groups,
    "bars": _groups,
}
