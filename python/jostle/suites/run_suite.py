"""Planning of a suite's runs for a controller, and the resulting card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from jostle.backends import BACKENDS
from jostle.errors import InputError, unknown
from jostle.results.number_format import count
from jostle.runner.session import refusals
from jostle.scenario import Scenario, ScenarioError
from jostle.studies import Runs
from jostle.studies.run_study import PlannedExperiment
from jostle.studies.study import DESCRIBED
from jostle.suites.controller_under_test import ControllerUnderTest
from jostle.suites.evaluate import SuiteResult, evaluate_suite
from jostle.suites.load import with_subject
from jostle.suites.suite import BASELINE, Cell, Suite

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan
    from jostle.studies import Study


AGAIN: Final = 10
"""Runs of each condition with which a quick run repeats experiments of missed criteria, if the
suite has as many."""


@dataclass(frozen=True)
class SuiteRequest:
    """Settings for running a suite.

    Attributes
    ----------
    quick
        Whether it is a quick run.
    repeats
        Runs per condition, instead of the suite's value.
    only
        Ids of criteria; all if empty.
    allow_code
        Whether controllers and scenarios may be foreign code; see `jostle.safe_io.code_consent`.
    words
        Words of the command, without `jostle suite`.
    least
        Smallest number of runs per condition in a quick run, if the suite has as many.
    """

    quick: bool = False
    repeats: int | None = None
    only: frozenset[str] = frozenset()
    allow_code: bool = False
    words: tuple[str, ...] = ()
    least: int = 1


@dataclass(frozen=True)
class Task:
    """A suite for one controller: runs to carry out, and criteria to judge.

    Attributes
    ----------
    suite, subject, baseline, asked, backend
        Suite, controllers, settings and backend.
    again
        Returns the work for repeating an experiment with more runs.
    cells, study
        Cells to judge, and the study with one claim per cell.
    work
        Experiments to run.
    refused
        Experiment → reasons why its scenario cannot use the controller, or which of its conditions
        the backend does not support.
    """

    suite: Suite
    subject: ControllerUnderTest
    baseline: ControllerUnderTest
    asked: SuiteRequest
    backend: str
    cells: tuple[Cell, ...]
    study: Study
    work: tuple[PlannedExperiment, ...]
    again: Callable[[str], PlannedExperiment]
    refused: Mapping[str, str]

    def refused_of(self, at: int) -> list[str]:
        """Return which runs of a criterion, given by its position, were not possible."""
        names = self.suite.experiments_of(at)
        return [text for name, text in self.refused.items() if name in names]


def task_of(
    suite: Suite,
    subject: ControllerUnderTest,
    baseline: ControllerUnderTest,
    backend: Backend,
    asked: SuiteRequest,
) -> Task:
    """Plan the runs of a suite for a controller.

    Raises
    ------
    InputError
        When no scenario can use the controller, or a criterion does not exist.
    """
    for name in asked.only:
        known = [one.id for one in suite.criteria]
        if name not in known:
            raise InputError(unknown("criterion", name, known))
    needed = suite.needed(quick=asked.quick, only=asked.only)
    refused: dict[str, str] = {}
    ours: dict[str, Scenario] = {}
    theirs: dict[str, Scenario] = {}
    for name, with_baseline in needed.items():
        try:
            ours[name] = with_subject(suite, name, subject, allow_code=asked.allow_code)
        except ScenarioError as error:
            refused[name] = str(error).replace(f"{suite.folder}/", "")
            continue
        if with_baseline:
            theirs[name] = with_subject(suite, name, baseline, allow_code=asked.allow_code)
    if refused and not any(suite.file.experiments[name].flows_under_test for name in ours):
        raise InputError(next(iter(refused.values())))
    cells = tuple(
        cell
        for at, one in enumerate(suite.criteria)
        if not asked.only or one.id in asked.only
        for cell in suite.cells(at, quick=asked.quick)
        if not any(name in refused for name in suite.experiments_of(at))
    )
    study = suite.study(ours, theirs, list(cells))
    work = [_work(suite, study, name, backend, asked) for name in study.scenarios]
    told = {name: text.splitlines()[0] for name, text in refused.items()}
    told |= {
        each.experiment: _in_a_line(str(each.left_out[0].error()))
        for each in work
        if each.left_out and not each.experiment.endswith(BASELINE)
    }

    def again(name: str) -> PlannedExperiment:
        return _work(suite, study, name, backend, replace(asked, least=AGAIN))

    done = tuple(one for one in work if one.plan.runs)
    return Task(suite, subject, baseline, asked, backend.name, cells, study, done, again, told)


def _omissions(task: Task) -> Iterator[str]:
    """Say which criteria, conditions and runs of a suite are left out, and why."""
    suite, asked = task.suite, task.asked
    criteria = [one.id for one in suite.criteria if asked.only and one.id not in asked.only]
    if criteria:
        yield f"Left out by --criterion: {', '.join(criteria)}."
    needed = suite.needed(quick=asked.quick, only=asked.only)
    planned = {one.experiment: one.plan for one in task.work}
    for name in needed:
        if name in task.refused or name not in task.study.scenarios:
            continue
        scenario = task.study.scenarios[name]
        plan = planned.get(name)
        if plan is None:
            yield f"Left out: {name}, which is not for the backend {task.backend}."
            continue
        fewer = len(scenario.conditions) - len(plan.conditions)
        most = suite.file.experiments[name].repeats or scenario.repeats
        least = min(plan.repeats_of(at) for at in range(len(plan.conditions)))
        why = "a quick run" if asked.quick else f"the backend {task.backend}"
        if fewer:
            yield f"Left out of {name}: {fewer} of {len(scenario.conditions)} conditions ({why})."
        if least < min(most, scenario.repeats):
            wanted = min(most, scenario.repeats)
            yield f"{name} has {count(least, 'run')} per condition instead of {wanted}."
    for experiment, text in task.refused.items():
        yield f"Left out: {experiment}: {text}"


def _in_a_line(text: str) -> str:
    """Return the start of an error message and the first item of its list, in one line."""
    return " ".join(line.strip() for line in text.splitlines()[:2])


def _work(
    suite: Suite, study: Study, name: str, backend: Backend, asked: SuiteRequest
) -> PlannedExperiment:
    plain = name.removesuffix(BASELINE)
    plan = _plan(suite, study.scenarios[name], plain, backend.name, asked)
    left = {
        at
        for at in range(len(plan.conditions))
        if not suite.runs_condition(plain, at, quick=asked.quick)
    }
    plan = plan.without(left)
    one = suite.file.experiments[plain]
    if backend.name not in one.backends:
        return PlannedExperiment(
            suite.id, name, (DESCRIBED,), plan.without(range(len(plan.conditions))), ()
        )
    refused = refusals(plan, backend)
    return PlannedExperiment(
        suite.id, name, (DESCRIBED,), plan.without(refused), tuple(refused.values())
    )


def _plan(
    suite: Suite, scenario: Scenario, name: str, backend: str, asked: SuiteRequest
) -> RunPlan:
    one = suite.file.experiments[name]
    own = min(one.repeats or scenario.repeats, scenario.repeats)
    if BACKENDS[backend].is_slow and one.kernel_repeats:
        own = min(own, one.kernel_repeats)
    if asked.quick:
        own = min(own, max(one.quick.repeats, asked.least))
    try:
        return scenario.plan(repeats=asked.repeats or own)
    except ValueError as error:
        message = f"{scenario.source}: experiment {name} of suite {suite.id}: {error}"
        raise InputError(message) from None


@dataclass(frozen=True)
class SuiteOutcome:
    """A completed task.

    Attributes
    ----------
    task, card, runs
        The task, its result, and its runs.
    """

    task: Task
    card: SuiteResult
    runs: Runs


def outcome_of(task: Task, run: Callable[[PlannedExperiment], ResultSet]) -> SuiteOutcome:
    """Run a task, and judge its results.

    A quick run repeats experiments of missed criteria with more runs, because a single run is not
    enough evidence against a controller.
    """
    results = {one.experiment: run(one) for one in task.work}
    outcome = _judged(task, results)
    more = {one.experiment: one for one in _doubted(task, outcome.card)}
    if not more:
        return outcome
    repeated = replace(task, work=tuple(more.get(one.experiment, one) for one in task.work))
    return _judged(repeated, results | {name: run(one) for name, one in more.items()})


def _doubted(task: Task, card: SuiteResult) -> Iterator[PlannedExperiment]:
    """Yield the experiments that a quick run repeats."""
    if not task.asked.quick or task.asked.repeats:
        return
    positions = {one.id: at for at, one in enumerate(task.suite.criteria)}
    names = {
        name
        for row in card.rows
        if any(one.is_doubtful for one in row.comparisons)
        for name in task.suite.experiments_of(positions[row.criterion.id])
    }
    for one in task.work:
        if one.experiment.removesuffix(BASELINE) in names:
            work = task.again(one.experiment)
            if len(work.plan.runs) > len(one.plan.runs):
                yield work


def _judged(task: Task, results: Mapping[str, ResultSet]) -> SuiteOutcome:
    runs = Runs(task.study, results)
    suite, asked = task.suite, task.asked
    refused = {at: task.refused_of(at) for at in range(len(suite.criteria))}
    rows = evaluate_suite(runs, suite.criteria, task.cells, refused)
    if asked.only:
        rows = tuple(one for one in rows if one.criterion.id in asked.only)
    failures = tuple(
        f"{name}: {each.labels[one.condition]} seed {one.seed}: {one.error}"
        for name, each in results.items()
        for one in each.failures
    )
    card = SuiteResult(
        suite.id, suite.file.title, task.subject.label, task.baseline.label, task.backend,
        asked.quick, rows, next((each.backend_version for each in results.values()), ""),
        sum(len(each) for each in results.values()), failures, asked.words,
        tuple(_omissions(task)),
    )  # fmt: skip
    return SuiteOutcome(task, card, runs)
