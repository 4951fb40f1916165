"""Numbers that sentences quote, each defined once in `docs/numbers.toml`.

    [first-share]
    command = "jostle run scenarios/first.toml --json"
    value   = "conditions[0].runs[0].flows[?name=='newcomer'] | [0].phases.together.share"
    factor  = 100
    format  = "{:.0f} %"

A number comes from a `command` or from a committed `file` below the repository (JSON, TOML or CSV,
whose rows are tables with the names of its columns). `value` selects it in JMESPath, or `match` by
a regular expression with one group in printed text. `over` and `minus` select a value that it is
divided by, or that is subtracted from it. `factor` changes the unit, `slow = true` leaves the
command to nightly checks.

A mean over the runs of a `scenario` with its confidence interval (`estimates.py`) has `measure`,
`phase`, `where` and `flow`, `group` or `link` instead: the values of each run are in the output of
`jostle run`, their interval is not.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import jmespath
from jmespath.exceptions import JMESPathError

from doc_blocks.estimates import SCOPES

FILE: Final = Path("docs") / "numbers.toml"
_SOURCES: Final = ("command", "file", "scenario")
_SELECTED: Final = ("value", "match", "over", "minus", "factor", "format")
_ESTIMATED: Final = ("measure", "phase", "where", *SCOPES)


@dataclass(frozen=True)
class QuotedNumber:
    """The definition of a number.

    Attributes
    ----------
    name
        Its name in the markers.
    line
        Its line in the file of numbers.
    keys
        Its keys.
    """

    name: str
    line: int
    keys: Mapping[str, Any] = field(hash=False)

    @property
    def command(self) -> str | None:
        """The command whose output has it, if no file has."""
        found: str | None = self.keys.get("command")
        return found

    @property
    def slow(self) -> bool:
        """Whether only nightly checks carry the command out."""
        return bool(self.keys.get("slow", False))

    def text(self, source: str) -> str:
        """Return the formatted number from printed text or from the text of its file.

        Raises
        ------
        ValueError
            When it is not in the text, or is not one value.
        """
        if "match" in self.keys:
            match = re.search(self.keys["match"], source)
            if match is None or len(match.groups()) != 1:
                raise ValueError(f"`{self.keys['match']}` matches nothing, or has not one group")
            value: Any = match[1]
            if re.fullmatch(r"[-+]?\d+(\.\d+)?", value):
                value = float(value)
        else:
            value = self._value(source)
        if "factor" in self.keys:
            value *= self.keys["factor"]
        return str(self.keys.get("format", "{}")).format(value)

    def _value(self, source: str) -> Any:
        document = _document(Path(self.keys.get("file", "stdout.json")).suffix, source)
        value = _select(document, self.keys["value"])
        for key, change in (("minus", lambda a, b: a - b), ("over", lambda a, b: a / b)):
            if key in self.keys:
                value = change(_as_number(value), _as_number(_select(document, self.keys[key])))
        return _as_number(value) if "factor" in self.keys else value


def read_numbers(root: Path) -> dict[str, QuotedNumber]:
    """Read the file of numbers.

    Raises
    ------
    ValueError
        When a number has no source or several, or an unknown key; with its line.
    """
    path = root / FILE
    if not path.exists():
        return {}
    source = path.read_text("utf-8")
    found = {}
    for name, keys in tomllib.loads(source).items():
        header = re.search(rf'(?m)^\["?{re.escape(name)}"?\]', source)
        line = source.count("\n", 0, header.start()) + 1 if header else 1
        problem = _problem(keys)
        if problem:
            raise ValueError(f"{FILE}:{line}: {name}: {problem}")
        found[name] = QuotedNumber(name, line, keys)
    return found


def _problem(keys: Mapping[str, Any]) -> str | None:
    if sum(source in keys for source in _SOURCES) != 1:
        return f"give one of {', '.join(f'`{source}`' for source in _SOURCES)}"
    known = (*_SOURCES, "slow", *(_ESTIMATED if "scenario" in keys else _SELECTED))
    if unknown := sorted(keys.keys() - known):
        return f"unknown key `{unknown[0]}`: one of {', '.join(known)}"
    if "scenario" in keys:
        missing = [key for key in ("measure", "phase") if key not in keys]
        return f"`{missing[0]}` is missing" if missing else None
    if ("value" in keys) == ("match" in keys):
        return "give `value` or `match`"
    return None


def _document(suffix: str, source: str) -> Any:
    try:
        if suffix == ".csv":
            return list(csv.DictReader(io.StringIO(source)))
        return tomllib.loads(source) if suffix == ".toml" else json.loads(source)
    except ValueError as error:
        raise ValueError(f"not {suffix.strip('.').upper()}: {error}") from None


def _select(document: Any, selector: str) -> Any:
    try:
        value = jmespath.search(selector, document)
    except JMESPathError as error:
        raise ValueError(f"`{selector}`: {error}") from None
    if value is None or isinstance(value, list | dict):
        kind = "nothing" if value is None else f"a {type(value).__name__}"
        raise ValueError(f"`{selector}` selects {kind}, not one value")
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _as_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    return value
