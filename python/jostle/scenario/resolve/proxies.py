"""Proxies: splits a flow into the connections of the run specification.

Each connection is a flow of the run specification. The first keeps the flow's name and sender. The
connections that proxies open are named `FLOW@LINK`, after the link at whose entrance the proxy is,
and forward the data of the previous connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, cast

from jostle.run_spec import Algorithm, FlowSpec, RelaySource
from jostle.scenario.models import Flow, Proxy
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import LARGEST, format_amount
from jostle.scenario.resolve.links import LinkFacts, bdp_bytes
from jostle.scenario.resolve.transports import is_quic
from jostle.scenario.sources import Cbr, Ping, Video

__all__ = [
    "LegResolver",
    "Route",
    "SplitFlow",
    "connection_names",
    "split",
    "with_first",
    "with_proxies",
]

_BESIDE_NS: Final = 1_000_000
"""RTT between a sender and a proxy if no link between them has a delay."""
_SYN_WINDOW_BYTES: Final = 65_535
_HEADER_BYTES: Final = 52

Algorithms = Callable[[Flow, KeyPath], tuple[Algorithm | None, Algorithm | None]]
"""Resolves controller and slow start of a flow at a key path."""


@dataclass(frozen=True)
class Route:
    """The path of a flow.

    Attributes
    ----------
    there, back
        Links of the forward and the reverse path.
    rtt_ns
        RTT of the flow; None if a problem was reported.
    positions
        Link positions by name.
    """

    there: Sequence[LinkFacts]
    back: Sequence[LinkFacts]
    rtt_ns: int | None
    positions: Mapping[str, int]


@dataclass(frozen=True)
class LegResolver:
    """Functions with which connections are resolved.

    Attributes
    ----------
    algorithms
        Resolves controllers.
    knows_ecn
        Returns whether a flow with a controller negotiates ECN.
    report
        Collects problems.
    """

    algorithms: Algorithms
    knows_ecn: Callable[[Flow, str], bool]
    report: Report


@dataclass(frozen=True)
class SplitFlow:
    """The connections of a flow with proxies.

    Attributes
    ----------
    first
        The flow's own connection.
    following
        Connections that proxies open, in order. They lack `source.from`; their `name` and `group`
        are suffixes of the flow's name and group.
    """

    first: FlowSpec
    following: Sequence[FlowSpec]


@dataclass(frozen=True)
class _LegBoundary:
    """A proxy and its position on the path.

    Attributes
    ----------
    pep, path
        Proxy in the scenario, and its key path.
    link
        Name of the link at whose entrance the proxy is.
    there, back
        Number of forward links before the proxy, and number of reverse links between the receiver
        and the proxy.
    """

    pep: Proxy
    path: KeyPath
    link: str
    there: int
    back: int


def connection_names(flow: Flow, links: Sequence[LinkFacts]) -> list[str]:
    """Return the name suffixes of the connections that a flow's proxies open."""
    found = (_link_name(pep, links) for pep in flow.proxy)
    return [f"@{name}" for name in found if name is not None]


def with_first(specified: Sequence[FlowSpec], splits: Sequence[SplitFlow | None]) -> list[FlowSpec]:
    """Return the flows, with split flows replaced by their first connection."""
    pairs = zip(specified, splits, strict=True)
    return [spec if found is None else found.first for spec, found in pairs]


def with_proxies(
    flows: Sequence[FlowSpec],
    copies: Sequence[Sequence[str]],
    splits: Sequence[SplitFlow | None],
) -> list[FlowSpec]:
    """Return all flows, followed by the connections that proxies open for each.

    `copies` are the flow names of each scenario entry, `splits` its split or None.
    """
    opened: list[FlowSpec] = []
    position = 0
    for names, found in zip(copies, splits, strict=True):
        for name in names:
            before = position
            for following in () if found is None else found.following:
                source = cast("RelaySource", following["source"])
                leg: FlowSpec = {
                    **following,
                    "name": f"{name}{following['name']}",
                    "source": {**source, "from": before},
                    "start_ns": flows[position]["start_ns"],
                    "after": None,
                }
                before = len(flows) + len(opened)
                opened.append(leg)
            position += 1
    return [*flows, *opened]


