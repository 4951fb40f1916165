"""Recommendation for a goal on a network: compares candidates with the baseline by simulation."""

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
from jostle.scenario import Condition, PlannedRun, RunPlan, Scenario
from jostle.stats import Estimate, estimate

if TYPE_CHECKING:
    from jostle.inference.network_source import KnownNetwork
    from jostle.run_spec import FlowSpec
    from jostle.runner.session import Session

__all__ = ["NOW", "Advice", "CandidateResult", "SenderChoice", "advise", "document_of"]

_SCREENED: Final = 3
"""Number of networks on which every candidate is screened."""
_KEPT: Final = 3
"""Controllers besides Cubic whose variants (windows, pacing, queues, proxy) are screened."""
_MEASURED: Final = 6
"""Number of candidates that are measured after screening."""
_WINDOWS: Final = ("20 packets", "50 packets")
_ALIKE: Final = 2
"""Maximum number of measured candidates with the same controller."""
_QUEUES: Final[Mapping[str, Any]] = {
    "0.5 BDP": {"kind": "drop_tail", "limit": "0.5 BDP"},
    "1 BDP": {"kind": "drop_tail", "limit": "1 BDP"},
    "2 BDP": {"kind": "drop_tail", "limit": "2 BDP"},
    "codel": {"kind": "codel", "limit": "10000 packets"},
    "fq_codel": "fq_codel",
}
_PROXY_BUFFER: Final = "4 MB"


@dataclass(frozen=True, eq=False)
class SenderChoice:
    """A setting of the sender, and optionally of the bottleneck queue.

    Attributes
    ----------
    label
        Description of the setting.
    sender
        Keys of the flow whose sender is configured.
    queue
        Queue of the bottleneck; None for the existing queue.
    """

    label: str
    sender: Mapping[str, Any]
    queue: Any = None


NOW: Final = SenderChoice("cubic, IW 10", {"controller": "cubic"})
"""The baseline: the defaults of a Linux host."""


@dataclass(frozen=True)
class CandidateResult:
    """A measured candidate.

    Attributes
    ----------
    choice
        Setting of the candidate.
    gain
        Mean difference of the score from the baseline, over the same networks and seeds. If the
        goal's score is a logarithm, the gain is a factor (1: no difference).
    numbers
        Mean of each of the goal's measures.
    """

    choice: SenderChoice
    gain: Estimate
    numbers: Mapping[str, Estimate]


