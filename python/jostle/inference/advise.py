"""Recommendation for a goal on a network: compares changes with the baseline by simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.errors import JostleError
from jostle.inference.advice_setup import AdviceSetup, make_setup
from jostle.inference.advised_changes import (
    NOW,
    Change,
    Senders,
    combined,
    has_shaper,
    proxy_change,
    queue_changes,
    sender_changes,
    variants,
    with_ecn,
    without_ecn,
)
from jostle.inference.flow_benefits import measured
from jostle.inference.goals import Goal, Measured, effect_on
from jostle.scenario import Condition, PlannedRun, RunPlan, ScenarioError
from jostle.scenario.resolve.key_paths import find
from jostle.scenario.service_rate import constant_service_bps
from jostle.stats import Estimate, estimate

if TYPE_CHECKING:
    from jostle.inference.network_source import KnownNetwork
    from jostle.run_spec import FlowSpec
    from jostle.runner.session import Session

__all__ = ["Advice", "AdviceRequest", "ChangeResult", "advise", "is_better"]

_SCREENED: Final = 3
"""Number of networks on which every change is screened."""
_KEPT: Final = 3
"""Changes of senders whose variants (windows, pacing, proxy) are screened."""
_COMBINED: Final = 2
"""Changes of queues that are combined with ECN and with the best change of senders."""
_MEASURED: Final = 6
"""Number of changes that are measured after screening."""
_ALIKE: Final = 2
"""Maximum number of measured changes of one family."""
_DELAY_STEP_S: Final = 0.02
"""Difference of a call's delay that is negligible: the length of a voice packet."""
_EFFECT_STEP: Final = 0.02
"""Difference of the effect on other flows that is negligible."""


@dataclass(frozen=True)
class AdviceRequest:
    """Goal of a recommendation, and the settings that it may change.

    Attributes
    ----------
    goal
        The goal; one of `GOALS`.
    controllers
        Names of controllers that are candidates.
    seeds
        Number of networks, each with a seed, on which the best changes are measured.
    length_s
        Duration of a download, if the traffic is not known.
    queues
        Whether queues of links can be changed; by default, if the network is a scenario.
    senders
        Flows whose senders can be changed; see `AdviceSetup.senders`.
    proxy
        Whether a proxy can be added.
    """

    goal: Goal
    controllers: Sequence[str]
    seeds: int = 10
    length_s: float = 30.0
    queues: bool | None = None
    senders: tuple[str, ...] = ()
    proxy: bool = False


