"""Cards as documents: JSON for programs, JUnit XML for continuous integration, rows for tables."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from xml.etree import ElementTree as Xml

from jostle.printable import printable
from jostle.results.formats import ABSENT
from jostle.stats import Estimate
from jostle.studies.wording import with_interval
from jostle.suites.judge import Card, Decided, Judged
from jostle.suites.models import LEVELS

SCHEMA: Final = "jostle.suite/1"
"""Name and version of the document. A key that goes or means something else makes it another."""


def document(card: Card) -> dict[str, Any]:
    """Give a card as plain data, `jostle.suite/1`.

    A criterion has at its top the comparison that is worst off: `value`, `interval`, `unit`,
    `relation`, `bound`, `where`, and `what` if it is one of several; all of them are under
    `comparisons`. A value is null if nothing gave one, and if it never came, which `never` says.
    """
    return {
        "schema": SCHEMA,
        "suite": card.suite,
        "title": card.title,
        "controller": card.controller,
        "baseline": card.baseline,
        "backend": card.backend,
        "version": card.version,
        "quick": card.quick,
        "runs": card.runs,
        "failures": list(card.failures),
        "summary": {
            level: {verdict: counts[verdict] for verdict in ("pass", "fail", "unknown")}
            for level, counts in counted(card).items()
        },
        "criteria": [_criterion(card, row) for row in card.rows],
    }


def counted(card: Card) -> dict[str, Counter[str]]:
    """How many criteria of each level have each verdict."""
    return {
        level: Counter(row.verdict for row in card.rows if row.criterion.level == level)
        for level in LEVELS
    }


def command(card: Card, row: Judged) -> str:
    """Write the command that judges a criterion again."""
    return shlex.join(["jostle", "suite", *card.words, "--only", row.criterion.id])


def _criterion(card: Card, row: Judged) -> dict[str, Any]:
    criterion, deciding = row.criterion, row.deciding
    top = _comparison(deciding) if deciding is not None else dict.fromkeys(_KEYS)
    return {
        "id": criterion.id,
        "title": criterion.title,
        "level": criterion.level,
        "section": criterion.section,
        "asks": criterion.asks,
        **top,
        "verdict": row.verdict,
        "reason": row.reason,
        "bound_is_ours": criterion.ours,
        "why": criterion.why,
        "command": command(card, row),
        "comparisons": [_comparison(one) for one in row.comparisons],
    }


_KEYS: Final = (
    "value", "interval", "unit", "n", "never", "relation", "bound", "certain", "where",
    "what",
)  # fmt: skip


def _comparison(one: Decided) -> dict[str, Any]:
    ours = one.tested.ours
    never = ours.value is not None and math.isinf(ours.value)
    ends = (ours.low, ours.high)
    return {
        "value": None if never else ours.value,
        "interval": None if None in ends else list(ends),
        "unit": ours.unit,
        "n": ours.n,
        "never": never,
        "relation": one.tested.relation,
        "bound": one.tested.bound,
        "certain": one.is_certain,
        "where": dict(one.where),
        "what": one.what,
        "verdict": one.verdict,
    }


def junit(cards: Sequence[Card]) -> str:
    """Write cards as JUnit XML: a test case for each criterion.

    One that is not met is a failure if its level is `must`; others that are not met, and what is
    unknown, are skipped, with the reason as a message.
    """
    root = Xml.Element("testsuites")
    for card in cards:
        name = f"{card.suite} {card.controller}"
        whole = Xml.SubElement(root, "testsuite", name=printable(name), tests=str(len(card.rows)))
        failures = skipped = 0
        for row in card.rows:
            case = Xml.SubElement(
                whole,
                "testcase",
                classname=f"{card.suite}.{row.criterion.level}",
                name=printable(f"{row.criterion.id} {row.criterion.title}"),
            )
            if row.verdict == "pass":
                continue
            is_failure = row.verdict == "fail" and row.criterion.level == "must"
            failures, skipped = failures + is_failure, skipped + (not is_failure)
            known = [in_words(row)] if row.deciding is not None else []
            message = printable("; ".join([*known, *([row.reason] if row.reason else [])]))
            Xml.SubElement(case, "failure" if is_failure else "skipped", message=message)
        whole.set("failures", str(failures))
        whole.set("skipped", str(skipped))
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def in_words(row: Judged) -> str:
    """Write the value that decides and its bound: `3.1 ± 0.2 % (≤ 5 %), buffer 0.5 BDP`."""
    one = row.deciding
    if one is None:
        return ABSENT
    return f"{shown(one.tested.ours)} ({one.tested.relation}){place(one, ', ')}"


def place(one: Decided, before: str = "") -> str:
    """Write for which labels a comparison is, and which of its criterion's."""
    labels = [f"{key} {label}" for key, label in one.where.items()]
    text = ", ".join([*labels, *([one.what] if one.what else [])])
    return before + text if text else ""


def shown(estimate: Estimate) -> str:
    """Write a value with its interval, and one that never came."""
    if estimate.value is not None and math.isinf(estimate.value):
        return "never" if estimate.unit != "×" else "∞ ×"
    return with_interval(estimate, unit=True)


def is_open(row: Judged) -> bool:
    """Whether the interval of the value that decides allows the other verdict as well."""
    one = row.deciding
    return one is not None and one.is_open
