"""What studies measure of a run: by name, with unit, over any window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from jostle.stats import convergence_s, fct_efficiency, jain
from jostle.stats.describe import Floats
from jostle.studies.windows import Pings, RunView, Span

Function = Callable[[RunView, str, Span], "float | None"]


@dataclass(frozen=True)
class StudyMeasure:
    """A measure.

    Attributes
    ----------
    unit
        Unit, for tables.
    over
        The measure over a whole window.
    column
        Column of the series and factor from its unit, where percentiles of bins make sense.
    scope
        What `flow` names: a flow or a link; nothing for a measure of the whole run.
    """

    unit: str
    over: Function
    column: tuple[str, float] | None = None
    scope: Literal["flow", "link", "run"] = "flow"


def _mean_rate(column: str) -> Function:
    def over(run: RunView, flow: str, span: Span) -> float | None:
        return run.mean_rate(flow, column, span)

    return over


def _rtt(run: RunView, flow: str, span: Span) -> float | None:
    """Mean of the samples: bins weighted with what arrived in them, as each ACK gives a sample."""
    part = run.part(flow, span)
    rtt, weight = part["rtt_mean_s"], part["throughput_bps"]
    there = ~np.isnan(rtt) & (weight > 0)
    if not there.any():
        return None
    return float(np.average(rtt[there], weights=weight[there])) * 1e3


def _retransmitted(run: RunView, flow: str, span: Span) -> float | None:
    return float(run.part(flow, span)["retransmitted_packets"].sum())


def _retransmission(run: RunView, flow: str, span: Span) -> float | None:
    part = run.part(flow, span)
    sent = float(part["sent_packets"].sum())
    return 100.0 * float(part["retransmitted_packets"].sum()) / sent if sent else None


def _goodput_ratio(run: RunView, flow: str, span: Span) -> float | None:
    part = run.part(flow, span)
    sent = float(part["sending_rate_bps"].sum())
    return 100.0 * float(part["goodput_bps"].sum()) / sent if sent else None


def _power(run: RunView, flow: str, span: Span) -> float | None:
    rate, rtt = run.mean_rate(flow, "throughput_bps", span), _rtt(run, flow, span)
    return None if rate is None or not rtt else rate / (rtt / 1e3)


def _cwnd(run: RunView, flow: str, span: Span) -> float | None:
    cwnd = run.part(flow, span)["cwnd_bytes"]
    there = cwnd[~np.isnan(cwnd)]
    return float(there.mean()) * 1e-6 if there.size else None


def _share(run: RunView, flow: str, span: Span) -> float | None:
    rates = {name: run.mean_rate(name, "throughput_bps", span) or 0.0 for name in run.flows}
    total = sum(rates.values())
    return 100.0 * rates[flow] / total if total else None


def _total(run: RunView, _flow: str, span: Span) -> float | None:
    return sum(run.mean_rate(name, "throughput_bps", span) or 0.0 for name in run.flows)


def _total_retransmitted(run: RunView, _flow: str, span: Span) -> float | None:
    return sum(float(run.part(name, span)["retransmitted_packets"].sum()) for name in run.flows)


def _lead(run: RunView, flow: str, span: Span) -> float | None:
    """Throughput less that of all others."""
    own = run.mean_rate(flow, "throughput_bps", span) or 0.0
    return 2 * own - (_total(run, flow, span) or 0.0)


def _jain(run: RunView, _flow: str, span: Span) -> float | None:
    return jain(run.mean_rate(name, "throughput_bps", span) or 0.0 for name in run.flows)


def _mean_rtt_of_all(run: RunView, _flow: str, span: Span) -> float | None:
    found = [_rtt(run, name, span) for name in run.flows]
    there = [value for value in found if value is not None]
    return sum(there) / len(there) if there else None


def _completion(run: RunView, flow: str, _span: Span) -> float | None:
    return run.completion_s(flow)


def _mean_completion(run: RunView, flow: str, _span: Span) -> float | None:
    """Mean of all flows whose name begins so: `user` stands for `user-1` and `user-2`."""
    found = [run.completion_s(name) for name in run.flows if name.startswith(flow)]
    there = [value for value in found if value is not None]
    return sum(there) / len(there) if there else None


def _efficiency(run: RunView, flow: str, _span: Span) -> float | None:
    """FCT efficiency, from the SYN of a client that asks to the last byte."""
    completion_s = run.completion_s(flow)
    facts = run.transfer(flow)
    if completion_s is None or facts is None:
        return None
    # A transfer here ends with the last ACK's arrival, half a round trip after the last byte's.
    # That makes up for the client's request, which takes as long and which it does not have.
    return min(1.0, fct_efficiency(completion_s, *facts))


def _convergence(run: RunView, _flow: str, span: Span) -> float | None:
    parts = [run.part(name, span) for name in run.flows]
    rates = np.array([part["throughput_bps"] for part in parts])
    return convergence_s(parts[0]["time_s"], rates)


def _utilisation(run: RunView, link: str, span: Span) -> float | None:
    part = run.link_part(link, span)["utilisation"]
    return 100.0 * float(part.mean()) if part.size else None


def _queue(run: RunView, link: str, span: Span) -> float | None:
    part = run.link_part(link, span)["queue_mean_bytes"]
    return float(part.mean()) * 1e-3 if part.size else None


def _estimate(run: RunView, flow: str, _span: Span) -> float | None:
    """Tell what a memory's estimator of bandwidth says in the end; without one, what BBR does."""
    for quantity in ("estimate_bps", "bottleneck_bps"):
        if (found := run.last_internal(flow, quantity)) is not None:
            return found * 1e-6
    return None


