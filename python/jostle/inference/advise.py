"""What would serve a goal on a network: candidates are run, and the best are held against now."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from jostle.errors import JostleError
from jostle.inference.candidates import candidates
from jostle.inference.goals import Goal, Measured
from jostle.scenario import Condition, Plan, PlannedRun, Scenario
from jostle.stats import Estimate, estimate

if TYPE_CHECKING:
    from jostle.inference.known_network import KnownNetwork
    from jostle.run_spec import FlowSpec
    from jostle.running.session import Session

__all__ = ["NOW", "Advice", "Choice", "Found", "advise", "document_of"]

_SCREENED: Final = 3
"""Networks on which every candidate is tried, before the best are measured on others."""
_KEPT: Final = 3
"""Controllers beside Cubic that are tried with other windows, pacing, queues and proxies."""
_MEASURED: Final = 6
"""Candidates that are measured."""
_WINDOWS: Final = ("20 packets", "50 packets")
_ALIKE: Final = 2
"""Of them at most with the same controller."""
_QUEUES: Final[Mapping[str, Any]] = {
    "0.5 BDP": {"kind": "drop_tail", "limit": "0.5 BDP"},
    "1 BDP": {"kind": "drop_tail", "limit": "1 BDP"},
    "2 BDP": {"kind": "drop_tail", "limit": "2 BDP"},
    "codel": {"kind": "codel", "limit": "10000 packets"},
    "fq_codel": "fq_codel",
}
_PROXY_BUFFER: Final = "4 MB"


@dataclass(frozen=True, eq=False)
class Choice:
    """One way to send, and to queue.

    Attributes
    ----------
    label
        In words.
    sender
        Keys of the flow that is advised.
    queue
        Of the bottleneck; None for the one that is there.
    """

    label: str
    sender: Mapping[str, Any]
    queue: Any = None


NOW: Final = Choice("cubic, IW 10", {"controller": "cubic"})
"""What a host of Linux does by itself."""


@dataclass(frozen=True)
class Found:
    """A candidate that was measured.

    Attributes
    ----------
    choice
        The candidate.
    gain
        Mean difference of the score from what there is now, over the same networks and seeds; as
        factors where the goal's score is a logarithm (1: no difference).
    numbers
        Mean of each of the goal's numbers.
    """

    choice: Choice
    gain: Estimate
    numbers: Mapping[str, Estimate]


@dataclass(frozen=True)
class Advice:
    """Candidates by what they gain.

    Attributes
    ----------
    now
        What there is.
    ranking
        Those that were measured, the best first.
    tried
        Candidates in all.
    """

    now: Found
    ranking: tuple[Found, ...]
    tried: int

    def to_dict(self) -> dict[str, Any]:
        """Give it as `jostle advise --json` prints it."""
        return {
            "format": "jostle.advice/1",
            "now": _told(self.now),
            "ranking": [_told(one) for one in self.ranking],
            "tried": self.tried,
        }


def _told(found: Found) -> dict[str, Any]:
    def span(of: Estimate) -> dict[str, Any]:
        return {"value": of.value, "low": of.low, "high": of.high, "n": of.n}

    return {
        "label": found.choice.label,
        "sender": dict(found.choice.sender),
        "queue": found.choice.queue,
        "gain": span(found.gain),
        "numbers": {name: span(of) for name, of in found.numbers.items()},
    }


@dataclass(frozen=True)
class _Trial:
    """Networks and flows on which candidates are tried."""

    network: KnownNetwork
    goal: Goal
    length_s: float
    session: Session

    def measured(
        self, choices: Sequence[Choice], numbers: Sequence[int]
    ) -> dict[Choice, list[Measured]]:
        """Run every choice on the same networks, with the same seeds, and take its numbers."""
        runs = [
            PlannedRun(at, number, self._spec(choice, number))
            for at, choice in enumerate(choices)
            for number in numbers
        ]
        conditions = tuple(Condition(at, {"choice": c.label}) for at, c in enumerate(choices))
        results = self.session.carry_out(Plan("advice", conditions, runs))
        if results.failures:
            raise JostleError(f"a candidate failed: {results.failures[0].error}")
        taken: dict[tuple[int, int], Measured] = {
            (result.condition, result.run.spec["seed"]): self.goal.measure(result.run)
            for result in results.results
        }
        return {
            choice: [taken[at, number] for number in numbers] for at, choice in enumerate(choices)
        }

    def _spec(self, choice: Choice, number: int) -> Any:
        document = document_of(self.network, self.goal, self.length_s, choice, number)
        planned = Scenario.from_dict(document, name="advice").plan(repeats=1, seed=number)
        return copy.deepcopy(planned.runs[0].spec)

    def gains(self, own: Sequence[Measured], now: Sequence[Measured]) -> list[float]:
        """Differences of scores from now, run by run."""
        score = self.goal.score
        return [
            score(mine, there) - score(there, there) for mine, there in zip(own, now, strict=True)
        ]

    def order(self, own: Sequence[Measured], now: Sequence[Measured]) -> tuple[float, float]:
        """Say where it comes: the larger, the better."""
        mean = float(np.mean(self.gains(own, now)))
        if math.isnan(mean):
            return -math.inf, 0.0
        if self.goal.ties is None:
            return mean, 0.0
        name, close = self.goal.ties
        return round(mean / close), float(np.mean([run[name] for run in own]))


def advise(
    network: KnownNetwork,
    goal: Goal,
    names: Sequence[str],
    session: Session,
    seeds: int = 10,
    *,
    length_s: float,
    queues: bool = False,
    proxy: bool = False,
) -> Advice:
    """Find what serves a goal best.

    Every controller is tried on 3 networks, then the best three and Cubic with other initial
    windows and pacing. The six best of all are measured on networks and seeds of their own, so
    that luck in the choice is none in what is said of the chosen.

    Parameters
    ----------
    network
        For which.
    goal
        What for; one of `GOALS`.
    names
        Controllers that a host can have.
    session
        What candidates are run with: the simulator.
    seeds
        Networks, each with a seed, on which the best are measured.
    length_s
        Time that a download is given.
    queues, proxy
        Whether to try other queues of the bottleneck, and a proxy before it: no end host can.
    """
    trial = _Trial(network, goal, length_s, session)
    first = list(range(1, _SCREENED + 1))
    # No queue marks for a host that asks: without ECN those that need it are others.
    bare = cast("FlowSpec", {"linux": "6.1", "ecn": False})
    names = [one.controller for one in candidates(names, bare)]
    plain = [NOW if name == NOW.sender["controller"] else _plain(name) for name in names]
    others = [choice for choice in plain if choice != NOW]
    seen = trial.measured([NOW, *others], first)
    now = seen.pop(NOW)
    best = _best(trial, {NOW: now, **seen}, now, most_alike=1)[:_KEPT]
    kept = [NOW, *(one for one in best if one != NOW)]
    changed = _changed(kept, network.link, queues=queues, proxy=proxy)
    seen.update(trial.measured(changed, first))
    chosen = _best(trial, seen, now, most_alike=_ALIKE)[:_MEASURED]
    after = [_SCREENED + 1 + at for at in range(seeds)]
    finals = trial.measured([NOW, *chosen], after)
    now = finals[NOW]
    found = [_found(trial, choice, finals[choice], now) for choice in chosen]
    found.sort(key=lambda one: trial.order(finals[one.choice], now), reverse=True)
    return Advice(_found(trial, NOW, now, now), tuple(found), 1 + len(seen))


def _changed(kept: Sequence[Choice], link: str, *, queues: bool, proxy: bool) -> list[Choice]:
    """Make of the best controllers all that is tried of them."""
    changed = [one for choice in kept for one in _variants(choice)]
    if queues:
        changed += [
            Choice(f"{one.label}, {label}", one.sender, queue)
            for one in kept
            for label, queue in _QUEUES.items()
        ]
    if proxy:
        changed += [_behind_a_proxy(one, link) for one in kept]
    return changed


def _controller(choice: Choice) -> str:
    pep: Mapping[str, str] = choice.sender.get("pep", choice.sender)
    return pep["controller"]


def _best(
    trial: _Trial,
    seen: Mapping[Choice, Sequence[Measured]],
    now: Sequence[Measured],
    most_alike: int,
) -> list[Choice]:
    """Sort choices, the best first, without those that change nothing.

    Of the same controller there are `most_alike`. Where two have the same runs the first is kept:
    Hybla, say, sets the initial window by itself, and 1 MB may be over before any controller acts.
    """
    chosen: list[Choice] = []
    for choice in sorted(seen, key=lambda one: trial.order(seen[one], now), reverse=True):
        new = all(seen[choice] != seen[one] for one in chosen)
        alike = [one for one in chosen if _controller(one) == _controller(choice)]
        if new and len(alike) < most_alike:
            chosen.append(choice)
    return chosen


def _plain(name: str) -> Choice:
    return Choice(f"{name}, IW 10", {"controller": name})


def _variants(choice: Choice) -> list[Choice]:
    """Larger initial windows, and `fq` at the host, each alone and together."""
    name = choice.sender["controller"]
    windows = [("10 packets", "IW 10"), *((size, f"IW {size.split()[0]}") for size in _WINDOWS)]
    # These pace by themselves whatever the queue of the host.
    paced = ("none",) if name.startswith("bbr") else ("none", "fq")
    return [
        Choice(
            f"{name}, {label}{', paced' if pacing == 'fq' else ''}",
            {"controller": name, "initial_window": size, "pacing": pacing},
        )
        for size, label in windows
        for pacing in paced
        if (label, pacing) != ("IW 10", "none")
    ]


def _behind_a_proxy(choice: Choice, link: str) -> Choice:
    name = choice.sender["controller"]
    pep = {"at": link, "controller": name, "buffer": _PROXY_BUFFER}
    return Choice(f"cubic, proxy with {name}", {**NOW.sender, "pep": pep})


def document_of(
    network: KnownNetwork, goal: Goal, length_s: float, choice: Choice, number: int = 0
) -> dict[str, Any]:
    """Write a candidate's run as a scenario's document; `number` is that of `drawn`."""
    tables, keys = network.drawn(number)
    if choice.queue is not None:
        table = cast("dict[str, Any]", tables[network.link])
        table["queue"] = copy.deepcopy(choice.queue)
    duration_s = 60.0 if goal.duration is None else goal.duration * length_s
    document: dict[str, Any] = {
        "title": f"Advice: {choice.label}",
        "duration": f"{duration_s:g} s",
        "interval": f"{duration_s / 60:g} s",
        "seed": max(number, 1),
        **tables,
        "flows": goal.flows(choice.sender, keys, length_s),
    }
    if goal.duration == 2:
        middle, end = f"{length_s:g} s", f"{duration_s:g} s"
        document["phases"] = {"alone": ["0 s", middle], "beside": [middle, end]}
    return document


def _found(
    trial: _Trial, choice: Choice, own: Sequence[Measured], now: Sequence[Measured]
) -> Found:
    gain = estimate(trial.gains(own, now), "")
    if trial.goal.relative and gain.value is not None:
        low, high = (None if end is None else math.exp(end) for end in (gain.low, gain.high))
        gain = Estimate(math.exp(gain.value), low, high, gain.n, "", gain.method)
    numbers = {
        name: estimate([run[name] for run in own], "", bounds=(0.0, None)) for name in own[0]
    }
    return Found(choice, gain, numbers)
