"""`jostle view`."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from jostle.safe_io.terminal_text import echo
from jostle.store import DEFAULT_STORE, STORE_VARIABLE


@click.command(short_help="Show a store in the browser.")
@click.argument("store", required=False, default=DEFAULT_STORE, envvar=STORE_VARIABLE)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=0,
    help="Listen on this port; by default a free one.",
)
@click.option("--open/--no-open", "show", default=True, help="Open the page in a browser.")
def view(store: str, port: int, show: bool) -> int:
    """Show the runs in STORE (.jostle/store) in a browser: tables of conditions, charts of runs.

    A running sweep is shown with its finished runs. The page is accessible from this machine only,
    and its address is a secret: do not share it. If your browser cannot read the file that
    redirects to the page, open the printed address. The store is not changed. Ctrl-C ends the
    server.

    Example: jostle view
    """
    from jostle.cli.signals import orderly_interruption
    from jostle.report.viewer import StoreServer, redirect_file

    with orderly_interruption(deferred=True) as check, ExitStack() as stack:
        viewer = StoreServer(Path(store), port)
        echo(viewer.url)
        if show:
            page = stack.enter_context(redirect_file(viewer.url)).as_uri()
            # In a terminal browser, open() returns only when the browser ends.
            import webbrowser

            threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            viewer.serve(check)
        viewer.close()
        echo("", err=True)
    return 0