def split(
    flow: Flow, path: KeyPath, spec: FlowSpec, route: Route, maker: LegResolver
) -> SplitFlow | None:
    """Return the connections into which a flow's proxies split it.

    Parameters
    ----------
    flow, path
        Flow in the scenario, and its key path.
    spec
        Specification of the flow without proxies.
    route
        Path of the flow.
    maker
        Functions with which connections are resolved.

    Returns
    -------
    SplitFlow or None
        None if a problem was reported.
    """
    report, positions = maker.report, route.positions
    if _has_none(flow, path, report):
        return None
    before = report.count
    cuts = _cuts(flow, path, route, report)
    if report.count > before or not route.there or route.rtt_ns is None:
        return None
    ways = _leg_paths(cuts, route)
    delays_ns = _delays_ns(cuts, ways, route.rtt_ns, path, report)
    whole_bdp = min(bdp_bytes(one.initial_bps, route.rtt_ns) for one in route.there)
    buffers = [_buffers(cut, flow.mtu, whole_bdp, report) for cut in cuts]
    connections = []
    for number, ((there, back), delay_ns) in enumerate(zip(ways, delays_ns, strict=True)):
        leg: FlowSpec = {**spec}
        if number > 0:
            leg = _opened(flow, cuts[number - 1], buffers[number - 1][0], spec, maker)
        leg["path"] = [positions[link.name] for link in there]
        leg["reverse_path"] = [positions[link.name] for link in back]
        leg["base_delay_ns"] = delay_ns
        if number < len(cuts):
            window_bytes = buffers[number][1]
            leg["receive_window_bytes"] = window_bytes
            leg["initial_receive_window_bytes"] = min(window_bytes, _SYN_WINDOW_BYTES)
            leg["receive_window_autotuning"] = False
            # The proxy reads as long as its buffer has room.
            leg.pop("reader", None)
        connections.append(leg)
    return SplitFlow(connections[0], connections[1:])


def _opened(
    flow: Flow, cut: _LegBoundary, buffer_bytes: int, spec: FlowSpec, maker: LegResolver
) -> FlowSpec:
    """Return the keys of a connection opened by a proxy that do not depend on its path."""
    pep = cut.pep
    theirs = flow.model_copy(update={"controller": pep.controller, "slow_start": pep.slow_start})
    controller, slow_start = maker.algorithms(theirs, cut.path)
    pacing = flow.pacing if pep.pacing is None else pep.pacing
    window = flow.initial_window if pep.initial_window is None else pep.initial_window
    return {
        **spec,
        "name": f"@{cut.link}",
        "group": f"{flow.name}@{cut.link}",
        # A run with problems is not built, so no result has a missing controller.
        "controller": controller or spec["controller"],
        "slow_start": slow_start,
        "memory": None,
        "source": {"kind": "relay", "from": 0, "buffer_bytes": buffer_bytes},
        "ecn": maker.knows_ecn(flow, pep.controller.name),
        "stop_ns": None,
        "pacing": pacing == "fq",
        "initial_window_packets": window,
        "initial_pacing": False,
        "nic_rate_bps": None,
    }


def _has_none(flow: Flow, path: KeyPath, report: Report) -> bool:
    """Report proxies of flows that cannot be split, and return whether there are any."""
    if is_quic(flow):
        message = (
            "a proxy cannot acknowledge what is encrypted from end to end (RFC 9000 §12; "
            'RFC 9312 §2.1) — write transport = "tcp", or remove this key'
        )
        report.add((*path, "proxy"), message, (*path, "transport"))
        return True
    if isinstance(flow.source, Video):
        message = "a player's requests do not pass a proxy here — remove this key"
        report.add((*path, "proxy"), message, (*path, "source"))
        return True
    if flow.arrivals is not None:
        message = "connections that come and go have no proxies here — remove one of these keys"
        report.add((*path, "proxy"), message, (*path, "arrivals"))
        return True
    if isinstance(flow.source, Cbr | Ping):
        message = "only TCP connections can be split — remove this key"
        report.add((*path, "proxy"), message, (*path, "source"))
        return True
    return False


def _link_name(pep: Proxy, there: Sequence[LinkFacts]) -> str | None:
    """Return the link at whose entrance a proxy is: as configured, or the slowest of the path."""
    if pep.link is not None:
        return pep.link
    return min(there, key=lambda link: link.initial_bps).name if there else None


