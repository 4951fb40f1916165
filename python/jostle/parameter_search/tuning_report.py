"""Result of tuning compared with the original values, on tuned and on held-out conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np

from jostle.errors import FailedRunsError, InputError
from jostle.figures.data import Cloud, Curve, CurvesData, ScatterData
from jostle.parameter_search.tuning import (
    Carry,
    Part,
    Score,
    Task,
    Trial,
    best,
    compare_keys,
    evaluate,
)
from jostle.results.condition_names import short_names
from jostle.results.number_format import ABSENT, count
from jostle.results.run_count import RunCount
from jostle.results.text_table import Table

if TYPE_CHECKING:
    from jostle.figures.renderer import FigureData
    from jostle.parameter_search.objectives import Objective
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan

__all__ = [
    "PARTS",
    "Candidate",
    "TuningResult",
    "baseline",
    "bound_sign",
    "evaluate_best",
    "figure",
    "table",
]  # fmt: skip

PARTS: Final[Mapping[Part, str]] = {
    "tuned": "tuned on",
    "fresh": "other seeds",
    "held": "held out",
}
"""Names of the parts in tables and texts."""
_SHOWN: Final = 10


@dataclass(frozen=True)
class Candidate:
    """Values and their score on each part.

    Attributes
    ----------
    trial
        Trial; None for the original values.
    scores
        By part; a part without runs is absent.
    """

    trial: Trial | None
    scores: Mapping[Part, Score]


@dataclass(frozen=True)
class TuningResult:
    """Result of tuning.

    Attributes
    ----------
    task
        The task.
    trials
        All trials.
    written
        The scenarios with their original values.
    found
        The best trial, or the Pareto-optimal ones.
    assumptions
        Sentences on trials, runs and conditions that are left out.
    """

    task: Task
    trials: tuple[Trial, ...]
    written: Candidate
    found: tuple[Candidate, ...]
    assumptions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return {
            "parameters": [variable.key for variable in self.task.variables],
            "objectives": [
                {"text": one.text, "direction": one.direction, "unit": one.unit}
                for one in self.task.objectives
            ],
            "constraints": [one.text for one in self.task.constraints],
            "assumptions": list(self.assumptions),
            "written": self._candidate(self.written),
            "found": [self._candidate(one) for one in self.found],
            "trials": [
                {
                    "number": one.number,
                    "values": dict(one.labels),
                    "objectives": list(one.score.objectives) if one.score else None,
                    "unfinished": list(one.score.unfinished) if one.score else None,
                    "feasible": one.score.feasible if one.score else None,
                    "reason": one.reason or None,
                }
                for one in self.trials
            ],
        }

    def _candidate(self, one: Candidate) -> dict[str, Any]:
        names = {"tuned": "tuned_on", "fresh": "other_seeds", "held": "held_out"}
        told: dict[str, Any] = {
            names[part]: {
                "objectives": list(score.objectives),
                "unfinished": list(score.unfinished),
                "feasible": score.feasible,
            }
            for part, score in one.scores.items()
        }
        if one.trial is not None:
            told |= {"trial": one.trial.number, "values": dict(one.trial.labels)}
        return told


def baseline(task: Task, carry: Carry) -> Candidate:
    """Evaluate the scenarios with their original values, and check that there is something to tune.

    Raises
    ------
    InputError
        When an objective has no value, or no condition is left.
    """
    if not task.plans({}, "tuned"):
        raise InputError("every condition is held out: nothing is left to tune on")
    if task.hold and len(task.plans({}, "held")) == len(task.held_out):
        words = ", ".join(f"{key}={label}" for key, label in task.hold.items())
        raise InputError(f"--test-condition {words}: no condition has that")
    counts: list[RunCount] = []

    def counted(plan: RunPlan) -> ResultSet:
        results = carry(plan)
        counts.append(results.run_counts)
        return results

    written = Candidate(None, _scores(task, {}, counted))
    score = written.scores.get("tuned")
    if score is None:
        if failed := RunCount.sum_of(counts).incomplete:
            raise FailedRunsError(f"the unchanged scenarios: {failed}")
        raise InputError("the unchanged scenarios do not run")
    for one, value in zip(task.objectives, score.objectives, strict=True):
        if value is None:
            raise InputError(f'"{one.text}" has no value in any condition')
    for limit, value in zip(task.constraints, score.limited, strict=True):
        if value is None:
            raise InputError(f'"{limit.text}" has no value in any condition')
    return written


def evaluate_best(
    task: Task, trials: Sequence[Trial], written: Candidate, carry: Carry
) -> TuningResult:
    """Run the best trials with other seeds, and on held-out conditions."""
    chosen = best(task, trials)
    if len(task.objectives) == 1:
        chosen = chosen[:1]
    found = tuple(Candidate(one, _scores(task, one.values, carry)) for one in chosen[:_SHOWN])
    said = _omissions(task, trials, (written, *found), len(chosen) - len(found))
    return TuningResult(task, tuple(trials), written, found, tuple(said))


def _omissions(
    task: Task, trials: Sequence[Trial], candidates: Sequence[Candidate], more: int
) -> Iterator[str]:
    """Say which trials, runs and conditions are not part of the result."""
    failed = [str(trial.number) for trial in trials if trial.score is None]
    if failed:
        yield (
            f"Left out: {len(failed)} of {len(trials)} trials ({', '.join(failed[:_SHOWN])}"
            f"{', …' if len(failed) > _SHOWN else ''}), whose values are invalid, of which a run "
            "failed, or which have no value of an objective."
        )
    if more:
        yield f"Left out: {more} more Pareto-optimal trials."
    for one in candidates:
        name = "the scenarios as written" if one.trial is None else f"trial {one.trial.number}"
        values = {} if one.trial is None else one.trial.values
        for part, words in PARTS.items():
            score = one.scores.get(part)
            if score is None and task.plans(values, part):
                yield f"Left out: the score of {name}, {words}, because a run failed."
            if score is None:
                continue
            counts = zip(task.objectives, score.unfinished, score.without_value, strict=True)
            for objective, runs, missing in counts:
                if runs:
                    yield (
                        f'"{objective.text}" is a lower bound: in {count(runs, "run")} a transfer '
                        f"is not complete, and counts with the time that it had ({name}, {words}). "
                        "Fewer such runs are better than any mean. Extend `duration`."
                    )
                if missing:
                    yield (
                        f'Left out of "{objective.text}": {missing} conditions without a value '
                        f"({name}, {words})."
                    )


def _scores(task: Task, values: Mapping[str, Any], carry: Carry) -> dict[Part, Score]:
    found = {part: evaluate(task, values, part, carry) for part in get_args(Part)}
    return {part: score for part, score in found.items() if score is not None}


def table(found: TuningResult) -> Table:
    """Return a table of the result: its values, and each objective on each part."""
    task = found.task
    keys = [variable.key for variable in task.variables]
    short = short_names(keys)
    rows = [found.written, *found.found]
    parts = [part for part in PARTS if any(part in one.scores for one in rows)]
    heads = [f"{PARTS[part]}\n{_head(one)}" for one in task.objectives for part in parts]
    lines = []
    for one in rows:
        trial = one.trial
        name = "as written" if trial is None else str(trial.number)
        labels = [ABSENT if trial is None else trial.labels[key] for key in keys]
        cells = [
            _cell(one.scores.get(part), at) for at in range(len(task.objectives)) for part in parts
        ]
        lines.append((name, *labels, *cells))
    tried = sum(trial.score is not None for trial in found.trials)
    notes = [f"{len(found.trials)} trials, {tried} of which could be evaluated."]
    if task.constraints:
        notes.append("* breaks a constraint: " + "; ".join(one.text for one in task.constraints))
    if refused := [trial for trial in found.trials if trial.reason]:
        notes.append(
            f"{count(len(refused), 'trial')} could not be run; the reason of trial "
            f"{refused[0].number}: {refused[0].reason}"
        )
    if tried and not found.found:
        notes.append("No trial holds every constraint.")
    return Table(
        ("trial", *(short[key] for key in keys), *heads), tuple(lines), (), 1 + len(keys),
        notes=tuple(notes),
    )  # fmt: skip


def _head(one: Objective) -> str:
    arrow = "↑" if one.direction == "maximize" else "↓"
    unit = f"\n{one.unit}" if one.unit else ""
    return f"{one.text} {arrow}{unit}"


def _cell(score: Score | None, at: int) -> str:
    if score is None:
        return ABSENT
    value = score.objectives[at]
    mark = "" if score.feasible else "*"
    return ABSENT if value is None else f"{bound_sign(score, at)}{value:.4g}{mark}"


def bound_sign(score: Score, at: int) -> str:
    """Return the sign before an objective that is a lower bound, because runs are unfinished."""
    return "> " if score.unfinished and score.unfinished[at] else ""


def figure(found: TuningResult) -> FigureData:
    """Return the Pareto front of two objectives, or the progress of one over the trials."""
    task = found.task
    there = [t for t in found.trials if t.score and None not in t.score.objectives]
    labels = [f"{one.text} ({one.unit})" if one.unit else one.text for one in task.objectives]

    def objective_values(trials: Sequence[Trial | None], at: int) -> Any:
        return np.array([t.score.objectives[at] for t in trials if t and t.score], dtype=np.float64)

    if len(task.objectives) == 1:
        feasible = [t for t in there if t.score and t.score.feasible]
        values = objective_values(feasible, 0)
        order = compare_keys(task.objectives, [t.score for t in feasible if t.score])
        # The best trial so far may have a longer mean than an earlier one with unfinished runs.
        ranks = [sum(other < one for other in order) for one in order]
        highest = list(accumulate(ranks, max))
        leading = [ranks.index(rank) for rank in highest]
        so_far = values[leading]
        numbers = np.array([float(t.number) for t in feasible])
        none = np.full(numbers.size, np.nan)
        curve = Curve("best so far", numbers, so_far, none, none)
        return CurvesData(
            "Trial", labels[0], (curve,), steps=False, caption=_bound_note(feasible).strip()
        )
    front = [one.trial for one in found.found]
    others = [t for t in there if t.number not in {f.number for f in front if f}]
    clouds = [
        Cloud("tried", objective_values(others, 0), objective_values(others, 1)),
        Cloud("best", objective_values(front, 0), objective_values(front, 1)),
    ]
    written = found.written.scores["tuned"].objectives
    clouds.append(
        Cloud(
            "as written", np.array([written[0]], dtype=float), np.array([written[1]], dtype=float)
        )
    )
    caption = f"On the conditions that were tuned on.{_bound_note(there)}"
    return ScatterData(labels[0], labels[1], tuple(clouds), caption=caption)


def _bound_note(trials: Sequence[Trial]) -> str:
    """Say in how many trials a run is unfinished; empty if in none."""
    bounded = sum(any(t.score.unfinished) for t in trials if t.score)
    return f" Lower bounds in {count(bounded, 'trial')} with unfinished runs." if bounded else ""
