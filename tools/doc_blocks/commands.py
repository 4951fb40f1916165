"""Commands of the documentation: what they print and write, each carried out once.

Only `jostle …` and `python examples/…` are carried out, without a shell, in an empty folder with
links to the folders of the repository. A command that names a file which an earlier command of the
page wrote gets a copy of it; commands on the store get the store of the commands before them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Final

WIDTH: Final = 80
LONGEST_S: Final = 3600
_LINKED: Final = ("scenarios", "examples", "studies", "suites", "docs", "tests")
_ON_STORES: Final = ("store", "sweep", "view")
_OPERATORS: Final = re.compile(r"[|&;<>()]+")
_idle: Final[list[subprocess.Popen[str]]] = []
"""Workers without a command, for all runners. They end with this process, whose pipe they read."""


@dataclass(frozen=True)
class Result:
    """Result of a command.

    Attributes
    ----------
    command
        The command.
    status
        Exit status.
    stdout, stderr
        Standard output and standard error.
    folder
        The folder that it ran in.
    written
        Files and folders that it made there.
    """

    command: str
    status: int
    stdout: str
    stderr: str
    folder: Path
    written: tuple[str, ...]


class CommandError(Exception):
    """A command that may not be carried out, or that failed."""


def words(command: str) -> list[str]:
    """Return the words of a command.

    Raises
    ------
    CommandError
        When it is anything but `jostle …` or `python examples/…`.
    """
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        found = list(lexer)
    except ValueError as error:
        raise CommandError(f"`{command}`: {error}") from None
    if any(_OPERATORS.fullmatch(word) for word in found):
        raise CommandError(f"`{command}`: there is no shell, so no pipes, redirections or lists")
    match found:
        case ["jostle", *rest] if "--" not in rest:
            return found
        case ["python", script, *_] if _is_example(script):
            return found
    raise CommandError(f"`{command}`: only `jostle …` and `python examples/…` are carried out")


def _is_example(script: str) -> bool:
    path = Path(script)
    return path.parts[:1] == ("examples",) and ".." not in path.parts and path.suffix == ".py"


class Runner:
    """Carries out commands, several at a time, and remembers what they did.

    Parameters
    ----------
    root
        The repository.
    jobs
        Commands at a time; by default one per core.
    """

    def __init__(self, root: Path, jobs: int | None = None) -> None:
        self.root = root
        self.jobs = jobs or os.cpu_count() or 1
        self._folders = tempfile.TemporaryDirectory(prefix="docs-")
        self._places = threading.BoundedSemaphore(self.jobs)
        self._lock = threading.Lock()
        self._results: dict[tuple[str, ...], Future[Result]] = {}

    def run(self, command: str, before: Sequence[Result] = ()) -> Result:
        """Carry out a command of a page.

        Parameters
        ----------
        command
            The command.
        before
            Results of the commands before it on the page.
        """
        used = _used(words(command), before)
        key = (*(str(result.folder) for result in used), command)
        with self._lock:
            mine = key not in self._results
            future = self._results.setdefault(key, Future())
        if mine:
            try:
                future.set_result(self._carry_out(command, used))
            except BaseException as error:
                future.set_exception(error)
        return future.result()

    def folder(self) -> Path:
        """Return a new empty folder that `close` removes."""
        return Path(tempfile.mkdtemp(dir=self._folders.name))

    def close(self) -> None:
        """Remove the folders of all commands."""
        self._folders.cleanup()

    def _carry_out(self, command: str, used: Sequence[Result]) -> Result:
        place = self.folder()
        folder = place / "work"
        folder.mkdir()
        for name in _LINKED:
            if (self.root / name).exists():
                (folder / name).symlink_to(self.root / name)
        for result in used:
            for name in result.written:
                _copy(result.folder / name, folder / name)
        had = {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()}
        with self._places:
            status = _status(words(command), place, folder)
        written = tuple(
            path.name
            for path in sorted(folder.iterdir())
            if path.name not in had or path.is_dir() or path.lstat().st_mtime_ns != had[path.name]
        )
        texts = [(place / name).read_text("utf-8", "replace") for name in ("out", "err")]
        out, err = (text.replace(f"{folder}/", "").replace(str(folder), ".") for text in texts)
        kept = tuple(name for name in written if name not in _LINKED)
        return Result(command, status, out, err, folder, kept)


def _status(of: Sequence[str], place: Path, folder: Path) -> int:
    """Carry out a command and return its exit status."""
    environment, out, err = _environment(place), place / "out", place / "err"
    if of[0] == "python":
        with out.open("wb") as to, err.open("wb") as errors:
            return subprocess.run(
                [sys.executable, *of[1:]], cwd=folder, env=environment, stdout=to,
                stderr=errors, stdin=subprocess.DEVNULL, check=False, timeout=LONGEST_S,
            ).returncode  # fmt: skip
    try:
        worker = _idle.pop()
    except IndexError:
        worker = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert worker.stdin is not None
    assert worker.stdout is not None
    request = {
        "arguments": of[1:], "folder": str(folder), "environment": environment,
        "out": str(out), "err": str(err),
    }  # fmt: skip
    worker.stdin.write(json.dumps(request) + "\n")
    worker.stdin.flush()
    status = int(worker.stdout.readline())
    _idle.append(worker)
    return status


def _environment(place: Path) -> dict[str, str]:
    """Return an environment without settings of the user, and without colour."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JOSTLE_", "XDG_STATE", "FORCE_", "CLICOLOR"))
    }
    return kept | {
        "COLUMNS": str(WIDTH),
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONHASHSEED": "0",
        "XDG_STATE_HOME": str(place / "state"),
    }


def _used(of: Sequence[str], before: Sequence[Result]) -> list[Result]:
    """Return the earlier commands whose files a command reads."""
    if of[:1] == ["jostle"] and len(of) > 1 and of[1] in _ON_STORES:
        return list(before)
    pieces = {piece for word in of for piece in re.split(r"[=:,]", word)}
    names = {Path(piece).parts[0] for piece in pieces if piece and Path(piece).parts}
    return [result for result in before if names & {n for n in result.written if n[0] != "."}]


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)
