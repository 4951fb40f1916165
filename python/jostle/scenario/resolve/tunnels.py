"""Tunnels: flows whose packets are the data of another flow.

A tunnel is a flow with `source.kind = "tunnel"`. In the run specification it has two connections,
one for each direction: `NAME` and `NAME-back`. Each of them has a link of the same name. The queue
of the link is the entrance of the tunnel, and its capacity is the connection. Flows inside cross
these links instead of the links of the tunnel's path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from jostle.run_spec import FlowSpec, LinkSpec, TunnelSource
from jostle.scenario.models import Flow, Link, Queue, Quic, ScenarioFile
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import LARGEST, format_amount
from jostle.scenario.registry import Registry
from jostle.scenario.resolve.links import LinkFacts, link_facts, link_spec
from jostle.scenario.resolve.sources import BACK, DATAGRAM_HEADER_BYTES
from jostle.scenario.resolve.trace_files import TraceFiles
from jostle.scenario.sources import Tunnel

__all__ = ["Tunnels", "prepared", "tunnel_source"]

_TCP_HEADER_BYTES: Final = 52
_QUIC_OVERHEAD_BYTES: Final = 38
"""First byte, connection ID, packet number, DATAGRAM frame and tag at their largest."""
_HEADER_BYTES: Final = {"tcp": 26, "quic": 2, "udp": 32}
"""OpenVPN's AEAD packets over TCP; quarter stream ID and context ID (RFC 9297 §2.1, RFC 9484 §6);
WireGuard's data messages."""
_LEAST_BUFFER_BYTES: Final = 65_536
_QUEUE: Final = {"kind": "drop_tail", "limit": "500 packets"}
"""Queue of a TUN device under Linux (`TUN_READQ_SIZE`)."""
_FIXED: Final = {"mtu_discovery": False, "gso": 1, "handshake": "1rtt"}
_NOT_OUTSIDE: Final = {
    "proxy": "a proxy does not see what the tunnel carries",
    "after": "a tunnel stays open",
    "stop": "a tunnel stays open",
    "size": "the flows inside decide how much it sends",
    "arrivals": "a tunnel is one connection",
    "receiver": "the receiver forwards packets at once",
    "reader": "the receiver forwards packets at once",
    "one_at_a_time": "a tunnel stays open",
    "tunnel": "no tunnel is in a tunnel",
}
_NOT_INSIDE: Final = {
    "proxy": "a proxy does not see what the tunnel encrypts",
    "routes": "write the changes at the tunnel",
}


def _kind(flow: Flow) -> str:
    """Return the transport of a tunnel's connections."""
    return "tcp" if flow.transport is None else flow.transport.kind


def _header_bytes(flow: Flow, source: Tunnel) -> int:
    return _HEADER_BYTES[_kind(flow)] if source.header is None else source.header


def tunnel_source(flow: Flow, source: Tunnel, bdp: int) -> TunnelSource:
    """Return the source of a tunnel's connection; `Tunnels` sets its link."""
    buffer = max(_LEAST_BUFFER_BYTES, 2 * bdp)
    if source.send_buffer is not None:
        buffer = min(LARGEST, max(1, source.send_buffer.to_bytes(bdp)))
    return {
        "kind": "tunnel",
        "link": 0,
        "header_bytes": _header_bytes(flow, source),
        "send_buffer_bytes": buffer,
    }


def _mtu_bytes(flow: Flow, source: Tunnel) -> int:
    """Return the largest packet that one packet of a tunnel carries."""
    kind = _kind(flow)
    taken = _TCP_HEADER_BYTES if kind == "tcp" else DATAGRAM_HEADER_BYTES
    if kind == "quic":
        taken += _QUIC_OVERHEAD_BYTES
    return flow.mtu - taken - _header_bytes(flow, source)


def prepared(file: ScenarioFile, report: Report) -> ScenarioFile:
    """Return a scenario in which tunnels and the flows inside have the values that follow.

    Flows inside get the tunnel's MTU, path and RTT, unless they have their own; QUIC tunnels get
    datagrams of one size.
    """
    tunnels = {flow.name: flow for flow in file.flows if isinstance(flow.source, Tunnel)}
    if not tunnels and all(flow.tunnel is None for flow in file.flows):
        return file
    flows = [
        _outside(flow, ("flows", index), report)
        if isinstance(flow.source, Tunnel)
        else _inside(flow, ("flows", index), tunnels, report)
        for index, flow in enumerate(file.flows)
    ]
    return file.model_copy(update={"flows": flows})


def _refuse(flow: Flow, path: KeyPath, keys: Mapping[str, str], report: Report) -> None:
    for key, why in keys.items():
        if getattr(flow, key) != type(flow).model_fields[key].get_default(
            call_default_factory=True
        ):
            report.add((*path, key), f"{why} — remove this key", (*path, "source"))


