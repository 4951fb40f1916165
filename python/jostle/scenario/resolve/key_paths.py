"""Keys such as ``flows.newcomer.controller``, which name values of a scenario.

The grid and ``--set`` use them. Flows and links are selected by name; ``*`` selects all.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from jostle.scenario.models import LINK_TABLES, ScenarioFile
from jostle.scenario.parsing.key_endings import ambiguous, matching_keys
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import did_you_mean
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.parsing.renamed_keys import renamed_key_path

__all__ = [
    "WORD_KEYS",
    "KeyPaths",
    "changed",
    "find",
    "full_key",
    "parse_value",
    "quoted_name",
    "value_at",
]

_NAMED: Final = ("flows", "links")
_VARIED: Final = ("grid", "sample")
"""Tables whose keys are scenario keys."""
_LONGEST_KEY: Final = 10_000
_NOT_BARE: Final = re.compile(r'"[^"]*"|\'[^\']*\'|(?<=\.)\*(?=\.)')
"""Quoted parts of a key, which are kept, or an asterisk, which TOML does not allow unquoted."""
WORD_KEYS: Final = {
    "controller": "name",
    "slow_start": "name",
    "queue": "kind",
    "source": "kind",
    "transport": "kind",
}
"""Tables that may be written as a word, and the key whose value the word is."""


def find(document: Mapping[str, Any], key: str) -> list[KeyPath]:
    """Return the paths that `key` names in `document`, whether or not a value exists there.

    Raises
    ------
    QuantityError
        If `key` is malformed or names a flow or link that does not exist.
    """
    parts = _split(key)
    renamed = renamed_key_path(key)
    if renamed is not None:
        raise QuantityError(f'"{key}" is now called "{renamed}"')
    if parts[0] in _VARIED and len(parts) > 2 and "." not in parts[1]:
        # A shell removes quotes: `grid.flows.*.rtt` is the key "flows.*.rtt" of the grid.
        whole = ".".join(part if part == "*" else quoted_name(part) for part in parts[1:])
        return [(parts[0], whole)]
    if parts[0] not in _NAMED:
        return [tuple(parts)]
    tables = document.get(parts[0])
    alone = [name for name in LINK_TABLES if name in document] if parts[0] == "links" else []
    if alone and tables is None:
        # `[bottleneck]`, `[downlink]` and `[uplink]` are links with these names.
        names: list[str | None] = [*alone]
        places: list[KeyPath] = [(name,) for name in alone]
    else:
        names = _names(tables)
        places = [(parts[0], index) for index in range(len(names))]
    singular = parts[0][:-1]
    if len(parts) < 3:
        raise QuantityError(
            f'"{key}" names no key of a {singular} — write it as {parts[0]}.NAME.KEY'
        )
    if not names:
        raise QuantityError(f"there are no {parts[0]}")
    if parts[1] == "*":
        return [(*place, *parts[2:]) for place in places]
    if parts[1] not in names:
        hint = did_you_mean(parts[1], [n for n in names if n is not None])
        raise QuantityError(f'there is no {singular} "{parts[1]}" — {hint}')
    return [(*places[names.index(parts[1])], *parts[2:])]


def full_key(document: Mapping[str, Any], key: str) -> str:
    """Return the key that `key` is the unique end of; `key` itself if it is complete or unknown.

    The end may begin with the name of a flow or link, whose key need not have a value yet.

    Raises
    ------
    QuantityError
        If several keys of `document` end with `key`.
    """
    parts = _split(key)
    if parts[0] in ScenarioFile.model_fields:
        return key
    paths = KeyPaths(document)
    known = [paths.format_path(path) for path in _paths(document)]
    for table in _VARIED:
        varied = document.get(table)
        known += [name for name in varied if "." in name] if isinstance(varied, dict) else []
    matches = matching_keys(key, known)
    if len(matches) > 1:
        raise QuantityError(ambiguous(key, matches))
    if matches:
        return matches[0]
    owners = [table for table in _NAMED if parts[0] in _names(document.get(table))]
    if len(owners) != 1 or len(parts) == 1:
        return key
    return ".".join([owners[0], *map(quoted_name, parts)])


def keys_of(document: Mapping[str, Any]) -> list[str]:
    """Return every key of the document that has a value."""
    names = KeyPaths(document)
    return [names.format_path(path) for path in _paths(document) if isinstance(path[-1], str)]


def _paths(document: Mapping[str, Any]) -> Iterator[KeyPath]:
    """Yield the path of every key of the scenario."""
    below: list[tuple[KeyPath, Any]] = [
        ((name,), value) for name, value in document.items() if name not in _VARIED
    ]
    while below:
        path, value = below.pop(0)
        if isinstance(path[-1], str):
            yield path
        if isinstance(value, Mapping):
            below += [((*path, str(name)), each) for name, each in value.items()]
        elif path[0] in _NAMED and len(path) == 1 and isinstance(value, list):
            below += [((*path, index), each) for index, each in enumerate(value)]


def changed(document: Mapping[str, Any], path: KeyPath, value: Any) -> dict[str, Any]:
    """Return a copy of `document` with `value` at `path`. Other values are shared, not copied.

    Raises
    ------
    QuantityError
        If a value on the path is not a table.
    """
    copy: dict[str, Any] = _changed(document, path, value, path)
    return copy


def value_at(document: Any, path: KeyPath) -> tuple[bool, Any]:
    """Return whether `path` exists in `document`, and its value."""
    for step in path:
        if isinstance(document, dict):
            exists = step in document
        else:
            exists = isinstance(document, list) and isinstance(step, int) and step < len(document)
        if not exists:
            return False, None
        document = document[step]
    return True, document


class KeyPaths:
    """Formats paths of a document as keys.

    Flows and links are shown by name if the name is unique. The names are read once, because each
    of ten thousand flows may have a problem.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._clear: dict[str, list[str | None]] = {}

    def format_path(self, path: KeyPath) -> str:
        """Return `path` as a key."""
        shown = ""
        for index, step in enumerate(path):
            if isinstance(step, int):
                names = self._names(str(path[0])) if index == 1 and path[0] in _NAMED else []
                name = names[step] if step < len(names) else None
                shown += f".{quoted_name(name)}" if name else f"[{step}]"
            else:
                shown += f".{quoted_name(step)}" if shown else quoted_name(step)
        return shown

    def _names(self, table: str) -> list[str | None]:
        """Return the name of each flow or link; None if it is missing or not unique."""
        if table not in self._clear:
            names = _names(self._document.get(table))
            count = Counter(names)
            self._clear[table] = [name if count[name] == 1 else None for name in names]
        return self._clear[table]


