"""Where the programs of implementations are."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from jostle.implementations import Building, recipes
from jostle.kernel_images.images import SYSTEM_PATH, cache_folder

_SOURCES = Path(__file__).parent / "sources"


def programs_folder() -> Path:
    """Folder of all programs that were built, in the user's cache folder."""
    return cache_folder().with_name("quic")


def sources(name: str) -> Path | None:
    """Find what is ours of a recipe's programs; None if all is somebody else's."""
    found = _SOURCES / name
    return found if found.is_dir() else None


def folder(name: str) -> Path | None:
    """Where the programs of a recipe are once they are built; None if nothing has to be built.

    Another version, other sources or another way to build are another folder.
    """
    recipe = recipes().get(name)
    if recipe is None or recipe.build is None:
        return None
    return programs_folder() / f"{name}-{_digest(name, recipe.build)}"


def search_path(name: str) -> str:
    """Where the programs of an implementation are looked for: what was built, then the system."""
    built = folder(name)
    return SYSTEM_PATH if built is None else f"{built / 'bin'}:{SYSTEM_PATH}"


def which(name: str, program: str) -> str | None:
    """Find a program of an implementation where the guest will look for it."""
    return shutil.which(program, path=search_path(name))


def _digest(name: str, build: Building) -> str:
    whole = hashlib.sha256(
        json.dumps([*build.command, *sorted(build.environment.items())]).encode()
    )
    for path in source_files(name):
        whole.update(path.name.encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:12]


def source_files(name: str) -> Iterator[Path]:
    """Each file of `sources`, in order."""
    place = sources(name)
    if place is not None:
        yield from sorted(path for path in place.rglob("*") if path.is_file())
