"""`jostle quic`: external QUIC implementations."""

from __future__ import annotations

import json
import time

import click

from jostle.cli.options import json_option
from jostle.safe_io.terminal_text import echo


@click.group(short_help="Build other people's QUIC implementations, show what there is.")
def quic() -> None:
    """Build external QUIC implementations, and show which can carry a flow here."""


@quic.command(short_help="Build the programs of an implementation.")
@click.argument("name", metavar="NAME")
@click.option("--force", is_flag=True, help="Build anew, from the start, even if they are there.")
def build(*, name: str, force: bool) -> None:
    """Build the server and the client of NAME, which must have a recipe.

    `go` or `cargo` fetches the sources in the versions that the recipe pins. The programs are
    stored in the user's cache folder. If the build is interrupted, the same command continues it.
    """
    from jostle.cli.signals import GOES_ON, orderly_interruption
    from jostle.quic import build as builder
    from jostle.quic import folder

    there = folder(name)
    if there is not None and there.is_dir() and not force:
        echo(f"{name} is there already: {there / 'bin'}")
        echo("(--force builds it anew)", err=True)
        return
    started_s = time.monotonic()
    with orderly_interruption(GOES_ON):
        place = builder.build(name, lambda line: echo(f"  {line}", err=True), anew=force)
    took_s = time.monotonic() - started_s
    echo(f"{name}, built in {took_s / 60:.1f} min: {place / 'bin'}")


@quic.command(short_help="Show which implementations there are.")
@json_option
def status(*, as_json: bool) -> None:
    """Show which implementations can carry a flow here, and how to enable the others."""
    from jostle.quic.status import SCHEMA, states

    found = states()
    if as_json:
        document = {"schema": SCHEMA, "implementations": [one.to_dict() for one in found]}
        echo(json.dumps(document, ensure_ascii=False))
        return
    from rich import box
    from rich.table import Table

    from jostle.cli.output import console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="")
    for name in ("implementation", "can be used", "controllers", "what it is, and what to do"):
        table.add_column(name, no_wrap=name == "implementation")
    for one in found:
        told = [one.title] if one.available else [one.title, one.advice]
        usable = "yes" if one.available else "no"
        table.add_row(one.name, usable, " ".join(one.controllers), "\n".join(told))
    console().print(table)
