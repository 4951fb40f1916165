"""The baseline of a recommendation: the user's scenario, probe flows, and what can be changed."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from jostle.errors import InputError, unknown
from jostle.inference.advised_changes import NOW, Change, Senders
from jostle.inference.flow_benefits import traffic_groups, voice_flows
from jostle.scenario import Scenario
from jostle.scenario.flow_links import forward_links
from jostle.scenario.resolve.key_paths import changed, find

if TYPE_CHECKING:
    from jostle.inference.goals import Goal
    from jostle.inference.network_source import KnownNetwork
    from jostle.run_spec import RunSpec

__all__ = ["AdviceSetup", "make_setup"]

ALL: Final = "all"
NONE: Final = "none"
_PATH_KEYS: Final = ("rtt", "path", "reverse_path", "routes", "from", "to")
"""Keys of a flow that a probe copies."""
_PREFIX: Final = "probe-"
_LINKS: Final = 2
"""Maximum number of named links whose queues are changed."""


@dataclass(frozen=True)
class AdviceSetup:
    """The baseline of a recommendation.

    Attributes
    ----------
    network
        Network and traffic.
    goal
        The goal.
    length_s
        Duration of a download, if the traffic is not known.
    probes
        Flows that were added to the scenario's.
    spec
        A run of the baseline.
    served, others
        Names of the flows that the goal is about, and of the others.
    """

    network: KnownNetwork
    goal: Goal
    length_s: float
    probes: tuple[Mapping[str, Any], ...]
    spec: RunSpec
    served: tuple[str, ...]
    others: tuple[str, ...]

    def document(self, change: Change, number: int = 0) -> dict[str, Any]:
        """Return a change's run as a scenario; `number` selects the network and the seed."""
        document = _base_document(self.network, self.goal, self.length_s, number)
        document["flows"] = [*document["flows"], *copy.deepcopy(self.probes)]
        for key, value in change.values.items():
            for path in find(document, key):
                document = changed(document, path, value)
        return document

    def run(self, change: Change, number: int) -> RunSpec:
        """Return a change's run.

        Raises
        ------
        ScenarioError
            If the scenario cannot have this change.
        """
        return _spec(self.document(change, number), self.network, number)

    def senders(self, chosen: tuple[str, ...]) -> tuple[list[Senders], str]:
        """Return the flows whose senders can be changed, and a sentence about them.

        TCP flows are configured together, because the controller is a setting of a host. A QUIC
        application configures its own flow.

        Parameters
        ----------
        chosen
            Names of flows, `all`, or `none`; empty for none behind an access line, and for all
            flows of other networks.

        Raises
        ------
        InputError
            If there is no such flow, or it has no congestion controller.
        """
        tables = {table["name"]: table for table in self.document(NOW)["flows"]}
        probes = {str(probe["name"]) for probe in self.probes}
        possible = {
            name: table
            for name, table in tables.items()
            if name not in probes and _is_configurable(table)
        }
        if not self.network.traffic:
            # The user does not control the sender of the other flow.
            goal_probes = self.goal.probes({}, self.length_s, "")
            own = [probe["name"] for probe in goal_probes if probe["name"] in possible]
            possible = {name: possible[name] for name in own or possible}
        home = self.network.is_access_line
        if chosen == (NONE,):
            names: list[str] = []
        elif chosen and chosen != (ALL,):
            for name in chosen:
                if name not in possible:
                    raise InputError(f"--senders: {unknown('flow to configure', name, possible)}")
            names = list(chosen)
        else:
            # Behind an access line, phones and servers have the senders; a router is configurable.
            names = [] if home and not chosen else list(possible)
        return _together(names, tables), _about(names, possible)

    def links(self) -> tuple[list[str], str]:
        """Return the links whose queues can be changed, and a sentence about the others."""
        # Links of tunnels, whose queue is a part of a flow, follow the others.
        real = (link for link in self.spec["links"] if link["capacity"]["kind"] != "tunnel")
        every = [link["name"] for link in real]
        if "graph" in self.network.tables:
            return [], "Left out: queues of a graph's links."
        if "links" not in self.network.tables:
            return every, ""
        # Queues are at links that are slower than the one before.
        crossed = (at for flow in self.spec["flows"] for at in forward_links(flow))
        used = dict.fromkeys(at for at in crossed if at < len(every))
        slowest = sorted(used, key=lambda at: _least_rate(self.spec, at))[:_LINKS]
        names = [every[at] for at in sorted(slowest)]
        rest = [name for name in every if name not in names]
        return names, f"Left out: queues of {', '.join(rest)}." if rest else ""


