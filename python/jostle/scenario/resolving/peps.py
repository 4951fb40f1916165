"""Proxies that split a flow: from a scenario's flow to the connections of a run's specification.

A connection is a flow of its own there. The first keeps the flow's name and its sender; those that
proxies open are called `FLOW@LINK`, after the link at whose entrance the proxy stands, and send
what comes in over the one before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from jostle.scenario.models import Flow, Pep
from jostle.scenario.resolving.links import LinkFacts, bdp_bytes
from jostle.scenario.resolving.transports import is_quic
from jostle.scenario.sources import Cbr, Ping, Video
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report, did_you_mean
from jostle.scenario.text.units import LARGEST, format_amount

__all__ = ["Maker", "Route", "Split", "connection_names", "split", "with_first", "with_proxies"]

_BESIDE_NS: Final = 1_000_000
"""Round trip between a sender and a proxy that has no link with a delay between them."""
_SYN_WINDOW_BYTES: Final = 65_535
_HEADER_BYTES: Final = 52

Algorithms = Callable[[Flow, KeyPath], tuple[dict[str, Any] | None, dict[str, Any] | None]]
"""Resolves controller and slow start of a flow that stands at a place."""


@dataclass(frozen=True)
class Route:
    """A flow's way.

    Attributes
    ----------
    there, back
        Its links.
    rtt_ns
        Its round trip; None if it was reported.
    positions
        Of links, by name.
    """

    there: Sequence[LinkFacts]
    back: Sequence[LinkFacts]
    rtt_ns: int | None
    positions: Mapping[str, int]


@dataclass(frozen=True)
class Maker:
    """What connections are resolved by.

    Attributes
    ----------
    algorithms
        Resolves controllers.
    knows_ecn
        Tells whether a flow with that controller negotiates ECN.
    report
        Takes problems.
    """

    algorithms: Algorithms
    knows_ecn: Callable[[Flow, str], bool]
    report: Report


@dataclass(frozen=True)
class Split:
    """The connections of a flow that has proxies.

    Attributes
    ----------
    first
        What the flow's own connection has instead of what the whole flow would have.
    following
        Those that proxies open, in order: complete but for `source.from`, with `name` and `group`
        as what comes behind the flow's.
    """

    first: Mapping[str, Any]
    following: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class _Cut:
    """A proxy, where it stands.

    Attributes
    ----------
    pep, path
        What the scenario says, and where.
    link
        Name of the link at whose entrance it stands.
    there, back
        How many links of the way there lie before it; how many of the way back its ACKs have behind
        them that go to the connection before.
    """

    pep: Pep
    path: KeyPath
    link: str
    there: int
    back: int


def connection_names(flow: Flow, links: Sequence[LinkFacts]) -> list[str]:
    """Return what the connections behind a flow's own are called behind its name."""
    found = (_link_name(pep, links) for pep in flow.pep)
    return [f"@{name}" for name in found if name is not None]


def with_first(
    specified: Sequence[dict[str, Any]], splits: Sequence[Split | None]
) -> list[dict[str, Any]]:
    """Return flows, of those that are split the first connection."""
    pairs = zip(specified, splits, strict=True)
    return [spec if found is None else {**spec, **found.first} for spec, found in pairs]


def with_proxies(
    flows: Sequence[dict[str, Any]],
    copies: Sequence[Sequence[str]],
    splits: Sequence[Split | None],
) -> list[dict[str, Any]]:
    """Return all flows, and behind them the connections that proxies open for each.

    `copies` are the names of those of each entry, `splits` what its proxies make of it.
    """
    opened: list[dict[str, Any]] = []
    position = 0
    for names, found in zip(copies, splits, strict=True):
        for name in names:
            before = position
            for following in () if found is None else found.following:
                own = {
                    "name": f"{name}{following['name']}",
                    "source": {**following["source"], "from": before},
                    "start_ns": flows[position]["start_ns"],
                    "after": None,
                }
                before = len(flows) + len(opened)
                opened.append({**following, **own})
            position += 1
    return [*flows, *opened]


