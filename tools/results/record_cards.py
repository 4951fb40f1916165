"""Writes the cards of controllers for the page on suites.

    jostle suite run rfc9743 --controller bbr --quick --json > bbr.json
    jostle suite run rfc9743 --controller bbr --quick --json --backend kernel > bbr-linux.json
    jostle suite run rfc9743 --controller bbr3 --json > bbr3-all-runs.json
    python tools/results/record_cards.py bbr.json bbr-linux.json bbr3-all-runs.json …

Takes any number of documents, each a card or a scorecard. Recorded cards that are not in the
documents are kept. Writes `cards.json`, the recorded data of each card, and `cards.inc`, the tables
of the page, in the order of the registry.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jostle import _core

DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "results" / "data"
KEPT = DATA / "cards.json"
TARGET = DATA / "cards.inc"
REGISTERED = [row["name"] for row in json.loads(_core.registry())["controllers"]]
LEVELS = ("must", "should", "explore")
LINUX = " (Linux)"
ALL_RUNS = ", all runs"

Card = Mapping[str, Any]


def main() -> None:
    """Read the documents, write recorded data and tables."""
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else []
    cards = {key(card): card for card in kept}
    for name in sys.argv[1:]:
        document = json.loads(Path(name).read_text("utf-8"))
        for card in document.get("cards", [document]):
            if not card["failures"]:
                cards[key(card)] = short(card)
    ordered = sorted(cards.values(), key=sort_key)
    lines = ",\n".join(json.dumps(card, ensure_ascii=False) for card in ordered)
    KEPT.write_text(f"[\n{lines}\n]\n", "utf-8")
    TARGET.write_text("\n".join(tables(ordered)) + "\n", "utf-8")


def key(card: Card) -> tuple[str, str, str, bool]:
    """Return suite, controller and backend, and whether the card is of a quick run."""
    return card["suite"], card["controller"], card["backend"], card["quick"]


def sort_key(card: Card) -> tuple[str, int, str, str, bool]:
    """Return the sort key of a card: variants follow their controllers."""
    name = re.split(r", | \(", card["controller"])[0]
    at = next((at for at, row in enumerate(REGISTERED) if row == name), len(REGISTERED))
    return card["suite"], at, card["controller"], card["backend"], not card["quick"]


def short(card: Card) -> dict[str, Any]:
    """Return the deciding value, the bound and the verdict of each criterion."""
    names = ("suite", "title", "controller", "baseline", "backend", "version", "quick")
    return {name: card[name] for name in names} | {
        "criteria": {
            one["id"]: [one["level"], number(one["value"]), one["relation"], one["verdict"]]
            for one in card["criteria"]
        }
    }


def number(value: float | None) -> float | None:
    """Round a number to three digits."""
    return None if value is None else float(f"{value:.3g}")


def tables(cards: Sequence[Card]) -> Iterator[str]:
    """Yield, by suite, how many criteria each controller meets, and which ones it misses."""
    for suite in dict.fromkeys(card["suite"] for card in cards):
        here = [card for card in cards if card["suite"] == suite]
        yield f"**{suite}** ({here[0]['title']})"
        yield ""
        yield "| Controller | " + " | ".join(LEVELS) + " | not met |"
        yield "| --- | " + "--- | " * len(LEVELS) + "--- |"
        for card in here:
            rows = card["criteria"]
            name = card["controller"] + (LINUX if card["backend"] == "kernel" else "")
            name += "" if card["quick"] else ALL_RUNS
            counts = [
                count([row[3] for row in rows.values() if row[0] == level]) for level in LEVELS
            ]
            failed = [not_met(id_, row) for id_, row in rows.items() if beyond(row)]
            yield f"| {name} | " + " | ".join(counts) + f" | {', '.join(failed) or '–'} |"
        yield ""


def beyond(row: Sequence[Any]) -> bool:
    """Return whether a value is beyond its bound: a fail, or unknown despite a value."""
    return row[3] == "fail" or (row[3] == "unknown" and row[1] is not None)


def not_met(name: str, row: Sequence[Any]) -> str:
    """Format the name of a missed criterion, in bold for a `must`, or of an open one."""
    if row[3] == "unknown":
        return f"{name} (open)"
    strong = "**" if row[0] == "must" else ""
    return f"{strong}{name}{strong}"


def count(verdicts: Sequence[str]) -> str:
    """Format how many criteria are met, of those that are known."""
    known = [one for one in verdicts if one != "unknown"]
    return f"{known.count('pass')} of {len(known)}" if known else "–"


if __name__ == "__main__":
    main()