def _outside(flow: Flow, path: KeyPath, report: Report) -> Flow:
    """Return a tunnel with the settings that its connections need."""
    assert isinstance(flow.source, Tunnel)
    _refuse(flow, path, _NOT_OUTSIDE, report)
    if flow.count != 1:
        message = "flows name one tunnel — write an entry for each, or remove this key"
        report.add((*path, "count"), message, (*path, "source"))
    quic = flow.transport
    if not isinstance(quic, Quic):
        for key in ("send_buffer",) if _kind(flow) == "udp" else ():
            if flow.source.send_buffer is not None:
                message = "UDP has no send buffer that is acknowledged — remove this key"
                report.add((*path, "source", key), message, (*path, "transport"))
        return flow
    if flow.source.send_buffer is not None:
        message = "datagrams of QUIC wait in the queue alone — remove this key"
        report.add((*path, "source", "send_buffer"), message, (*path, "transport"))
    payload = flow.mtu - DATAGRAM_HEADER_BYTES
    for key, value in {**_FIXED, "initial_mtu": payload}.items():
        if key in quic.model_fields_set and getattr(quic, key) != value:
            message = "the datagrams of a tunnel have one size and leave one by one"
            report.add((*path, "transport", key), f"{message} — remove this key")
    if quic.implementation is not None:
        message = "only jostle's own QUIC carries flows — remove this key"
        report.add((*path, "transport", "implementation"), message)
    return flow.model_copy(
        update={"transport": quic.model_copy(update={**_FIXED, "initial_mtu": payload})}
    )


def _inside(flow: Flow, path: KeyPath, tunnels: Mapping[str, Flow], report: Report) -> Flow:
    """Return a flow with the MTU, path and RTT of its tunnel, if it names one."""
    if flow.tunnel is None:
        return flow
    tunnel = tunnels.get(flow.tunnel)
    if tunnel is None:
        message = f'no flow "{flow.tunnel}" has source = {{ kind = "tunnel" }}'
        known = f" — {did_you_mean(flow.tunnel, tuple(tunnels))}" if tunnels else " — write one"
        report.add((*path, "tunnel"), message + known, ("flows",))
        return flow
    assert isinstance(tunnel.source, Tunnel)
    _refuse(flow, path, _NOT_INSIDE, report)
    most = _mtu_bytes(tunnel, tunnel.source)
    update: dict[str, object] = {}
    if "mtu" not in flow.model_fields_set:
        update["mtu"] = most
    elif flow.mtu > most and _kind(tunnel) != "tcp":
        message = (
            f'a datagram of "{tunnel.name}" carries "{most} B" — write this, or a larger mtu there'
        )
        report.add((*path, "mtu"), message, (*path, "tunnel"))
    if flow.path is None and not flow.reverse_path:
        turned = flow.direction != tunnel.direction
        if tunnel.path is not None:
            update["path"], update["reverse_path"] = tunnel.path, tunnel.reverse_path
        if flow.from_ is None and flow.to is None:
            ends = (tunnel.from_, tunnel.to)
            update["from_"], update["to"] = ends[::-1] if turned else ends
        if flow.rtt is None:
            update["rtt"] = tunnel.rtt
    return flow.model_copy(update=update)


@dataclass
class _Direction:
    """A tunnel in the specification.

    Attributes
    ----------
    index
        Entry of the tunnel in `flows`.
    link
        Position of its first link; the link of the other direction follows.
    spec
        Its first connection.
    """

    index: int
    link: int
    spec: FlowSpec


