"""Emulation of links for a program, from the creation of namespaces to the clean-up."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jostle.emulate import namespaces, nat
from jostle.emulate.caller import account_of, environment_of, rights_of
from jostle.emulate.engine_thread import EngineThread
from jostle.emulate.event_log import frame
from jostle.emulate.link_file import LinkFile
from jostle.emulate.network_setup import NetworkSetup
from jostle.emulate.signals import SignalForwarder, end
from jostle.emulate.summary import DIRECTIONS, SCHEMA, EmulationSummary
from jostle.emulate.system_commands import available
from jostle.errors import EmulationError, EngineError, InputError

if TYPE_CHECKING:
    import polars as pl

    from jostle._core import Emulation, Emulator

__all__ = ["Options", "emulate"]

_PEER_PATIENCE_S: Final = 2.0
_TUN: Final = Path("/dev/net/tun")
# A column of /proc/PID/net/tcp, and its value for a listening socket (TCP_LISTEN).
_STATE: Final = 3
_LISTENS: Final = "0A"
_PID_NAMESPACE: Final = (
    sys.executable, "-I", "-S", "-B",
    str(Path(__file__).parents[1] / "safe_io" / "pid_namespace.py"),
)  # fmt: skip
"""Command that starts a program in a PID namespace; arguments of `pid_namespace` follow."""


@dataclass(frozen=True)
class Options:
    """Settings of an emulation.

    Parameters
    ----------
    peer
        Program for the far end, which runs in a separate namespace; if None, the far end is the
        host.
    nat
        Whether the command can reach the networks of the host.
    uplink
        Whether the file's links carry what the command sends instead of what it receives.
    lateness_bound_ns
        Bound on the delay error. If it is exceeded by more than one packet in a thousand, the
        emulation is invalid.
    mtu_bytes
        Largest IP packet.
    log
        Whether to record every drop and mark.
    as_root
        Whether the programs keep root's rights and environment if another account called `sudo`,
        `doas`, `pkexec` or `run0`.
    memory_bytes
        Maximum memory for packets in flight. Packets beyond it are lost, and the emulation is
        invalid.
    """

    peer: Sequence[str] = ()
    nat: bool = False
    uplink: bool = False
    lateness_bound_ns: int = 1_000_000
    mtu_bytes: int = 1500
    log: bool = False
    as_root: bool = False
    memory_bytes: int = 1 << 30


def emulate(
    links: LinkFile, command: Sequence[str], options: Options | None = None
) -> EmulationSummary:
    """Run a command behind emulated links until it ends.

    Parameters
    ----------
    links
        The links of both directions.
    command
        Program and its arguments. The variables `JOSTLE_ADDRESS`, `JOSTLE_PEER`, `JOSTLE_ADDRESS6`
        and `JOSTLE_PEER6` contain its addresses and its peer's.
    options
        Settings; the defaults if None.

    Returns
    -------
    EmulationSummary
        Exit status of the command, and statistics. The emulation may be invalid: see
        `EmulationSummary.valid`.

    Raises
    ------
    InputError
        If the program does not exist.
    EmulationError
        If links cannot be emulated here, or the emulation was aborted.
    """
    options = options or Options()
    for program in (command[0], *options.peer[:1]):
        if available(program) is None:
            raise InputError(f"there is no program `{program}`")
    _check_host(options)
    launcher = _Launcher(options)
    namespaces.clean_stale()
    nat.clean_stale()
    with SignalForwarder() as relay, ExitStack() as stack:
        try:
            wiring = NetworkSetup(stack, isolated=bool(options.peer), nat=options.nat)
            emulator = _emulator(links, wiring, options)
            ends = wiring.connect()
            if options.peer and wiring.outside is not None:
                environment = ends.environment(from_inside=False)
                # stdout is for results, so send the peer's output to stderr.
                peer = launcher.start(
                    options.peer, wiring.outside, environment, stdout=sys.__stderr__
                )
                stack.callback(end, peer)
                _await_peer(peer, wiring.outside)
            run = _Run(emulator)
            environment = ends.environment(from_inside=True)
            start = partial(launcher.start, command, wiring.inside, environment)
            exit_status = run.carry_out(start, relay, stack)
            unseen = wiring.unseen_drops()
            emulation = run.finish()
        finally:
            relay.close()
    document = _document(links, options, emulation, unseen)
    document |= {
        "command": list(command),
        "exit_status": exit_status,
        "real_time_priority": run.loop.real_time,
    }
    return EmulationSummary(exit_status, document, _log(document, options, emulation))


class _Run:
    """The emulation loop and the command."""

    def __init__(self, emulator: Emulator) -> None:
        self.loop = EngineThread(emulator, self._broken)
        self.process: subprocess.Popen[bytes] | None = None

    def carry_out(
        self,
        start: Callable[..., subprocess.Popen[bytes]],
        relay: SignalForwarder,
        stack: ExitStack,
    ) -> int:
        """Start both and wait for the command."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self.process = start(hold=theirs.fileno())
            stack.callback(end, self.process)
            # The launcher takes 0.1 s. Start the links' clock only after that.
            ours.recv(1)
            self.loop.start()
            stack.callback(self.loop.stop)
        if not self.loop.is_alive():
            self._broken()
        return relay.wait(self.process)

    def finish(self) -> Emulation:
        """Stop the loop."""
        try:
            return self.loop.finish()
        except OSError as error:
            raise EmulationError(f"the emulation broke off: {error}") from error

    def _broken(self) -> None:
        # End the command if the loop fails.
        if self.process is not None:
            self.process.terminate()


