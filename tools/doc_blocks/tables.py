"""Tables of the reference in Markdown, from the engine's registries and the scenario schema.

`jostle explain`, `jostle --help` and the scenario reader use the same data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click
from jostle import _core
from jostle.cli import cli
from jostle.cli.info import _default, _range
from jostle.results.measures import measures
from jostle.safe_io import code_consent
from jostle.scenario import fields, models
from jostle.scenario.resolve.profiles import profiles
from jostle.scenario.schema import json_schema

MISSING: Final = "–"
_UNITS: Final = {
    json.dumps(schema.json_schema, sort_keys=True): name
    for schema, name in (
        (fields.SPAN_SCHEMA, "time"),
        (fields.RATE_SCHEMA, "rate"),
        (fields.AMOUNT_SCHEMA, "amount"),
    )
}
_FEW: Final = 2
"""Largest number of accepted words that are listed; longer lists are documented elsewhere."""
_TYPES: Final = {
    "array": "list",
    "boolean": "`true` or `false`",
    "integer": "whole number",
    "number": "number",
    "object": "table",
    "string": "text",
}
_WIDTH: Final = 90
_KEY_HEADER: Final = ("Key", "Written as", "Default", "Meaning")
_COMPOSED: Final = ("controllers", "slow_starts", "peer_caches")
"""Registries whose rows have separate pages."""


def registry() -> dict[str, Any]:
    """Return the engine's registries."""
    found: dict[str, Any] = json.loads(_core.registry())
    return found


def algorithm_row(name: str) -> tuple[str, Mapping[str, Any]]:
    """Return the registry and the row of a controller, slow start or peer cache.

    Raises
    ------
    ValueError
        When there is none of this name.
    """
    rows = registry()
    for kind in _COMPOSED:
        for row in rows[kind]:
            if row["name"] == name:
                return kind, row
    raise ValueError(f"no algorithm `{name}`: see `jostle list controllers`")


def registry_table(kind: str, folder: str) -> Iterator[str]:
    """Yield a registry: a table with links to the pages in `folder`, or a section per row."""
    rows = registry().get(kind)
    if not isinstance(rows, list):
        known = sorted(key for key, value in registry().items() if isinstance(value, list))
        raise ValueError(f"no registry `{kind}`: one of {', '.join(known)}")
    if kind in _COMPOSED:
        cells = [
            (f"[`{row['name']}`]({folder}/{row['name']}.md)", row["class"], plain(row["summary"]))
            for row in sorted(rows, key=lambda row: (row["class"], row["name"]))
        ]
        yield from table(("Name", "Class", "What it is"), cells)
        return
    for row in rows:
        yield f"### `{row['name']}`\n\n{sentence(row['summary'])}\n"
        yield from facts(row)
        yield from parameters(row)


def measure_table(scope: str = "", place: str = "") -> Iterator[str]:
    """Yield the measures of one scope and one position in the summary, or all of them."""
    found = dict.fromkeys((measure.scope, measure.place) for measure in measures().values())
    if scope:
        if (scope, place) not in found:
            known = ", ".join(f"`{one} {other}`" for one, other in found)
            raise ValueError(f"no measures of `{scope} {place}`: one of {known}")
        yield from _measures(scope, place)
        return
    for one, other in found:
        yield f"**Of a {one}, {other}**\n"
        yield from _measures(one, other)


def _measures(scope: str, place: str) -> Iterator[str]:
    rows = [m for m in measures().values() if (m.scope, m.place) == (scope, place)]
    keyed = any(row.key for row in rows)
    header = (
        ("Name", "Key", "Read in", "Definition") if keyed else ("Name", "Read in", "Definition")
    )
    cells = []
    for row in rows:
        key = (f"`{row.key}`",) if keyed else ()
        cells.append((f"`{row.name}`", *key, row.display_unit or MISSING, row.definition))
    yield from table(header, cells)


