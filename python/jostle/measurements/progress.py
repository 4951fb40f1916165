"""A progress bar for reading captures."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from jostle.measurements.analysis import READINGS, files_of

PATIENCE_BYTES = 50_000_000
"""Smallest total size of captures for which a bar is shown."""


@contextmanager
def read_progress(
    paths: Sequence[str | os.PathLike[str]], *, shown: bool
) -> Iterator[Callable[[int], bool] | None]:
    """Show a progress bar if stderr is a terminal and the files are large.

    Yields
    ------
    callable or None
        Function that receives the number of bytes read; None if no bar is shown.
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

        def report_bytes(read: int) -> bool:
            bar.update(task, completed=read)
            return False

        yield report_bytes
