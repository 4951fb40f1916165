"""A public command on a damaged file, in a process of its own that is watched."""

from __future__ import annotations

import itertools
import json
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["ACCEPTED", "CPU_S", "MEMORY_BYTES", "Outcome", "Watched", "run_watched"]

CPU_S: Final = 10
"""Of a command on a file below 1 MB, unless it simulates."""
MEMORY_BYTES: Final = 10**9
"""The same, beyond what the libraries take."""
_WALL_S: Final = 60
"""After which a command is stuck: others use this machine as well."""
_ADDRESSES_BYTES: Final = 4 * 10**9
"""What is asked for beyond that is refused, so that the machine does not run out of memory."""
_NAMED: Final = 10_000
"""Runs of a plan after which a case ends: to name more of them takes seconds."""
ACCEPTED: Final = 75
"""Exit status of a case whose file was read, and whose simulations would take longer."""
_CRASHED: Final = 70
_LONGEST_LINE: Final = 2_200
_FRAME: Final = re.compile(r'File ".*/python/(jostle/[\w/]+\.py)", line (\d+)')
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Watched:
    """A command, and what it may do.

    Attributes
    ----------
    words
        The command, without `jostle`.
    folder
        Where it is run: nothing outside may change.
    named
        Names of files of which a refusal says one.
    statuses
        Exit statuses that are documented for it.
    simulated_s
        Time for its simulations, after which it ends: what is read is what is tested.
    """

    words: Sequence[str]
    folder: Path
    named: Sequence[str]
    statuses: frozenset[int]
    simulated_s: float


@dataclass(frozen=True)
class Outcome:
    """What a command did.

    Attributes
    ----------
    status
        Exit status; negative for a signal.
    cpu_s, memory_bytes
        What it took, memory beyond what the libraries take.
    output
        What it printed.
    opened
        Modules of jostle that opened files of the folder, by file, and further facts.
    faults
        What is wrong, a line each; empty if nothing is.
    """

    status: int
    cpu_s: float
    memory_bytes: int
    output: str
    opened: dict[str, list[str]]
    faults: list[str]


def run_watched(watched: Watched) -> Outcome:
    """Run a command in a fork of this process, which has imported what it needs."""
    with tempfile.TemporaryDirectory(prefix="fuzz-watch-") as folder:
        told = Path(folder)
        child = os.fork()
        if child == 0:
            _be(watched, told)
        status, usage, is_stuck = _wait(child)
        facts = json.loads(_text(told / "facts") or "{}")
        outcome = Outcome(
            status,
            usage.ru_utime + usage.ru_stime,
            max(usage.ru_maxrss * 1024 - facts.get("baseline", 0), 0),
            _text(told / "output"),
            facts.get("opened", {}),
            list(facts.get("outside", [])),
        )
        simulates = (told / "simulates").exists()
    _judge(outcome, watched, is_stuck=is_stuck, simulates=simulates)
    return outcome


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _wait(child: int) -> tuple[int, resource.struct_rusage, bool]:
    """Wait for the end of a child and of all that it started."""
    descriptor = os.pidfd_open(child)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        is_stuck = not poll.poll(_WALL_S * 1000)
    finally:
        os.close(descriptor)
    try:
        # Its own group, made by itself: whatever it left behind ends with it.
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        if is_stuck:
            os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage, is_stuck


def _judge(outcome: Outcome, watched: Watched, *, is_stuck: bool, simulates: bool) -> None:
    """Add what is wrong with an outcome to its faults."""
    faults, output = outcome.faults, outcome.output
    if "Traceback (most recent call last)" in output or outcome.status == _CRASHED:
        frames = _FRAME.findall(output)
        place = ":".join(frames[-1]) if frames else "?"
        last = output.strip().rsplit("\n", 1)[-1][:160]
        faults.append(f"traceback at {place}: {last}")
    elif outcome.status < 0 and not (simulates and outcome.status in (-signal.SIGXCPU, -9)):
        name = signal.Signals(-outcome.status).name
        last = output.strip().rsplit("\n", 1)[-1][:160]
        faults.append(f"stuck for {_WALL_S} s" if is_stuck else f"ended by {name}: {last}")
    elif outcome.status >= 0 and outcome.status not in {*watched.statuses, ACCEPTED}:
        faults.append(f"exit status {outcome.status}: {output[-200:]!r}")
    if outcome.cpu_s > CPU_S and not simulates and outcome.status >= 0:
        faults.append(f"took {outcome.cpu_s:.0f} s")
    if outcome.memory_bytes > MEMORY_BYTES and not simulates:
        faults.append(f"took {outcome.memory_bytes / 1e9:.1f} GB")
    if outcome.status == 2 and not any(name in output for name in watched.named):
        faults.append(f"the refusal names no file: {output[:200]!r}")
    if (control := _CONTROL.search(output)) is not None:
        faults.append(f"prints the control character {control[0]!r}")
    is_document = "--json" in watched.words
    if not is_document and any(len(line) > _LONGEST_LINE for line in output.split("\n")):
        faults.append(f"prints a line of more than {_LONGEST_LINE} characters")


