"""`jostle setup quic`: builds external QUIC implementations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from jostle.cli.options import GroupedCommand
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.quic.status import ImplementationStatus


@click.command(cls=GroupedCommand, short_help="Build the programs of a QUIC implementation.")
@click.argument("name", metavar="NAME")
@click.option("--force", is_flag=True, help="Build them again from the start, even if they exist.")
def quic(*, name: str, force: bool) -> None:
    """Build the server and the client of NAME, which must have a recipe.

    Example: jostle setup quic quic-go

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


def print_implementations(found: Sequence[ImplementationStatus]) -> None:
    """Print which implementations can carry a flow here, and how to enable the others."""
    from jostle.cli.output import print_texts

    rows = [
        (
            one.name,
            "yes" if one.available else "no",
            " ".join(one.controllers),
            one.title if one.available else f"{one.title}\n{one.advice}",
        )
        for one in found
    ]
    header = ("implementation", "usable", "controllers", "details, and what to do")
    print_texts(header, rows, header[:2])
