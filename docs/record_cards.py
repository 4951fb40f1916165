"""Writes the cards of controllers into the page on suites.

    jostle suite rfc9743 --controller bbr --quick --json > bbr.json
    jostle suite rfc9743 --controller bbr --quick --json --backend kernel > bbr-linux.json
    python docs/record_cards.py bbr.json bbr-linux.json …

Takes any number of documents, each a card or a scorecard; those that are recorded already and not
among them stay. Writes `cards.json`, what is kept of each card, and `cards.inc`, the tables of the
page.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KEPT = HERE / "cards.json"
TARGET = HERE / "cards.inc"
LEVELS = ("must", "should", "explore")
LINUX = " (Linux)"

Card = Mapping[str, Any]


def main() -> None:
    """Read the documents, write what is kept and the tables."""
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else []
    cards = {key(card): card for card in kept}
    for name in sys.argv[1:]:
        document = json.loads(Path(name).read_text("utf-8"))
        for card in document.get("cards", [document]):
            if not card["failures"]:
                cards[key(card)] = short(card)
    ordered = sorted(cards.values(), key=lambda card: card["suite"])
    lines = ",\n".join(json.dumps(card, ensure_ascii=False) for card in ordered)
    KEPT.write_text(f"[\n{lines}\n]\n", "utf-8")
    TARGET.write_text("\n".join(tables(ordered)) + "\n", "utf-8")


def key(card: Card) -> tuple[str, str, str]:
    """Give suite, controller and backend."""
    return card["suite"], card["controller"], card["backend"]


def short(card: Card) -> dict[str, Any]:
    """Keep of each criterion the value that decides, its bound and the verdict."""
    names = ("suite", "title", "controller", "baseline", "backend", "version", "quick")
    return {name: card[name] for name in names} | {
        "criteria": {
            one["id"]: [one["level"], number(one["value"]), one["relation"], one["verdict"]]
            for one in card["criteria"]
        }
    }


def number(value: float | None) -> float | None:
    """Keep three digits of a number."""
    return None if value is None else float(f"{value:.3g}")


def tables(cards: Sequence[Card]) -> Iterator[str]:
    """Say suite by suite how many criteria each controller meets, and which it does not."""
    for suite in dict.fromkeys(card["suite"] for card in cards):
        here = [card for card in cards if card["suite"] == suite]
        quick = ", single runs" if any(card["quick"] for card in here) else ""
        yield f"**{suite}** ({here[0]['title']}){quick}"
        yield ""
        yield "| Controller | " + " | ".join(LEVELS) + " | not met |"
        yield "| --- | " + "--- | " * len(LEVELS) + "--- |"
        for card in here:
            rows = card["criteria"]
            name = card["controller"] + (LINUX if card["backend"] == "kernel" else "")
            counts = [
                count([row[3] for row in rows.values() if row[0] == level]) for level in LEVELS
            ]
            failed = [
                f"{'**' if row[0] == 'must' else ''}{id_}{'**' if row[0] == 'must' else ''}"
                for id_, row in rows.items()
                if row[3] == "fail"
            ]
            yield f"| {name} | " + " | ".join(counts) + f" | {', '.join(failed) or '–'} |"
        yield ""


def count(verdicts: Sequence[str]) -> str:
    """Write how many are met, of those that are known."""
    known = [one for one in verdicts if one != "unknown"]
    return f"{known.count('pass')} of {len(known)}" if known else "–"


if __name__ == "__main__":
    main()