@dataclass(frozen=True)
class ChangeResult:
    """A measured change.

    Attributes
    ----------
    change
        The change.
    gain
        Mean difference of the score from the baseline, over the same networks and seeds. If the
        goal's score is a logarithm, the gain is a factor (1: no difference).
    numbers
        Mean of each measure, by flow.
    effects
        Factor by which the benefit of each flow that the goal is not about changes.
    unfinished
        By flow, the number of transfers in all runs that were not complete, and of all transfers.
        Only flows with such transfers: their times are lower bounds.
    loses
        Flows of which fewer transfers are complete than in the baseline.
    eligible
        Whether it can be recommended: the gain depends on none of the flows in `loses`.
    from_bounds
        Whether the gain depends on a lower bound.
    """

    change: Change
    gain: Estimate
    numbers: Mapping[str, Mapping[str, Estimate]]
    effects: Mapping[str, float]
    unfinished: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    loses: tuple[str, ...] = ()
    eligible: bool = True
    from_bounds: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the change in the form of the JSON document."""
        numbers = {
            name: {
                key: {**one.entry(), "bound": "lower" if name in self.unfinished else None}
                for key, one in of.items()
            }
            for name, of in self.numbers.items()
        }
        return {
            "label": self.change.label,
            "set": dict(self.change.values),
            "gain": {**self.gain.entry(), "from_bounds": self.from_bounds},
            "eligible": self.eligible,
            "flows": numbers,
            "unfinished": {
                name: {"transfers": some, "of": every}
                for name, (some, every) in self.unfinished.items()
            },
            "effect_on_others": dict(self.effects),
        }


@dataclass(frozen=True)
class Advice:
    """Changes ranked by their gain.

    Attributes
    ----------
    setup
        The baseline: network, flows and goal.
    baseline
        Result of the baseline.
    ranking
        Measured changes, the best first.
    tried
        Number of screened changes.
    assumptions
        Sentences on what was assumed and left out.
    """

    setup: AdviceSetup
    baseline: ChangeResult
    ranking: tuple[ChangeResult, ...]
    tried: int
    assumptions: tuple[str, ...]

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Flows with a transfer that is not complete, in the baseline or the best change."""
        rows = (self.baseline, *self.ranking[:1])
        return tuple(
            name for name in self.baseline.numbers if any(name in r.unfinished for r in rows)
        )

    @property
    def improves(self) -> bool:
        """Whether the best change is better than the baseline by more than is negligible."""
        return bool(self.ranking) and is_better(self.ranking[0], self.setup.goal)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `jostle advise --json` prints, without the answer in words."""
        return {
            "format": "jostle.advice/3",
            "goal": self.setup.goal.name,
            "served": list(self.setup.served),
            "assumptions": list(self.assumptions),
            "baseline": self.baseline.to_dict(),
            "ranking": [one.to_dict() for one in self.ranking],
            "tried": self.tried,
            "network": self.setup.network.to_dict(),
        }


def is_better(found: ChangeResult, goal: Goal) -> bool:
    """Return whether a change is better than the baseline by more than is negligible.

    The lower end of its 95 % interval is above the baseline. A change with which fewer transfers
    are complete is not: their times are only known to be longer.
    """
    value, low = found.gain.value, found.gain.low
    if value is None or low is None or not found.eligible:
        return False
    if goal.relative:
        return low > 1 and math.log(value) > goal.close
    return low > 0 and value > goal.close


def _levels(
    changes: Sequence[Change], value: Mapping[Change, float], close: float
) -> Iterator[list[Change]]:
    """Yield changes by descending value, those together that are close to the first of them."""
    rest = sorted(changes, key=lambda change: -value[change])
    while rest:
        level = [change for change in rest if value[change] >= value[rest[0]] - close]
        yield level
        rest = rest[len(level) :]


@dataclass
class _Trial:
    """Runs of changes, and their comparison with the baseline.

    Attributes
    ----------
    setup
        The baseline.
    session
        Session that simulates changes.
    left_out
        Sentences on changes that could not be run.
    identical
        Remark on the runs that were measured last, if they are identical.
    """

    setup: AdviceSetup
    session: Session
    left_out: list[str] = field(default_factory=list)
    identical: tuple[str, ...] = ()

    def measured(
        self, changes: Sequence[Change], numbers: Sequence[int]
    ) -> dict[Change, list[Measured]]:
        """Run every change on the same networks and seeds, and return the measures of its runs.

        A change with which a run is impossible or fails is left out of the result.
        """
        possible: list[Change] = []
        runs: list[PlannedRun] = []
        for change in changes:
            try:
                specs = [self.setup.run(change, number) for number in numbers]
            except ScenarioError as error:
                self._leave_out(change, error)
                continue
            runs += [
                PlannedRun(len(possible), number, spec)
                for number, spec in zip(numbers, specs, strict=True)
            ]
            possible.append(change)
        conditions = tuple(Condition(at, {"change": c.label}) for at, c in enumerate(possible))
        results = self.session.carry_out(RunPlan("advice", conditions, runs))
        self.identical = results.identical_runs
        failed = {failure.condition: failure.error for failure in results.failures}
        for at, reason in failed.items():
            self._leave_out(possible[at], reason)
        taken: dict[tuple[int, int], Measured] = {
            (result.condition, result.run.spec["seed"]): measured(result.run)
            for result in results.results
        }
        return {
            change: [taken[at, number] for number in numbers]
            for at, change in enumerate(possible)
            if at not in failed
        }

    def _leave_out(self, change: Change, error: object) -> None:
        if change is NOW:
            raise JostleError(f"the baseline cannot be run: {error}")
        reason = error.problems[0].message if isinstance(error, ScenarioError) else str(error)
        self.left_out.append(f"Left out: {change.label}, which cannot be run ({reason}).")

    def gains(self, own: Sequence[Measured], now: Sequence[Measured]) -> list[float]:
        """Return the difference of the goal's score from the baseline for each run."""
        return self.setup.goal.gains(own, now, self.setup.served)

    def effect(self, own: Sequence[Measured], now: Sequence[Measured]) -> float:
        """Return the mean effect on flows that the goal is not about, as a logarithm."""
        others = self.setup.others
        every = [effect_on(others, mine, there) for mine, there in zip(own, now, strict=True)]
        return sum(every) / len(every)

    def ranked(
        self, seen: Mapping[Change, Sequence[Measured]], now: Sequence[Measured]
    ) -> list[Change]:
        """Sort changes, the best first.

        Changes whose gains differ by a negligible amount from the best of them are sorted by the
        delay of the served flows, then by their effect on other flows, then by the number of
        changed keys.
        """
        gain = {change: float(np.mean(self.gains(runs, now))) for change, runs in seen.items()}
        speed = {change: -self.delay_s(runs) for change, runs in seen.items()}
        effect = {change: self.effect(runs, now) for change, runs in seen.items()}
        losing = {change for change, runs in seen.items() if not self.is_eligible(runs, now)}
        return [
            change
            for changes in (set(seen) - losing, losing)
            for alike in _levels([c for c in seen if c in changes], gain, self.setup.goal.close)
            for quick in _levels(alike, speed, _DELAY_STEP_S)
            for equal in _levels(quick, effect, _EFFECT_STEP)
            for change in sorted(equal, key=lambda one: (self.size(one), -gain[one]))
        ]

    def loses(self, own: Sequence[Measured], now: Sequence[Measured]) -> tuple[str, ...]:
        """Return the flows of which fewer transfers are complete than in the baseline."""
        more = (unfinished_transfers(own), unfinished_transfers(now))
        return tuple(
            name for name in now[0] if more[0].get(name, (0, 0))[0] > more[1].get(name, (0, 0))[0]
        )

    def is_eligible(self, own: Sequence[Measured], now: Sequence[Measured]) -> bool:
        """Return whether no flow on which the gain depends completes fewer transfers than now."""
        counted = self.setup.goal.counted(list(now[0]), self.setup.served)
        return not set(counted).intersection(self.loses(own, now))

    def delay_s(self, runs: Sequence[Measured]) -> float:
        """Return the mean delay of the flows that the goal is about; 0 if it does not count."""
        delays = [
            run[name].values[key]
            for run in runs
            for name in self.setup.served
            for key in self.setup.goal.delays
            if key in run[name].values
        ]
        present = [value for value in delays if not math.isnan(value)]
        if delays and not present:
            return math.inf
        return sum(present) / max(len(present), 1)

    def size(self, change: Change) -> int:
        """Return the number of values that a change sets."""
        document = self.setup.document(NOW)
        return sum(len(find(document, key)) for key in change.values)

    def best(
        self,
        seen: Mapping[Change, Sequence[Measured]],
        now: Sequence[Measured],
        most: int,
        most_alike: int,
    ) -> list[Change]:
        """Return the best changes, without those that change nothing.

        At most `most_alike` changes have the same family. If two changes have identical runs, only
        the first is kept: Hybla sets the initial window itself, and a transfer of 1 MB may end
        before the controller makes a difference.
        """
        chosen: list[Change] = []
        for change in self.ranked(seen, now):
            runs = seen[change]
            new = runs != now and all(runs != seen[one] for one in chosen)
            alike = [one for one in chosen if one.family == change.family]
            if new and len(alike) < most_alike:
                chosen.append(change)
        return chosen[:most]

    def result(
        self, change: Change, own: Sequence[Measured], now: Sequence[Measured]
    ) -> ChangeResult:
        """Summarise the runs of a change."""
        gain = estimate(self.gains(own, now), "")
        if self.setup.goal.relative and gain.value is not None:
            low, high = (None if end is None else math.exp(end) for end in (gain.low, gain.high))
            gain = Estimate(math.exp(gain.value), low, high, gain.n, "", gain.method)
        numbers = {
            name: {
                key: estimate([run[name].values[key] for run in own], "", bounds=(0.0, None))
                for key in flow.values
            }
            for name, flow in own[0].items()
        }
        effects = {}
        for name in self.setup.others:
            every = [effect_on((name,), mine, there) for mine, there in zip(own, now, strict=True)]
            effects[name] = math.exp(sum(every) / len(every))
        unfinished = unfinished_transfers(own)
        counted = self.setup.goal.counted(list(now[0]), self.setup.served)
        return ChangeResult(
            change, gain, numbers, effects, unfinished, self.loses(own, now),
            self.is_eligible(own, now),
            from_bounds=any(
                name in unfinished or name in unfinished_transfers(now) for name in counted
            ),
        )  # fmt: skip


