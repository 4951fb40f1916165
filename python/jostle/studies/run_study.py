"""Planning and execution of a study's runs on a backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.backends import BACKENDS
from jostle.errors import InputError
from jostle.runner.session import RejectedRun, refusals
from jostle.studies.study import DESCRIBED, Study

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan

Done = dict[tuple[str, str], dict[str, "ResultSet"]]
"""Study and setup → experiment → results."""


@dataclass(frozen=True)
class PlannedExperiment:
    """An experiment to run.

    Attributes
    ----------
    study, experiment
        Their names.
    setups
        Setups that use the runs; setups that do not change the experiment share them.
    plan
        Runs that the backend supports.
    left_out
        Conditions that the backend does not support.
    """

    study: str
    experiment: str
    setups: tuple[str, ...]
    plan: RunPlan
    left_out: Sequence[RejectedRun]

    def __str__(self) -> str:
        """Return the name of the experiment, and its setup if not as described."""
        setup = "" if DESCRIBED in self.setups else f", {self.setups[0]}"
        return f"{self.study}: {self.experiment}{setup}"


def setups_on(study: Study, backend: str, chosen: Sequence[str]) -> list[str]:
    """Return the setups of a study that a backend runs: the chosen ones, or else all.

    If none is chosen, a real-time backend such as the kernel runs the described setup only.

    Raises
    ------
    InputError
        If a chosen setup does not exist.
    """
    for name in chosen:
        study.with_setup(name)
    if chosen:
        return [name for name in study.setups if name in chosen]
    return [DESCRIBED] if BACKENDS[backend].is_slow else study.setups


def unsupported(study: Study, backend: str) -> list[str]:
    """Return the names of the experiments that a study does not have on a backend."""
    experiments = study.file.experiments.items()
    return [name for name, experiment in experiments if backend not in experiment.backends]


def work_of(
    study: Study, backend: Backend, repeats: int | None, setups: Sequence[str] = (DESCRIBED,)
) -> list[PlannedExperiment]:
    """Return the experiments that a study needs, without those that the backend does not support.

    Parameters
    ----------
    study
        The study.
    backend
        Backend that will run it.
    repeats
        Runs per condition, instead of the study's value.
    setups
        Setups to run.
    """
    found = []
    for name, experiment in study.file.experiments.items():
        if backend.name not in experiment.backends:
            continue
        changing = [one for one in setups if name in study.changed.get(one, {})]
        same = tuple(one for one in setups if one not in changing)
        for sharing in ((same,) if same else ()) + tuple((one,) for one in changing):
            plan = _plan(study.with_setup(sharing[0]), backend, name, repeats)
            refused = refusals(plan, backend)
            possible = plan.without(refused)
            if possible.runs:
                found.append(
                    PlannedExperiment(study.id, name, sharing, possible, tuple(refused.values()))
                )
    return found


def _plan(study: Study, backend: Backend, name: str, repeats: int | None) -> RunPlan:
    experiment = study.file.experiments[name]
    slow = BACKENDS[backend.name].is_slow
    changes = name in study.changed.get(study.setup, {})
    of_setup = (
        study.alternative_setup.repeats if study.alternative_setup is not None and changes else None
    )
    most = min(experiment.repeats or study.scenarios[name].repeats, study.scenarios[name].repeats)
    own = experiment.kernel_repeats if slow else min(of_setup or most, most)
    scenario = study.scenarios[name]
    try:
        return scenario.plan(repeats=repeats or own)
    except ValueError as error:
        message = f"{scenario.source}: experiment {name} of study {study.id}: {error}"
        raise InputError(message) from None


def run_study(
    work: Sequence[PlannedExperiment], run: Callable[[PlannedExperiment], ResultSet]
) -> Done:
    """Run the planned experiments one after another."""
    done: Done = {}
    for one in work:
        results = run(one)
        for setup in one.setups:
            done.setdefault((one.study, setup), {})[one.experiment] = results
    return done
