"""Writes what became of the published claims into the page on studies.

    jostle study all --json > sim.json
    jostle study all --backend kernel --json > kernel.json
    python docs/record_studies.py sim.json kernel.json

Several documents are one: what each backend says of a claim stands side by side, in the order of
the files. Writes `studies-results.inc`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TARGET = HERE / "studies-results.inc"
TITLES = {"sim": "simulator", "kernel": "Linux 6.1"}

Rows = Sequence[Mapping[str, Any]]


def main() -> None:
    """Read the documents, write the tables."""
    studies = merged([json.loads(Path(name).read_text("utf-8")) for name in sys.argv[1:]])
    TARGET.write_text("\n".join([*summary(studies), *map_claims(studies)]) + "\n", "utf-8")


def merged(documents: Rows) -> list[dict[str, Any]]:
    """Studies of the first document, their claims with the answers of all."""
    studies = [study for study in documents[0]["studies"] if study["claims"]]
    for study in studies:
        others = [
            {claim["id"]: claim for claim in other["claims"]}
            for document in documents[1:]
            for other in document["studies"]
            if other["id"] == study["id"]
        ]
        for claim in study["claims"]:
            for other in others:
                claim["backends"] |= other.get(claim["id"], claim)["backends"]
    return studies


def summary(studies: Rows) -> Iterator[str]:
    """How much holds, study by study, in the simulator."""
    yield "| Study | claims that hold | published numbers reproduced | orders of tables |"
    yield "| --- | --- | --- | --- |"
    totals = [[0, 0], [0, 0], [0, 0]]
    for study in studies:
        numbers = [row for row in study["numbers"] if row["published"] is not None]
        cells = []
        for total, rows in zip(totals, (study["claims"], numbers, study["rankings"]), strict=True):
            held = sum(row["holds"] is True for row in rows)
            total[0] += held
            total[1] += len(rows)
            cells.append(share(held, len(rows)))
        yield f"| `{study['id']}` | " + " | ".join(cells) + " |"
    yield "| all | " + " | ".join(share(*total) for total in totals) + " |"


def share(held: int, of: int) -> str:
    """Write how many of how many."""
    return f"{held} of {of} ({100 * held / of:.0f} %)" if of else "–"


def map_claims(studies: Rows) -> Iterator[str]:
    """Every claim, and the comparison that decides on it."""
    for study in studies:
        backends = list(study["claims"][0]["backends"])
        yield ""
        yield f"**{study['id']}**"
        yield ""
        yield "| Claim | " + " | ".join(f"{TITLES[name]}" for name in backends) + " |"
        yield "| --- |" + " --- |" * len(backends)
        for claim in study["claims"]:
            cells = [answer(claim["backends"][name]) for name in backends]
            yield f"| {claim['text']} | " + " | ".join(cells) + " |"


def answer(found: Mapping[str, Any]) -> str:
    """Write whether a claim holds, and by which number."""
    if found["holds"] is None:
        return "–"
    if found["ours"] is None:
        return "yes" if found["holds"] else "**no**"
    word = "yes" if found["holds"] else "**no**"
    return f"{word}: {digits(found['ours'])}, asked is {found['published']}"


def digits(value: float) -> str:
    """Write a number with three digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
