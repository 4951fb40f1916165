"""Networks given as graphs: each edge becomes two links, and flows take shortest paths.

A path has the lowest delay and, of paths with equal delay, the fewest links, as in a network that
routes by delay. ACKs use the reverse links of the path and share them with other flows' data.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jostle.scenario.models import Flow, Graph, NamedLink, Queue, ScenarioFile
from jostle.scenario.parsing.graph_files import GraphFile, GraphNode
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.resolve.size_limits import named_paths
from jostle.scenario.resolve.trace_files import TraceFiles

__all__ = ["edge_name", "routed"]

_EARTH_KM: Final = 6371.0
"""Mean radius of the Earth."""
_FIBRE_KM_PER_S: Final = 299_792.458 / 1.468
"""Speed of light in single-mode fibre at 1550 nm, with the group index of ITU-T G.652 (1.468)."""
_DELAY_GRAIN_NS: Final = 1_000
_AT: Final[KeyPath] = ("graph",)
_MOST_STEPS: Final = 10_000_000
"""Maximum number of links visited by all path searches, which takes about 10 s."""


@dataclass(frozen=True, slots=True)
class _Cable:
    """A link before it is known whether a flow crosses it."""

    rate_bps: int
    delay_ns: int
    queue: Queue

    def link(self, name: str) -> NamedLink:
        """Return the link in scenario form. This takes about 0.1 ms, so call it for used links."""
        rate, delay = ((0, self.rate_bps),), ((0, self.delay_ns),)
        return NamedLink.model_construct(name=name, rate=rate, delay=delay, queue=self.queue)


@dataclass
class _Network:
    """Adjacency lists of nodes: neighbour with link and delay in ns."""

    links: dict[str, _Cable] = field(default_factory=dict)
    joined: dict[str, dict[str, tuple[str, int]]] = field(default_factory=dict)
    trees: dict[str, dict[str, str]] = field(default_factory=dict)

    def shortest_path(self, start: str, end: str) -> list[str] | None:
        """Return the names of the links of the shortest path; None if there is no path."""
        before = self.trees.get(start)
        if before is None:
            before = self.trees[start] = self._tree(start)
        way: list[str] = []
        while end != start:
            if end not in before:
                return None
            way.append(self.joined[before[end]][end][0])
            end = before[end]
        return way[::-1]

    def _tree(self, start: str) -> dict[str, str]:
        """Return the predecessor of each node on its shortest path (Dijkstra 1959)."""
        before: dict[str, str] = {}
        settled: set[str] = set()
        # Compare delay, number of links, then names: the result does not depend on file order.
        waiting = [(0, 0, start, "")]
        while waiting:
            delay_ns, hops, node, origin = heapq.heappop(waiting)
            if node in settled:
                continue
            settled.add(node)
            if origin:
                before[node] = origin
            for other, (_, more_ns) in self.joined[node].items():
                if other not in settled:
                    heapq.heappush(waiting, (delay_ns + more_ns, hops + 1, other, node))
        return before


def edge_name(one: str, other: str) -> str:
    """Return the name of the link from one node to another."""
    return f"{one} to {other}"


def routed(file: ScenarioFile, files: TraceFiles, report: Report) -> ScenarioFile | None:
    """Return the scenario with the paths of its flows, and the links that they use.

    A scenario without a graph is returned unchanged. If a problem was reported, return None.
    """
    before = report.count
    if file.graph is None:
        for index, flow in enumerate(file.flows):
            for key, given in (("from", flow.from_), ("to", flow.to)):
                if given is not None:
                    report.add(("flows", index, key), "there is no [graph] that has nodes")
        return file if report.count == before else None
    for name in ("bottleneck", "downlink", "uplink", "links"):
        if getattr(file, name):
            report.add(_AT, f"there is {name} as well — keep either it or [graph]", (name,))
            return None
    network = files.last(file.graph, lambda graph: _network(graph, files, report))
    if network is None or not _limit_endpoint_count(file.flows, network, report):
        return None
    flows = []
    for index, flow in enumerate(file.flows):
        if report.full:
            return None
        flows.append(_routed(flow, index, network, report))
    if report.count > before:
        return None
    crossed = {name for flow in flows for path in named_paths(flow) for name in path}
    links = [cable.link(name) for name, cable in network.links.items() if name in crossed]
    return file.model_copy(update={"links": links, "flows": flows})


def _limit_endpoint_count(flows: Sequence[Flow], network: _Network, report: Report) -> bool:
    """Check the number of nodes from which paths are searched; each search visits all links."""
    ends = {end for flow in flows for end in (flow.from_, flow.to)}
    if len(ends) * len(network.links) <= _MOST_STEPS:
        return True
    message = (
        f"they begin and end at {len(ends)} nodes of a network with {len(network.links)} links"
    )
    report.add(("flows",), f"{message} — at most {_MOST_STEPS // len(network.links)} nodes", _AT)
    return False


def _network(graph: Graph, files: TraceFiles, report: Report) -> _Network | None:
    try:
        found = files.graph(graph.file) if graph.file else GraphFile("", {})
    except QuantityError as error:
        report.add((*_AT, "file"), str(error))
        return None
    network = _Network({}, {name: {} for name in found.nodes})
    told: dict[tuple[str, str], int] = {}
    for index, edge in enumerate(graph.edges):
        if len(edge.between) != 2 or edge.between[0] == edge.between[1]:
            at = (*_AT, "edges", index, "between")
            report.add(at, 'two nodes are joined by an edge — write between = ["A", "B"]')
            return None
        ends = _ends(*edge.between)
        if ends in told:
            message = "these nodes are joined by an edge above — keep one of them"
            report.add((*_AT, "edges", index, "between"), message)
            return None
        told[ends] = index
    pairs: dict[tuple[str, str], int | None] = {}
    for joined in found.edges:
        ends = _ends(joined.one, joined.other)
        # Of parallel edges, keep the fastest.
        pairs[ends] = max(pairs.get(ends) or 0, joined.rate_bps or 0) or None
    for ends in told:
        pairs.setdefault(ends, None)
    for ends, rate_bps in pairs.items():
        whole = _add(
            network, graph, found.nodes, ends,
            file_bps=rate_bps, index=told.get(ends), report=report,
        )  # fmt: skip
        if not whole:
            return None
    if not network.links:
        report.add(_AT, "no edge — name a file, or write [[graph.edges]]")
        return None
    return network


def _ends(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _add(
    network: _Network,
    graph: Graph,
    nodes: Mapping[str, GraphNode],
    ends: tuple[str, str],
    *,
    file_bps: int | None,
    index: int | None,
    report: Report,
) -> bool:
    """Add both links of an edge; return whether all its values are known."""
    edge = None if index is None else graph.edges[index]
    at: KeyPath = _AT if index is None else (*_AT, "edges", index)
    shown = f"{ends[0]} – {ends[1]}"
    if file_bps is not None:
        file_bps = max(1, round(file_bps * graph.scale))
    rate_bps = (edge.rate if edge else None) or file_bps or graph.rate
    if rate_bps is None:
        message = f'{shown} has no rate in the file — write for all such edges rate = "1 Gbit/s"'
        report.add((*at, "rate"), message)
        return False
    queue = (edge.queue if edge else None) or graph.queue
    if queue is None:
        report.add((*_AT, "queue"), 'missing — write for example queue = "codel"')
        return False
    delay_ns = edge.delay if edge else None
    if delay_ns is None:
        delay_ns = _cable_ns(nodes.get(ends[0]), nodes.get(ends[1]), graph.detour)
    if delay_ns is None:
        delay_ns = graph.delay
    if delay_ns is None:
        message = f'{shown}: one of them has no place in the file — write delay = "5 ms"'
        report.add((*at, "delay"), message)
        return False
    for one, other in (ends, ends[::-1]):
        name = edge_name(one, other)
        if name in network.links:
            message = f'two links would be called "{name}" — change the name of a node'
            report.add((*at, "between") if edge else (*_AT, "file"), message)
            return False
        network.links[name] = _Cable(rate_bps, delay_ns, queue)
        network.joined.setdefault(one, {})[other] = (name, delay_ns)
    return True


def _cable_ns(one: GraphNode | None, other: GraphNode | None, detour: float) -> int | None:
    """Return the delay of a fibre with `detour` times the length of the great circle."""
    if one is None or other is None or one.latitude is None or other.latitude is None:
        return None
    if one.longitude is None or other.longitude is None:
        return None
    there, here = math.radians(one.latitude), math.radians(other.latitude)
    turned = math.radians(other.longitude - one.longitude)
    # The haversine formula is exact for close nodes too.
    half = math.sin((here - there) / 2) ** 2
    half += math.cos(there) * math.cos(here) * math.sin(turned / 2) ** 2
    km = 2 * _EARTH_KM * math.asin(min(1.0, math.sqrt(half))) * detour
    return round(km / _FIBRE_KM_PER_S * 1e9 / _DELAY_GRAIN_NS) * _DELAY_GRAIN_NS


def _routed(flow: Flow, index: int, network: _Network, report: Report) -> Flow:
    path = ("flows", index)
    if flow.path is not None or flow.reverse_path:
        return flow
    ends: list[str] = []
    for key, given in (("from", flow.from_), ("to", flow.to)):
        if given is None:
            report.add((*path, key), 'missing — name a node of the graph, as in from = "Denver"')
        elif given not in network.joined:
            hint = did_you_mean(given, list(network.joined))
            report.add((*path, key), f'there is no node "{given}" — {hint}', _AT)
        else:
            ends.append(given)
    way: dict[str, Any] = {"path": [next(iter(network.links))]}
    if len(ends) == 2:
        there, back = network.shortest_path(*ends), network.shortest_path(ends[1], ends[0])
        if not there or not back:
            message = (
                "this is where it starts" if ends[0] == ends[1] else f'no way from "{ends[0]}"'
            )
            report.add((*path, "to"), message, (*path, "from"), _AT)
        else:
            quiet = sum(network.links[name].delay_ns for name in (*there, *back))
            way = {"path": there, "reverse_path": back, "rtt": flow.rtt or max(quiet, 1)}
    return flow.model_copy(update=way)
