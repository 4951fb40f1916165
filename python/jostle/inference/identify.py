"""Identification of the controller of a flow: simulates candidates on the same network."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.errors import InputError, JostleError
from jostle.inference.candidates import candidates
from jostle.inference.curve_distance import level_and_change_distances
from jostle.inference.observed_flow import ObservedFlow, observe
from jostle.inference.run_context import (
    KNOWN_RATE,
    LATENESS_S,
    sender_in,
    with_perturbed_links,
    with_random_delay,
)
from jostle.scenario import Condition, PlannedRun, RunPlan

if TYPE_CHECKING:
    from jostle.run_spec import RunSpec
    from jostle.runner.session import Session

__all__ = [
    "REPLICAS",
    "Identification",
    "RankedCandidate",
    "closest_runs",
    "identify",
    "observe_candidates",
    "probabilities",
    "rank",
]

REPLICAS: Final = 3
"""Runs of each candidate, on links that differ slightly."""
SHARPNESS: Final = 4.98
"""Weights are proportional to distance to the power of minus this.

docs/explanation/inference.md explains it.
"""
NONE_DISTANCE: Final = 0.002
"""Distance at which a candidate and "none of these" have equal weight if the next answer is as
close."""
RIVALRY: Final = 0.91
"""Weight of the next answer in the distance of "none of these", in the geometric mean."""
CALIBRATION: Final = ((0.0, 0.0), (0.1, 0.03), (0.25, 0.31), (0.52, 0.6), (0.78, 0.85),
                      (0.98, 0.89), (1.0, 0.98))  # fmt: skip
"""Share of the weights that the first answer has, and how often such an answer is right: an
isotonic regression, linear between points."""
_USUAL_DISTANCE: Final = 0.06
"""Distance of the next answer if there is only one: the median of the runs that calibrate."""
_SAME: Final = 1e-6
"""Relative difference of distances up to which candidates act alike on a path."""


@dataclass(frozen=True)
class RankedCandidate:
    """A candidate with its probability.

    Attributes
    ----------
    controller
        Name of the controller.
    probability
        Probability that it is the sender, with equal priors for all candidates and none of them.
    distance
        Distance of its closest run; see `curve_distances`.
    nearest
        Closest run.
    """

    controller: str
    probability: float
    distance: float
    nearest: ObservedFlow


@dataclass(frozen=True)
class Identification:
    """The candidates for the sender of a flow.

    Attributes
    ----------
    observed
        Observed flow.
    ranking
        All candidates, the most likely first.
    none_of_these
        Probability that the sender is none of the candidates.
    links
        Specifications of the links on which candidates were run.
    assumptions
        Sentences on what was assumed about the candidates, and on those that were left out.
    missing
        Sentences on what the measurement lacks for an identification.
    """

    observed: ObservedFlow
    ranking: tuple[RankedCandidate, ...]
    none_of_these: float
    links: Sequence[Mapping[str, Any]]
    assumptions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def merged_ranking(self) -> list[tuple[str, float]]:
        """The candidates with their probability; candidates that act alike on the path are one."""
        found: list[tuple[list[str], float]] = []
        last = 0.0
        for one in self.ranking:
            if found and one.distance <= last * (1 + _SAME):
                names, share = found.pop()
                found.append(([*names, one.controller], share + one.probability))
            else:
                found.append(([one.controller], one.probability))
            last = one.distance
        return [(" or ".join(names), share) for names, share in found]

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `jostle identify --json` prints."""
        return {
            "format": "jostle.identification/1",
            "flow": self.observed.flow,
            "ranking": [
                {
                    "controller": one.controller,
                    "probability": one.probability,
                    "distance": one.distance,
                }
                for one in self.ranking
            ],
            "none_of_these": self.none_of_these,
            "link": {"links": list(self.links)},
            "assumptions": list(self.assumptions),
            "missing": list(self.missing),
        }


def identify(
    observed: ObservedFlow,
    around: RunSpec,
    names: Sequence[str],
    session: Session,
    replicas: int = REPLICAS,
    *,
    on_time: bool = False,
    rate_error: float = KNOWN_RATE,
    alternatives: Sequence[RunSpec] = (),
) -> Identification:
    """Rank controllers by the similarity of their flows to an observed flow.

    Parameters
    ----------
    observed
        Observed flow; its series has the intervals of `around`.
    around
        Run that contains the flow, with any controller in its place; see `run_context`.
    names
        Names of the candidates.
    session
        Session that simulates candidates.
    replicas
        Runs of each candidate.
    on_time
        Whether the path adds no random delay, as in simulated runs. If false, each candidate also
        runs on paths with random delay (`with_random_delay`).
    rate_error
        Relative perturbation of the links' rates; see `with_perturbed_links`.
    alternatives
        Further networks that the flow may have crossed; see `alternative_networks`.

    Raises
    ------
    InputError
        If there is no candidate that can run.
    """
    seen = observe_candidates(
        around, observed.flow, names, session, replicas, on_time=on_time, rate_error=rate_error,
        alternatives=alternatives,
    )  # fmt: skip
    found = rank(observed, seen, around["links"])
    said = _assumptions(around, observed.flow, names, seen, on_time=on_time)
    return replace(found, assumptions=tuple(said))


