"""Runs the commands of a network in a guest, and reads what they left."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jostle.backends.base import Cancelled, Spec, canonical_json
from jostle.backends.kernel import host_network, seeded_random
from jostle.backends.kernel.backend import KernelBackend
from jostle.backends.kernel.guest.failure import reason_of
from jostle.backends.kernel.host_network import guest_host, host_address
from jostle.backends.kernel.impairment_playback import JITTER_POINTS
from jostle.backends.kernel.job import longest_delay_ns
from jostle.backends.kernel.runner import (
    PROGRAM,
    KernelRunError,
    check_output,
    write_script,
)
from jostle.backends.sim import load_engine
from jostle.errors import InputError
from jostle.kernel_images import (
    GuestError,
    GuestOutput,
    GuestTimeoutError,
    Image,
    run_guest,
)
from jostle.kernel_images.boot import CLOCK_STARTS_NS
from jostle.programs.network_file import Command, NetworkFile
from jostle.programs.outcome import CommandOutcome, LinkCounters, Outcome
from jostle.safe_io.code_consent import admitted, require_consent
from jostle.safe_io.scratch_folder import temporary_folder
from jostle.safe_io.untrusted_files import STORED_BYTES, open_regular, read_bytes, read_json

if TYPE_CHECKING:
    from jostle.results import ResultSet

__all__ = ["Options", "execute"]

_PROGRAM: Final = f"{PROGRAM.name}.host_commands"
_READY_NS: Final = 10 * 10**9
_DRAIN_NS: Final = 100_000_000
"""Time in which the last packets reach their hosts, in addition to the delays of all links."""
_HEADERS_BYTES: Final = 128
_PACKETS_BYTES: Final = 65_549
"""Snap lengths: the headers of plain packets, and complete packets."""
_TAIL_BYTES: Final = 4_000
"""Maximum length of the shown end of an output."""
_STANDS_STILL_S: Final = 5.0
_KILLED: Final = re.compile(r"Out of memory: Killed process \d+ \(([^)]*)\)")
_PROXIES: Final = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
"""Variables that name servers of the host's network, in lower or upper case."""
_NAME_SERVICE: Final = "passwd: files\ngroup: files\nhosts: files\n"


@dataclass(frozen=True)
class Options:
    """Settings of an execution.

    Parameters
    ----------
    folder
        Folder whose entries the working folders show as links; None for none.
    keep
        New content of this folder: outputs, files and captures of every host; None to keep nothing.
    memory_mb
        Memory of the guest.
    wall_limit_s
        Wall time after which the guest is stopped.
    clock_starts_ns
        Start of the wall clock, in ns since 1970.
    whole_packets
        Whether captures contain whole packets instead of their headers.
    """

    folder: Path | None = None
    keep: Path | None = None
    memory_mb: int = 1024
    wall_limit_s: float = 600.0
    clock_starts_ns: int = CLOCK_STARTS_NS
    whole_packets: bool = False

    @property
    def snap_bytes(self) -> int:
        """Return the maximum size of the stored part of a packet."""
        return _PACKETS_BYTES if self.whole_packets else _HEADERS_BYTES


def execute(
    network: NetworkFile,
    image: Image,
    options: Options | None = None,
    *,
    cancelled: Cancelled | None = None,
) -> Outcome:
    """Run the commands of a network.

    Parameters
    ----------
    image
        A virtual kernel.
    cancelled
        Polled regularly; the guest is killed when it returns true.

    Raises
    ------
    ConsentError
        If a command of the file was not admitted.
    InputError
        If there is no command that ends by itself, or the kernel cannot provide a link.
    KernelRunError
        If the guest failed.
    """
    options = options or Options()
    _check(network)
    backend = KernelBackend(image=image)
    spec = host_network.placeholder_spec(network.links, network.seed, network.duration_ns)
    backend.check(spec)
    engine = load_engine()
    drawn = {
        link: engine.draw_impairments(canonical_json(spec), link, JITTER_POINTS, cancelled)
        for link in range(len(network.links))
    }
    try:
        with temporary_folder("run") as folder:
            job = _job(network, spec, options)
            (folder / "job.json").write_text(json.dumps(job))
            for name, content in host_network.files(spec, drawn).items():
                (folder / name).write_bytes(content)
            _write_settings(folder / "settings", network)
            results = _GuestResults(network, folder, options, image)
            started_s = time.monotonic()
            try:
                output = run_guest(
                    image,
                    write_script(folder, _PROGRAM),
                    {},
                    memory_mb=options.memory_mb,
                    seed=network.seed,
                    clock_starts_ns=options.clock_starts_ns,
                    timeout_s=options.wall_limit_s,
                    cancelled=cancelled,
                )
            except GuestTimeoutError:
                outcome = results.stopped(time.monotonic() - started_s)
            except GuestError as error:
                raise KernelRunError(str(error)) from error
            else:
                check_output(output, folder)
                outcome = results.outcome(output)
            if options.keep is None:
                return outcome
            return replace(outcome, unwritten=_copy(folder / "output", options.keep))
    except OSError as error:
        place = error.filename or "the folder of temporary files"
        raise KernelRunError(f"{place}: {reason_of(error)}") from error


