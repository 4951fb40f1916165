"""Carries a plan out: what the store holds is taken from there, the rest is run and stored."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jostle.backends import Backend, Run, run_id
from jostle.errors import (
    InputError,
    InterruptedRunError,
    LostExecutorError,
    StoreError,
    name_source,
)
from jostle.results import Failure, Result, ResultSet
from jostle.running import repeats
from jostle.running.attention import Attention
from jostle.running.executors import Prepared, is_lost
from jostle.running.job import Done, Ended, Job, Stop
from jostle.running.pace import Pace
from jostle.running.plans import forget_plan, write_plan
from jostle.running.progress import Progress
from jostle.running.quarantine import quarantine
from jostle.running.segments.content import Keep
from jostle.running.writer import Writer

if TYPE_CHECKING:
    from pathlib import Path

    from jostle.running.executors import Executor
    from jostle.running.shards import Shard
    from jostle.running.store import Store
    from jostle.scenario import Plan


WAKE_EVERY_S = 0.5


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
    keep
        Whether the store keeps series, or summaries alone.
    noting
        Whether plans are noted in the store; not if they are steps of something else.
    shard
        The part of every plan that is carried out; all of it if None.
    """

    backend: Backend
    executor: Executor
    store: Store | None
    keep: Keep = "series"
    noting: bool = True
    shard: Shard | None = None

    def carry_out(self, plan: Plan, progress: Progress | None = None) -> ResultSet:
        """Carry out every run of `plan`. A run that fails does not stop the others.

        Where the plan says until when conditions are repeated, those that need it get more runs,
        in rounds.

        Raises
        ------
        InputError
            When the backend cannot do one of them, or workers of the executor lack what it needs;
            then none is run.
        InterruptedRunError
            On KeyboardInterrupt; runs that had finished are stored, the others leave no trace.
        LostExecutorError
            When the executor gave up what it had been given; what had finished is stored.
        StoreError
            When a result cannot be stored; what was stored before is intact.
        """
        captured = any(planned.spec.get("capture") for planned in plan.one_of_each())
        with name_source(plan.source):
            for refusal in refusals(plan, self.backend).values():
                raise refusal.error()
            if captured and self.store is not None and not self.store.takes_captures:
                raise InputError("capture: its files need a store that is a folder")
        repeats.check(plan)
        if isinstance(self.executor, Prepared):
            self.executor.prepare(self.backend)
        progress = progress or Progress()
        outcome = _Outcome()
        noted: Path | None = None
        while True:
            results, noted = self._round(plan, outcome, progress, noted)
            more = repeats.more_repeats(plan, results)
            if not more:
                results.said = repeats.unsettled(plan, results)
                if self.store is not None:
                    self.store.share_plan(noted)
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
        # Whether a condition is repeated depends on all of its runs; and how many those are at the
        # end, which a plan's note says, no shard knows of the others.
        whole_conditions = self.shard is not None and plan.until is not None
        mine = range(len(plan.conditions))
        if self.shard is not None and whole_conditions:
            mine = self.shard.part(mine)
        if self.store is not None and self.noting and not whole_conditions:
            made_by = (self.backend.name, self.backend.version)
            written = write_plan(self.store.root, plan.title, made_by, plan.conditions, places)
            if written is not None:
                progress.noted(written.path.name)
            new = written.path if written is not None and written.new else None
            if noted is not None and new != noted:
                forget_plan(noted)
            noted = new
        wanted: dict[str, int] = {}
        for position, (condition, _, name) in enumerate(places):
            if condition in mine and name not in outcome.runs and name not in outcome.errors:
                wanted.setdefault(name, position)
        if self.shard is not None and not whole_conditions:
            wanted = dict(self.shard.part(list(wanted.items())))
        self._run(plan, wanted, outcome, progress)
        found, errors = outcome.runs, outcome.errors
        results = ResultSet(
            plan.title,
            self.backend.name,
            self.backend.version,
            conditions=plan.conditions,
            results=[Result(c, s, found[n]) for c, s, n in places if c in mine and n in found],
            failures=[Failure(c, s, errors[n]) for c, s, n in places if c in mine and n in errors],
        )
        return results, noted

    def _run(
        self, plan: Plan, wanted: Mapping[str, int], outcome: _Outcome, progress: Progress
    ) -> None:
        """Look runs up by name, and carry out what is missing; `wanted` says where in the plan."""
        writer = None if self.store is None else Writer(self.store, self.keep)
        work = _Work(self, writer, plan, wanted, progress)
        try:
            self._look_up(wanted, outcome)
            progress.begin(len(wanted), sum(name in outcome.runs for name in wanted))
            missing = [name for name in wanted if name not in outcome.runs]
            work.carry_out(missing, outcome)
            self._look_up([name for name in missing if name not in outcome.errors], outcome)
        except KeyboardInterrupt as interrupt:
            # Runs that are being written finish writing; the others stop at once.
            work.give_up()
            raise InterruptedRunError(self._kept(wanted), len(wanted), self.shard) from interrupt
        except _LostError as lost:
            work.give_up()
            raise LostExecutorError(self._kept(wanted), len(wanted)) from lost
        except BaseException:
            with contextlib.suppress(StoreError):
                work.give_up()
            raise
        finally:
            work.stop.close()
            progress.end()
        for name in missing:
            if name not in outcome.runs and name not in outcome.errors:
                raise StoreError(f"cannot store run {name}: what is written there does not last")

    def _kept(self, wanted: Collection[str]) -> int | None:
        return None if self.store is None else self.store.count(wanted)

    def _look_up(self, names: Iterable[str], outcome: _Outcome) -> None:
        if self.store is not None:
            outcome.runs.update(self.store.find(names, series=self.keep == "series"))


