"""`jostle sweep`: shows, stops and resumes commands that run plans in a store.

A store may come from an untrusted source. Its text is only displayed; executed commands come from
the user's own records (`runner/sweeps/state_folder.py`).
"""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from jostle.cli.detach import DETACH, detach, last_lines, real_store
from jostle.cli.environment import Environment
from jostle.cli.options import json_option, store_folder_option
from jostle.cli.run import run, warn
from jostle.cli.verdict_lines import sweeps_verdict
from jostle.errors import InputError
from jostle.runner.progress import pace_words
from jostle.safe_io.code_consent import ALLOW_CODE
from jostle.safe_io.terminal_text import echo, escape_control_characters

if TYPE_CHECKING:
    from jostle.runner.sweeps.plan_progress import PlanProgress
    from jostle.runner.sweeps.sweep_files import State, Sweep, SweepCommand

_ASK_EVERY_S = 0.1
_RESUMABLE: Final[tuple[State, ...]] = ("stopped", "killed", "failed")

_name = click.argument("name", metavar="[SWEEP]", required=False)


@click.group(short_help="Show, stop and resume detached runs.")
def sweep() -> None:
    """Show the progress of commands that run scenarios in a store, stop them, and resume them.

    SWEEP is an ID that `jostle sweep status` shows, or its beginning. You can leave it out if there
    is only one sweep.

    Example: jostle sweep status
    """


@sweep.command(short_help="Show the progress of sweeps.")
@_name
@json_option
@store_folder_option
def status(*, name: str | None, as_json: bool, store_path: str) -> None:
    """Show how many runs of each plan are done, failed and left, and which processes run them.

    With SWEEP, show its command. If you started it on this machine, also show the end of its log.

    Example: jostle sweep status
    """
    from jostle.runner.sweeps.plan_progress import progress_by_plan
    from jostle.runner.sweeps.sweep_files import find, sweeps_of

    root = _root(store_path)
    own = _own_commands(store_path)
    sweeps = sweeps_of(root) if name is None else [find(root, name, ())]
    # Show the command that `resume` would execute, not the command in the store.
    sweeps = [_with_own_words(sweep, own.get(sweep.name)) for sweep in sweeps]
    plans = progress_by_plan(root, sweeps)
    if as_json:
        documents = [_plan_document(plan, own) for plan in plans]
        echo(json.dumps({"schema": "jostle.sweeps/1", "plans": documents}, ensure_ascii=False))
        return
    if not sweeps:
        echo(f"no sweep is running or was stopped in {root}")
    if len(plans) > 1:
        echo(sweeps_verdict(plans))
    for plan in plans:
        echo(_in_line(_plan_line(plan)))
        for sweep in plan.sweeps:
            echo(f"  {_in_line(_sweep_line(sweep, plan))}")
    if name is not None:
        (sweep,) = sweeps
        _print_command(sweep, is_own=sweep.name in own)


def _print_command(sweep: Sweep, *, is_own: bool) -> None:
    from jostle.runner.sweeps.state_folder import log_of

    command = sweep.command
    place = _in_line(f"in {command.folder}, by {command.host}")
    echo(f"this sweep was started with: {_shell_line(command)} ({place})")
    log = log_of(sweep.name) if is_own else None
    if not is_own:
        echo("your state folder has no record of it: it can be stopped, but not resumed")
    if log is not None:
        echo(f"log: {log}\n{last_lines(log)}".rstrip())


def _own_commands(store_path: str) -> Mapping[str, SweepCommand]:
    """Return the commands that this user started in a store; warn if they cannot be read."""
    from jostle.runner.sweeps.state_folder import commands_of

    try:
        return commands_of(real_store(store_path))
    except InputError as error:
        warn(error)
        return {}


def _with_own_words(sweep: Sweep, own: SweepCommand | None) -> Sweep:
    if own is None:
        return sweep
    command = replace(sweep.command, words=own.words, folder=own.folder, files=own.files)
    return replace(sweep, command=command)


@sweep.command(short_help="Stop a sweep; finished runs are kept.")
@_name
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait this long until it has stopped.",
)
@store_folder_option
def stop(*, name: str | None, wait_s: float, store_path: str) -> int:
    """Stop a sweep like Ctrl-C, on any machine that shares the store. Finished runs are stored.

    The exit status is 1 if it has not ended in time.

    Example: jostle sweep stop
    """
    from jostle.runner.sweeps.sweep_files import find, is_running

    root = _root(store_path)
    running = find(root, name, ("running",))
    if running.state != "running":
        raise InputError(f"sweep {running.name} does not run: it is {running.state}")
    running.ask_to_stop()
    until_s = time.monotonic() + wait_s
    while is_running(running.place):
        if time.monotonic() > until_s:
            echo(f"sweep {running.name} was asked to stop and has not yet", err=True)
            return 1
        time.sleep(_ASK_EVERY_S)
    if not running.place.exists():
        echo(f"sweep {running.name} was finished before it stopped")
        return 0
    progress = find(root, running.name, ()).progress
    stored = progress.stored + progress.done - progress.failed
    echo(f"sweep {running.name} has stopped: {stored} of {progress.total} runs are in the store")
    return 0


