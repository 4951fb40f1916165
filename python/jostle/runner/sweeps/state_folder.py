"""The user's own records of the sweeps that they started, outside every store.

    $XDG_STATE_HOME/jostle/sweeps/ID/command.json  the command that `resume` executes
    $XDG_STATE_HOME/jostle/sweeps/ID/log           output of a detached sweep

Strangers may have written a store. So the words, the working folder and the path of the log are
taken from here, and never from a store.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
import time
from pathlib import Path

from jostle.errors import InputError
from jostle.runner.sweeps.sweep_files import (
    COMMAND,
    ID,
    UNREADABLE,
    SweepCommand,
    read_command,
    write_command,
)
from jostle.safe_io.open_folder import OpenFolder

__all__ = ["LOG", "commands_of", "log_of", "make_record_folder", "state_folder", "write_record"]

LOG = "log"
_KEEP_S = 90 * 86_400.0
"""How long the record of an unfinished sweep is kept after its last progress."""


def state_folder() -> Path:
    """Return the folder of the records, whether or not it exists.

    Raises
    ------
    InputError
        When the user has no home folder.
    """
    # "If $XDG_STATE_HOME is either not set or empty, a default equal to $HOME/.local/state should
    # be used"; "all paths … must be absolute" (XDG Base Directory Specification 0.8).
    base = Path(os.environ.get("XDG_STATE_HOME") or "")
    if not base.is_absolute():
        try:
            base = Path.home() / ".local" / "state"
        except RuntimeError as error:
            raise InputError("you have no home folder: set XDG_STATE_HOME") from error
    return base / "jostle" / "sweeps"


def commands_of(store: str) -> dict[str, SweepCommand]:
    """Return the commands that this account started in a store, by the ID of the sweep.

    Parameters
    ----------
    store
        Real path or URL, as in `Command.store`.

    Raises
    ------
    InputError
        When the folder cannot be read, or other users could have written to it.
    """
    folder = state_folder()
    commands = {}
    try:
        _check(folder.parent, folder)
        for name in filter(ID.fullmatch, sorted(os.listdir(folder))):
            # A sweep that finishes meanwhile removes its record.
            with contextlib.suppress(*UNREADABLE):
                _check(folder / name, folder / name / COMMAND)
                commands[name] = read_command(folder / name)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"cannot read {folder}: {error.strerror}") from error
    return {name: command for name, command in commands.items() if command.store == store}


def make_record_folder(name: str) -> Path:
    """Make the folder of a sweep's record, and return it; outdated records are removed.

    Raises
    ------
    InputError
        When it cannot be made, or other users could write to it.
    """
    folder = state_folder()
    try:
        with _opened(name):
            return folder / name
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror}") from error


def write_record(command: SweepCommand) -> Path:
    """Record a command that begins, and return the folder of the record.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    place = state_folder() / command.name
    try:
        with _opened(command.name) as folder:
            write_command(folder, command, mode=0o600)
    except OSError as error:
        raise InputError(f"cannot write to {place}: {error.strerror}") from error
    return place


def remove_record(name: str) -> None:
    """Remove the record of a sweep, if it is there."""
    with contextlib.suppress(OSError), OpenFolder.at(state_folder()) as records:
        records.remove_tree(name)


def log_of(name: str) -> Path | None:
    """Return the log of a sweep; None if it was not detached."""
    log = state_folder() / name / LOG
    return log if log.is_file() and not log.is_symlink() else None


def _opened(name: str) -> OpenFolder:
    """Open the folder of a record, which is made if it is missing; outdated records are removed."""
    base = state_folder().parents[1]
    existing = next(path for path in (base, *base.parents) if path.exists())
    missing = base.relative_to(existing).parts
    with (
        OpenFolder.below(existing, *missing, make=True, mode=0o700) as folder,
        _make_checked(folder, "jostle") as ours,
        _make_checked(ours, "sweeps") as records,
    ):
        _remove_outdated(records)
        return _make_checked(records, name)


def _make_checked(parent: OpenFolder, name: str) -> OpenFolder:
    """Make a folder unless it exists, and check it before anything is written below it."""
    with contextlib.suppress(FileExistsError):
        parent.new_folder(name, 0o700).close()
    _check(parent.path / name)
    return parent.folder(name)


def _check(*paths: Path) -> None:
    """Refuse files and folders that another user could have made or could change."""
    for path in paths:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise InputError(f"{path} is a symbolic link, which is not followed: remove it")
        if not hasattr(os, "geteuid"):
            continue  # On Windows, a user's folders are theirs by inheritance of access rights.
        if status.st_uid != os.geteuid():
            raise InputError(
                f"{path} belongs to another user: remove it, or set XDG_STATE_HOME to a folder "
                "that is yours"
            )
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            chmod = f"chmod go-w {shlex.quote(str(path))}"
            raise InputError(f"other users can write to {path}: run `{chmod}`")


def _remove_outdated(folder: OpenFolder) -> None:
    """Remove the records of sweeps that made no progress for `_KEEP_S`.

    The store is not looked at: it may be on a disk that is not mounted now, and a network file
    system whose server is gone would block.
    """
    oldest_s = time.time() - _KEEP_S
    for name in filter(ID.fullmatch, folder.names()):
        # Another process may have removed it meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if folder.lstat(name).st_mtime < oldest_s:
                folder.remove_tree(name)