class _LostError(Exception):
    """An executor gave up what it had been given."""


class _Work:
    """The runs of a plan on their way through an executor."""

    def __init__(
        self,
        session: Session,
        writer: Writer | None,
        plan: Plan,
        wanted: Mapping[str, int],
        progress: Progress,
    ) -> None:
        self.stop = Stop()
        self._backend = session.backend
        self._executor = session.executor
        self._watched: bool = getattr(session.executor, "restarts_workers", False)
        self._writer = writer
        self._plan = plan
        self._wanted = wanted
        self._progress = progress
        self._attention = Attention(session.executor, progress)
        self._pace = Pace(getattr(session.executor, "workers", 0))
        self._suspects: list[str] = []
        self._alone = False
        self._futures: dict[Future[Ended], Sequence[str]] = {}
        # To wait for a thousand futures costs more than a small run, each time.
        self._ended: queue.SimpleQueue[Future[Ended]] = queue.SimpleQueue()

    def carry_out(self, missing: Sequence[str], outcome: _Outcome) -> None:
        """Carry runs out, and note what became of them."""
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
                # One at a time, so that nothing else is there to be blamed.
                self._submit([self._suspects.pop()], suspected=True)
            # Woken now and then, because a signal that another thread receives does not end
            # the wait of this one.
            try:
                future = self._ended.get(timeout=WAKE_EVERY_S)
            except queue.Empty:
                self._attention.look()
            else:
                self._settle(future, self._futures.pop(future), outcome)
            if self._writer is not None:
                self._writer.flush_if_due()
        if self._writer is not None:
            self._writer.flush()

    def _submit(self, names: Sequence[str], *, suspected: bool = False) -> None:
        specs = [self._plan.runs[self._wanted[name]].spec for name in names]
        job = Job.of(self._backend, self._writer, specs, self.stop, watched=self._watched)
        future = self._executor.submit(job)
        self._futures[future] = names
        self._alone = suspected
        future.add_done_callback(self._ended.put)

    def _settle(self, future: Future[Ended], names: Sequence[str], outcome: _Outcome) -> None:
        """Take what became of runs."""
        if future.cancelled():
            # Nobody here has done that: Dask gives up what is out when its scheduler is gone.
            raise _LostError
        error = future.exception()
        if isinstance(error, StoreError):
            # That is not the runs' fault.
            raise error
        if error is not None and is_lost(error):
            if not self._alone:
                self._suspects += names
                return
            spec = self._plan.runs[self._wanted[names[0]]].spec
            store = None if self._writer is None else self._writer.store
            text = quarantine(store, names[0], spec, self._backend.patience_s(spec))
            done: Sequence[Done] = [Done(text, quarantined=True)]
        elif error is not None:
            done = [Done(str(error).strip() or type(error).__name__)] * len(names)
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
                planned = self._plan.runs[self._wanted[name]]
                failure = Failure(planned.condition, planned.seed, one.error)
                if one.quarantined:
                    self._progress.quarantined(failure)
                else:
                    self._progress.failed(failure)

    def give_up(self) -> None:
        """Stop what runs, drop what has not begun, wait for it, and write what was finished.

        Raises
        ------
        StoreError
            When that cannot be written.
        """
        self.stop.set()
        # Dask cancels what runs, too, and may never say so: what took it is not waited for.
        wait([future for future in self._futures if not future.cancel()])
        if self._writer is not None:
            self._writer.flush()