def key_table(name: str, written: str) -> Iterator[str]:
    """Yield every key of a table of the scenario file.

    Parameters
    ----------
    name
        Name of the table in the schema.
    written
        Text between the markers: a table of which the columns *Default* and *Meaning* are kept, or
        lines `key (default): meaning`. A key without a line gets what the schema says of it.

    Raises
    ------
    ValueError
        When a key is written that the format does not have, or one has no meaning.
    """
    schema = json_schema()
    whole = {**schema["$defs"], models.ScenarioFile.__name__: schema}
    if name not in whole:
        raise ValueError(f"no table `{name}`: one of {', '.join(sorted(whole))}")
    rows = _written_keys(written)
    properties = {k: v for k, v in whole[name].get("properties", {}).items() if k != "kind"}
    if unknown := sorted(rows.keys() - properties.keys()):
        raise ValueError(f"{name} has no key {', '.join(f'`{key}`' for key in unknown)}")
    cells = []
    for key, value in properties.items():
        default, meaning = rows.get(key, ("", ""))
        if not meaning:
            meaning = value.get("description", "")
        if not meaning:
            raise ValueError(f"{name}: `{key}` has no meaning: write `{key}: meaning`")
        if default in ("", MISSING):
            default = _schema_default(key, value, whole[name].get("required", ()))
        cells.append((f"`{key}`", form(value, schema["$defs"]), default, meaning))
    yield from table(_KEY_HEADER, cells)


def _schema_default(key: str, value: Mapping[str, Any], required: Sequence[str]) -> str:
    """Return the default of a key that is written without one."""
    if key in required:
        return "required"
    default = value.get("default")
    return f"`{json.dumps(default)}`" if isinstance(default, int | float | str) else MISSING


def _written_keys(written: str) -> dict[str, tuple[str, str]]:
    """Read key → (default, meaning) from a table or from lines."""
    found = {}
    for line in written.splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            if len(cells) == len(_KEY_HEADER) and cells[0].startswith("`"):
                default, meaning = (cell.replace("\\|", "|") for cell in cells[2:])
                found[cells[0].strip("`")] = (default, meaning)
        elif ": " in line:
            head, meaning = line.split(": ", 1)
            key = head.split(" ")[0]
            found[key] = (head.removeprefix(key).strip(" ()"), meaning.strip())
    return found


def profile_table() -> Iterator[str]:
    """Yield the named links."""
    cells = [(f"`{n}`", plain(p["summary"]), p["rtt"]) for n, p in profiles().items()]
    yield from table(("Profile", "Link", "Default rtt"), cells)


def feature_table() -> Iterator[str]:
    """Yield the features that learners can observe."""
    cells = [
        (f"`{name}`", plain(about), f"{low:g}", f"{high:g}", f"{rest:g}")
        for name, about, low, high, rest in _core.learning_features()[0]
    ]
    yield from table(("Feature", "Meaning", "From", "To", "Before the first interval"), cells)


def code_source_table() -> Iterator[str]:
    """Yield the places where a file could name code."""
    rows = [(row.file, row.code, str(row.rule)) for row in code_consent.CODE_SOURCES]
    yield from table(("In", "Code", "Runs"), rows)


def capture_table() -> Iterator[str]:
    """Yield the formats of captures that are read."""
    cells = [
        (kind, plain(", ".join(dict.fromkeys(names)))) for kind, names in _core.capture_formats()
    ]
    yield from table(("Part", "Formats"), cells)


def command(names: Sequence[str]) -> click.Command:
    """Return a command by its words, without `jostle`.

    Raises
    ------
    ValueError
        When there is none.
    """
    found: click.Command = cli
    for name in names:
        if not isinstance(found, click.Group) or name not in found.commands:
            raise ValueError(f"`{' '.join(('jostle', *names))}` is not a command")
        found = found.commands[name]
    return found


def help_text(names: Sequence[str]) -> str:
    """Return what `jostle COMMAND --help` prints."""
    path = " ".join(("jostle", *names))
    context = click.Context(
        command(names), info_name=path, max_content_width=_WIDTH, terminal_width=_WIDTH
    )
    return command(names).get_help(context)