def _cuts(flow: Flow, path: KeyPath, route: Route, report: Report) -> list[_LegBoundary]:
    names = [link.name for link in route.there]
    found: list[_LegBoundary] = []
    for number, pep in enumerate(flow.proxy):
        where = (*path, "proxy", number) if len(flow.proxy) > 1 else (*path, "proxy")
        link = _link_name(pep, route.there)
        if link is None:
            continue
        if link not in names:
            known = f"{did_you_mean(link, names)}"
            message = f'link "{link}" is not on the way of this flow — {known}'
            report.add((*where, "link"), message, (*path, "path"), ("links",))
            continue
        there = names.index(link)
        if found and there <= found[-1].there:
            message = (
                f'"{link}" does not lie behind "{found[-1].link}" — name proxies in their order'
            )
            report.add((*where, "link"), message, (*path, "path"))
            continue
        back = _back(pep, there, route, where=where, path=path, report=report)
        if found and back > found[-1].back:
            message = "the way back meets this proxy before the one that lies before it"
            report.add(
                (*where, "reverse_link"), f"{message} — name links in their order", (*path, "proxy")
            )
        found.append(_LegBoundary(pep, where, link, there, back))
    return found


def _back(
    pep: Proxy, there: int, route: Route, *, where: KeyPath, path: KeyPath, report: Report
) -> int:
    """Return the number of reverse links between the receiver and a proxy."""
    names = [link.name for link in route.back]
    if pep.reverse_link is not None:
        if pep.reverse_link not in names:
            known = did_you_mean(pep.reverse_link, names) if names else "it crosses none"
            message = f'link "{pep.reverse_link}" is not on the way back of this flow — {known}'
            report.add((*where, "reverse_link"), message, (*path, "reverse_path"))
            return 0
        return names.index(pep.reverse_link)
    if not names:
        return 0
    if len(names) != len(route.there):
        message = (
            f"the reverse path has {len(names)} links and the forward path {len(route.there)} — "
            f'name the link behind the proxy on the reverse path: reverse_link = "{names[-1]}"'
        )
        report.add(where, message, (*path, "reverse_path"))
        return 0
    return len(names) - there


def _leg_paths(
    cuts: Sequence[_LegBoundary], route: Route
) -> list[tuple[Sequence[LinkFacts], Sequence[LinkFacts]]]:
    """Return the forward and reverse links of every connection."""
    there = [0, *(cut.there for cut in cuts), len(route.there)]
    back = [len(route.back), *(cut.back for cut in cuts), 0]
    return [
        (route.there[begin:end], route.back[back_begin:back_end])
        for (begin, end), (back_end, back_begin) in zip(
            pairwise(there), pairwise(back), strict=True
        )
    ]


def _delays_ns(
    cuts: Sequence[_LegBoundary],
    ways: Sequence[tuple[Sequence[LinkFacts], Sequence[LinkFacts]]],
    rtt_ns: int,
    path: KeyPath,
    report: Report,
) -> list[int]:
    """Return the part of every connection's RTT that is not delay of its links."""
    found = []
    left_ns = rtt_ns
    for number, (there, back) in enumerate(ways):
        links_ns = sum(link.base_delay_ns for link in (*there, *back))
        own_ns = left_ns
        if number < len(cuts):
            cut = cuts[number]
            own_ns = cut.pep.rtt or links_ns or min(_BESIDE_NS, rtt_ns // 2)
            left_ns -= own_ns
            at = (*cut.path, "rtt")
        else:
            at = (*cuts[-1].path, "rtt")
        if own_ns < links_ns:
            which = "before this proxy" if number < len(cuts) else "behind the last proxy"
            message = (
                f"{format_amount(max(own_ns, 0), 'time')} of the flow's "
                f"{format_amount(rtt_ns, 'time')} are left for the connection {which}, whose links "
                f"take {format_amount(links_ns, 'time')} — change one of them"
            )
            report.add(at, message, (*path, "rtt"), (*path, "path"))
        found.append(max(own_ns - links_ns, 0))
    return found


def _buffers(cut: _LegBoundary, mtu_bytes: int, bdp: int, report: Report) -> tuple[int, int]:
    """Return a proxy's buffer, and the window that it offers to the previous sender."""
    buffer_bytes = min(LARGEST, cut.pep.buffer.to_bytes(bdp))
    given = cut.pep.receive_window
    window_bytes = buffer_bytes if given is None else min(LARGEST, given.to_bytes(bdp))
    least = mtu_bytes - _HEADER_BYTES
    for key, size_bytes in (("buffer", buffer_bytes), ("receive_window", window_bytes)):
        if size_bytes < least and (key == "buffer" or given is not None):
            message = f'{size_bytes} B do not hold a full segment — at least "{least} B"'
            report.add((*cut.path, key), message)
    return buffer_bytes, window_bytes
