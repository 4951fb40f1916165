"""Writes the results of testbed fits into the page on studies, from the files of the studies.

    jostle study fit-network geo-shared --write
    python tools/results/record_testbeds.py

Writes `testbeds-results.inc`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jostle.studies.fitted_network import FILE, ClaimOutcome, FittedNetwork
from jostle.studies.load import load
from record_studies import digits

DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "results" / "data"
STUDIES = DOCS.parent / "studies"
TARGET = DATA / "testbeds-results.inc"


def main() -> None:
    """Read the files, write the tables."""
    kept = {
        path.parent.name: FittedNetwork.model_validate_json(path.read_text("utf-8"))
        for path in sorted(STUDIES.glob(f"*/{FILE}"))
    }
    lines = [*claims_by_subset(kept)]
    for testbed in dict.fromkeys(one.testbed for one in kept.values()):
        of = {name: one for name, one in kept.items() if one.testbed == testbed}
        lines += values(next(iter(of.values())))
        for name, one in of.items():
            lines += claims(name, one)
    TARGET.write_text("\n".join(lines) + "\n", "utf-8")


def claims_by_subset(kept: Mapping[str, FittedNetwork]) -> Iterator[str]:
    """Yield how many claims of each subset hold, as described and fitted."""
    yield "| Study | network | of the fit's half | of the half held out |"
    yield "| --- | --- | --- | --- |"
    for name, one in kept.items():
        for title, answer in (("as described", "described"), ("fitted", "fitted")):
            cells = []
            for half in ("fit", "held out"):
                rows = [getattr(row, answer) for row in one.claims.values() if row.half == half]
                judged = [row.holds for row in rows if row.holds is not None]
                cells.append(f"{sum(judged)} of {len(judged)}")
            shown = f"`{name}`" if answer == "described" else ""
            yield f"| {shown} | {title} | " + " | ".join(cells) + " |"


def values(one: FittedNetwork) -> Iterator[str]:
    """Yield free parameters with their values, and the numbers that had to be reproduced."""
    yield ""
    yield f"**{one.title}** (`{one.testbed}`; {one.search.trials} networks tried)"
    yield ""
    yield "| Free | tried | as described | fitted |"
    yield "| --- | --- | --- | --- |"
    for value in one.values.values():
        yield f"| {value.text} | {value.tried} | {value.described} | {value.value} |"
    if one.required:
        yield ""
        yield (
            "Required of it, published and in this network: "
            + "; ".join(
                f"`{name}` {_digits(row.published)} and {_digits(row.ours)}"
                for name, row in one.required.items()
            )
            + "."
        )


def claims(name: str, one: FittedNetwork) -> Iterator[str]:
    """Yield every claim: as described, fitted, on Linux."""
    linux = _linux(name)
    texts = {claim.id: claim.text for claim in load(name, STUDIES).file.claims}
    yield ""
    yield f"| `{name}` | half | asks for | as described | fitted | Linux 6.1 |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for claim, row in one.claims.items():
        cells = [_outcome(row.described), _outcome(row.fitted), linux.get(claim, "–")]
        text = texts.get(claim, claim)
        yield f"| {text} | {row.half} | {row.asked} | " + " | ".join(cells) + " |"


def _linux(name: str) -> dict[str, str]:
    """Return the recorded results on Linux, by claim."""
    path = STUDIES / name / "linux.json"
    if not path.is_file():
        return {}
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    found = {}
    for claim, row in document["claims"].items():
        part = next((part for part in row["parts"] if part["holds"] is not True), row["parts"][0])
        found[claim] = _outcome(ClaimOutcome(holds=row["holds"], ours=part["ours"]))
    return found


def _outcome(one: ClaimOutcome) -> str:
    if one.holds is None:
        return "–"
    word = "yes" if one.holds else "**no**"
    return word if one.ours is None else f"{word}: {digits(one.ours)}"


def _digits(value: float | None) -> str:
    return "–" if value is None else digits(value)


if __name__ == "__main__":
    main()
