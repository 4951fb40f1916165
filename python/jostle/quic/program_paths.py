"""Folders and paths of the programs of QUIC implementations."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from jostle.kernel_images.image_paths import SYSTEM_PATH, cache_folder
from jostle.quic.recipes import BuildRecipe, recipes

_SOURCES = Path(__file__).parent / "sources"


def programs_folder() -> Path:
    """Return the folder of all built programs, in the user's cache folder."""
    return cache_folder().with_name("quic")


def sources(name: str) -> Path | None:
    """Return the folder with jostle's source files for a recipe; None if it has none."""
    found = _SOURCES / name
    return found if found.is_dir() else None


def folder(name: str) -> Path | None:
    """Return the folder of a recipe's programs after the build; None if nothing has to be built.

    The name contains a digest of version, sources and build steps.
    """
    recipe = recipes().get(name)
    if recipe is None or recipe.build is None:
        return None
    return programs_folder() / f"{name}-{_digest(name, recipe.build)}"


def search_path(name: str) -> str:
    """Return the search path for programs of an implementation: its build, then the system."""
    built = folder(name)
    return SYSTEM_PATH if built is None else f"{built / 'bin'}:{SYSTEM_PATH}"


def find_program(name: str, program: str) -> str | None:
    """Return the path of a program, from the search path that the guest uses."""
    return shutil.which(program, path=search_path(name))


def _digest(name: str, build: BuildRecipe) -> str:
    whole = hashlib.sha256(
        json.dumps([*build.command, *sorted(build.environment.items())]).encode()
    )
    for path in source_files(name):
        whole.update(path.name.encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:12]


def source_files(name: str) -> Iterator[Path]:
    """Yield the files of `sources` in order."""
    place = sources(name)
    if place is not None:
        yield from sorted(path for path in place.rglob("*") if path.is_file())
