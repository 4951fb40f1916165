"""Carries a plan out: what the store holds is taken from there, the rest is run and stored."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from jostle.backends import Backend, Cancelled, Run, run_id
from jostle.errors import InputError, InterruptedRunError, StoreError
from jostle.results import Failure, Result, ResultSet
from jostle.running.progress import Progress

if TYPE_CHECKING:
    from jostle.running.executors import Executor
    from jostle.running.store import Store


WAKE_EVERY_S = 0.5


class PlannedRun(Protocol):
    """One run of a plan."""

    @property
    def condition(self) -> int:
        """Position of its condition."""

    @property
    def seed(self) -> int:
        """Its seed."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """What to run."""


class Plan(Protocol):
    """What `jostle.scenario.Scenario.plan` returns."""

    @property
    def title(self) -> str:
        """Title of the scenario."""

    @property
    def conditions(self) -> Sequence[Mapping[str, str]]:
        """Grid key → name of the value, for every condition."""

    @property
    def runs(self) -> Sequence[PlannedRun]:
        """Every run, in order."""


@dataclass(frozen=True)
class _Kept:
    """A run at its place in a reduced plan."""

    condition: int
    seed: int
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class _Reduced:
    """A plan without some of its conditions."""

    title: str
    conditions: Sequence[Mapping[str, str]]
    runs: Sequence[PlannedRun]


def without(plan: Plan, conditions: Collection[int]) -> Plan:
    """Leave out some conditions of a plan, given by their positions."""
    if not conditions:
        return plan
    kept = [index for index in range(len(plan.conditions)) if index not in conditions]
    place = {index: position for position, index in enumerate(kept)}
    return _Reduced(
        plan.title,
        tuple(plan.conditions[index] for index in kept),
        tuple(
            _Kept(place[planned.condition], planned.seed, planned.spec)
            for planned in plan.runs
            if planned.condition in place
        ),
    )


@dataclass(frozen=True)
class Session:
    """What runs are carried out with.

    Attributes
    ----------
    backend
        Runs them.
    executor
        Where.
    store
        Where results are looked up and kept; without one everything is run and kept in memory.
    """

    backend: Backend
    executor: Executor
    store: Store | None

    def check(self, plan: Plan) -> None:
        """See that the backend can do every run of `plan`.

        Raises
        ------
        InputError
            When it cannot; the text names the keys that stand in the way.
        """
        for error in self.refused(plan).values():
            raise error

    def refused(self, plan: Plan) -> dict[int, InputError]:
        """Find the conditions that the backend cannot do, by position, and why."""
        found: dict[int, InputError] = {}
        for planned in plan.runs:
            if planned.condition in found:
                continue
            try:
                self.backend.check(planned.spec)
            except InputError as error:
                labels = plan.conditions[planned.condition]
                where = ", ".join(f"{key} = {label}" for key, label in labels.items())
                text = f"{where}: {error}" if where else str(error)
                found[planned.condition] = InputError(text)
        return found

    def carry_out(self, plan: Plan, progress: Progress | None = None) -> ResultSet:
        """Carry out every run of `plan`. A run that fails does not stop the others.

        Raises
        ------
        InputError
            When the backend cannot do one of them; then none is run.
        InterruptedRunError
            On KeyboardInterrupt; runs that had finished are stored, the others leave no trace.
        StoreError
            When a result cannot be stored; what was stored before is intact.
        """
        self.check(plan)
        progress = progress or Progress()
        identified = [
            (planned, run_id(planned.spec, self.backend.name, self.backend.version))
            for planned in plan.runs
        ]
        wanted = {name: planned for planned, name in reversed(identified)}
        wanted = dict(reversed(wanted.items()))
        found: dict[str, Run] = {}
        errors: dict[str, str] = {}
        stop = threading.Event()
        try:
            if self.store is not None:
                stored = ((name, self.store.get(name)) for name in wanted)
                found.update((name, run) for name, run in stored if run is not None)
            progress.begin(len(wanted), len(found))
            futures = {
                self.executor.submit(
                    _run_and_store, self.backend, self.store, planned.spec, stop.is_set
                ): name
                for name, planned in wanted.items()
                if name not in found
            }
            pending = set(futures)
            while pending:
                # Woken now and then, because a signal that another thread receives does not end
                # the wait of this one.
                done, pending = wait(pending, WAKE_EVERY_S, return_when=FIRST_COMPLETED)
                for future in done:
                    name = futures[future]
                    error = _error_of(future)
                    if error is None:
                        found[name] = future.result()
                        progress.advance()
                    else:
                        errors[name] = error
                        planned = wanted[name]
                        progress.failed(Failure(planned.condition, planned.seed, error))
        except KeyboardInterrupt as interrupt:
            stop.set()
            # Runs that are being written finish writing; the others stop at once.
            self.executor.shutdown(wait=True, cancel_futures=True)
            store = self.store
            kept = None if store is None else sum(name in store for name in wanted)
            raise InterruptedRunError(kept, len(wanted)) from interrupt
        except StoreError:
            stop.set()
            self.executor.shutdown(wait=True, cancel_futures=True)
            raise
        finally:
            progress.end()
        places = [(planned.condition, planned.seed, name) for planned, name in identified]
        return ResultSet(
            plan.title,
            self.backend.name,
            self.backend.version,
            conditions=plan.conditions,
            results=[Result(c, s, found[name]) for c, s, name in places if name in found],
            failures=[Failure(c, s, errors[name]) for c, s, name in places if name in errors],
        )


def _run_and_store(
    backend: Backend, store: Store | None, spec: Mapping[str, Any], cancelled: Cancelled
) -> Run:
    record = backend.run(spec, cancelled)
    # The series of a large sweep do not fit into memory: from here on they live in the store.
    return record if store is None else store.put(record)


def _error_of(future: Future[Run]) -> str | None:
    """Why the run failed; a store that fails is not the run's fault and is raised."""
    error = future.exception()
    if error is None:
        return None
    if isinstance(error, StoreError):
        raise error
    text = str(error).strip()
    return text or type(error).__name__