def split(
    flow: Flow, path: KeyPath, spec: Mapping[str, Any], route: Route, maker: Maker
) -> Split | None:
    """Return the connections that a flow's proxies make of it.

    Parameters
    ----------
    flow, path
        What the scenario says, and where.
    spec
        The flow as it would be without them, resolved.
    route
        Its way.
    maker
        What connections are resolved by.

    Returns
    -------
    Split or None
        None if something was reported.
    """
    report, positions = maker.report, route.positions
    if _has_none(flow, path, report):
        return None
    before = report.count
    cuts = _cuts(flow, path, route, report)
    if report.count > before or not route.there or route.rtt_ns is None:
        return None
    ways = _ways(cuts, route)
    delays_ns = _delays_ns(cuts, ways, route.rtt_ns, path, report)
    whole_bdp = min(bdp_bytes(one.initial_bps, route.rtt_ns) for one in route.there)
    buffers = [_buffers(cut, flow.mtu, whole_bdp, report) for cut in cuts]
    connections = []
    for number, ((there, back), delay_ns) in enumerate(zip(ways, delays_ns, strict=True)):
        made: dict[str, Any] = {
            "path": [positions[link.name] for link in there],
            "reverse_path": [positions[link.name] for link in back],
            "access_delay_ns": delay_ns,
        }
        if number < len(cuts):
            made |= _windows(buffers[number][1])
        if number > 0:
            cut, (buffer_bytes, _) = cuts[number - 1], buffers[number - 1]
            made = {**_opened(flow, cut, spec, maker), **made}
            made["source"] = {"kind": "relay", "from": 0, "buffer_bytes": buffer_bytes}
        connections.append(made)
    return Split(connections[0], connections[1:])


def _opened(flow: Flow, cut: _Cut, spec: Mapping[str, Any], maker: Maker) -> dict[str, Any]:
    """Return a connection that a proxy opens, as far as it does not depend on its way."""
    pep = cut.pep
    theirs = flow.model_copy(update={"controller": pep.controller, "slow_start": pep.slow_start})
    controller, slow_start = maker.algorithms(theirs, cut.path)
    pacing = flow.pacing if pep.pacing is None else pep.pacing
    window = flow.initial_window if pep.initial_window is None else pep.initial_window
    return {
        **spec,
        "name": f"@{cut.link}",
        "group": f"{flow.name}@{cut.link}",
        "controller": controller,
        "slow_start": slow_start,
        "memory": None,
        "ecn": maker.knows_ecn(flow, pep.controller.name),
        "stop_ns": None,
        "pacing": pacing == "fq",
        "initial_window_packets": window,
        "initial_pacing": False,
        "nic_rate_bps": None,
    }


def _has_none(flow: Flow, path: KeyPath, report: Report) -> bool:
    """Report proxies of what none can split."""
    if is_quic(flow):
        message = (
            "a proxy cannot acknowledge what is encrypted from end to end (RFC 9000, section 12; "
            'RFC 9312, section 2.1) — write transport = "tcp", or remove this key'
        )
        report.add((*path, "pep"), message, (*path, "transport"))
        return True
    if isinstance(flow.source, Video):
        message = "a player's requests do not pass a proxy here — remove this key"
        report.add((*path, "pep"), message, (*path, "source"))
        return True
    if flow.arrivals is not None:
        message = "connections that come and go have no proxies here — remove one of these keys"
        report.add((*path, "pep"), message, (*path, "arrivals"))
        return True
    if isinstance(flow.source, Cbr | Ping):
        message = "only TCP connections can be split — remove this key"
        report.add((*path, "pep"), message, (*path, "source"))
        return True
    return False


def _link_name(pep: Pep, there: Sequence[LinkFacts]) -> str | None:
    """Return the link at whose entrance a proxy stands: as it says, or the slowest of the way."""
    if pep.at is not None:
        return pep.at
    return min(there, key=lambda link: link.initial_bps).name if there else None


