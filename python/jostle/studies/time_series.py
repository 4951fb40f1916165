"""Time series of a study's runs for the interactive charts of its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from jostle.report.chart_data import charts
from jostle.report.html import data_block
from jostle.report.topology_svg import topology
from jostle.results.condition_names import Condition
from jostle.results.finished_runs import ConditionRun, FinishedRuns
from jostle.studies.models import FigureSpec, Value
from jostle.studies.study import Study

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.studies.column import Column
    from jostle.studies.runs import Runs

MOST_VALUES: Final = 400_000
"""Largest number of values in all charts of a page: about 700 kB of text."""


@dataclass(frozen=True)
class Shown:
    """Charts of an experiment.

    Attributes
    ----------
    experiment, title
        Name of the experiment, and the title of its scenario.
    data
        Data of the charts for the page's script.
    notes
        Sentences about omitted data.
    drawing
        Drawing of the network of the first condition.
    """

    experiment: str
    title: str
    data: Markup
    notes: tuple[str, ...]
    drawing: Markup


def over_time(runs: Mapping[Column, Runs]) -> list[Shown]:
    """Return the time series of runs that the paper shows over time, per experiment.

    Parameters
    ----------
    runs
        By column; the reader chooses between several columns.
    """
    study = next(iter(runs.values())).study
    chosen = list(_chosen(study))
    names = dict.fromkeys(name for name, _ in chosen)
    found = []
    for name in names:
        conditions = sorted({condition for one, condition in chosen if one == name})
        gathered = _gathered(runs, name, conditions)
        if not gathered.results:
            continue
        packed = charts(gathered, MOST_VALUES // len(names))
        title = study.scenarios[name].title or name
        drawing = Markup(topology(gathered.results[0].run.spec))
        data = data_block(packed.data, packed.values)
        found.append(Shown(name, title, data, packed.notes, drawing))
    return found


def _chosen(study: Study) -> Iterator[tuple[str, int]]:
    """Yield the experiments and conditions that a figure shows over time."""
    for figure in study.file.figures:
        for value in _values(figure):
            name, _ = study.experiment_of(value)
            for condition in study.conditions(value):
                yield name, condition


def _values(figure: FigureSpec) -> Sequence[Value]:
    if figure.kind == "series":
        return [Value(experiment=figure.experiment, where=figure.where)]
    return figure.curves if figure.kind == "representative" else ()


def _gathered(
    runs: Mapping[Column, Runs], experiment: str, conditions: Sequence[int]
) -> FinishedRuns:
    """Combine the runs of all columns; the column becomes a key of their conditions."""
    names: list[Condition] = []
    results: list[ConditionRun] = []
    there = {column: one.results[experiment] for column, one in runs.items()
             if experiment in one.results}  # fmt: skip
    key = "setup" if len({column.setup for column in there}) > 1 else "backend"
    seen: list[ResultSet] = []
    for column, found in there.items():
        # Setups that do not change an experiment share its runs.
        if any(found is one for one in seen):
            continue
        seen.append(found)
        for condition in conditions:
            at = runs[column].position(experiment, condition)
            these = found.runs_of(at) if at >= 0 else []
            if not these:
                continue
            label = {**found.conditions[at], **({key: column.title} if len(there) > 1 else {})}
            results += [ConditionRun(len(names), one.seed, one.run) for one in these]
            names.append(label)
    return FinishedRuns("", "", "", conditions=names, results=results)
