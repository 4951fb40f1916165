"""Formatting of a scenario document as TOML."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, Final

from jostle.scenario import Registry
from jostle.scenario.resolve.key_paths import changed, find

__all__ = ["fitted_text", "relocated"]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def fitted_text(document: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return a scenario document as TOML with other values of some keys.

    Comments are removed, because they describe the earlier values.
    """
    for key, value in values.items():
        for path in find(document, key):
            document = changed(document, path, value)
    return "\n".join([*_table(document, ()), ""])


def relocated(document: Mapping[str, Any], folder: Path, target: Path) -> dict[str, Any]:
    """Return a scenario document for another folder, with the paths of its files relative to it.

    Parameters
    ----------
    document
        The document.
    folder
        Folder that its paths are relative to.
    target
        Folder of the scenario that is written.
    """
    registry = Registry.of_engine()
    tables = (registry.controllers, registry.slow_starts, registry.peer_caches, registry.queues)
    keys = {"file", "trace"} | {
        name
        for rows in tables
        for row in rows.values()
        for name, parameter in row.parameters.items()
        if parameter.kind == "file"
    }
    there = Path(os.path.realpath(target))

    def moved(value: Any, *, is_path: bool) -> Any:
        if isinstance(value, Mapping):
            return {
                key: moved(one, is_path=is_path or _names_file(key, keys))
                for key, one in value.items()
            }
        if isinstance(value, list):
            return [moved(one, is_path=is_path) for one in value]
        # Names of recordings and workloads that jostle contains are no files.
        if not is_path or not isinstance(value, str) or not (folder / value).is_file():
            return value
        path = Path(os.path.realpath((folder / value).parent)) / Path(value).name
        return value if Path(value).is_absolute() else os.path.relpath(path, there)

    return {key: moved(value, is_path=False) for key, value in document.items()}


def _names_file(key: str, keys: Set[str]) -> bool:
    """Return whether a key, of a table or of a grid, has the name of a file as value."""
    return key.rpartition(".")[2] in keys


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Yield lines for keys with values, then tables, then lists of tables."""
    tables = {key: value for key, value in table.items() if isinstance(value, dict)}
    lists = {key: value for key, value in table.items() if not path and _is_list_of_tables(value)}
    for key, value in table.items():
        if key not in lists and (path or key not in tables):
            yield f"{_key(key)} = {_value(value)}"
    if path:
        return
    for key, inner in tables.items():
        yield from ("", f"[{_key(key)}]")
        yield from _table(inner, (key,))
    for key, every in lists.items():
        for one in every:
            yield from ("", f"[[{_key(key)}]]")
            yield from _table(one, (key,))


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in value)}]"
    if isinstance(value, str):
        # JSON escapes are valid in TOML, but DEL must also be escaped there.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)
