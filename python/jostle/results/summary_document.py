"""The summary document, `jostle.summary/3`: all runs, and estimates for each condition."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from jostle.backends import lateness
from jostle.results.measures import Measure, measures

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.results.finished_runs import ConditionRun, FinishedRuns
    from jostle.results.harm import Harms

SCHEMA: Final = "jostle.summary/3"

_LISTS: Final = ("flows", "groups", "links")
_TABLES: Final = ("fairness", "totals")
_FACTS: Final = ("name", "group", "flows", "transport", "controller")
"""Keys of an entry that are not measures."""
_PERCENTS: Final = (50, 95, 99)
"""Percentiles over runs."""


def document(results: FinishedRuns, phases: Sequence[str] = ()) -> dict[str, Any]:
    """Return finished runs as plain data.

    Parameters
    ----------
    results
        The runs.
    phases
        Names of the phases to include; all of them if empty.

    Returns
    -------
    dict
        For each condition its runs, and `estimates`: a copy of a run in which each measure is
        replaced by mean, low, high (null for fewer than two values) and n. Completion times also
        have p50, p95 and p99 over the runs; an unfinished transfer counts as the longest. If a
        condition without a newcomer exists, a flow has `harm` next to its measures, and that
        condition is `alone`. `failures` has seed and error of each failed run, and `incomplete`
        says how many failed and why (null if none did): then estimates are of the other runs only.
    """
    from jostle.results.harm import Harms

    harms = Harms(results)
    return {
        "schema": SCHEMA,
        "title": results.title,
        "backend": results.backend,
        "conditions": [
            {
                "condition": condition,
                "incomplete": results.incomplete(index) or None,
                "failures": [
                    {"seed": failure.seed, "error": failure.error}
                    for failure in results.failures
                    if failure.condition == index
                ],
                "runs": [_run(result, phases) for result in results.runs_of(index)],
                "estimates": _estimates(results, index, phases, harms),
            }
            for index, condition in enumerate(results.conditions)
        ],
    }


def _run(result: ConditionRun, phases: Sequence[str]) -> dict[str, Any]:
    summary = result.run.summary
    found: dict[str, Any] = {"seed": result.seed, "run_id": result.run.run_id}
    if lateness.KEY in summary:
        found[lateness.KEY] = summary[lateness.KEY]
    for part in _LISTS:
        if part in summary:
            found[part] = [
                {**entry, "phases": _chosen(entry["phases"], phases)} for entry in summary[part]
            ]
    return found | {part: _chosen(summary[part], phases) for part in _TABLES}


def _chosen(by_phase: Mapping[str, Any], phases: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in by_phase.items() if not phases or name in phases}


def _estimates(
    results: FinishedRuns, index: int, phases: Sequence[str], harms: Harms
) -> dict[str, Any] | None:
    """Return a copy of a run with estimates instead of numbers; None if no run finished."""
    runs = results.runs_of(index)
    if not runs:
        return None
    every = [_run(result, phases) for result in runs]
    columns = _Columns(results.spec_of(index))
    found: dict[str, Any] = {}
    for part in (one for one in _LISTS if all(one in run for run in every)):
        found[part] = []
        for at, first in enumerate(every[0][part]):
            entries = [run[part][at] for run in every]
            whole = columns.add(entries, part, whole=True)
            found[part].append(
                {key: first[key] for key in _FACTS if key in first}
                | whole
                | {
                    "phases": {
                        name: columns.add([one["phases"][name] for one in entries], part)
                        for name in first["phases"]
                    }
                }
            )
    for part in _TABLES:
        found[part] = {
            name: columns.add([run[part][name] for run in every], part) for name in every[0][part]
        }
    columns.fill()
    alone = harms.alone(index)
    if alone is not None:
        found["alone"] = results.conditions[alone]
        _add_harm(found["flows"], harms, index, results.flow_names(alone))
    return found


def _add_harm(
    flows: Sequence[dict[str, Any]], harms: Harms, index: int, names: Sequence[str]
) -> None:
    """Add harm to the measures of the flows that the condition without newcomer has, too."""
    from jostle.stats import estimate

    rate, harm = measures()["throughput"], measures()["harm"]
    for flow in flows:
        for phase, into in flow["phases"].items() if flow["name"] in names else ():
            by_seed = harms.by_seed(rate, phase, (flow["name"],), index)
            found = estimate([run[0] for run in by_seed.values()], harm.unit, bounds=harm.bounds)
            into["harm"] = {
                "mean": found.value, "low": found.low, "high": found.high, "n": found.n
            }  # fmt: skip


class _Columns:
    """Values of all measures of a condition, estimated at once because runs may have many flows."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._values: list[list[float]] = []
        self._measures: list[Measure] = []
        self._into: list[dict[str, Any]] = []
        self._completions: list[tuple[list[float | None], dict[str, Any]]] = []

    def add(
        self, entries: Sequence[Mapping[str, Any]], part: str, *, whole: bool = False
    ) -> dict[str, dict[str, Any]]:
        """Collect the measures of entries, one entry per run; `fill` completes the result."""
        found: dict[str, dict[str, Any]] = {}
        for wanted in _measures(part, whole):
            if not any(wanted.key in entry for entry in entries):
                continue
            values = [entry.get(wanted.key) for entry in entries]
            self._values.append([float("nan") if v is None else float(v) for v in values])
            self._measures.append(wanted)
            found[wanted.key] = {}
            self._into.append(found[wanted.key])
            if wanted.name == "completion_time":
                self._completions.append((values, found[wanted.key]))
        return found

    def fill(self) -> None:
        """Estimate all collected values."""
        import numpy as np

        from jostle.stats import percentile_estimate, series_band

        if not self._values:
            return
        band = series_band(np.array(self._values).T)
        ends = zip(band.mean, band.low, band.high, band.n, strict=True)
        for (mean, low, high, n), wanted, into in zip(
            ends, self._measures, self._into, strict=True
        ):
            least, most = wanted.bounds_in(self._spec)
            into["mean"] = None if np.isnan(mean) else float(mean)
            into["low"] = _end(low, mean, least, most)
            into["high"] = _end(high, mean, least, most)
            into["n"] = int(n)
        for values, into in self._completions:
            for percent in _PERCENTS:
                into[f"p{percent}"] = percentile_estimate(values, percent, "s").value


def _end(end: float, mean: float, least: float | None, most: float | None) -> float | None:
    from jostle.stats import within

    return None if math.isnan(end) else float(within(end, mean, least, most))


def _measures(part: str, whole: bool) -> list[Measure]:
    """Return the measures that an entry of a summary has for the complete run or per phase."""
    if part in _TABLES:
        return [m for m in measures().values() if m.place == part]
    scope = part.removesuffix("s")
    place = scope if whole else "phases"
    return [m for m in measures().values() if (m.scope, m.place) == (scope, place)]
