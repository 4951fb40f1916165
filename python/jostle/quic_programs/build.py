"""Build the programs of a recipe, in the user's cache folder.

They enter it by a rename when all are there. What was compiled stays until then, so that the next
call of an interrupted build goes on from there.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jostle.errors import InputError, JostleError
from jostle.implementations import Building, Recipe, filled, recipes
from jostle.kernel_images.processes import running
from jostle.locks import LockFile, still_locked
from jostle.open_folder import OpenFolder
from jostle.quic_programs.places import folder, programs_folder, sources

_WAIT_S = 0.25
_TIDY_UP_S = 10.0
_TAIL_LINES = 15


class ProgramsBuildError(JostleError):
    """The programs could not be built."""


def build(name: str, hear: Callable[[str], object], *, anew: bool = False) -> Path:
    """Build the programs of a recipe, unless they are there; return their folder.

    Parameters
    ----------
    hear
        Told of each line that is said meanwhile.
    anew
        Build them even if they are there, and from the start.

    Raises
    ------
    InputError
        When nothing can be built under that name, or a program is missing that builds it.
    ProgramsBuildError
        When building fails, with the last lines of what was said.
    """
    recipe, how = _asked(name)
    there = folder(name)
    assert there is not None, "there is a way to build it"
    if there.is_dir() and not anew:
        return there
    _check_needs(name, how)
    work = programs_folder() / ".work" / there.name
    try:
        with _alone(work, name):
            if there.is_dir() and not anew:
                # Another process has built it meanwhile.
                return there
            if anew:
                shutil.rmtree(work, ignore_errors=True)
            _carry_out(name, recipe, how, work, hear)
            shutil.rmtree(there, ignore_errors=True)
            (work / "into").rename(there)
            shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        what = error.strerror or str(error)
        raise ProgramsBuildError(f"cannot build in {error.filename or work}: {what}") from error
    return there


def _asked(name: str) -> tuple[Recipe, Building]:
    recipe = recipes().get(name)
    if recipe is None:
        known = ", ".join(sorted(one for one, it in recipes().items() if it.build is not None))
        raise InputError(f"there is no recipe `{name}`: there are {known}")
    if recipe.build is None:
        raise InputError(f"{name} is not built but installed: {recipe.install}")
    return recipe, recipe.build


def _check_needs(name: str, how: Building) -> None:
    missing = {
        program: where for program, where in how.needs.items() if shutil.which(program) is None
    }
    if missing:
        programs = ", ".join(f"`{program}`" for program in missing)
        raise InputError(
            f"{name} cannot be built without {programs}: install {', '.join(missing.values())}"
        )


def _carry_out(
    name: str, recipe: Recipe, how: Building, work: Path, hear: Callable[[str], object]
) -> None:
    into, tree = work / "into", work / "sources"
    for stale in (into, tree):
        shutil.rmtree(stale, ignore_errors=True)
    into.mkdir(parents=True)
    ours = sources(name)
    if ours is None:
        tree.mkdir()
    else:
        shutil.copytree(ours, tree)
    places = {"into": str(into), "work": str(work)}
    added = dict(zip(how.environment, filled(how.environment.values(), places), strict=True))
    _run(filled(how.command, places), {**os.environ, **added}, tree, hear)
    lacking = [
        words[0]
        for words in (recipe.server, recipe.client)
        if not os.access(into / "bin" / words[0], os.X_OK)
    ]
    if lacking:
        raise ProgramsBuildError(f"`{how.command[0]}` made no {', '.join(lacking)}")


def _run(
    command: list[str], environment: Mapping[str, str], cwd: Path, hear: Callable[[str], object]
) -> None:
    said: list[str] = []

    def listen(line: str) -> None:
        said.append(line)
        del said[:-_TAIL_LINES]
        hear(line)

    with running(
        command,
        listen,
        environment=environment,
        cwd=cwd,
        first=signal.SIGTERM,
        patience_s=_TIDY_UP_S,
    ) as group:
        while (status := group.wait(_WAIT_S)) is None:
            pass
    if status != 0:
        last = "\n".join(f"  {line}" for line in said)
        raise ProgramsBuildError(f"`{' '.join(command)}` failed with status {status}:\n{last}")


@contextmanager
def _alone(work: Path, name: str) -> Iterator[None]:
    """Keep others from building the same; the system lets go when this process ends."""
    file = f"{work.name}.lock"
    with OpenFolder.at(work.parent, make=True) as folder:
        lock = LockFile.take(folder, file, wait_s=None, of=str(work))
        if lock is None:
            told = still_locked(folder, file, str(work))
            raise ProgramsBuildError(f"another jostle is building {name}: {told}")
    try:
        yield
    finally:
        lock.release()
