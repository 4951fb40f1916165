"""Which runs a suite needs for a controller, and the card that they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from jostle.backends import BACKENDS
from jostle.errors import InputError, unknown
from jostle.running.session import refusals
from jostle.scenario import Scenario, ScenarioError
from jostle.studies.carry_out import Work
from jostle.studies.study import DESCRIBED
from jostle.suites.judge import Card, SuiteRuns, judge
from jostle.suites.load import with_subject
from jostle.suites.subject import Subject
from jostle.suites.suite import BASELINE, Cell, Suite

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.scenario import Plan
    from jostle.studies import Study


AGAIN: Final = 10
"""Runs of each condition that a quick look has of what one says is not met, if the suite has so
many."""


@dataclass(frozen=True)
class Asked:
    """How a suite is carried out.

    Attributes
    ----------
    quick
        A quick look.
    repeats
        Runs per condition, instead of the suite's own.
    only
        Ids of criteria; all if empty.
    allow_code
        Whether controllers and scenarios may be foreign code; see `jostle.foreign_code`.
    words
        Words of the command that asks so, from the suite on.
    least
        Runs per condition that a quick look has at least, as far as the suite has as many.
    """

    quick: bool = False
    repeats: int | None = None
    only: frozenset[str] = frozenset()
    allow_code: bool = False
    words: tuple[str, ...] = ()
    least: int = 1


@dataclass(frozen=True)
class Task:
    """A suite for one controller: what has to be run, and what it will be judged by.

    Attributes
    ----------
    suite, subject, baseline, asked, backend
        What it is of.
    again
        The work that an experiment is if it is looked at again, if that is more.
    cells, study
        What is judged, and as which study.
    work
        What has to be run.
    refused
        Experiment → why its scenario cannot have the controller, or which of its conditions the
        backend cannot do, in words.
    """

    suite: Suite
    subject: Subject
    baseline: Subject
    asked: Asked
    backend: str
    cells: tuple[Cell, ...]
    study: Study
    work: tuple[Work, ...]
    again: Callable[[str], Work]
    refused: Mapping[str, str]

    def refused_of(self, at: int) -> list[str]:
        """Say what of a criterion, by its position, could not be run."""
        names = self.suite.experiments_of(at)
        return [text for name, text in self.refused.items() if name in names]


def task_of(
    suite: Suite, subject: Subject, baseline: Subject, backend: Backend, asked: Asked
) -> Task:
    """List what a suite needs for a controller.

    Raises
    ------
    InputError
        When no scenario can have the controller, or a criterion is not there.
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
    if refused and not ours:
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

    def again(name: str) -> Work:
        return _work(suite, study, name, backend, replace(asked, least=AGAIN))

    done = tuple(one for one in work if one.plan.runs)
    return Task(suite, subject, baseline, asked, backend.name, cells, study, done, again, told)


def _in_a_line(text: str) -> str:
    """Give what an error begins with, and the first of what it lists."""
    return " ".join(line.strip() for line in text.splitlines()[:2])


def _work(suite: Suite, study: Study, name: str, backend: Backend, asked: Asked) -> Work:
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
        return Work(suite.id, name, (DESCRIBED,), plan.without(range(len(plan.conditions))), ())
    refused = refusals(plan, backend)
    return Work(suite.id, name, (DESCRIBED,), plan.without(refused), tuple(refused.values()))


def _plan(suite: Suite, scenario: Scenario, name: str, backend: str, asked: Asked) -> Plan:
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
class Outcome:
    """A task that was carried out.

    Attributes
    ----------
    task, card, runs
        What was asked, what came of it, and what it is made of.
    """

    task: Task
    card: Card
    runs: SuiteRuns


def outcome_of(task: Task, run: Callable[[Work], ResultSet]) -> Outcome:
    """Carry a task out, and judge what came of it.

    A quick look has more runs of what is not met: one says too little against a controller.
    """
    results = {one.experiment: run(one) for one in task.work}
    outcome = _judged(task, results)
    more = list(_doubted(task, outcome.card))
    if not more:
        return outcome
    return _judged(task, results | {one.experiment: run(one) for one in more})


def _doubted(task: Task, card: Card) -> Iterator[Work]:
    """List what a quick look looks at again."""
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


def _judged(task: Task, results: Mapping[str, ResultSet]) -> Outcome:
    runs = SuiteRuns(task.study, results)
    suite, asked = task.suite, task.asked
    refused = {at: task.refused_of(at) for at in range(len(suite.criteria))}
    rows = judge(runs, suite.criteria, task.cells, refused)
    if asked.only:
        rows = tuple(one for one in rows if one.criterion.id in asked.only)
    failures = tuple(
        f"{name}: {each.labels[one.condition]} seed {one.seed}: {one.error}"
        for name, each in results.items()
        for one in each.failures
    )
    card = Card(
        suite.id, suite.file.title, task.subject.label, task.baseline.label, task.backend,
        asked.quick, rows, next((each.backend_version for each in results.values()), ""),
        sum(len(each) for each in results.values()), failures, asked.words,
    )  # fmt: skip
    return Outcome(task, card, runs)
