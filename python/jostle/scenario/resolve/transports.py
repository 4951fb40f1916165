"""Transports of flows: converts them to the form of the run specification."""

from __future__ import annotations

from typing import Final

from jostle.quic.recipes import Programs, recipes
from jostle.run_spec import (
    AckFrequencySpec,
    Algorithm,
    QuicCommands,
    QuicImplementation,
    QuicSpec,
    TcpSpec,
    TimersSpec,
    Transport,
)
from jostle.safe_io.code_consent import ConsentError, admit, require_consent
from jostle.scenario.models import Flow, Implementation, Quic, Tcp
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import LARGEST, format_amount
from jostle.scenario.resolve.sources import DATAGRAM_HEADER_BYTES, datagrams

__all__ = ["foreign_controller", "implementation", "is_quic", "timers_spec", "transport_spec"]

_SMALLEST_PAYLOAD_BYTES: Final = 1200
"""Minimum UDP payload that a QUIC path must carry (RFC 9000 §14)."""
_HZ: Final = 250
"""Ticks per second of the kernels of Debian 12 and Ubuntu 24.04."""
_MAX_TIMER_DELAY_NS: Final = 100_000_000
_ONLY_OF_TCP: Final = {
    "pacing": 'set it in transport = { kind = "quic", pacing = … }',
    "initial_pacing": "QUIC's pacing spreads the initial window — remove this key",
    "linux_version": "a QUIC flow does not use the TCP of Linux — remove this key",
    "initial_receive_window": "a QUIC receiver offers receive_window at once — remove this key",
    "receive_window_autotuning": "a QUIC receiver's window does not grow — remove this key",
    "receiver": "only TCP receivers can misbehave — remove this key",
    "receiver_gro": "only TCP segments are merged — remove this key",
}
"""Keys that QUIC flows do not support, and the reason."""


def is_quic(flow: Flow) -> bool:
    """Return whether a flow uses QUIC."""
    return isinstance(flow.transport, Quic) and datagrams(flow) is None


def implementation(flow: Flow) -> Implementation | None:
    """Return the external QUIC implementation of a flow; None if it has none."""
    return flow.transport.implementation if isinstance(flow.transport, Quic) else None


def transport_spec(
    flow: Flow,
    path: KeyPath,
    window_bytes: int,
    bdp_bytes: int,
    report: Report,
    *,
    allow_code: bool,
) -> tuple[Transport, QuicSpec | None, TcpSpec | None]:
    """Return the transport of a flow, and its settings.

    Parameters
    ----------
    flow, path
        Flow, and its key path.
    window_bytes
        Receive window.
    bdp_bytes
        BDP of the flow's path.
    report
        Collects problems.
    allow_code
        Whether the scenario may run programs other than bundled recipes.

    Returns
    -------
    transport, quic, tcp
        Transport; settings of a QUIC connection, or None; settings of TCP, or None if they are
        Linux's.
    """
    given = flow.transport
    where = (*path, "transport")
    what = datagrams(flow)
    if what is not None:
        if given is not None and given.kind != "udp":
            message = f'{what} are "udp" — remove this key'
            report.add(where, message, (*path, "source"))
        return "udp", None, None
    match given:
        case None:
            return "tcp", None, None
        case Quic():
            _only_of_tcp(flow, path, report)
            if given.implementation is not None:
                _only_of_own_quic(flow, given, path, report)
            windows = (window_bytes, bdp_bytes)
            quic = _quic_spec(flow, given, path, windows, report)
            where = (*path, "transport", "implementation")
            programs = _implementation(given.implementation, where, report, allow_code=allow_code)
            return "quic", {"implementation": programs, **quic}, None
        case Tcp() if given != Tcp(kind="tcp"):
            return "tcp", None, {"prr": given.prr, "accecn_option": given.accecn_option}
        case _ if given.kind == "udp":
            message = 'only pings and "cbr" are "udp" — accepted here: "tcp" or "quic"'
            report.add(where, message, (*path, "source"))
    return given.kind, None, None


