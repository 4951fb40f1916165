"""The run around an unknown sender: everything of it but the controller."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from jostle.errors import InputError
from jostle.python_controllers.sources import is_python_controller
from jostle.scenario import Scenario
from jostle.scenario.text.units import PACKET_BYTES

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.emulate.link_file import LinkFile
    from jostle.inference.observation import Observation
    from jostle.run_spec import RunSpec
    from jostle.stats.describe import Floats

__all__ = [
    "LATENESS_S", "LONE", "around_a_link", "estimated", "late", "of_a_run", "sender_in", "shaken",
]  # fmt: skip

LONE: Final = "flow"
"""Name of the flow of a run with no other: those of captures ("192.0.2.1:443 > …") are no names."""
_RATE: Final = 0.002
_LIMIT: Final = 0.02
"""Parts by which a link of a second run differs: about as well as links are known."""
LATENESS_S: Final = (30e-6, 0.1e-3, 0.3e-3, 1e-3)
"""How late packets of a path are on average which nobody promised to be on time: from a quiet
machine's timers to a busy one's."""
_MOST: Final = 10
"""A packet is at most so many times later than on average: with e^-10, one in 22,000 would be."""


def of_a_run(run: Run, flow: str) -> RunSpec:
    """Take what a run says about itself, but for how a flow sends.

    Raises
    ------
    InputError
        When the flow is none that a controller could send, or another one runs code of its own.
    """
    spec = copy.deepcopy(run.spec)
    for each in spec["flows"]:
        if each["name"] == flow and each["transport"] != "tcp":
            raise InputError(f"flow {flow} is sent over {each['transport']}, not TCP")
        if each["name"] != flow and is_python_controller(each["controller"]["name"]):
            raise InputError(f"flow {each['name']} has a controller written in Python")
    return _quiet(spec)


def around_a_link(link: LinkFile, observed: Observation) -> RunSpec:
    """Put a single bulk flow, as long as the observed one, on the links of a LINK.toml."""
    spec = _alone(observed, {**_ANY, "seed": link.seed})
    links = copy.deepcopy([*link.links, *link.reverse])
    (flow,) = spec["flows"]
    # The links have all of the delay.
    flow["path"] = list(range(len(link.links)))
    flow["reverse_path"] = list(range(len(link.links), len(links)))
    flow["access_delay_ns"] = 0
    spec["links"] = cast("Any", links)
    return spec


def estimated(observed: Observation) -> RunSpec:
    """Put a single bulk flow on the bottleneck that the observed one itself shows.

    Its rate is what arrived in intervals that were full, its queue what the longest delay took at
    that rate: right of a drop-tail queue that the flow was alone on and filled.

    Raises
    ------
    InputError
        When nothing arrived, or nothing queued.
    """
    rate_bps = _full_rate(observed.throughput_bps)
    packet_s = PACKET_BYTES * 8 / rate_bps if rate_bps > 0 else math.inf
    least_s = observed.quiet_rtt_s(packet_s)
    delay_s = float(np.nanmax(observed.rtt_s)) - least_s
    # The quiet path, without the packet's own time on the bottleneck.
    rtt_s = least_s - packet_s
    if rtt_s <= 0 or delay_s * rate_bps < PACKET_BYTES * 8:
        raise InputError(
            f"flow {observed.flow} shows no bottleneck: its RTT hardly varies — describe the "
            "network by --link"
        )
    queue = {"kind": "drop_tail", "limit": f"{round(delay_s * rate_bps / 8)} B"}
    bottleneck = {"rate": f"{round(rate_bps)} bit/s", "queue": queue}
    return _alone(observed, {"bottleneck": bottleneck, "rtt": f"{rtt_s:.9f} s"})


def _full_rate(arrived: Floats) -> float:
    """Give the rate around which most of the fastest intervals lie, in bit/s.

    What waits for a busy machine makes one interval slow and the next one as much too fast: a mean
    of the fastest would be above the link's rate.
    """
    fast = np.sort(arrived[arrived >= _NEARLY * float(np.percentile(arrived, _FULL))])
    half = -(-fast.size // 2)
    # The shortest stretch that has half of them is where they are densest.
    widths = fast[half - 1 :] - fast[: fast.size - half + 1]
    at = int(widths.argmin())
    centre = float(fast[at : at + half].mean())
    # Whole packets make an interval seem faster, and the next one slower, than the link is.
    return float(arrived[np.abs(arrived - centre) <= _AROUND * centre].mean())


def sender_in(around: RunSpec, flow: str) -> str:
    """Give the name that an observed flow has in a run around it: its own, or `LONE`."""
    names = {each["name"] for each in around["flows"]}
    return flow if flow in names else LONE


_FULL: Final = 95
"""Percentile of the throughput of intervals at which a link was full."""
_NEARLY: Final = 0.9
"""Part of that from which on it was full as well."""
_AROUND: Final = 0.04
"""Part by which an interval in which a link was full differs from it, by packets and by jitter."""
_ANY: Final[Mapping[str, Any]] = {
    "bottleneck": {"rate": "1 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "rtt": "40 ms",
}
"""A network in whose place another one is put."""


def _alone(observed: Observation, network: Mapping[str, Any]) -> RunSpec:
    rest = {key: value for key, value in network.items() if key != "rtt"}
    document = {
        **rest,
        "duration": f"{max(observed.length_s, 0.001):.6f} s",
        "interval": f"{observed.interval_s:.6f} s",
        "flows": [{"name": LONE, "controller": "reno", "rtt": network["rtt"]}],
    }
    scenario = Scenario.from_dict(document, name="network")
    return _quiet(copy.deepcopy(scenario.plan().runs[0].spec))


def _quiet(spec: RunSpec) -> RunSpec:
    """Measure the whole run, and record no more than its series."""
    spec["capture"] = None
    spec["trace"] = "none"
    spec["phases"] = [{"name": "overall", "from_ns": 0, "to_ns": spec["duration_ns"]}]
    return spec


def shaken(spec: RunSpec, number: int) -> RunSpec:
    """Return the run on a network that is known no better than networks are.

    Where nothing is random, what a first loss leaves behind decides about all that follows; a link
    that differs by less than anybody measures shows what else the same sender does.

    Parameters
    ----------
    spec
        The run.
    number
        0 for the run itself; others have another seed, rate and queue, above and below in turn.
    """
    changed = copy.deepcopy(spec)
    if number == 0:
        return changed
    size = (number + 1) // 2 * (1 if number % 2 else -1)
    changed["seed"] = (spec["seed"] + number) % 2**63
    for link in changed["links"]:
        capacity = cast("dict[str, Any]", link["capacity"])
        if capacity["kind"] == "constant":
            capacity["rate_bps"] = round(capacity["rate_bps"] * (1 + size * _RATE))
        limit = cast("dict[str, Any]", link["queue"]["parameters"]).get("limit")
        if isinstance(limit, dict):
            for unit, amount in limit.items():
                limit[unit] = max(1, round(amount * (1 + size * _LIMIT)))
    return changed


def late(spec: RunSpec, flow: str, mean_s: float) -> RunSpec:
    """Return the run on a path that brings a flow's packets late, each by another time.

    Whoever takes bandwidth from the spacing of ACKs sends by what comes together. BBR keeps the
    largest of ten round trips (`bbr_bw_rtts` of net/ipv4/tcp_bbr.c): delays of a few tenths of a
    millisecond, which no loss-based controller sees, leave it a queue that it does not keep where
    packets are on time.

    Parameters
    ----------
    spec
        The run.
    flow
        Whose path it is.
    mean_s
        Mean of the exponential distribution of what is added behind the last link. Packets keep
        their order.
    """
    changed = copy.deepcopy(spec)
    sender = next(each for each in changed["flows"] if each["name"] == flow)
    delay = cast("dict[str, Any]", changed["links"][sender["path"][-1]]["delay"])
    if delay["jitter"] is None:
        # Points of its quantile function, closer where it is steep.
        shares = [1 - math.exp(-number / 2) for number in range(2 * _MOST)]
        points = [(share, -math.log1p(-share)) for share in shares] + [(1.0, float(_MOST))]
        delay["jitter"] = {
            "quantiles": [
                {"probability": share, "value_ns": round(mean_s * 1e9 * times)}
                for share, times in points
            ],
            "correlation_ns": 0,
            "reorder": False,
        }
    return changed
