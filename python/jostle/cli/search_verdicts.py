"""Verdict lines of `jostle search`: the first line that a search prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jostle.results.number_format import count

if TYPE_CHECKING:
    from jostle.parameter_search.boundary import SamplePoint
    from jostle.parameter_search.boundary_report import BoundaryResult
    from jostle.parameter_search.objectives import Objective
    from jostle.parameter_search.sensitivity import Sensitivity
    from jostle.parameter_search.tuning import Part, Score, Task
    from jostle.parameter_search.tuning_report import Candidate, TuningResult


def sensitivity_verdict(found: Sequence[Sensitivity]) -> str:
    """Name the key with the largest effect on each measure."""
    from jostle.parameter_search.sensitivity import by_importance

    return "; ".join(
        f"{one.quantity.text} depends most on {by_importance(one)[0].key}" for one in found
    )


def boundary_verdict(found: BoundaryResult) -> str:
    """Say where the claim stops holding."""
    known = [one for one in found.places if one.judgement.holds is not None]
    holds = sum(bool(one.judgement.holds) for one in known)
    points = count(len(known), "point")
    unknown, why = len(found.unknown), "runs ended too early or have no value, extend `duration`"
    if not known:
        return f"the claim is not judged at any point{f': {why}' if unknown else ''}"
    rest = f"; at {unknown} others {why}" if unknown else ""
    if holds == 0:
        return f"the claim holds at none of {points}{rest}"
    if holds == len(known):
        return f"the claim holds at all {points}{rest}"
    if len(found.variables) == 1:
        return _crossing_verdict(found, known) + rest
    return f"the claim holds at {holds} of {points}{rest}"


def _crossing_verdict(found: BoundaryResult, known: Sequence[SamplePoint]) -> str:
    """Say where the means cross the bound, and where the intervals include it."""
    from jostle.parameter_search.boundary import changes

    (key,) = (variable.key for variable in found.variables)
    pairs = changes(found.places)
    steps = ", ".join(
        f"{'stops' if before.judgement.holds else 'begins'} holding between "
        f"{before.labels[key]} and {after.labels[key]}"
        for before, after in pairs
    )
    text = f"the claim {steps} of {key}"
    if all(one.judgement.certain for pair in pairs for one in pair):
        return text
    unsure = sorted((p for p in known if not p.judgement.certain), key=lambda one: one.point)
    if len(unsure) == len(known):
        return f"by the means, {text}; no point is certain, use --repeats"
    ends = unsure[0].labels[key], unsure[-1].labels[key]
    where = f"at {ends[0]}" if len(unsure) == 1 else f"from {ends[0]} to {ends[1]}"
    return f"by the means, {text}; 95 % intervals leave it open {where}"


def tuning_verdict(found: TuningResult) -> str:
    """Give the best values, and their objectives with seeds that the search did not use.

    The best values are the first that hold every constraint with these seeds and on the test
    conditions, too. If none do, the line says which constraint breaks.
    """
    if not found.found:
        tried = any(trial.score is not None for trial in found.trials)
        return "no trial holds every constraint" if tried else "no trial could be run"
    broken = [_broken(found.task, one) for one in found.found]
    chosen = broken.index("") if "" in broken else 0
    best = found.found[chosen]
    assert best.trial is not None
    values = ", ".join(f"{key} = {label}" for key, label in best.trial.labels.items())
    part: Part = "fresh" if "fresh" in best.scores and "fresh" in found.written.scores else "tuned"
    scores = [one.scores.get(part) for one in (best, found.written)]
    changes = ", ".join(
        f"{one.text} {_scored(scores[0], at, one.unit)} instead of "
        f"{_scored(scores[1], at, one.unit)}"
        for at, one in enumerate(found.task.objectives)
    )
    if len(found.task.objectives) == 1 and not _is_better(found.task.objectives, *scores):
        return f"no values are better than the file's; the best trial has {values}: {changes}"
    if (score := scores[1]) is not None and not score.feasible:
        changes += " (the file's values break a constraint)"
    more = len(found.found) - 1
    others = f"; {count(more, 'other Pareto-optimal trial')}" if more else ""
    if bad := sum(map(bool, broken)) - bool(broken[chosen]):
        others += f", {bad} of which {'breaks' if bad == 1 else 'break'} a constraint"
    but = f", but breaks {broken[chosen]}" if broken[chosen] else ""
    return f"best{but}: {values}: {changes}{others}"


def _broken(task: Task, candidate: Candidate) -> str:
    """Name the constraints that values break where the search did not look; empty if none."""
    from jostle.parameter_search.tuning_report import PARTS

    said = []
    for part, where in PARTS.items():
        score = candidate.scores.get(part)
        if score is None or score.feasible:
            continue
        limits = zip(task.constraints, score.excess, strict=True)
        texts = [f'"{limit.text}"' for limit, excess in limits if excess > 0]
        said.append(f"{' and '.join(texts)} ({where})")
    return ", ".join(said)


def _is_better(objectives: Sequence[Objective], new: Score | None, old: Score | None) -> bool:
    from jostle.parameter_search.tuning import compare_keys

    if new is None or old is None or None in new.objectives or None in old.objectives:
        return new is not None and None not in new.objectives
    if new.feasible != old.feasible:
        return new.feasible
    mine, theirs = compare_keys(objectives, (new, old))
    return mine > theirs


def _scored(score: Score | None, at: int, unit: str) -> str:
    value = None if score is None else score.objectives[at]
    if score is None or value is None:
        return "no value"
    from jostle.parameter_search.tuning_report import bound_sign

    sign = bound_sign(score, at)
    text = f"{sign}{value:.4g} {unit}".rstrip()
    return f"{text} ({count(score.unfinished[at], 'unfinished run')})" if sign else text
