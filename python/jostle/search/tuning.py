"""Tuning: the values of keys for which objectives are best, found by Optuna.

Each trial is decided by the seed, its number and the trials before it, and evaluated with the same
seeds of runs as all others: the same command has the same trials, whatever the number of jobs and
however often it was interrupted.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from jostle.errors import InputError
from jostle.scenario import ScenarioError
from jostle.search.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jostle.results import ResultSet
    from jostle.scenario import Plan, Scenario
    from jostle.scenario.resolving.sample import Variable
    from jostle.search.objectives import Constraint, Objective

__all__ = [
    "SAMPLERS", "How", "Score", "Space", "Task", "Trial", "best", "evaluate", "search", "tune",
]  # fmt: skip

Part = Literal["tuned", "fresh", "held"]
Carry = Callable[["Plan"], "ResultSet"]
SAMPLERS: Final = ("tpe", "cmaes", "nsga2", "random")


@dataclass(frozen=True)
class Task:
    """What is tuned, and for what.

    Attributes
    ----------
    scenarios
        All of whose conditions count.
    held_out
        Scenarios that are run with what was found, and never before.
    hold
        Key of a grid → label: conditions of `scenarios` that are held out, too.
    variables
        Keys with the values that they may take.
    objectives, constraints
        What is to be best, and what has to hold.
    repeats, seed
        Instead of the scenarios' own.
    """

    scenarios: tuple[Scenario, ...]
    held_out: tuple[Scenario, ...]
    hold: Mapping[str, str]
    variables: tuple[Variable, ...]
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    repeats: int | None = None
    seed: int | None = None

    def plans(self, values: Mapping[str, Any], part: Part) -> list[Plan]:
        """Return the runs of one part with some values.

        Raises
        ------
        ScenarioError
            If a scenario cannot have them.
        """
        found = []
        for scenario in self.scenarios:
            whole = self._planned(scenario, values, fresh=part == "fresh")
            held = {at for at, one in enumerate(whole.conditions) if self._held(one)}
            every = set(range(len(whole.conditions)))
            left_out = every - held if part == "held" else held
            if left_out != every:
                found.append(whole.without(left_out))
        if part == "held":
            found += [self._planned(one, values, fresh=False) for one in self.held_out]
        return found

    def _planned(self, scenario: Scenario, values: Mapping[str, Any], *, fresh: bool) -> Plan:
        made = scenario.set(dict(values)) if values else scenario
        plan = made.plan(repeats=self.repeats, seed=self.seed)
        if not fresh:
            return plan
        first = scenario.seed if self.seed is None else self.seed
        most = max(plan.repeats_of(at) for at in range(len(plan.conditions)))
        return made.plan(repeats=self.repeats, seed=first + max(most, plan.most_repeats))

    def _held(self, condition: Mapping[str, str]) -> bool:
        return any(condition.get(key) == label for key, label in self.hold.items())


@dataclass(frozen=True)
class Score:
    """What values are worth.

    Attributes
    ----------
    objectives
        Of each objective, over all conditions; None without a value.
    excess
        How far each constraint is broken; not above 0 if it holds.
    """

    objectives: tuple[float | None, ...]
    excess: tuple[float, ...]

    @property
    def feasible(self) -> bool:
        """Whether every constraint holds."""
        return all(one <= 0 for one in self.excess)


@dataclass(frozen=True)
class Trial:
    """Values that were tried.

    Attributes
    ----------
    number
        Position among all trials.
    labels
        Key → name of its value.
    values
        Key → value, as a scenario has it.
    score
        What they are worth; None if the scenarios cannot have them, or a run failed.
    """

    number: int
    labels: Mapping[str, str]
    values: Mapping[str, Any]
    score: Score | None


def evaluate(task: Task, values: Mapping[str, Any], part: Part, carry: Carry) -> Score | None:
    """Carry out the runs of a part with some values; None if one failed or there is none.

    Raises
    ------
    ScenarioError
        If a scenario cannot have them.
    """
    plans = task.plans(values, part)
    every = [carry(plan) for plan in plans]
    if not every or any(results.failures for results in every):
        return None

    def over(objective: Objective) -> float | None:
        return objective.over([v for results in every for v in objective.per_condition(results)])

    return Score(
        tuple(map(over, task.objectives)),
        tuple(one.excess(over(one.objective)) for one in task.constraints),
    )


@dataclass(frozen=True)
class Space:
    """What is searched.

    Attributes
    ----------
    variables
        What has a value in every trial.
    directions
        Of each objective: `minimize` or `maximize`.
    """

    variables: tuple[Variable, ...]
    directions: Sequence[str]


@dataclass(frozen=True)
class How:
    """How it is searched.

    Attributes
    ----------
    trials
        How many there shall be in all, those of the journal included.
    seed
        Of the search.
    sampler
        One of `SAMPLERS`.
    journal
        File in which trials are noted and from which they are taken up again; kept in memory if
        absent.
    told
        Hears of each trial that is new.
    """

    trials: int
    seed: int = 0
    sampler: str = "tpe"
    journal: Path | None = None
    told: Callable[[Trial], None] = lambda _: None


def tune(task: Task, carry: Carry, how: How) -> list[Trial]:
    """Search the values of a task; `carry` carries a plan out. Raises as `search`."""

    def score(values: Mapping[str, Any]) -> Score | None:
        try:
            found = evaluate(task, values, "tuned", carry)
        except ScenarioError:
            # Ranges of keys are wider than what fits together.
            return None
        return None if found is None or None in found.objectives else found

    return search(Space(task.variables, [one.direction for one in task.objectives]), score, how)


def search(
    space: Space, score: Callable[[Mapping[str, Any]], Score | None], how: How
) -> list[Trial]:
    """Try values, whatever they are worth, until there are as many trials as are wanted.

    Parameters
    ----------
    space
        What may be tried.
    score
        Gives what values are worth, by their keys; None if that cannot be told.
    how
        How it is searched.

    Raises
    ------
    InputError
        When Optuna is missing, or the sampler does not fit.
    """
    with _quiet_optuna() as optuna:
        if how.sampler == "cmaes" and len(space.directions) > 1:
            raise InputError("cmaes has one objective: choose tpe or nsga2 for several")
        study = optuna.create_study(
            storage=_storage(optuna, how.journal),
            study_name="jostle",
            directions=list(space.directions),
            load_if_exists=True,
        )
        running = optuna.trial.TrialState.RUNNING
        while True:
            every = study.get_trials(deepcopy=False)
            open_ones = [one for one in every if one.state == running]
            if not open_ones and len(every) >= how.trials:
                break
            number = open_ones[0].number if open_ones else len(every)
            # Made anew, so that what it draws depends on the number and not on what was drawn
            # before in this process.
            study.sampler = _sampler(optuna, how.sampler, how.seed + number)
            asked = optuna.trial.Trial(study, open_ones[0]._trial_id) if open_ones else study.ask()
            how.told(_one(space, score, study, asked, optuna))
        return [_finished(space, one) for one in study.get_trials(deepcopy=False)]


def best(task: Task, trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that none is better than in every objective; constraints hold in each.

    In the order of the first objective, the best one first; of equal ones the first.
    """
    there = [t for t in trials if t.score and t.score.feasible and None not in t.score.objectives]
    marks = {t.number: _marks(task, t) for t in there}
    kept: list[Trial] = []
    for one in there:
        mine = marks[one.number]
        beaten = any(
            all(a >= b for a, b in zip(marks[other.number], mine, strict=True))
            and (marks[other.number] != mine or other.number < one.number)
            for other in there
            if other is not one
        )
        if not beaten:
            kept.append(one)
    return sorted(kept, key=lambda t: (tuple(-m for m in marks[t.number]), t.number))