def timers_spec(flow: Flow, path: KeyPath, report: Report) -> TimersSpec | None:
    """Return the timers of a flow's hosts; None if they are exact."""
    timers, at = flow.timers, (*path, "timers")
    if timers is None:
        return None
    what = datagrams(flow)
    if what is not None:
        report.add(at, f"the times of {what} are exact — remove this key", (*path, "source"))
    elif implementation(flow) is not None:
        message = "a program uses the timers of its host — remove this key"
        report.add(at, message, (*path, "transport", "implementation"))
    for key in ("slack", "resolution"):
        value_ns = getattr(timers, key)
        if value_ns > _MAX_TIMER_DELAY_NS:
            shown = format_amount(value_ns, "time")
            report.add((*at, key), f'{shown} — accepted here: "0 s" to "100 ms"')
    spec: TimersSpec = {"slack_ns": timers.slack, "resolution_ns": timers.resolution}
    if not is_quic(flow):
        spec["hz"] = _HZ if timers.hz is None else timers.hz
    elif timers.hz is not None:
        message = "QUIC's timers do not expire on the kernel's ticks — write slack or resolution"
        report.add((*at, "hz"), message, (*path, "transport"))
    return spec


def foreign_controller(flow: Flow, path: KeyPath, report: Report) -> Algorithm:
    """Return a controller of an external QUIC implementation, given by a name in its recipe."""
    name = flow.controller.name
    for parameter in flow.controller.parameters:
        message = (
            f'"{name}" is another implementation\'s, which has no parameters — remove this key'
        )
        report.add((*path, "controller", parameter), message, (*path, "transport"))
    for key in ("slow_start", "peer_cache"):
        if getattr(flow, key) is not None:
            message = "another implementation's controller takes none — remove this key"
            report.add((*path, key), message, (*path, "transport"))
    return {"name": name, "parameters": {}}


def _only_of_tcp(flow: Flow, path: KeyPath, report: Report) -> None:
    for key, why in _ONLY_OF_TCP.items():
        if getattr(flow, key) != type(flow).model_fields[key].default:
            report.add((*path, key), why, (*path, "transport"))


def _only_of_own_quic(flow: Flow, quic: Quic, path: KeyPath, report: Report) -> None:
    """Refuse keys that have no effect on the programs of another implementation."""
    at = (*path, "transport")
    asked: list[tuple[KeyPath, Flow | Quic, str]]
    asked = [((*path, "initial_window"), flow, "initial_window")]
    asked += [((*at, key), quic, key) for key in type(quic).model_fields if key != "implementation"]
    for where, table, key in asked:
        # Every program encrypts.
        usual = ("tls",) if key == "crypto" else ()
        default = type(table).model_fields[key].default
        if key in table.model_fields_set - {"kind"} and getattr(table, key) not in (
            default,
            *usual,
        ):
            message = "nothing tells another implementation to use it — remove this key"
            report.add(where, message, (*at, "implementation"))


def _quic_spec(
    flow: Flow, quic: Quic, path: KeyPath, sizes: tuple[int, int], report: Report
) -> QuicSpec:
    """Return the settings of a QUIC connection; `sizes` are the receive window and the BDP."""
    where = (*path, "transport")
    _check_payload(flow, quic, path, report)
    if quic.crypto == "tls" and quic.handshake == "0rtt":
        message = '"0rtt" needs a session to resume, which TLS has not here — write "1rtt"'
        report.add((*where, "handshake"), message, (*where, "crypto"))
    if quic.burst_limit is not None and quic.pacing:
        message = "paced packets do not leave in bursts — remove this key, or write pacing = false"
        report.add((*where, "burst_limit"), message, (*where, "pacing"))
    asked = quic.ack_frequency
    ack_frequency: AckFrequencySpec | None = None
    if asked is not None:
        ack_frequency = {
            "ack_eliciting_threshold": asked.ack_eliciting_threshold,
            "max_ack_delay_ns": asked.max_ack_delay,
            "reordering_threshold": asked.reordering_threshold,
        }
    return {
        "initial_mtu_bytes": quic.initial_mtu,
        "mtu_discovery": quic.mtu_discovery,
        "ack_frequency": ack_frequency,
        "packet_threshold": quic.packet_threshold,
        "recovery": quic.recovery,
        "gso_packets": quic.gso,
        "pacing": quic.pacing,
        "burst_limit_packets": quic.burst_limit,
        "streams": quic.streams,
        "stream_receive_window_bytes": _stream_window(quic, path, sizes, report),
        "handshake": quic.handshake,
        "crypto": quic.crypto,
    }


