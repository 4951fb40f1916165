"""`jostle new`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from jostle.cli import shell_completion
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

_HOME = "home-router"


@click.command(short_help="Write a first scenario.")
@click.argument("name", required=False, shell_complete=shell_completion.first_scenarios)
@click.option("--controller", "controllers", multiple=True, metavar="NAME",
              shell_complete=shell_completion.registered("controllers"),
              help="Use this congestion controller; several are compared.")  # fmt: skip
@click.option("--rate", metavar="RATE", help="Set the rate of the bottleneck, such as '50 Mbit/s'; "
              "of a home-router, the rate down; of starlink and cellular, the first: the others "
              "keep their ratio to it.")  # fmt: skip
@click.option("--up", metavar="RATE", help="home-router: set the rate up.")
@click.option("--modem-queue", metavar="QUEUE",
              help="home-router: set the queue of the modem: a limit, such as '1000 packets' or "
              "'1 MB', or a queue discipline.")  # fmt: skip
@click.option("--application", "applications", multiple=True, metavar="NAME",
              help="home-router: include this application: upload, download, call, web or film; "
              "several are possible.")  # fmt: skip
@click.option("--rtt", metavar="TIME", help="Set the base RTT, such as '30 ms'.")
@click.option("--crate", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False),
              help="Write a congestion controller in Rust instead: a crate that runs in the "
              "simulator, over QUIC and in Linux.")  # fmt: skip
@click.option(
    "-o",
    "output",
    metavar="FILE",
    help="Write to this file, or - for standard output.  [default: NAME.toml]",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def new(
    name: str | None,
    *,
    controllers: tuple[str, ...],
    rate: str | None,
    rtt: str | None,
    up: str | None,
    modem_queue: str | None,
    applications: tuple[str, ...],
    crate: Path | None,
    output: str | None,
    force: bool,
) -> int:
    """Write a first scenario: home-router, satellite, starlink, datacentre, cellular or l4s.

    Each is a complete file with comments, which you can change and run. Without NAME, the command
    asks questions. At a terminal, it asks for the line and the applications of a home-router.

    With --crate it writes a congestion controller in Rust instead, for all stacks.

    Example: jostle new home-router --rate '100 Mbit/s' --up '20 Mbit/s' --application call
    """
    from jostle import scenario
    from jostle.scenario import templates

    if crate is not None:
        if any((name, controllers, rate, rtt, up, modem_queue, applications, output, force)):
            raise InputError("--crate writes no scenario: give no other option and no NAME")
        return _new_crate(crate)
    if name is None:
        name, controllers = _ask(controllers)
    options = {"rate": rate, "rtt": rtt, "up": up, "modem_queue": modem_queue}
    given = {key: value for key, value in options.items() if value is not None}
    if name == _HOME and not given and not applications and sys.stdin.isatty():
        given, applications = _ask_for_line()
    text = templates.fill(name, given, controllers, applications)
    path = Path(output or f"{name}.toml")
    # Report an invalid rate or controller before anything is written.
    try:
        scenario.load_text(text, name=str(path))
    except scenario.ScenarioError as error:
        raise InputError(str(error)) from error
    if output == "-":
        click.echo(text, nl=False)
        return 0
    _write(path, text, force=force)
    echo(f"{path}: {templates.summary(name)}")
    echo(f"next: jostle run {path}")
    return 0


def _new_crate(folder: Path) -> int:
    from jostle.controller_crates.new_crate import new_crate

    if not new_crate(folder):
        echo(f"{folder}: a crate, which now finds the crates of this jostle (.cargo/config.toml)")
        return 0
    echo(f"{folder}: a congestion controller; {folder / 'src' / 'lib.rs'} is the place to begin")
    echo(f"next: jostle run {folder / 'compare.toml'} --allow-code")
    return 0


def _ask(controllers: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    from jostle.scenario import templates

    known = {name: templates.summary(name) for name in templates.names()}
    if not sys.stdin.isatty():
        raise InputError(f"name one of {', '.join(known)}: jostle new {next(iter(known))}")
    for name, title in known.items():
        echo(f"  {name:12} {title}")
    name = click.prompt("Which", type=click.Choice(list(known)), show_choices=False)
    if not controllers:
        words = click.prompt("Controllers to compare, or return for the usual", default="",
                             show_default=False)  # fmt: skip
        controllers = words.replace(",", " ").split()
    return name, tuple(controllers)


def _ask_for_line() -> tuple[dict[str, str], tuple[str, ...]]:
    """Ask for the line and the applications of a home. Return placeholders and applications."""
    from jostle.scenario import templates

    questions = (
        ("rate", "Rate down", "50 Mbit/s"),
        ("up", "Rate up", "10 Mbit/s"),
        ("modem_queue", "Queue of the modem: a limit, or a queue discipline", "1000 packets"),
    )
    given = {key: click.prompt(text, default=default) for key, text, default in questions}
    known = templates.applications(_HOME)
    words = click.prompt("Applications", default=" ".join(known))
    return given, tuple(words.replace(",", " ").split())


def _write(path: Path, text: str, *, force: bool) -> None:
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(f"{path} is there: --force replaces it, -o names another") from error
    except OSError as error:
        raise InputError(f"cannot write {path}: {os.strerror(error.errno or 0)}") from error
