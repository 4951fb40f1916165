"""`make check` chooses the crates and the tests that a change can affect."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))
from check import MOST_TESTS, affected_crates, affected_tests, steps  # noqa: E402


def test_a_change_of_a_crate_checks_its_users_too() -> None:
    assert affected_crates(["crates/emulator/src/lib.rs"]) == [
        "jostle-emulator", "jostle-python-bindings",
    ]  # fmt: skip
    changed = affected_crates(["crates/units/src/time.rs"])
    assert {"jostle-units", "jostle-tcp", "jostle-sim"} <= set(changed)
    assert "jostle-toml-lines" not in changed
    assert affected_crates(["docs/index.md"]) == []


def test_the_nearest_tests_are_chosen() -> None:
    chosen = affected_tests(["python/jostle/stats/mean_estimate.py"])
    assert "tests/test_stats_numbers.py" in chosen
    assert len(chosen) < len(list((ROOT / "tests").rglob("test_*.py"))) / 2
    assert affected_tests(["tests/test_stats.py"]) == ["tests/test_stats.py"]
    assert "tests/test_scenarios.py" in affected_tests(["scenarios/first.toml"])


def test_many_tests_are_left_to_make_test() -> None:
    chosen = affected_tests(["python/jostle/errors.py"])
    count = sum((ROOT / name).read_text("utf-8").count("\ndef test_") for name in chosen)
    assert 0 < count <= MOST_TESTS


def test_a_text_needs_no_tests_of_code() -> None:
    assert [step.title for step in steps(["CHANGELOG.md"])] == ["generated text", "prose"]


def test_rust_and_python_are_checked_for_what_changed() -> None:
    titles = [step.title for step in steps(["crates/link/src/link.rs"])]
    assert titles == [
        *("format (Rust)", "lint (Rust)", "tests (Rust)", "engine", "prose", "tests (Python)")
    ]
    titles = [step.title for step in steps(["python/jostle/stats/mean_estimate.py"])]
    assert titles == ["format (Python)", "lint (Python)", "types", "prose", "tests (Python)"]
