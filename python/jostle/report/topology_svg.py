"""A drawing of a run's network: links side by side, and flows across them as lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jostle.report.graph_svg import FlowPath, graph
from jostle.report.svg import text
from jostle.results.flow_groups import transport_name
from jostle.scenario.flow_links import paths, reverse_paths
from jostle.scenario.parsing.quantities import format_short
from jostle.scenario.service_rate import service_bps

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.run_spec import FlowSpec, LinkSpec

MOST_LANES = 12
"""Largest number of lanes; the last one counts the remaining flows."""

_BETWEEN = " to "
"""Separator in names of links between nodes (`jostle.scenario.resolve.topology_graph`)."""
_FEWEST = 4
"""Smallest number of links for which such a network is drawn as a graph."""
_FASTEST_BPS = 10**12
"""Largest rate of a link."""
_LANE = 26
_LINK = 168
_GAP = 44
_LEFT = 210
_RIGHT = 130
_TOP = 84


@dataclass(frozen=True)
class _LinkLane:
    """A route of a flow, or of several of an entry with `count`: its labels and its path.

    `from_ns` is the time from which the flow uses it.
    """

    title: str
    note: str
    rtt_ns: int
    path: tuple[int, ...]
    reverse_path: tuple[int, ...]
    from_ns: int = 0


def topology(spec: Spec) -> str:
    """Draw the network of a run as SVG that uses the colours of the page.

    Every link is a box below its name, rate, delay and queue. A flow is a lane from left to right:
    a dot marks each link that its data cross, a ring each link that its ACKs cross.
    """
    links = spec["links"]
    lanes = _lanes(spec["flows"], links)
    drawn = _graph(links, lanes)
    if drawn is not None:
        return drawn
    width = _LEFT + len(links) * (_LINK + _GAP) + _RIGHT
    height = _TOP + len(lanes) * _LANE + 22
    parts = [
        f'<svg class="topology" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' role="img" aria-label="The network: links as boxes, flows as lanes through them">'
    ]
    for number, link in enumerate(links):
        parts += _link(number, link, height)
    for number, lane in enumerate(lanes):
        parts += _lane(number, lane, len(links), width)
    parts.append("</svg>")
    return "".join(parts)


def _graph(links: Sequence[LinkSpec], lanes: Sequence[_LinkLane]) -> str | None:
    """Draw a network of nodes; None if links are not named by nodes, or there are few."""
    ends = [link["name"].split(_BETWEEN) for link in links]
    if len(links) < _FEWEST or any(len(pair) != 2 for pair in ends):
        return None
    ways = [
        FlowPath(
            f"{lane.title} ({lane.note})" if lane.note else lane.title,
            _rtt(lane) if lane.path else "",
            tuple(ends[at][0] for at in lane.path) + tuple(ends[at][1] for at in lane.path[-1:]),
        )
        for lane in lanes
    ]
    rates = [_rate(link) for link in links]
    notes = [", ".join(filter(None, (_rate(link), _delay(link), _queue(link)))) for link in links]
    return graph([(pair[0], pair[1]) for pair in ends], rates, notes, ways)


def _rtt(lane: _LinkLane) -> str:
    """Return the base RTT of a route, and the time from which it is used if it is a later one."""
    since = f", from {format_short(lane.from_ns, 'time')}" if lane.from_ns else ""
    return f"RTT {format_short(lane.rtt_ns, 'time')}{since}"


def _lanes(flows: Sequence[FlowSpec], links: Sequence[LinkSpec]) -> list[_LinkLane]:
    """Return the lanes of the flows; flows of a `count` with equal properties share a lane."""
    grouped: dict[_LinkLane, list[str]] = {}
    for flow in flows:
        stem = flow["name"].rstrip("0123456789").rstrip("-_ ") or flow["name"]
        times_ns = (0, *(route["at_ns"] for route in flow.get("routes", ())))
        for from_ns, there, back in zip(times_ns, paths(flow), reverse_paths(flow), strict=True):
            rtt_ns = flow["base_delay_ns"] + _delay_ns((*there, *back), links)
            ways = tuple(there), tuple(back)
            lane = _LinkLane(stem, _controller(flow), rtt_ns, *ways, from_ns)
            grouped.setdefault(lane, []).append(flow["name"])
    lanes = [
        replace(lane, title=names[0] if len(names) == 1 else f"{lane.title} × {len(names)}")
        for lane, names in grouped.items()
    ]
    if len(lanes) <= MOST_LANES:
        return lanes
    left = len(lanes) - MOST_LANES + 1
    return [*lanes[: MOST_LANES - 1], _LinkLane(f"and {left} more", "", 0, (), ())]


def _delay_ns(crossed: Sequence[int], links: Sequence[LinkSpec]) -> int:
    """Return the sum of the initial delays of links, without jitter."""
    return sum(links[at]["delay"]["steps"][0]["delay_ns"] for at in crossed)


def _controller(flow: FlowSpec) -> str:
    """Return the name of a flow's controller or traffic, and the transport if it is not TCP."""
    words = {"ping": "pings", "cbr": "datagrams"}
    if flow["source"]["kind"] in words:
        return words[flow["source"]["kind"]]
    transport = transport_name(flow)
    name = flow["controller"]["name"]
    return name if transport == "TCP" else f"{name} over {transport}"


