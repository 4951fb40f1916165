"""Processes of Python that import nothing from the current folder.

`multiprocessing` starts them with `python -c`, which searches the current folder for modules first:
a `multiprocessing.py` in that folder would run. Python's option -P prevents that, but children get
it from `multiprocessing` only if their parent has it. The environment variable has no such limit.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context, process
from typing import Any, Final

__all__ = ["SAFE_PATH", "spawn_context"]

SAFE_PATH: Final = "PYTHONSAFEPATH"
"""Environment variable with the meaning of -P."""

_lock = threading.Lock()


@contextmanager
def _safe_path() -> Iterator[None]:
    """Set the environment variable for child processes started within the context."""
    with _lock:
        before = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[SAFE_PATH]
            else:
                os.environ[SAFE_PATH] = before


class _Process(context.SpawnProcess):
    @staticmethod
    def _Popen(process_obj: process.BaseProcess) -> Any:  # noqa: N802
        with _safe_path():
            return context.SpawnProcess._Popen(process_obj)


class _Context(context.SpawnContext):
    Process = _Process


def spawn_context() -> context.SpawnContext:
    """Return a multiprocessing context for such processes, for `ProcessPoolExecutor`.

    Processes are spawned, because threads of polars and of the engine do not survive a fork.
    """
    if sys.platform != "win32":
        from multiprocessing import resource_tracker

        # The resource tracker, which `multiprocessing` starts once, is a Python process too.
        with _safe_path():
            resource_tracker.ensure_running()
    return _Context()
