"""`jostle exec`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli import shell_completion
from jostle.cli.options import BACKEND_TYPE, GroupedCommand, allow_code_option, json_option
from jostle.cli.output_targets import DOCUMENT, FOLDER, JUNIT, Outputs, output_option
from jostle.cli.signals import orderly_interruption
from jostle.cli.time_option import seconds
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.kernel_images import Image
    from jostle.programs.network_file import NetworkFile
    from jostle.programs.outcome import CommandOutcome, Outcome

_LEAST_MEMORY_MB, _MOST_MEMORY_MB = 256, 64 * 1024
_SHOWN_LINES = 10
_KEPT = {FOLDER: "the outputs, files and captures of all hosts"}


@click.command("exec", cls=GroupedCommand, short_help="Run programs on a network, in virtual time.")
@click.argument("file", metavar="NETWORK.toml", shell_complete=shell_completion.scenario_files)
@click.option(
    "--on",
    "clients",
    metavar="HOST COMMAND",
    nargs=2,
    multiple=True,
    help="Run this shell command on a host. The run ends when all of them have ended.",
)
@click.option(
    "--serve",
    "servers",
    metavar="HOST COMMAND",
    nargs=2,
    multiple=True,
    help="Start this server first, and wait until it listens; end it with SIGTERM at the end.",
)
@click.option(
    "--duration",
    metavar="TIME",
    default="",
    help="End commands that still run after this virtual time, instead of the file's `duration` "
    "(10 min without one).",
)
@click.option(
    "--wall-limit",
    metavar="TIME",
    default="10 min",
    show_default=True,
    help="Stop everything after this wall time.",
)
@click.option(
    "--memory",
    metavar="SIZE",
    default="1 GB",
    show_default=True,
    help="Memory for all commands, their files and the packets.",
)
@click.option(
    "--date",
    metavar="YYYY-MM-DD",
    default="2023-11-14",
    show_default=True,
    help="Date on the hosts when they boot; certificates must be valid then.",
)
@click.option(
    "--whole-packets", is_flag=True, help="Capture whole packets, not only their headers."
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0, 2**63 - 1),
    help="Seed the links and the random numbers of the hosts, instead of the file's `seed`.",
)
@allow_code_option
@click.option(
    "--backend",
    metavar="kernel[:VERSION]",
    type=BACKEND_TYPE,
    default="kernel",
    show_default=True,
    help="Run on this virtual-time kernel, such as kernel:6.12.",
)
@output_option(_KEPT, DOCUMENT, JUNIT)
@json_option
def exec_(
    *,
    file: str,
    clients: Sequence[tuple[str, str]],
    servers: Sequence[tuple[str, str]],
    duration: str,
    wall_limit: str,
    memory: str,
    date: str,
    whole_packets: bool,
    seed: int | None,
    allow_code: bool,
    backend: str,
    outputs: Outputs,
    as_json: bool,
) -> int:
    """Run commands on hosts that are connected by the links of NETWORK.toml.

    The file has links as for `jostle link emulate`. Its hosts are `server` and `client`, unless
    [[hosts]] names others. Commands that you type replace the [[commands]] of the file, which need
    --allow-code. Hosts know each other by name. The commands see this machine's files, read-only;
    they can write to their working folder and to $TMPDIR.

    Runs do not need root, take no time while all commands wait, and repeat exactly for a seed. The
    exit status is 1 if a command failed or a limit was reached.

    Example: jostle exec satellite.toml --serve server 'iperf3 -s' --on client 'iperf3 -c server -R'
    """
    from jostle.programs import execution, outcome
    from jostle.programs.network_file import load

    network = _with_options(load(file), clients, servers, duration, seed)
    network.admit_commands(allow_code=allow_code)
    kept = list(outputs.folders())
    if len(kept) > 1:
        raise InputError(f"-o {kept[1]}/: give one folder")
    typed = not any(command.from_file for command in network.commands)
    options = execution.Options(
        folder=Path.cwd() if typed else Path(file).parent,
        keep=kept[0] if kept else None,
        memory_mb=_memory_mb(memory),
        wall_limit_s=seconds("--wall-limit", wall_limit, 0.0),
        clock_starts_ns=_date_ns(date),
        whole_packets=whole_packets,
    )
    image = _image(backend)
    outputs.prepare()
    with orderly_interruption("interrupted: nothing is kept", deferred=True) as check:
        done = execution.execute(network, image, options, cancelled=lambda: _check_signals(check))
    if as_json:
        echo(json.dumps(outcome.document(done), ensure_ascii=False, allow_nan=False))
    else:
        _print(done)
    for note in done.notes:
        echo(f"note: {note}", err=as_json)
    for folder in () if done.unwritten else kept:
        echo(f"written: {folder}", err=as_json)
    outputs.write_document(lambda: outcome.document(done))
    outputs.write_text(".xml", "junit", lambda _: outcome.junit(done), quiet=True)
    if done.unwritten:
        raise InputError(done.unwritten)
    return 0 if done.ok else 1


def _check_signals(check: Any) -> bool:
    """Raise an error if a signal has arrived; return False otherwise."""
    check()
    return False


def _with_options(
    network: NetworkFile,
    clients: Sequence[tuple[str, str]],
    servers: Sequence[tuple[str, str]],
    duration: str,
    seed: int | None,
) -> NetworkFile:
    """Return the network with the values of the command line."""
    from dataclasses import replace

    from jostle.programs.network_file import Command

    typed = [Command(host, text, is_server=True) for host, text in servers]
    typed += [Command(host, text) for host, text in clients]
    if typed:
        if network.commands:
            echo("note: the commands of the file do not run, only those that you typed", err=True)
        network = network.with_commands(typed)
    if duration:
        network = replace(network, duration_ns=int(seconds("--duration", duration, 0.0) * 1e9))
    return network if seed is None else replace(network, seed=seed)


def _memory_mb(text: str) -> int:
    from jostle.scenario.parsing.quantities import QuantityError, parse_size

    try:
        memory_mb = parse_size(text) >> 20
    except QuantityError as error:
        raise InputError(f"--memory: {error}") from error
    if not _LEAST_MEMORY_MB <= memory_mb <= _MOST_MEMORY_MB:
        raise InputError(f"--memory {text}: give from 270 MB to 64 GB")
    return memory_mb


def _date_ns(text: str) -> int:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise InputError(f"--date {text}: write a date such as 2026-11-28") from error
    if not 1971 <= day.year <= 2200:
        raise InputError(f"--date {text}: from 1971 to 2200")
    return int(day.timestamp()) * 10**9


def _image(backend: str) -> Image:
    from jostle.backends.registry import parse_backend
    from jostle.kernel_images import find

    kind, chosen = parse_backend(backend)
    if kind != "kernel" or chosen.get("kernel", "virtual") != "virtual":
        raise InputError(f"--backend {backend}: commands run in a virtual-time kernel: kernel")
    return find("virtual", chosen.get("kernel_version"))


def _print(done: Outcome) -> None:
    """Print the answer, the outcome of every command, the links and the flows."""
    from jostle.cli import output
    from jostle.programs.outcome import verdict
    from jostle.results.tables import View
    from jostle.results.text_table import Table

    to = output.console()
    to.print(verdict(done))
    to.print(done.network.title, style="bold")
    to.print()
    for command in done.commands:
        _print_command(command)
    if done.links:
        rows = [(one.name, str(one.packets), str(one.drops), str(one.lost)) for one in done.links]
        header = ("link", "packets", "dropped by\nthe queue", "lost on\nthe link")
        output.print_table(to, Table(header, tuple(rows), (), 1))
    if done.measured is not None:
        output.print_phases(to, done.measured, (), View(width=output.width()))


def _print_command(command: CommandOutcome) -> None:
    took_s = None if command.command.is_server else command.took_s
    span = "" if took_s is None else f" after {took_s:.3f} s"
    mark = "" if command.ok else "FAILED: "
    echo(f"{mark}{command.name} {command.words}{span}")
    if command.hint is not None:
        echo(f"  hint: {command.hint}")
    for label, text in (("", command.stdout), ("stderr: ", command.stderr)):
        lines = text.rstrip("\n").splitlines()
        if lines and (command.ok is False or label == ""):
            for line in lines[-_SHOWN_LINES:]:
                echo(f"  {label}{line}")
    sys.stdout.flush()
