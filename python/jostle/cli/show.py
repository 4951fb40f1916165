"""`jostle list`, `jostle explain`, `jostle schema`: what there is, from the registries."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from jostle.cli.environment import Environment
from jostle.errors import InputError
from jostle.measures import unknown

SCENARIOS = "scenarios"
STUDIES = "studies"

_SUFFIXES = {"span": "_ns", "rate": "_bps", "size": "_bytes"}
"""What the registry's keys of a default and a range end with, by kind of parameter."""
_NO_LIMIT = 2**63 - 1
"""A range's end that stands for having none."""


@click.command("list", short_help="List controllers, slow starts, queues, scenarios, studies.")
@click.argument("kind")
@click.option("--tree", is_flag=True, help="Show who builds on whom: a family tree.")
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --tree: draw it into this file (.png, .svg or .pdf).",
)
@click.pass_obj
def list_(environment: Environment, kind: str, *, tree: bool, figure: Path | None) -> None:
    """List everything of a KIND, such as controllers, slow-starts, memories, queues, studies."""
    if figure and not tree:
        raise InputError("--figure draws the family tree: give --tree, too")
    if tree:
        rows = _family(environment, kind, figure)
        header = ("name", "class", "what it is")
    elif kind == SCENARIOS:
        rows = [(str(path), "", title) for path, title in _scenarios()]
        header = ("file", "", "title")
    elif kind == STUDIES:
        rows = [(name, "", title) for name, title in _studies()]
        header = ("id", "", "title")
    else:
        entries = _entries(environment, kind)
        rows = [(row["name"], row["class"], row["summary"]) for row in entries]
        header = ("name", "class", "what it is")
    _print_columns(header, rows)


@click.command(short_help="Explain a controller, slow start, queue, …")
@click.argument("name")
@click.pass_obj
def explain(environment: Environment, name: str) -> None:
    """Explain NAME: what it is, where it comes from, and its parameters."""
    registry = environment.registry()
    found = [(kind, row) for kind, rows in registry.items() for row in rows if row["name"] == name]
    if not found:
        names = [row["name"] for rows in registry.values() for row in rows]
        raise InputError(unknown("algorithm", name, names))
    for number, (kind, row) in enumerate(found):
        if number:
            click.echo()
        click.echo(_explanation(kind, row, registry[kind]))


@click.command(short_help="Print the JSON Schema of scenarios or runs.")
@click.argument("what", type=click.Choice(["scenario", "run"]))
@click.pass_obj
def schema(environment: Environment, what: str) -> None:
    """Print a JSON Schema: of the scenario file, or of one resolved run."""
    if what == "run":
        document = json.loads(environment.load_engine().run_spec_schema())
    else:
        from jostle.scenario.schema import json_schema

        document = json_schema()
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _entries(environment: Environment, kind: str) -> Sequence[Mapping[str, Any]]:
    registry = environment.registry()
    entries = registry.get(kind.replace("-", "_"))
    if entries is None:
        kinds = [name.replace("_", "-") for name in registry]
        raise InputError(unknown("kind", kind, [*kinds, SCENARIOS, STUDIES]))
    return entries


def _family(environment: Environment, kind: str, file: Path | None) -> list[tuple[str, str, str]]:
    """Lines of the family tree, which is drawn into `file` if there is one."""
    from jostle.figures.family import family_tree, tree_lines

    entries = [] if kind in (SCENARIOS, STUDIES) else _entries(environment, kind)
    if not any(row.get("based_on") for row in entries):
        raise InputError(f"no family tree of {kind}: none builds on another; controllers have one")
    if file:
        from jostle.figures import draw, save

        save.save(draw.family(family_tree(entries)), file.with_suffix(""), (file.suffix[1:],))
    return [(line + row["name"], row["class"], row["summary"]) for line, row in tree_lines(entries)]


def _explanation(kind: str, row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    facts = [("kind", kind.replace("_", " ").removesuffix("s")), ("class", row["class"])]
    if row.get("based_on"):
        facts.append(("based on", ", ".join(row["based_on"])))
    if heirs := [other["name"] for other in rows if row["name"] in other.get("based_on", ())]:
        facts.append(("base of", ", ".join(heirs)))
    if "slow_start" in row:
        facts.append(("slow start", row["slow_start"] or "its own"))
    facts.append(("source", row["source"]))
    lines = [row["name"], f"  {row['summary']}", ""]
    lines += [f"  {fact + ':':<12}{text}" for fact, text in facts if text]
    lines += ["", "  parameters:" if row["parameters"] else "  no parameters"]
    for parameter in row["parameters"]:
        lines.append(f"    {parameter['name']} = {_default(parameter)}    ({_range(parameter)})")
        lines.append(f"        {parameter['summary']}")
    return "\n".join(lines)


def _default(parameter: Mapping[str, Any]) -> str:
    value = parameter.get("default" + _suffix(parameter))
    if value is None:
        return "…"  # It follows from other keys.
    if parameter["kind"] == "file":
        return "(built in)"
    amount = _amount(parameter, value)
    if amount is not None:
        return f'"{amount}"'
    return json.dumps(value)


def _range(parameter: Mapping[str, Any]) -> str:
    if parameter["kind"] == "bool":
        return "true or false"
    if parameter["kind"] == "choice":
        return "one of " + ", ".join(json.dumps(choice) for choice in parameter["choices"])
    if parameter["kind"] == "file":
        return f"path of {parameter['content']}, from the scenario's folder"
    suffix = _suffix(parameter)
    low, high = parameter["min" + suffix], parameter["max" + suffix]
    ends = [_amount(parameter, end) or json.dumps(end) for end in (low, high)]
    noun = {"integer": "whole number, ", "number": "number, "}.get(parameter["kind"], "")
    if high >= _NO_LIMIT:
        return f"{noun}{ends[0]} or more"
    return f"{noun}{ends[0]} … {ends[1]}"


def _suffix(parameter: Mapping[str, Any]) -> str:
    return _SUFFIXES.get(parameter["kind"], "")


def _amount(parameter: Mapping[str, Any], value: int) -> str | None:
    from jostle.scenario.units import format_amount

    if value == 0 and parameter["kind"] in _SUFFIXES:
        return "0"
    match parameter["kind"]:
        case "span":
            return format_amount(value, "time")
        case "rate":
            return format_amount(value, "rate")
        case "size":
            return format_amount(value, "size")
    return None


def _scenarios() -> list[tuple[Path, str]]:
    """Scenario files here, or else the examples of the source tree; with their titles."""
    here = Path(SCENARIOS)
    examples = Path(__file__).parents[3] / SCENARIOS
    folder = here if here.is_dir() else examples
    found = []
    for path in sorted(folder.glob("**/*.toml")):
        try:
            title = tomllib.loads(path.read_text("utf-8")).get("title", "")
        except (OSError, ValueError):
            title = "(not readable)"
        found.append((path, str(title)))
    if not found:
        raise InputError("no scenarios here: there is no folder `scenarios` with TOML files")
    return found


def _studies() -> list[tuple[str, str]]:
    """Studies here, or else of the source tree; with their titles."""
    from jostle.studies import load, names

    found = [(name, load(name).file.title) for name in names()]
    if not found:
        raise InputError("no studies here: there is no folder `studies` with study.toml files")
    return found


def _print_columns(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Columns two spaces apart; empty ones are left out."""
    lines = [header, *rows]
    shown = [c for c in range(len(header)) if any(line[c] for line in lines)]
    widths = {c: max(len(line[c]) for line in lines) for c in shown}
    for line in lines:
        click.echo("  ".join(f"{line[c]:<{widths[c]}}" for c in shown).rstrip())
