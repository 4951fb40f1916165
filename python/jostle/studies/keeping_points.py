"""What has to be kept of Linux's flows, so that a study needs no kernel: see `kept_points.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.results.finished import OVERALL
from jostle.results.measures import measure
from jostle.studies.kept_points import BACKEND, PARTS

if TYPE_CHECKING:
    from jostle.stats.describe import Floats
    from jostle.studies.models import Value
    from jostle.studies.runs import Runs
    from jostle.studies.study import Study


def points_document(runs: Runs) -> list[dict[str, Any]]:
    """List the points that have to be kept of Linux's runs, as the file has them."""
    kept: dict[tuple[str, int, str, str], list[dict[str, Any]]] = {}
    for value in _of_pairs(runs.study):
        experiment, _ = runs.study.experiment_of(value)
        phase = "" if value.window == OVERALL else value.window
        for condition in runs.study.conditions(value):
            key = (experiment, condition, value.flow, phase)
            if key not in kept:
                kept[key] = list(_rows(runs, value, experiment, condition))
    return [row for rows in kept.values() for row in rows]


def _of_pairs(study: Study) -> Iterator[Value]:
    """List the values whose points on Linux something is drawn of, or held against."""
    file = study.file
    for value in (*file.numbers, *(curve for one in file.figures for curve in one.curves)):
        pairs = measure(value.measure).place == "pairs" if value.measure else True
        if not pairs:
            continue
        if value.backend == BACKEND:
            yield value
        for condition in study.conditions(value) if value.reference is not None else ():
            against = study.reference_of(value, condition)
            if against.backend == BACKEND:
                yield against


def _rows(runs: Runs, value: Value, experiment: str, condition: int) -> Iterator[dict[str, Any]]:
    labels = dict(runs.study.scenarios[experiment].conditions[condition])
    on_linux = value.model_copy(update={"backend": BACKEND})
    for seed, points in runs.seeded_points(on_linux, condition):
        yield {
            "experiment": experiment,
            "condition": labels,
            "flow": value.flow,
            "phase": "" if value.window == OVERALL else value.window,
            "seed": seed,
            "base_rtt_s": points.base_rtt_s,
            "rate_bps": points.rate_bps,
            "delay": _whole(points.delay),
            "throughput": _whole(points.throughput),
        }


def _whole(coordinates: Floats) -> list[int | None]:
    return [None if np.isnan(one) else round(float(one) * PARTS) for one in coordinates]