def unfinished_transfers(runs: Sequence[Measured]) -> dict[str, tuple[int, int]]:
    """Return, by flow, how many transfers of some runs were not complete, and of how many."""
    found = {
        name: (
            sum(run[name].unfinished for run in runs),
            sum(run[name].transfers for run in runs),
        )
        for name in runs[0]
    }
    return {name: counts for name, counts in found.items() if counts[0]}


def advise(network: KnownNetwork, request: AdviceRequest, session: Session) -> Advice:
    """Find the change that serves a goal best.

    The user's own scenario is the baseline. Queues and controllers are screened on 3 networks, then
    variants and combinations of the best ones. The six best changes are measured on new networks
    and seeds, so that the reported gain is not biased by the selection.

    Parameters
    ----------
    network
        Network, and traffic if it is known.
    request
        The goal, and what can be changed.
    session
        Session that simulates changes.
    """
    setup, said = make_setup(network, request.goal, request.length_s)
    trial = _Trial(setup, session)
    senders, about = setup.senders(request.senders)
    queues, plain, about_changes = _first_changes(setup, senders, request)
    said += [one for one in (about, *about_changes) if one]
    first = list(range(1, _SCREENED + 1))
    changes = [change for every in plain.values() for change in every]
    seen = trial.measured([NOW, *queues, *changes], first)
    now = seen.pop(NOW)
    further = _further_changes(trial, seen, now, plain, proxy=request.proxy)
    seen.update(trial.measured(further, first))
    chosen = trial.best(seen, now, _MEASURED, _ALIKE)
    if not any(_is_shaper(change) for change in chosen):
        # A router in front of the modem can shape, although the user does not control the modem.
        shapers = {one: runs for one, runs in seen.items() if _is_shaper(one)}
        chosen += trial.best(shapers, now, 1, 1)
    after = [_SCREENED + 1 + at for at in range(request.seeds)]
    finals = trial.measured([NOW, *chosen], after)
    now = finals.pop(NOW)
    results = [trial.result(change, finals[change], now) for change in trial.ranked(finals, now)]
    # An uncertain gain may be as large as a certain one, but only a certain one is an answer.
    ranking = tuple(
        sorted(results, key=lambda one: (not one.eligible, not is_better(one, request.goal)))
    )
    tried = 1 + len(seen)
    said.append(
        f"{tried} settings were compared on {_SCREENED} seeds each, the best {len(chosen)} on "
        f"{request.seeds} new ones."
    )
    baseline = trial.result(NOW, now, now)
    said += [f"{note[0].upper()}{note[1:]}." for note in trial.identical]
    return Advice(setup, baseline, ranking, tried, (*said, *trial.left_out))


