"""Sensitivity: designs, indices of functions that are known, the command."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jostle
import numpy as np
import pytest
from jostle.cli import status
from jostle.errors import InputError
from jostle.figures.renderer import render_figure
from jostle.parameter_search.objective_quantity import ObjectiveQuantity, parse_quantity
from jostle.parameter_search.sensitivity import analyse, designed, figure, table

pytest.importorskip("SALib")
SCENARIO = Path(__file__).parents[1] / "scenarios" / "sensitivity.toml"


@dataclass(frozen=True)
class Known(ObjectiveQuantity):
    """A function of the points instead of a measure of runs."""

    values: tuple[float | None, ...] = ()

    def per_condition(self, results: Any) -> list[tuple[float | None, ...]]:
        return [(value,) for value in self.values]


def known(scenario: jostle.Scenario, function: Any) -> Known:
    jain = parse_quantity("jain")
    short = parse_quantity("goodput of a in b")
    assert (short.who, short.phase) == ("a", "b")
    quoted = parse_quantity('goodput of "a in b" in "b in c"')
    assert (quoted.who, quoted.phase) == ("a in b", "b in c")
    values = tuple(function(*point) for point in scenario.points)
    return Known(jain.text, jain.measure, "", "overall", values)


RUNS: Any = SimpleNamespace(results=())


@pytest.fixture(scope="module")
def scenario() -> jostle.Scenario:
    return jostle.load(SCENARIO)


def test_sobol_indices_of_a_sum(scenario: jostle.Scenario) -> None:
    """Of 3a + b the variances are as 9 to 1, and c has none."""
    points = designed(scenario, "sobol", 128, 1)
    assert len(points.conditions) == 128 * 5
    found = analyse(points, RUNS, known(points, lambda a, b, _: 3 * a + b), "sobol", 1)
    first = [index.first for index in found.indices]
    total = [index.second for index in found.indices]
    assert first == pytest.approx([0.9, 0.1, 0.0], abs=0.05)
    assert total == pytest.approx([0.9, 0.1, 0.0], abs=0.05)
    assert all(index.first_half < 0.3 for index in found.indices)


def test_keys_that_act_together_have_a_total_and_no_first_order(scenario: jostle.Scenario) -> None:
    points = designed(scenario, "sobol", 128, 1)
    product = known(points, lambda a, b, _: (a - 0.5) * (b - 0.5))
    found = analyse(points, RUNS, product, "sobol", 1)
    assert [index.first for index in found.indices] == pytest.approx([0, 0, 0], abs=0.1)
    assert [index.second for index in found.indices] == pytest.approx([1, 1, 0], abs=0.15)


def test_elementary_effects_of_a_sum(scenario: jostle.Scenario) -> None:
    """Each is the slope over a whole range, everywhere the same."""
    points = designed(scenario, "morris", 10, 1)
    assert len(points.conditions) == 10 * 4
    found = analyse(points, RUNS, known(points, lambda a, b, _: 3 * a - b), "morris", 1)
    assert [index.first for index in found.indices] == pytest.approx([3, 1, 0])
    assert [index.second for index in found.indices] == pytest.approx([0, 0, 0], abs=1e-9)


@pytest.mark.parametrize("method", ["sobol", "morris"])
def test_a_seed_is_a_design(scenario: jostle.Scenario, method: Any) -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[union-attr]  # noqa: NPY002
    one, again, other = (designed(scenario, method, 4, seed).points for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert np.random.get_state()[1].tolist() == before  # type: ignore[union-attr]  # noqa: NPY002


def test_the_most_important_key_is_the_first_row(scenario: jostle.Scenario) -> None:
    points = designed(scenario, "sobol", 32, 1)
    found = analyse(points, RUNS, known(points, lambda a, b, c: a + 9 * b + 3 * c), "sobol", 1)
    assert [row[0] for row in table(found).rows] == ["rtt", "limit", "rate"]
    assert figure(found).groups == ("rtt", "limit", "rate")
    assert len(render_figure(figure(found)).axes) == 1


def test_what_has_no_answer_is_refused(scenario: jostle.Scenario) -> None:
    points = designed(scenario, "morris", 2, 1)
    with pytest.raises(InputError, match="the same everywhere"):
        analyse(points, RUNS, known(points, lambda *_: 1.0), "morris", 1)
    with pytest.raises(InputError, match="no value in 8 of 8"):
        analyse(points, RUNS, known(points, lambda *_: None), "morris", 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sample.where": '["bottleneck.rate > 3 Mbit/s"]'}, "need them to be free"),
        ({"grid": '{ "flows.bbr.start" = ["0 s", "1 s"] }'}, '"flows.bbr.start"'),
        ({"bottleneck.rate": "1 Mbit/s", "flows.*.rtt": "50 ms"}, "sample two or more"),
        ({"bottleneck.rate": "1 Mbit/s", "flows.*.rtt": "50 ms",
          "bottleneck.queue.limit": "9 kB"}, "samples no key"),
    ],
)  # fmt: skip
def test_samples_that_are_not_free_are_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        designed(jostle.load(SCENARIO, changes), "sobol", 4, 1)


def test_too_many_conditions_are_refused(scenario: jostle.Scenario) -> None:
    with pytest.raises(InputError, match="20480 conditions"):
        designed(scenario, "sobol", 4096, 1)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["search", "sensitivity", str(SCENARIO), "--method", "morris", "--points", "3", "--set",
             "duration=2 s", "--measure", "share of bbr", "--measure", "queue_length"]  # fmt: skip
    assert status([*words, "--json", "-o", "answer.svg"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "jostle.sensitivity/1"
    assert [one["measure"] for one in told["measures"]] == ["share of bbr", "queue_length"]
    assert told["measures"][0]["conditions"] == 12
    for one in told["measures"]:
        assert max(key["mu_star"] for key in one["keys"].values()) > 0
    assert (tmp_path / "answer.svg").stat().st_size > 1000
    assert status(words) == 0
    assert "12 conditions, 12 runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [("share", "say of which"), ("share of bbrr", "bbrr"), ("shares of bbr", "shares"),
     ("share of bbr in steady", "steady"), ("Share?", "write it as")],
)  # fmt: skip
def test_measures_that_are_not_there(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert status(["search", "sensitivity", str(SCENARIO), "--points", "2", "--measure", text]) == 2
    assert message in capsys.readouterr().err


def test_a_measure_without_answer_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["search", "sensitivity", str(SCENARIO), "--method", "morris", "--points", "2",
             "--set", "duration=2 s", "--measure"]  # fmt: skip
    constant = '"dropped_loss of bottleneck" is the same everywhere: it depends on no key'
    measures = ["dropped_loss of bottleneck", "--measure", "share of bbr"]
    assert status([*words, *measures, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [one["measure"] for one in document["measures"]] == ["share of bbr"]
    assert document["left_out"] == [constant]
    assert status([*words, *measures]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("share of bbr depends most on ")
    assert printed.splitlines()[0].endswith(f"; {constant}")
    assert status([*words, "dropped_loss of bottleneck"]) == 1
    assert capsys.readouterr().out.startswith(constant)
    assert status([*words, "dropped_loss of bottleneck", "-o", "constant.png"]) == 2
    assert "so there is nothing to draw" in capsys.readouterr().err


def test_unfinished_transfers_have_no_completion_time(scenario: jostle.Scenario) -> None:
    document = {
        "duration": "2 s", "repeats": 2,
        "bottleneck": {"rate": "1 Mbit/s", "queue": {"kind": "drop_tail", "limit": "2 BDP"}},
        "flows": [{"name": "dl", "controller": "cubic", "rtt": "20 ms", "size": "500 kB",
                   "start_jitter": "10 ms"}],
        "sample": {
            "points": 4, "bottleneck.rate": {"from": "1 Mbit/s", "to": "9 Mbit/s"},
            "flows.dl.rtt": {"from": "20 ms", "to": "40 ms"},
        },
    }  # fmt: skip
    points = designed(jostle.Scenario.from_dict(document), "morris", 2, 1)
    results = jostle.run(points, store=False)
    with pytest.raises(InputError, match=r"a transfer is not complete: extend `duration` to 4 s"):
        analyse(points, results, parse_quantity("completion_time of dl"), "morris", 1)
