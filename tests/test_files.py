"""Parameters that are files: from a scenario's path to the content that a run depends on."""

from __future__ import annotations

import base64
import importlib.util
import json
import tomllib
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from jostle import _core, scenario
from jostle.backends.base import run_id
from jostle.cli import status
from jostle.safe_io.untrusted_files import read_bytes
from jostle.scenario import ScenarioError
from jostle.scenario.schema import json_schema

ROOT = Path(__file__).parents[1]
SCENARIO = """
duration = "2 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "2 BDP" }
[[flows]]
name = "one"
controller = { name = "remy", table = "tables/mine.dna" }
rtt = "40 ms"
"""


@pytest.fixture(scope="module")
def table() -> Callable[[], bytes]:
    path = ROOT / "examples" / "remy_table.py"
    spec = importlib.util.spec_from_file_location("remy_table", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.table  # type: ignore[no-any-return]


@pytest.fixture
def folder(tmp_path: Path, table: Callable[[], bytes]) -> Path:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "mine.dna").write_bytes(table())
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    return tmp_path


def spec(folder: Path) -> dict[str, object]:
    return dict(scenario.load(folder / "scenario.toml").plan().runs[0].spec)


def problem(folder: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        scenario.load(folder / "scenario.toml").plan()
    (found,) = caught.value.problems
    assert (found.line, found.key) == (8, "flows.one.controller.table")
    return found.message


def test_the_default_is_what_the_example_writes(table: Callable[[], bytes]) -> None:
    (remy,) = (row for row in json.loads(_core.registry())["controllers"] if row["name"] == "remy")
    (parameter,) = remy["parameters"]
    assert base64.b64decode(parameter["default"]) == table()


def test_a_path_is_relative_to_the_scenario_and_its_content_is_run(folder: Path) -> None:
    record = json.loads(_core.run(json.dumps(spec(folder))).summary)
    assert record["flows"][0]["phases"]["overall"]["goodput_bps"] > 5e6
    jsonschema.validate(spec(folder), json.loads(_core.run_spec_schema()))


def test_a_run_is_named_by_the_content_and_not_by_the_path(folder: Path) -> None:
    first = run_id(spec(folder), "sim", "1")
    (folder / "tables" / "mine.dna").rename(folder / "moved.dna")
    (folder / "scenario.toml").write_text(SCENARIO.replace("tables/mine", "moved"))
    assert run_id(spec(folder), "sim", "1") == first
    content = (folder / "moved.dna").read_bytes()
    (folder / "moved.dna").write_bytes(content + b"\xa0\x06\x01")  # A field that changes nothing.
    assert run_id(spec(folder), "sim", "1") != first


def test_a_missing_file_is_told_with_its_path_and_what_it_should_be(folder: Path) -> None:
    (folder / "tables" / "mine.dna").unlink()
    message = problem(folder)
    assert f'file "{folder}/tables/mine.dna": no such file or directory — accepted:' in message
    assert "a whisker tree of Remy" in message


def test_a_truncated_file_is_told_with_the_byte(folder: Path) -> None:
    file = folder / "tables" / "mine.dna"
    file.write_bytes(file.read_bytes()[:100])
    assert f'"{file}": byte 88: 78 bytes should follow, there are 12' in problem(folder)


def test_other_files_are_refused(folder: Path) -> None:
    file = folder / "tables" / "mine.dna"
    file.write_bytes(b"")
    assert "the file is empty" in problem(folder)
    file.write_bytes(bytes(5_000_000))
    assert "larger than 4 MiB" in problem(folder)
    file.write_text(SCENARIO)  # "duration", whose letters are tags to Protocol Buffers.
    assert "byte 7: no field is of wire type 7" in problem(folder)


@pytest.mark.parametrize("given", ["3", "true", '["a.dna"]'])
def test_only_a_path_is_accepted(folder: Path, given: str) -> None:
    (folder / "scenario.toml").write_text(SCENARIO.replace('"tables/mine.dna"', given))
    assert "accepted: the path of a file with a whisker tree" in problem(folder)


def test_the_schema_of_scenarios_and_the_help_know_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())

    def fits(table: object) -> bool:
        document = tomllib.loads(SCENARIO)
        document["flows"][0]["controller"]["table"] = table
        return bool(validator.is_valid(document))

    assert fits("x.dna")
    assert not fits(3)
    assert status(["info", "explain", "remy"]) == 0
    assert "table = (built in)    (path of a whisker tree of Remy" in capsys.readouterr().out


def test_the_engine_checks_specifications_from_elsewhere(folder: Path) -> None:
    text = json.dumps(spec(folder))
    content = base64.b64encode((folder / "tables" / "mine.dna").read_bytes()).decode()
    cut = base64.b64encode(b"\x0a\x08").decode()
    with pytest.raises(ValueError, match=r"`remy.table`: byte 2: 8 bytes should follow, there are"):
        _core.check(text.replace(content, cut))
    with pytest.raises(ValueError, match="in Base64"):
        _core.check(text.replace(content, "tables/mine.dna"))


def test_there_is_no_such_parameter() -> None:
    for row in (("controllers", "reno", "table"), ("controllers", "none", "x"), ("x", "y", "z")):
        with pytest.raises(ValueError, match=f"no {row[0]} has"):
            _core.check_file(*row, b"")


def test_room_is_made_for_what_there_is_and_not_for_what_may_be(tmp_path: Path) -> None:
    """Guests have less memory than what they leave may take."""
    content = bytes(range(256)) * 10_000
    (tmp_path / "left").write_bytes(content)
    tracemalloc.start()
    try:
        assert read_bytes(tmp_path / "left", 2 * 10**9) == content
        assert tracemalloc.get_traced_memory()[1] < 10 * len(content)
    finally:
        tracemalloc.stop()
    with pytest.raises(OSError, match="Larger than 2 MB"):
        read_bytes(tmp_path / "left", len(content) - 1)