def _check(network: NetworkFile) -> None:
    for command in network.commands:
        if command.from_file:
            known = admitted(command.digest()) is not None
            require_consent(f"`{command.text}` on {command.host}", allow_code=known)
    if all(command.is_server for command in network.commands):
        has = "every command is a server" if network.commands else "there is no command"
        raise InputError(
            f"{network.source}: {has}, so that nothing would end the run — add --on HOST "
            "'COMMAND', or a [[commands]] table with `run`"
        )


def _job(network: NetworkFile, spec: Spec, options: Options) -> dict[str, Any]:
    names = [host.name for host in network.hosts]
    shared = {**_environment(), **_addresses(names)}
    commands = []
    for position, command in enumerate(network.commands):
        host = names.index(command.host)
        own = {"JOSTLE_ADDRESS": host_address(host)}
        if len(names) == 2:
            own["JOSTLE_PEER"] = host_address(1 - host)
        commands.append(
            {
                "number": position,
                "label": _label(network.commands, position),
                "host": guest_host(host),
                "host_name": command.host,
                "command": command.text,
                "is_server": command.is_server,
                "start_ns": command.start_ns,
                "file_bytes": options.memory_mb << 19,
                "environment": {**shared, **own},
            }
        )
    return {
        **host_network.network(spec, network.hosts, options.memory_mb),
        "host_names": names,
        "captures": {
            guest_host(number): (f"{guest_host(number)}.ring", options.snap_bytes)
            for number in range(len(names))
        },
        "commands": commands,
        "shown_folder": None if options.folder is None else str(options.folder.resolve()),
        "limit_ns": network.duration_ns,
        "ready_ns": _READY_NS,
        "drain_ns": _DRAIN_NS + sum(longest_delay_ns(link["delay"]) for link in network.links),
    }


def _label(commands: Sequence[Command], position: int) -> str:
    """Return the beginning of the names of a command's output files, by its order on its host."""
    host = commands[position].host
    earlier = sum(command.host == host for command in commands[:position])
    return "" if earlier == 0 else f"{earlier + 1}."


def _environment() -> dict[str, str]:
    """Return the environment of this process, without its proxies and with seeded libraries."""
    found = {name: v for name, v in os.environ.items() if name.lower() not in _PROXIES}
    seeded = seeded_random.environment_of_any()
    preloaded = [seeded.get("LD_PRELOAD", ""), found.get("LD_PRELOAD", "")]
    found |= seeded
    if any(preloaded):
        found["LD_PRELOAD"] = ":".join(filter(None, preloaded))
    return found


def _addresses(names: Sequence[str]) -> dict[str, str]:
    return {
        f"JOSTLE_ADDRESS_{name.upper().replace('-', '_')}": host_address(number)
        for number, name in enumerate(names)
    }


def _write_settings(folder: Path, network: NetworkFile) -> None:
    """Write the files that replace files of /etc on every host."""
    folder.mkdir()
    lines = ["127.0.0.1 localhost"]
    lines += [f"{host_address(at)} {host.name}" for at, host in enumerate(network.hosts)]
    (folder / "hosts").write_text("".join(f"{line}\n" for line in lines))
    (folder / "nsswitch.conf").write_text(_NAME_SERVICE)
    (folder / "resolv.conf").write_text("")


