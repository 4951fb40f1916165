"""`jostle view`."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from jostle.printable import echo
from jostle.running import DEFAULT_STORE, STORE_VARIABLE


@click.command(short_help="Look through a store in the browser.")
@click.argument("store", required=False, default=DEFAULT_STORE, envvar=STORE_VARIABLE)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port to listen on; one that is free if left out.",
)
@click.option("--open/--no-open", "show", default=True, help="Open the page in a browser.")
def view(store: str, port: int, show: bool) -> int:
    """Show what was run into STORE (.jostle/store): tables over conditions, charts of any runs.

    A sweep that is running is shown as far as it is. The page is for this machine alone, and its
    address is a secret; nothing is written. Ctrl-C ends it.
    """
    from jostle.view import Viewer

    viewer = Viewer(Path(store), port)
    echo(viewer.url)
    if show:
        webbrowser.open(viewer.url)
    try:
        viewer.serve()
    except KeyboardInterrupt:
        echo("", err=True)
    return 0
