"""Executes plans: loads stored runs from the store; carries out and stores the others."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING

from jostle.backends import Backend, Run, SimBackend
from jostle.errors import (
    InputError,
    InterruptedRunError,
    LostExecutorError,
    StoreError,
    name_source,
)
from jostle.results import ConditionRun, Failure, ResultSet
from jostle.runner import adaptive_repeats
from jostle.runner.batch_size import BatchSizer
from jostle.runner.executors import PreparedExecutor, is_lost
from jostle.runner.job import CancelFlag, Job, JobOutcome, RunOutcome
from jostle.runner.progress import Progress
from jostle.runner.spec_texts import PlanTexts
from jostle.runner.worker_liveness import WorkerLivenessMonitor
from jostle.scenario.plan import TemplateRuns
from jostle.store.quarantine import quarantine
from jostle.store.segments.packing import Keep
from jostle.store.stored_plans import forget_plan, write_plan
from jostle.store.writer import Writer

if TYPE_CHECKING:
    from pathlib import Path

    from jostle.runner.executors import Executor
    from jostle.runner.shards import Shard
    from jostle.scenario import RunPlan
    from jostle.store.store import Store


WAKE_EVERY_S = 0.5


@dataclass(frozen=True)
class RejectedRun:
    """A condition that a backend does not support.

    Attributes
    ----------
    label
        Its name; empty without a grid.
    why
        The keys that are not supported.
    """

    label: str
    why: str

    def error(self) -> InputError:
        """Return an error for the user."""
        return InputError(f"{self.label}: {self.why}" if self.label else self.why)


def refusals(plan: RunPlan, backend: Backend) -> dict[int, RejectedRun]:
    """Return the conditions of a plan that a backend does not support, by position, in order."""
    found: dict[int, RejectedRun] = {}
    check_accepted = backend.check
    if isinstance(backend, SimBackend):
        check_accepted = backend.check_accepted
    for planned in plan.first_run_of_each_condition():
        check = check_accepted if planned.accepted else backend.check
        try:
            check(planned.spec)
        except InputError as error:
            label = str(plan.conditions[planned.condition])
            found[planned.condition] = RejectedRun(label, str(error))
    return found


@dataclass(frozen=True)
class _Outcome:
    """Finished and failed runs, by name."""

    runs: dict[str, Run] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.runs or name in self.errors


@dataclass(frozen=True)
class _PlanEntries(Collection["tuple[int, int, str]"]):
    """The runs of a plan in its order: condition, seed, and name in the store.

    Of a million runs only the names are kept, because the rest follows from the plan.
    """

    texts: PlanTexts
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[tuple[int, int, str]]:
        begin = 0
        for condition, _, seeds in self.texts.conditions():
            end = begin + len(seeds)
            yield from zip(repeat(condition), seeds, self.names[begin:end])
            begin = end

    def __contains__(self, entry: object) -> bool:
        return any(entry == own for own in self)

    def positions(self, names: Collection[str]) -> dict[str, int]:
        """Return the first position of runs in the plan, by name, in the order of `names`."""
        positions = dict.fromkeys(names, -1)
        for position, name in enumerate(self.names) if names else ():
            if positions.get(name) == -1:
                positions[name] = position
        return positions


@dataclass(frozen=True)
class Session:
    """Backend, executor and store for carrying out plans.

    Attributes
    ----------
    backend
        Carries out the runs.
    executor
        Executor of the jobs.
    store
        Store of results; without it all runs are carried out and kept in memory.
    keep
        Whether the store keeps series, or summaries only.
    noting
        Whether plans are recorded in the store; false if they are steps of another task.
    shard
        The part of every plan to carry out; None for all.
    checked
        Whether the caller has removed the conditions that the backend refuses; see `refusals`.
    """

    backend: Backend
    executor: Executor
    store: Store | None
    keep: Keep = "series"
    noting: bool = True
    shard: Shard | None = None
    checked: bool = False

    def carry_out(self, plan: RunPlan, progress: Progress | None = None) -> ResultSet:
        """Carry out every run of `plan`. A run that fails does not stop the others.

        If the plan has a stopping rule for repeats, conditions get more runs in rounds as needed.

        Raises
        ------
        InputError
            When the backend does not support a run, or workers of the executor lack a requirement.
            Then nothing is run.
        InterruptedRunError
            On KeyboardInterrupt. Finished runs are stored, the others leave no trace.
        LostExecutorError
            When the executor lost its jobs. Finished runs are stored.
        StoreError
            When a result cannot be stored. Results that were stored before are intact.
        """
        captured = any(
            planned.spec.get("capture") for planned in plan.first_run_of_each_condition()
        )
        with name_source(plan.source):
            if not self.checked:
                for refusal in refusals(plan, self.backend).values():
                    raise refusal.error()
            if captured and self.store is not None and not self.store.takes_captures:
                raise InputError("capture: its files need a store that is a folder")
        adaptive_repeats.check(plan)
        if isinstance(self.executor, PreparedExecutor):
            self.executor.prepare(self.backend)
        progress = progress or Progress()
        outcome = _Outcome()
        noted: Path | None = None
        while True:
            texts = PlanTexts(plan)
            entries = self._entries(texts)
            noted = self._record_plan(plan, entries, progress, noted)
            self._run(plan, texts, entries, outcome, progress)
            results = self._results(plan, entries, outcome)
            more = adaptive_repeats.more_repeats(plan, results)
            if not more:
                results.said = adaptive_repeats.unsettled(plan, results)
                if self.store is not None:
                    self.store.share_plan(noted)
                return results
            plan = plan.repeated(more)

    def _entries(self, texts: PlanTexts) -> _PlanEntries:
        """Return the runs of a plan."""
        names: list[str] = []
        for _, specs, seeds in texts.conditions():
            version = self.backend.version_of(specs.like)
            names += specs.names(seeds, self.backend.name, version)
        return _PlanEntries(texts, names)

    def _splits_conditions(self, plan: RunPlan) -> bool:
        """Whether runs of one condition may belong to several shards.

        Adaptive repeats need all runs of a condition, so a shard gets complete conditions.
        """
        return self.shard is None or plan.repeat_until is None

    def _conditions(self, plan: RunPlan) -> Collection[int]:
        """Return the positions of the conditions to carry out, completely or in part."""
        every = range(len(plan.conditions))
        if self.shard is None or self._splits_conditions(plan):
            return every
        return self.shard.select(every)

    def _record_plan(
        self,
        plan: RunPlan,
        entries: _PlanEntries,
        progress: Progress,
        earlier: Path | None,
    ) -> Path | None:
        """Write a plan to the store, instead of its `earlier` file, and return its new file.

        A shard with complete conditions cannot write the file, which contains the final number of
        runs of all conditions.
        """
        if self.store is None or not self.noting or not self._splits_conditions(plan):
            return earlier
        made_by = (self.backend.name, self.backend.version)
        written = write_plan(self.store.root, plan.title, made_by, plan.conditions, entries)
        if written is not None:
            progress.on_plan_stored(written.path.name)
        new = written.path if written is not None and written.new else None
        if earlier is not None and new != earlier:
            forget_plan(earlier)
        return new

    def _wanted(self, plan: RunPlan, entries: _PlanEntries, outcome: _Outcome) -> list[str]:
        """Return the names of the runs to carry out that are not in `outcome`."""
        mine = self._conditions(plan)
        runs, errors = outcome.runs, outcome.errors
        unknown = (n for at, _, n in entries if at in mine and n not in runs and n not in errors)
        wanted = list(dict.fromkeys(unknown))
        if self.shard is not None and self._splits_conditions(plan):
            return self.shard.select(wanted)
        return wanted

    def _results(self, plan: RunPlan, entries: _PlanEntries, outcome: _Outcome) -> ResultSet:
        """Return the results of all runs of a plan."""
        mine = self._conditions(plan)
        runs, errors = outcome.runs, outcome.errors
        every = entries if errors else ()
        results = ResultSet(
            plan.title,
            self.backend.name,
            self.backend.version,
            conditions=plan.conditions,
            results=[
                ConditionRun(condition, seed, run)
                for condition, seed, name in entries
                if condition in mine and (run := runs.get(name)) is not None
            ],
            failures=[Failure(c, s, errors[n]) for c, s, n in every if c in mine and n in errors],
        )
        if isinstance(plan.runs, TemplateRuns):
            results.planned_spec = plan.spec_of
        return results

    def _run(
        self,
        plan: RunPlan,
        texts: PlanTexts,
        entries: _PlanEntries,
        outcome: _Outcome,
        progress: Progress,
    ) -> None:
        """Look up runs by name, and carry out missing ones."""
        wanted = self._wanted(plan, entries, outcome)
        writer = None if self.store is None else Writer(self.store, self.keep)
        work = _Work(self, writer, plan, texts, progress=progress)
        try:
            every = self._look_up(wanted, outcome) == len(wanted)
            missing = [] if every else [name for name in wanted if name not in outcome.runs]
            progress.begin(len(wanted), len(wanted) - len(missing))
            work.carry_out(entries.positions(missing), outcome)
            self._look_up([name for name in missing if name not in outcome.errors], outcome)
        except KeyboardInterrupt as interrupt:
            # Runs that are being written are completed; the others stop immediately.
            work.give_up()
            raise InterruptedRunError(
                self._count_stored(wanted), len(wanted), self.shard
            ) from interrupt
        except _LostError as lost:
            work.give_up()
            raise LostExecutorError(self._count_stored(wanted), len(wanted)) from lost
        except BaseException:
            with contextlib.suppress(StoreError):
                work.give_up()
            raise
        finally:
            work.stop.close()
            progress.end()
        for name in missing:
            if name not in outcome:
                raise StoreError(f"cannot store run {name}: what is written there does not last")

    def _count_stored(self, wanted: Collection[str]) -> int | None:
        return None if self.store is None else self.store.count(wanted)

    def _look_up(self, names: Iterable[str], outcome: _Outcome) -> int:
        """Add the stored ones of some runs to an outcome, and return their number."""
        if self.store is None:
            return 0
        found = self.store.find(names, series=self.keep == "series")
        outcome.runs.update(found)
        return len(found)


class _LostError(Exception):
    """An executor lost its jobs."""


class _Work:
    """The runs of a plan during their execution by an executor."""

    def __init__(
        self,
        session: Session,
        writer: Writer | None,
        plan: RunPlan,
        texts: PlanTexts,
        *,
        progress: Progress,
    ) -> None:
        self.stop = CancelFlag()
        self._backend = session.backend
        self._executor = session.executor
        self._watched: bool = getattr(session.executor, "restarts_workers", False)
        self._writer = writer
        self._plan = plan
        self._texts = texts
        self._positions: Mapping[str, int] = {}
        self._progress = progress
        self._attention = WorkerLivenessMonitor(session.executor, progress)
        self._pace = BatchSizer(getattr(session.executor, "workers", 0))
        self._suspects: list[str] = []
        self._alone = False
        self._futures: dict[Future[JobOutcome], Sequence[str]] = {}
        # Waiting for a thousand futures takes longer than a small run, each time.
        self._ended: queue.SimpleQueue[Future[JobOutcome]] = queue.SimpleQueue()

    def carry_out(self, positions: Mapping[str, int], outcome: _Outcome) -> None:
        """Carry out runs, given by name and position in the plan, and record their outcomes."""
        self._positions, missing = positions, list(positions)
        if missing:
            self._attention.begin()
        begun = 0
        while True:
            while begun < len(missing) and len(self._futures) < self._pace.ahead:
                names = missing[begun : begun + self._pace.runs_of_a_job(len(missing) - begun)]
                begun += len(names)
                self._submit(names)
            if not self._futures:
                if not self._suspects:
                    break
                # One at a time, so that the cause of a death is certain.
                self._submit([self._suspects.pop()], suspected=True)
            # Wake up regularly, because a signal that another thread receives does not interrupt
            # this wait.
            try:
                future = self._ended.get(timeout=WAKE_EVERY_S)
            except queue.Empty:
                self._attention.look()
            else:
                self._store_outcomes(future, self._futures.pop(future), outcome)
            if self._writer is not None:
                self._writer.flush_if_due()
        if self._writer is not None:
            self._writer.flush()

    def _submit(self, names: Sequence[str], *, suspected: bool = False) -> None:
        runs = [self._texts.at(self._positions[name]) for name in names]
        job = Job.of(self._backend, self._writer, runs, self.stop, watched=self._watched)
        future = self._executor.submit(job)
        self._futures[future] = names
        self._alone = suspected
        future.add_done_callback(self._ended.put)

    def _store_outcomes(
        self, future: Future[JobOutcome], names: Sequence[str], outcome: _Outcome
    ) -> None:
        """Record the outcomes of a job's runs."""
        if future.cancelled():
            # jostle did not cancel it: Dask cancels futures when its scheduler is lost.
            raise _LostError
        error = future.exception()
        if isinstance(error, StoreError):
            # This error is not specific to the runs.
            raise error
        if error is not None and is_lost(error):
            if not self._alone:
                self._suspects += names
                return
            spec = self._plan.runs[self._positions[names[0]]].spec
            store = None if self._writer is None else self._writer.store
            text = quarantine(store, names[0], spec, self._backend.patience_s(spec))
            done: Sequence[RunOutcome] = [RunOutcome(text, quarantined=True)]
        elif error is not None:
            done = [RunOutcome(str(error).strip() or type(error).__name__)] * len(names)
        else:
            ended = future.result()
            self._pace.ended(len(names), ended.took_s, ended.storing_s)
            done = ended.done
        for name, one in zip(names, done, strict=True):
            if one.error is None:
                if one.record is not None:
                    outcome.runs[name] = one.record
                self._progress.advance()
            else:
                outcome.errors[name] = one.error
                planned = self._plan.runs[self._positions[name]]
                failure = Failure(planned.condition, planned.seed, one.error)
                if one.quarantined:
                    self._progress.quarantined(failure)
                else:
                    self._progress.failed(failure)

    def give_up(self) -> None:
        """Cancel active runs, drop waiting ones, wait for the end, and write finished runs.

        Raises
        ------
        StoreError
            When finished runs cannot be written.
        """
        self.stop.set()
        # Dask also cancels active jobs and may never report their end, so do not wait for them.
        wait([future for future in self._futures if not future.cancel()])
        if self._writer is not None:
            self._writer.flush()