def _check_payload(flow: Flow, quic: Quic, path: KeyPath, report: Report) -> None:
    largest = flow.mtu - DATAGRAM_HEADER_BYTES
    if largest < _SMALLEST_PAYLOAD_BYTES:
        least = _SMALLEST_PAYLOAD_BYTES + DATAGRAM_HEADER_BYTES
        message = f'QUIC needs packets of "{least} B" at least (RFC 9000 §14)'
        report.add((*path, "mtu"), message, (*path, "transport"))
    elif not _SMALLEST_PAYLOAD_BYTES <= quic.initial_mtu <= largest:
        accepted = f'from "{_SMALLEST_PAYLOAD_BYTES} B" to "{largest} B"'
        message = f"{quic.initial_mtu} B of UDP payload — accepted here: {accepted}"
        report.add((*path, "transport", "initial_mtu"), message, (*path, "mtu"))


def _stream_window(quic: Quic, path: KeyPath, sizes: tuple[int, int], report: Report) -> int:
    window_bytes, bdp_bytes = sizes
    if quic.stream_receive_window is None:
        return window_bytes
    stream_bytes = min(LARGEST, quic.stream_receive_window.to_bytes(bdp_bytes))
    if stream_bytes > window_bytes:
        message = f"{stream_bytes} B is more than the connection's receive_window, {window_bytes} B"
        where = (*path, "transport", "stream_receive_window")
        report.add(where, message, (*path, "receive_window"))
    return stream_bytes


def _implementation(
    given: Implementation | None, where: KeyPath, report: Report, *, allow_code: bool
) -> QuicImplementation | None:
    """Return the programs of a flow: a bundled recipe's, or the scenario's if allowed."""
    if given is None:
        return None
    if given.server is None and given.client is None:
        recipe = recipes().get(given.name)
        if recipe is not None:
            if not given.qlog and not recipe.server_without_qlog:
                report.add(
                    (*where, "qlog"), f'"{given.name}" always writes a log — remove this key'
                )
            return _commands(given.name, recipe.programs[0 if given.qlog else -1])
        known = ", ".join(f'"{name}"' for name in ("noq", *recipes()))
        message = f'no recipe "{given.name}" — accepted here: {known}, or a table with the keys'
        report.add(where, f"{message} name, server and client")
        return None
    if not given.qlog:
        message = "programs of your own write what their words say — remove this key"
        report.add((*where, "qlog"), message)
    words = {"server": given.server or [], "client": given.client or []}
    missing = [key for key, program in words.items() if not program or not program[0]]
    for key in missing:
        message = f'missing — write for example {key} = ["/opt/{given.name}/{key}", "{{port}}"]'
        report.add((*where, key), message)
    if missing:
        return None
    programs = Programs.of(words["server"], words["client"])
    try:
        require_consent(f"the programs {programs}", allow_code=allow_code)
    except ConsentError as refusal:
        report.add(where, f'"{given.name}" {refusal}')
        return None
    admit(programs)
    return _commands(given.name, programs)


def _commands(name: str, programs: Programs) -> QuicImplementation:
    commands: QuicCommands = {"server": list(programs.server), "client": list(programs.client)}
    return {"name": name, "commands": commands}