def fingerprint(task: Task, sampler: str, seed: int, version: str) -> str:
    """Name a study: the same for the same question to the same engine."""
    plans = [plan for part in ("tuned", "held") for plan in task.plans({}, part)]
    told = {
        "version": version,
        "sampler": sampler,
        "seed": seed,
        "runs": [[p.spec for p in plan.one_of_each()] for plan in plans],
        "counts": [[plan.repeats_of(at) for at in range(len(plan.conditions))] for plan in plans],
        "variables": [repr((v.key, v.range, [c.label for c in v.choices])) for v in task.variables],
        "objectives": [(one.direction, one.text) for one in task.objectives],
        "constraints": [one.text for one in task.constraints],
    }
    content = json.dumps(told, sort_keys=True, ensure_ascii=False).encode()
    return hashlib.sha256(content).hexdigest()[:32]


def _marks(task: Task, trial: Trial) -> tuple[float, ...]:
    """Objectives, all of which are better the larger they are."""
    assert trial.score is not None
    return tuple(
        (value if one.direction == "maximize" else -value)
        for one, value in zip(task.objectives, trial.score.objectives, strict=True)
        if value is not None
    )


def _one(
    space: Space,
    worth: Callable[[Mapping[str, Any]], Score | None],
    study: Any,
    asked: Any,
    optuna: Any,
) -> Trial:
    """Evaluate one trial, and note what came of it."""
    drawn = {variable.key: _drawn(variable, asked) for variable in space.variables}
    labels = {key: label for key, (label, _) in drawn.items()}
    values = {key: value for key, (_, value) in drawn.items()}
    asked.set_user_attr("labels", labels)
    score = worth(values)
    if score is None:
        study.tell(asked, state=optuna.trial.TrialState.FAIL)
        return Trial(asked.number, labels, values, None)
    # JSON has no infinity.
    bounded = [min(one, 1e300) for one in score.excess]
    asked.set_user_attr("constraints", bounded)
    study.tell(asked, list(score.objectives))
    return Trial(asked.number, labels, values, score)


