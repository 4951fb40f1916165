"""Testbeds: what is free, the halves of claims, the search, and the network that is kept."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.errors import InputError
from jostle.parameter_search.testbed_fit import (
    NetworkScore,
    TestbedFit,
    fingerprint,
    lost,
    omissions,
)
from jostle.parameter_search.tuning import Score, Trial
from jostle.scenario import ScenarioError
from jostle.stats import Estimate, expect
from jostle.studies import ClaimRow
from jostle.studies.fitted_network import FittedNetwork, document
from jostle.studies.library import STUDIES as LIBRARY
from jostle.studies.load import load
from jostle.studies.testbed import FILE, load_testbed
from jostle.studies.train_test_split import ClaimSplit, draw

STUDIES = Path(__file__).parents[2] / "studies"
TESTBED = """
title = "A link of 5 Mbit/s, it is said"
seed = 2
repeats = 2
[studies.small]
repeats = { flow = 1 }
[free.rate]
text = "rate of the link"
range = { from = "2 Mbit/s", to = "20 Mbit/s", scale = "log" }
described = "10 Mbit/s"
[free.lumps]
text = "whether lumps are put together"
values = [false, true]
[[changes]]
experiments = ["flow"]
set = { "bottleneck.rate" = "{rate}", "flows.*.receiver_gro" = "{lumps}" }
[[required]]
study = "small"
experiment = "flow"
numbers = ["shortest"]
"""
STUDY = """
[[numbers]]
id = "shortest"
text = "Shortest RTT"
where = { controller = "bbr" }
measure = "rtt"
percentile = 0
published = 21
"""
CLAIM = """
[[claims]]
id = "{0}-{1}"
text = "{0} gets about 5 Mbit/s ({1})"
parts = [{{ left = {{ where = {{ controller = "{0}" }}, measure = "throughput", window = "{1}" }}, \
relation = "about", right = 5, tolerance = 0.1 }}]
"""
CLAIMED = {
    "half": "fit", "asked": "about 5 Mbit/s", "fitted": {"holds": True, "ours": 5.0},
    "described": {"holds": False, "ours": 9.8},
}  # fmt: skip


@pytest.fixture
def small(folder: Path) -> Path:
    """Give the folder of a study whose claims say that its link has 5 Mbit/s, and a testbed."""
    path = folder / "small" / "study.toml"
    text, figures = path.read_text().split("[[claims]]", 1)
    claims = [CLAIM.format(one, when) for one in ("reno", "bbr") for when in ("late", "second")]
    figures = "[[figures]]" + figures.split("[[figures]]", 1)[1]
    path.write_text(text + STUDY + "".join(claims) + figures)
    (folder / "small" / FILE).write_text(TESTBED)
    return folder / "small"


@pytest.fixture
def jostle(folder, monkeypatch, capsys):
    """Run a command beside the folder of studies."""
    monkeypatch.chdir(folder.parent)
    monkeypatch.delenv("JOSTLE_STORE", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = status([*arguments, "--jobs", "1"], Environment(_core))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.slow
def test_a_search_finds_the_network_and_keeps_it(jostle, small):
    pytest.importorskip("optuna")
    asked = ("study", "fit-network", "./studies/small", "--trials", "8", "--write")
    code, out, err = jostle(*asked)
    assert code == 0, err
    kept = FittedNetwork.model_validate_json((small / "fitted.json").read_text())
    assert 4.4 < float(kept.values["rate"].value.split()[0]) < 5.6
    assert kept.search.lost == 0
    # What the search never saw holds as well, and none of it as described.
    held_out = [one for one in kept.claims.values() if one.half == "held out"]
    assert [(one.fitted.holds, one.described.holds) for one in held_out] == [(True, False)] * 2
    assert re.search(r"small +as described +2 fail +2 fail\s+small +fitted +2 hold +2 hold", out)
    assert kept.required["shortest"].holds
    # Taken up again it runs no trial, and finds the same.
    code, out, err = jostle(*asked[:-1], "--json")
    assert "[8/8]" not in err
    assert json.loads(out)["studies"]["small"] == document(kept)

    code, out, err = jostle("study", "run", "./studies/small", "--repeats", "2")
    assert code == 0, err
    assert "4 hold" in out
    assert re.search(r"fitted +2 hold +2 hold", out)
    page = (small.parents[1] / "reports" / "small.html").read_text()
    assert '<h2 id="fitted">' in page
    assert "rate of the link" in page


def test_what_a_search_leaves_out_is_listed(jostle, small):
    pytest.importorskip("optuna")
    testbed = load_testbed(small)
    halves = {"small": ClaimSplit(("reno-late",), ("bbr-late",))}
    failed = Trial(0, {}, {}, None)
    scored = [Trial(at, {}, {}, Score((loss,), ())) for at, loss in ((1, 0.1), (2, 0.2), (3, 0.3))]
    found = TestbedFit(
        [failed, *scored], [(scored[0], 0.1), (scored[1], 0.2)], {}, 0.2, NetworkScore({})
    )
    assert list(omissions(replace(testbed, halves=halves), found)) == [
        "Left out of small: claims on experiments that testbed.toml does not run (reno-second, "
        "bbr-second).",
        "Left out: 1 of 4 networks, which could not be run.",
        "Left out: networks 2, which lose less, but could not be judged or do not have what is "
        "required.",
        "Left out: 1 of the best networks, of which a run with other seeds failed.",
    ]
    _, out, _ = jostle("study", "fit-network", "./studies/small", "--trials", "8", "--json")
    assert json.loads(out)["assumptions"] == []


def test_no_network_without_what_is_required(jostle, small):
    pytest.importorskip("optuna")
    path = small / "study.toml"
    path.write_text(path.read_text().replace("published = 21", "published = 500"))
    code, _, err = jostle("study", "fit-network", "./studies/small", "--trials", "1")
    assert code == 2
    assert "none of the networks that were tried" in err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"{rate}"', '"{rat}"', "changes.0.set: no free quantity `rat`"),
        (
            '"flows.*.receiver_gro" = "{lumps}"',
            '"flows.*.receiver_gro" = true',
            "free.lumps: no change sets a key",
        ),
        ('from = "2 Mbit/s"', 'from = "2 ms"', "free.rate.range"),
        ("values = [false, true]", "values = [false]", "either `range`, or two `values`"),
        ('scale = "log" }', 'scale = "log" }\nvalues = [1]', "either `range`, or two `values`"),
        ('experiments = ["flow"]', 'experiments = ["flw"]', "no experiment `flw`"),
        ("repeats = { flow = 1 }", "repeats = { flw = 1 }", "no experiment `flw`"),
        ('numbers = ["shortest"]', 'numbers = ["long"]', "no number `long`"),
        ('experiment = "flow"', 'experiment = "transfer"', "measured by the experiment `flow`"),
        ('study = "small"', 'study = "smal"', "no study `smal`"),
        ("[studies.small]", '[studies."../small"]', "name a study by its folder"),
        ('"bottleneck.rate" =', '"bottleneck.rat" =', "bottleneck.rat"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(small, old, new, words):
    path = small / FILE
    assert old in TESTBED
    path.write_text(TESTBED.replace(old, new))
    with pytest.raises(ScenarioError) as told:
        load_testbed(small)
    assert words in str(told.value)


def test_other_claims_in_the_fit_are_another_search(small):
    one = load_testbed(small)
    (name, halves), *_ = one.halves.items()
    other = replace(one, halves={name: ClaimSplit(halves.held_out, halves.fit)})
    asked = ("tpe", 1, "version")
    assert fingerprint(one, *asked) == fingerprint(load_testbed(small), *asked)
    assert fingerprint(one, *asked) != fingerprint(other, *asked)


def test_no_testbed(jostle, small):
    shutil.copytree(small, small.parent / "other")
    (small / FILE).unlink()
    code, _, err = jostle("study", "fit-network", "./studies/small")
    assert code == 2
    assert "study small has no testbed.toml; there is one of other" in err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"flow"', '"flw"', "the study cannot have this network"),
        ('"half": "fit"', '"half": "both"', "claims.reno-late.half"),
        ("{", "", "no network of a fit"),
    ],
)
def test_a_kept_network_that_is_none(small, old, new, words):
    kept = {
        "schema": "jostle.fitted/1", "testbed": "small/testbed.toml", "title": "A link",
        "version": "1", "date": "2026-11-23", "repeats": 2,
        "search": {"sampler": "tpe", "seed": 1, "trials": 1, "finalists": 1, "lost": 0.0},
        "values": {},
        "changes": [{"set": {"bottleneck.rate": "5 Mbit/s"}, "experiments": ["flow"]}],
        "claims": {"reno-late": CLAIMED},
    }  # fmt: skip
    text = json.dumps(kept)
    (small / "fitted.json").write_text(text)
    study = load("small", small.parent)
    assert study.setups == ["described", "fitted"]
    assert old in text
    (small / "fitted.json").write_text(text.replace(old, new, 1))
    if new == '"flw"':
        # A change of an experiment that is gone changes nothing.
        (small / "fitted.json").write_text(text.replace("bottleneck.rate", "bottleneck.rat"))
    with pytest.raises(InputError) as told:
        load("small", small.parent)
    assert words in str(told.value)
    assert "fitted.json" in str(told.value)


@pytest.mark.parametrize(
    ("misses", "share"),
    [
        ((0.0, 0.0), 0.0),
        ((0.0, 1.0), 0.625),
        ((1.0,), 0.75),
        ((float("inf"),), 1.0),
        ((None,), 1.0),
    ],
)
def test_what_a_claim_loses(misses: tuple[float | None, ...], share: float) -> None:
    values = (None if one is None else 1.0 + one for one in misses)
    parts = tuple(expect(Estimate(one, None, None, 1, "", ""), "below", 1.0) for one in values)
    assert lost(ClaimRow("a", "", parts, "")) == share


def test_halves_are_halves_of_every_figure() -> None:
    study = load("geo-shared", STUDIES)
    halves = draw(study, ["pairs"], 17)
    of_pairs = [
        one.id
        for one in study.file.claims
        if all(study.experiment_of(value)[0] == "pairs" for value in one.values)
    ]
    assert sorted((*halves.fit, *halves.held_out)) == sorted(of_pairs)
    for covered in study.file.coverage:
        sides = [
            sum(name in covered.ours for name in half) for half in (halves.fit, halves.held_out)
        ]
        assert abs(sides[0] - sides[1]) <= 1
    assert draw(study, ["pairs"], 17) == halves
    assert draw(study, ["pairs"], 18) != halves
    assert draw(study, ["residual"], 17).fit == ()


@pytest.mark.parametrize(
    "name", [one for one in LIBRARY.names() if (STUDIES / one / FILE).is_file()]
)
def test_the_testbeds_here(name: str) -> None:
    """Each can be read, and the halves of its recorded fit are those that its seed draws."""
    testbed = load_testbed(STUDIES / name)
    for study, halves in testbed.halves.items():
        fitted = testbed.studies[study].fitted
        if fitted is None:
            continue
        assert fitted.values.keys() == testbed.file.free.keys()
        drawn = dict.fromkeys(halves.fit, "fit") | dict.fromkeys(halves.held_out, "held out")
        # Claims that were added after the fit change the halves of the next one.
        assert fitted.split_by_claim.keys() <= drawn.keys()
        if fitted.split_by_claim.keys() == drawn.keys():
            assert fitted.split_by_claim == drawn
        assert all(one.holds for one in fitted.required.values())