def _link(number: int, link: LinkSpec, height: int) -> list[str]:
    left = _LEFT + number * (_LINK + _GAP)
    top = _TOP - 14
    lines = [_rate(link), _delay(link), _queue(link), _losses(link)]
    parts = [
        f'<rect class="link" x="{left}" y="{top}" width="{_LINK}"'
        f' height="{height - top - 6}" rx="6"/>',
        text((left + _LINK / 2, 14), link["name"], "middle", "strong", _LINK),
    ]
    parts += [
        text((left + _LINK / 2, 28 + 14 * row), line, "middle", "quiet", _LINK + _GAP)
        for row, line in enumerate(line for line in lines if line)
    ]
    return parts


def _lane(number: int, lane: _LinkLane, links: int, width: int) -> list[str]:
    y = _TOP + number * _LANE + 8
    title = f"{lane.title} ({lane.note})" if lane.note and lane.note != lane.title else lane.title
    parts = [text((_LEFT - 22, y + 4), title, "end", "", _LEFT - 26)]
    if not lane.path and not lane.reverse_path:
        return parts
    end = width - _RIGHT
    parts.append(text((end + 8, y + 4), _rtt(lane), "start", "quiet", _RIGHT))
    parts.append(f'<path class="lane" d="M{_LEFT - 14} {y}H{end}m-6 -4l6 4l-6 4"/>')
    for link in range(links):
        middle = _LEFT + link * (_LINK + _GAP) + _LINK / 2
        if link in lane.path:
            parts.append(f'<circle class="crossed" cx="{middle:g}" cy="{y}" r="5"/>')
        if link in lane.reverse_path:
            parts.append(f'<circle class="back" cx="{middle + 16:g}" cy="{y}" r="4"/>')
    return parts


def _rate(link: LinkSpec) -> str:
    """Return the service rate of a link, and its capacity if a shaper or frames reduce the rate."""
    capacity = link["capacity"]
    match capacity["kind"]:
        case "constant":
            rates = [capacity["rate_bps"]]
        case "steps":
            rates = [step["rate_bps"] for step in capacity["steps"]]
        case "tunnel":
            return "tunnel"
        case other:
            words = "rate of a trace" if other == "trace" else str(other)
            most = service_bps(link, _FASTEST_BPS)
            return words if most == _FASTEST_BPS else f"{words}, at most {_rates([most])}"
    bounds = [min(rates), max(rates)]
    served = _rates([service_bps(link, rate) for rate in bounds])
    shown = _rates(bounds)
    if link.get("grants"):
        return f"up to {shown} on demand"
    return shown if served == shown else f"{served} (link: {shown})"


def _rates(bounds: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys(format_short(rate, "rate") for rate in bounds))


def _delay(link: LinkSpec) -> str:
    delays = [step["delay_ns"] for step in link["delay"]["steps"]]
    if not any(delays):
        return "jitter" if link["delay"].get("jitter") else ""
    text = format_short(delays[0], "time")
    if len(set(delays)) > 1:
        text = f"{format_short(min(delays), 'time')} to {format_short(max(delays), 'time')}"
    return text + (" with jitter" if link["delay"].get("jitter") else "")


def _queue(link: LinkSpec) -> str:
    queue = link["queue"]
    name = queue["kind"].replace("_", " ")
    classes = link.get("classes")
    if classes:
        return f"{name}, {len(classes)} classes"
    limit = queue["parameters"].get("limit")
    match limit:
        case {"bytes": int(size)}:
            return f"{name}, {format_short(size, 'size')}"
        case {"packets": int(packets)}:
            return f"{name}, {packets} packets"
    return name


def _losses(link: LinkSpec) -> str:
    loss = link.get("loss")
    kinds = [loss["kind"].replace("_", " ")] if loss else []
    kinds += ["outages"] if link.get("outages") else []
    kinds += ["faults"] if link.get("faults") else []
    return "losses: " + ", ".join(kinds) if kinds else ""