def _cuts(flow: Flow, path: KeyPath, route: Route, report: Report) -> list[_Cut]:
    names = [link.name for link in route.there]
    found: list[_Cut] = []
    for number, pep in enumerate(flow.pep):
        where = (*path, "pep", number) if len(flow.pep) > 1 else (*path, "pep")
        link = _link_name(pep, route.there)
        if link is None:
            continue
        if link not in names:
            known = f"{did_you_mean(link, names)}"
            message = f'link "{link}" is not on the way of this flow — {known}'
            report.add((*where, "at"), message, (*path, "path"), ("links",))
            continue
        there = names.index(link)
        if found and there <= found[-1].there:
            message = (
                f'"{link}" does not lie behind "{found[-1].link}" — name proxies in their order'
            )
            report.add((*where, "at"), message, (*path, "path"))
            continue
        back = _back(pep, there, route, where=where, path=path, report=report)
        if found and back > found[-1].back:
            message = "the way back meets this proxy before the one that lies before it"
            report.add((*where, "back"), f"{message} — name links in their order", (*path, "pep"))
        found.append(_Cut(pep, where, link, there, back))
    return found


def _back(
    pep: Pep, there: int, route: Route, *, where: KeyPath, path: KeyPath, report: Report
) -> int:
    """Return how many links of the way back lie behind a proxy, seen from the sender."""
    names = [link.name for link in route.back]
    if pep.back is not None:
        if pep.back not in names:
            known = did_you_mean(pep.back, names) if names else "it crosses none"
            message = f'link "{pep.back}" is not on the way back of this flow — {known}'
            report.add((*where, "back"), message, (*path, "reverse_path"))
            return 0
        return names.index(pep.back)
    if not names:
        return 0
    if len(names) != len(route.there):
        message = (
            f"the way back has {len(names)} links and the way there {len(route.there)} — name the "
            f'link at whose entrance the proxy stands on the way back: back = "{names[-1]}"'
        )
        report.add(where, message, (*path, "reverse_path"))
        return 0
    return len(names) - there


def _ways(
    cuts: Sequence[_Cut], route: Route
) -> list[tuple[Sequence[LinkFacts], Sequence[LinkFacts]]]:
    """Return the links of every connection, there and back."""
    there = [0, *(cut.there for cut in cuts), len(route.there)]
    back = [len(route.back), *(cut.back for cut in cuts), 0]
    return [
        (route.there[begin:end], route.back[back_begin:back_end])
        for (begin, end), (back_end, back_begin) in zip(
            pairwise(there), pairwise(back), strict=True
        )
    ]


def _delays_ns(
    cuts: Sequence[_Cut],
    ways: Sequence[tuple[Sequence[LinkFacts], Sequence[LinkFacts]]],
    rtt_ns: int,
    path: KeyPath,
    report: Report,
) -> list[int]:
    """Return what the round trip of every connection has beside its links."""
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


def _buffers(cut: _Cut, mtu_bytes: int, bdp: int, report: Report) -> tuple[int, int]:
    """Return a proxy's buffer and what it offers on the connection before it."""
    buffer_bytes = min(LARGEST, cut.pep.buffer.to_bytes(bdp))
    given = cut.pep.receive_window
    window_bytes = buffer_bytes if given is None else min(LARGEST, given.to_bytes(bdp))
    least = mtu_bytes - _HEADER_BYTES
    for key, size_bytes in (("buffer", buffer_bytes), ("receive_window", window_bytes)):
        if size_bytes < least and (key == "buffer" or given is not None):
            message = f'{size_bytes} B do not hold a full segment — at least "{least} B"'
            report.add((*cut.path, key), message)
    return buffer_bytes, window_bytes


def _windows(window_bytes: int) -> dict[str, Any]:
    return {
        "receive_window_bytes": window_bytes,
        "initial_receive_window_bytes": min(window_bytes, _SYN_WINDOW_BYTES),
        "receive_window_autotuning": False,
    }
