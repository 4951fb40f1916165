"""Which controller sends like this: candidates on the same network, and who comes closest."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.errors import InputError, JostleError
from jostle.inference.candidates import candidates
from jostle.inference.curves import curve_distances
from jostle.inference.observation import Observation, observe
from jostle.inference.surroundings import LATENESS_S, late, sender_in, shaken
from jostle.scenario import Condition, Plan, PlannedRun

if TYPE_CHECKING:
    from jostle.run_spec import RunSpec
    from jostle.running.session import Session

__all__ = [
    "REPLICAS",
    "Identification",
    "Ranked",
    "identify",
    "probabilities",
    "rank",
    "seen_of",
]

REPLICAS: Final = 3
"""Runs of each candidate, on links that differ a little."""
SHARPNESS: Final = 3.07
"""Probabilities are in proportion to distance to the power of minus this; see docs/identify.md."""
STRANGE: Final = 0.015
"""Distance at which it is as likely that the sender is none of the candidates."""


@dataclass(frozen=True)
class Ranked:
    """A candidate and how well it explains what was seen.

    Attributes
    ----------
    controller
        Its name.
    probability
        That it is the sender, if all candidates and "none of these" were equally likely before.
    distance
        Of its closest run; see `curve_distances`.
    nearest
        That run.
    """

    controller: str
    probability: float
    distance: float
    nearest: Observation


@dataclass(frozen=True)
class Identification:
    """Who may have sent a flow.

    Attributes
    ----------
    observed
        The flow.
    ranking
        Every candidate, the likeliest first.
    none_of_these
        Probability that it was none of them.
    links
        Specifications of the links on which candidates were run.
    """

    observed: Observation
    ranking: tuple[Ranked, ...]
    none_of_these: float
    links: Sequence[Mapping[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Give the ranking as `jostle identify --json` prints it."""
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
        }


def identify(
    observed: Observation,
    around: RunSpec,
    names: Sequence[str],
    session: Session,
    replicas: int = REPLICAS,
    *,
    on_time: bool = False,
) -> Identification:
    """Rank controllers by how much they send like an observed flow.

    Parameters
    ----------
    observed
        The flow; its series has the intervals of `around`.
    around
        The run that it was part of, with any controller in its place; see `surroundings`.
    names
        Controllers that are tried.
    session
        What candidates are run with: the simulator.
    replicas
        Runs of each.
    on_time
        Whether the path is known to bring packets on time, as those of runs do. Elsewhere each
        candidate has further runs, on paths that are late (`late`).

    Raises
    ------
    InputError
        When no candidate can be tried.
    """
    seen = seen_of(around, observed.flow, names, session, replicas, on_time=on_time)
    return rank(observed, seen, around["links"])


def seen_of(
    around: RunSpec,
    flow: str,
    names: Sequence[str],
    session: Session,
    replicas: int = REPLICAS,
    *,
    on_time: bool = False,
) -> list[tuple[str, Observation]]:
    """Run candidates in place of a flow's sender: each run's controller, and what is seen of it.

    Runs that send too little to be compared are left out. Parameters are those of `identify`.
    """
    flow = sender_in(around, flow)
    sender = next(each for each in around["flows"] if each["name"] == flow)
    chosen = candidates(names, sender)
    if not chosen:
        raise InputError("no candidate: each of them needs marks, and the flow has no ECN")
    paths = [shaken(around, number) for number in range(replicas)]
    if not on_time:
        paths += [late(around, flow, mean_s) for mean_s in LATENESS_S]
    runs = [
        PlannedRun(at, number, one.sends(path, flow))
        for at, one in enumerate(chosen)
        for number, path in enumerate(paths)
    ]
    conditions = tuple(Condition(at, {"controller": c.controller}) for at, c in enumerate(chosen))
    results = session.carry_out(Plan("candidates", conditions, runs))
    seen = []
    for result in results.results:
        with contextlib.suppress(InputError):
            seen.append((chosen[result.condition].controller, observe(result.run, flow)))
    if not seen:
        why = results.failures[0].error if results.failures else "none sends long enough"
        raise JostleError(f"no candidate could be compared: {why}")
    return seen


def rank(
    observed: Observation,
    seen: Sequence[tuple[str, Observation]],
    links: Sequence[Mapping[str, Any]],
) -> Identification:
    """Rank candidates, which are given as `seen_of` gives them, by their closest runs."""
    distances = curve_distances(observed, [each for _, each in seen])
    best: dict[str, int] = {}
    for position in np.argsort(distances, kind="stable").tolist():
        best.setdefault(seen[position][0], position)
    shares = probabilities([float(distances[position]) for position in best.values()])
    ranking = tuple(
        Ranked(name, share, float(distances[position]), seen[position][1])
        for (name, position), share in zip(best.items(), shares[:-1], strict=True)
    )
    return Identification(observed, ranking, shares[-1], links)


def probabilities(
    distances: Sequence[float], sharpness: float = SHARPNESS, strange: float = STRANGE
) -> list[float]:
    """Turn distances into probabilities of the candidates and, last, of none of them.

    A power law, because distances of the same controller on two stacks span two orders of
    magnitude: what counts is how many times closer one is than another. Both constants are the
    likeliest ones for kernel runs on links that no test uses (docs/identify.md).

    Examples
    --------
    >>> [round(share, 2) for share in probabilities([0.01, 0.02])]
    [0.71, 0.08, 0.2]
    """
    powers = (np.array([*distances, strange]) / min(*distances, strange)) ** -sharpness
    shares: list[float] = (powers / powers.sum()).tolist()
    return shares
