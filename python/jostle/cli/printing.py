"""How commands print text that may be of other people's making."""

from __future__ import annotations

import click

from jostle.printable import printable

__all__ = ["echo"]


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a line, without characters that a terminal would obey."""
    click.echo(printable(str(text)), err=err)
