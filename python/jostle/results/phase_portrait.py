"""Data of phase portraits: the trajectory of two quantities over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jostle.errors import InputError
from jostle.figures.data import Cloud, ScatterData
from jostle.results.measures import Measure, measure

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns


def phase_data(
    results: FinishedRuns,
    condition: int,
    x: str = "",
    y: str = "throughput",
    flows: Sequence[str] = (),
) -> ScatterData:
    """Return the trajectory of two quantities over time, as means over runs.

    Without `x`, the axes are the measure of two flows, as in Chiu and Jain's figure of
    convergence: the first two flows, or the given `flows`. With `x`, the axes are `x` and `y` of
    every flow.
    """
    from jostle.results.time_series_data import series_data

    if x:
        data = series_data(results, condition, (x, y), flows)
        across, up = data.panels
        clouds = tuple(
            Cloud(a.label, a.mean, b.mean, None, path=True)
            for a, b in zip(across.lines, up.lines, strict=True)
        )
        axes = (_axis_of(measure(x), across.unit), _axis_of(measure(y), up.unit))
        return ScatterData(*axes, clouds, caption=_path_caption(results, condition))
    data = series_data(results, condition, (y,), flows)
    (panel,) = data.panels
    if len(panel.lines) < 2:
        raise InputError("a phase portrait of flows needs two: give --x MEASURE for one alone")
    first, second = panel.lines[:2]
    cloud = Cloud("", first.mean, second.mean, None, path=True)
    axis = _axis_of(measure(y), panel.unit)
    return ScatterData(
        f"{axis}\nof {first.label}", f"{axis}\nof {second.label}", (cloud,), diagonal=True,
        caption=_path_caption(results, condition) + " Dashed: both have the same.",
    )  # fmt: skip


def _axis_of(shown: Measure, unit: str) -> str:
    return f"{shown.heading} ({unit})" if unit else shown.heading


def _path_caption(results: FinishedRuns, condition: int) -> str:
    runs = len(results.runs_of(condition))
    what = "one run" if runs == 1 else f"mean over {runs} runs"
    return f"Over time, to the mark at the end; {what}."
