"""Progress of the plans that sweeps carry out, over all their shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import StoreError
from jostle.runner.sweeps.sweep_files import Sweep
from jostle.store.quarantine import quarantined
from jostle.store.store import Reader
from jostle.store.stored_plans import read_plan

__all__ = ["PlanProgress", "progress_by_plan"]


@dataclass(frozen=True)
class PlanProgress:
    """A plan, and the sweeps that carry it out: one sweep, or one per shard.

    Attributes
    ----------
    title
        Of the scenario.
    plan
        Its name in the store; empty if the store has no file of it.
    total, done
        Different runs of the plan, and how many of them are stored.
    failed
        Runs that failed in the latest sweeps and are not stored.
    failure
        The error of one of them; empty if none failed.
    quarantined
        Runs of the plan that were set aside and are not stored; `failed` includes them if the
        latest sweeps set them aside.
    left
        Runs that are still to be carried out.
    rate
        Runs per second of all running sweeps over the last minute; None if it is not known.
    sweeps
        The latest first.
    """

    title: str
    plan: str
    total: int
    done: int
    failed: int
    failure: str
    quarantined: int
    left: int
    rate: float | None
    sweeps: Sequence[Sweep]


def progress_by_plan(
    store: Path, sweeps: Sequence[Sweep], stored: frozenset[str] | None = None
) -> list[PlanProgress]:
    """Group the sweeps of a store by the plans that they carry out, in their order.

    `stored` are the names of the runs in the store; if None they are read.

    Raises
    ------
    StoreError
        When the store cannot be read.
    """
    groups: dict[tuple[str, str], list[Sweep]] = {}
    for sweep in sweeps:
        titles = sweep.progress.titles or [""]
        names = [*sweep.progress.plans, *[""] * len(titles)]
        # A sweep of several scenarios is listed with the last that it has begun.
        begun = max((position for position, name in enumerate(names) if name), default=0)
        title = titles[begun] if begun < len(titles) else ""
        groups.setdefault((names[begun], title), []).append(sweep)
    if stored is None:
        stored = Reader(store).names() if groups else frozenset()
    runs = _StoredRuns(store, stored, quarantined(store))
    return [_plan_progress(runs, name, title, group) for (name, title), group in groups.items()]


@dataclass(frozen=True)
class _StoredRuns:
    """Names of the runs that a store has, and of those that were set aside."""

    store: Path
    stored: frozenset[str]
    quarantined: frozenset[str]


def _plan_progress(
    runs: _StoredRuns, name: str, title: str, sweeps: Sequence[Sweep]
) -> PlanProgress:
    running = [sweep for sweep in sweeps if sweep.state == "running"]
    rates = [sweep.progress.rate for sweep in running if sweep.progress.rate is not None]
    every = [sweep.progress for sweep in sweeps]
    failed = sum(progress.failed for progress in every)
    planned = _runs_of(runs.store, name)
    if planned is None:
        total = sum(progress.total for progress in every)
        done = sum(progress.stored + progress.done - progress.failed for progress in every)
        set_aside = sum(progress.quarantined for progress in every)
    else:
        total, done = len(planned), len(planned & runs.stored)
        set_aside = len((planned & runs.quarantined) - runs.stored)
        # Another sweep may have stored runs that failed here.
        failed = min(failed, total - done)
    left = max(total - done - failed, 0)
    failure = next((progress.failure for progress in every if failed and progress.failure), "")
    rate = sum(rates) if rates else None
    return PlanProgress(title, name, total, done, failed, failure, set_aside, left, rate, sweeps)


def _runs_of(store: Path, name: str) -> frozenset[str] | None:
    """Names of the runs of a plan; None if the store has no file of it."""
    if not name:
        return None
    try:
        return frozenset(run for _, _, run in read_plan(store, name).runs)
    except StoreError:
        return None
