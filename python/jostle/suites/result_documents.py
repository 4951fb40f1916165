"""Cards as documents: JSON for programs, JUnit XML for continuous integration, rows for tables."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from xml.etree import ElementTree as Xml

from jostle.results.expectation_text import expectation_entry
from jostle.results.number_format import ABSENT, estimate_text
from jostle.safe_io.terminal_text import escape_control_characters
from jostle.suites.evaluate import ComparisonResult, CriterionResult, SuiteResult
from jostle.suites.models import LEVELS

SCHEMA: Final = "jostle.suite/2"
"""Name and version of the document. A key that goes or means something else makes it another."""


def document(card: SuiteResult) -> dict[str, Any]:
    """Give a card as plain data, `jostle.suite/2`.

    A criterion has at its top the comparison that is worst off: `measured`, `value`, `interval`,
    `unit`, `relation`, `bound`, `where`, and `what` if it is one of several; all of them are under
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
        "assumptions": list(card.assumptions),
        "summary": {
            level: {verdict: counts[verdict] for verdict in ("pass", "fail", "unknown")}
            for level, counts in counted(card).items()
        },
        "criteria": [_criterion(card, row) for row in card.rows],
    }


def counted(card: SuiteResult) -> dict[str, Counter[str]]:
    """How many criteria of each level have each verdict."""
    return {
        level: Counter(row.verdict for row in card.rows if row.criterion.level == level)
        for level in LEVELS
    }


def command(card: SuiteResult, row: CriterionResult) -> str:
    """Write the command that judges a criterion again."""
    return shlex.join(["jostle", "suite", *card.words, "--criterion", row.criterion.id])


def _criterion(card: SuiteResult, row: CriterionResult) -> dict[str, Any]:
    criterion, deciding = row.criterion, row.deciding
    top = (
        _comparison(deciding)
        if deciding is not None
        else dict.fromkeys(("measured", *_VALUES.split(), "where", "what"))
    )
    return {
        "id": criterion.id,
        "title": criterion.title,
        "level": criterion.level,
        "section": criterion.section,
        "requirement": criterion.requirement,
        **top,
        "verdict": row.verdict,
        "reason": row.reason,
        "project_bound": criterion.project_bound,
        "why": criterion.why,
        "command": command(card, row),
        "comparisons": [_comparison(one) for one in row.comparisons],
    }


_VALUES: Final = "value interval unit n incomplete never possible relation bound certain"


def _comparison(one: ComparisonResult) -> dict[str, Any]:
    return {
        "measured": one.measured,
        **expectation_entry(one.tested, _VALUES),
        "where": dict(one.where),
        "what": one.what,
        "verdict": one.verdict,
    }


def junit(cards: Sequence[SuiteResult]) -> str:
    """Write cards as JUnit XML: a test case for each criterion.

    One that is not met is a failure if its level is `must`; others that are not met, and what is
    unknown, are skipped, with the reason as a message.
    """
    root = Xml.Element("testsuites")
    for card in cards:
        name = f"{card.suite} {card.controller}"
        whole = Xml.SubElement(
            root, "testsuite", name=escape_control_characters(name), tests=str(len(card.rows))
        )
        failures = skipped = 0
        for row in card.rows:
            case = Xml.SubElement(
                whole,
                "testcase",
                classname=f"{card.suite}.{row.criterion.level}",
                name=escape_control_characters(f"{row.criterion.id} {row.criterion.title}"),
            )
            if row.verdict == "pass":
                continue
            is_failure = row.verdict == "fail" and row.criterion.level == "must"
            failures, skipped = failures + is_failure, skipped + (not is_failure)
            known = [in_words(row)] if row.deciding is not None else []
            message = escape_control_characters(
                "; ".join([*known, *([row.reason] if row.reason else [])])
            )
            Xml.SubElement(case, "failure" if is_failure else "skipped", message=message)
        whole.set("failures", str(failures))
        whole.set("skipped", str(skipped))
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def in_words(row: CriterionResult) -> str:
    """Write what was measured, the value that decides, its bound and its place.

    `retransmission rate of web: 3.1 ± 0.2 % (bound ≤ 5 %), buffer 0.5 BDP`
    """
    one = row.deciding
    if one is None:
        return ABSENT
    value = f"{estimate_text(one.tested.ours, unit=True)} (bound {one.tested.relation})"
    measured = f"{one.measured}: " if one.measured else ""
    return f"{measured}{value}{comparison_label(one, ', ')}"


def comparison_label(one: ComparisonResult, before: str = "") -> str:
    """Write for which labels a comparison is, and which of its criterion's."""
    labels = [f"{key} {label}" for key, label in one.where.items()]
    text = ", ".join([*labels, *([one.what] if one.what else [])])
    return before + text if text else ""


def is_open(row: CriterionResult) -> bool:
    """Whether the interval of the value that decides allows the other verdict as well."""
    one = row.deciding
    return one is not None and one.tested.is_open
