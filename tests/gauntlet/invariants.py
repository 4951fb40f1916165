"""What every run of the gauntlet has to fulfil. Each function yields descriptions of violations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
from jostle.backends import Run
from jostle.run_spec import FlowSpec

from gauntlet.cases import TESTED

__all__ = ["INVARIANTS", "RUN_ENDS", "violations"]

RUN_ENDS: Final = "run_ends"
"""Violated by a run that is refused, fails or is not finished in time."""
_MOST_RETRANSMITTED: Final = 0.5
_LEAST_RECOVERED: Final = 0.5
_STUCK_S: Final = 10.0
_FLOOR_PACKETS: Final = 4
"""Least window of BBR (`bbr_cwnd_min_target` in Linux), the largest of all least windows."""
_FLOOR_BDP_PACKETS: Final = 10
"""A window of four packets is no floor on a path that holds less than this."""
_CEILING_FACTOR: Final = 10.0
"""The window is at its ceiling if it is so many times what the path and its queue hold."""
_CEILING_PACKETS: Final = 100
_PACING_CEILING_FACTOR: Final = 20.0
_LEAST_PACKET_BYTES: Final = 500
_Found = Iterator[str]


def _flow(run: Run) -> Mapping[str, Any]:
    return next(flow for flow in run.summary["flows"] if flow["name"] == TESTED)


def _link(run: Run) -> Mapping[str, Any]:
    return run.summary["links"][0]


def _phases(run: Run) -> Mapping[str, Mapping[str, Any]]:
    return {name: of for name, of in _flow(run)["phases"].items() if name != "overall"}


def goodput(run: Run) -> _Found:
    """The receiver's application gets data in every phase."""
    for name, phase in _phases(run).items():
        if not phase["goodput_bps"]:
            yield f"no goodput in the phase {name}"


def retransmitted(run: Run) -> _Found:
    """Less than half of the packets of every phase are retransmissions."""
    for name, phase in _phases(run).items():
        ratio = phase["retransmission_ratio"]
        if ratio is not None and ratio >= _MOST_RETRANSMITTED:
            yield f"{100 * ratio:.1f} % retransmitted in the phase {name}"


def recovery(run: Run, recovered: Mapping[str, float] = MappingProxyType({})) -> _Found:
    """Utilisation 25 to 30 s after an event is above half of the one before, or `recovered`."""
    phases = {name: of["utilisation"] for name, of in _link(run)["phases"].items()}
    del phases["overall"]
    if "steady" in phases:
        return
    before = phases.pop("before", 1.0)
    for name, after in phases.items():
        if after <= recovered.get(name, _LEAST_RECOVERED) * before:
            yield f"utilisation {after:.4f} in the phase {name}, {before:.4f} before"


def _series(run: Run) -> dict[str, npt.NDArray[np.float64]]:
    """Time series of the flow while it is open, with the service rate of its link."""
    link = run.links.filter(pl.col("link") == _link(run)["name"])
    columns = ("time_s", "cwnd_bytes", "pacing_rate_bps", "srtt_s", "capacity_bps")
    frame = (
        run.flows.filter(pl.col("flow") == TESTED)
        .join(link.select("time_s", "capacity_bps"), on="time_s")
        .filter(pl.col("cwnd_bytes").is_not_null())
    )
    return {name: frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in columns}


def _longest(time_s: npt.NDArray[np.float64], wrong: npt.NDArray[np.bool_]) -> float:
    """Longest time in seconds for which `wrong` is true at every sample."""
    longest, start = 0.0, None
    for time, is_wrong in zip(time_s.tolist(), wrong.tolist(), strict=True):
        start = None if not is_wrong else time if start is None else start
        longest = max(longest, 0.0 if start is None else time - start)
    return longest


def _spec(run: Run) -> FlowSpec:
    return next(flow for flow in run.spec["flows"] if flow["name"] == TESTED)


def floor(run: Run) -> _Found:
    """Window and pacing rate allow more than four packets per RTT if the path has room for them."""
    if _spec(run)["source"]["kind"] != "bulk":
        return
    series, packet = _series(run), _spec(run)["mtu_bytes"]
    base_rtt_s = _flow(run)["phases"]["overall"]["rtt_min_s"] or 0.0
    room = series["capacity_bps"] * base_rtt_s / 8 >= _FLOOR_BDP_PACKETS * packet
    for name, window in [
        ("cwnd", series["cwnd_bytes"]),
        ("the pacing rate", series["pacing_rate_bps"] * series["srtt_s"] / 8),
    ]:
        stuck = _longest(series["time_s"], room & (window <= _FLOOR_PACKETS * packet))
        if stuck > _STUCK_S:
            yield f"{name} allows at most {_FLOOR_PACKETS} packets per RTT for {stuck:g} s"


def ceiling(run: Run) -> _Found:
    """Window and pacing rate are not many times what the path and its queue can hold."""
    series, packet = _series(run), _spec(run)["mtu_bytes"]
    rate = series["capacity_bps"]
    held = np.fmax(_CEILING_FACTOR * rate * series["srtt_s"] / 8, _CEILING_PACKETS * packet)
    for name, wrong in [
        ("cwnd", series["cwnd_bytes"] > held),
        ("the pacing rate", series["pacing_rate_bps"] > _PACING_CEILING_FACTOR * rate),
    ]:
        stuck = _longest(series["time_s"], wrong & (rate > 0))
        if stuck > _STUCK_S:
            yield f"{name} is far above what the path holds for {stuck:g} s"


def conservation(run: Run) -> _Found:
    """Packets sent have arrived, were dropped, or are on the way, and payload is part of them."""
    flows, link = run.flows, run.links.filter(pl.col("link") == _link(run)["name"])
    sent, received = (int(flows[f"{name}_packets"].sum()) for name in ("sent", "received"))
    dropped = int(_link(run)["phases"]["overall"]["dropped_packets"])
    on_the_way = sent - received - dropped
    longest_s = 1.0 + max(flows["rtt_mean_s"].drop_nulls().to_list(), default=0.0)
    held_bytes = max(link["capacity_bps"].to_list()) * longest_s / 8
    if not 0 <= on_the_way <= held_bytes / _LEAST_PACKET_BYTES:
        yield f"{sent} packets sent, {received} received, {dropped} dropped: {on_the_way} left"
    for flow in run.summary["flows"]:
        overall = flow["phases"]["overall"]
        if overall["goodput_bps"] > overall["throughput_bps"]:
            yield f"goodput {overall['goodput_bps']} above throughput {overall['throughput_bps']}"


INVARIANTS: Final[Mapping[str, Callable[[Run], _Found]]] = {
    function.__name__: function
    for function in (goodput, retransmitted, recovery, floor, ceiling, conservation)
}


def violations(run: Run, recovered: Mapping[str, float]) -> dict[str, str]:
    """Return the violated invariants with their descriptions.

    `recovered` contains the least share of the utilisation before for phases that have their own.
    """
    checks: dict[str, Callable[[Run], _Found]] = {
        **INVARIANTS,
        "recovery": partial(recovery, recovered=recovered),
    }
    found = {name: "; ".join(check(run)) for name, check in checks.items()}
    return {name: text for name, text in found.items() if text}