@sweep.command(short_help="Continue a sweep that you started and that was stopped.")
@_name
@click.option(
    DETACH, "detached", is_flag=True, help="Continue in a process that outlives this shell."
)
@click.option(
    ALLOW_CODE,
    "allow_code",
    is_flag=True,
    help="Let it run foreign code, if it was started with this option.",
)
@store_folder_option
@click.pass_obj
def resume(
    environment: Environment,
    /,
    *,
    name: str | None,
    detached: bool,
    allow_code: bool,
    store_path: str,
) -> Any:
    """Repeat the command of a sweep in its folder, with all its options.

    Stored runs are not repeated. The command is taken from your own records on this machine. Sweeps
    that you did not start here can be shown but not resumed.

    Example: jostle sweep resume
    """
    root = _root(store_path)
    command = _own_command(root, store_path, name)
    if ALLOW_CODE in command.words and not allow_code:
        raise InputError(
            f"sweep {command.name} was started with {ALLOW_CODE}, to run foreign code: give "
            f"{ALLOW_CODE} to resume, too"
        )
    _check_files(command)
    echo(_in_line(f"in {command.folder}: {_shell_line(command)}"), err=True)
    if detached:
        return detach(command, root)
    with contextlib.chdir(command.folder):
        return run.main(list(command.words), "jostle run", standalone_mode=False, obj=environment)


def _own_command(root: Path, store_path: str, name: str | None) -> SweepCommand:
    """Return the command to resume, from the user's own records only."""
    from jostle.runner.sweeps.state_folder import commands_of, state_folder
    from jostle.runner.sweeps.sweep_files import check_choice, find, state_of

    own = commands_of(real_store(store_path))
    states = {sweep: state_of(root, sweep) for sweep in own}
    if name is None:
        matches = [sweep for sweep in own if states[sweep] in _RESUMABLE]
    else:
        matches = [sweep for sweep in own if sweep.startswith(name)]
    if not matches:
        sweep = find(root, name, _RESUMABLE)
        raise InputError(
            f"sweep {sweep.name} was not started by this account on this machine "
            f"({state_folder()} has no record of it): it can only be shown. It was started with:\n"
            f"  {_shell_line(sweep.command)}\n"
            "Check these words, then give the command yourself"
        )
    check_choice(matches, root, name, _RESUMABLE)
    if states[matches[0]] == "running":
        raise InputError(f"sweep {matches[0]} is running: jostle sweep status {matches[0]}")
    return own[matches[0]]


def _check_files(command: SweepCommand) -> None:
    """Check that the folder exists and the scenarios are unchanged."""
    from jostle.store.disk import digest_of

    if not Path(command.folder).is_dir():
        raise InputError(f"sweep {command.name} was started in {command.folder}, which is gone")
    for file, digest in command.files.items():
        path = Path(command.folder, file)
        try:
            is_unchanged = digest_of(path) == digest
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from error
        if not is_unchanged:
            raise InputError(
                f"{path} has changed since sweep {command.name} began: repeat its command "
                "yourself, and new runs are carried out"
            )


def _root(path: str) -> Path:
    """Return the folder of a store; for object storage, this machine's copy."""
    from jostle.store.object_storage import copy_of, is_url

    root = copy_of(path) if is_url(path) else Path(path)
    if not root.is_dir():
        raise InputError(f"there is no store {root}: `jostle run` makes one")
    return root


def _plan_line(plan: PlanProgress) -> str:
    title = plan.title or "(no title)"
    words = [f"{title}: {plan.done} of {plan.total} runs"]
    reason = f" ({_in_line(plan.failure)})" if plan.failure else ""
    words += [f"{plan.failed} failed{reason}"] if plan.failed else []
    words += [f"{plan.quarantined} set aside"] if plan.quarantined else []
    words += [f"{plan.left} left"] if plan.left else []
    return ", ".join([*words, *pace_words(plan.rate, plan.left)])


def _sweep_line(sweep: Sweep, plan: PlanProgress) -> str:
    progress, command = sweep.progress, sweep.command
    done = progress.stored + progress.done
    if progress.total == plan.total and (len(plan.sweeps) == 1 or not plan.left):
        # The record of the sweep is some seconds old; the runs of the plan were counted now.
        done = plan.done + plan.failed
    failed = f" ({progress.failed} failed)" if progress.failed else ""
    words = [f"{sweep.name} {sweep.state}", f"{done} of {progress.total}{failed}"]
    words += pace_words(progress.rate, progress.remaining_runs) if sweep.state == "running" else []
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(command.began_s))
    words.append(f"process {command.process} of {command.host}, begun {since}")
    return ", ".join(words) + (f": {progress.why}" if progress.why else "")


def _shell_line(command: SweepCommand) -> str:
    """Return a command in shell syntax, with all words quoted safely."""
    return _in_line(f"jostle run {shlex.join(command.words)}")


def _in_line(text: str) -> str:
    r"""Escape line feeds and control characters in text from a store."""
    return escape_control_characters(text).replace("\n", "\\u000a")


def _plan_document(plan: PlanProgress, own: Mapping[str, SweepCommand]) -> dict[str, Any]:
    from jostle.runner.sweeps.state_folder import log_of

    keys = ("title", "plan", "total", "done", "failed", "failure", "quarantined", "left", "rate")
    document = {key: getattr(plan, key) for key in keys}
    document["sweeps"] = []
    for sweep in plan.sweeps:
        is_own = sweep.name in own
        log = log_of(sweep.name) if is_own else None
        document["sweeps"].append(
            {"sweep": sweep.name, "state": sweep.state, "own": is_own,
             **asdict(sweep.command), **asdict(sweep.progress),
             "left": sweep.progress.remaining_runs, "rate": sweep.progress.rate,
             "log": None if log is None else str(log)}
        )  # fmt: skip
    return document