def _check_host(options: Options) -> None:
    if sys.platform != "linux":
        raise EmulationError("links are emulated on Linux only: they need its network namespaces")
    if os.geteuid() != 0:
        raise EmulationError(
            "emulating a link needs root, for network namespaces and TUN devices: use sudo"
        )
    if available("ip") is None:
        raise EmulationError("`ip` is not installed. On Debian: apt-get install iproute2")
    if available("setpriv") is None:
        raise EmulationError("`setpriv` is not installed. On Debian: apt-get install util-linux")
    if options.nat:
        nat.require()


def _emulator(links: LinkFile, wiring: NetworkSetup, options: Options) -> Emulator:
    from jostle import _core

    if not hasattr(_core, "Emulator"):
        raise EngineError("the compiled engine is too old for this package: install jostle again")
    spec = {
        "seed": links.seed,
        "forward": links.links,
        "reverse": links.reverse,
        "mtu_bytes": options.mtu_bytes,
        "lateness_bound_ns": options.lateness_bound_ns,
        "memory_bytes": options.memory_bytes,
        "journal": options.log,
    }
    inside, outside = wiring.devices
    ways = (inside, outside) if options.uplink else (outside, inside)
    try:
        return _core.Emulator(json.dumps(spec), *ways)
    except OSError as error:
        missing = "" if _TUN.exists() else f" (there is no {_TUN}: the kernel lacks CONFIG_TUN)"
        raise EmulationError(f"{error}{missing}") from error
    except ValueError as error:
        raise InputError(f"{links.source}: {error}") from error


class _Launcher:
    """Starts programs with the caller's rights, in PID namespaces that end with jostle."""

    def __init__(self, options: Options) -> None:
        account = None if options.as_root else account_of(os.environ)
        # Without PID namespaces, the program itself ends with jostle.
        self._words = ["setpriv", "--pdeathsig", "KILL"]
        self._environment: Mapping[str, str] = os.environ
        if account is not None:
            self._words += rights_of(account)
            self._environment = environment_of(account, os.environ)

    def start(
        self,
        command: Sequence[str],
        namespace: str,
        environment: Mapping[str, str],
        stdout: Any = None,
        hold: int | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program in a network namespace.

        Parameters
        ----------
        stdout
            Standard output of the program; if None, it is inherited.
        hold
            Socket that delays the start of the program until its other end is closed.
        """
        launcher = [*_PID_NAMESPACE, str(os.getpid()), "-" if hold is None else str(hold)]
        words = [available("ip") or "ip", "netns", "exec", namespace, *launcher, *self._words]
        return subprocess.Popen(
            [*words, "--", *command],
            pass_fds=() if hold is None else (hold,),
            env={**self._environment, **environment},
            stdin=None if stdout is None else subprocess.DEVNULL,
            stdout=stdout,
            start_new_session=stdout is not None,
        )


def _await_peer(peer: subprocess.Popen[bytes], namespace: str) -> None:
    """Wait until a peer's program listens, at most 2 s, because some programs never do."""
    until = time.monotonic() + _PEER_PATIENCE_S
    while time.monotonic() < until and not _listens(peer.pid, namespace):
        if peer.poll() is not None:
            raise EmulationError(f"the peer ended at once, with exit status {peer.returncode}")
        time.sleep(0.01)


def _listens(pid: int, namespace: str) -> bool:
    process = Path("/proc", str(pid))
    try:
        # `ip` may not have entered the namespace yet.
        if not os.path.samefile(process / "ns" / "net", Path("/run/netns", namespace)):
            return False
        sockets = {
            protocol: (process / "net" / protocol).read_text().splitlines()[1:]
            for protocol in ("tcp", "tcp6", "udp", "udp6")
            if (process / "net" / protocol).exists()
        }
    except OSError:
        return False
    return any(
        protocol.startswith("udp") or line.split()[_STATE] == _LISTENS
        for protocol, lines in sockets.items()
        for line in lines
    )


def _document(
    links: LinkFile, options: Options, emulation: Emulation, unseen: tuple[int, int]
) -> dict[str, Any]:
    """Return the statistics, with directions named from the perspective of COMMAND."""
    summary = json.loads(emulation.summary)
    ways = (summary.pop("forward"), summary.pop("reverse"))
    to_command, from_command = ways[::-1] if options.uplink else ways
    from_command["unseen_packets"], to_command["unseen_packets"] = unseen
    if any(unseen):
        summary["verdict"] = "overrun"
    return {
        "schema": SCHEMA,
        "title": links.title,
        "link": links.source,
        "seed": links.seed,
        **summary,
        "to_command": to_command,
        "from_command": from_command,
    }


def _log(
    document: Mapping[str, Any], options: Options, emulation: Emulation
) -> pl.DataFrame | None:
    if not options.log:
        return None
    names = DIRECTIONS[::-1] if options.uplink else DIRECTIONS
    return frame(emulation, [(name, _names(document[name])) for name in names])


def _names(direction: Mapping[str, Any]) -> list[str]:
    return [link["name"] for link in direction["links"]]
