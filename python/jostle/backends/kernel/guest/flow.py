"""What every flow is, whatever carries it, and how all of them begin and end."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .failure import GuestFailure
from .namespaces import Host


class Flow(Protocol):
    """A flow's two ends.

    Attributes
    ----------
    complete
        Set when all its data have arrived, at `completed_ns` of the monotonic clock.
    failure
        What has kept it from going on, if something has.
    """

    failure: BaseException | None
    complete: threading.Event
    completed_ns: int | None

    def listen(self) -> None:
        """Start the end that waits; return when it can be reached."""

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start the other, with the run's time 0 at `start_ns`; it may wait for one of `flows`."""

    def sample(self) -> bytes:
        """One record, always of the same size."""

    def end(self) -> None:
        """End what would outlive the run."""

    def check(self) -> None:
        """See that both ends did what they were asked to; raise `GuestFailure` if not."""

    def events(self, start_ns: int) -> dict[str, Any]:
        """When what happened, in ns of the run; what did not is absent."""


class FlowOfJob:
    """What flows of every kind keep: their part of the job, and how far they are.

    Parameters
    ----------
    number
        Its position in the job.
    job
        Its part of the job.
    hosts
        All hosts, by name.
    """

    def __init__(self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        self.number = number
        self.failure: BaseException | None = None
        self.completed_ns: int | None = None
        self.complete = threading.Event()
        self._job = job
        self._hosts = hosts
        self._due_ns: int | None = None

    def events(self, start_ns: int) -> dict[str, Any]:
        """When what happened, in ns of the run; what did not is absent.

        `due_ns` is when it was to open.
        """
        moments = {"due_ns": self._due_ns, "completed_ns": self.completed_ns}
        return {name: at - start_ns for name, at in moments.items() if at is not None}

    def check(self) -> None:
        """See that both ends did what they were asked to.

        Raises
        ------
        GuestFailure
            When one did not.
        """
        if self.failure is not None:
            raise GuestFailure(f"flow {self.number}: {self.failure}") from self.failure


class ThreadedFlow(FlowOfJob, ABC):
    """A flow whose ends are threads of this process; what fails in one of them is its failure."""

    def __init__(self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        super().__init__(number, job, hosts)
        self._start_ns = 0
        self._before: Flow | None = None
        # Set when the receiver can be reached, or never will be.
        self._listens = threading.Event()

    def listen(self) -> None:
        """Start the receiver; return when it can be reached."""
        self._thread(self._receive)
        self._listens.wait()

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start the sender, with the run's time 0 at `start_ns`; it may wait for one of `flows`."""
        self._start_ns = start_ns
        after = self._job["after"]
        self._before = None if after is None else flows[after]
        self._thread(self._send)

    def end(self) -> None:
        """Nothing: sockets end with the process that has them."""

    @abstractmethod
    def _receive(self) -> None:
        """Be the receiver, in a thread of its own; set `_listens` when it can be reached."""

    @abstractmethod
    def _send(self) -> None:
        """Be the sender, in a thread of its own."""

    def _thread(self, target: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                target()
            except BaseException as error:
                self.failure = error
                self._listens.set()

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread


class Starts(Protocol):
    """Something that begins at the run's time 0."""

    failure: str | None

    def start(self, start_ns: int) -> None:
        """Begin, with the run's time 0 at `start_ns`."""


def start(flows: Sequence[Flow], timetable: Starts, lead_ns: int) -> int:
    """Start everything; return the moment of the monotonic clock at which the run begins.

    That is `lead_ns` from now or a little later, when all threads wait for it and disciplines have
    come to rest.
    """
    for flow in flows:
        flow.listen()
    # A whole number of them: how long it took to get here must not shift the kernel's ticks.
    start_ns = (time.monotonic_ns() // lead_ns + 2) * lead_ns
    for flow in flows:
        flow.start(start_ns, flows)
    timetable.start(start_ns)
    return start_ns


def has_failed(flows: Sequence[Flow]) -> bool:
    """Tell whether one of them cannot go on, so that the rest of the run would be for nothing."""
    return any(flow.failure is not None for flow in flows)


def check(flows: Sequence[Flow], timetable: Starts) -> None:
    """See that everything did what it was asked to.

    Raises
    ------
    GuestFailure
        When something did not.
    """
    for flow in flows:
        flow.check()
    if timetable.failure is not None:
        raise GuestFailure(timetable.failure)
