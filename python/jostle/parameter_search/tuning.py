"""Tuning: search with Optuna for the values of keys for which objectives are best.

Each trial is determined by the seed, its number and the earlier trials. All trials use the same
seeds of runs. So the same command has the same trials, independent of the number of jobs and of
interruptions.
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
from jostle.parameter_search.objective_quantity import means
from jostle.parameter_search.trial_journal import Journal
from jostle.scenario import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jostle.parameter_search.objectives import Constraint, Objective
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan, Scenario
    from jostle.scenario.resolve.sample import Variable

__all__ = [
    "SAMPLERS",
    "Score",
    "SearchSettings",
    "Space",
    "Task",
    "Trial",
    "best",
    "compare_keys",
    "evaluate",
    "search",
    "tune",
]  # fmt: skip

Part = Literal["tuned", "fresh", "held"]
Carry = Callable[["RunPlan"], "ResultSet"]
SAMPLERS: Final = ("tpe", "cmaes", "nsga2", "random")
_MISSING: Final = 1e9
"""Penalty of a run without a value, in the values that a sampler compares."""
_LISTS: Final = ("without_value", "unfinished", "missing", "runs")
"""Attributes of a score that are recorded with a trial."""


@dataclass(frozen=True)
class Task:
    """A tuning task.

    Attributes
    ----------
    scenarios
        Scenarios to tune on, with all of their conditions.
    held_out
        Scenarios that are run only with the result.
    hold
        Key of a grid → label: conditions of `scenarios` that are held out, too.
    variables
        Keys and their possible values.
    objectives, constraints
        Objectives, and constraints that must hold.
    repeats, seed
        Repeats and seed, instead of the scenarios' own.
    """

    scenarios: tuple[Scenario, ...]
    held_out: tuple[Scenario, ...]
    hold: Mapping[str, str]
    variables: tuple[Variable, ...]
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    repeats: int | None = None
    seed: int | None = None

    def plans(self, values: Mapping[str, Any], part: Part) -> list[RunPlan]:
        """Return the runs of one part with given values.

        Raises
        ------
        ScenarioError
            If the values cannot be applied to a scenario.
        """
        found = []
        for scenario in self.scenarios:
            whole = self._planned(scenario, values, fresh=part == "fresh")
            held = {at for at, one in enumerate(whole.conditions) if self._matches_hold(one)}
            every = set(range(len(whole.conditions)))
            left_out = every - held if part == "held" else held
            if left_out != every:
                found.append(whole.without(left_out))
        if part == "held":
            found += [self._planned(one, values, fresh=False) for one in self.held_out]
        return found

    def _planned(self, scenario: Scenario, values: Mapping[str, Any], *, fresh: bool) -> RunPlan:
        made = scenario.set(dict(values)) if values else scenario
        plan = made.plan(repeats=self.repeats, seed=self.seed)
        if not fresh:
            return plan
        first = scenario.seed if self.seed is None else self.seed
        most = max(plan.repeats_of(at) for at in range(len(plan.conditions)))
        return made.plan(repeats=self.repeats, seed=first + max(most, plan.max_repeats))

    def _matches_hold(self, condition: Mapping[str, str]) -> bool:
        return any(condition.get(key) == label for key, label in self.hold.items())


@dataclass(frozen=True)
class Score:
    """Score of values.

    Attributes
    ----------
    objectives
        Value of each objective over all conditions; None without a value. A lower bound if a run is
        unfinished.
    excess
        Excess over each constraint; at most 0 if it holds.
    without_value
        For each objective, the number of conditions that have no value and are not part of it.
    unfinished
        For each objective, the number of runs in which a transfer was not complete.
    missing
        For each objective, the number of runs that are unfinished or have no value.
    runs
        For each objective and condition, the values of its runs; empty if all have a value.
    limited
        Value of each constraint's quantity over all conditions; empty in a journal.
    """

    objectives: tuple[float | None, ...]
    excess: tuple[float, ...]
    without_value: tuple[int, ...] = ()
    unfinished: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    runs: tuple[tuple[tuple[float | None, ...], ...], ...] = ()
    limited: tuple[float | None, ...] = ()

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
        Key → value, as in a scenario.
    score
        Score; None if the values cannot be applied to the scenarios, or a run failed.
    reason
        Why the values cannot be applied to the scenarios; empty if they can.
    """

    number: int
    labels: Mapping[str, str]
    values: Mapping[str, Any]
    score: Score | None
    reason: str = ""


