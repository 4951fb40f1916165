"""Export of the operating points of Linux's flows; see `operating_points_archive.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.results.compared_phase import OVERALL
from jostle.results.measures import measure
from jostle.studies.operating_points_archive import BACKEND, PARTS

if TYPE_CHECKING:
    from jostle.stats.descriptive import Floats
    from jostle.studies.models import Value
    from jostle.studies.runs import Runs
    from jostle.studies.study import Study


def operating_points_document(runs: Runs) -> list[dict[str, Any]]:
    """Return the operating points of Linux's runs in the format of the file."""
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
    """Yield the values whose operating points on Linux are drawn or compared."""
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
            "delay": _scaled_integers(points.delay),
            "throughput": _scaled_integers(points.throughput),
        }


def _scaled_integers(coordinates: Floats) -> list[int | None]:
    return [None if np.isnan(one) else round(float(one) * PARTS) for one in coordinates]
