"""`jostle run --detach`: the same command, in a process that outlives the shell."""

from __future__ import annotations

import os
import shutil
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
from jostle.printable import echo

if TYPE_CHECKING:
    from jostle.running.shards import Shard
    from jostle.running.store import Store
    from jostle.running.sweeps.recording import Recording
    from jostle.running.sweeps.records import Command, Sweep
    from jostle.scenario import Plan

__all__ = ["DETACH", "DETACHED", "KeepsWords", "Swept", "command_of", "detach", "last_lines"]

DETACH: Final = "--detach"
DETACHED: Final = "--detached"
"""What `--detach` becomes in the process that carries out."""
_STORE: Final = "--store"
_WORDS: Final = "jostle.words"
_TELL_AFTER_S = 120.0
_ASK_EVERY_S = 0.05
_TAIL_BYTES = 4_000


class KeepsWords(click.Command):
    """A command that knows the words that it was given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse words, and keep them."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)


def command_of(files: Sequence[str], store_path: str) -> Command:
    """Tell what the current command was given, so that it can be given again."""
    from jostle.running.disk import digest_of
    from jostle.running.shared_store import is_url
    from jostle.running.sweeps.records import Command

    words: tuple[str, ...] = click.get_current_context().meta[_WORDS]
    store = store_path if is_url(store_path) else str(Path(store_path).absolute())
    return Command(
        words=(*_without_place(words), _STORE, store),
        folder=str(Path.cwd()),
        files={file: digest_of(Path(file)) for file in files},
        host=socket.gethostname(),
        process=os.getpid(),
        began_s=time.time(),
    )


@dataclass(frozen=True)
class Swept:
    """What the store says of a command while it carries plans out, and whether it is detached."""

    command: Command
    detached: bool

    def record(self, store: Store, plans: Sequence[Plan], shard: Shard | None) -> Recording:
        """Begin to tell how the command goes."""
        from jostle.running.sweeps.recording import Recording

        runs = [range(len(plan.runs)) for plan in plans]
        shares = [len(one if shard is None else shard.part(one)) for one in runs]
        expected = list(zip((plan.title for plan in plans), shares, strict=True))
        return Recording(store.root, self.command, expected, detached=self.detached)


def _without_place(words: Sequence[str]) -> Iterator[str]:
    """Leave out where results go, which is said anew, and whether the command is detached."""
    left = iter(words)
    for word in left:
        if word == _STORE:
            next(left, None)
        elif word not in (DETACH, DETACHED) and not word.startswith(f"{_STORE}="):
            yield word


def detach(command: Command, store: Path) -> int:
    """Carry a command out in a process of its own, which goes on when the shell ends.

    Parameters
    ----------
    command
        What was given.
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
    from jostle.running.sweeps.records import FOLDER, LOG, is_running

    there = _recorded(store, command)
    if there is not None and there.state == "running":
        raise InputError(f"sweep {command.name} is running already: jostle sweep status")
    place = store / FOLDER / command.name
    log = place / LOG
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    try:
        place.mkdir(parents=True, exist_ok=True)
        # Where folders cannot be locked, nobody will tell that it runs.
        patience_s = 0.0 if is_running(place) else _TELL_AFTER_S
        into = os.open(log, flags, 0o644)
    except OSError as error:
        raise InputError(f"cannot write {log}: {error.strerror}") from error
    with os.fdopen(into, "ab") as out:
        began = out.tell()
        process = subprocess.Popen(
            # Nothing is imported from the current folder.
            [sys.executable, "-P", "-c", "from jostle.cli import main; main()", "run",
             *command.words, DETACHED],
            cwd=command.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **_apart(),
        )  # fmt: skip
    until_s = time.monotonic() + patience_s
    while process.poll() is None and time.monotonic() < until_s:
        there = _recorded(store, command)
        if there is not None and there.command.process == process.pid:
            break
        time.sleep(_ASK_EVERY_S)
    if process.returncode:
        echo(last_lines(log, began), err=True)
        if not began and _recorded(store, command) is None:
            # It never began: nobody would find the log, nor anybody remove it.
            shutil.rmtree(place, ignore_errors=True)
        return process.returncode
    runs = "is done" if process.returncode == 0 else f"runs, process {process.pid}"
    echo(f"sweep {command.name} {runs}; log: {log}")
    # It is meant to go on without anybody who waits for it.
    process.returncode = 0
    return 0


def _recorded(store: Path, command: Command) -> Sweep | None:
    """Find what a store says of a command; None if nothing."""
    from jostle.running.sweeps.records import sweeps_of

    return next((sweep for sweep in sweeps_of(store) if sweep.name == command.name), None)


def _apart() -> dict[str, Any]:
    """Arguments by which a process does not end with the shell that it was started from."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    # A session of its own has no terminal, whose end would be told to it (SIGHUP).
    return {"start_new_session": True}


def last_lines(log: Path, begin: int = 0, lines: int = 10) -> str:
    """Return the end of a log, of what was written from `begin` on."""
    from jostle.foreign_files import open_regular

    try:
        with open_regular(log) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(begin, size - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
