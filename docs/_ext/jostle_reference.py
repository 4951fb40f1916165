"""Directives that write the reference from the engine's registries and the scenario schema.

`jostle explain`, `jostle --help` and the scenario reader use the same data, so the reference cannot
be out of date.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from docutils import nodes
from jostle import _core
from jostle.cli import cli
from jostle.cli.list_and_explain import _default, _range
from jostle.results.measures import measures
from jostle.scenario import fields, models
from jostle.scenario.resolve.profiles import profiles
from jostle.scenario.schema import json_schema
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_UNITS = {
    json.dumps(schema.json_schema, sort_keys=True): name
    for schema, name in (
        (fields.SPAN_SCHEMA, "time"),
        (fields.RATE_SCHEMA, "rate"),
        (fields.AMOUNT_SCHEMA, "amount"),
    )
}

_FEW = 2
"""Largest number of accepted words that are listed; longer lists are documented elsewhere."""
_TYPES = {
    "array": "list",
    "boolean": "`true` or `false`",
    "integer": "whole number",
    "number": "number",
    "object": "table",
    "string": "text",
}


class _Markdown(SphinxDirective):
    """A directive that is replaced by Markdown."""

    has_content = False

    @abstractmethod
    def _markdown(self) -> Iterator[str]:
        """Yield the lines that replace the directive."""

    def run(self) -> list[nodes.Node]:
        lines = "\n".join(self._markdown())
        return self.parse_text_to_nodes(lines, allow_section_headings=True)


class Rows(_Markdown):
    """Every entry of a registry, which is one of the registries of `jostle list`."""

    required_arguments = 1

    def _markdown(self) -> Iterator[str]:
        for row in json.loads(_core.registry())[self.arguments[0]]:
            summary = row["summary"]
            yield f"### `{row['name']}`\n\n{_plain(summary[0].upper() + summary[1:])}.\n"
            yield from _facts(row)
            yield from _parameters(row)


class Measures(_Markdown):
    """The measures of one scope and one position in the summary."""

    required_arguments = 2

    def _markdown(self) -> Iterator[str]:
        wanted = tuple(self.arguments)
        rows = [m for m in measures().values() if (m.scope, m.place) == wanted]
        keyed = any(row.key for row in rows)
        yield (
            "| Name | Key | Read in | Definition |" if keyed else "| Name | Read in | Definition |"
        )
        yield "| --- " * (4 if keyed else 3) + "|"
        for row in rows:
            key = f"| `{row.key}` " if keyed else ""
            yield f"| `{row.name}` {key}| {row.display_unit or '–'} | {row.definition} |"
        yield ""


class Keys(_Markdown):
    """Every key of a table of the scenario file; the body has a line for each.

    A line is `key: meaning`, or `key (default): meaning`. Keys in the body that the file format
    does not have, and keys that the body omits, are errors of the build.
    """

    required_arguments = 1
    has_content = True

    def _markdown(self) -> Iterator[str]:
        schema = json_schema()
        name = self.arguments[0]
        table = schema if name == models.ScenarioFile.__name__ else schema["$defs"][name]
        told = dict(line.split(": ", 1) for line in self.content if line.strip())
        told = {key.split(" ")[0]: (key, text) for key, text in told.items()}
        keys = [key for key in table["properties"] if key != "kind"]
        if set(told) != set(keys):
            raise self.error(f"{name}: these keys differ: {sorted(set(told) ^ set(keys))}")
        cells = []
        for key in keys:
            head, text = told[key]
            default = head.removeprefix(key).strip(" ()")
            if not default and key in table.get("required", ()):
                default = "required"
            form = _form(table["properties"][key], schema["$defs"])
            cells.append((f"`{key}`", form, default or "–", text))
        yield from _table(("Key", "Written as", "Default", "Meaning"), cells)


class Profiles(_Markdown):
    """Named links."""

    def _markdown(self) -> Iterator[str]:
        cells = [(f"`{n}`", _plain(p["summary"]), p["rtt"]) for n, p in profiles().items()]
        yield from _table(("Profile", "What it is", "Default rtt"), cells)


class Help(_Markdown):
    """Output of `jostle COMMAND --help`."""

    optional_arguments = 2

    def _markdown(self) -> Iterator[str]:
        command: click.Command = cli
        for name in self.arguments:
            if not isinstance(command, click.Group):
                raise self.error(f"{command.name} has no command {name}")
            command = command.commands[name]
        path = " ".join(["jostle", *self.arguments])
        context = click.Context(command, info_name=path, max_content_width=90, terminal_width=90)
        yield f"```text\n{command.get_help(context)}\n```"


class Scenario(_Markdown):
    """An example from `scenarios/`."""

    required_arguments = 1

    def _markdown(self) -> Iterator[str]:
        path = Path(self.env.srcdir).parent / "scenarios" / self.arguments[0]
        self.env.note_dependency(str(path))
        yield f"```toml\n{path.read_text('utf-8').strip()}\n```"


def _facts(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield class, origin and source of an entry."""
    facts = [("Class", row["class"])]
    if row["based_on"]:
        facts.append(("Based on", ", ".join(row["based_on"])))
    if "slow_start" in row:
        facts.append(("Slow start", row["slow_start"] or "its own"))
    if row["source"]:
        facts.append(("Source", row["source"]))
    yield "\\\n".join(f"**{fact}:** {_plain(text)}" for fact, text in facts) + "\n"


def _parameters(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of an entry's parameters, if it has any."""
    if row["parameters"]:
        cells = [
            (f"`{p['name']}`", _written(_default(p)), _plain(_range(p)), _plain(p["summary"]))
            for p in row["parameters"]
        ]
        yield from _table(("Parameter", "Default", "Values", "Meaning"), cells)


def _form(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Describe the format of a value in a few words."""
    bare = {key: value for key, value in schema.items() if key not in ("description", "default")}
    unit = _UNITS.get(json.dumps(bare, sort_keys=True))
    match bare:
        case _ if unit:
            form = unit
        case {"$ref": str(target)}:
            form = _form(definitions[target.rsplit("/", 1)[1]], definitions)
        case {"const": word}:
            form = f'`"{word}"`'
        case {"enum": words}:
            few = len(words) <= _FEW
            form = " or ".join(f'`"{word}"`' for word in words) if few else "name"
        case {"anyOf": several} | {"oneOf": several}:
            form = " or ".join(dict.fromkeys(_form(one, definitions) for one in several))
        case {"type": "string", "examples": [example, *_]}:
            form = f'`"{example}"`'
        case {"type": str(name)}:
            form = _TYPES[name]
        case _:
            form = "text"
    return form


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def _plain(text: str) -> str:
    """Escape markup."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#$" else c for c in text)


def _written(default: str) -> str:
    """Return a default as code, or in words if a scenario cannot express it."""
    return _plain(default.strip("()")) if default.startswith("(") else f"`{default}`"


class Features(_Markdown):
    """Features that learners can observe."""

    def _markdown(self) -> Iterator[str]:
        yield "| Feature | What it is | From | To | Before the first interval |"
        yield "| --- | --- | --- | --- | --- |"
        for name, about, low, high, rest in _core.learning_features()[0]:
            yield f"| `{name}` | {_plain(about)} | {low:g} | {high:g} | {rest:g} |"
        yield ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("registry-rows", Rows)
    app.add_directive("measures", Measures)
    app.add_directive("scenario-keys", Keys)
    app.add_directive("profiles", Profiles)
    app.add_directive("features", Features)
    app.add_directive("cli-help", Help)
    app.add_directive("scenario", Scenario)
    return {"parallel_read_safe": True}
