"""The Python interface in Markdown, from signatures and numpydoc docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

from doc_blocks.tables import table

OBJECTS: Final = (
    "jostle.api.load",
    "jostle.api.run",
    "jostle.api.analyze",
    "jostle.scenario.Scenario",
    "jostle.scenario.ScenarioError",
    "jostle.results.ResultSet",
    "jostle.results.plots.Plots",
    "jostle.stats.estimate",
    "jostle.stats.Estimate",
    "jostle.stats.series_band",
    "jostle.stats.Band",
    "jostle.stats.percentile",
    "jostle.backends.kernel.KernelBackend",
    "jostle.kernel_images.find",
    "jostle.kernel_images.run_guest",
    "jostle.kernel_images.Image",
    "jostle.kernel_images.GuestOutput",
    "jostle.errors",
)
"""Objects that `python` without names describes, in this order."""
_SECTION: Final = re.compile(r"(?m)^([A-Z][a-z]+(?: [A-Z]?[a-z]+)?)\n-{3,}\n")
_TABLES: Final = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")


def python_reference(names: list[str]) -> Iterator[str]:
    """Yield a section per object: its signature, what it is for, parameters and results.

    Raises
    ------
    ValueError
        When an object does not exist or has no docstring.
    """
    for name in names or OBJECTS:
        found = _find(name)
        if not inspect.ismodule(found):
            yield from _entry(name, found, 3)
            continue
        for member, value in vars(found).items():
            if not member.startswith("_") and getattr(value, "__module__", "") == name:
                yield from _entry(f"{name}.{member}", value, 3)


def _find(name: str) -> Any:
    parts = name.split(".")
    for at in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:at]))
        except ModuleNotFoundError:
            continue
        for part in parts[at:]:
            found = getattr(found, part, None)
        if found is None:
            break
        return found
    raise ValueError(f"no Python object `{name}`")


def _entry(name: str, found: Any, level: int) -> Iterator[str]:
    short = name.removeprefix("jostle.api.").rpartition(".")[2] if level > 3 else name
    short = short.replace("jostle.api.", "jostle.")
    yield f"{'#' * level} `{short}`\n"
    if not inspect.isclass(found) or not issubclass(found, Exception):
        yield f"```python\n{_signature(short.rpartition('.')[2], found)}\n```\n"
    text = inspect.getdoc(found)
    if not text:
        raise ValueError(f"`{name}` has no docstring")
    yield from docstring(text)
    if inspect.isclass(found) and not issubclass(found, Exception):
        for member, value in vars(found).items():
            method = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            public = inspect.isfunction(method) or isinstance(method, property)
            if not member.startswith("_") and public and inspect.getdoc(method):
                yield from _entry(f"{name}.{member}", method, level + 1)


def _signature(name: str, found: Any) -> str:
    if isinstance(found, property):
        returns = inspect.signature(found.fget).return_annotation if found.fget else ""
        return f"{name}: {returns}"
    try:
        text = str(inspect.signature(found))
    except (TypeError, ValueError):
        return name
    signature = (
        f"{name}{text}".replace("(self, *, ", "(*, ")
        .replace("(self, ", "(")
        .replace("(self)", "()")
    )
    signature = signature.replace("(cls, ", "(").replace("'", "")
    if len(signature) <= 88 or ", " not in signature:
        return signature
    head, _, rest = signature.partition("(")
    inner, _, tail = rest.rpartition(")")
    lines = "".join(f"    {part},\n" for part in _split(inner))
    return f"{head}(\n{lines}){tail}"


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def docstring(text: str) -> Iterator[str]:
    """Yield the Markdown of a numpydoc docstring."""
    pieces = _SECTION.split(text)
    if pieces[0].strip():
        yield f"{pieces[0].strip()}\n"
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if title in _TABLES:
            header = {"Raises": "Exception", "Warns": "Warning"}.get(title, title.rstrip("s"))
            cells = [(f"`{head}`", meaning) for head, meaning in _items(body)]
            yield from table((header, "Meaning"), cells)
        else:
            shown = f"```python\n{body.strip()}\n```" if body.startswith(">>>") else body.strip()
            yield f"**{title}**\n\n{shown}\n"


def _items(body: str) -> Iterator[tuple[str, str]]:
    """Yield (name with its type, meaning) of a section of parameters."""
    head, lines = "", []
    for line in body.splitlines():
        if line.strip() and not line.startswith(" "):
            if head:
                yield head, " ".join(lines)
            head, lines = line.strip().replace("|", "or"), []
        elif line.strip():
            lines.append(line.strip())
    if head:
        yield head, " ".join(lines)
