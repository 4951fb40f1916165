"""Dask's scheduler and worker without their HTTP servers; imported where Dask is."""

from __future__ import annotations

from typing import Any

import distributed

__all__ = ["Scheduler", "Worker"]


class _WithoutHttp:
    """Listens for TLS alone: Dask's HTTP servers answer every client, even without a dashboard."""

    def start_http_server(self, *_arguments: Any, **_options: Any) -> None:
        """Start none."""


# Dask looks up parts of its configuration by the names of these classes.
class Scheduler(_WithoutHttp, distributed.Scheduler):
    """A scheduler without an HTTP server."""


class Worker(_WithoutHttp, distributed.Worker):
    """A worker without an HTTP server."""
