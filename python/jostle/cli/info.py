"""`jostle info`: information from the registries."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from jostle.cli import shell_completion
from jostle.cli.environment import Environment
from jostle.cli.options import store_folder_option
from jostle.cli.output_targets import FIGURE, Outputs, output_option
from jostle.cli.registry_names import (
    MEASURES,
    NOT_OF_THE_ENGINE,
    PROFILES,
    SCENARIOS,
    STUDIES,
    SUITES,
    kinds_of,
    papers_of,
    profiles_of,
    scenarios_of,
    studies_of,
    suites_of,
)
from jostle.errors import InputError, close_to, unknown
from jostle.safe_io.terminal_text import echo, single_line, wrap_words

if TYPE_CHECKING:
    from jostle.store.run_folder import StoredRun
    from jostle.store.segments.reader import SegmentRun

_SUFFIXES = {"span": "_ns", "rate": "_bps", "size": "_bytes", "limit": "_bytes"}
"""Suffixes of the registry's keys for default and range, by kind of parameter."""
_RANGES = {"bool": "true or false", "probability": "probability, 0 … 1"}
_NO_LIMIT = 2**50
"""Bound from which a range counts as unlimited: a pebibyte, or 13 days in nanoseconds."""
_WIDTH = 100
_NARROWEST = 40
"""Smallest width of a list's last column."""


@click.option(
    "--cite",
    "names",
    metavar="NAME",
    multiple=True,
    shell_complete=shell_completion.registered(),
    help="Print BibTeX for a stored run, a controller, queue, … or a study; may be repeated.",
)
@store_folder_option
@click.pass_context
def cite(context: click.Context, /, *, names: tuple[str, ...], store_path: str) -> None:
    """Print the BibTeX entries of names, unless a command follows."""
    if context.invoked_subcommand is not None:
        if names:
            raise InputError(f"--cite: leave out the command `{context.invoked_subcommand}`")
        return
    if not names:
        raise InputError("--store is for --cite: give a name, as in `jostle info --cite cubic`")
    echo("\n\n".join(_citations(context.obj, names, Path(store_path))))


def _citations(environment: Environment, names: Sequence[str], store: Path) -> list[str]:
    """Return comments that say what follows, and BibTeX entries."""
    from jostle.results.citations import bibliography, keys_of, names_of, software_entry
    from jostle.store.store import Reader

    rows = [row for rows in environment.registry().values() for row in rows if "source" in row]
    sources = {**papers_of(), **{row["name"]: row["source"] for row in rows}}
    reader = Reader(store)
    runs = reader.names() if store.is_dir() else frozenset()
    entries: dict[str, None] = {}
    wanted: dict[str, str] = {}
    for name in names:
        if name in sources:
            wanted[name] = sources[name]
        elif name in runs:
            run = cast("StoredRun | SegmentRun", reader.get(name))
            entries[software_entry(run.provenance)] = None
            used = {part: sources.get(part) for part in names_of(run)}
            # Nothing is known of a controller in Python; a constant rate needs no source.
            wanted |= {part: source or "" for part, source in used.items() if source != ""}
        else:
            known = [*sources, *(run for run in runs if run.startswith(name))]
            raise InputError(_unknown_name(name, known, "registry entry, study or stored run"))
    entries |= dict.fromkeys(bibliography(wanted))
    subject = ", ".join(f"run {name}" if name in runs else name for name in names)
    several = "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
    comments = [f"% Cite {several} for {subject}." if entries else f"% Nothing to cite: {subject}."]
    if without := [name for name, source in wanted.items() if not keys_of(name, source)]:
        comments.append(f"% Without a publication: {', '.join(without)}.")
    return ["\n".join(comments), *entries]


