"""Malformed scenarios: what is said about each stands beside it.

`JOSTLE_BLESS=1 pytest tests/scenario/test_bad.py` writes the messages anew; review the difference.
"""

import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jostle.scenario import Registry, ScenarioError, load, load_text

BAD = Path(__file__).parent / "bad"
FILES = sorted(BAD.glob("*.toml"))
SCENARIOS = Path(__file__).parents[2] / "scenarios"
EXAMPLES = [path.read_text() for path in sorted(SCENARIOS.glob("*.toml"))]


def test_there_are_enough_of_them() -> None:
    assert len(FILES) >= 70
    assert {p.stem for p in BAD.glob("*.txt")} == {p.stem for p in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_mistake_is_named(
    path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(BAD)
    with pytest.raises(ScenarioError) as caught:
        load(path.name, registry=registry)
    said = f"{caught.value}\n"
    expected = path.with_suffix(".txt")
    if os.environ.get("JOSTLE_BLESS"):
        expected.write_text(said)
    assert said == expected.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_problem_names_the_file_and_lines_rise(
    path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(BAD)
    with pytest.raises(ScenarioError) as caught:
        load(path.name, registry=registry)
    assert caught.value.problems
    assert all(line.startswith(path.name) for line in str(caught.value).splitlines())
    lines = [problem.line for problem in caught.value.problems]
    assert lines == sorted(lines)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: cannot be read: no such file or directory"


VALUES = [
    "1",
    "-1",
    "nan",
    "inf",
    "9" * 30,
    '"x"',
    '"0 s"',
    '"1e18 BDP"',
    "[]",
    "{}",
    "[[1]]",
    "true",
    "1979-05-27",
]


@given(st.data())
def test_whatever_is_written_is_read_or_refused_with_a_reason(
    registry: Registry, data: st.DataObject
) -> None:
    example = data.draw(st.sampled_from(EXAMPLES))
    lines = example.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        if "=" in lines[at] and data.draw(st.booleans()):
            lines[at] = f"{lines[at].split('=')[0]}= {data.draw(st.sampled_from(VALUES))}"
        else:
            lines[at] = data.draw(st.sampled_from(lines))
    try:
        scenario = load_text("\n".join(lines), name=str(SCENARIOS / "x.toml"), registry=registry)
    except ScenarioError as error:
        assert error.problems  # noqa: PT017 (either outcome is right)
    else:
        combinations = math.prod(len(labels) for labels in scenario.grid.values())
        points = len(next(iter(scenario.sample.values()), [""]))
        assert len(scenario.plan(repeats=1).runs) == combinations * points
