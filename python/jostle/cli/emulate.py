"""`jostle emulate`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo


@click.command(short_help="Run a program behind an emulated link.")
@click.argument("link", metavar="LINK.toml")
@click.argument("command", metavar="-- COMMAND…", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--peer",
    metavar="PROGRAM",
    help="Start this program at the far end, which then is a namespace of its own. Without it the "
    "far end is this host.",
)
@click.option("--nat", is_flag=True, help="Let COMMAND reach what this host reaches.")
@click.option(
    "--uplink",
    is_flag=True,
    help="The file's links carry what COMMAND sends, and [reverse] what it receives.",
)
@click.option(
    "--as-root",
    is_flag=True,
    help="Run COMMAND and PROGRAM as root. By default they run as the user who called sudo, doas, "
    "pkexec or run0, with that user's HOME.",
)
@click.option("--log", metavar="FILE", help="Write every drop and mark to this .parquet or .csv.")
@click.option("--summary", metavar="FILE", help="Write the summary to this file, as JSON.")
@click.option(
    "--lateness",
    metavar="TIME",
    default="1 ms",
    show_default=True,
    help="How late one packet in a thousand may leave before the emulation is no result.",
)
@click.option(
    "--mtu",
    "mtu_bytes",
    type=click.IntRange(1280, 65_535),
    default=1500,
    show_default=True,
    help="Largest IP packet, in bytes.",
)
def emulate(
    *,
    link: str,
    command: tuple[str, ...],
    peer: str | None,
    nat: bool,
    uplink: bool,
    as_root: bool,
    log: str | None,
    summary: str | None,
    lateness: str,
    mtu_bytes: int,
) -> int:
    """Run COMMAND in a network namespace behind the link of LINK.toml.

    The file has a scenario's [bottleneck] or [[links]], which carry the data that COMMAND receives,
    and optionally [reverse], which carries the data that it sends. The default reverse link has the
    same rate and delay, without loss. The variables $JOSTLE_ADDRESS and $JOSTLE_PEER contain
    COMMAND's address and the address of the far end. Needs root.

    The summary goes to stderr. The exit status is COMMAND's, or 1 if packets left the link too late
    for a valid emulation.
    """
    from jostle import emulate as emulation
    from jostle.emulate import event_log
    from jostle.scenario.parsing.quantities import QuantityError, parse_span

    links = emulation.load(link)
    try:
        bound_ns = parse_span(lateness)
    except QuantityError as error:
        raise InputError(f"--lateness: {error}") from error
    if peer is not None and nat:
        raise InputError("--nat and --peer: a far end of its own reaches nothing — keep one")
    if log is not None:
        event_log.check(Path(log))
    for file in (log, summary):
        _check_writable(file)
    options = emulation.Options(
        peer=_words(peer) if peer is not None else (),
        nat=nat,
        uplink=uplink,
        as_root=as_root,
        lateness_bound_ns=bound_ns,
        mtu_bytes=mtu_bytes,
        log=log is not None,
    )
    outcome = emulation.emulate(links, command, options)
    if log is not None and outcome.log is not None:
        event_log.write(outcome.log, Path(log))
    if summary is not None:
        Path(summary).write_text(f"{json.dumps(outcome.document, indent=2)}\n", "utf-8")
    for line in emulation.lines(outcome.document):
        echo(line, err=True)
    return outcome.exit_status if outcome.valid else 1


def _words(peer: str) -> list[str]:
    """Split a command like a shell."""
    try:
        words = shlex.split(peer)
    except ValueError as error:
        text = str(error).lower()
        raise InputError(f"--peer {peer}: {text} — write a command as for a shell") from error
    if not words:
        raise InputError("--peer: empty — write the command that is the far end")
    return words


def _check_writable(file: str | None) -> None:
    """Raise an error early if a result file cannot be written."""
    if file is None:
        return
    try:
        with Path(file).open("ab"):
            pass
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error
