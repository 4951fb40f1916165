"""`jostle link emulate`."""

from __future__ import annotations

import shlex

import click

from jostle.cli.options import GroupedCommand
from jostle.cli.output_targets import TABLE, Outputs, output_option
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo


@click.command(cls=GroupedCommand, short_help="Run a program behind an emulated link.")
@click.argument("link", metavar="LINK.toml")
@click.argument("command", metavar="-- COMMAND…", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--peer",
    metavar="PROGRAM",
    help="Start this program at the far end, in a separate network namespace. Without it the far "
    "end is this host.",
)
@click.option("--nat", is_flag=True, help="Let COMMAND reach what this host reaches.")
@click.option(
    "--swap-directions",
    is_flag=True,
    help="Let the file's links carry what COMMAND sends, and [reverse] what it receives.",
)
@click.option(
    "--run-as-root",
    is_flag=True,
    help="Run COMMAND and PROGRAM as root. By default they run as the user who called sudo, doas, "
    "pkexec or run0, with that user's HOME.",
)
@click.option(
    "--max-delay-error",
    metavar="TIME",
    default="1 ms",
    show_default=True,
    help="Reject the emulation if one packet in a thousand leaves the link later than this.",
)
@click.option(
    "--mtu",
    "mtu_bytes",
    metavar="N",
    type=click.IntRange(1280, 65_535),
    default=1500,
    show_default=True,
    help="Carry IP packets of up to this many bytes.",
)
@output_option(
    {".csv": "every drop and mark", ".parquet": "every drop and mark", ".json": "the summary"}
)
def emulate(
    *,
    link: str,
    command: tuple[str, ...],
    peer: str | None,
    nat: bool,
    swap_directions: bool,
    run_as_root: bool,
    max_delay_error: str,
    mtu_bytes: int,
    outputs: Outputs,
) -> int:
    """Run COMMAND in a network namespace behind the link of LINK.toml.

    The file has a scenario's [bottleneck] or [[links]], which carry the data that COMMAND receives,
    and optionally [reverse], which carries the data that it sends. The default reverse link has the
    same rate and delay, without loss. The variables $JOSTLE_ADDRESS and $JOSTLE_PEER contain
    COMMAND's address and the address of the far end. Needs root.

    The summary goes to stderr. The exit status is COMMAND's, or 1 if packets left the link too late
    for a valid emulation.

    Example: sudo jostle link emulate link.toml --nat -- curl -O https://example.com/file
    """
    from jostle import emulate as emulation
    from jostle.scenario.parsing.quantities import QuantityError, parse_span

    links = emulation.load(link)
    try:
        bound_ns = parse_span(max_delay_error)
    except QuantityError as error:
        raise InputError(f"--max-delay-error: {error}") from error
    if peer is not None and nat:
        raise InputError("--nat and --peer: a separate far end reaches nothing — keep one")
    outputs.prepare()
    options = emulation.Options(
        peer=_words(peer) if peer is not None else (),
        nat=nat,
        uplink=swap_directions,
        as_root=run_as_root,
        lateness_bound_ns=bound_ns,
        mtu_bytes=mtu_bytes,
        log=bool(outputs.with_ending(*TABLE)),
    )
    outcome = emulation.emulate(links, command, options)
    if outcome.log is not None:
        log = outcome.log
        outputs.write_table(lambda: log)
    outputs.write_document(lambda: outcome.document)
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
