"""Runs the cookbook's commands and writes the page: `cookbook.md` and its pictures.

    python docs/cook.py

`cookbook.toml` contains the questions. Every number of the page is an estimate over the runs of its
scenario, and every picture is drawn by the command above it.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jostle
from jostle.cli import status
from jostle.results import ResultSet
from jostle.results.measures import measure

HERE = Path(__file__).parent
ROOT = HERE.parent
SCENARIOS = Path("scenarios/cookbook")
PICTURES = HERE / "images" / "cookbook"
INTRODUCTION = """\
# Cookbook

<!-- Written by docs/cook.py from docs/cookbook.toml. -->

Fifteen questions that people have, each with a scenario, at most two commands and a picture. The
scenarios are in `scenarios/cookbook/`; change one, and ask your own. Numbers are means over the
runs of the scenario ± half of their 95 % interval. Who comes with a measurement instead of a
scenario finds [an example of its own](from-measurement.md).
"""


def questions() -> list[dict[str, Any]]:
    """Read the questions in the order of the page."""
    document = tomllib.loads((HERE / "cookbook.toml").read_text("utf-8"))
    found: list[dict[str, Any]] = document["question"]
    return found


def commands(question: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the words of a question's commands; the last one draws the picture."""
    scenario = str(SCENARIOS / question["scenario"])
    if question.get("validate"):
        yield ["validate", scenario, "--figures", "pictures"]
        return
    yield ["run", scenario]
    yield ["plot", scenario, *shlex.split(question["plot"]), "-o", f"{question['id']}.png"]


def number(results: ResultSet, wanted: Mapping[str, Any]) -> str:
    """Format a value of the results: mean ± half of the interval, and the unit."""
    found = results.estimate(wanted["measure"], wanted["phase"])
    rows = found.to_dicts()
    where = wanted["where"]
    if isinstance(where, str):
        rows = [row for row in rows if row["condition"] == where]
    else:
        at = results.condition_index({key_of(results, key): value for key, value in where.items()})
        rows = [row for row in rows if row["condition"] == results.labels[at]]
    for scope in ("flow", "group", "link"):
        if scope in wanted:
            rows = [row for row in rows if row.get(scope) == wanted[scope]]
    (row,) = rows
    return written(row, measure(wanted["measure"]), wanted.get("part", "both"))


def key_of(results: ResultSet, name: str) -> str:
    """Return the grid key that ends with a name."""
    keys = list(results.conditions[0])
    return next(key for key in keys if key == name or key.endswith(f".{name}"))


def written(row: Mapping[str, Any], shown: Any, part: str) -> str:
    """Format mean and half of the interval with the precision of the interval."""
    value = row["value"] * shown.factor
    half = (row["high"] - row["low"]) / 2 * shown.factor
    decimals = 0 if half >= 9.5 else 1 if half >= 0.95 else 2 if half >= 0.095 else 3
    unit = f" {shown.display_unit}" if shown.display_unit else ""
    if part == "half":
        return f"{half:.{decimals}f}{unit}"
    # Without randomness there is no interval.
    interval = f" ± {half:.{decimals}f}" if half >= 0.0005 else ""
    return f"{value:.{decimals}f}{interval}{unit}"


def page(question: Mapping[str, Any], results: ResultSet) -> str:
    """Return a question's section of the page."""
    values = question.get("values", {})
    text = re.sub(r"\{(\w+)\}", lambda found: number(results, values[found[1]]), question["text"])
    lines = "\n".join("$ " + shlex.join(["jostle", *words]) for words in commands(question))
    picture = f"images/cookbook/{question['id']}.png"
    shown = "" if question.get("validate") else f"\n![{question['asks']}]({picture})\n"
    return f"## {question['asks']}\n\n```console\n{lines}\n```\n{shown}\n{text}\n"


def main() -> int:
    """Run all commands and write the page."""
    parts = [INTRODUCTION]
    PICTURES.mkdir(parents=True, exist_ok=True)
    for question in questions():
        for words in commands(question):
            picture = str(PICTURES / f"{question['id']}.png")
            drawn = [*words[:-1], picture] if words[0] == "plot" else words
            if words[0] != "validate" and status(drawn) != 0:
                return 1
        parts.append(page(question, jostle.run(ROOT / SCENARIOS / question["scenario"])))
    (HERE / "cookbook.md").write_text("\n".join(parts), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
