"""Records in a store of the sweeps that are carried out in it, for display.

    .sweeps/ID/command.json   words, working folder, host and process, for display only
    .sweeps/ID/progress.json  how many runs are done, written about once a second
    .sweeps/ID/stop           exists while a user wants the sweep to stop
    .sweeps/ID/lock           locked while the command runs

ID is a hash of the command, so that a repeated command reuses its folder. The lock ends with the
process of the command. A sweep that is not locked and has not ended was killed.

Any user who can write to the store can write these files. So their text is shown and never
executed, and the paths in it are never opened. `state_folder.py` has the commands to execute.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from jostle.errors import InputError, StoreError
from jostle.safe_io.folder_lock import LockFile
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.untrusted_files import read_json

__all__ = ["State", "Sweep", "SweepCommand", "SweepProgress", "find", "sweeps_of"]

FOLDER = ".sweeps"
COMMAND = "command.json"
PROGRESS = "progress.json"
STOP = "stop"
LOCK = "lock"
FORMAT = "jostle.sweep/1"
ID = re.compile(r"[0-9a-f]{8}")
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""Raised when a record is read that is missing, damaged or of another version."""

State = Literal["running", "finished", "stopped", "failed", "killed"]
_ENDS = ("finished", "stopped", "failed")
_MOST_BYTES = 4_000_000
"""Of each file: the words of a command are the longest part."""
_LATEST_S = 32e9
"""The year 2984: every system has a calendar for it."""
_MOST_RUNS = 10**12


@dataclass(frozen=True)
class SweepCommand:
    """A command that carries plans out.

    Attributes
    ----------
    words
        Arguments of `jostle run`, with the store as in `store`.
    folder
        Its working folder.
    files
        Scenario, as named in the words → SHA-256 of the file.
    host, process
        Name of the machine and ID of the process that carries it out.
    began_s
        When it began, in seconds since 1970.
    store
        Real absolute path or URL of its store; empty in records of earlier versions.
    """

    words: tuple[str, ...]
    folder: str
    files: Mapping[str, str]
    host: str
    process: int
    began_s: float
    store: str

    @property
    def name(self) -> str:
        """ID of the sweep."""
        text = json.dumps([self.folder, *self.words])
        return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass
class SweepProgress:
    """How many runs of a command are done.

    Attributes
    ----------
    titles
        Of its scenarios.
    plans
        Names of its plans in the store; empty where a plan is not recorded.
    total
        Different runs of its plans.
    stored
        How many of them were in the store before.
    done
        Runs that it has finished, including failed runs.
    failed, quarantined
        How many of those failed, and how many of these killed their workers.
    at_s
        When this was written, in seconds since 1970.
    since_s, since_done
        An earlier time, up to a minute ago, and the value of `done` then.
    ended
        How it ended; None until then.
    why
        The error that ended it.
    failure
        The error of the run that failed last.
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
    failure: str = ""

    @property
    def remaining_runs(self) -> int:
        """Runs that are still to be carried out."""
        return max(self.total - self.stored - self.done, 0)

    @property
    def rate(self) -> float | None:
        """Runs per second over the last minute; None if it is not known yet."""
        duration_s = self.at_s - self.since_s
        done = self.done - self.since_done
        return done / duration_s if duration_s > 0 and done > 0 else None


@dataclass(frozen=True)
class Sweep:
    """A sweep as its store shows it.

    Attributes
    ----------
    place
        Its folder.
    command, progress
        For display only: any user of the store can write them.
    state
        Whether it runs, or how it ended.
    """

    place: Path
    command: SweepCommand
    progress: SweepProgress
    state: State

    @property
    def name(self) -> str:
        """Its ID."""
        return self.place.name

    def ask_to_stop(self) -> None:
        """Ask the process that carries it out to stop as Ctrl-C does.

        Raises
        ------
        StoreError
            When the request cannot be written.
        """
        try:
            with open_sweep_folder(self.place) as folder:
                folder.write_new(STOP, b"")
        except FileExistsError:
            return
        except OSError as error:
            raise StoreError(f"cannot write {self.place / STOP}: {error.strerror}") from error


def open_sweep_folder(place: Path, *, make: bool = False) -> OpenFolder:
    """Open the folder of a sweep, `.sweeps/ID` in a store; OSError if that fails."""
    return OpenFolder.below(place.parents[1], FOLDER, place.name, make=make)


def is_running(place: Path) -> bool:
    """Whether a process holds the lock of a sweep, or files cannot be locked."""
    try:
        with open_sweep_folder(place) as folder:
            return LockFile.is_locked(folder, LOCK)
    except FileNotFoundError:
        # The sweep finished, and its folder was removed.
        return False


def state_of(store: Path, name: str) -> State:
    """Return the state of a sweep without reading its command from the store."""
    try:
        return _state_and_progress(store / FOLDER / name)[0]
    except UNREADABLE:
        return "killed"


def sweeps_of(store: Path) -> list[Sweep]:
    """Read all sweeps that a store shows, the latest first, without unreadable ones.

    Raises
    ------
    StoreError
        When the folder cannot be read.
    """
    folder = store / FOLDER
    if folder.is_symlink():
        raise StoreError(f"{folder} is a symbolic link: a store has none")
    sweeps = []
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read the store {store}: {error.strerror}") from error
    for name in names:
        if ID.fullmatch(name):
            with contextlib.suppress(*UNREADABLE):
                state, progress = _state_and_progress(folder / name)
                command = read_command(folder / name)
                sweeps.append(Sweep(folder / name, command, progress, state))
    return sorted(sweeps, key=lambda sweep: -sweep.command.began_s)


def find(store: Path, name: str | None, states: Sequence[State]) -> Sweep:
    """Find a sweep by the beginning of its ID, or the only one in one of `states` if None.

    Raises
    ------
    InputError
        When there is none, or several.
    """
    sweeps = sweeps_of(store)
    if name is None:
        matches = [sweep for sweep in sweeps if sweep.state in states]
    else:
        matches = [sweep for sweep in sweeps if sweep.name.startswith(name)]
    check_choice([sweep.name for sweep in matches], store, name, states)
    return matches[0]


def check_choice(
    matches: Sequence[str], store: Path, name: str | None, states: Sequence[State]
) -> None:
    """Require that a user's choice of a sweep matches exactly one ID, or raise InputError."""
    what = f"sweep that is {' or '.join(states)}" if name is None else f"sweep `{name}`"
    if not matches:
        raise InputError(f"no {what} in {store}: see `jostle sweep status`")
    if len(matches) > 1:
        raise InputError(f"more than one {what} in {store}: choose one of {', '.join(matches)}")


