"""Builds the programs of a recipe in the user's cache folder.

The finished build enters the cache by a rename. Compiled files are kept until then, so that an
interrupted build continues where it stopped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from jostle.errors import InputError, JostleError
from jostle.kernel_images.process_group import run_to_end
from jostle.quic.program_paths import folder, programs_folder, sources
from jostle.quic.recipes import BuildRecipe, Recipe, recipes, substitute_placeholders
from jostle.safe_io.folder_lock import locked_folder

_TIDY_UP_S = 10.0
_TAIL_LINES = 15


class ProgramsBuildError(JostleError):
    """The programs could not be built."""


def build(name: str, hear: Callable[[str], object], *, anew: bool = False) -> Path:
    """Build the programs of a recipe, unless they exist, and return their folder.

    Parameters
    ----------
    hear
        Called with each line of output.
    anew
        Build from scratch, even if the programs exist.

    Raises
    ------
    InputError
        If no recipe with a build has that name, or a required program is missing.
    ProgramsBuildError
        If the build fails, with the last lines of output.
    """
    recipe, how = _find_recipe(name)
    there = folder(name)
    assert there is not None, "there is a way to build it"
    if there.is_dir() and not anew:
        return there
    _check_needs(name, how)
    work = programs_folder() / ".work" / there.name
    try:
        with _alone(work, name):
            if there.is_dir() and not anew:
                # Another process has built it in the meantime.
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


def _find_recipe(name: str) -> tuple[Recipe, BuildRecipe]:
    recipe = recipes().get(name)
    if recipe is None:
        known = ", ".join(sorted(one for one, it in recipes().items() if it.build is not None))
        raise InputError(f"there is no recipe `{name}`: there are {known}")
    if recipe.build is None:
        raise InputError(f"{name} is not built but installed: {recipe.install}")
    return recipe, recipe.build


def _check_needs(name: str, how: BuildRecipe) -> None:
    missing = {
        program: where for program, where in how.needs.items() if shutil.which(program) is None
    }
    if missing:
        programs = ", ".join(f"`{program}`" for program in missing)
        raise InputError(
            f"{name} cannot be built without {programs}: install {', '.join(missing.values())}"
        )


def _carry_out(
    name: str, recipe: Recipe, how: BuildRecipe, work: Path, hear: Callable[[str], object]
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
    added = dict(
        zip(how.environment, substitute_placeholders(how.environment.values(), places), strict=True)
    )
    _run(substitute_placeholders(how.command, places), {**os.environ, **added}, tree, hear)
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

    status = run_to_end(command, listen, environment=environment, cwd=cwd, patience_s=_TIDY_UP_S)
    if status != 0:
        last = "\n".join(f"  {line}" for line in said)
        raise ProgramsBuildError(f"`{' '.join(command)}` failed with status {status}:\n{last}")


def _alone(work: Path, name: str) -> AbstractContextManager[None]:
    """Lock the folder of a build."""
    text = f"another jostle is building {name}"
    return locked_folder(work, lambda holder: ProgramsBuildError(f"{text}: {holder}"))