@dataclass(frozen=True)
class Advice:
    """Candidates ranked by their gain.

    Attributes
    ----------
    baseline
        Result of the baseline.
    ranking
        Measured candidates, the best first.
    tried
        Number of screened candidates.
    """

    baseline: CandidateResult
    ranking: tuple[CandidateResult, ...]
    tried: int

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `jostle advise --json` prints."""
        return {
            "format": "jostle.advice/2",
            "baseline": _candidate_dict(self.baseline),
            "ranking": [_candidate_dict(one) for one in self.ranking],
            "tried": self.tried,
        }


def _candidate_dict(found: CandidateResult) -> dict[str, Any]:
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
    """Networks and flows with which candidates are simulated."""

    network: KnownNetwork
    goal: Goal
    length_s: float
    session: Session

    def measured(
        self, choices: Sequence[SenderChoice], numbers: Sequence[int]
    ) -> dict[SenderChoice, list[Measured]]:
        """Run every choice on the same networks and seeds, and return the measures of its runs."""
        runs = [
            PlannedRun(at, number, self._spec(choice, number))
            for at, choice in enumerate(choices)
            for number in numbers
        ]
        conditions = tuple(Condition(at, {"choice": c.label}) for at, c in enumerate(choices))
        results = self.session.carry_out(RunPlan("advice", conditions, runs))
        if results.failures:
            raise JostleError(f"candidates cannot be compared: {results.run_counts}")
        taken: dict[tuple[int, int], Measured] = {
            (result.condition, result.run.spec["seed"]): self.goal.measure(result.run)
            for result in results.results
        }
        return {
            choice: [taken[at, number] for number in numbers] for at, choice in enumerate(choices)
        }

    def _spec(self, choice: SenderChoice, number: int) -> Any:
        document = document_of(self.network, self.goal, self.length_s, choice, number)
        planned = Scenario.from_dict(document, name="advice").plan(repeats=1, seed=number)
        return copy.deepcopy(planned.runs[0].spec)

    def gains(self, own: Sequence[Measured], now: Sequence[Measured]) -> list[float]:
        """Return the difference of the score from the baseline for each run."""
        score = self.goal.score
        return [
            score(mine, there) - score(there, there) for mine, there in zip(own, now, strict=True)
        ]

    def order(self, own: Sequence[Measured], now: Sequence[Measured]) -> tuple[float, float]:
        """Return the sort key of a candidate; larger is better."""
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
    """Find the setting that serves a goal best.

    Every controller is screened on 3 networks, then the best three and Cubic with other initial
    windows and pacing. The six best candidates are measured on new networks and seeds, so that the
    reported gain is not biased by the selection.

    Parameters
    ----------
    network
        Network for which a setting is recommended.
    goal
        Goal; one of `GOALS`.
    names
        Available controllers.
    session
        Session that simulates candidates.
    seeds
        Number of networks, each with a seed, on which the best candidates are measured.
    length_s
        Duration of a download.
    queues, proxy
        Whether to try other queues of the bottleneck, and a proxy before it, which an end host
        cannot set.
    """
    trial = _Trial(network, goal, length_s, session)
    first = list(range(1, _SCREENED + 1))
    # The flow uses no ECN, because existing queues may not mark: exclude controllers that need it.
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
    found = [_candidate_result(trial, choice, finals[choice], now) for choice in chosen]
    found.sort(key=lambda one: trial.order(finals[one.choice], now), reverse=True)
    return Advice(_candidate_result(trial, NOW, now, now), tuple(found), 1 + len(seen))


def _changed(
    kept: Sequence[SenderChoice], link: str, *, queues: bool, proxy: bool
) -> list[SenderChoice]:
    """Return the variants of the best controllers."""
    changed = [one for choice in kept for one in _variants(choice)]
    if queues:
        changed += [
            SenderChoice(f"{one.label}, {label}", one.sender, queue)
            for one in kept
            for label, queue in _QUEUES.items()
        ]
    if proxy:
        changed += [_behind_a_proxy(one, link) for one in kept]
    return changed


def _controller(choice: SenderChoice) -> str:
    proxy: Mapping[str, str] = choice.sender.get("proxy", choice.sender)
    return proxy["controller"]


def _best(
    trial: _Trial,
    seen: Mapping[SenderChoice, Sequence[Measured]],
    now: Sequence[Measured],
    most_alike: int,
) -> list[SenderChoice]:
    """Sort choices, the best first, without those that change nothing.

    At most `most_alike` choices have the same controller. If two choices have identical runs, only
    the first is kept: Hybla sets the initial window itself, and a transfer of 1 MB may end before
    the controller makes a difference.
    """
    chosen: list[SenderChoice] = []
    for choice in sorted(seen, key=lambda one: trial.order(seen[one], now), reverse=True):
        new = all(seen[choice] != seen[one] for one in chosen)
        alike = [one for one in chosen if _controller(one) == _controller(choice)]
        if new and len(alike) < most_alike:
            chosen.append(choice)
    return chosen


def _plain(name: str) -> SenderChoice:
    return SenderChoice(f"{name}, IW 10", {"controller": name})


def _variants(choice: SenderChoice) -> list[SenderChoice]:
    """Return variants with larger initial windows, with `fq` at the host, and with both."""
    name = choice.sender["controller"]
    windows = [("10 packets", "IW 10"), *((size, f"IW {size.split()[0]}") for size in _WINDOWS)]
    # BBR paces regardless of the host's queue.
    paced = ("none",) if name.startswith("bbr") else ("none", "fq")
    return [
        SenderChoice(
            f"{name}, {label}{', paced' if pacing == 'fq' else ''}",
            {"controller": name, "initial_window": size, "pacing": pacing},
        )
        for size, label in windows
        for pacing in paced
        if (label, pacing) != ("IW 10", "none")
    ]


def _behind_a_proxy(choice: SenderChoice, link: str) -> SenderChoice:
    name = choice.sender["controller"]
    proxy = {"link": link, "controller": name, "buffer": _PROXY_BUFFER}
    return SenderChoice(f"cubic, proxy with {name}", {**NOW.sender, "proxy": proxy})


def document_of(
    network: KnownNetwork, goal: Goal, length_s: float, choice: SenderChoice, number: int = 0
) -> dict[str, Any]:
    """Return a candidate's run as a scenario document; `number` selects the network (`drawn`)."""
    tables, keys = network.drawn(number)
    if choice.queue is not None:
        table = cast("dict[str, Any]", tables[network.link])
        table["queue"] = copy.deepcopy(choice.queue)
    duration_s = 60.0 if goal.duration is None else goal.duration * length_s
    document: dict[str, Any] = {
        "title": f"Advice: {choice.label}",
        "duration": f"{duration_s:g} s",
        "sampling_interval": f"{duration_s / 60:g} s",
        "seed": max(number, 1),
        **tables,
        "flows": goal.flows(choice.sender, keys, length_s),
    }
    if goal.duration == 2:
        middle, end = f"{length_s:g} s", f"{duration_s:g} s"
        document["phases"] = {"alone": ["0 s", middle], "beside": [middle, end]}
    return document


def _candidate_result(
    trial: _Trial, choice: SenderChoice, own: Sequence[Measured], now: Sequence[Measured]
) -> CandidateResult:
    gain = estimate(trial.gains(own, now), "")
    if trial.goal.relative and gain.value is not None:
        low, high = (None if end is None else math.exp(end) for end in (gain.low, gain.high))
        gain = Estimate(math.exp(gain.value), low, high, gain.n, "", gain.method)
    numbers = {
        name: estimate([run[name] for run in own], "", bounds=(0.0, None)) for name in own[0]
    }
    return CandidateResult(choice, gain, numbers)
