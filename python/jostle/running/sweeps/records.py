"""What a store says of the commands that carry plans out in it.

    .sweeps/ID/command.json   what was given, where, and who carries it out
    .sweeps/ID/progress.json  how far it is, written anew about once a second
    .sweeps/ID/stop           there while somebody wants it to stop
    .sweeps/ID/log            what a detached command prints

ID is a hash of the command, so that the same command, given again, takes the place of itself. The
folder is locked for as long as the command runs, and the lock ends with its process: what is not
locked and has not ended was killed, on whichever machine that was.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from jostle.errors import InputError, StoreError
from jostle.foreign_files import read_json
from jostle.locks import LOCKS_ARE_SHARED, FolderLock

__all__ = ["Command", "Progressed", "State", "Sweep", "find", "sweeps_of"]

FOLDER = ".sweeps"
COMMAND = "command.json"
PROGRESS = "progress.json"
STOP = "stop"
LOG = "log"
FORMAT = "jostle.sweep/1"

State = Literal["running", "finished", "stopped", "failed", "killed"]
_ENDS = ("finished", "stopped", "failed")
_ID = re.compile(r"[0-9a-f]{8}")
_MOST_BYTES = 4_000_000
"""Of each of its files: the words of a command are the longest part."""
_LATEST_S = 32e9
"""The year 2984: every system has a calendar for it."""
_PROBE_S = 0.0 if LOCKS_ARE_SHARED else 0.2
"""How long to ask for the lock of a sweep that may just be looked at by somebody else."""


@dataclass(frozen=True)
class Command:
    """A command that carries plans out.

    Attributes
    ----------
    words
        What was given to `jostle run`, with the store as an absolute path.
    folder
        Where.
    files
        Scenario, as it was given → SHA-256 of the file.
    host, process
        Who carries it out.
    began_s
        Since when, in seconds since 1970.
    """

    words: tuple[str, ...]
    folder: str
    files: Mapping[str, str]
    host: str
    process: int
    began_s: float

    @property
    def name(self) -> str:
        """ID of the sweep."""
        text = json.dumps([self.folder, *self.words])
        return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass
class Progressed:
    """How far a command is.

    Attributes
    ----------
    titles
        Of its scenarios.
    plans
        Names of its plans in the store; empty where a plan is not noted.
    total
        Different runs that it is about.
    stored
        How many of them were there before.
    done
        Runs that it has finished, failed ones among them.
    failed, quarantined
        How many of those failed, and of these, how many killed their workers.
    at_s
        When this was written, in seconds since 1970.
    since_s, since_done
        An earlier time, a minute ago if it is that old, and what was done then.
    ended
        How it ended; None until it has.
    why
        What it failed of.
    """

    titles: list[str] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)
    total: int = 0
    stored: int = 0
    done: int = 0
    failed: int = 0
    quarantined: int = 0
    at_s: float = 0.0
    since_s: float = 0.0
    since_done: int = 0
    ended: Literal["finished", "stopped", "failed"] | None = None
    why: str = ""

    @property
    def left(self) -> int:
        """Runs that have still to be carried out."""
        return max(self.total - self.stored - self.done, 0)

    @property
    def rate(self) -> float | None:
        """Runs per second, over the last minute; None if that cannot be said yet."""
        took_s = self.at_s - self.since_s
        done = self.done - self.since_done
        return done / took_s if took_s > 0 and done > 0 else None


@dataclass(frozen=True)
class Sweep:
    """A sweep as a store has it.

    Attributes
    ----------
    place
        Its folder.
    command, progress
        What was given, and how far it is.
    state
        What has become of it.
    """

    place: Path
    command: Command
    progress: Progressed
    state: State

    @property
    def name(self) -> str:
        """Its ID."""
        return self.place.name

    @property
    def log(self) -> Path | None:
        """What it printed, if it was detached."""
        path = self.place / LOG
        return path if path.is_file() else None

    @property
    def is_own(self) -> bool:
        """Whether it was written by whoever asks."""
        if not hasattr(os, "geteuid"):
            return True
        return (self.place / COMMAND).lstat().st_uid == os.geteuid()

    def ask_to_stop(self) -> None:
        """Ask whoever carries it out to stop, orderly.

        Raises
        ------
        StoreError
            When that cannot be written.
        """
        try:
            (self.place / STOP).touch()
        except OSError as error:
            raise StoreError(f"cannot write {self.place / STOP}: {error.strerror}") from error


def is_running(place: Path) -> bool:
    """Whether a process holds the folder of a sweep, or folders cannot be locked."""
    try:
        lock = FolderLock.take(place, shared=True, wait_s=_PROBE_S)
    except FileNotFoundError:
        # Finished, and forgotten.
        return False
    if lock is not None:
        lock.release()
    return lock is None


def sweeps_of(store: Path) -> list[Sweep]:
    """Read all sweeps of a store, the latest first. What is none, or of another version, is not.

    Raises
    ------
    StoreError
        When the folder cannot be read.
    """
    folder = store / FOLDER
    if folder.is_symlink():
        raise StoreError(f"{folder} is a symbolic link: a store has none")
    found = []
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read the store {store}: {error.strerror}") from error
    for name in names:
        if _ID.fullmatch(name):
            with contextlib.suppress(
                *(OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError)
            ):
                found.append(_read(folder / name))
    return sorted(found, key=lambda sweep: -sweep.command.began_s)


def find(store: Path, name: str | None, states: Sequence[State]) -> Sweep:
    """Find a sweep by the beginning of its ID, or the only one in one of `states` if None.

    Raises
    ------
    InputError
        When there is none, or several.
    """
    every = sweeps_of(store)
    if name is None:
        chosen = [sweep for sweep in every if sweep.state in states]
        what = f"sweep that is {' or '.join(states)}"
    else:
        chosen = [sweep for sweep in every if sweep.name.startswith(name)]
        what = f"sweep `{name}`"
    if not chosen:
        raise InputError(f"no {what} in {store}: see `jostle sweep status`")
    if len(chosen) > 1:
        names = ", ".join(sweep.name for sweep in chosen)
        raise InputError(f"more than one {what} in {store}: choose one of {names}")
    return chosen[0]


def _read(place: Path) -> Sweep:
    # Whether it runs is asked first: then how it ended is not from before it did.
    running = is_running(place)
    told = read_json(place / COMMAND, _MOST_BYTES)
    if told["format"] != FORMAT:
        raise ValueError("it has another format")
    command = Command(
        words=tuple(str(word) for word in told["words"]),
        folder=str(told["folder"]),
        files={str(file): str(digest) for file, digest in told["files"].items()},
        host=str(told["host"]),
        process=int(told["process"]),
        began_s=_time_s(told["began_s"]),
    )
    progress = Progressed()
    with contextlib.suppress(FileNotFoundError):
        progress = _progressed(read_json(place / PROGRESS, _MOST_BYTES))
    state: State = progress.ended or "killed"
    return Sweep(place, command, progress, "running" if running else state)


def _progressed(told: Mapping[str, Any]) -> Progressed:
    numbers = {
        key: int(told[key])
        for key in ("total", "stored", "done", "failed", "quarantined", "since_done")
    }
    return Progressed(
        titles=[str(title) for title in told["titles"]],
        plans=[str(plan) for plan in told["plans"]],
        **numbers,
        at_s=_time_s(told["at_s"]),
        since_s=_time_s(told["since_s"]),
        ended=told["ended"] if told["ended"] in _ENDS else None,
        why=str(told["why"]),
    )


def _time_s(told: Any) -> float:
    seconds = float(told)
    if not 0.0 <= seconds <= _LATEST_S:
        raise ValueError("that is no time")
    return seconds


def write_command(place: Path, command: Command) -> None:
    """Write what a sweep is; OSError if that cannot be."""
    _replace(place / COMMAND, {"format": FORMAT, **asdict(command)})


def write_progress(place: Path, progress: Progressed) -> None:
    """Write how far a sweep is; OSError if that cannot be."""
    _replace(place / PROGRESS, asdict(progress))


def _replace(path: Path, value: object) -> None:
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        partial.write_text(json.dumps(value, ensure_ascii=False) + "\n", "utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
