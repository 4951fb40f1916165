"""Limits on the size of a scenario, because a few bytes can request unlimited work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from jostle.scenario.models import Flow, RouteChange, ScenarioFile
from jostle.scenario.parsing.problems import Report
from jostle.scenario.resolve.grid import GridKey

__all__ = [
    "MAX_ELEMENTS", "condition_count", "count_elements", "limit_flow_count", "limit_hop_count",
    "named_paths",
]  # fmt: skip

MAX_ELEMENTS: Final = 300_000
"""Maximum number of elements of all conditions. Resolving them takes about 10 s and 0.5 GB."""
_MOST_FLOWS: Final = 10_000
"""Maximum number of flows of a scenario. Programs may give a RunSpec more."""
_MOST_HOPS: Final = 1_000_000
"""Maximum number of links on the paths of all flows."""
_MOST_LOOKED_UP: Final = 10_000_000
"""Maximum of flows in the file × links."""


def limit_flow_count(file: ScenarioFile, report: Report) -> bool:
    """Check the number of flows before they are created."""
    flows = sum(flow.count * (1 + len(flow.proxy)) for flow in file.flows)
    if flows <= _MOST_FLOWS:
        return True
    index = max(range(len(file.flows)), key=lambda index: file.flows[index].count)
    path = ("flows", index, "count") if file.flows[index].count > 1 else ("flows",)
    report.add(path, f"{flows} flows in all — at most {_MOST_FLOWS}")
    return False


def limit_hop_count(file: ScenarioFile, report: Report) -> bool:
    """Check the number of links that all flows cross. Each is looked up per flow."""
    hops = [flow.count * sum(map(len, named_paths(flow))) for flow in file.flows]
    looked_up = len(file.flows) * len(file.links)
    if sum(hops) <= _MOST_HOPS and looked_up <= _MOST_LOOKED_UP:
        return True
    index = hops.index(max(hops))
    if sum(hops) > _MOST_HOPS:
        message = f"{sum(hops)} links on the ways of all flows — at most {_MOST_HOPS}"
        report.add(("flows", index, "path"), message)
    else:
        message = f"{len(file.flows)} flows with {len(file.links)} links"
        report.add(("flows",), f"{message} — their product is at most {_MOST_LOOKED_UP}")
    return False


def named_paths(flow: Flow) -> list[Sequence[str]]:
    """Return the paths of a flow in both directions, on all its routes."""
    ends: list[Flow | RouteChange] = [flow, *flow.routes]
    return [names or () for one in ends for names in (one.path, one.reverse_path)]


def count_elements(file: ScenarioFile) -> int:
    """Return an upper bound of the number of flows, links and link steps of a condition."""
    links = [file.bottleneck, file.downlink, file.uplink, *file.links]
    steps = [given for one in links if one is not None for given in (one.rate, one.delay)]
    flows = sum(min(flow.count, _MOST_FLOWS) for flow in file.flows)
    return flows + len(links) + sum(len(given) for given in steps if isinstance(given, tuple))


def condition_count(dimensions: Sequence[GridKey]) -> int:
    """Return the number of combinations of grid values and sample points."""
    points = max((len(one.levels) for one in dimensions if one.sampled), default=1)
    return math.prod(len(one.levels) for one in dimensions if not one.sampled) * points
