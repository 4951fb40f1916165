"""The gauntlet: every row of the registry in every kind of situation, over TCP and QUIC."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import jostle
import pytest
from jostle.runner.executors.threads import available_cores

from gauntlet.cases import (
    FOLDER,
    SITUATIONS,
    TRANSPORTS,
    Case,
    full_product,
    is_sampled,
    quick_cases,
    rows,
)
from gauntlet.execution import Verdict, judge, judge_all
from gauntlet.invariants import INVARIANTS, RUN_ENDS, violations
from gauntlet.known import KnownException, known_exceptions, stale, unexpected

KNOWN = known_exceptions()
QUICK = [one for one in KNOWN if not one.nightly]
_SHOWN = 20


@pytest.fixture(scope="module")
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def report(verdicts: Sequence[Verdict], known: Sequence[KnownException]) -> str:
    """Return what differs from the list of exceptions, in text."""
    wrong = list(unexpected(verdicts, KNOWN))
    held = [f"no longer violated, remove it: {text}" for text in stale(verdicts, known)]
    more = [f"… and {len(wrong) - _SHOWN} cases more"] if len(wrong) > _SHOWN else []
    return "\n\n".join([*wrong[:_SHOWN], *more, *held])


@pytest.mark.parametrize("kind", SITUATIONS)
@pytest.mark.parametrize("sampled", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_row_in_a_kind_of_situation(kind: str, sampled: bool, threads: Executor) -> None:
    known = [replace(one, situations=(kind,)) for one in QUICK if kind in one.situations]
    cases = [case for case in quick_cases() if case.kind == kind]
    assert len(cases) == len(rows()) * len(TRANSPORTS)
    if sampled:
        # An exception needs its violations.
        named = [case for case in cases if any(one.names(case) for one in known)]
        cases = [case for case in cases if is_sampled(case) or case in named]
    assert report(judge_all(cases, threads), known) == ""


def test_every_row_is_sampled_over_every_transport() -> None:
    counts = Counter((case.row, case.transport) for case in quick_cases() if is_sampled(case))
    for row in rows():
        assert counts[row, "tcp"] == len(SITUATIONS)
        assert counts[row, "quic"] >= len(SITUATIONS) // 4
    kinds = {case.kind for case in quick_cases() if is_sampled(case) and case.transport == "quic"}
    assert kinds == set(SITUATIONS)


@pytest.mark.slow
def test_the_full_product() -> None:
    cases, start = full_product(), time.perf_counter()
    context = multiprocessing.get_context("spawn")
    verdicts: list[Verdict] = []
    with ProcessPoolExecutor(available_cores(), mp_context=context) as pool:
        for kind in SITUATIONS:
            found = judge_all([case for case in cases if case.kind == kind], pool, progress=True)
            # The product takes hours: what is wrong is shown as soon as it is known.
            print(kind, report(found, []) or "as expected", sep=": ", file=sys.stderr)
            verdicts += found
    names = Counter(name for verdict in verdicts for name in verdict.violations)
    cpu_s = sum(verdict.cpu_s for verdict in verdicts)
    wall_s = time.perf_counter() - start
    summary = f"{len(cases)} runs, {wall_s:.0f} s, {cpu_s:.0f} s of CPU; violations: {dict(names)}"
    print(summary, file=sys.stderr)
    text = report(verdicts, [one for one in KNOWN if one.nightly or "*" in one.situations])
    assert text == "", summary


def test_every_exception_names_rows_and_has_a_source() -> None:
    assert [text for one in KNOWN for text in one.mistakes()] == []
    assert {name for one in KNOWN for name in one.invariants} <= {*INVARIANTS, RUN_ENDS}


COLLAPSED = Case(
    "sprout", "tcp", "alone", {"bottleneck.rate": "2 Mbit/s", "bottleneck.loss": "60 %"}
)
SOUND = Case("reno", "tcp", "alone", {"bottleneck.rate": "2 Mbit/s"})
EXCEPTION = KnownException(("sprout",), ("alone",), ("retransmitted",), "why", "where", ("tcp",))


def test_an_unlisted_violation_is_reported_with_a_scenario_that_repeats_it(tmp_path: Path) -> None:
    verdict = judge(COLLAPSED)
    (text,) = unexpected([verdict], [])
    _, toml = text.split("and run:\n")
    path = tmp_path / "again.toml"
    path.write_text(toml)
    again = jostle.run(path, store=False).results[0].run
    assert violations(again, {}) == verdict.violations != {}
    listed = replace(EXCEPTION, invariants=tuple(verdict.violations))
    assert list(unexpected([verdict], [listed])) == []
    assert list(stale([verdict], [listed])) == []


def test_an_exception_that_is_no_longer_true_is_reported() -> None:
    verdict = judge(replace(SOUND, row="sprout"))
    assert verdict.violations == {}
    (text,) = stale([verdict], [EXCEPTION])
    assert text.startswith("sprout over tcp in ('alone',)")


def test_a_refused_run_is_a_violation() -> None:
    verdict = judge(Case("reno", "quic", "mtu", {"flows.tested.mtu": "576 B"}))
    assert "QUIC needs packets of" in verdict.violations[RUN_ENDS]
    assert str(FOLDER) not in verdict.violations[RUN_ENDS]
