"""Path, base RTT and rate of a flow, from a run specification."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from jostle.backends.kernel.impairment_playback import first_rate_bps
from jostle.errors import InputError, unknown
from jostle.scenario.service_rate import service_bps

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.run_spec import FlowSpec, LinkSpec


def flow_of(spec: Spec, name: str) -> FlowSpec:
    """Return a flow of a run.

    Raises
    ------
    InputError
        When the run has no flow of that name.
    """
    for flow in spec["flows"]:
        if flow["name"] == name:
            return flow
    raise InputError(unknown("flow", name, [flow["name"] for flow in spec["flows"]]))


def connections_of(spec: Spec, name: str) -> list[FlowSpec]:
    """Return a flow and the connections that proxies open to forward its data, in path order."""
    found = [flow_of(spec, name)]
    at = next(i for i, flow in enumerate(spec["flows"]) if flow["name"] == name)
    for number, flow in enumerate(spec["flows"]):
        # A relay follows the connection whose data it forwards.
        if flow["source"]["kind"] == "relay" and flow["source"]["from"] == at:
            found.append(flow)
            at = number
    return found


def path_of(spec: Spec, name: str) -> list[int]:
    """Return the links that a flow's data cross, over all its connections and below tunnels."""
    return [
        below
        for flow in connections_of(spec, name)
        for at in flow["path"]
        for below in _below(spec, at)
    ]


def _below(spec: Spec, at: int) -> list[int]:
    """Return the links below a tunnel, or the link itself."""
    capacity = spec["links"][at]["capacity"]
    return spec["flows"][capacity["flow"]]["path"] if capacity["kind"] == "tunnel" else [at]


def base_rtt_s(spec: Spec, name: str) -> float:
    """Return the base RTT of a flow, from initial delays and the median of jitter."""
    total_ns = 0
    for flow in connections_of(spec, name):
        crossed = (*flow["path"], *flow["reverse_path"])
        # A tunnel's link has the delay of its path outside of its links.
        tunnels = [at for at in crossed if _below(spec, at) != [at]]
        below = [link for at in crossed for link in _below(spec, at)]
        links = [spec["links"][at] for at in (*tunnels, *below)]
        total_ns += flow["base_delay_ns"] + sum(_delay_ns(link) for link in links)
    return total_ns / 1e9


def rate_bps(spec: Spec, name: str) -> float:
    """Return the lowest service rate of the links that a flow's data cross: initial or mean."""
    links = (spec["links"][at] for at in path_of(spec, name))
    return float(min(service_bps(link, first_rate_bps(link)) for link in links))


def _delay_ns(link: LinkSpec) -> int:
    delay = link["delay"]
    first_ns = delay["steps"][0]["delay_ns"]
    points = [] if delay["jitter"] is None else delay["jitter"]["quantiles"]
    for low, high in itertools.pairwise(points):
        if low["probability"] <= 0.5 <= high["probability"]:
            part = (0.5 - low["probability"]) / (high["probability"] - low["probability"])
            return round(first_ns + low["value_ns"] + (high["value_ns"] - low["value_ns"]) * part)
    return first_ns
