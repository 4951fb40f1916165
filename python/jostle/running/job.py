"""A job: one run, with all that another process needs to carry it out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.errors import EngineError
from jostle.locked_folders import TemporaryFolder
from jostle.python_controllers.making import adopt, remembered
from jostle.python_controllers.sources import Source

if TYPE_CHECKING:
    from jostle.backends import Backend, Run, Spec
    from jostle.running.store import Store

__all__ = ["Job", "Stop"]

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
class Job:
    """One run. Called, it is carried out, and stored if there is a store; it can be pickled.

    Attributes
    ----------
    backend
        What runs it. Backends of the registry pickle as what they were made of.
    version
        Its version when the run was planned.
    store
        Where it is kept; without one it is returned whole.
    spec
        What to run.
    stop
        Whether to give up.
    sources
        Controllers written in Python that it needs, by digest.
    """

    backend: Backend
    version: str
    store: Store | None
    spec: Spec
    stop: Callable[[], bool]
    sources: Mapping[str, Source]

    @classmethod
    def of(cls, backend: Backend, store: Store | None, spec: Spec, stop: Stop) -> Job:
        """Make the job of a spec."""
        return cls(backend, backend.version_of(spec), store, spec, stop, remembered(spec))

    def __call__(self) -> Run:
        """Carry the run out.

        Raises
        ------
        EngineError
            When this process has another version of the backend than the one that planned the run.
        """
        here = self.backend.version_of(self.spec)
        if here != self.version:
            raise EngineError(
                f"the backend `{self.backend.name}` is {here} here, and {self.version} where the "
                "run was planned"
            )
        adopt(self.sources)
        record = self.backend.run(self.spec, self.stop)
        # The series of a large sweep do not fit into memory: from here on they live in the store.
        return record if self.store is None else self.store.put(record)
