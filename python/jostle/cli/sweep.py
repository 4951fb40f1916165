"""`jostle sweep`: commands that carry plans out in a store, seen from another shell."""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.detaching import DETACH, detach, last_lines
from jostle.cli.environment import Environment
from jostle.cli.options import json_option, store_option
from jostle.cli.run import run
from jostle.errors import InputError
from jostle.printable import echo
from jostle.running.progress import pace_words

if TYPE_CHECKING:
    from jostle.running.sweeps.plans import Part
    from jostle.running.sweeps.records import Sweep

_ASK_EVERY_S = 0.1
_PYTHON = "--python"

_name = click.argument("name", metavar="[SWEEP]", required=False)


@click.group(short_help="See, stop and resume sweeps, from any shell.")
def sweep() -> None:
    """See how far the commands are that carry out runs in a store, stop them, and resume them.

    SWEEP is what `jostle sweep status` calls one, or the beginning of it. It may be left out where
    there is one alone.
    """


@sweep.command(short_help="Show how far sweeps are.")
@_name
@json_option
@store_option
def status(*, name: str | None, as_json: bool, store_path: str) -> None:
    """Show how many runs of each plan are done, have failed and are left, and who carries it out.

    With SWEEP, show its command and the end of its log.
    """
    from jostle.running.sweeps.plans import parts_of
    from jostle.running.sweeps.records import find, sweeps_of

    root = _root(store_path)
    every = sweeps_of(root) if name is None else [find(root, name, ())]
    parts = parts_of(root, every)
    if as_json:
        document = {"schema": "jostle.sweeps/1", "plans": [_told(part) for part in parts]}
        echo(json.dumps(document, ensure_ascii=False))
        return
    if not every:
        echo(f"no sweep is running or was stopped in {root}")
    for part in parts:
        echo(_line_of_part(part))
        for one in part.sweeps:
            echo(f"  {_line_of_sweep(one)}")
    if name is not None:
        (one,) = every
        echo(f"command: jostle run {shlex.join(one.command.words)}\nfolder: {one.command.folder}")
        if one.log is not None:
            echo(f"log: {one.log}\n{last_lines(one.log)}".rstrip())


@sweep.command(short_help="Stop a sweep; what is finished stays.")
@_name
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until it has stopped.",
)
@store_option
def stop(*, name: str | None, wait_s: float, store_path: str) -> int:
    """Stop a sweep as Ctrl-C does, on whichever machine it runs: what is finished is stored.

    The exit status is 1 when it has not ended in time.
    """
    from jostle.running.sweeps.records import find, is_running

    root = _root(store_path)
    found = find(root, name, ("running",))
    if found.state != "running":
        raise InputError(f"sweep {found.name} does not run: it is {found.state}")
    found.ask_to_stop()
    until_s = time.monotonic() + wait_s
    while is_running(found.place):
        if time.monotonic() > until_s:
            echo(f"sweep {found.name} was asked to stop and has not yet", err=True)
            return 1
        time.sleep(_ASK_EVERY_S)
    if not found.place.exists():
        echo(f"sweep {found.name} was finished before it stopped")
        return 0
    ended = find(root, found.name, ()).progress
    there = ended.stored + ended.done - ended.failed
    echo(f"sweep {found.name} has stopped: {there} of {ended.total} runs are in the store")
    return 0


@sweep.command(short_help="Carry on with a sweep that was stopped.")
@_name
@click.option(DETACH, "detached", is_flag=True, help="In a process that outlives this shell.")
@click.option(
    _PYTHON,
    is_flag=True,
    help="Let it run controllers written in Python, where it was begun so.",
)
@store_option
@click.pass_obj
def resume(
    environment: Environment,
    /,
    *,
    name: str | None,
    detached: bool,
    python: bool,
    store_path: str,
) -> Any:
    """Give the command of a sweep again, in its folder, with all its options.

    What is stored is not run again.
    """
    from jostle.running.sweeps.records import find

    root = _root(store_path)
    found = find(root, name, ("stopped", "killed", "failed"))
    if found.state == "running":
        raise InputError(f"sweep {found.name} is running: jostle sweep status {found.name}")
    words = found.command.words
    if not found.is_own:
        raise InputError(f"sweep {found.name} is another user's: give its command yourself")
    if _PYTHON in words and not python:
        raise InputError(f"sweep {found.name} runs code in Python: allow it with {_PYTHON}")
    _check_files(found)
    echo(f"in {found.command.folder}: jostle run {shlex.join(words)}", err=True)
    if detached:
        return detach(found.command, root)
    with contextlib.chdir(found.command.folder):
        return run.main(list(words), "jostle run", standalone_mode=False, obj=environment)


def _check_files(sweep: Sweep) -> None:
    """See that the scenarios are those that the sweep began with."""
    from jostle.running.disk import digest_of

    for file, digest in sweep.command.files.items():
        path = Path(sweep.command.folder, file)
        try:
            same = digest_of(path) == digest
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from error
        if not same:
            raise InputError(
                f"{path} has changed since sweep {sweep.name} began: give its command again, and "
                "what is new is run"
            )


def _root(path: str) -> Path:
    """Folder of a store; of one on object storage, the copy that this machine works with."""
    from jostle.running.shared_store import copy_of, is_url

    root = copy_of(path) if is_url(path) else Path(path)
    if not root.is_dir():
        raise InputError(f"there is no store {root}: `jostle run` makes one")
    return root


def _line_of_part(part: Part) -> str:
    title = part.title or "(no title)"
    words = [f"{title}: {part.done} of {part.total} runs"]
    words += [f"{part.failed} failed"] if part.failed else []
    words += [f"{part.quarantined} set aside"] if part.quarantined else []
    words += [f"{part.left} left"] if part.left else []
    return ", ".join([*words, *pace_words(part.rate, part.left)])


def _line_of_sweep(sweep: Sweep) -> str:
    told, command = sweep.progress, sweep.command
    words = [f"{sweep.name} {sweep.state}", f"{told.stored + told.done} of {told.total}"]
    words += pace_words(told.rate, told.left) if sweep.state == "running" else []
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(command.began_s))
    words.append(f"process {command.process} of {command.host}, begun {since}")
    return ", ".join(words) + (f": {told.why}" if told.why else "")


def _told(part: Part) -> dict[str, Any]:
    keys = ("title", "plan", "total", "done", "failed", "quarantined", "left", "rate")
    sweeps: Sequence[Sweep] = part.sweeps
    return {key: getattr(part, key) for key in keys} | {
        "sweeps": [
            {"sweep": one.name, "state": one.state, **asdict(one.command), **asdict(one.progress),
             "left": one.progress.left, "rate": one.progress.rate,
             "log": None if one.log is None else str(one.log)}
            for one in sweeps
        ]
    }  # fmt: skip