def parse_value(text: str) -> Any:
    """Parse a TOML value. Text that is not a TOML value is returned unchanged."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    # A line break could start further keys. Dates do not occur in scenarios, so `2024-01-01` is
    # text.
    value = parsed["value"]
    return value if len(parsed) == 1 and _plain(value) else text


def _split(key: str) -> list[str]:
    # The time for reading a key is quadratic in its parts.
    if len(key) > _LONGEST_KEY:
        raise QuantityError(f'"{key[:40]}…" is too long for a key')
    quoted = _NOT_BARE.sub(lambda found: '"*"' if found[0] == "*" else found[0], key)
    parts = []
    try:
        table: Any = tomllib.loads(f"{quoted} = 0")
    except (tomllib.TOMLDecodeError, RecursionError):
        raise QuantityError(f'"{key}" is not a key — write for example flows.NAME.rtt') from None
    while isinstance(table, dict):
        if len(table) != 1:
            raise QuantityError(f'"{key}" is not a key — write for example flows.NAME.rtt')
        part, table = next(iter(table.items()))
        parts.append(part)
    return parts


def _names(tables: Any) -> list[str | None]:
    if not isinstance(tables, list):
        return []
    names = [table.get("name") if isinstance(table, dict) else None for table in tables]
    return [name if isinstance(name, str) else None for name in names]


def _changed(node: Any, path: KeyPath, value: Any, whole: KeyPath) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(node, list) and isinstance(step, int):
        return [_changed(n, rest, value, whole) if i == step else n for i, n in enumerate(node)]
    if not isinstance(node, Mapping):
        above = whole[len(whole) - len(path) - 1]
        raise QuantityError(f'"{above}" is not a table: it has no key "{step}"')
    below = node.get(str(step), {})
    if rest and isinstance(below, str) and step in WORD_KEYS:
        below = {WORD_KEYS[str(step)]: below}
    return {**node, step: _changed(below, rest, value, whole)}


def _plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_plain(v) for v in value.values())
    if isinstance(value, list):
        return all(_plain(v) for v in value)
    return isinstance(value, str | int | float)


def quoted_name(key: str) -> str:
    """Return a name as a part of a key, in quotes if it needs them."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"'
