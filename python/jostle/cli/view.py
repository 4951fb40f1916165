"""`jostle view`."""

from __future__ import annotations

import threading
import webbrowser
from contextlib import ExitStack, suppress
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
    address is a secret: do not pass it on. If your browser cannot read the file that leads to the
    page, open the printed address. The store is not changed. Ctrl-C ends it.
    """
    from jostle.cli.signals import orderly_interruption
    from jostle.view import Viewer, redirect_file

    with orderly_interruption(deferred=True) as check, ExitStack() as stack:
        viewer = Viewer(Path(store), port)
        echo(viewer.url)
        if show:
            page = stack.enter_context(redirect_file(viewer.url)).as_uri()
            # A browser in the terminal is waited for until it ends.
            threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            viewer.serve(check)
        viewer.close()
        echo("", err=True)
    return 0