def _assumptions(
    around: RunSpec,
    flow: str,
    names: Sequence[str],
    seen: Sequence[tuple[str, ObservedFlow]],
    *,
    on_time: bool,
) -> Iterator[str]:
    """Say what is assumed about candidates, and which of them were not compared."""
    name = sender_in(around, flow)
    sender = next(each for each in around["flows"] if each["name"] == name)
    yield "Candidates have default parameters and their usual slow start."
    if not on_time:
        yield (
            f"Each candidate also ran on paths with random delays of {LATENESS_S[0] * 1e3:g} to "
            f"{LATENESS_S[-1] * 1e3:g} ms."
        )
    usable = [one.controller for one in candidates(names, sender)]
    need_ecn = [one for one in names if one not in usable]
    if need_ecn:
        yield f"Left out: {', '.join(need_ecn)}, because the flow has no ECN."
    compared = {one for one, _ in seen}
    missing = [one for one in usable if one not in compared]
    if missing:
        yield (
            f"Left out: {', '.join(missing)}. Their runs failed or sent too little to be compared."
        )


def observe_candidates(
    around: RunSpec,
    flow: str,
    names: Sequence[str],
    session: Session,
    replicas: int = REPLICAS,
    *,
    on_time: bool = False,
    rate_error: float = KNOWN_RATE,
    alternatives: Sequence[RunSpec] = (),
) -> list[tuple[str, ObservedFlow]]:
    """Run candidates in place of a flow's sender; return controller and observation of each run.

    Runs that send too little for a comparison are dropped. Parameters are the same as for
    `identify`.
    """
    flow = sender_in(around, flow)
    sender = next(each for each in around["flows"] if each["name"] == flow)
    chosen = candidates(names, sender)
    if not chosen:
        raise InputError("no candidate: each of them needs marks, and the flow has no ECN")
    paths = [
        with_perturbed_links(network, number, rate_error)
        for network in (around, *alternatives)
        for number in range(replicas)
    ]
    if not on_time:
        paths += [with_random_delay(around, flow, mean_s) for mean_s in LATENESS_S]
    runs = [
        PlannedRun(at, number, one.sends(path, flow))
        for at, one in enumerate(chosen)
        for number, path in enumerate(paths)
    ]
    conditions = tuple(Condition(at, {"controller": c.controller}) for at, c in enumerate(chosen))
    results = session.carry_out(RunPlan("candidates", conditions, runs))
    seen = []
    for result in results.results:
        with contextlib.suppress(InputError):
            seen.append((chosen[result.condition].controller, observe(result.run, flow)))
    if not seen:
        why = results.failures[0].error if results.failures else "none sends long enough"
        raise JostleError(f"no candidate could be compared: {why}")
    return seen


def rank(
    observed: ObservedFlow,
    seen: Sequence[tuple[str, ObservedFlow]],
    links: Sequence[Mapping[str, Any]],
) -> Identification:
    """Rank the results of `observe_candidates` by each candidate's closest runs."""
    best = closest_runs(observed, seen)
    shares = probabilities([distance for distance, _ in best.values()])
    ranking = tuple(
        RankedCandidate(name, share, distance, nearest)
        for (name, (distance, nearest)), share in zip(best.items(), shares[:-1], strict=True)
    )
    return Identification(observed, ranking, shares[-1], links, missing=observed.missing)


def closest_runs(
    observed: ObservedFlow, seen: Sequence[tuple[str, ObservedFlow]]
) -> dict[str, tuple[float, ObservedFlow]]:
    """Return each candidate's distance and closest run, the closest candidate first.

    A distance combines the smallest of each part: chance decides about both.
    """
    parts = level_and_change_distances(observed, [each for _, each in seen])
    best = {}
    for name in dict.fromkeys(name for name, _ in seen):
        mine = np.array([at for at, (other, _) in enumerate(seen) if other == name])
        distance = float(np.sqrt(parts[mine].min(axis=0).prod()))
        best[name] = distance, seen[mine[parts[mine].prod(axis=1).argmin()]][1]
    return dict(sorted(best.items(), key=lambda item: item[1][0]))


def probabilities(
    distances: Sequence[float],
    sharpness: float = SHARPNESS,
    strange: float = NONE_DISTANCE,
    rivalry: float = RIVALRY,
    calibration: Sequence[tuple[float, float]] = CALIBRATION,
) -> list[float]:
    """Convert distances to probabilities of the candidates and, last, of none of them.

    Weights are a power law, because distances of one controller on two stacks span two orders of
    magnitude, so ratios of distances matter. Candidates that act alike are one answer. The distance
    of "none of these" is a geometric mean of a constant and the distance of the next answer: on
    paths where simulator and kernel differ more, all candidates are farther away, and a controller
    that is no candidate has several that are equally close. The probability of the first answer is
    how often an answer of its weight was right. All constants are estimates from captures of kernel
    runs on paths that no test uses (docs/explanation/inference.md). A fifth of these senders was
    none of the candidates.

    Examples
    --------
    >>> [round(share, 2) for share in probabilities([0.01, 0.04])]
    [0.96, 0.01, 0.04]
    >>> [round(share, 2) for share in probabilities([0.03, 0.04])]
    [0.54, 0.1, 0.36]
    """
    every = np.array(distances)
    is_first = every <= every.min() * (1 + _SAME)
    others = every[~is_first]
    following = others.min() if others.size else _USUAL_DISTANCE
    none = strange ** (1 - rivalry) * following**rivalry
    alike = np.array([np.isclose(every, one, rtol=_SAME, atol=0.0).sum() for one in every])
    weights = (np.append(every, none) / min(every.min(), none)) ** -sharpness
    weights /= np.append(alike, 1) * (weights / np.append(alike, 1)).sum()
    leads = np.append(is_first, False)
    share, rest = float(weights[leads].sum()), float(weights[~leads].sum())
    right = float(np.interp(share, *np.transpose(calibration)))
    shares: list[float] = (weights * np.where(leads, right / share, (1 - right) / rest)).tolist()
    return shares
