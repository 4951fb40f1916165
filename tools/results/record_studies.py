"""Writes the outcomes of published claims into the page on studies.

    jostle study run all --json > sim.json
    python tools/results/record_studies.py sim.json

The document contains the recorded results on Linux (`record_linux.py`). Writes
`studies-results.inc`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "results" / "data"
TARGET = DATA / "studies-results.inc"

CLASSES = (
    "holds in every plausible setup",
    "depends on the setup",
    "fails in every plausible setup",
    "open",
    "could not be judged",
)

Rows = Sequence[Mapping[str, Any]]


def main() -> None:
    """Read the document, write the tables."""
    document = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    studies = [study for study in document["studies"] if study["claims"]]
    TARGET.write_text("\n".join([*summary(studies), *map_claims(studies)]) + "\n", "utf-8")


def summary(studies: Rows) -> Iterator[str]:
    """Yield the classes of claims by study, and verdicts and deviations by setup."""
    yield "| Study | Claims | " + " | ".join(CLASSES) + " |"
    yield "| --- | --- |" + " --- |" * len(CLASSES)
    for study in studies:
        found = Counter(claim["class"] for claim in study["claims"])
        cells = [str(found[name]) for name in CLASSES]
        yield f"| `{study['id']}` | {len(study['claims'])} | " + " | ".join(cells) + " |"
    yield ""
    yield "| Study | Setup | hold | fail | open | median ratio | worst ratio |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for study in studies:
        for at, one in enumerate(study["setups"]):
            counts = [str(one["claims"][name]) for name in ("holds", "fails", "open")]
            name = "" if at else f"`{study['id']}`"
            found = one["deviation"]
            ratios = ["–", "–"]
            if found is not None:
                ratios = [f"× {found['median']:.2f}", f"× {found['worst']:.2f}"]
            cells = " | ".join([one["title"], *counts, *ratios])
            yield f"| {name} | {cells} |"


def map_claims(studies: Rows) -> Iterator[str]:
    """Yield every claim, and its deciding comparison."""
    for study in studies:
        columns = {(one["id"], one["backend"]): one["title"] for one in study["setups"]}
        yield ""
        yield f"**{study['id']}**"
        for text in study["learned"]:
            yield ""
            yield text
        yield ""
        yield "| Claim | asks for | over all setups | " + " | ".join(columns.values()) + " |"
        yield "| --- | --- | --- |" + " --- |" * len(columns)
        for claim in study["claims"]:
            cells = [verdict(claim["setups"][name].get(backend)) for name, backend in columns]
            head = " | ".join([claim["text"], claim["published"], claim["class"]])
            yield f"| {head} | " + " | ".join(cells) + " |"


def verdict(found: Mapping[str, Any] | None) -> str:
    """Format whether a claim holds, and the deciding number."""
    if found is None or found["verdict"] is None:
        return "–"
    word = {"holds": "yes", "fails": "**no**", "open": "open"}[found["verdict"]]
    if found["ours"] is None:
        return f"{word}: never" if found.get("never") else word
    return f"{word}: {digits(found['ours'])}"


def digits(value: float) -> str:
    """Format a number with three digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
