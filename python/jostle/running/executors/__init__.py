"""Executors: where the runs of a plan are carried out, in the shape of `concurrent.futures`."""

from __future__ import annotations

from jostle.running.executors.local import Executor, available_cores, local

__all__ = ["Executor", "available_cores", "local"]
