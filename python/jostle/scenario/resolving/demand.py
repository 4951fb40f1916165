"""Bounds on what resolving a scenario takes: a few bytes can ask for more than there is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from jostle.scenario.models import ScenarioFile
from jostle.scenario.resolving.grid import Dimension
from jostle.scenario.text.problems import Report

__all__ = [
    "MAX_ELEMENTS", "condition_count", "count_elements", "limit_flow_count", "limit_hop_count",
]  # fmt: skip

MAX_ELEMENTS: Final = 300_000
"""Of all conditions, each of which is resolved: some 10 s, and half a gigabyte."""
_MOST_FLOWS: Final = 10_000
"""Of a scenario, each of which is resolved when it is loaded. A RunSpec may have more."""
_MOST_HOPS: Final = 1_000_000
"""Links on the ways of all flows."""
_MOST_LOOKED_UP: Final = 10_000_000
"""Flows of the file × links."""


def limit_flow_count(file: ScenarioFile, report: Report) -> bool:
    """Check how many flows there are before they are made."""
    flows = sum(flow.count * (1 + len(flow.pep)) for flow in file.flows)
    if flows <= _MOST_FLOWS:
        return True
    index = max(range(len(file.flows)), key=lambda index: file.flows[index].count)
    path = ("flows", index, "count") if file.flows[index].count > 1 else ("flows",)
    report.add(path, f"{flows} flows in all — at most {_MOST_FLOWS}")
    return False


def limit_hop_count(file: ScenarioFile, report: Report) -> bool:
    """Check how many links all flows cross, each of which is looked up for each of them."""
    hops = [flow.count * (len(flow.path or ()) + len(flow.reverse_path)) for flow in file.flows]
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


def count_elements(file: ScenarioFile) -> int:
    """Return how many flows, links and steps of links a condition has, as far as it may have."""
    links = [file.bottleneck, file.downlink, file.uplink, *file.links]
    steps = [given for one in links if one is not None for given in (one.rate, one.delay)]
    flows = sum(min(flow.count, _MOST_FLOWS) for flow in file.flows)
    return flows + len(links) + sum(len(given) for given in steps if isinstance(given, tuple))


def condition_count(dimensions: Sequence[Dimension]) -> int:
    """Return how many combinations there are of values that vary and points that are sampled."""
    points = max((len(one.levels) for one in dimensions if one.sampled), default=1)
    return math.prod(len(one.levels) for one in dimensions if not one.sampled) * points