def option_tables(names: Sequence[str]) -> Iterator[str]:
    """Yield usage and options of a command, or of all commands with a heading for each."""
    if names:
        yield from _options(names)
        return
    for path in _commands(cli, ()):
        yield f"### `jostle {' '.join(path)}`\n"
        yield from _options(path)


def _commands(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, found in group.commands.items():
        if found.hidden:
            continue
        yield (*path, name)
        if isinstance(found, click.Group):
            yield from _commands(found, (*path, name))


def _options(names: Sequence[str]) -> Iterator[str]:
    found = command(names)
    context = click.Context(found, info_name=" ".join(("jostle", *names)))
    usage = " ".join((context.command_path, *found.collect_usage_pieces(context)))
    for paragraph in (found.help or "").strip().split("\n\n"):
        if paragraph.startswith("\b"):
            yield f"```text\n{paragraph.removeprefix(chr(8)).strip(chr(10))}\n```\n"
        else:
            yield f"{plain(' '.join(paragraph.split()))}\n"
    yield f"```text\n{usage}\n```\n"
    if isinstance(found, click.Group):
        cells = [
            (f"`{name}`", plain(one.get_short_help_str(200)))
            for name, one in found.commands.items()
            if not one.hidden
        ]
        yield from table(("Command", "Purpose"), cells)
    records = [
        record
        for parameter in found.get_params(context)
        if (record := parameter.get_help_record(context)) and not _is_help(parameter)
    ]
    if records:
        cells = [(f"`{name}`", plain(" ".join(text.split()))) for name, text in records]
        yield from table(("Option", "Meaning"), cells)


def _is_help(parameter: click.Parameter) -> bool:
    return "--help" in parameter.opts


def facts(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield class, origin and source of an entry."""
    found = [("Class", row["class"])]
    if row["based_on"]:
        found.append(("Based on", ", ".join(row["based_on"])))
    if "slow_start" in row:
        found.append(("Slow start", row["slow_start"] or "its own"))
    if row["source"]:
        found.append(("Source", row["source"]))
    yield "\\\n".join(f"**{fact}:** {plain(text)}" for fact, text in found) + "\n"


def parameters(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of an entry's parameters, if it has any."""
    if row["parameters"]:
        cells = [
            (f"`{p['name']}`", _in_words(_default(p)), plain(_range(p)), plain(p["summary"]))
            for p in row["parameters"]
        ]
        yield from table(("Parameter", "Default", "Values", "Meaning"), cells)


def form(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Describe the format of a value in a few words."""
    bare = {key: value for key, value in schema.items() if key not in ("description", "default")}
    unit = _UNITS.get(json.dumps(bare, sort_keys=True))
    match bare:
        case _ if unit:
            words = unit
        case {"$ref": str(target)}:
            words = form(definitions[target.rsplit("/", 1)[1]], definitions)
        case {"const": value}:
            words = _code(value)
        case {"enum": [str(), *_] as several} if len(several) > _FEW:
            words = "name"
        case {"enum": [*others, last]}:
            listed = ", ".join(map(_code, others))
            words = f"{listed} or {_code(last)}" if listed else _code(last)
        case {"anyOf": several} | {"oneOf": several}:
            words = " or ".join(dict.fromkeys(form(one, definitions) for one in several))
        case {"type": "string", "examples": [example, *_]}:
            words = f'`"{example}"`'
        case {"type": str(name)}:
            words = _TYPES[name]
        case _:
            words = "text"
    return words


def _code(value: object) -> str:
    """Return a value as code, as in a scenario."""
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield a table in Markdown, and the empty line after it."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def plain(text: str) -> str:
    """Escape markup, except in code between backquotes."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        part if at % 2 else "".join(f"\\{c}" if c in "\\`*_{}[]<>#$" else c for c in part)
        for at, part in enumerate(parts)
    )


def sentence(summary: str) -> str:
    """Return a summary of the registry as a sentence."""
    return f"{plain(summary[0].upper() + summary[1:])}."


def _in_words(default: str) -> str:
    """Return a default as code, or in words if a scenario cannot express it."""
    return plain(default.strip("()")) if default.startswith("(") else f"`{default}`"
