"""Folders of studies or suites: the installed one, and paths that a user gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from jostle.errors import InputError, unknown

if TYPE_CHECKING:
    from pydantic import BaseModel

    from jostle.scenario.parsing.toml_file import TomlFile

Form = TypeVar("Form", bound="BaseModel")
Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Library:
    """All studies, or all suites.

    Attributes
    ----------
    kind
        Word for a member in messages, and name of its file.
    folder
        Name of the folder of all members.
    """

    kind: Literal["study", "suite"]
    folder: str

    @property
    def file(self) -> str:
        """Name of the file in a member's folder."""
        return f"{self.kind}.toml"

    @property
    def installed(self) -> Path:
        """Folder of the members that are distributed with jostle."""
        return Path(__file__).parents[3] / self.folder

    def names(self, folder: Path | None = None) -> list[str]:
        """Return the names in a folder; by default of those distributed with jostle."""
        return sorted(
            path.parent.name for path in (folder or self.installed).glob(f"*/{self.file}")
        )

    def read(
        self, name: str, folder: Path, form: type[Form], keys: Sequence[str] = ()
    ) -> tuple[TomlFile, Form]:
        """Read the file of a study or suite.

        Parameters
        ----------
        name, folder
            Name of its folder, and where this folder is.
        form
            Format of the file.
        keys
            All keys of the format, for error messages.

        Raises
        ------
        InputError
            When there is none with this name.
        ScenarioError
            When the file has another format.
        """
        from pydantic import ValidationError

        from jostle.scenario.parsing.toml_file import TomlFile

        path = folder / name / self.file
        if not path.is_file():
            raise InputError(unknown(self.kind, name, self.names(folder)))
        toml = TomlFile.read(path)
        toml.check_names(self.kind)
        try:
            return toml, form.model_validate(with_defaults(toml.document))
        except ValidationError as error:
            from jostle.studies.consistency_check import format_model_errors

            raise toml.error(format_model_errors(error, keys)) from None

    def folder_of(self, name: str) -> Path:
        """Return the folder of an installed study or suite, or of one given by its path."""
        if "/" not in name and name not in (".", ".."):
            return self.installed / name
        # `.` and `..` have no name; resolve them.
        return Path(name) if Path(name).name not in ("", "..") else Path(name).resolve()

    def load(self, load: Callable[..., Loaded], name: str, *, allow_code: bool) -> Loaded:
        """Load an installed study or suite, or one given by the path of its folder.

        Raises
        ------
        InputError
            When there is none, or it is wrong.
        """
        from jostle.scenario import ScenarioError

        folder = self.folder_of(name)
        places = (Path(self.folder, name), Path(name))
        try:
            return load(folder.name, folder.parent, allow_code=allow_code)
        except ScenarioError as error:
            raise InputError(str(error)) from error
        except InputError as error:
            if folder.parent != self.installed:
                raise InputError(f"{error} (looked for {Path(name) / self.file})") from error
            here = next((place for place in places if (place / self.file).is_file()), None)
            if here is None:
                raise
            raise InputError(f"{error}; for the one in this folder, write ./{here}") from error


STUDIES: Final = Library("study", "studies")
SUITES: Final = Library("suite", "suites")


_VALUES: Final = (
    ("numbers",),
    *((t, "parts", side) for t in ("claims", "criteria") for side in ("left", "right", "order")),
    ("figures", "curves"),
)
"""Keys that lead to the values of a file."""


def with_defaults(document: Mapping[str, Any]) -> dict[str, Any]:
    """Add the keys of `defaults` to every value that does not set them."""
    filled, defaults = dict(document), document.get("defaults", {})
    for path in _VALUES if isinstance(defaults, dict) else ():
        filled = _filled(filled, path, defaults)
    return filled


def _filled(node: Any, path: Sequence[str], defaults: Mapping[str, Any]) -> Any:
    """Add defaults to the tables at a path; lists on the path may have any number of tables."""
    if isinstance(node, list):
        return [_filled(one, path, defaults) for one in node]
    if not isinstance(node, dict):
        return node
    if not path:
        return {**defaults, **node}
    key, *rest = path
    return {**node, key: _filled(node[key], rest, defaults)} if key in node else node
