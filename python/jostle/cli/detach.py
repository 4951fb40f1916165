"""`jostle run --detach`: the same command, in a process that outlives the shell."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from jostle.cli.options import GroupedCommand
from jostle.errors import InputError
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    import subprocess

    from jostle.runner.shards import Shard
    from jostle.runner.sweeps.heartbeat import SweepHeartbeat
    from jostle.runner.sweeps.sweep_files import SweepCommand
    from jostle.scenario import RunPlan
    from jostle.store.store import Store

__all__ = [
    "DETACH",
    "DETACHED",
    "DetachedSweep",
    "RecordsCommandLine",
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
"""Maximum time to wait for the start of a detached process."""
_ASK_EVERY_S = 0.05
_TAIL_BYTES = 4_000


class RecordsCommandLine(GroupedCommand):
    """A command that keeps its arguments for the sweep record."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments and keep a copy."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)


def command_of(files: Sequence[str], store_path: str) -> SweepCommand:
    """Return the current command line in a form that can be recorded and resumed."""
    import socket

    from jostle.runner.sweeps.sweep_files import SweepCommand
    from jostle.store.disk import digest_of

    words: tuple[str, ...] = click.get_current_context().meta[_WORDS]
    store = real_store(store_path)
    return SweepCommand(
        words=_with_options(tuple(_without_store(words)), _STORE, store),
        folder=str(Path.cwd()),
        files={file: digest_of(Path(file)) for file in files},
        host=socket.gethostname(),
        process=os.getpid(),
        began_s=time.time(),
        store=store,
    )


def real_store(store_path: str) -> str:
    """Return the URL or the real path of a store, by which records identify it."""
    from jostle.store.object_storage import is_url

    return store_path.rstrip("/") if is_url(store_path) else os.path.realpath(store_path)


@dataclass(frozen=True)
class DetachedSweep:
    """A command that is recorded while its plans run, and whether it is detached."""

    command: SweepCommand
    detached: bool

    def record(self, store: Store, plans: Sequence[RunPlan], shard: Shard | None) -> SweepHeartbeat:
        """Return the heartbeat that records the command."""
        from jostle.runner.sweeps.heartbeat import SweepHeartbeat

        runs = [range(len(plan.runs)) for plan in plans]
        shares = [len(every if shard is None else shard.select(every)) for every in runs]
        expected = list(zip((plan.title for plan in plans), shares, strict=True))
        return SweepHeartbeat(store.root, self.command, expected, detached=self.detached)


def _with_options(words: Sequence[str], *options: str) -> tuple[str, ...]:
    """Add options at the end, or before `--`, after which all words are files."""
    end = words.index("--") if "--" in words else len(words)
    return (*words[:end], *options, *words[end:])


def _without_store(words: Sequence[str]) -> Iterator[str]:
    """Remove the store, which is added as a real path, and the detach options."""
    remaining = iter(words)
    for word in remaining:
        if word == _STORE:
            next(remaining, None)
        elif word not in (DETACH, DETACHED) and not word.startswith(f"{_STORE}="):
            yield word


def detach(command: SweepCommand, store: Path) -> int:
    """Run a command in a separate process that continues when the shell ends.

    Parameters
    ----------
    command
        Command from the current command line or the user's own records, never from a store.
    store
        Folder of the command's store.

    Returns
    -------
    int
        0 if the process runs; else its exit status.

    Raises
    ------
    InputError
        If the command runs already, the store cannot be read, or the log cannot be written.
    """
    from jostle.runner.sweeps.state_folder import LOG, make_record_folder, remove_record
    from jostle.runner.sweeps.sweep_files import (
        COMMAND,
        FOLDER,
        is_running,
        open_sweep_folder,
        sweeps_of,
    )

    shown = next((sweep for sweep in sweeps_of(store) if sweep.name == command.name), None)
    if shown is not None and shown.state == "running":
        raise InputError(f"sweep {command.name} is running already: jostle sweep status")
    record = make_record_folder(command.name)
    log = record / LOG
    place = store / FOLDER / command.name
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    try:
        open_sweep_folder(place, make=True).close()
        # Where files cannot be locked, the process is never recorded, so do not wait.
        patience_s = 0.0 if is_running(place) else _PATIENCE_S
        into = os.open(log, flags, 0o600)
    except OSError as error:
        raise InputError(f"cannot write {error.filename}: {error.strerror}") from error
    with os.fdopen(into, "ab") as out:
        began = out.tell()
        process = _start(command, out)
    until_s = time.monotonic() + patience_s
    while process.poll() is None and time.monotonic() < until_s:
        if _recorded_process(record) == process.pid:
            break
        time.sleep(_ASK_EVERY_S)
    if process.returncode:
        echo(last_lines(log, began), err=True)
        if not began and not (record / COMMAND).exists():
            # The process never started: remove the record, because its log does not exist.
            remove_record(command.name)
            with contextlib.suppress(OSError), OpenFolder.below(store, FOLDER) as sweeps:
                sweeps.remove_empty(command.name)
        return process.returncode
    runs = "is done" if process.returncode == 0 else f"runs, process {process.pid}"
    echo(f"sweep {command.name} {runs}; log: {log}")
    # The process outlives this one; setting a return code suppresses Popen's warning.
    process.returncode = 0
    return 0


def _start(command: SweepCommand, out: BinaryIO) -> subprocess.Popen[bytes]:
    """Start the command in a process that outlives the shell."""
    import subprocess

    return subprocess.Popen(
        # -P: import nothing from the current folder.
        [sys.executable, "-P", "-c", "from jostle.cli import main; main()", "run",
         *_with_options(command.words, DETACHED)],
        cwd=command.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **_apart(),
    )  # fmt: skip


def _recorded_process(record: Path) -> int | None:
    """Return the process in the user's own record of a sweep; None if there is no record."""
    from jostle.runner.sweeps.sweep_files import UNREADABLE, read_command

    try:
        return read_command(record).process
    except UNREADABLE:
        return None


def _apart() -> dict[str, Any]:
    """Return Popen arguments for a process that outlives the shell."""
    if sys.platform == "win32":
        import subprocess

        return {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    # Closing the terminal sends no SIGHUP to a separate session.
    return {"start_new_session": True}


def last_lines(log: Path, begin: int = 0, lines: int = 10) -> str:
    """Return the last lines of a log after byte `begin`."""
    from jostle.safe_io.untrusted_files import open_regular

    try:
        with open_regular(log) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(begin, size - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
