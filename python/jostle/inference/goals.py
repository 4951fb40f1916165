"""Goals of a recommendation: the flows that it serves, probe flows, and the score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jostle.inference.flow_benefits import FlowValues, benefit

if TYPE_CHECKING:
    from jostle.results.flow_groups import TrafficKind

__all__ = ["GOALS", "Goal", "Measured", "effect_on", "paired"]

Measured = Mapping[str, FlowValues]
"""Measures of one run by scenario entry."""

_LEAST: Final = 1e-3
"""Minimum share that another flow keeps, because the logarithm of 0 is infinite."""
Keys = Mapping[str, Any]


def paired(mine: Measured, there: Measured) -> Measured:
    """Return the measures of a run, to compare with the measures of the baseline.

    If a flow completed nothing in either run, the times that it had are no difference.
    """
    nothing = {
        name: flow
        for name, flow in there.items()
        if 0 < flow.transfers == flow.unfinished
        and 0 < mine[name].transfers == mine[name].unfinished
    }
    return {**mine, **nothing}


def no_effects(_own: Measured, _now: Measured, _served: tuple[str, ...]) -> list[float]:
    """Return no effects: other flows do not reduce the gain."""
    return []


@dataclass(frozen=True)
class Goal:
    """A goal for which settings are recommended.

    Attributes
    ----------
    name
        Name of the goal.
    served
        Words for the flows that it is about.
    serves
        Function that returns whether it is about a flow, from its kind of traffic and whether it is
        a voice call.
    probes
        Function that returns the flows to add if a scenario has none of these, from the keys of
        the path, the duration of a run and a prefix of their names.
    background
        Function that returns the traffic next to the probes if nothing is known of the traffic,
        from the keys of the path and the length of a download.
    both_directions
        Whether probes run in both directions of an access line.
    duration
        Duration of a run if nothing is known of the traffic: in multiples of a download's length;
        None for 60 s.
    score
        Function that returns the score of a run from its measures and the names of the served
        flows; higher is better.
    relative
        Whether the score is a logarithm, so that differences are factors.
    meaning
        Description of the score.
    close
        Difference of mean scores that is negligible. Changes within it are ranked by the delay of
        the served flows, then by their effect on the other flows.
    delays
        Names of the measures of that delay; empty if the score contains it.
    effects
        Function that returns the effects on other flows that reduce the gain where their mean is
        below 0, from the measures of a run and of the baseline on the same network and seed.
    """

    name: str
    served: str
    serves: Callable[[TrafficKind, bool], bool]
    probes: Callable[[Keys, float, str], list[dict[str, Any]]]
    background: Callable[[Keys, float], list[dict[str, Any]]]
    both_directions: bool
    duration: int | None
    score: Callable[[Measured, tuple[str, ...]], float]
    relative: bool
    meaning: str
    close: float
    delays: tuple[str, ...] = ()
    effects: Callable[[Measured, Measured, tuple[str, ...]], list[float]] = no_effects

    def counted(self, flows: Sequence[str], served: tuple[str, ...]) -> tuple[str, ...]:
        """Return the flows on which the gain depends."""
        return served if self.effects is no_effects else tuple(flows)

    def gains(
        self, own: Sequence[Measured], now: Sequence[Measured], served: tuple[str, ...]
    ) -> list[float]:
        """Return the difference of the score from the baseline for each run.

        Other flows that are worse on average reduce it; better ones do not increase it.
        """
        import numpy as np

        pairs = [(paired(mine, there), there) for mine, there in zip(own, now, strict=True)]
        gains = [self.score(mine, served) - self.score(there, served) for mine, there in pairs]
        effects = np.array([self.effects(mine, there, served) for mine, there in pairs])
        harm = effects[:, effects.mean(axis=0) < 0].sum(axis=1)
        return [float(gain) for gain in gains + harm]


def effect_on(names: tuple[str, ...], own: Measured, now: Measured) -> float:
    """Return the mean logarithm of the factor by which the benefit of some flows changes."""
    if not names:
        return 0.0
    own = paired(own, now)
    return sum(math.log(benefit(own[n]) / benefit(now[n])) for n in names) / len(names)


def _short(keys: Keys, length_s: float, prefix: str) -> list[dict[str, Any]]:
    def download(name: str, size: str) -> dict[str, Any]:
        source = {"kind": "fixed", "size": size}
        return {"name": prefix + name, "controller": "cubic", **keys, "source": source}

    # The downloads start when the scenario's own traffic is under way.
    start = {"start": f"{length_s / 3:g} s"} if prefix else {}
    return [
        {**download("small", "100 kB"), **start, "start_jitter": "1 s"},
        {**download("large", "1 MB"), "after": f"{prefix}small", "start": "1 s"},
    ]


def _bulk(keys: Keys, _length_s: float, prefix: str) -> list[dict[str, Any]]:
    return [_download(keys, f"{prefix}download")]


def _download(keys: Keys, name: str) -> dict[str, Any]:
    return {"name": name, "controller": "cubic", **keys, "start_jitter": "1 s"}


def _another(keys: Keys, length_s: float) -> list[dict[str, Any]]:
    return [{"name": "other", "controller": "cubic", **keys, "start": f"{length_s:g} s"}]


def _call(keys: Keys, _length_s: float, prefix: str) -> list[dict[str, Any]]:
    source = {"kind": "cbr", "codec": "g711"}
    return [{"name": f"{prefix}call", "controller": "none", **keys, "source": source}]


def _score_of_all(own: Measured, served: tuple[str, ...]) -> float:
    """Return the mean logarithm of the benefits of the served flows."""
    return sum(math.log(benefit(own[name])) for name in served) / len(served)


def _effects(own: Measured, now: Measured, served: tuple[str, ...]) -> list[float]:
    """Return the logarithms of the factors by which other flows and the RTTs of bulk flows change.

    A factor below 1 is 1 − harm as defined by Ware et al. ("Beyond Jain's Fairness Index", HotNets
    2019), with the baseline in place of the solo performance.
    """
    kept = []
    for name in (name for name in own if name not in served):
        kept.append(benefit(own[name]) / benefit(now[name]))
        if own[name].kind == "bulk":
            # A flow without delivered data has no RTT.
            mine, theirs = (of[name].values["rtt"] for of in (own, now))
            kept.append(0.0 if math.isnan(mine) else 1.0 if math.isnan(theirs) else theirs / mine)
    return [math.log(max(factor, _LEAST)) for factor in kept]


def _score_calls(own: Measured, served: tuple[str, ...]) -> float:
    """Return the quality of the worst flow, from 0 to 1: a call is as good as that."""
    return min(benefit(own[name]) / (100 if own[name].is_voice else 1) for name in served)


GOALS: Final[Mapping[str, Goal]] = {
    goal.name: goal
    for goal in (
        Goal(
            "short downloads", "short downloads, requests or pages",
            lambda kind, _: kind in ("transfers", "requests", "pages"),
            _short, lambda _keys, _length_s: [], False, None, _score_of_all, True,
            "geometric mean of the completion, response and page load times", 0.03,
        ),
        Goal(
            "bulk", "bulk transfers", lambda kind, _: kind == "bulk",
            _bulk, _another, False, 2, _score_of_all, True,
            "goodput × (1 − harm to each other flow), and × (1 − harm to its RTT) of bulk flows",
            0.01, effects=_effects,
        ),
        Goal(
            "calls", "voice or video calls", lambda kind, voice: voice or kind == "media",
            _call, lambda keys, _length_s: [_download(keys, "download")], True, 1, _score_calls,
            False,
            "points of the worst flow of a call: of voice the R factor (ITU-T G.107), of video "
            "the share of frames in time, in %",
            0.02, ("frame_delay", "one_way_delay"),
        ),
    )
}  # fmt: skip
