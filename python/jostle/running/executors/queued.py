"""Workers of Dask that the scheduler of a cluster's batch queue starts (dask-jobqueue)."""

from __future__ import annotations

import shutil
import signal
from importlib import import_module
from typing import Any, Final

from jostle.errors import InputError

__all__ = ["LISTED_BY", "QUEUES", "queued"]

QUEUES: Final = {"slurm": "SLURMCluster", "pbs": "PBSCluster"}
"""Name of a queue, and of its part of Dask's configuration → the class of dask-jobqueue."""

LISTED_BY: Final = {"slurm": "squeue", "pbs": "qstat"}
"""What lists the jobs that wait in a queue."""


def queued(name: str, workers: int) -> Any:
    """Ask a batch queue for workers; they come when it has room for them.

    What a job of the queue is (cores, memory, walltime, partition, …) is said in Dask's
    configuration, under `jobqueue` and the queue's name.

    Parameters
    ----------
    name
        One of `QUEUES`.
    workers
        How many, in as many jobs as the configuration says.

    Returns
    -------
    Any
        The cluster: an object of dask-jobqueue, which has no types.

    Raises
    ------
    InputError
        When dask-jobqueue or the queue's command is not there, or a job is not described.
    """
    on_interruption = signal.getsignal(signal.SIGINT)
    try:
        library: Any = import_module("dask_jobqueue")
    except ImportError as error:
        text = 'dask-jobqueue is not installed: pip install "jostle[cluster]"'
        raise InputError(text) from error
    # Its import makes Ctrl-C end a process without a word.
    signal.signal(signal.SIGINT, on_interruption)
    kind = getattr(library, QUEUES[name])
    submit = kind.job_cls.submit_command.split()[0]
    if shutil.which(submit) is None:
        text = f"executor {name}: there is no {submit} here"
        raise InputError(f"{text}. Run this where jobs are submitted")
    try:
        cluster = kind()
    except ValueError as error:
        raise InputError(
            f"executor {name}: it is not said what a job is. Set cores, memory and walltime under "
            f"jobqueue: {name}: in ~/.config/dask/jobqueue.yaml"
        ) from error
    cluster.scale(workers)
    return cluster
