"""Which runs a study needs of a backend, and carrying them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.backends import BACKENDS
from jostle.errors import InputError
from jostle.running.session import Refusal, refusals
from jostle.studies.study import Study

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.scenario import Plan


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
        Conditions that it cannot do.
    """

    study: str
    experiment: str
    plan: Plan
    left_out: Sequence[Refusal]


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
        own = experiment.kernel_repeats if BACKENDS[backend.name].is_slow else None
        try:
            plan = study.scenarios[name].plan(repeats=repeats or own)
        except ValueError as error:
            raise InputError(f"experiment {name} of study {study.id}: {error}") from None
        refused = refusals(plan, backend)
        possible = plan.without(refused)
        if possible.runs:
            found.append(Work(study.id, name, possible, tuple(refused.values())))
    return found


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