def _first_changes(
    setup: AdviceSetup, senders: Sequence[Senders], request: AdviceRequest
) -> tuple[list[Change], dict[Senders, list[Change]], list[str]]:
    """Return queues, and controllers of each group of senders, with sentences about them."""
    said: list[str] = []
    by_name = {flow.get("group") or flow["name"]: flow for flow in setup.spec["flows"]}
    plain: dict[Senders, list[Change]] = {}
    for each in senders:
        flow: FlowSpec = by_name[each.names[0]]
        plain[each], need_ecn = sender_changes(each, flow, request.controllers)
        if need_ecn:
            said.append(f"Left out: {', '.join(need_ecn)} for {each.label}, which uses no ECN.")
    may = bool(setup.network.traffic) if request.queues is None else request.queues
    if not may:
        said.append("The queues of the links stay as they are. --include-queues tries others.")
        return [], plain, said
    links, rest = setup.links()
    said.append(rest)
    ecn = any(flow["ecn"] for flow in setup.spec["flows"])
    queues = list(queue_changes(setup.spec, links, setup.network.varied_queues, ecn))
    every = {link["name"]: link for link in setup.spec["links"]}
    if queues and not ecn and not senders:
        said.append("Left out: ECN, because no flow uses it and no sender is yours.")
    shaped = [name for name in links if has_shaper(every[name])]
    if shaped:
        said.append(
            f"Left out: queues without a shaper on {', '.join(shaped)}, whose rate a "
            "shaper or policer sets. It may be what was paid for."
        )
    varying = [name for name in links if constant_service_bps(every[name]) is None]
    if varying:
        said.append(
            f"Left out: shapers and other drop-tail queues on {', '.join(varying)}, whose rate "
            "varies."
        )
    if any(change.in_the_modem for change in queues):
        said.append(
            "A queue without a shaper is in the device where packets queue, such as the modem. "
            "CAKE with a rate can be in a router before it."
        )
    return queues, plain, said


