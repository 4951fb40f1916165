"""A bar that shows how much of captures was read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from jostle.captures.analysis import READINGS, files_of

PATIENCE_BYTES = 50_000_000
"""Captures of fewer bytes are read before a bar would be of use."""


@contextmanager
def reading(
    paths: Sequence[str | os.PathLike[str]], *, shown: bool
) -> Iterator[Callable[[int], bool] | None]:
    """Show a bar on stderr, if that is a terminal and the files are large.

    Yields
    ------
    callable or None
        What is told how many bytes were read; None if nothing is shown.
    """
    total = sum(path.stat().st_size for path in files_of(paths)) * READINGS if shown else 0
    if total < PATIENCE_BYTES or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=total)

        def told(read: int) -> bool:
            bar.update(task, completed=read)
            return False

        yield told
