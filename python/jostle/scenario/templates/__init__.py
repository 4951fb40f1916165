"""Templates for first scenarios: complete files with comments.

Placeholders have the form ``@name|default@``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources

from jostle.errors import InputError, unknown

_BLANK = re.compile(r"@(\w+)\|([^@]*)@")
_GRID = re.compile(r'^"flows\.([\w-]+)\.controller" = \[.*\]$', re.MULTILINE)


def names() -> list[str]:
    """Return the names of the templates."""
    files = resources.files("jostle.scenario.templates").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def summary(name: str) -> str:
    """Return the title of a template's scenario."""
    found = re.search(r'^title\s*=\s*"(.*)"$', _text(name), re.MULTILINE)
    return found[1] if found else ""


def fill(name: str, values: Mapping[str, str], controllers: Sequence[str] = ()) -> str:
    """Return the text of a template with its placeholders filled in.

    Parameters
    ----------
    name
        Name of the template.
    values
        Replacement text by placeholder (`rate`, `rtt`); others keep their default.
    controllers
        Controllers to compare: each is a condition, the first is the flow's value.

    Raises
    ------
    InputError
        If there is no such template or placeholder.
    """
    text = _text(name)
    chosen = dict(values) | ({"controller": controllers[0]} if controllers else {})
    blanks = {found[1] for found in _BLANK.finditer(text)}
    for blank, value in chosen.items():
        if blank not in blanks:
            raise InputError(f"--{blank}: a {name} scenario has none to set; edit what is written")
        if '"' in value or "\\" in value or not value.isprintable():
            raise InputError(f"--{blank} {value}: write it without quotes and backslashes")
    filled = _BLANK.sub(lambda found: chosen.get(found[1], found[2]), text)
    if not controllers:
        return filled
    quoted = ", ".join(f'"{one}"' for one in controllers)
    if _GRID.search(filled):
        return _GRID.sub(lambda found: f'"flows.{found[1]}.controller" = [{quoted}]', filled)
    if len(controllers) == 1:
        return filled
    flow = re.search(r'^name\s*=\s*"([\w-]+)"\ncontroller\s*=\s*"', filled, re.MULTILINE)
    assert flow is not None
    grid = f'"flows.{flow[1]}.controller" = [{quoted}]\n'
    # In TOML, the keys of [grid] must precede its subtables.
    return re.sub(r"^(\[grid\]\n|(?=\[grid\.))", lambda m: (m[1] or "[grid]\n") + grid, filled,
                  count=1, flags=re.MULTILINE)  # fmt: skip


def _text(name: str) -> str:
    if name not in names():
        raise InputError(unknown("template", name, names()))
    return (resources.files("jostle.scenario.templates") / f"{name}.toml").read_text("utf-8")