@click.command("list", short_help="List controllers, queues, scenarios, studies, ….")
@click.argument("kind", required=False, shell_complete=shell_completion.kinds)
@click.option("--tree", is_flag=True, help="Show which entries are based on which others.")
@output_option(FIGURE)
@click.pass_obj
def list_(environment: Environment, /, *, kind: str | None, tree: bool, outputs: Outputs) -> None:
    """List all entries of a KIND, such as controllers; without KIND, list the kinds.

    Example: jostle info list controllers --tree
    """
    if outputs and not tree:
        raise InputError("-o draws the family tree: give --tree, too")
    outputs.prepare()
    rows: list[tuple[str, ...]]
    header: tuple[str, ...]
    if kind is None:
        if tree:
            raise InputError(
                "--tree shows the family of a kind, as in `jostle info list controllers --tree`"
            )
        _print_columns(("kind",), [(name,) for name in kinds_of(environment)])
        return
    if tree:
        rows = list(_family(environment, kind, outputs))
        header = ("name", "class", "what it is")
    elif kind == SCENARIOS:
        rows = [(str(path), "", title) for path, title in scenarios_of()]
        header = ("file", "", "title")
    elif kind in (STUDIES, SUITES):
        listed = studies_of() if kind == STUDIES else suites_of()
        rows = [(name, "", title) for name, title in listed]
        header = ("id", "", "title")
    elif kind == PROFILES:
        rows = [(name, "", keys["summary"]) for name, keys in profiles_of().items()]
        header = ("name", "", "what it is")
    elif kind == MEASURES:
        entries = _entries(environment, kind)
        rows = [
            (row["name"], row["title"], row["scope"], _first_sentence(row["definition"]))
            for row in entries
        ]
        header = ("name", "in tables", "of", "what it is")
    else:
        entries = _entries(environment, kind)
        rows = [(row["name"], row["class"], row["summary"]) for row in entries]
        header = ("name", "class", "what it is")
    _print_columns(header, rows)


@click.command(short_help="Explain a controller, slow start, queue, ….")
@click.argument("name", shell_complete=shell_completion.registered())
@click.pass_obj
def explain(environment: Environment, name: str) -> None:
    """Explain NAME: its purpose, its source, and its parameters.

    Example: jostle info explain bbr3
    """
    registry = environment.registry()
    found = [
        _measure(row) if kind == MEASURES else _explanation(kind, row, rows)
        for kind, rows in registry.items()
        for row in rows
        if row["name"] == name
    ]
    if name in profiles_of():
        found.append(_profile(name))
    if not found:
        names = [row["name"] for rows in registry.values() for row in rows]
        raise InputError(_unknown_name(name, [*names, *profiles_of()]))
    echo("\n\n".join(found))


@click.command(short_help="Print the JSON Schema of scenarios or runs.")
@click.argument("what", type=click.Choice(["scenario", "run"]))
@click.pass_obj
def schema(environment: Environment, what: str) -> None:
    """Print a JSON Schema of the scenario file, or of a run specification.

    Example: jostle info schema scenario > scenario.schema.json
    """
    if what == "run":
        document = json.loads(environment.load_engine().run_spec_schema())
    else:
        from jostle.scenario.schema import json_schema

        document = json_schema()
    echo(json.dumps(document, indent=2, ensure_ascii=False))


@click.command(short_help="Print the sources of controllers, queues, ….")
@click.argument("names", metavar="[NAME…]", nargs=-1, shell_complete=shell_completion.registered())
@click.pass_obj
def citations(environment: Environment, names: tuple[str, ...]) -> None:
    """Print the paper, RFC or source code on which each NAME is based; without NAME, all of them.

    Example: jostle info citations cubic bbr3
    """
    rows = [row for rows in environment.registry().values() for row in rows if row.get("source")]
    known = [row["name"] for row in rows]
    for name in names:
        if name not in known:
            raise InputError(_unknown_name(name, known))
    cited = {row["name"]: row["source"] for row in rows if not names or row["name"] in names}
    _print_columns(("name", "source"), list(cited.items()))