def evaluate(task: Task, values: Mapping[str, Any], part: Part, carry: Carry) -> Score | None:
    """Run a part with given values; None if a run failed or there is none.

    Raises
    ------
    ScenarioError
        If the values cannot be applied to a scenario.
    """
    plans = task.plans(values, part)
    every = [carry(plan) for plan in plans]
    if not every or any(results.failures for results in every):
        return None

    def runs_of(objective: Objective) -> tuple[tuple[float | None, ...], ...]:
        return tuple(v for results in every for v in objective.per_run(results))

    def unfinished(objective: Objective) -> int:
        return sum(objective.unfinished(results) for results in every)

    def unknown(limit: Constraint) -> int:
        absent = sum(each.count(None) for each in runs_of(limit.objective))
        return unfinished(limit.objective) + absent

    limited = tuple(one.objective.over(means(runs_of(one.objective))) for one in task.constraints)
    runs = tuple(map(runs_of, task.objectives))
    found = [means(each) for each in runs]
    bounds = tuple(map(unfinished, task.objectives))
    absent = [sum(max(each.count(None), not each) for each in of) for of in runs]
    return Score(
        tuple(one.over(each) for one, each in zip(task.objectives, found, strict=True)),
        tuple(
            limit.excess(value, unknown(limit))
            for limit, value in zip(task.constraints, limited, strict=True)
        ),
        tuple(each.count(None) for each in found),
        bounds,
        tuple(map(sum, zip(bounds, absent, strict=True))),
        runs if any(absent) else (),
        limited,
    )


def compare_keys(
    objectives: Sequence[Objective], scores: Sequence[Score]
) -> list[tuple[tuple[int, float], ...]]:
    """Return for each score and objective a pair to compare; the larger one is better.

    Fewer runs without a completion time or value are better. Scores with the same number of such
    runs are compared by the mean over the runs in which all of them have a value.
    """
    found: list[list[tuple[int, float]]] = [[] for _ in scores]
    for at, objective in enumerate(objectives):
        sign = 1 if objective.direction == "maximize" else -1
        alike: dict[int, list[int]] = {}
        for number, score in enumerate(scores):
            alike.setdefault(score.missing[at] if score.missing else 0, []).append(number)
        for missing, numbers in alike.items():
            of_all = [scores[n].runs[at] for n in numbers if scores[n].runs]
            for n in numbers:
                value = scores[n].objectives[at]
                if scores[n].runs and value is not None:
                    value = objective.over(means(_common(scores[n].runs[at], of_all)))
                found[n].append((-missing, 0.0 if value is None else sign * value))
    return [tuple(each) for each in found]


def _common(
    runs: Sequence[Sequence[float | None]], of_all: Sequence[Sequence[Sequence[float | None]]]
) -> list[list[float]]:
    """Return the values, by condition, of the runs that have a value in each of some results."""
    return [
        [
            value
            for value, *others in zip(own, *same, strict=False)
            if value is not None and None not in others
        ]
        for own, *same in zip(runs, *of_all, strict=True)
    ]


@dataclass(frozen=True)
class Space:
    """A search space.

    Attributes
    ----------
    variables
        Variables that have a value in every trial.
    directions
        Direction of each objective: `minimize` or `maximize`.
    """

    variables: tuple[Variable, ...]
    directions: Sequence[str]


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search.

    Attributes
    ----------
    trials
        Total number of trials, including those in the journal.
    seed
        Seed of the search.
    sampler
        One of `SAMPLERS`.
    journal
        File that records trials and from which a search is resumed; in memory if absent.
    told
        Called with each new trial.
    """

    trials: int
    seed: int = 0
    sampler: str = "tpe"
    journal: Path | None = None
    told: Callable[[Trial], None] = lambda _: None


def tune(task: Task, carry: Carry, how: SearchSettings) -> list[Trial]:
    """Search the values of a task; `carry` carries out a plan. Raises the errors of `search`."""

    def score(values: Mapping[str, Any]) -> Score | None:
        found = evaluate(task, values, "tuned", carry)
        return None if found is None or None in found.objectives else found

    return search(Space(task.variables, [one.direction for one in task.objectives]), score, how)


def search(
    space: Space, score: Callable[[Mapping[str, Any]], Score | None], how: SearchSettings
) -> list[Trial]:
    """Try values until the number of trials is reached.

    Parameters
    ----------
    space
        The search space.
    score
        Returns the score of values by key; None if it is not known. It raises ScenarioError if the
        values cannot be applied: some combinations in the ranges are not valid.
    how
        Settings of the search.

    Raises
    ------
    InputError
        When Optuna is missing, or the sampler does not support the objectives.
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
            # Create a new sampler, so that its random numbers depend on the number of the trial
            # and not on earlier trials in this process.
            study.sampler = _sampler(optuna, how.sampler, how.seed + number)
            asked = optuna.trial.Trial(study, open_ones[0]._trial_id) if open_ones else study.ask()
            how.told(_run_trial(space, score, study, asked, optuna))
        return [_finished(space, one) for one in study.get_trials(deepcopy=False)]


