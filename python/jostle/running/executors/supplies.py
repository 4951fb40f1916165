"""What Dask's workers get before they carry runs out; imported where Dask is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distributed import WorkerPlugin

__all__ = ["Supplies"]


class Supplies(WorkerPlugin):
    """Puts something onto the machine of every worker, and of those that join later.

    Parameters
    ----------
    put
        Does so, unless it is there.
    """

    def __init__(self, put: Callable[[], None]) -> None:
        self._put = put

    def setup(self, worker: Any) -> None:
        """Prepare a worker's machine."""
        del worker
        self._put()
