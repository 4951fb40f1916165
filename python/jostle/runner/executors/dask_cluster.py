"""Workers of Dask: processes of a cluster, or of this machine."""

from __future__ import annotations

import logging
import pickle
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.errors import InputError
from jostle.runner.executors.batch_queue import LISTED_BY, queued
from jostle.runner.executors.threads import available_cores
from jostle.runner.executors.tls_credentials import check_address, make_credentials
from jostle.safe_io.child_processes import SAFE_PATH, spawn_context
from jostle.safe_io.scratch_folder import temporary_folder

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.backends.base import MissingRequirement, WorkerRequirements

T = TypeVar("T")

_ANSWERS_IN_S = 3.0
_RETRIED = 1
"""How often a job whose worker died is given to another: the second death is its own fault."""


def engine_version() -> str:
    """Say which engine is installed where this is called."""
    from jostle.backends import create

    return create("sim").version


class DaskExecutor:
    """Sends jobs to workers of Dask.

    Parameters
    ----------
    address
        Of a scheduler, such as `tls://head:8786`; without one, processes of this machine are
        started, and ended by `shutdown`.
    jobs
        How many of those; as many as there are cores if absent.
    queue
        Instead of both, the batch queue that is asked for `jobs` workers; see `queued`.
    warn
        Called with a text if anybody can use the scheduler at `address`.

    Raises
    ------
    InputError
        When Dask is not installed, the scheduler does not answer, certificates for it are missing,
        a worker has another engine, or a batch queue cannot be asked.
    """

    restarts_workers = True

    def __init__(
        self,
        address: str | None = None,
        jobs: int | None = None,
        queue: str | None = None,
        warn: Callable[[str], object] = warnings.warn,
    ) -> None:
        try:
            import distributed
        except ImportError as error:
            text = 'Dask is not installed: pip install "jostle[cluster]"'
            raise InputError(text) from error
        # Its calls have no types.
        library: Any = distributed
        self._dumps: Callable[[object], bytes] = library.protocol.pickle.dumps
        self._queue = queue
        self.cluster: Any = None
        with ExitStack() as resources:
            if address is None:
                self.cluster = _start_cluster(jobs, queue, resources)
            else:
                check_address(address, warn)
            try:
                self.client: Any = library.Client(self.cluster or address, timeout="10 s")
            except (OSError, ValueError) as error:
                raise InputError(f"no scheduler of Dask answers at {address}: {error}") from error
            resources.callback(self.client.close)
            self._check_scheduler()
            check_versions(self.client.run(engine_version, on_error="return"))
            self._resources = resources.pop_all()
        self._executor: Any = self.client.get_executor(pure=False)

    def prepare(self, backend: Backend) -> None:
        """See that workers have what a backend needs, and send it to them if it can be sent.

        Raises
        ------
        InputError
            When a worker lacks something else, or it cannot be sent.
        """
        on_workers: Callable[[], WorkerRequirements] | None = getattr(backend, "on_workers", None)
        if on_workers is None:
            return
        needs = on_workers()
        found: dict[str, MissingRequirement | None] = self.client.run(needs.lacks)
        _refuse({name: lack for name, lack in found.items() if lack and not lack.can_be_sent})
        if found and not any(found.values()):
            return
        from jostle.runner.executors.worker_setup import WorkerSetup

        # Workers that join later get it, too.
        self.client.register_plugin(WorkerSetup(needs.supply()), name=f"jostle-{backend.version}")
        _refuse(self.client.run(needs.lacks))

    def _check_scheduler(self) -> None:
        """See that the scheduler has jostle, whose function it passes on."""
        try:
            self._has_dashboard: bool = self.client.run_on_scheduler(_serves_dashboard)
        except Exception as error:
            text = f"the scheduler at {self._address} cannot load jostle: {error}"
            raise InputError(f"{text}. Install it there, too") from error

    @property
    def workers(self) -> int:
        """How many jobs they carry out at once, now."""
        return sum(self.client.nthreads().values())

    def describe(self) -> str:
        """Say how many workers there are, where, and the link to the scheduler's dashboard."""
        there = self.workers
        link = f", dashboard: {self.client.dashboard_link}" if self._has_dashboard else ""
        return f"{there} worker{'' if there == 1 else 's'} of Dask at {self._address}{link}"

    def missing_workers(self) -> str | None:
        """Say that no worker is connected; None if one is, or if the scheduler does not answer."""
        try:
            there = self.client.nthreads(callback_timeout=_ANSWERS_IN_S)
        except (OSError, TimeoutError, RuntimeError):
            # Whether it is lost is for its client to say, which tries to reach it.
            return None
        if there:
            return None
        if self._queue is not None:
            return (
                f"none of the workers that {self._queue} was asked for is connected; runs wait for "
                f"one. `{LISTED_BY[self._queue]}` lists their jobs"
            )
        if self.cluster is not None:
            return "no worker of Dask is connected; runs wait until one is started again"
        tls = " --tls-ca-file CA --tls-cert CERTIFICATE --tls-key KEY"
        options = tls if self.client.security.tls_client_cert else ""
        add = f"`dask worker {self._address}{options}`, on a machine that has jostle"
        return (
            f"no worker of Dask is connected to {self._address}; runs wait for one. Add one: {add}"
        )

    @property
    def _address(self) -> str:
        return str(self.client.scheduler.address)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Carry out `fn` on some worker."""
        # The scheduler would make objects of what it passes on, and keep them until a worker is
        # done: 500 specifications of a flow take 0.8 MB there, and as bytes a tenth of that.
        future: Future[T] = self._executor.submit(_unpacked, self._dumps((fn, args, kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the scheduler, which forgets what was asked of it; end processes of our own."""
        self._resources.close()


