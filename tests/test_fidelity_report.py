"""The page about fidelity, and the causes that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fake_backend import Behaviour, Constant, FakeBackend
from fake_core import spec
from fake_plan import plan_of
from jostle.errors import InputError
from jostle.fidelity import Comparison, compare
from jostle.fidelity.causes import (
    SAME,
    UNEXPLAINED,
    Cause,
    Causes,
    cause_of,
    read_causes,
    without_repetition,
)
from jostle.fidelity.markdown import page
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.scenario import PlannedRun

KEY = "bottleneck.loss"


def comparison(name: str, controllers: tuple[str, ...], ours: Behaviour) -> Comparison:
    """One scenario with the losses 1 %, 2 %, …, one condition for each seed."""
    runs = [PlannedRun(n, n + 1, spec(n + 1, controllers)) for n in range(12)]
    plan = plan_of(f"Title of {name}", [{KEY: f"{n + 1} %"} for n in range(12)], runs)
    executor = local(1)
    try:
        sides = [
            Session(FakeBackend(side, behaviour), executor, None).carry_out(plan)
            for side, behaviour in (("sim", ours), ("kernel", lambda _flow, _seed: Constant()))
        ]
    finally:
        executor.shutdown()
    return compare(name, *sides)


@pytest.fixture
def comparisons() -> list[Comparison]:
    """Alone: the larger the loss, the worse; from 3 % on outside. A pair: within."""
    alone = comparison("alone", ("bbr",), lambda _f, seed: Constant(10e6 * (1 + 0.009 * seed)))
    pair = comparison("pair", ("cubic", "bbr"), lambda _flow, _seed: Constant())
    return [alone, pair]


def tables(text: str) -> list[list[list[str]]]:
    """Cells of every Markdown table, without the line of dashes."""
    found = re.findall(r"(?:^\|.*\|$\n?)+", text, re.M)
    return [
        [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block.splitlines()]
        for block in found
    ]


def test_page(comparisons: list[Comparison]) -> None:
    text = page(comparisons, [Cause("alone", "dice", {KEY: "12 %"})], "jostle validate x.toml")
    assert text.startswith("# Fidelity\n")
    assert "$ jostle validate x.toml" in text
    assert "Simulator `fake-1`, 1 run per cell; kernel `fake-1`, 1 run per cell." in text
    assert "retransmitted packets within 25 % or 30 packets" in text
    kinds, quantities, controllers, scenarios, worst, alone, pair = tables(text)
    assert kinds[2:] == [
        ["a flow alone", "12", "2", "16.7 %"],
        ["flows that share", "12", "12", "100.0 %"],
    ]
    assert [row[1:] for row in quantities[2:]] == [
        ["goodput", "12", "2", "16.7 %"],
        ["SRTT", "12", "12", "100.0 %"],
        ["retransmitted packets", "12", "12", "100.0 %"],
        ["share", "12", "12", "100.0 %"],
    ]
    assert controllers[2:] == [["bbr", "2 of 12", ""], ["cubic + bbr", "", "12 of 12"]]
    assert scenarios[2] == ["`alone`", "Title of alone", "12", "2", "16.7 %"]
    assert len(worst) == 2 + 10
    assert worst[2] == [
        "`alone` 12 %",
        "incumbent: goodput +10.8 %: 11.08 instead of 10.00 Mbit/s",
        "dice",
    ]
    assert worst[3][2] == "unexplained"
    assert [row[3] for row in alone[2:6]] == ["+0.9 %", "+1.8 %", "**+2.7 %**", "**+3.6 %**"]
    assert pair[2:4] == [
        ["1 %", "incumbent (cubic)", "50.0 %", "0.0 points"],
        ["", "newcomer (bbr)", "50.0 %", "0.0 points"],
    ]


def test_page_of_cells_that_are_all_within(comparisons: list[Comparison]) -> None:
    assert "Every cell is within the tolerances." in page(comparisons[1:], (), "jostle validate")


def test_page_of_runs_that_failed() -> None:
    executor = local(1)
    plan = plan_of("A title", [{}], [PlannedRun(0, 1, spec())])
    try:
        sides = [
            Session(FakeBackend(name, broken=lambda _spec: True), executor, None).carry_out(plan)
            for name in ("sim", "kernel")
        ]
    finally:
        executor.shutdown()
    text = page([compare("broken", *sides)], (), "jostle validate")
    assert ["not compared: runs failed", "1", "0", "0.0 %"] in tables(text)[0]
    sides = (f"{name}: 0 of 1 run, 1 failed: the {at} is out of order"
             for name, at in (("simulator", "sim"), ("kernel", "kernel")))  # fmt: skip
    assert ["`broken`", f"runs failed: {'; '.join(sides)}", "unexplained"] in [
        row for table in tables(text) for row in table
    ]


def test_causes_that_are_nested_too_deeply(tmp_path: Path) -> None:
    path = tmp_path / "fidelity-causes.toml"
    path.write_text("x = " + "[" * 10_000)
    with pytest.raises(InputError, match=path.name):
        read_causes(path)


def test_a_cause_is_told_once() -> None:
    texts = ["dice", UNEXPLAINED, "dice", "timers", UNEXPLAINED]
    assert without_repetition(texts) == ["dice", UNEXPLAINED, SAME, "timers", UNEXPLAINED]


def test_causes(tmp_path: Path, comparisons: list[Comparison]) -> None:
    path = tmp_path / "fidelity-causes.toml"
    path.write_text(
        '[[cause]]\nscenario = "al*"\ntext = "dice"\ncondition = { "bottleneck.loss" = "1? %" }\n'
        '[[cause]]\nscenario = "*"\ntext = "timers"\ncontroller = "cubic"\n'
    )
    causes = read_causes(path).causes
    alone, pair = comparisons
    assert cause_of(causes, "alone", alone.cells[11]) == "dice"
    assert cause_of(causes, "alone", alone.cells[0]) == "unexplained"
    assert cause_of(causes, "pair", pair.cells[11]) == "timers"
    other_key = [Cause("*", "dice", {"bottleneck.rate": "*"})]
    assert cause_of(other_key, "pair", pair.cells[0]) == "unexplained"


def test_no_file_of_causes_is_no_mistake(tmp_path: Path) -> None:
    assert read_causes(tmp_path / "fidelity-causes.toml") == Causes()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[cause]", "not valid TOML"),
        ("[cause]\nscenario = 'a'", "nothing but a title and [[cause]] tables"),
        ("other = 1", "nothing but a title and [[cause]] tables"),
        ("title = 1", "nothing but a title and [[cause]] tables"),
        ("cause = [1]", "cause 1: write it as a [[cause]] table"),
        ("[[cause]]\nscenario = 'a'", "cause 1: `scenario` and `text` are needed"),
        ("[[cause]]\nscenario = 'a'\ntext = 'b'\nflow = 'c'", "no key `flow` is known"),
        ("[[cause]]\nscenario = 'a'\ntext = 1", "every value is a text"),
        ("[[cause]]\nscenario = 'a'\ntext = 'b'\ncondition = 'c'", "a table of grid keys"),
        ("[[cause]]\nscenario = 'a'\ntext = 'b'\ncondition = { x = 1 }", "every value is a text"),
    ],
)
def test_bad_causes(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "fidelity-causes.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_causes(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_causes_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_causes(tmp_path)
