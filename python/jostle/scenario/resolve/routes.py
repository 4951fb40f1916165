"""Routes of flows: the links between a flow's sender and receiver, and changes during the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jostle.run_spec import RouteSpec
from jostle.scenario.models import Flow, ScenarioFile
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import format_amount
from jostle.scenario.resolve.links import BOTTLENECK, LinkFacts, is_access_line, link_names

__all__ = ["check_route", "later_routes", "route", "route_specs"]

Route = tuple[list[LinkFacts], list[LinkFacts]]
"""Links of the data, and links of the ACKs."""

_KEYS: Final = ("path", "reverse_path")


def route(flow: Flow, links: Sequence[LinkFacts]) -> Route:
    """Return the first route of a flow, without unknown names (reported elsewhere)."""
    if len(links) == 1 and links[0].name == BOTTLENECK and flow.path is None:
        return [links[0]], []
    if is_access_line(links):
        return _directed(flow, ([links[0]], [links[1]]))
    return _named(flow, flow.path or (), flow.reverse_path, links)


def later_routes(flow: Flow, links: Sequence[LinkFacts]) -> list[Route]:
    """Return the routes of a flow after its first one, without unknown names."""
    there, back = flow.path or [], flow.reverse_path
    found = []
    for change in flow.routes:
        there = there if change.path is None else change.path
        back = back if change.reverse_path is None else change.reverse_path
        found.append(_named(flow, there, back, links))
    return found


def _named(
    flow: Flow, there: Sequence[str], back: Sequence[str], links: Sequence[LinkFacts]
) -> Route:
    by_name = {link.name: link for link in links}
    found = [[by_name[name] for name in names if name in by_name] for names in (there, back)]
    return _directed(flow, (found[0], found[1]))


def _directed(flow: Flow, way: Route) -> Route:
    return way if flow.direction == "down" else way[::-1]


def route_specs(
    file: ScenarioFile,
    position: int,
    links: Sequence[LinkFacts],
    positions: Mapping[str, int],
    report: Report,
) -> list[RouteSpec] | None:
    """Return the changes of a flow's route in the form of the run specification; None without any.

    Parameters
    ----------
    file, position
        Scenario, and the position of the flow.
    links, positions
        All links, and their positions by name.
    report
        Collects problems.
    """
    flow, path = file.flows[position], ("flows", position)
    if not flow.routes:
        return None
    at = (*path, "routes")
    if not file.links:
        message = "a route consists of links with names — write [[links]] or [graph]"
        report.add(at, message, (BOTTLENECK,), ("downlink",))
        return None
    if flow.proxy:
        message = "the flow's proxy is on a fixed path — remove one of both"
        report.add(at, message, (*path, "proxy"))
    earlier_ns = 0
    specs: list[RouteSpec] = []
    for index, (change, (there, back)) in enumerate(
        zip(flow.routes, later_routes(flow, links), strict=True)
    ):
        here = (*at, index)
        shown = format_amount(change.at, "time")
        if change.path is None and change.reverse_path is None:
            report.add(here, "the route stays the same — write a path or a reverse_path")
        if change.at <= earlier_ns:
            message = f"{shown} is not after {format_amount(earlier_ns, 'time')}, the change before"
            report.add((*here, "at"), message, (*at, index - 1, "at"))
        elif change.at >= file.duration:
            run = format_amount(file.duration, "time")
            message = f"{shown} is not before the end of the run at {run}"
            report.add((*here, "at"), message, ("duration",))
        given = ((key, getattr(change, key) or ()) for key in _KEYS)
        for key, names in given:
            _check_links((*here, key), names, link_names(links), report)
        data_key = _KEYS[flow.direction == "up"]
        if getattr(change, data_key) == []:
            message = "no link for the data of this flow — name the links in order"
            report.add((*here, data_key), message)
        earlier_ns = change.at
        specs.append(
            {
                "at_ns": change.at,
                "path": [positions[link.name] for link in there],
                "reverse_path": [positions[link.name] for link in back],
            }
        )
    return specs


def check_route(
    file: ScenarioFile, flow: Flow, path: KeyPath, links: Sequence[LinkFacts], report: Report
) -> None:
    """Check the first route of a flow, and report problems."""
    if not _direction_is_said(flow, path, links, report):
        return
    if file.bottleneck is not None:
        for key, names in zip(_KEYS, (flow.path or [], flow.reverse_path), strict=True):
            for index, name in enumerate(names):
                if not file.links and name != BOTTLENECK:
                    message = f'there is no link "{name}" — [[links]] have names, [bottleneck] is'
                    report.add((*path, key, index), f'{message} "{BOTTLENECK}"', ("links",))
        return
    known = link_names(links)
    for key, names in zip(_KEYS, (flow.path or [], flow.reverse_path), strict=True):
        _check_links((*path, key), names, known, report)
    if links and not flow.path:
        example = ", ".join(f'"{name}"' for name in known[:2])
        report.add((*path, "path"), f"missing — name the links in order, as in [{example}]")


def _check_links(at: KeyPath, names: Sequence[str], known: Sequence[str], report: Report) -> None:
    there = set(known)
    crossed: set[str] = set()
    for index, name in enumerate(names):
        if report.full:
            return
        if name not in there:
            message = f'there is no link "{name}" — {did_you_mean(name, tuple(known))}'
            report.add((*at, index), message, ("links",))
        elif name in crossed:
            report.add((*at, index), f'link "{name}" is on the way twice', ("links",))
        crossed.add(name)


def _direction_is_said(
    flow: Flow, path: KeyPath, links: Sequence[LinkFacts], report: Report
) -> bool:
    """Check `direction`; return whether link names have to be checked."""
    if is_access_line(links):
        for key, names in zip(_KEYS, (flow.path, flow.reverse_path), strict=True):
            if names:
                message = 'with [downlink] and [uplink] the way is said by direction = "up"'
                report.add((*path, key), f"{message} — remove this key", ("downlink",))
        return False
    if flow.direction == "up" and not flow.reverse_path:
        message = "there is no link for data on the way up — write [downlink] and [uplink]"
        report.add((*path, "direction"), f"{message}, or a reverse_path", ("links",))
    return True
