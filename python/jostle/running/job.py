"""A job: some runs, with all that another process needs to carry them out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import JostleError
from jostle.foreign_code import ForeignCode, admit_all, admitted
from jostle.implementations import Programs
from jostle.locked_folders import TemporaryFolder
from jostle.python_controllers.sources import DIGEST
from jostle.running.watch import Watch

if TYPE_CHECKING:
    from jostle.backends import Backend, RunRecord, Spec
    from jostle.running.writer import Writer

__all__ = ["Done", "Ended", "Job", "Stop"]

_STOP = "stop"
"""The file that is there when the user wants the runs no more."""


class Stop:
    """Whether the user wants the runs no more: false until `set`, in every process that has it.

    In other processes it is a file that all of them see; where they do not share a file system, a
    run that has begun goes on to its end.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._folder: TemporaryFolder | None = None
        self._lock = threading.Lock()

    def __call__(self) -> bool:
        """Whether to give up."""
        return self._event.is_set()

    def set(self) -> None:
        """Stop every run that has not ended."""
        with self._lock:
            self._event.set()
            if self._folder is not None:
                (self._folder.path / _STOP).touch()

    def close(self) -> None:
        """Forget the other processes: nothing of the plan runs any more."""
        with self._lock:
            if self._folder is not None:
                self._folder.remove()
                self._folder = None

    def __reduce__(self) -> tuple[Callable[[Path], _Elsewhere], tuple[Path]]:
        with self._lock:
            if self._folder is None:
                self._folder = TemporaryFolder("stop")
            return _Elsewhere, (self._folder.path / _STOP,)


@dataclass(frozen=True)
class _Elsewhere:
    """A `Stop` of another process."""

    file: Path

    def __call__(self) -> bool:
        """Whether to give up."""
        return self.file.exists()


@dataclass(frozen=True)
class Done:
    """What became of one run of a job.

    Attributes
    ----------
    error
        Why it failed; None if it did not.
    record
        The run, where it has no store to go to.
    quarantined
        Whether it failed because it kills whatever carries it out.
    """

    error: str | None = None
    record: RunRecord | None = None
    quarantined: bool = False


@dataclass(frozen=True)
class Ended:
    """What became of a job.

    Attributes
    ----------
    done
        As many as the job has specs, in their order, unless the user wanted no more.
    took_s, storing_s
        Seconds of real time: of the runs, and of storing them at the end.
    """

    done: Sequence[Done]
    took_s: float
    storing_s: float


@dataclass(frozen=True)
class Job:
    """Some runs. Called, they are carried out, and go to the writer if there is one; it pickles.

    Attributes
    ----------
    backend
        What runs them. Backends of the registry pickle as what they were made of.
    versions
        Its version for each, when the runs were planned.
    writer
        Where they go; without one they are returned whole.
    specs
        What to run, one after the other.
    stop
        Whether to give up.
    foreign
        Foreign code that they need and that was admitted here.
    watched
        Whether a run that does not end ends its process.
    """

    backend: Backend
    versions: Sequence[str]
    writer: Writer | None
    specs: Sequence[Spec]
    stop: Callable[[], bool]
    foreign: Sequence[ForeignCode]
    watched: bool = False

    @classmethod
    def of(
        cls,
        backend: Backend,
        writer: Writer | None,
        specs: Sequence[Spec],
        stop: Stop,
        *,
        watched: bool = False,
    ) -> Job:
        """Make the job of specs."""
        versions = [backend.version_of(spec) for spec in specs]
        digests = {digest for spec in specs for digest in _foreign_digests(spec)}
        known = map(admitted, sorted(digests))
        foreign = [code for code in known if code is not None]
        return cls(backend, versions, writer, specs, stop, foreign, watched)

    def __call__(self) -> Ended:
        """Carry the runs out; one that fails does not stop the others.

        Raises
        ------
        StoreError
            When runs cannot be stored.
        """
        began_s = time.perf_counter()
        admit_all(self.foreign)
        try:
            if self.watched:
                with Watch() as watch:
                    done = self._each(watch)
            else:
                done = self._each(None)
        finally:
            ran_s = time.perf_counter()
            if self.writer is not None:
                self.writer.settle()
        return Ended(done, ran_s - began_s, time.perf_counter() - ran_s)

    def _each(self, watch: Watch | None) -> list[Done]:
        done: list[Done] = []
        for spec, version in zip(self.specs, self.versions, strict=True):
            if self.stop():
                break
            if watch is not None:
                watch.allow(self.backend.patience_s(spec))
            done.append(self._one(spec, version))
        return done

    def _one(self, spec: Spec, version: str) -> Done:
        try:
            here = self.backend.version_of(spec)
        except JostleError as error:
            return Done(str(error))
        if here != version:
            return Done(
                f"the backend `{self.backend.name}` is {here} here, and {version} where the "
                "run was planned"
            )
        try:
            record = self.backend.run(spec, self.stop)
        except Exception as error:
            return Done(str(error).strip() or type(error).__name__)
        if self.writer is None:
            return Done(record=record)
        # The series of a large sweep do not fit into memory: from here on they live in the store.
        self.writer.put(record)
        return Done()


def _foreign_digests(spec: Spec) -> Iterator[str]:
    """Yield the digest of every piece of foreign code that a run names, admitted or not."""
    for flow in spec["flows"]:
        parameters: Mapping[str, Any] = flow["controller"]["parameters"]
        if DIGEST in parameters:
            yield str(parameters[DIGEST])
        quic = flow.get("quic")
        theirs = None if quic is None else quic.get("implementation")
        if theirs is not None:
            commands = theirs["commands"]
            yield Programs.of(commands["server"], commands["client"]).digest()