def _state_and_progress(place: Path) -> tuple[State, SweepProgress]:
    # The lock is probed first, so that the end of a sweep is not read before it is written.
    running = is_running(place)
    progress = SweepProgress()
    with contextlib.suppress(FileNotFoundError):
        progress = _progress(_read(place / PROGRESS))
    return "running" if running else progress.ended or "killed", progress


def read_command(place: Path) -> SweepCommand:
    """Read the command in the folder of a sweep; `UNREADABLE` if there is none."""
    record = _read(place / COMMAND)
    if record["format"] != FORMAT:
        raise ValueError("it has another format")
    return SweepCommand(
        words=tuple(str(word) for word in record["words"]),
        folder=str(record["folder"]),
        files={str(file): str(digest) for file, digest in record["files"].items()},
        host=str(record["host"]),
        process=int(record["process"]),
        began_s=_time_s(record["began_s"]),
        store=str(record.get("store", "")),
    )


def _read(path: Path) -> Any:
    # A link in a store could name any file of the user who reads the store.
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return read_json(path, _MOST_BYTES)


def _progress(record: Mapping[str, Any]) -> SweepProgress:
    counts = {
        key: _count(record[key])
        for key in ("total", "stored", "done", "failed", "quarantined", "since_done")
    }
    return SweepProgress(
        titles=[str(title) for title in record["titles"]],
        plans=[str(plan) for plan in record["plans"]],
        **counts,
        at_s=_time_s(record["at_s"]),
        since_s=_time_s(record["since_s"]),
        ended=record["ended"] if record["ended"] in _ENDS else None,
        why=str(record["why"]),
        failure=str(record.get("failure", "")),
    )


def _count(value: Any) -> int:
    count = int(value)
    if not 0 <= count <= _MOST_RUNS:
        raise ValueError("that is no number of runs")
    return count


def _time_s(value: Any) -> float:
    seconds = float(value)
    if not 0.0 <= seconds <= _LATEST_S:
        raise ValueError("that is no time")
    return seconds


def write_command(folder: OpenFolder, command: SweepCommand, *, mode: int = 0o666) -> None:
    """Write the command of a sweep into its folder; OSError if that fails."""
    _replace(folder, COMMAND, {"format": FORMAT, **asdict(command)}, mode)


def write_progress(folder: OpenFolder, progress: SweepProgress) -> None:
    """Write the progress of a sweep into its folder; OSError if that fails."""
    _replace(folder, PROGRESS, asdict(progress), 0o666)


def _replace(folder: OpenFolder, name: str, value: object, mode: int) -> None:
    # Names of files may hold bytes that are not UTF-8: in ASCII they are kept.
    folder.replace(name, json.dumps(value).encode() + b"\n", mode)
