"""Executors run the jobs of a plan; they have the interface of `concurrent.futures`."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from jostle.errors import InputError
from jostle.runner.executors.batch_queue import QUEUES
from jostle.runner.executors.threads import Executor, PreparedExecutor, available_cores, local

__all__ = ["Executor", "PreparedExecutor", "available_cores", "is_lost", "local", "make"]


def make(
    text: str, jobs: int | None = None, warn: Callable[[str], object] = warnings.warn
) -> Executor:
    """Create the executor that a user names: `local`, `processes`, `dask`, `slurm` or another.

    Parameters
    ----------
    text
        Its name, or `dask=ADDRESS`.
    jobs
        Number of parallel runs; by default, the number of cores.
    warn
        Called with a warning if other users can use the scheduler at that address.

    Raises
    ------
    InputError
        When there is no executor of that name, or it is not available.
    """
    kind, given, address = text.partition("=")
    if text == "local":
        return local(jobs)
    if text == "processes":
        from concurrent.futures import ProcessPoolExecutor

        from jostle.safe_io.child_processes import spawn_context

        return ProcessPoolExecutor(jobs or available_cores(), mp_context=spawn_context())
    if text in QUEUES:
        from jostle.runner.executors.dask_cluster import DaskExecutor

        if jobs is None:
            raise InputError(f"executor {text}: say by --jobs how many workers are asked for")
        return DaskExecutor(jobs=jobs, queue=text)
    if kind != "dask" or (given and not address):
        choices = ", ".join(("local", "processes", "dask", *QUEUES))
        raise InputError(f"executor {text}: choose {choices} or dask=ADDRESS")
    if given and jobs is not None:
        raise InputError("--jobs: how many runs a cluster takes is for its workers to say")
    from jostle.runner.executors.dask_cluster import DaskExecutor

    return DaskExecutor(address or None, jobs, warn=warn)


def is_lost(error: BaseException) -> bool:
    """Return whether workers died with a job, as often as Dask's scheduler permits."""
    kind = type(error)
    # Compare by name, because Dask may not be installed.
    return kind.__name__ == "KilledWorker" and kind.__module__.startswith("distributed.")
