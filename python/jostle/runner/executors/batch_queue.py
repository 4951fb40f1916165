"""Dask workers that are started by the batch queue of a cluster (dask-jobqueue)."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from jostle.errors import InputError
from jostle.runner.executors.tls_credentials import make_credentials

__all__ = ["LISTED_BY", "QUEUES", "queued"]

QUEUES: Final = {"slurm": "SLURMCluster", "pbs": "PBSCluster"}
"""Name of a queue, and of its section in Dask's configuration → class of dask-jobqueue."""

LISTED_BY: Final = {"slurm": "squeue", "pbs": "qstat"}
"""Command that lists the jobs of a queue."""


_DASK_WORKER: Final = "-m distributed.cli.dask_worker "
# -P: do not import from the working directory of a job.
_QUEUE_WORKER: Final = "-P -m jostle.runner.executors.queue_worker "


def queued(name: str, workers: int, resources: ExitStack) -> Any:
    """Submit jobs for workers to a batch queue; the workers start when it runs them.

    Jobs of the queue (cores, memory, walltime, partition, …) are described in Dask's configuration,
    under `jobqueue` and the queue's name. Scheduler and workers use TLS.

    Parameters
    ----------
    name
        One of `QUEUES`.
    workers
        Number of workers; the configuration determines the number of jobs.
    resources
        Removes the files of certificates at the end.

    Returns
    -------
    Any
        The cluster: an object of dask-jobqueue, which has no types.

    Raises
    ------
    InputError
        When dask-jobqueue or the queue's command is missing, a job is not described, or workers
        cannot get certificates.
    """
    on_interruption = signal.getsignal(signal.SIGINT)
    try:
        library: Any = import_module("dask_jobqueue")
    except ImportError as error:
        text = 'dask-jobqueue is not installed: pip install "jostle[cluster]"'
        raise InputError(text) from error
    # Importing it installs a handler of SIGINT that ends a process silently.
    signal.signal(signal.SIGINT, on_interruption)
    kind = getattr(library, QUEUES[name])
    submit = kind.job_cls.submit_command.split()[0]
    if shutil.which(submit) is None:
        text = f"executor {name}: there is no {submit} here"
        raise InputError(f"{text}. Run this where jobs are submitted")
    cluster = _start_scheduler(kind, name, resources)
    cluster.scale(workers)
    return cluster


def _start_scheduler(kind: Any, name: str, resources: ExitStack) -> Any:
    """Start the scheduler of a queue's workers, as Dask's configuration describes it, with TLS."""
    import dask

    configuration = dask.config.get(f"jobqueue.{kind.job_cls.default_config_name()}")
    options = dict(configuration["scheduler-options"] or {})
    if (options.get("protocol") or "tls").partition("://")[0] != "tls":
        raise InputError(
            f"executor {name}: jobqueue: {name}: scheduler-options: protocol is "
            f"{options['protocol']}; leave it out: workers are reached by TLS only"
        )
    configured = _configured_certificates(options.pop("security", {}))
    security = configured or _write_credentials(
        name, configuration["shared-temp-directory"] or "~", resources
    )
    if not options.setdefault("dashboard", "dashboard_address" in options):
        from jostle.runner.executors.dask_servers import Scheduler

        classes = {"scheduler_cls": Scheduler}
    else:
        classes = {}
    try:
        return kind(
            job_cls=type(kind.job_cls.__name__, (_PrivateJob, kind.job_cls), {}),
            security=security,
            protocol="tls://",
            scheduler_options=options,
            **classes,
        )
    except ValueError as error:
        raise InputError(
            f"executor {name}: it is not said what a job is. Set cores, memory and walltime under "
            f"jobqueue: {name}: in ~/.config/dask/jobqueue.yaml"
        ) from error


class _PrivateJob:
    """A job whose workers and script are protected from other users."""

    def job_script(self) -> str:
        """Return the script of the job."""
        script: str = super().job_script()  # type: ignore[misc]
        return script.replace(_DASK_WORKER, _QUEUE_WORKER, 1)

    @contextmanager
    def job_file(self) -> Iterator[str]:
        """Write the script; dask-jobqueue's own file name could be taken by other users."""
        with tempfile.TemporaryDirectory(prefix="jostle-job-") as folder:
            file = Path(folder, "job.sh")
            file.write_text(self.job_script(), "utf-8")
            yield str(file)


def _configured_certificates(options: Mapping[str, Any]) -> Any:
    """Return the certificates of Dask's configuration if each role has one, and None otherwise."""
    # Dask's functions have no types.
    distributed: Any = import_module("distributed")
    security = distributed.Security(require_encryption=True, **options)
    roles = [security.get_tls_config_for_role(role) for role in ("client", "scheduler", "worker")]
    if not all(role["ca_file"] and role["cert"] for role in roles):
        return None
    # dask-jobqueue requires a file of the key, even if the key is in the certificate's file.
    security.tls_worker_key = security.tls_worker_key or security.tls_worker_cert
    return security


def _write_credentials(name: str, shared: str, resources: ExitStack) -> Any:
    """Make credentials, with files for workers that only this user can read."""
    security = make_credentials()
    parent = os.path.expandvars(os.path.expanduser(shared))
    try:
        temporary = tempfile.TemporaryDirectory(prefix=".jostle-credentials-", dir=parent)
        folder = Path(resources.enter_context(temporary))
        for field in ("tls_ca_file", "tls_worker_cert", "tls_worker_key"):
            file = folder / f"{field}.pem"
            file.touch(mode=0o600)
            file.write_text(getattr(security, field), "utf-8")
            setattr(security, field, str(file))
    except OSError as error:
        reason = f"certificates for workers cannot be written: {error}"
    else:
        if shlex.quote(str(folder)) == str(folder):
            return security
        # The script of a job does not quote the path.
        reason = f"{parent} has characters that a shell interprets"
    raise InputError(
        f"executor {name}: {reason}. Set shared-temp-directory under jobqueue: {name}: in "
        "~/.config/dask/jobqueue.yaml to a folder that all nodes share"
    )
