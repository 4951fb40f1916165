"""Threads of this process. The engine runs without the interpreter's lock, so they suffice."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from jostle.backends import Backend

P = ParamSpec("P")
T = TypeVar("T")


class Executor(Protocol):
    """The part of `concurrent.futures.Executor` that a plan needs.

    One whose attribute `restarts_workers` is true has jobs end their process when a run is stuck;
    `workers`, where there is one, says how many jobs it carries out at once.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Carry out `fn` some time from now."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; drop what has not begun if `cancel_futures`."""


@runtime_checkable
class PreparedExecutor(Protocol):
    """An executor that sees beforehand whether its workers have what a backend needs."""

    def prepare(self, backend: Backend) -> None:
        """Send workers what they lack and can be sent.

        Raises
        ------
        InputError
            When something is left that one lacks.
        """


def available_cores() -> int:
    """Cores that this process may use (fewer than the machine has, in a container)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def local(jobs: int | None = None) -> Executor:
    """Threads of this process.

    Parameters
    ----------
    jobs
        Runs at the same time; as many as there are cores if absent.
    """
    return ThreadPoolExecutor(jobs or available_cores(), thread_name_prefix="jostle")
