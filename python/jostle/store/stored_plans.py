"""Plans in a store: one file per plan, which lists the runs that belong together.

A file contains the plan's conditions and the names of its runs, whether or not they are stored yet.
So a reader finds the runs of a scenario and the progress of a sweep. The file's name is a hash of
its content. Runs do not depend on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from jostle.errors import StoreError
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.untrusted_files import read_bytes

FORMAT = "jostle.plan/1"
MOST_RUNS = 1_000_000
"""Largest number of runs of a plan."""
PLANS = ".plans"
"""Folder of a store's plans."""
_PLAN_BYTES = 128_000_000
"""Largest size of a plan's file: runs take up to about 50 MB, names of conditions some more."""
_AT_ONCE = 10_000
"""Number of runs that are encoded together."""
_NAME = re.compile(r"[0-9a-f]{32}\.json")
_RUN_ID = re.compile(r"[0-9a-f]{32}")
_SEEDS = range(2**64)


@dataclass(frozen=True)
class PlanFile:
    """A plan's file in a store, and whether it is new."""

    path: Path
    new: bool


@dataclass(frozen=True)
class StoredPlan:
    """A plan as stored in its file.

    Attributes
    ----------
    name
        Name of the file.
    title, backend, backend_version
        Title of the scenario; name and version of the backend.
    conditions
        Grid key → name of the value, for each condition.
    runs
        Position of the condition, seed and name of every run, in the order of the plan.
    """

    name: str
    title: str
    backend: str
    backend_version: str
    conditions: tuple[Mapping[str, str], ...]
    runs: tuple[tuple[int, int, str], ...]


def write_plan(
    store: Path,
    title: str,
    backend: tuple[str, str],
    conditions: Sequence[Mapping[str, str]],
    runs: Collection[tuple[int, int, str]],
) -> PlanFile | None:
    """Record a plan that is being carried out in a store, unless it is too long.

    A store that is not writable is not changed; its runs can still be looked up.

    Parameters
    ----------
    store
        The store's folder.
    title
        Title of the scenario.
    backend
        Name and version of the backend.
    conditions, runs
        See `StoredPlan`.

    Returns
    -------
    PlanFile or None
        None if it could not be written.
    """
    if len(runs) > MOST_RUNS:
        return None
    document = {
        "format": FORMAT,
        "title": title,
        "backend": backend[0],
        "backend_version": backend[1],
        "conditions": [dict(condition) for condition in conditions],
        "runs": [],
    }
    whole = json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    def content() -> Iterator[bytes]:
        """Yield the file in pieces, because the runs take 50 MB."""
        yield whole.removesuffix("]}").encode()
        comma, entries = "", iter(runs)
        while some := list(islice(entries, _AT_ONCE)):
            listed = ",".join([f'[{at},{seed},"{run}"]' for at, seed, run in some])
            yield f"{comma}{listed}".encode()
            comma = ","
        yield b"]}\n"

    digest, length = hashlib.sha256(), 0
    for piece in content():
        digest.update(piece)
        length += len(piece)
    if length > _PLAN_BYTES:
        return None
    name = _name_of(digest)
    with contextlib.suppress(OSError), OpenFolder.below(store, PLANS, make=True) as folder:
        new = not folder.is_own_file(name)
        if new:
            with folder.replacing(name) as file:
                file.writelines(content())
        else:
            folder.refresh(name)
        return PlanFile(folder.path / name, new)
    return None


def forget_plan(plan: Path) -> None:
    """Remove a plan that `write_plan` recorded, after it was replaced by another one."""
    with contextlib.suppress(OSError), OpenFolder.below(plan.parents[1], PLANS) as folder:
        folder.remove(plan.name)


def plan_names(store: Path) -> Iterator[tuple[str, float]]:
    """Yield the names of a store's plans and the times of their last execution, latest first.

    Raises
    ------
    StoreError
        When the folder cannot be read.
    """
    if (store / PLANS).is_symlink():
        raise StoreError(f"{store / PLANS} is a symbolic link: a store has none")
    try:
        with os.scandir(store / PLANS) as entries:
            found = [
                (entry.name, entry.stat(follow_symlinks=False).st_mtime)
                for entry in entries
                if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            ]
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot read the store {store}: {error.strerror}") from error
    yield from sorted(found, key=lambda one: (-one[1], one[0]))


def read_plan(store: Path, name: str) -> StoredPlan:
    """Read a plan by its name.

    Raises
    ------
    StoreError
        When there is no such plan, or it is not one.
    """
    path = store / PLANS / name
    try:
        if not _NAME.fullmatch(name):
            raise ValueError("that is no name of a plan")
        content = read_bytes(path, _PLAN_BYTES)
        if _name_of(hashlib.sha256(content)) != name:
            raise ValueError("it is not what was written")
        plan = _plan(name, json.loads(content))
    except OSError as error:
        raise StoreError(f"cannot read the plan {name}: {error.strerror}") from error
    except (
        *(ValueError, KeyError, TypeError, AttributeError),
        *(OverflowError, RecursionError),
    ) as error:
        raise StoreError(f"{path} is not a plan of this version") from error
    return plan


def _name_of(digest: hashlib._Hash) -> str:
    """Return the name of a plan's file, given the SHA-256 of its content."""
    return f"{digest.hexdigest()[:32]}.json"


def _plan(name: str, told: Mapping[str, Any]) -> StoredPlan:
    if told["format"] != FORMAT:
        raise ValueError("it has another format")
    conditions = tuple(
        {str(key): str(value) for key, value in condition.items()}
        for condition in told["conditions"]
    )
    runs = tuple((int(at), int(seed), str(run)) for at, seed, run in told["runs"])
    if not all(
        0 <= at < len(conditions) and seed in _SEEDS and _RUN_ID.fullmatch(run)
        for at, seed, run in runs
    ):
        raise ValueError("its runs are not of its conditions")
    title, backend, version = (str(told[key]) for key in ("title", "backend", "backend_version"))
    return StoredPlan(name, title, backend, version, conditions, runs)
