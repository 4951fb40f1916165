"""`jostle suite scorecard`: the page, its league table in the browser, and ranks with intervals."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from browser import opened
from jostle.cli.suite_run import print_suite_result
from jostle.stats import Estimate, expect
from jostle.suites.evaluate import (
    ComparisonResult,
    CriterionResult,
    SuiteResult,
    measured_quantity,
)
from jostle.suites.models import Criterion, SuitePart, SuiteValue
from jostle.suites.ranking import entries, pass_probability, rank_controllers
from jostle.suites.result_documents import in_words


def compared(value: float, half: float, *, by_one: bool = False) -> ComparisonResult:
    """Give a comparison with a bound of 10 ms, of five runs."""
    ours = Estimate(value, value - half, value + half, 5, "ms", "")
    tested = expect(ours, "below", 10.0)
    return ComparisonResult({}, 0, tested.for_worst_run() if by_one else tested)


def test_what_misses_its_bound_by_less_than_its_interval_is_unknown():
    found = {value: compared(value, 1.0) for value in (8.0, 9.5, 10.5, 12.0)}
    assert [one.verdict for one in found.values()] == ["pass", "pass", "unknown", "fail"]
    assert [one.tested.is_open for one in found.values()] == [False, True, True, False]
    # One of a hundred runs that is late is enough, whatever the others are.
    assert compared(10.5, 1.0, by_one=True).verdict == "fail"
    assert not compared(10.5, 1.0, by_one=True).tested.is_open
    row = judged(10.5, 1.0)
    unknown = replace(row, verdict="unknown", comparisons=(found[10.5],))
    # It counts in a league table, by its chance, as what has no value does not.
    assert pass_probability(unknown) == pytest.approx(0.16, abs=0.01)


def test_a_verdict_states_measure_value_and_bound():
    there = {"flow": "there", "measure": "throughput"}
    baseline = SuiteValue(**there, of="baseline")
    ratio = SuitePart(left=SuiteValue(**there), relation="above", right=baseline, factor=0.5)
    measured = measured_quantity(ratio)
    assert measured == "throughput of there compared with the baseline's"
    tested = expect(Estimate(0.7, 0.65, 0.75, 5, "×", ""), "above", 0.5)
    criterion = Criterion.model_construct(id="a", title="A", level="must")
    one = ComparisonResult({"buffer": "1 BDP"}, 0, tested, measured=measured)
    assert in_words(CriterionResult(criterion, "pass", (one,))) == (
        "throughput of there compared with the baseline's: 0.70 ± 0.05 × (bound ≥ 0.5 ×), "
        "buffer 1 BDP"
    )
    worst = SuitePart(left=SuiteValue(flow="main", measure="frame_delay", summary="max"),
                      relation="below", right=250.0)  # fmt: skip
    assert measured_quantity(worst) == "max over the runs of frame delay of main"
    alone = SuiteValue(**there, experiment="itself")
    harm = SuitePart(left=SuiteValue(**there, experiment="beside"), relation="below", right=alone)
    assert measured_quantity(harm) == "throughput of there compared with experiment itself"


def judged(
    value: float, half: float, bound: float = 10.0, *, level: str = "must"
) -> CriterionResult:
    ours = Estimate(value, value - half, value + half, 5, "ms", "")
    tested = expect(ours, "below", bound)
    criterion = Criterion.model_construct(
        id="a", title="A", level=level, section="1", requirement=""
    )
    verdict = "pass" if value <= bound else "fail"
    return CriterionResult(criterion, verdict, (ComparisonResult({}, 0, tested),))


def card(controller: str, *rows: CriterionResult, suite: str = "one") -> SuiteResult:
    return SuiteResult(suite, "", controller, "cubic", "sim", False, rows)


def test_a_verdict_has_the_chance_that_its_interval_leaves_it():
    assert pass_probability(judged(10.0, 1.0)) == pytest.approx(0.5)
    # The end of a 95 % interval at the bound: one in forty.
    assert pass_probability(judged(9.0, 1.0)) == pytest.approx(0.975, abs=1e-3)
    assert pass_probability(judged(11.0, 1.0)) == pytest.approx(0.025, abs=1e-3)
    single = replace(judged(9.0, 1.0).comparisons[0].tested.ours, low=None, high=None)
    row = judged(9.0, 1.0)
    decided = replace(row.comparisons[0], tested=replace(row.comparisons[0].tested, ours=single))
    assert pass_probability(replace(row, comparisons=(decided,))) == 1.0


def test_a_run_that_ended_too_early_has_no_chance():
    row = judged(9.0, 1.0)
    ours = replace(row.comparisons[0].tested.ours, value=math.inf, possible=(3.0, math.inf))
    early = ComparisonResult({}, 0, expect(ours, "below", 10.0))
    assert early.verdict == "unknown"
    assert pass_probability(replace(row, verdict="unknown", comparisons=(early,))) is None


@pytest.mark.parametrize(("half", "is_open"), [(0.1, False), (5.0, True)])
def test_the_last_line_explains_open_only_where_a_row_is(capsys, half, is_open):
    print_suite_result(card("a", judged(9.0, half)))
    shown = " ".join(capsys.readouterr().out.split())
    explained = (
        " “open”: the interval includes the bound, or runs ended too early." if is_open else ""
    )
    assert ("(open)" in shown) is is_open
    assert shown.endswith(f"if there are several runs, and the bound.{explained}")


def test_ranks_have_intervals_where_verdicts_are_open():
    sure, lost, open_ = judged(1, 0.1), judged(90, 0.1), judged(10, 5)
    places = rank_controllers(
        [card("a", sure, sure), card("b", sure, open_), card("c", lost, lost)]
    )
    assert [one.controller for one in places] == ["a", "b", "c"]
    assert [(one.low, one.high) for one in places] == [(1, 1), (1, 2), (3, 3)]
    assert places[0].score == 1.0
    assert places[2].score == 0.0


def test_equal_scores_have_one_rank_and_levels_have_weights():
    good, bad = judged(1, 0.1), judged(90, 0.1)
    small = judged(1, 0.1, level="explore")
    lost = judged(90, 0.1, level="explore")
    places = rank_controllers([card("a", good, lost), card("b", bad, small), card("c", good, lost)])
    assert [(one.controller, one.rank) for one in places] == [("a", 1), ("c", 1), ("b", 3)]
    assert [one.score for one in places] == [0.75, 0.75, 0.25]


def test_what_is_unknown_of_one_counts_for_nobody():
    unknown = replace(judged(1, 0.1), verdict="unknown")
    good, bad = judged(1, 0.1), judged(90, 0.1)
    _, found = entries([card("a", good, unknown), card("b", good, bad)])
    assert len(found) == 1


def test_the_document_has_cards_and_ranks(jostle):
    code, out, err = jostle(
        "suite", "scorecard", "reno", "cubic", "--suite", "./suites/small", "--json"
    )
    assert code == 0, err
    document = json.loads(out)
    assert document["schema"] == "jostle.scorecard/2"
    assert [one["controller"] for one in document["cards"]] == ["reno", "cubic"]
    assert [one["controller"] for one in document["league"]] == ["cubic", "reno"]
    assert all(len(one["rank_interval"]) == 2 for one in document["league"])
    assert {one["judged"] for one in document["league"]} == {3}


@pytest.mark.browser
def test_the_page_shows_what_decides_and_ranks_by_the_readers_weights(jostle, folder):
    code, out, err = jostle(
        "suite", "scorecard", "reno", "cubic", "--suite", "./suites/small", "-o", "card.html"
    )
    assert code == 0, err
    assert "page: card.html" in out
    file = folder.parent / "card.html"
    text = file.read_text()
    assert 'src="http' not in text
    assert "What a ranking does not say." in text
    assert text.count("data:image/png;base64,") == 6
    assert "jostle suite run ./suites/small --controller reno --criterion 3-loss" in text
    with opened(file.as_uri()) as page:
        row = page.locator("details.criterion").nth(2)
        row.locator("summary").click()
        assert row.locator("svg.comparisons circle").count() == 4
        ranks = page.locator("#ranks tbody tr")
        assert ranks.nth(0).locator("td").nth(1).inner_text() == "cubic"
        assert ranks.nth(0).locator("td").nth(0).inner_text() == "1"
        # Both meet the `must`, and neither the `should`: only `explore` tells them apart.
        page.locator("input[data-level='explore']").fill("0")
        assert ranks.nth(1).locator("td").nth(0).inner_text() == "1"
        page.locator("input[data-level='explore']").fill("5")
        assert ranks.nth(1).locator("td").nth(0).inner_text() == "2"
        assert page.said == []
