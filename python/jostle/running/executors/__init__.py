"""Executors: where the runs of a plan are carried out, in the shape of `concurrent.futures`."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from jostle.errors import InputError
from jostle.running.executors.local import Executor, Prepared, available_cores, local
from jostle.running.executors.queued import QUEUES

__all__ = ["Executor", "Prepared", "available_cores", "is_lost", "local", "make"]


def make(
    text: str, jobs: int | None = None, warn: Callable[[str], object] = warnings.warn
) -> Executor:
    """Make the executor that a user names: `local`, `processes`, `dask`, `slurm` or another.

    Parameters
    ----------
    text
        Its name, or `dask=ADDRESS`.
    jobs
        Runs at the same time; as many as there are cores if absent.
    warn
        Called with a text if anybody can use the scheduler at that address.

    Raises
    ------
    InputError
        When there is none of that name, or it cannot be had.
    """
    kind, given, address = text.partition("=")
    if text == "local":
        return local(jobs)
    if text == "processes":
        from concurrent.futures import ProcessPoolExecutor

        from jostle.child_processes import spawn_context

        return ProcessPoolExecutor(jobs or available_cores(), mp_context=spawn_context())
    if text in QUEUES:
        from jostle.running.executors.cluster import DaskExecutor

        if jobs is None:
            raise InputError(f"executor {text}: say by --jobs how many workers are asked for")
        return DaskExecutor(jobs=jobs, queue=text)
    if kind != "dask" or (given and not address):
        choices = ", ".join(("local", "processes", "dask", *QUEUES))
        raise InputError(f"executor {text}: choose {choices} or dask=ADDRESS")
    if given and jobs is not None:
        raise InputError("--jobs: how many runs a cluster takes is for its workers to say")
    from jostle.running.executors.cluster import DaskExecutor

    return DaskExecutor(address or None, jobs, warn=warn)


def is_lost(error: BaseException) -> bool:
    """Whether workers died with a job, as often as Dask's scheduler lets them."""
    kind = type(error)
    # Known by its name: Dask need not be installed.
    return kind.__name__ == "KilledWorker" and kind.__module__.startswith("distributed.")
