"""Known causes of differences between simulator and kernel, from a file next to the report."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jostle.errors import InputError
from jostle.safe_io.untrusted_files import SCENARIO_BYTES, read_text

if TYPE_CHECKING:
    from jostle.fidelity.comparison import ComparisonCell

UNEXPLAINED: Final = "unexplained"
SAME: Final = "the same cause as of this controller above"


@dataclass(frozen=True)
class Cause:
    """The cause of a difference in some cells.

    Parameters
    ----------
    scenario
        Name of the scenario file without extension; may contain `*`.
    text
        Description of the cause.
    condition
        Grid keys with patterns for their values; other keys are ignored.
    controller
        Pattern that a controller of the cell matches.
    """

    scenario: str
    text: str
    condition: Mapping[str, str] = field(default_factory=dict)
    controller: str = "*"

    def explains(self, scenario: str, cell: ComparisonCell) -> bool:
        """Return whether this is the cause of a cell's difference."""
        return (
            fnmatchcase(scenario, self.scenario)
            and all(
                key in cell.condition and fnmatchcase(cell.condition[key], pattern)
                for key, pattern in self.condition.items()
            )
            and any(fnmatchcase(controller, self.controller) for controller in cell.controllers)
        )


@dataclass(frozen=True)
class Causes:
    """The file next to a report.

    Attributes
    ----------
    causes
        Causes in the order of the file; empty if the file does not exist.
    title
        Heading of the report; empty for the default.
    """

    causes: tuple[Cause, ...] = ()
    title: str = ""


def read_causes(path: Path) -> Causes:
    """Read `title` and `[[cause]]` tables with `scenario`, `text`, `condition` and `controller`.

    The title, the condition and the controller are optional.

    Raises
    ------
    InputError
        If the file cannot be read or has other contents.
    """
    try:
        document = tomllib.loads(read_text(path, SCENARIO_BYTES))
    except FileNotFoundError:
        return Causes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error
    tables, title = document.pop("cause", []), document.pop("title", "")
    if document or not isinstance(tables, list) or not isinstance(title, str):
        raise InputError(f"{path}: write nothing but a title and [[cause]] tables")
    found = tuple(_cause(path, number, table) for number, table in enumerate(tables, start=1))
    return Causes(found, title)


def cause_of(causes: Sequence[Cause], scenario: str, cell: ComparisonCell) -> str:
    """Return the text of the first cause that explains a cell, or `UNEXPLAINED`."""
    return next((c.text for c in causes if c.explains(scenario, cell)), UNEXPLAINED)


def without_repetition(texts: Sequence[str]) -> list[str]:
    """Return the causes of a table's rows; a row with a cause of a row above refers to that row."""
    return [
        SAME if text in texts[:at] and text != UNEXPLAINED else text
        for at, text in enumerate(texts)
    ]


def _cause(path: Path, number: int, table: Any) -> Cause:
    where = f"{path}: cause {number}"
    if not isinstance(table, dict):
        raise InputError(f"{where}: write it as a [[cause]] table")
    unknown = table.keys() - {"scenario", "text", "condition", "controller"}
    if unknown:
        raise InputError(f"{where}: no key `{min(unknown)}` is known")
    if not {"scenario", "text"} <= table.keys():
        raise InputError(f"{where}: `scenario` and `text` are needed")
    condition = table.get("condition", {})
    if not isinstance(condition, dict):
        raise InputError(f"{where}: `condition` is a table of grid keys and values")
    texts = [*condition.values(), *(v for k, v in table.items() if k != "condition")]
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"{where}: every value is a text")
    return Cause(**table)
