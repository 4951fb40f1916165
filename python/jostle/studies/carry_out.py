"""Which runs a study needs of a backend, and carrying them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.errors import InputError
from jostle.studies.study import Study

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.running.session import Plan, PlannedRun


@dataclass(frozen=True)
class PartOfPlan:
    """A plan without the runs that a backend cannot do. Conditions keep their positions."""

    title: str
    conditions: Sequence[Mapping[str, str]]
    runs: Sequence[PlannedRun]


@dataclass(frozen=True)
class Work:
    """An experiment to be carried out.

    Attributes
    ----------
    study, experiment
        Their names.
    plan
        What the backend can do of it.
    left_out
        Conditions that it cannot do, and why.
    """

    study: str
    experiment: str
    plan: PartOfPlan
    left_out: Sequence[tuple[str, str]]


def work_of(study: Study, backend: Backend, repeats: int | None) -> list[Work]:
    """List what a study needs of a backend; experiments that it can do nothing of are left out.

    Parameters
    ----------
    study
        The study.
    backend
        What is going to run it.
    repeats
        Runs per condition, instead of the study's own.
    """
    found = []
    for name, experiment in study.file.experiments.items():
        if backend.name not in experiment.backends:
            continue
        count = repeats or (experiment.kernel_repeats if backend.name == "kernel" else None)
        part, left_out = _possible(study.scenarios[name].plan(repeats=count), backend)
        if part.runs:
            found.append(Work(study.id, name, part, left_out))
    return found


def _possible(plan: Plan, backend: Backend) -> tuple[PartOfPlan, list[tuple[str, str]]]:
    from jostle.results.conditions import labels

    refused: dict[int, str] = {}
    for planned in plan.runs:
        if planned.condition not in refused:
            try:
                backend.check(planned.spec)
            except InputError as error:
                refused[planned.condition] = str(error)
    names = labels(plan.conditions)
    runs = [planned for planned in plan.runs if planned.condition not in refused]
    return (
        PartOfPlan(plan.title, plan.conditions, runs),
        [(names[condition], why) for condition, why in refused.items()],
    )


def carry_out(
    work: Sequence[Work], run: Callable[[Work], ResultSet]
) -> dict[str, dict[str, ResultSet]]:
    """Carry out work, experiment by experiment.

    Returns
    -------
    dict
        Study → experiment → results.
    """
    done: dict[str, dict[str, ResultSet]] = {}
    for one in work:
        done.setdefault(one.study, {})[one.experiment] = run(one)
    return done
