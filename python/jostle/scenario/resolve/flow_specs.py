"""Flows: converts them to the form of the run specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

from jostle.kernel_images.controller_modules import is_kernel_controller
from jostle.run_spec import Algorithm, FlowSpec
from jostle.scenario.models import Flow, ScenarioFile
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import format_amount
from jostle.scenario.python_controllers.source_files import (
    is_crate_controller,
    is_python_controller,
)
from jostle.scenario.registry import Registry
from jostle.scenario.resolve.algorithms import controller_and_slow_start, memory_spec
from jostle.scenario.resolve.arrivals import arrivals_spec
from jostle.scenario.resolve.kernel_controllers import kernel_controller_spec
from jostle.scenario.resolve.links import LinkFacts
from jostle.scenario.resolve.parts_cache import PartsCache, exact_key
from jostle.scenario.resolve.proxies import LegResolver, Route, SplitFlow, split
from jostle.scenario.resolve.python_controllers import controller_spec
from jostle.scenario.resolve.receivers import (
    path_bdp,
    reader_spec,
    receive_windows,
    receiver_spec,
)
from jostle.scenario.resolve.routes import check_route, later_routes, route, route_specs
from jostle.scenario.resolve.sources import datagrams, no_controller, source_spec
from jostle.scenario.resolve.transports import (
    foreign_controller,
    implementation,
    is_quic,
    timers_spec,
    transport_spec,
)
from jostle.scenario.resolve.tunnels import tunnel_source
from jostle.scenario.sources import Tunnel

__all__ = ["FlowResolver"]

_FIRST_PEER: Final = 10 << 24 | 1
"""10.0.0.1, the address of the first flow's receiver in the peer cache."""


