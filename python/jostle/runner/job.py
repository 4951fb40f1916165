"""A job: some runs, with all data that another process needs to carry them out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from jostle.errors import JostleError, StoreError
from jostle.kernel_images.controller_modules import PREFIX, is_kernel_controller, name_digest
from jostle.quic.recipes import Programs
from jostle.runner.hang_watchdog import HangWatchdog
from jostle.safe_io.code_consent import ForeignCode, admit_all, admitted
from jostle.safe_io.scratch_folder import TemporaryFolder
from jostle.scenario.python_controllers.source_files import DIGEST
from jostle.store.segments.packing import PackedRun

if TYPE_CHECKING:
    from jostle.backends import Backend, RunRecord, Spec
    from jostle.runner.spec_texts import SpecsOfSeeds
    from jostle.store.writer import Writer

__all__ = ["Batch", "CancelFlag", "Job", "JobOutcome", "RunOutcome"]

_STOP = "stop"
"""File that exists after the user has cancelled the runs."""


class CancelFlag:
    """Whether the user has cancelled the runs: false until `set`, in every process that has it.

    For other processes it is a file. If they do not share a file system, a run that has started is
    completed.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._folder: TemporaryFolder | None = None
        self._lock = threading.Lock()

    def __call__(self) -> bool:
        """Return whether the runs are cancelled."""
        return self._event.is_set()

    def set(self) -> None:
        """Cancel all unfinished runs."""
        with self._lock:
            self._event.set()
            if self._folder is not None:
                (self._folder.path / _STOP).touch()

    def close(self) -> None:
        """Remove the file; no run of the plan is active any more."""
        with self._lock:
            if self._folder is not None:
                self._folder.remove()
                self._folder = None

    def __reduce__(self) -> tuple[Callable[[Path], _FileCancelFlag], tuple[Path]]:
        with self._lock:
            if self._folder is None:
                self._folder = TemporaryFolder("stop")
            return _FileCancelFlag, (self._folder.path / _STOP,)