def _least_rate(spec: RunSpec, at: int) -> float:
    capacity = cast("dict[str, Any]", spec["links"][at]["capacity"])
    match capacity["kind"]:
        case "constant":
            return float(capacity["rate_bps"])
        case "steps":
            return float(min(step["rate_bps"] for step in capacity["steps"]))
        case "autoregressive":
            return float(capacity["min_bps"])
        case _:
            return 0.0


def make_setup(network: KnownNetwork, goal: Goal, length_s: float) -> tuple[AdviceSetup, list[str]]:
    """Return the baseline, with sentences about what was assumed and added.

    If a scenario has no flow that the goal is about, probe flows are added.
    """
    document = _base_document(network, goal, length_s, 0)
    spec = _spec(document, network, 0)
    served = _served(spec, goal)
    probes: list[dict[str, Any]] = []
    said = list(network.assumptions)
    names = [table["name"] for table in document["flows"]]
    if not network.traffic:
        said.append(f"Added, because no traffic is known: {', '.join(names)} (Cubic, IW 10).")
    elif not served:
        probes = _probes(network, goal, document["flows"][0], spec["duration_ns"] / 1e9)
        words = ", ".join(probe["name"] for probe in probes)
        said.append(f"The scenario has no {goal.served}. Added: {words}.")
        whole = {**document, "flows": [*document["flows"], *probes]}
        spec = _spec(whole, network, 0)
        served = tuple(probe["name"] for probe in probes)
    if not network.traffic:
        # The second flow of a bulk download is another user's traffic.
        served = tuple(probe["name"] for probe in goal.probes({}, length_s, ""))
    others = tuple(group.name for group in traffic_groups(spec) if group.name not in served)
    return AdviceSetup(network, goal, length_s, tuple(probes), spec, served, others), said


def _served(spec: RunSpec, goal: Goal) -> tuple[str, ...]:
    voice = voice_flows(spec)
    return tuple(
        group.name
        for group in traffic_groups(spec)
        if goal.serves(group.kind, group.members[0] in voice)
    )


def _probes(
    network: KnownNetwork, goal: Goal, first: Mapping[str, Any], length_s: float
) -> list[dict[str, Any]]:
    """Return probes on the path of the scenario's first flow."""
    keys = {key: first[key] for key in _PATH_KEYS if key in first}
    probes = goal.probes(keys, length_s, _PREFIX)
    if network.is_access_line and goal.both_directions:
        probes += goal.probes({**keys, "direction": "up"}, length_s, f"{_PREFIX}up-")
    return probes


def _base_document(
    network: KnownNetwork, goal: Goal, length_s: float, number: int
) -> dict[str, Any]:
    tables, keys = network.drawn(number)
    seed = {"seed": max(number, 1)}
    if network.traffic:
        return {**copy.deepcopy(dict(network.traffic)), **tables, **seed}
    duration_s = 60.0 if goal.duration is None else goal.duration * length_s
    return {
        "title": "Advice",
        "duration": f"{duration_s:g} s",
        "sampling_interval": f"{duration_s / 60:g} s",
        **seed,
        **tables,
        "flows": [*goal.probes(keys, length_s, ""), *goal.background(keys, length_s)],
    }


def _spec(document: Mapping[str, Any], network: KnownNetwork, number: int) -> RunSpec:
    scenario = Scenario.from_dict(document, name=network.source, allow_code=network.allow_code)
    return copy.deepcopy(scenario.plan(repeats=1, seed=max(number, 1)).runs[0].spec)


def _is_configurable(table: Mapping[str, Any]) -> bool:
    """Return whether a flow has a sender whose controller can be replaced."""
    transport = table.get("transport", {})
    foreign = isinstance(transport, Mapping) and "implementation" in transport
    return _controller(table) != "none" and not foreign and table.get("count", 1) != 0


def _controller(table: Mapping[str, Any]) -> str:
    controller = table["controller"]
    return str(controller["name"] if isinstance(controller, Mapping) else controller)


def _transport(table: Mapping[str, Any]) -> str:
    transport = table.get("transport", "tcp")
    return str(transport["kind"] if isinstance(transport, Mapping) else transport)


def _together(names: list[str], tables: Mapping[str, Mapping[str, Any]]) -> list[Senders]:
    tcp = [name for name in names if _transport(tables[name]) == "tcp"]
    units = [tcp] if tcp else []
    units += [[name] for name in names if name not in tcp]
    return [
        Senders(
            tuple(unit),
            tuple(_controller(tables[name]) for name in unit),
            _transport(tables[unit[0]]),
        )
        for unit in units
    ]


def _about(names: list[str], possible: Mapping[str, Any]) -> str:
    rest = [name for name in possible if name not in names]
    if not names:
        return f"You control no sender. With --senders, settings of {', '.join(rest)} are tried."
    others = f", not those of {', '.join(rest)}" if rest else ""
    return f"You control the senders of {', '.join(names)}{others}. --senders says otherwise."
