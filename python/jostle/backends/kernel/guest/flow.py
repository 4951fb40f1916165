"""Interface and lifecycle of flows, independent of the transport."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .failure import GuestFailure
from .namespaces import Host


class Flow(Protocol):
    """Both ends of a flow.

    Attributes
    ----------
    complete
        Set when all data has arrived, at `completed_ns` on the monotonic clock.
    failure
        Error that stopped the flow, if any.
    """

    failure: BaseException | None
    complete: threading.Event
    completed_ns: int | None

    def listen(self) -> None:
        """Start the passive end, and wait until it can be reached."""

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start the active end at time 0, which is `start_ns`; it may wait for one of `flows`."""

    def sample(self) -> bytes:
        """Return the flow's part of a sample, always of the same size."""

    def end(self) -> None:
        """End processes that would outlive the run."""

    def check(self) -> None:
        """Check that both ends succeeded; raise `GuestFailure` if not."""

    def events(self, start_ns: int) -> dict[str, Any]:
        """Return the times of events in ns of the run, without events that did not occur."""


class FlowOfJob:
    """Common state of all flows: the flow's part of the job, and its progress.

    Parameters
    ----------
    number
        Index of the flow in the job.
    job
        The flow's part of the job.
    hosts
        All hosts by name.
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
        """Return the times of events in ns of the run, without events that did not occur.

        `due_ns` is the scheduled start time.
        """
        moments = {"due_ns": self._due_ns, "completed_ns": self.completed_ns}
        return {name: at - start_ns for name, at in moments.items() if at is not None}

    def check(self) -> None:
        """Check that both ends succeeded.

        Raises
        ------
        GuestFailure
            If one failed.
        """
        if self.failure is not None:
            raise GuestFailure(f"flow {self.number}: {self.failure}") from self.failure


class ThreadedFlow(FlowOfJob, ABC):
    """A flow whose ends are threads of this process; an error of a thread becomes its failure."""

    def __init__(self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        super().__init__(number, job, hosts)
        self._start_ns = 0
        self._before: Flow | None = None
        # Set when the receiver can be reached, or has failed.
        self._listens = threading.Event()

    def listen(self) -> None:
        """Start the receiver, and wait until it can be reached."""
        self._thread(self._receive)
        self._listens.wait()

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start the sender, with the run's time 0 at `start_ns`; it may wait for one of `flows`."""
        self._start_ns = start_ns
        after = self._job["after"]
        self._before = None if after is None else flows[after]
        self._thread(self._send)

    def end(self) -> None:
        """Do nothing, because sockets are closed with the process."""

    def _begin_ns(self) -> int:
        """Return the time from which the start delay counts.

        It is time 0, or the completion of the previous flow.
        Blocks until that flow is complete; forever, if it does not complete.
        """
        if self._before is None:
            return self._start_ns
        self._before.complete.wait()
        assert self._before.completed_ns is not None
        return self._before.completed_ns

    @abstractmethod
    def _receive(self) -> None:
        """Run the receiver in its thread; set `_listens` when it can be reached."""

    @abstractmethod
    def _send(self) -> None:
        """Run the sender in its thread."""

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
    """An object that starts at the run's time 0."""

    failure: str | None

    def start(self, start_ns: int) -> None:
        """Start, with the run's time 0 at `start_ns`."""


def start(flows: Sequence[Flow], timetable: Starts, lead_ns: int) -> int:
    """Start everything; return the monotonic time at which the run begins.

    It begins one to two times `lead_ns` from now, when all threads wait for it and the qdiscs are
    idle.
    """
    for flow in flows:
        flow.listen()
    # Rounded to `lead_ns`, so that the setup time does not shift the kernel's ticks.
    start_ns = (time.monotonic_ns() // lead_ns + 2) * lead_ns
    for flow in flows:
        flow.start(start_ns, flows)
    timetable.start(start_ns)
    return start_ns


def has_failed(flows: Sequence[Flow]) -> bool:
    """Return whether a flow has failed, so that the run can be stopped."""
    return any(flow.failure is not None for flow in flows)


def check(flows: Sequence[Flow], timetable: Starts) -> None:
    """Check that all flows and the timetable succeeded.

    Raises
    ------
    GuestFailure
        If one failed.
    """
    for flow in flows:
        flow.check()
    if timetable.failure is not None:
        raise GuestFailure(timetable.failure)