@dataclass(frozen=True)
class _FileCancelFlag:
    """A `CancelFlag` in another process."""

    file: Path

    def __call__(self) -> bool:
        """Return whether the runs are cancelled."""
        return self.file.exists()


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of one run of a job.

    Attributes
    ----------
    error
        Error message if it failed, else None.
    record
        The run, if there is no store.
    quarantined
        Whether it failed because it kills its process.
    """

    error: str | None = None
    record: RunRecord | None = None
    quarantined: bool = False


@dataclass(frozen=True)
class JobOutcome:
    """Outcome of a job.

    Attributes
    ----------
    done
        One outcome per spec in their order; fewer if the user cancelled.
    took_s, storing_s
        Real time of the runs, and of storing them at the end.
    """

    done: Sequence[RunOutcome]
    took_s: float
    storing_s: float


@runtime_checkable
class SummaryBackend(Protocol):
    """A backend that can do without the records of runs whose series are not kept."""

    def run_summary(self, text: str, like: Spec, cancelled: Callable[[], bool]) -> str:
        """Run a spec, given as canonical JSON; return its summary; see `SimBackend`."""


@dataclass(frozen=True)
class Batch:
    """Runs whose specifications differ in what depends on the seed.

    Attributes
    ----------
    specs
        Specifications by seed.
    version
        Version of the backend for them, at the time of planning.
    seeds
        Seeds of the runs.
    """

    specs: SpecsOfSeeds
    version: str
    seeds: Sequence[int]


@dataclass(frozen=True)
class Job:
    """Runs that are carried out, and stored if there is a writer, when the job is called.

    A job can be pickled.

    Attributes
    ----------
    backend
        Backend. Backends of the registry pickle as their parameters.
    writer
        Writer to a store; without it runs are returned with all of their data.
    batches
        The runs, which are carried out in order.
    stop
        Returns whether the runs are cancelled.
    foreign
        Foreign code that the runs need and that was admitted here.
    watched
        Whether a run that hangs ends its process.
    """

    backend: Backend
    writer: Writer | None
    batches: Sequence[Batch]
    stop: Callable[[], bool]
    foreign: Sequence[ForeignCode]
    watched: bool = False

    @classmethod
    def of(
        cls,
        backend: Backend,
        writer: Writer | None,
        runs: Iterable[tuple[SpecsOfSeeds, int]],
        stop: CancelFlag,
        *,
        watched: bool = False,
    ) -> Job:
        """Create a job from specifications and seeds of runs."""
        batches = []
        for _, alike in groupby(runs, lambda run: id(run[0])):
            (specs, *_), seeds = zip(*alike, strict=True)
            batches.append(Batch(specs, backend.version_of(specs.like), seeds))
        digests = {digest for one in batches for digest in _foreign_digests(one.specs.like)}
        known = map(admitted, sorted(digests))
        foreign = [code for code in known if code is not None]
        return cls(backend, writer, batches, stop, foreign, watched)

    def __call__(self) -> JobOutcome:
        """Carry out the runs; one that fails does not stop the others.

        Raises
        ------
        StoreError
            When runs cannot be stored.
        """
        began_s = time.perf_counter()
        admit_all(self.foreign)
        try:
            if self.watched:
                with HangWatchdog() as watch:
                    done = self._each(watch)
            else:
                done = self._each(None)
        finally:
            ran_s = time.perf_counter()
            if self.writer is not None:
                self.writer.flush_in_worker()
        return JobOutcome(done, ran_s - began_s, time.perf_counter() - ran_s)

    def _each(self, watch: HangWatchdog | None) -> list[RunOutcome]:
        done: list[RunOutcome] = []
        for batch in self.batches:
            problem = self._problem(batch)
            run = self._run_summary if self._needs_no_record(batch) else self._run_record
            names = batch.specs.names(batch.seeds, self.backend.name, batch.version)
            # It depends on what the runs of a batch have in common.
            patience_s = 0.0 if watch is None else self.backend.patience_s(batch.specs.like)
            for seed, name in zip(batch.seeds, names, strict=True):
                if self.stop():
                    return done
                if watch is not None:
                    watch.allow(patience_s)
                done.append(problem or _outcome(partial(run, batch, seed, name)))
        return done

    def _needs_no_record(self, batch: Batch) -> bool:
        return (
            self.writer is not None
            and self.writer.keep == "summary"
            and batch.specs.like.get("capture") is None
            and isinstance(self.backend, SummaryBackend)
        )

    def _problem(self, batch: Batch) -> RunOutcome | None:
        """Return why a batch cannot be run here; None if it can."""
        try:
            here = self.backend.version_of(batch.specs.like)
        except JostleError as error:
            return RunOutcome(str(error))
        if here == batch.version:
            return None
        return RunOutcome(
            f"the backend `{self.backend.name}` is {here} here, and {batch.version} where the "
            "run was planned"
        )

    def _run_record(self, batch: Batch, seed: int, _name: str) -> RunRecord | None:
        record = self.backend.run(batch.specs.spec(seed), self.stop)
        if self.writer is None:
            return record
        # The series of a large sweep do not fit into memory, so they are read from the store.
        self.writer.put(record)
        return None

    def _run_summary(self, batch: Batch, seed: int, name: str) -> None:
        text, backend = batch.specs.text(seed), cast("SummaryBackend", self.backend)
        summary = backend.run_summary(text, batch.specs.like, self.stop)
        run = PackedRun(name, self.backend.name, batch.version, seed, text, summary, {})
        cast("Writer", self.writer).put(run)


def _outcome(run: Callable[[], RunRecord | None]) -> RunOutcome:
    """Return the outcome of a run; only errors of the store are raised."""
    try:
        return RunOutcome(record=run())
    except StoreError:
        raise
    except Exception as error:
        return RunOutcome(str(error).strip() or type(error).__name__)


def _foreign_digests(spec: Spec) -> Iterator[str]:
    """Yield the digests of all foreign code that a run names, admitted or not."""
    for flow in spec["flows"]:
        parameters: Mapping[str, Any] = flow["controller"]["parameters"]
        name = flow["controller"]["name"]
        if is_kernel_controller(name):
            yield name_digest(name.removeprefix(PREFIX))
        if DIGEST in parameters:
            yield str(parameters[DIGEST])
        quic = flow.get("quic")
        theirs = None if quic is None else quic.get("implementation")
        if theirs is not None:
            commands = theirs["commands"]
            yield Programs.of(commands["server"], commands["client"]).digest()