def _start_cluster(jobs: int | None, queue: str | None, resources: ExitStack) -> Any:
    """Start a cluster that only this command can use, and that ends with `resources`."""
    import dask

    settings = {
        "distributed.scheduler.allowed-failures": _RETRIED,
        # Dask imports modules from there; its own default is a folder that others can make.
        "temporary-directory": str(resources.enter_context(temporary_folder("dask"))),
        f"distributed.nanny.pre-spawn-environ.{SAFE_PATH}": "1",
    }
    # Dask's processes share what `multiprocessing` starts once.
    spawn_context()
    with dask.config.set(settings):
        cluster = (
            _of_this_machine(jobs or available_cores())
            if queue is None
            else queued(queue, jobs or 1, resources)
        )
    return resources.enter_context(closing(cluster))


def _of_this_machine(count: int) -> Any:
    """Start what Dask's LocalCluster starts, which cannot do without HTTP servers."""
    import distributed

    from jostle.runner.executors.dask_servers import Scheduler, Worker

    # Its calls have no types.
    library: Any = distributed
    security = make_credentials()
    where = {"host": "127.0.0.1", "protocol": "tls://", "security": security}
    worker = {
        **where,
        "worker_class": Worker,
        "nthreads": 1,
        "memory_limit": library.system.MEMORY_LIMIT // count,
        "silence_logs": logging.CRITICAL,
    }
    return library.SpecCluster(
        scheduler={"cls": Scheduler, "options": {**where, "dashboard": False}},
        workers={number: {"cls": library.Nanny, "options": worker} for number in range(count)},
        security=security,
        silence_logs=logging.CRITICAL,
    )


def _unpacked(packed: bytes) -> Any:
    """Carry out what was packed, on a worker."""
    fn, args, kwargs = pickle.loads(packed)
    return fn(*args, **kwargs)


def _serves_dashboard(dask_scheduler: Any) -> bool:
    """Say whether a scheduler that can load jostle serves a dashboard: without bokeh it has none.

    It has a link to one all the same. Schedulers of our own have no HTTP server at all.
    """
    engine_version()
    served = getattr(dask_scheduler, "http_application", None)
    return bool(getattr(served, "applications", ()))


def _refuse(found: Mapping[str, MissingRequirement | None]) -> None:
    for worker, lack in sorted(found.items()):
        if lack is not None:
            raise InputError(f"the worker {worker} cannot carry the runs out: {lack.why}")


def check_versions(found: dict[str, object]) -> None:
    """See that every worker has the engine that is here.

    Raises
    ------
    InputError
        When one has another, or none.
    """
    here = engine_version()
    for worker, there in sorted(found.items()):
        if there != here:
            says = f"has the engine {there}" if isinstance(there, str) else f"has none: {there}"
            raise InputError(f"the worker {worker} {says}; here it is {here}. Install the same")
