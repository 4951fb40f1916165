"""How far plans are that sweeps carry out, whoever does which part of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import StoreError
from jostle.running.plans import read_plan
from jostle.running.quarantine import quarantined
from jostle.running.store import Reader
from jostle.running.sweeps.records import Sweep

__all__ = ["Part", "parts_of"]


@dataclass(frozen=True)
class Part:
    """A plan, and the sweeps that carry it out: one, or one for every shard of it.

    Attributes
    ----------
    title
        Of the scenario.
    plan
        Its name in the store; empty where the store does not note it.
    total, done
        Different runs of the plan, and how many of them are stored.
    failed
        Runs that failed in the latest sweeps and are not stored.
    quarantined
        Runs of the plan that were set aside and are not stored; `failed` counts them, too, if that
        was now.
    left
        Runs that the sweeps have still to carry out.
    rate
        Runs per second of all that run, over the last minute; None if that cannot be said.
    sweeps
        The latest first.
    """

    title: str
    plan: str
    total: int
    done: int
    failed: int
    quarantined: int
    left: int
    rate: float | None
    sweeps: Sequence[Sweep]


def parts_of(store: Path, sweeps: Sequence[Sweep]) -> list[Part]:
    """Put sweeps of a store together by the plans that they carry out, in the order given.

    Raises
    ------
    StoreError
        When the store cannot be read.
    """
    together: dict[tuple[str, str], list[Sweep]] = {}
    for sweep in sweeps:
        titles = sweep.progress.titles or [""]
        names = [*sweep.progress.plans, *[""] * len(titles)]
        # A sweep of several scenarios stands below the last that it has begun.
        begun = max((at for at, name in enumerate(names) if name), default=0)
        title = titles[begun] if begun < len(titles) else ""
        together.setdefault((names[begun], title), []).append(sweep)
    there = _There(store, Reader(store).names() if together else frozenset(), quarantined(store))
    return [_part(there, name, title, several) for (name, title), several in together.items()]


@dataclass(frozen=True)
class _There:
    """What a store has: runs, and those that were set aside."""

    store: Path
    stored: frozenset[str]
    aside: frozenset[str]


def _part(there: _There, name: str, title: str, sweeps: Sequence[Sweep]) -> Part:
    running = [sweep for sweep in sweeps if sweep.state == "running"]
    rates = [sweep.progress.rate for sweep in running if sweep.progress.rate is not None]
    told = [sweep.progress for sweep in sweeps]
    failed = sum(one.failed for one in told)
    wanted = _runs_of(there.store, name)
    if wanted is None:
        total = sum(one.total for one in told)
        done = sum(one.stored + one.done - one.failed for one in told)
        set_aside = sum(one.quarantined for one in told)
    else:
        total, done = len(wanted), len(wanted & there.stored)
        set_aside = len((wanted & there.aside) - there.stored)
        # Others may have stored since what failed here.
        failed = min(failed, total - done)
    left = max(total - done - failed, 0)
    return Part(
        title, name, total, done, failed, set_aside, left, sum(rates) if rates else None, sweeps
    )


def _runs_of(store: Path, name: str) -> frozenset[str] | None:
    """Names of the runs of a plan; None if it is not noted."""
    if not name:
        return None
    try:
        return frozenset(run for _, _, run in read_plan(store, name).runs)
    except StoreError:
        return None