@dataclass
class Tunnels:
    """The tunnels of a scenario.

    Parameters
    ----------
    file
        Scenario.
    links
        All links except the tunnels' links.
    report
        Collects problems.
    """

    file: ScenarioFile
    links: Sequence[LinkFacts]
    report: Report
    found: dict[str, _Direction] = field(default_factory=dict)

    @property
    def paths(self) -> list[KeyPath]:
        """Key paths of the tunnels' links."""
        return [("flows", it.index, "source") for it in self.found.values() for _ in range(2)]

    def enter(self, specified: Sequence[FlowSpec]) -> list[FlowSpec]:
        """Return the specification of each entry of `flows`, with tunnels in the paths."""
        for index, (flow, spec) in enumerate(zip(self.file.flows, specified, strict=True)):
            if isinstance(flow.source, Tunnel):
                self._check_names(flow, index)
                link = len(self.links) + 2 * len(self.found)
                self.found[flow.name] = _Direction(index, link, spec)
        if not self.found:
            return list(specified)
        return [
            self._through(flow, ("flows", index), spec)
            for index, (flow, spec) in enumerate(zip(self.file.flows, specified, strict=True))
        ]

    def _check_names(self, flow: Flow, index: int) -> None:
        flows = {it.name for it in self.file.flows}
        links = {link.name for link in self.links}
        for name, others, what in (
            (f"{flow.name}{BACK}", flows, "flow"),
            (flow.name, links, "link"),
            (f"{flow.name}{BACK}", links, "link"),
        ):
            if name in others:
                message = f'there is a {what} "{name}", which a connection of this tunnel is called'
                self.report.add(("flows", index, "name"), f"{message} — choose another name")

    def _through(self, flow: Flow, path: KeyPath, spec: FlowSpec) -> FlowSpec:
        """Return a flow with the tunnel that it names in its path."""
        if isinstance(flow.source, Tunnel):
            source = cast("TunnelSource", {**spec["source"], "link": self.found[flow.name].link})
            return {**spec, "source": source}
        tunnel = self.found.get(flow.tunnel or "")
        if tunnel is None:
            return spec
        there, back = tunnel.spec["path"], tunnel.spec["reverse_path"]
        pairs = ((spec["path"], there), (spec["reverse_path"], back))
        turned = ((spec["path"], back), (spec["reverse_path"], there))
        for (ahead, behind), entrances in ((pairs, (0, 1)), (turned, (1, 0))):
            first = _replaced(*ahead, tunnel.link + entrances[0])
            second = _replaced(*behind, tunnel.link + entrances[1])
            if first is not None and second is not None:
                break
        else:
            message = (
                f'the path does not have the links of the tunnel "{flow.tunnel}" in a row, in both '
                "directions — write them in this order, or remove the path"
            )
            self.report.add((*path, "path"), message, (*path, "tunnel"))
            return spec
        delay_ns = spec["base_delay_ns"] - tunnel.spec["base_delay_ns"]
        if delay_ns < 0:
            message = (
                f"the rtt is {format_amount(-delay_ns, 'time')} less than that of the tunnel "
                f'"{flow.tunnel}" — write at least the tunnel\'s'
            )
            self.report.add((*path, "rtt"), message, (*path, "tunnel"))
        return {**spec, "path": first, "reverse_path": second, "base_delay_ns": max(0, delay_ns)}

    def link_specs(
        self, largest_rtt_ns: int | None, registry: Registry, files: TraceFiles
    ) -> list[LinkSpec | None]:
        """Return the links of all tunnels; None for each with a problem."""
        specs: list[LinkSpec | None] = []
        for name, tunnel in self.found.items():
            source = self.file.flows[tunnel.index].source
            assert isinstance(source, Tunnel)
            rate = min((self.links[at].initial_bps for at in tunnel.spec["path"]), default=0)
            delays = (0, tunnel.spec["base_delay_ns"])
            for suffix, delay_ns in zip(("", BACK), delays, strict=True):
                queue = source.queue or Queue.model_validate(_QUEUE)
                # Of the link, only the queue and the delay stay; the rate converts limits in BDP.
                keys = {"rate": f"{max(1, rate)} bit/s", "delay": f"{delay_ns} ns"}
                link = Link.model_validate({**keys, "queue": queue})
                path = ("flows", tunnel.index, "source")
                length_ns = self.file.duration
                facts = link_facts(
                    f"{name}{suffix}", path, link, files, self.report, duration_ns=length_ns
                )
                paths = [("flows", tunnel.index, "rtt")]
                specs.append(link_spec(facts, largest_rtt_ns, registry, self.report, paths))
        return specs

    def with_back(
        self, flows: Sequence[FlowSpec], links: Sequence[LinkSpec | None]
    ) -> list[FlowSpec]:
        """Return the flows with the second connection of each tunnel, and complete the links."""
        positions = {flow["name"]: position for position, flow in enumerate(flows)}
        opened: list[FlowSpec] = []
        for number, (name, tunnel) in enumerate(self.found.items()):
            if name not in positions:
                # It has several copies or none, which was reported.
                continue
            spec = flows[positions[name]]
            source = cast("TunnelSource", spec["source"])
            back: FlowSpec = {
                **spec,
                "name": f"{name}{BACK}",
                "group": f"{name}{BACK}",
                "path": spec["reverse_path"],
                "reverse_path": spec["path"],
                "source": {**source, "link": tunnel.link + 1},
                "memory": None,
            }
            if "routes" in spec:
                back["routes"] = [
                    {**it, "path": it["reverse_path"], "reverse_path": it["path"]}
                    for it in spec["routes"]
                ]
            carriers = (positions[name], len(flows) + len(opened))
            for link, carrier in zip(links[2 * number : 2 * number + 2], carriers, strict=True):
                if link is not None:
                    link["capacity"] = {"kind": "tunnel", "flow": carrier}
            opened.append(back)
        return [*flows, *opened]


def _replaced(path: Sequence[int], part: Sequence[int], link: int) -> list[int] | None:
    """Return a path with `link` instead of `part`; None if the path does not have it in a row."""
    if not part:
        return [link] if not path else None
    for at in range(len(path) - len(part) + 1):
        if list(path[at : at + len(part)]) == list(part):
            return [*path[:at], link, *path[at + len(part) :]]
    return None