@dataclass(frozen=True)
class _GuestResults:
    """Reads what the guest program has left in the folder of a run."""

    network: NetworkFile
    folder: Path
    options: Options
    image: Image

    def outcome(self, output: GuestOutput) -> Outcome:
        """Return the outcome of a guest program that has ended."""
        events = read_json(self.folder / "events.json", STORED_BYTES)
        notes = list(events["notes"])
        if killed := dict.fromkeys(_KILLED.findall(output.text)):
            notes.append(
                f"the guest's {self.options.memory_mb} MB of memory were full, and Linux ended "
                f"{', '.join(killed)}: give more with --memory"
            )
        return Outcome(
            network=self.network,
            commands=[
                self._command(position, events) for position in range(len(self.network.commands))
            ],
            virtual_s=events["end_ns"] / 1e9,
            wall_s=output.wall_s,
            limit="virtual time" if events["reached_limit"] else None,
            links=[
                LinkCounters(link["name"], counted["packets"], counted["drops"], counted["lost"])
                for link, counted in zip(self.network.links, events["queues"], strict=True)
            ],
            measured=_measured(self._captures(events)),
            kernel=self.image.version,
            notes=notes,
        )

    def stopped(self, wall_s: float) -> Outcome:
        """Return the outcome of a guest that was stopped after its limit of wall time."""
        virtual_s, stood_still_s = 0.0, 0.0
        with suppress(OSError, ValueError):
            progress = self.folder / "progress"
            virtual_s = int(read_bytes(progress, STORED_BYTES)) / 1e9
            stood_still_s = time.time() - progress.stat().st_mtime
        if stood_still_s > _STANDS_STILL_S:
            why = (
                f"virtual time stood still at {virtual_s:g} s for {stood_still_s:.0f} s: a command "
                "computes without end, or polls the clock or a condition without sleeping. Time "
                "passes only while all commands wait in the kernel"
            )
        else:
            why = (
                f"virtual time had advanced to {virtual_s:g} s: give more with --wall-limit. "
                "Programs that read the clock in a loop are slow here"
            )
        commands = []
        for position, command in enumerate(self.network.commands):
            stdout, stderr = self._outputs(position)
            commands.append(
                CommandOutcome(
                    command, failure="was stopped with the guest", stdout=stdout, stderr=stderr
                )
            )
        return Outcome(
            network=self.network,
            commands=commands,
            virtual_s=virtual_s,
            wall_s=wall_s,
            limit="wall time",
            kernel=self.image.version,
            notes=[f"after {self.options.wall_limit_s:g} s of wall time, {why}"],
        )

    def _command(self, position: int, events: Mapping[str, Any]) -> CommandOutcome:
        found = events["commands"][str(position)]
        stdout, stderr = self._outputs(position)
        return CommandOutcome(
            command=self.network.commands[position],
            status=None if found["stopped"] else found["status"],
            started_s=_seconds(found["started_ns"]),
            ended_s=_seconds(found["ended_ns"]),
            failure=events["failures"].get(str(position)),
            ended_early=position in events["early"],
            stdout=stdout,
            stderr=stderr,
        )

    def _outputs(self, position: int) -> tuple[str, str]:
        """Return the ends of a command's standard output and error."""
        commands = self.network.commands
        own = self.folder / "output" / commands[position].host
        label = _label(commands, position)
        return _tail(own / f"{label}stdout.txt"), _tail(own / f"{label}stderr.txt")

    def _captures(self, events: Mapping[str, Any]) -> list[Path]:
        """Convert the captures of all hosts to pcapng files next to their outputs."""
        engine, metadata, found = load_engine(), events["captures"], []
        for number, host in enumerate(self.network.hosts):
            name = guest_host(number)
            received, dropped = metadata["hosts"][name]
            file = self.folder / "output" / f"{host.name}.pcapng"
            try:
                engine.host_capture_from_ring(
                    host.name,
                    host_address(number),
                    comment=f"network: {self.network.title}\nhost: {host.name}\n"
                    f"seed: {self.network.seed}\ntime 0 is the start of the commands",
                    system=f"Linux {self.image.version} ({self.image.kind})",
                    snap_bytes=self.options.snap_bytes,
                    start_ns=metadata["start_ns"],
                    duration_ns=events["captured_ns"],
                    received=received,
                    dropped=dropped,
                    blocks=self.folder / f"{name}.ring",
                    file=file,
                )
            except ValueError as error:
                text = f"the capture of {host.name} cannot be read: {error}"
                raise KernelRunError(text) from error
            found.append(file)
        return found


def _seconds(moment_ns: int | None) -> float | None:
    return None if moment_ns is None else moment_ns / 1e9


def _tail(path: Path) -> str:
    try:
        with open_regular(path) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _TAIL_BYTES, 0))
            return file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _measured(captures: Sequence[Path]) -> ResultSet | None:
    """Measure the captures as `jostle analyze` does; None if they show no flow."""
    from jostle.measurements import analyze

    try:
        return analyze(captures)
    except InputError:
        return None


def _copy(source: Path, to: Path) -> str:
    """Copy the outputs into a folder; return why that failed, or an empty text.

    Earlier outputs are replaced when all new ones are there.
    """
    try:
        with tempfile.TemporaryDirectory(
            prefix=".jostle-", dir=to, ignore_cleanup_errors=True
        ) as new:
            for entry in sorted(source.iterdir()):
                if entry.is_dir():
                    shutil.copytree(entry, Path(new, entry.name), symlinks=True)
                else:
                    shutil.copyfile(entry, Path(new, entry.name))
            for entry in sorted(Path(new).iterdir()):
                target = to / entry.name
                if target.is_dir() and not target.is_symlink():
                    shutil.rmtree(target)
                entry.replace(target)
    except OSError as error:
        return f"cannot write the outputs to {to}: {reason_of(error)}"
    return ""
