"""`jostle run --detach`: the same command, in a process that outlives the shell."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from jostle.errors import InputError
from jostle.open_folder import OpenFolder
from jostle.printable import echo

if TYPE_CHECKING:
    from jostle.running.shards import Shard
    from jostle.running.store import Store
    from jostle.running.sweeps.recording import Recording
    from jostle.running.sweeps.records import Command
    from jostle.scenario import Plan

__all__ = [
    "DETACH",
    "DETACHED",
    "KeepsWords",
    "Swept",
    "command_of",
    "detach",
    "last_lines",
    "real_store",
]

DETACH: Final = "--detach"
DETACHED: Final = "--detached"
"""Replaces `--detach` in the detached process."""
_STORE: Final = "--store"
_WORDS: Final = "jostle.words"
_PATIENCE_S = 120.0
"""How long to wait until a detached process has begun."""
_ASK_EVERY_S = 0.05
_TAIL_BYTES = 4_000


class KeepsWords(click.Command):
    """A command that keeps its arguments for its record."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)


def command_of(files: Sequence[str], store_path: str) -> Command:
    """Describe the current command for its record, so that it can be resumed."""
    from jostle.running.disk import digest_of
    from jostle.running.sweeps.records import Command

    words: tuple[str, ...] = click.get_current_context().meta[_WORDS]
    store = real_store(store_path)
    return Command(
        words=_with_options(tuple(_without_store(words)), _STORE, store),
        folder=str(Path.cwd()),
        files={file: digest_of(Path(file)) for file in files},
        host=socket.gethostname(),
        process=os.getpid(),
        began_s=time.time(),
        store=store,
    )


def real_store(store_path: str) -> str:
    """Return the URL or the real path of a store, by which records name it."""
    from jostle.running.shared_store import is_url

    return store_path.rstrip("/") if is_url(store_path) else os.path.realpath(store_path)


@dataclass(frozen=True)
class Swept:
    """A command that is recorded while it carries plans out, and whether it is detached."""

    command: Command
    detached: bool

    def record(self, store: Store, plans: Sequence[Plan], shard: Shard | None) -> Recording:
        """Return the recording of the command."""
        from jostle.running.sweeps.recording import Recording

        runs = [range(len(plan.runs)) for plan in plans]
        shares = [len(every if shard is None else shard.part(every)) for every in runs]
        expected = list(zip((plan.title for plan in plans), shares, strict=True))
        return Recording(store.root, self.command, expected, detached=self.detached)


def _with_options(words: Sequence[str], *options: str) -> tuple[str, ...]:
    """Add options at the end, or before `--`, behind which all words are files."""
    end = words.index("--") if "--" in words else len(words)
    return (*words[:end], *options, *words[end:])


def _without_store(words: Sequence[str]) -> Iterator[str]:
    """Leave out the store, which is added as a real path, and whether the command is detached."""
    remaining = iter(words)
    for word in remaining:
        if word == _STORE:
            next(remaining, None)
        elif word not in (DETACH, DETACHED) and not word.startswith(f"{_STORE}="):
            yield word


def detach(command: Command, store: Path) -> int:
    """Carry a command out in a separate process, which continues when the shell ends.

    Parameters
    ----------
    command
        From the current command line or from the user's own records, and never from a store.
    store
        Folder of its store.

    Returns
    -------
    int
        0 once it runs; otherwise its exit status.

    Raises
    ------
    InputError
        When it is running already, the store cannot be read, or the log cannot be written.
    """
    from jostle.running.sweeps.records import (
        COMMAND,
        FOLDER,
        is_running,
        open_sweep_folder,
        sweeps_of,
    )
    from jostle.running.sweeps.state_folder import LOG, make_record_folder, remove_record

    shown = next((sweep for sweep in sweeps_of(store) if sweep.name == command.name), None)
    if shown is not None and shown.state == "running":
        raise InputError(f"sweep {command.name} is running already: jostle sweep status")
    record = make_record_folder(command.name)
    log = record / LOG
    place = store / FOLDER / command.name
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    try:
        open_sweep_folder(place, make=True).close()
        # Where files cannot be locked, the process is never recorded.
        patience_s = 0.0 if is_running(place) else _PATIENCE_S
        into = os.open(log, flags, 0o600)
    except OSError as error:
        raise InputError(f"cannot write {error.filename}: {error.strerror}") from error
    with os.fdopen(into, "ab") as out:
        began = out.tell()
        process = subprocess.Popen(
            # Nothing is imported from the current folder.
            [sys.executable, "-P", "-c", "from jostle.cli import main; main()", "run",
             *_with_options(command.words, DETACHED)],
            cwd=command.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **_apart(),
        )  # fmt: skip
    until_s = time.monotonic() + patience_s
    while process.poll() is None and time.monotonic() < until_s:
        if _recorded_process(record) == process.pid:
            break
        time.sleep(_ASK_EVERY_S)
    if process.returncode:
        echo(last_lines(log, began), err=True)
        if not began and not (record / COMMAND).exists():
            # It never began: no sweep is shown whose log this would be.
            remove_record(command.name)
            with contextlib.suppress(OSError), OpenFolder.below(store, FOLDER) as sweeps:
                sweeps.remove_empty(command.name)
        return process.returncode
    runs = "is done" if process.returncode == 0 else f"runs, process {process.pid}"
    echo(f"sweep {command.name} {runs}; log: {log}")
    # It is meant to outlive this process, so Popen has nothing to warn about.
    process.returncode = 0
    return 0


def _recorded_process(record: Path) -> int | None:
    """Return the process that the user's own record of a sweep names; None without a record."""
    from jostle.running.sweeps.records import UNREADABLE, read_command

    try:
        return read_command(record).process
    except UNREADABLE:
        return None


def _apart() -> dict[str, Any]:
    """Return arguments with which a process outlives the shell that started it."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    # A separate session has no terminal, so closing the terminal sends no SIGHUP.
    return {"start_new_session": True}


def last_lines(log: Path, begin: int = 0, lines: int = 10) -> str:
    """Return the last lines of a log, from byte `begin` on."""
    from jostle.foreign_files import open_regular

    try:
        with open_regular(log) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(begin, size - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