def _of_pings(take: Callable[[Pings], float]) -> Function:
    def over(run: RunView, flow: str, _span: Span) -> float | None:
        pings = run.pings(flow)
        return None if pings is None else take(pings)

    return over


def _single_losses(pings: Pings) -> float:
    """Share of the lost pings whose neighbours came back."""
    length, count = pings.in_a_row()
    lost = float((length * count).sum())
    return 100.0 * float(count[length == 1].sum()) / lost if lost else 0.0


def _several_losses(pings: Pings) -> float:
    length, count = pings.in_a_row()
    return float(count[length > 1].sum())


def _mbps(column: str) -> StudyMeasure:
    return StudyMeasure("Mbit/s", _mean_rate(column), (column, 1e-6))


MEASURES: Final[Mapping[str, StudyMeasure]] = {
    "throughput": _mbps("throughput_bps"),
    "goodput": _mbps("goodput_bps"),
    "sending_rate": _mbps("sending_rate_bps"),
    "goodput_ratio": StudyMeasure("%", _goodput_ratio),
    "rtt": StudyMeasure("ms", _rtt, ("rtt_mean_s", 1e3)),
    "mean_rtt": StudyMeasure("ms", _mean_rtt_of_all, scope="run"),
    "cwnd": StudyMeasure("MB", _cwnd, ("cwnd_bytes", 1e-6)),
    "retransmission": StudyMeasure("%", _retransmission),
    "retransmitted": StudyMeasure("packets", _retransmitted),
    "total_retransmitted": StudyMeasure("packets", _total_retransmitted, scope="run"),
    "power": StudyMeasure("Mbit", _power),
    "share": StudyMeasure("%", _share),
    "lead": StudyMeasure("Mbit/s", _lead),
    "total": StudyMeasure("Mbit/s", _total, scope="run"),
    "jain": StudyMeasure("", _jain, scope="run"),
    "completion": StudyMeasure("s", _completion),
    "mean_completion": StudyMeasure("s", _mean_completion),
    "efficiency": StudyMeasure("", _efficiency),
    "convergence": StudyMeasure("s", _convergence, scope="run"),
    "download_time": StudyMeasure("s", _completion),
    "utilisation": StudyMeasure("%", _utilisation, scope="link"),
    "queue": StudyMeasure("kB", _queue, scope="link"),
    "estimate": StudyMeasure("Mbit/s", _estimate),
    "echo_rtt": StudyMeasure("ms", _of_pings(lambda pings: 1e3 * pings.overall["rtt_mean_s"])),
    "echo_rtt_sd": StudyMeasure("ms", _of_pings(lambda pings: 1e3 * pings.overall["rtt_sd_s"])),
    "echo_share": StudyMeasure("%", _of_pings(lambda pings: pings.share_within(None, None))),
    "pings_lost": StudyMeasure("packets", _of_pings(lambda pings: float(pings.counts["lost"]))),
    "single_losses": StudyMeasure("%", _of_pings(_single_losses)),
    "loss_events": StudyMeasure("", _of_pings(_several_losses)),
    "longest_loss": StudyMeasure(
        "packets", _of_pings(lambda pings: float(pings.in_a_row()[0].max(initial=0.0)))
    ),
}
"""Rates are of the whole window. `download_time` also needs a size; see `RunView.download_s`.
Those of pings are of the whole run; `echo_rtt` has percentiles of its own, and `echo_share` takes
the round trips from `above` to `below`; see `Pings`."""


def bins(run: RunView, measure: StudyMeasure, flow: str, span: Span, bin_s: float | None) -> Floats:
    """Values of a measure per bin of the window, without bins that have none; shape (bins,)."""
    if measure.column is None:
        raise ValueError("this measure has no bins")
    column, factor = measure.column
    found = run.rebinned(flow, column, span, bin_s) * factor
    return found[~np.isnan(found)]
