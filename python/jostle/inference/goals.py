"""Goals of a recommendation: the simulated traffic, its measures and the score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jostle.backends import Run

__all__ = ["GOALS", "Goal", "Measured"]

Measured = Mapping[str, float]
"""Measures of one run, by name."""

_WAIT_S: Final = 60.0
"""Completion time of a download that has not finished."""
_LEAST: Final = 1e-3
"""Minimum share that the other flow keeps, because the logarithm of 0 is infinite."""


@dataclass(frozen=True)
class Goal:
    """A goal for which settings are recommended.

    Attributes
    ----------
    flows
        Function that returns the flows of a scenario from the sender's keys, the network's keys,
        and the duration of a download in seconds.
    duration
        Duration of a run in multiples of a download's; None for 60 s.
    measure
        Function that returns the measures of a run.
    score
        Function that returns the score of a run from its measures and the baseline's measures on
        the same network and seed; higher is better.
    relative
        Whether the score is a logarithm, so that differences are factors.
    meaning
        Description of the score.
    ties
        A measure, and a difference of mean scores that is negligible: candidates within it are
        ranked by the measure. None if every difference counts.
    shown
        Printed measures, with heading, factor to the unit of the heading, and digits.
    """

    flows: Callable[[Mapping[str, Any], Mapping[str, Any], float], list[dict[str, Any]]]
    duration: int | None
    measure: Callable[[Run], dict[str, float]]
    score: Callable[[Measured, Measured], float]
    relative: bool
    meaning: str
    ties: tuple[str, float] | None
    shown: tuple[tuple[str, str, float, int], ...]


def _phase(run: Run, flow: str, phase: str) -> Mapping[str, Any]:
    rows: Any = run.summary["flows"]
    found: Mapping[str, Any] = next(row for row in rows if row["name"] == flow)["phases"][phase]
    return found


def _number(run: Run, flow: str, phase: str, name: str) -> float:
    value = _phase(run, flow, phase)[name]
    return math.nan if value is None else float(value)


def _completion(run: Run, flow: str) -> float:
    rows: Any = run.summary["flows"]
    value = next(row for row in rows if row["name"] == flow)["completion_time_s"]
    return _WAIT_S if value is None else float(value)


def _short(sender: Mapping[str, Any], net: Mapping[str, Any], _: float) -> list[dict[str, Any]]:
    def download(name: str, size: str) -> dict[str, Any]:
        return {"name": name, **sender, **net, "source": {"kind": "fixed", "size": size}}

    return [
        {**download("small", "100 kB"), "start_jitter": "1 s"},
        {**download("large", "1 MB"), "after": "small", "start": "1 s"},
    ]


def _measure_short(run: Run) -> dict[str, float]:
    return {
        "small_s": _completion(run, "small"),
        "large_s": _completion(run, "large"),
        "retransmitted": _number(run, "large", "overall", "retransmission_ratio"),
    }


def _score_short(own: Measured, _now: Measured) -> float:
    return -(math.log(own["small_s"]) + math.log(own["large_s"])) / 2


def _bulk(
    sender: Mapping[str, Any], net: Mapping[str, Any], length_s: float
) -> list[dict[str, Any]]:
    other = {"name": "other", "controller": "cubic", **net, "start": f"{length_s:g} s"}
    return [{"name": "download", **sender, **net, "start_jitter": "1 s"}, other]


def _measure_bulk(run: Run) -> dict[str, float]:
    return {
        "goodput_bps": _number(run, "download", "overall", "goodput_bps"),
        "alone_bps": _number(run, "download", "alone", "goodput_bps"),
        "rtt_s": _number(run, "download", "alone", "rtt_mean_s"),
        "other_bps": _number(run, "other", "beside", "goodput_bps"),
        "other_rtt_s": _number(run, "other", "beside", "rtt_mean_s"),
    }


def _score_bulk(own: Measured, now: Measured) -> float:
    # 1 - harm as defined by Ware et al. ("Beyond Jain's Fairness Index", HotNets 2019), with the
    # baseline in place of the solo performance. Better than the baseline gains nothing.
    kept = min(1.0, own["other_bps"] / max(now["other_bps"], 1.0))
    # A flow without delivered data has no RTT.
    rtts_s = own["other_rtt_s"], now["other_rtt_s"]
    quick = _LEAST if math.isnan(rtts_s[0]) else 1.0
    if not any(map(math.isnan, rtts_s)):
        quick = min(1.0, rtts_s[1] / rtts_s[0])
    return math.log(max(own["goodput_bps"], 1.0) * max(kept, _LEAST) * max(quick, _LEAST))


def _calls(
    sender: Mapping[str, Any], net: Mapping[str, Any], _length_s: float
) -> list[dict[str, Any]]:
    source = {"kind": "cbr", "codec": "g711"}
    call = {"name": "call", "controller": "none", **net, "source": source}
    return [{"name": "download", **sender, **net, "start_jitter": "1 s"}, call]


def _measure_calls(run: Run) -> dict[str, float]:
    return {
        "mos": _number(run, "call", "overall", "mos"),
        "delay_s": _number(run, "call", "overall", "one_way_delay_mean_s"),
        "delay_p95_s": _number(run, "call", "overall", "one_way_delay_p95_s"),
        "goodput_bps": _number(run, "download", "overall", "goodput_bps"),
    }


def _score_calls(own: Measured, _now: Measured) -> float:
    return own["mos"]


GOALS: Final[Mapping[str, Goal]] = {
    "short downloads": Goal(
        _short, None, _measure_short, _score_short, True,
        "geometric mean of the completion times of 100 kB and 1 MB",
        None,
        (
            ("small_s", "100 kB (s)", 1, 2),
            ("large_s", "1 MB (s)", 1, 2),
            ("retransmitted", "retransmitted (%)", 100, 2),
        ),
    ),
    "bulk": Goal(
        _bulk, 2, _measure_bulk, _score_bulk, True,
        "goodput × (1 − harm to another flow's goodput) × (1 − harm to its RTT)",
        None,
        (
            ("goodput_bps", "goodput (Mbit/s)", 1e-6, 2),
            ("alone_bps", "alone (Mbit/s)", 1e-6, 2),
            ("rtt_s", "RTT alone (ms)", 1e3, 0),
            ("other_bps", "other (Mbit/s)", 1e-6, 2),
            ("other_rtt_s", "its RTT (ms)", 1e3, 0),
        ),
    ),
    "calls": Goal(
        _calls, 1, _measure_calls, _score_calls, False,
        "opinion score (MOS) of a G.711 call beside the download",
        ("goodput_bps", 0.05),
        (
            ("mos", "MOS", 1, 2),
            ("delay_s", "one-way delay (ms)", 1e3, 0),
            ("delay_p95_s", "95 % below (ms)", 1e3, 0),
            ("goodput_bps", "download (Mbit/s)", 1e-6, 2),
        ),
    ),
}  # fmt: skip
