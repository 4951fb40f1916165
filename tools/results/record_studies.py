"""Writes the outcomes of published claims into the page on studies.

    jostle study run all --json > sim.json
    python tools/results/record_studies.py sim.json

The document contains the recorded results on Linux (`record_linux.py`). Several documents are
merged: the results of each backend are shown side by side, in the order of the files. Writes
`studies-results.inc`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "results" / "data"
TARGET = DATA / "studies-results.inc"
TITLES = {"sim": "simulator", "kernel": "Linux 6.1"}

Rows = Sequence[Mapping[str, Any]]


def main() -> None:
    """Read the documents, write the tables."""
    studies = merged([json.loads(Path(name).read_text("utf-8")) for name in sys.argv[1:]])
    TARGET.write_text("\n".join([*summary(studies), *map_claims(studies)]) + "\n", "utf-8")


def merged(documents: Rows) -> list[dict[str, Any]]:
    """Return the studies of the first document, with the results of all documents."""
    studies = [study for study in documents[0]["studies"] if study["claims"]]
    for study in studies:
        others = [
            {claim["id"]: claim for claim in other["claims"]}
            for document in documents[1:]
            for other in document["studies"]
            if other["id"] == study["id"]
        ]
        for claim in study["claims"]:
            claim["columns"] = {
                TITLES[backend] if backend != "sim" else title: values
                for setup, title in titles(study).items()
                for backend, values in claim["setups"].get(setup, {}).items()
            }
            for other in others:
                for backend, values in other.get(claim["id"], {"backends": {}})["backends"].items():
                    claim["columns"][TITLES[backend]] = values
    return studies


def titles(study: Mapping[str, Any]) -> dict[str, str]:
    """Return the column titles of a study's setups in the simulator."""
    found = {one["id"]: one["title"] for one in study["setups"] if one["backend"] == "sim"}
    return found if len(found) > 1 else dict.fromkeys(found, TITLES["sim"])


def summary(studies: Rows) -> Iterator[str]:
    """Yield the share of claims that hold in the simulator, by study and setup."""
    yield "| Study | Setup | claims that hold | published numbers reproduced |"
    yield "| --- | --- | --- | --- |"
    for study in studies:
        published = [row for row in study["numbers"] if row["published"] is not None]
        for at, (setup, title) in enumerate(titles(study).items()):
            cells = [
                share(sum(row["setups"][setup]["sim"]["holds"] is True for row in rows), rows)
                for rows in (study["claims"], published)
            ]
            name = "" if at else f"`{study['id']}`"
            yield f"| {name} | {title} | " + " | ".join(cells) + " |"


def share(held: int, of: Rows) -> str:
    """Format a number of claims that hold."""
    return f"{held} of {len(of)}" if of else "–"


def map_claims(studies: Rows) -> Iterator[str]:
    """Yield every claim, and its deciding comparison."""
    for study in studies:
        columns = list(dict.fromkeys(name for one in study["claims"] for name in one["columns"]))
        yield ""
        yield f"**{study['id']}**"
        for text in study["learned"]:
            yield ""
            yield text
        yield ""
        yield "| Claim | asks for | " + " | ".join(columns) + " |"
        yield "| --- | --- |" + " --- |" * len(columns)
        for claim in study["claims"]:
            cells = [verdict(claim["columns"].get(name)) for name in columns]
            yield f"| {claim['text']} | {claim['published']} | " + " | ".join(cells) + " |"


def verdict(found: Mapping[str, Any] | None) -> str:
    """Format whether a claim holds, and the deciding number."""
    if found is None or found["holds"] is None:
        return "–"
    word = "yes" if found["holds"] else "**no**"
    return word if found["ours"] is None else f"{word}: {digits(found['ours'])}"


def digits(value: float) -> str:
    """Format a number with three digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
