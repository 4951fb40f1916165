"""Preparation of Dask workers; imported only if Dask is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distributed import WorkerPlugin

__all__ = ["WorkerSetup"]


class WorkerSetup(WorkerPlugin):
    """Installs a resource on the machine of every worker, including workers that join later.

    Parameters
    ----------
    put
        Installs the resource, unless it is present.
    """

    def __init__(self, put: Callable[[], None]) -> None:
        self._put = put

    def setup(self, worker: Any) -> None:
        """Prepare a worker's machine."""
        del worker
        self._put()
