"""Malformed scenarios: what is said about each stands beside it.

`JOSTLE_BLESS=1 pytest tests/scenario/test_bad.py` writes the messages anew; review the difference.
"""

import os
from pathlib import Path

import pytest

from jostle.scenario import Registry, ScenarioError, load

BAD = Path(__file__).parent / "bad"
FILES = sorted(BAD.glob("*.toml"))


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
