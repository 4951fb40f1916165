"""Carries a plan out: what the store holds is taken from there, the rest is run and stored."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jostle.backends import Backend, Run, run_id
from jostle.errors import InputError, InterruptedRunError, StoreError
from jostle.results import Failure, Result, ResultSet
from jostle.running import repeats
from jostle.running.job import Job, Stop
from jostle.running.plans import write_plan
from jostle.running.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from jostle.running.executors import Executor
    from jostle.running.store import Store
    from jostle.scenario import Plan, PlannedRun


WAKE_EVERY_S = 0.5
MOST_AHEAD = 1024
"""Runs that an executor is given before it has finished others."""


@dataclass(frozen=True)
class Refusal:
    """A condition that a backend cannot do.

    Attributes
    ----------
    label
        Its name; empty without a grid.
    why
        The keys that stand in the way.
    """

    label: str
    why: str

    def error(self) -> InputError:
        """Say it to whoever asked for the condition."""
        return InputError(f"{self.label}: {self.why}" if self.label else self.why)


def refusals(plan: Plan, backend: Backend) -> dict[int, Refusal]:
    """Find the conditions of a plan that a backend cannot do, by position, in order."""
    found: dict[int, Refusal] = {}
    for planned in plan.one_of_each():
        try:
            backend.check(planned.spec)
        except InputError as error:
            label = str(plan.conditions[planned.condition])
            found[planned.condition] = Refusal(label, str(error))
    return found


@dataclass(frozen=True)
class _Outcome:
    """What became of runs, by name."""

    runs: dict[str, Run] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


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

    def carry_out(self, plan: Plan, progress: Progress | None = None) -> ResultSet:
        """Carry out every run of `plan`. A run that fails does not stop the others.

        Where the plan says until when conditions are repeated, those that need it get more runs,
        in rounds.

        Raises
        ------
        InputError
            When the backend cannot do one of them; then none is run.
        InterruptedRunError
            On KeyboardInterrupt; runs that had finished are stored, the others leave no trace.
        StoreError
            When a result cannot be stored; what was stored before is intact.
        """
        for refusal in refusals(plan, self.backend).values():
            raise refusal.error()
        if plan.until is not None:
            repeats.check(plan.until)
        progress = progress or Progress()
        outcome = _Outcome()
        noted: Path | None = None
        while True:
            results, noted = self._round(plan, outcome, progress, noted)
            more = repeats.more_repeats(plan, results)
            if not more:
                results.said = repeats.unsettled(plan, results)
                return results
            plan = plan.repeated(more)

    def _round(
        self, plan: Plan, outcome: _Outcome, progress: Progress, noted: Path | None
    ) -> tuple[ResultSet, Path | None]:
        """Carry out the runs of a plan that are not in `outcome`; its file takes the place of one.

        Returns
        -------
        ResultSet
            All runs of the plan.
        Path or None
            File of the plan in the store, if it was noted now.
        """
        # A plan makes its runs when they are asked for; what is kept of each is its place and name.
        places = [
            (
                planned.condition,
                planned.seed,
                run_id(planned.spec, self.backend.name, self.backend.version_of(planned.spec)),
            )
            for planned in plan.runs
        ]
        if self.store is not None:
            made_by = (self.backend.name, self.backend.version)
            new = write_plan(self.store.root, plan.title, made_by, plan.conditions, places)
            if noted is not None and new != noted:
                noted.unlink(missing_ok=True)
            noted = new
        wanted: dict[str, int] = {}
        for position, (_, _, name) in enumerate(places):
            if name not in outcome.runs and name not in outcome.errors:
                wanted.setdefault(name, position)
        self._run(plan, wanted, outcome, progress)
        found, errors = outcome.runs, outcome.errors
        results = ResultSet(
            plan.title,
            self.backend.name,
            self.backend.version,
            conditions=plan.conditions,
            results=[Result(c, s, found[name]) for c, s, name in places if name in found],
            failures=[Failure(c, s, errors[name]) for c, s, name in places if name in errors],
        )
        return results, noted

    def _run(
        self, plan: Plan, wanted: Mapping[str, int], outcome: _Outcome, progress: Progress
    ) -> None:
        """Look runs up by name, and carry out what is missing; `wanted` says where in the plan."""
        stop = Stop()
        futures: dict[Future[Run], str] = {}
        try:
            if self.store is not None:
                stored = ((name, self.store.get(name)) for name in wanted)
                outcome.runs.update((name, run) for name, run in stored if run is not None)
            progress.begin(len(wanted), sum(name in outcome.runs for name in wanted))
            missing = iter([name for name in wanted if name not in outcome.runs])
            while True:
                for name in itertools.islice(missing, MOST_AHEAD - len(futures)):
                    spec = plan.runs[wanted[name]].spec
                    job = Job.of(self.backend, self.store, spec, stop)
                    futures[self.executor.submit(job)] = name
                if not futures:
                    break
                # Woken now and then, because a signal that another thread receives does not end
                # the wait of this one.
                for future in wait(futures, WAKE_EVERY_S, return_when=FIRST_COMPLETED).done:
                    name = futures.pop(future)
                    planned = plan.runs[wanted[name]]
                    _settle(name, future, planned, outcome, progress)
        except KeyboardInterrupt as interrupt:
            # Runs that are being written finish writing; the others stop at once.
            _give_up(futures, stop)
            store = self.store
            kept = None if store is None else sum(name in store for name in wanted)
            raise InterruptedRunError(kept, len(wanted)) from interrupt
        except BaseException:
            _give_up(futures, stop)
            raise
        finally:
            stop.close()
            progress.end()


def _settle(
    name: str, future: Future[Run], planned: PlannedRun, outcome: _Outcome, progress: Progress
) -> None:
    """Take what became of a run."""
    error = _error_of(future)
    if error is None:
        outcome.runs[name] = future.result()
        progress.advance()
    else:
        outcome.errors[name] = error
        progress.failed(Failure(planned.condition, planned.seed, error))


def _give_up(futures: Collection[Future[Run]], stop: Stop) -> None:
    """Stop what runs, drop what has not begun, and wait until nothing runs any more."""
    stop.set()
    for future in futures:
        future.cancel()
    wait(futures)


def _error_of(future: Future[Run]) -> str | None:
    """Why the run failed; a store that fails is not the run's fault and is raised."""
    error = future.exception()
    if error is None:
        return None
    if isinstance(error, StoreError):
        raise error
    text = str(error).strip()
    return text or type(error).__name__