def _drawn(variable: Variable, asked: Any) -> tuple[str, Any]:
    key, drawn = variable.key, variable.range
    if drawn is None:
        labels = [level.label for level in variable.choices]
        label = asked.suggest_categorical(key, labels)
        return label, variable.choices[labels.index(label)].value
    if drawn.kind == "integer":
        value = asked.suggest_int(key, int(drawn.low), int(drawn.high), log=drawn.log)
        return str(value), value
    level = variable.level(asked.suggest_float(key, 0.0, 1.0))
    return level.label, level.value


def _finished(space: Space, one: Any) -> Trial:
    """Read a trial from the study."""
    labels: dict[str, str] = one.user_attrs.get("labels", {})
    values: dict[str, Any] = {}
    for variable in space.variables:
        key = variable.key
        if key not in one.params:
            continue
        if variable.range is None:
            by_label = {level.label: level.value for level in variable.choices}
            values[key] = by_label[one.params[key]]
        elif variable.range.kind == "integer":
            values[key] = one.params[key]
        else:
            values[key] = variable.level(one.params[key]).value
    score = None
    if one.values is not None:
        excess = (math.inf if e >= 1e300 else e for e in one.user_attrs.get("constraints", ()))
        score = Score(tuple(one.values), tuple(excess))
    return Trial(one.number, labels, values, score)


def _sampler(optuna: Any, name: str, seed: int) -> Any:
    def broken(trial: Any) -> Sequence[float]:
        found: Sequence[float] = trial.user_attrs.get("constraints", ())
        return found

    samplers = optuna.samplers
    match name:
        case "tpe":
            return samplers.TPESampler(seed=seed, multivariate=True, constraints_func=broken)
        case "nsga2":
            return samplers.NSGAIISampler(seed=seed, population_size=24, constraints_func=broken)
        case "cmaes":
            return samplers.CmaEsSampler(seed=seed)
        case _:
            return samplers.RandomSampler(seed=seed)


def _storage(optuna: Any, journal: Path | None) -> Any:
    if journal is None:
        return optuna.storages.InMemoryStorage()
    return optuna.storages.JournalStorage(Journal(journal))


@contextmanager
def _quiet_optuna() -> Iterator[Any]:
    """Give Optuna, which says nothing of its own accord."""
    try:
        import optuna
    except ImportError as error:
        raise InputError('Optuna is not installed: pip install "jostle[tune]"') from error
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            warnings.simplefilter("ignore", FutureWarning)
            yield optuna
    finally:
        optuna.logging.set_verbosity(level)