@dataclass
class FlowResolver:
    """Resolves the flows of a scenario.

    Attributes
    ----------
    file, links
        Scenario, and its links with their service rates.
    registry, report
        Registry of controllers, and collector of problems.
    folder, modules
        Folders of the scenario's files and of its Python controllers.
    allow_code
        Whether the scenario may run foreign code.
    cache
        Parts of other conditions of the scenario.
    crates_with_ecn
        Controllers of crates that need ECN, filled while flows are resolved.
    """

    file: ScenarioFile
    links: Sequence[LinkFacts]
    registry: Registry
    report: Report
    folder: Path
    modules: Path
    allow_code: bool
    cache: PartsCache
    crates_with_ecn: set[str] = field(default_factory=set)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Link positions by name."""
        return {link.name: position for position, link in enumerate(self.links)}

    def spec(self, index: int, rtt: int | None) -> FlowSpec:
        """Return the flow at a position of the file, without copies and order."""
        file, links, report, positions = self.file, self.links, self.report, self.positions
        flow, path = file.flows[index], ("flows", index)
        check_route(file, flow, path, links, report)
        own = self._endpoint_spec(index)
        there, back = route(flow, links)
        later = [
            (_rtt_with(rtt or 0, (there, back), changed), changed[0])
            for changed in later_routes(flow, links)
        ]
        receive_window, initial_receive_window = receive_windows(flow, rtt or 0, there, later)
        bdp = path_bdp(rtt or 0, there)
        transport, quic, tcp = transport_spec(
            flow, path, receive_window, bdp, report, allow_code=self.allow_code
        )
        spec: dict[str, Any] = {
            **own,
            "transport": transport,
            "path": [positions[link.name] for link in there],
            "reverse_path": [positions[link.name] for link in back],
            "base_delay_ns": _base_delay(flow, rtt, path, links, report),
            "receive_window_bytes": receive_window,
            "initial_receive_window_bytes": initial_receive_window,
        }
        if isinstance(flow.source, Tunnel):
            spec["source"] = tunnel_source(flow, flow.source, bdp)
        names = [(link.name, positions[link.name]) for link in there]
        _set_optional_keys(
            spec,
            routes=route_specs(file, index, links, positions, report),
            quic=quic,
            tcp=tcp,
            arrivals=arrivals_spec(flow, path, names, self.folder, report),
        )
        return cast("FlowSpec", spec)

    def _endpoint_spec(self, index: int) -> dict[str, Any]:
        """Return the parts of a flow that depend neither on links nor on other flows."""
        flow, duration_ns = self.file.flows[index], self.file.duration
        if ":" in flow.controller.name:
            # Foreign code, which is admitted and asked for its needs in each condition.
            return self._resolve_endpoint_spec(index)
        return self.cache.once(
            ("flow", index, id(flow), duration_ns),
            self.report,
            lambda: self._resolve_endpoint_spec(index),
            keep=flow,
        )

    def _resolve_endpoint_spec(self, index: int) -> dict[str, Any]:
        flow, path = self.file.flows[index], ("flows", index)
        registry, report, folder = self.registry, self.report, self.folder
        _check_times(self.file, flow, path, report)
        controller, slow_start = self._any_algorithms(flow, path)
        ours = datagrams(flow) is None and implementation(flow) is None
        knows_ecn = self.knows_ecn(flow, flow.controller.name)
        own: dict[str, Any] = {
            "name": flow.name,
            "group": flow.name,
            # A run with problems is not built, so no result has a missing controller.
            "controller": controller or {"name": "", "parameters": {}},
            "slow_start": slow_start,
            "memory": memory_spec(flow, path, registry, report, folder) if ours else None,
            "peer": _FIRST_PEER + index if flow.peer is None else flow.peer,
            "after": None,
            "start_ns": flow.start,
            "stop_ns": flow.stop,
            "pacing": flow.pacing == "fq",
            "ecn": knows_ecn,
            "mtu_bytes": flow.mtu,
            "initial_window_packets": flow.initial_window,
            "initial_pacing": flow.initial_pacing,
            "linux": flow.linux_version or "6.1",
            "receive_window_autotuning": flow.receive_window_autotuning,
            "gro": flow.receiver_gro,
            "nic_rate_bps": flow.nic_rate,
        }
        if not isinstance(flow.source, Tunnel):
            own["source"] = source_spec(flow, path, folder, report)
        _set_optional_keys(
            own,
            sender_host=flow.sender_host,
            dscp=flow.dscp or None,
            receiver_host=flow.receiver_host,
            receiver=receiver_spec(flow, path, report, knows_ecn=knows_ecn),
            reader=reader_spec(flow, path, self.file.duration, report),
            timers=timers_spec(flow, path, report),
        )
        return own

    def split(self, index: int, rtt: int | None, spec: FlowSpec) -> SplitFlow | None:
        """Return the connections into which proxies split a flow; None if it has no proxies."""
        flow = self.file.flows[index]
        if not flow.proxy:
            return None
        whole = Route(*route(flow, self.links), rtt, self.positions)
        maker = LegResolver(self.algorithms, self.knows_ecn, self.report)
        return split(flow, ("flows", index), spec, whole, maker)

    def _any_algorithms(
        self, flow: Flow, path: KeyPath
    ) -> tuple[Algorithm | None, Algorithm | None]:
        """Return controller and slow start of a flow over any transport."""
        if datagrams(flow) is not None:
            return no_controller(flow, path, self.report), None
        if implementation(flow) is not None:
            return foreign_controller(flow, path, self.report), None
        return self.algorithms(flow, path)

    def algorithms(self, flow: Flow, path: KeyPath) -> tuple[Algorithm | None, Algorithm | None]:
        """Return controller and slow start of a flow over one of the engine's transports."""
        if is_kernel_controller(flow.controller.name):
            found = kernel_controller_spec(flow, path, self.report, allow_code=self.allow_code)
            return found, None
        if is_crate_controller(flow.controller.name):
            # Few scenarios have one, and its modules compile it.
            from jostle.scenario.resolve.crate_controllers import crate_controller_spec

            controller, slow_start, needs_ecn = crate_controller_spec(
                flow, path, self.registry, self.report, self.modules, allow_code=self.allow_code
            )
            if needs_ecn:
                self.crates_with_ecn.add(flow.controller.name)
            return controller, slow_start
        if is_python_controller(flow.controller.name):
            found = controller_spec(
                flow, path, self.modules, self.report, allow_code=self.allow_code
            )
            return found, None

        def make() -> tuple[Algorithm | None, Algorithm | None]:
            return controller_and_slow_start(flow, path, self.registry, self.report, self.folder)

        named = [
            None if one is None else (one.name, exact_key(one.parameters))
            for one in (flow.controller, flow.slow_start)
        ]
        if any(one is not None and one[1] is None for one in named):
            return make()
        return self.cache.once(
            ("algorithms", *named, flow.linux_version, is_quic(flow)), self.report, make
        )

    def knows_ecn(self, flow: Flow, controller: str) -> bool:
        """Return whether the flow uses ECN: as configured, else if the controller needs it."""
        if flow.ecn is not None:
            return flow.ecn
        if isinstance(flow.source, Tunnel) and datagrams(flow) is not None:
            # The normal mode of RFC 6040 §4.1.
            return True
        if controller in self.crates_with_ecn:
            return True
        row = self.registry.controllers.get(controller)
        return row is not None and row.needs_ecn