def _entries(environment: Environment, kind: str) -> Sequence[Mapping[str, Any]]:
    from jostle.scenario.parsing.renamed_keys import LIST_KINDS

    registry = environment.registry()
    entries = registry.get(kind.replace("-", "_"))
    if kind in LIST_KINDS:
        raise InputError(f"`{kind}` is now called `{LIST_KINDS[kind]}`")
    if entries is None:
        raise InputError(unknown("kind", kind, kinds_of(environment)))
    return entries


def _unknown_name(name: str, names: Sequence[str], what: str = "algorithm") -> str:
    if close_to(name, names):
        return unknown(what, name, names)
    return (
        f"no {what} `{name}`: `jostle info list` shows the kinds, `jostle info list KIND` their "
        "names"
    )


def _family(environment: Environment, kind: str, outputs: Outputs) -> list[tuple[str, str, str]]:
    """Return the lines of the family tree, and draw it into the files of `-o`."""
    from jostle.figures.family_tree import family_tree, tree_lines

    entries = [] if kind in NOT_OF_THE_ENGINE else _entries(environment, kind)
    if not any(row.get("based_on") for row in entries):
        raise InputError(f"no family tree of {kind}: none builds on another; controllers have one")
    if outputs:
        from jostle.figures import draw

        outputs.write_drawing(draw.family(family_tree(entries)), quiet=True)
    return [(line + row["name"], row["class"], row["summary"]) for line, row in tree_lines(entries)]


