"""Setups that a search chose are compared by the claims that it did not use."""

from __future__ import annotations

from typing import Any

import pytest
from jostle.stats import Estimate
from jostle.stats.expectation import expect
from jostle.studies.column import Column
from jostle.studies.evaluate import ClaimRow, Evaluation
from jostle.studies.fitted_setups import claim_split, fit_sentence, half_rows
from jostle.studies.models import StudyFile
from jostle.studies.setups import setup_mistakes
from pydantic import ValidationError

VALUE = {"experiment": "flow", "measure": "rtt"}
DESCRIBED = Column("sim", "described", "as described")
FADES = Column("sim", "fades", "short fades", "short fades")
FITTED = Column("sim", "fitted", "fitted", "fitted", is_fitted=True)


def study(**keys: Any) -> StudyFile:
    part = {"left": VALUE, "relation": "above", "right": 2}
    setup = {
        "id": "fitted",
        "title": "fitted",
        "text": "values of a search",
        "support": [{"quote": "q", "source": "s"}],
        "changes": [{"set": {"bottleneck.rate": "9 Mbit/s"}}],
        "fitted_to": ["a"],
        "held_out": ["b", "c"],
    }
    return StudyFile.model_validate(
        {
            "title": "A study",
            "paper": "A paper",
            "experiments": {"flow": {"scenario": "flow.toml"}},
            "claims": [{"id": one, "text": one, "parts": [part]} for one in "abcd"],
            "setups": [setup | keys],
        }
    )


def evaluation(*holding: str) -> Evaluation:
    rows = []
    for one in "abcd":
        value = 3.0 if one in holding else 1.0
        ours = Estimate(value, value, value, 5, "ms", "mean")
        rows.append(ClaimRow(one, one, (expect(ours, "above", 2.0),), ""))
    return Evaluation((), (), tuple(rows))


def test_claims_are_counted_by_half() -> None:
    assert claim_split(study()) == {"a": "fit", "b": "held out", "c": "held out"}
    table = half_rows(study(), {DESCRIBED: evaluation("a", "b", "d"), FITTED: evaluation()})
    assert table.rows == (
        ("as described", "1 hold", "1 hold, 1 fail"),
        ("fitted", "1 fail", "2 fail"),
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (("a", "b"), "1 hold in the setup fitted and 1 in the best other setup, short fades. "
                     "The fit explains no more."),
        (("b", "c"), "2 hold in the setup fitted and 1 in the best other setup, short fades. "
                     "The fit explains more."),
    ],
)  # fmt: skip
def test_the_best_other_setup_is_the_baseline(found: tuple[str, ...], said: str) -> None:
    columns = {DESCRIBED: evaluation("a", "d"), FADES: evaluation("c"), FITTED: evaluation(*found)}
    assert fit_sentence(study(), columns) == f"Of 2 claims that the fit did not use, {said}"


def test_nothing_is_said_without_a_fit_or_without_another_setup() -> None:
    assert fit_sentence(study(), {FITTED: evaluation("b")}) == ""
    assert fit_sentence(study(), {DESCRIBED: evaluation("b")}) == ""
    plain = study(fitted_to=[], held_out=[])
    assert claim_split(plain) == {}
    assert half_rows(plain, {DESCRIBED: evaluation("b")}).rows == ()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"held_out": []}, "a fit needs claims to test it"),
        ({"fitted_to": ["b"]}, "`b` is in `fitted_to` and in `held_out`"),
    ],
)
def test_a_fit_has_claims_that_test_it(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        study(**keys)


def test_claims_of_a_fit_exist() -> None:
    file = study(held_out=["b", "e"])
    ((path, text),) = setup_mistakes(file)
    assert path == ("setups", 0, "held_out")
    assert text == "no claim `e`: there is a, b, c, d"