def _further_changes(
    trial: _Trial,
    seen: Mapping[Change, Sequence[Measured]],
    now: Sequence[Measured],
    plain: Mapping[Senders, Sequence[Change]],
    *,
    proxy: bool,
) -> list[Change]:
    """Return variants of the best changes, and their combinations."""
    changes: list[Change] = []
    owner = {change: each for each, every in plain.items() for change in every}
    best = trial.best({c: seen[c] for c in owner if c in seen}, now, _KEPT, 1)
    for each in plain:
        changes += variants(each, None)
    for change in best:
        changes += variants(owner[change], change.family)
    if proxy:
        for each in plain:
            names = dict.fromkeys([*each.controllers, *(change.family for change in best)])
            changes += [proxy_change(each, name) for name in names if each.transport == "tcp"]
    flows = trial.setup.spec["flows"]
    own = {name for each in plain for name in each.names}
    ecn = [flow["ecn"] for flow in flows if (flow.get("group") or flow["name"]) in own]
    queues = {change: runs for change, runs in seen.items() if _sets_a_queue(change)}
    for queue in trial.best(queues, now, _COMBINED, 1):
        if not all(ecn):
            changes.append(with_ecn(queue, list(plain)))
        dropping = without_ecn(queue) if any(flow["ecn"] for flow in flows) else None
        changes += [dropping] if dropping else []
        changes += [combined(queue, change) for change in best[:1]]
    return changes


def _sets_a_queue(change: Change) -> bool:
    return any(key.endswith(".queue") for key in change.values)


def _is_shaper(change: Change) -> bool:
    return _sets_a_queue(change) and not change.in_the_modem