def _explanation(kind: str, row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    facts = [("kind", _singular(kind)), ("class", row["class"])]
    if row.get("based_on"):
        facts.append(("based on", ", ".join(row["based_on"])))
    if heirs := [other["name"] for other in rows if row["name"] in other.get("based_on", ())]:
        facts.append(("base of", ", ".join(heirs)))
    if "slow_start" in row:
        facts.append(("slow start", row["slow_start"] or "its own"))
    facts.append(("source", row["source"]))
    if kind == "controllers":
        from jostle.fidelity.validation_status import status_of

        status = status_of(row["name"])
        facts.append(("validation", f"{status.text}{f' ({status.page})' if status.page else ''}"))
        facts += [("not known", f"why {text} differs") for text in status.unexplained]
    lines = [row["name"], f"  {row['summary']}", ""]
    lines += [f"  {fact + ':':<12}{text}" for fact, text in facts if text]
    lines += ["", "  parameters:" if row["parameters"] else "  no parameters"]
    for parameter in row["parameters"]:
        lines.append(f"    {parameter['name']} = {_default(parameter)}    ({_range(parameter)})")
        lines.append(f"        {parameter['summary']}")
    return "\n".join(lines)


def _measure(row: Mapping[str, Any]) -> str:
    """Explain a measure: definition, unit, and key in the summary."""
    whose = "the run" if row["scope"] == "run" else f"each {row['scope']}"
    display_unit, unit = row["display_unit"] or "a number", row["unit"]
    when = "each phase" if row["place"] in ("phases", "fairness", "totals") else "the whole run"
    facts = [
        ("kind", "measure"),
        ("of", f"{whose}, {when}" if row["scope"] != "run" else when),
        (
            "unit",
            display_unit if unit == "1" or not row["key"] else f"{display_unit} ({unit} in JSON)",
        ),
        ("key", row["key"]),
        ("series", row["column"]),
    ]
    lines = [row["name"], *wrap_words(row["definition"], _WIDTH - 2), ""]
    lines += [f"{fact + ':':<12}{text}" for fact, text in facts if text]
    return "\n".join([lines[0], *(f"  {line}".rstrip() for line in lines[1:])])


def _first_sentence(text: str) -> str:
    """Return the first sentence of a definition."""
    return re.split(r"[.;] |\.$", text, maxsplit=1)[0]


def _singular(kind: str) -> str:
    """Return the singular of a kind: `slow start`, `peer cache`, `loss`."""
    words = kind.replace("_", " ")
    if words.endswith("ies"):
        return words.removesuffix("ies") + "y"
    return words.removesuffix("es" if words.endswith("sses") else "s")


def _profile(name: str) -> str:
    """Return a profile in scenario syntax, with long lists on several lines."""
    keys = dict(profiles_of()[name])
    lines = [name, f"  {keys.pop('summary')}", "", "  kind:       profile", "", "  keys:"]
    for key, value in keys.items():
        whole = textwrap.fill(
            f"{key} = {_toml(value)}",
            width=_WIDTH,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_long_words=False,
            break_on_hyphens=False,
        )
        # Keep a unit on the line of its number.
        lines.append(whole.replace("\N{NO-BREAK SPACE}", " "))
    return "\n".join(lines)


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        # Keep pairs on one line.
        space = " " if any(isinstance(part, list) for part in value) else "\N{NO-BREAK SPACE}"
        return "[" + f",{space}".join(_toml(part) for part in value) + "]"
    return json.dumps(value).replace(" ", "\N{NO-BREAK SPACE}")


def _default(parameter: Mapping[str, Any]) -> str:
    limit = parameter["kind"] == "limit"
    value = parameter.get("default" if limit else "default" + _suffix(parameter))
    if limit and value is not None:
        value = next(iter(value.values()))
    if value is None:
        return "…"  # depends on other keys
    if parameter["kind"] == "file":
        return "(built in)"
    amount = _amount(parameter, value)
    if amount is not None:
        return f'"{amount}"'
    return json.dumps(value)


def _range(parameter: Mapping[str, Any]) -> str:
    if parameter["kind"] in _RANGES:
        return _RANGES[parameter["kind"]]
    if parameter["kind"] == "choice":
        return "one of " + ", ".join(json.dumps(choice) for choice in parameter["choices"])
    if parameter["kind"] == "file":
        return f"path of {parameter['content']}, from the scenario's folder"
    suffix = _suffix(parameter)
    low, high = parameter["min" + suffix], parameter["max" + suffix]
    ends = [_amount(parameter, end) or json.dumps(end) for end in (low, high)]
    noun = {"integer": "whole number, ", "number": "number, "}.get(parameter["kind"], "")
    if parameter["kind"] == "packets" or high >= _NO_LIMIT:
        return f"{noun}{ends[0]} or more"
    return f"{noun}{ends[0]} … {ends[1]}"


def _suffix(parameter: Mapping[str, Any]) -> str:
    return _SUFFIXES.get(parameter["kind"], "")


def _amount(parameter: Mapping[str, Any], value: int) -> str | None:
    from jostle.scenario.parsing.quantities import format_amount

    if value == 0 and parameter["kind"] in _SUFFIXES:
        return "0"
    match parameter["kind"]:
        case "span":
            return format_amount(value, "time")
        case "rate":
            return format_amount(value, "rate")
        case "size" | "limit":
            return format_amount(value, "size")
        case "packets":
            return f"{value} packet" + ("" if value == 1 else "s")
    return None


def _print_columns(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print columns two spaces apart, without empty ones. The last one is wrapped if it is long."""
    lines = [header, *rows]
    shown = [c for c in range(len(header)) if any(line[c] for line in lines)]
    widths = {c: max(len(line[c]) for line in lines) for c in shown}
    *named, last = shown
    # Without a terminal every entry is one line, as `grep` needs it.
    room = shutil.get_terminal_size((_NO_LIMIT, 24)).columns
    start = sum(widths[c] + 2 for c in named)
    for line in lines:
        wrapped = wrap_words(line[last], max(_NARROWEST, room - start)) or [""]
        first = "  ".join([*(f"{line[c]:<{widths[c]}}" for c in named), wrapped[0]])
        for text in (first, *(" " * start + more for more in wrapped[1:])):
            echo(single_line(text.rstrip()))
