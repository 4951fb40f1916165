"""A user's new crate, from the template."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from jostle.controller_crates import dependencies
from jostle.controller_crates.source import MANIFEST, NAME, CrateError

__all__ = ["new_crate"]

SETTINGS: Final = ".cargo/config.toml"
_TEMPLATE: Final = "jostle.controller_crates.template"
_RENAMED: Final = {"gitignore": ".gitignore"}
"""Names of files that would have an effect in the repository of jostle itself."""


def new_crate(folder: Path) -> bool:
    """Write a crate into a new folder; in a folder with a crate, only the settings of Cargo.

    Returns
    -------
    bool
        Whether the crate is new.

    Raises
    ------
    CrateError
        If the folder has other content, its name cannot be the name of a package, or it cannot be
        written.
    """
    name = folder.resolve().name
    is_new = not (folder / MANIFEST).is_file()
    if is_new and not NAME.fullmatch(name):
        raise CrateError(
            f'"{name}" cannot be the name of a crate: begin with a letter, and use letters, '
            "digits, `-` and `_`"
        )
    if is_new and folder.exists() and any(folder.iterdir()):
        raise CrateError(f"{folder} is not empty, and has no {MANIFEST}: give a new folder")
    written = {SETTINGS: dependencies.settings()}
    if is_new:
        for path, text in _files(resources.files(_TEMPLATE)):
            named = text.replace("@name@", name).replace("@version@", dependencies.version())
            written[_RENAMED.get(path, path)] = named
    try:
        for path, text in written.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CrateError(f"cannot write {error.filename}: {error.strerror}") from error
    return is_new


def _files(folder: Traversable, prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            if entry.name != "__pycache__":
                found += _files(entry, f"{prefix}{entry.name}/")
        else:
            found.append((f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")))
    return found