def _resident_bytes() -> tuple[int, int]:
    """Return what this process has in memory of its own, and of files such as libraries."""
    words = Path("/proc/self/statm").read_text().split()
    resident, of_files = (int(word) * resource.getpagesize() for word in words[1:3])
    return resident - of_files, of_files


def _be(watched: Watched, told: Path) -> None:
    """Be the command; never return."""
    code = _CRASHED
    facts: dict[str, Any] = {"opened": {}, "outside": [], "resident": _resident_bytes()}
    try:
        os.setpgid(0, 0)
        os.chdir(watched.folder)
        output = os.open(told / "output", os.O_WRONLY | os.O_CREAT)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.pop("JOSTLE_STORE", None)
        os.environ.update(_environment(watched.folder))
        tempfile.tempdir = None
        _stop_simulating(told, watched.simulated_s, facts)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + _ADDRESSES_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S + 1, CPU_S + 3))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _watch(watched.folder, told, facts)
        from jostle.cli import status

        code = status(watched.words)
    except BaseException:
        traceback.print_exc()
    finally:
        _end(code, told, facts)


def _end(code: int, told: Path, facts: dict[str, Any]) -> None:
    """Write what was noted, and end this process."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # Libraries are read page by page while they are used.
    own_bytes, file_bytes = facts.pop("resident")
    facts["baseline"] = own_bytes + max(file_bytes, _resident_bytes()[1])
    (told / "facts").write_text(json.dumps(facts))
    os._exit(code)


def _environment(folder: Path) -> dict[str, str]:
    """Folders of the user: all of them are those of the case."""
    names = ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    home = str(folder / "home")
    return {"HOME": home, "TMPDIR": str(folder), **dict.fromkeys(names, home)}


def _stop_simulating(told: Path, simulated_s: float, facts: dict[str, Any]) -> None:
    """End the process when its simulations have taken their time."""
    from jostle.backends.sim import SimBackend
    from jostle.runner import spec_texts

    named = itertools.count()
    began_s: list[float] = []

    def counted(names: Callable[..., Iterator[str]]) -> Callable[..., Iterator[str]]:
        def count_names(*arguments: Any) -> Iterator[str]:
            for name in names(*arguments):
                if next(named) == _NAMED:
                    _end(ACCEPTED, told, facts)
                yield name

        return count_names

    def timed(plain: Callable[..., Any]) -> Callable[..., Any]:
        def run(backend: Any, *what: Any) -> Any:
            *specs, cancelled = what
            if not began_s:
                began_s.append(time.monotonic())
                (told / "simulates").touch()

            def over() -> bool:
                if time.monotonic() - began_s[0] >= simulated_s:
                    _end(ACCEPTED, told, facts)
                return bool(cancelled is not None and cancelled())

            over()
            return plain(backend, *specs, over)

        return run

    for kind in (spec_texts.SpecTexts, spec_texts.SingleSpec):
        kind.names = counted(kind.names)  # type: ignore[method-assign]
    SimBackend.run = timed(SimBackend.run)  # type: ignore[method-assign]
    SimBackend.run_summary = timed(SimBackend.run_summary)  # type: ignore[method-assign]


_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES: Final = {
    "os.rename": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1, "os.truncate": 1, "os.chmod": 1,
    "os.chown": 1, "os.utime": 1, "os.symlink": 2, "os.link": 2, "sqlite3.connect": 1,
}  # fmt: skip
"""Audit events → how many of their arguments are paths that change."""
_STARTS: Final = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "socket.connect")


def _watch(folder: Path, told: Path, facts: dict[str, Any]) -> None:
    """Note which modules open which files, and what changes outside of a folder."""
    inside = (os.path.realpath(folder), str(told), "/dev/null", "/proc/self/fd/")
    root = os.path.realpath(folder)

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(path, str | bytes):
                return
            if isinstance(flags, int) and flags & _WRITES:
                check(event, path)
            else:
                opened(os.fsdecode(path))
        elif event in _CHANGES:
            for path in arguments[: _CHANGES[event]]:
                relative = any(isinstance(it, int) and it > 2 for it in arguments[1:])
                if isinstance(path, str | bytes) and not (relative and not os.path.isabs(path)):
                    check(event, path)
        elif event in _STARTS:
            facts["outside"].append(f"{event} {str(arguments[:2])[:200]}")

    def check(event: str, path: str | bytes) -> None:
        real = os.path.realpath(os.fsdecode(path))
        if not real.startswith(inside):
            facts["outside"].append(f"{event} outside of the folder: {real[:200]}")

    def opened(path: str) -> None:
        real = os.path.realpath(path)
        if not real.startswith(root):
            return
        modules = facts["opened"].setdefault(os.path.relpath(real, root), [])
        frame = sys._getframe(2)
        while frame is not None:
            name = frame.f_globals.get("__name__", "")
            if name.startswith("jostle.") and name not in modules:
                modules.append(name)
            frame = frame.f_back  # type: ignore[assignment]

    sys.addaudithook(note)
