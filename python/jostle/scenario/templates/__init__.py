"""Templates for first scenarios: complete files with comments.

Placeholders have the form ``@name|default@``, or ``@name*factor|default@`` for a rate that follows
another one. A line ``#: name`` begins the flows of an
application, which are removed if the application is not chosen. ``#:`` alone ends the last one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources

from jostle.errors import InputError, unknown
from jostle.scenario.parsing.quantities import QuantityError, format_short, parse_rate

_BLANK = re.compile(r"@(\w+)(?:\*([\d.]+))?\|([^@]*)@")
_APPLICATION = re.compile(r"^#: (\w+)\n(.*?)(?=^#:)", re.MULTILINE | re.DOTALL)
_COMMENT = r"(?:^# [^\n]*\n)?"
_SHAPED = 0.95
"""Share of the uplink's rate at which a home router shapes."""
_GRID = re.compile(r'^"flows\.([\w-]+)\.controller" = \[.*\]$', re.MULTILINE)


def names() -> list[str]:
    """Return the names of the templates."""
    files = resources.files("jostle.scenario.templates").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def summary(name: str) -> str:
    """Return the title of a template's scenario."""
    found = re.search(r'^title\s*=\s*"(.*)"$', _text(name), re.MULTILINE)
    return found[1] if found else ""


def applications(name: str) -> list[str]:
    """Return the names of the applications that a template has."""
    return [found[1] for found in _APPLICATION.finditer(_text(name))]


def fill(
    name: str,
    values: Mapping[str, str],
    controllers: Sequence[str] = (),
    chosen_applications: Sequence[str] = (),
) -> str:
    """Return the text of a template with its placeholders filled in.

    Parameters
    ----------
    name
        Name of the template.
    values
        Replacement text by placeholder (`rate`, `rtt`); others keep their default.
    controllers
        Controllers to compare: each is a condition, the first is the flow's value.
    chosen_applications
        Applications whose flows are kept; all if empty.

    Raises
    ------
    InputError
        If there is no such template or placeholder.
    """
    text = _with_applications(name, chosen_applications)
    chosen = _derived(values) | ({"controller": controllers[0]} if controllers else {})
    blanks = {found[1] for found in _BLANK.finditer(text)}
    for blank in chosen:
        if blank not in blanks:
            option = blank.replace("_", "-")
            raise InputError(f"--{option}: a {name} scenario has none to set; edit what is written")
    filled = _BLANK.sub(lambda found: _replacement(found, chosen), text)
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


def _replacement(blank: re.Match[str], chosen: Mapping[str, str]) -> str:
    name, factor, default = blank.groups()
    if name not in chosen:
        return str(default)
    return _scaled(name, chosen[name], float(factor)) if factor else chosen[name]


def _scaled(option: str, rate: str, factor: float) -> str:
    try:
        return format_short(round(parse_rate(rate) * factor), "rate")
    except QuantityError as error:
        raise InputError(f"--{option} {rate}: {error}") from error


def _derived(values: Mapping[str, str]) -> dict[str, str]:
    """Return placeholders with what follows from the options: a shaped rate, and a queue."""
    for key, value in values.items():
        if '"' in value or "\\" in value or not value.isprintable():
            option = key.replace("_", "-")
            raise InputError(f"--{option} {value}: write it without quotes and backslashes")
    found = dict(values)
    if "up" in values:
        found["shaped"] = _scaled("up", values["up"], _SHAPED)
    queue = values.get("modem_queue")
    if queue is not None:
        is_limit = queue[:1].isdigit()
        found["modem_queue"] = (
            f'{{ kind = "drop_tail", limit = "{queue}" }}' if is_limit else f'"{queue}"'
        )
    return found


def _with_applications(name: str, chosen: Sequence[str]) -> str:
    """Return a template's text with the flows of the chosen applications only."""
    text, known = _text(name), applications(name)
    for application in chosen:
        if application not in known:
            if not known:
                message = f"--application: a {name} scenario has none to choose"
                raise InputError(f"{message}; edit what is written")
            raise InputError(unknown("application", application, known))
    kept = chosen or known
    for application in known:
        block = rf"{_COMMENT}^#: {application}\n(?:.*?)(?={_COMMENT}^#:)"
        if application not in kept:
            text = re.sub(block, "", text, count=1, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^#:.*\n", "", text, flags=re.MULTILINE)


def _text(name: str) -> str:
    if name not in names():
        raise InputError(unknown("template", name, names()))
    return (resources.files("jostle.scenario.templates") / f"{name}.toml").read_text("utf-8")
