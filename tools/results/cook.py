"""Runs the cookbook's commands and writes the page: `cookbook.md` and its pictures.

    python tools/results/cook.py

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

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools"))

from doc_blocks.estimates import estimate_text, phase_sentence  # noqa: E402

SCENARIOS = Path("scenarios/cookbook")
PICTURES = DOCS / "images" / "cookbook"
INTRODUCTION = """\
# Cookbook

<!-- Written by tools/results/cook.py from docs/cookbook.toml. -->

Fifteen questions that people have, each with a scenario, at most two commands and a picture. The
scenarios are in `scenarios/cookbook/`; change one, and ask your own. Numbers are means over the
runs of the scenario ± half of their 95 % interval. Who comes with a measurement instead of a
scenario finds [an example of its own](from-measurement.md).
"""


def questions() -> list[dict[str, Any]]:
    """Read the questions in the order of the page."""
    document = tomllib.loads((DOCS / "cookbook.toml").read_text("utf-8"))
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


def phase_of(question: Mapping[str, Any]) -> str:
    """Return the phase of a question's numbers.

    Raises
    ------
    ValueError
        When they are of several: a sentence that compares them would be wrong.
    """
    phases = sorted({value["phase"] for value in question.get("values", {}).values()})
    if len(phases) > 1:
        raise ValueError(f"{question['id']}: numbers of several phases: {', '.join(phases)}")
    return phases[0] if phases else ""


def page(question: Mapping[str, Any], results: ResultSet) -> str:
    """Return a question's section of the page."""
    values = question.get("values", {})
    text = re.sub(
        r"\{(\w+)\}", lambda found: estimate_text(results, values[found[1]]), question["text"]
    )
    if phase := phase_of(question):
        text = f"{text} {phase_sentence(results, phase)}"
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
    (DOCS / "cookbook.md").write_text("\n".join(parts), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