def _set_optional_keys(spec: dict[str, Any], **optional: object) -> None:
    """Set keys that are absent without a value."""
    spec.update((key, value) for key, value in optional.items() if value is not None)


def _check_times(file: ScenarioFile, flow: Flow, path: KeyPath, report: Report) -> None:
    latest = flow.start + flow.start_jitter
    start_at, jitter_at, stop_at = ((*path, key) for key in ("start", "start_jitter", "stop"))
    jittered = " with its jitter" if flow.start_jitter else ""
    shown = format_amount(latest, "time")
    run = format_amount(file.duration, "time")
    if latest >= file.duration:
        message = f"{shown}{jittered} is not before the end of the run at {run}"
        report.add(start_at, message, jitter_at, ("duration",))
    if flow.stop is None:
        return
    stop = format_amount(flow.stop, "time")
    if flow.after is None and flow.stop <= latest:
        message = f"{stop} is not after the flow's start at {shown}{jittered}"
        report.add(stop_at, message, start_at, jitter_at)
    elif flow.stop > file.duration:
        report.add(stop_at, f"{stop} is after the end of the run at {run}", ("duration",))


def _rtt_with(
    rtt_ns: int,
    first: tuple[Sequence[LinkFacts], Sequence[LinkFacts]],
    changed: tuple[Sequence[LinkFacts], Sequence[LinkFacts]],
) -> int:
    """Return the base RTT of a changed route; `rtt_ns` is the base RTT of the first one."""
    taken = [sum(one.base_delay_ns for one in (*there, *back)) for there, back in (first, changed)]
    return max(0, rtt_ns - taken[0] + taken[1])


def _base_delay(
    flow: Flow,
    rtt: int | None,
    path: KeyPath,
    links: Sequence[LinkFacts],
    report: Report,
) -> int:
    """Return the part of the RTT that is not delay of the links.

    The median jitter of a link counts as its delay, so that a flow's `rtt` is the median RTT of the
    unloaded path.
    """
    there, back = route(flow, links)
    crossed = [*there, *back]
    taken = sum(one.base_delay_ns for one in crossed)
    if rtt is not None and taken <= rtt:
        return rtt - taken
    paths = ((*path, "path"), (*path, "reverse_path"), ("links",), ("bottleneck", "profile"))
    if rtt is None:
        if links and (there or flow.path is None):
            report.add((*path, "rtt"), 'missing — write for example rtt = "40 ms"', *paths)
        return 0
    slowest = max(crossed, key=lambda one: one.base_delay_ns)
    names = f'link "{slowest.name}"'
    if len(crossed) > 1:
        names = "links " + ", ".join(f'"{one.name}"' for one in crossed)
    message = (
        f"{format_amount(rtt, 'time')} is less than the {format_amount(taken, 'time')} of "
        f"delay and median jitter on {names} — rtt is the RTT of the whole path"
    )
    delays_at = [(*one.path, key) for one in crossed for key in ("delay", "jitter", "profile")]
    report.add((*path, "rtt"), message, *paths, *delays_at)
    return 0
