"""Which runs a study needs of a backend, and carrying them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.backends import BACKENDS
from jostle.errors import InputError
from jostle.running.session import Refusal, refusals
from jostle.studies.study import DESCRIBED, Study

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.scenario import Plan

Done = dict[tuple[str, str], dict[str, "ResultSet"]]
"""Study and reading → experiment → results."""


@dataclass(frozen=True)
class Work:
    """An experiment to be carried out.

    Attributes
    ----------
    study, experiment
        Their names.
    readings
        Whose it is: those that change nothing of an experiment share its runs.
    plan
        What the backend can do of it.
    left_out
        Conditions that it cannot do.
    """

    study: str
    experiment: str
    readings: tuple[str, ...]
    plan: Plan
    left_out: Sequence[Refusal]

    def __str__(self) -> str:
        """Say which experiment it is, and how it is read if not as described."""
        reading = "" if DESCRIBED in self.readings else f", {self.readings[0]}"
        return f"{self.study}: {self.experiment}{reading}"


def readings_on(study: Study, backend: str, chosen: Sequence[str]) -> list[str]:
    """List the readings of a study that a backend runs: those chosen, or else all.

    Where runs take their time, as on the kernel, only what is described if none is chosen.

    Raises
    ------
    InputError
        If the study does not have one that is chosen.
    """
    for name in chosen:
        study.as_read(name)
    if chosen:
        return [name for name in study.readings if name in chosen]
    return [DESCRIBED] if BACKENDS[backend].is_slow else study.readings


def work_of(
    study: Study, backend: Backend, repeats: int | None, readings: Sequence[str] = (DESCRIBED,)
) -> list[Work]:
    """List what a study needs of a backend; experiments that it can do nothing of are left out.

    Parameters
    ----------
    study
        The study.
    backend
        What is going to run it.
    repeats
        Runs per condition, instead of the study's own.
    readings
        How it is read.
    """
    found = []
    for name, experiment in study.file.experiments.items():
        if backend.name not in experiment.backends:
            continue
        changing = [one for one in readings if name in study.changed.get(one, {})]
        same = tuple(one for one in readings if one not in changing)
        for sharing in ((same,) if same else ()) + tuple((one,) for one in changing):
            plan = _plan(study.as_read(sharing[0]), backend, name, repeats)
            refused = refusals(plan, backend)
            possible = plan.without(refused)
            if possible.runs:
                found.append(Work(study.id, name, sharing, possible, tuple(refused.values())))
    return found


def _plan(study: Study, backend: Backend, name: str, repeats: int | None) -> Plan:
    experiment = study.file.experiments[name]
    slow = BACKENDS[backend.name].is_slow
    changes = name in study.changed.get(study.reading, {})
    of_reading = study.read.repeats if study.read is not None and changes else None
    most = min(experiment.repeats or study.scenarios[name].repeats, study.scenarios[name].repeats)
    own = experiment.kernel_repeats if slow else min(of_reading or most, most)
    scenario = study.scenarios[name]
    try:
        return scenario.plan(repeats=repeats or own)
    except ValueError as error:
        message = f"{scenario.source}: experiment {name} of study {study.id}: {error}"
        raise InputError(message) from None


def carry_out(work: Sequence[Work], run: Callable[[Work], ResultSet]) -> Done:
    """Carry out work, experiment by experiment."""
    done: Done = {}
    for one in work:
        results = run(one)
        for reading in one.readings:
            done.setdefault((one.study, reading), {})[one.experiment] = results
    return done