def best(task: Task, trials: Sequence[Trial]) -> list[Trial]:
    """Return the Pareto-optimal trials that satisfy all constraints.

    They are sorted by the first objective, the best one first; of equal ones, only the first.
    """
    there = [t for t in trials if t.score and t.score.feasible and None not in t.score.objectives]
    scores = [t.score for t in there if t.score]
    marks = dict(zip((t.number for t in there), compare_keys(task.objectives, scores), strict=True))
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
    return sorted(kept, key=lambda t: marks[t.number], reverse=True)


def fingerprint(task: Task, sampler: str, seed: int, version: str) -> str:
    """Return a name of a study that depends on its parameters and on the engine only."""
    plans = [plan for part in ("tuned", "held") for plan in task.plans({}, part)]
    told = {
        # 2: trials count runs without a value.
        "format": 2,
        "version": version,
        "sampler": sampler,
        "seed": seed,
        "runs": [[p.spec for p in plan.first_run_of_each_condition()] for plan in plans],
        "counts": [[plan.repeats_of(at) for at in range(len(plan.conditions))] for plan in plans],
        "variables": [repr((v.key, v.range, [c.label for c in v.choices])) for v in task.variables],
        "objectives": [(one.direction, one.text) for one in task.objectives],
        "constraints": [one.text for one in task.constraints],
    }
    content = json.dumps(told, sort_keys=True, ensure_ascii=False).encode()
    return hashlib.sha256(content).hexdigest()[:32]


def _run_trial(
    space: Space,
    worth: Callable[[Mapping[str, Any]], Score | None],
    study: Any,
    asked: Any,
    optuna: Any,
) -> Trial:
    """Evaluate one trial, and record its result."""
    drawn = {variable.key: _drawn(variable, asked) for variable in space.variables}
    labels = {key: label for key, (label, _) in drawn.items()}
    values = {key: value for key, (_, value) in drawn.items()}
    asked.set_user_attr("labels", labels)
    reason = ""
    try:
        score = worth(values)
    except ScenarioError as error:
        score, reason = None, str(error)
        asked.set_user_attr("reason", reason)
    if score is None:
        study.tell(asked, state=optuna.trial.TrialState.FAIL)
        return Trial(asked.number, labels, values, None, reason)
    # JSON has no infinity.
    bounded = [min(one, 1e300) for one in score.excess]
    asked.set_user_attr("constraints", bounded)
    asked.set_user_attr("objectives", list(score.objectives))
    for name in _LISTS:
        asked.set_user_attr(name, getattr(score, name))
    study.tell(asked, _ranks(space, score))
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
    """Convert a trial of the Optuna study."""
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
        attributes = one.user_attrs
        lists = {name: _tuples(attributes.get(name, ())) for name in _LISTS}
        score = Score(tuple(attributes["objectives"]), tuple(excess), **lists)
    return Trial(one.number, labels, values, score, one.user_attrs.get("reason", ""))


def _tuples(value: Any) -> Any:
    """Return lists from JSON as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _ranks(space: Space, score: Score) -> list[float]:
    """Return the values that a sampler compares: a run without a value outweighs any mean."""
    missing = score.missing or (0,) * len(score.objectives)
    return [
        value + (_MISSING if direction == "minimize" else -_MISSING) * count
        for value, direction, count in zip(
            ((0.0 if one is None else one) for one in score.objectives),
            space.directions,
            missing,
            strict=True,
        )
    ]


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
    """Yield Optuna with its log messages and warnings disabled."""
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
