"""Controllers of jostle inside Linux in a study, a suite and a sweep."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from jostle.backends.kernel import KernelBackend
from jostle.cli import status
from jostle.cli.environment import Environment
from small_study import copy_study, leave_first_figure

TESTS = Path(__file__).parents[1]
SWEEP = """
duration = "2 s"
repeats = 2
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = "copa"
rtt = "20 ms"
start_jitter = "20 ms"
[grid]
"flows.one.controller" = ["copa", "reno", "ledbat"]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: KernelBackend) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOSTLE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("JOSTLE_KERNEL", str(backend.image.path))
    return tmp_path


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    capsys.readouterr()
    code = status([*words, "--json"], Environment())
    output = capsys.readouterr()
    return code, json.loads(output.out), output.err


def test_a_sweep_is_reused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.toml").write_text(SWEEP, "utf-8")
    words = ("run", "s.toml", "--backend", "kernel")
    code, first, _ = command(capsys, *words)
    assert code == 0
    # Another module would be another run.
    code, again, said = command(capsys, *words)
    assert code == 0
    assert "6 of 6 runs" in said
    assert first["conditions"] == again["conditions"]
    assert len(first["conditions"]) == 3


def test_a_study_on_the_kernel(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = copy_study(folder)
    leave_first_figure(study)
    file = study / "study.toml"
    # Vivace is jostle's.
    file.write_text(file.read_text().replace("bbr = 1000", "vivace = 9.4"))
    words = ("study", "run", str(study), "--backend", "kernel", "--repeats", "1")
    _, found, _ = command(capsys, *words)
    (setup,) = found["studies"][0]["setups"]
    assert setup["backend"] == "kernel"
    # Both throughputs and an RTT, each measured.
    assert setup["deviation"]["n"] == 3
    assert setup["deviation"]["worst"] < 1.3


def test_a_suite_on_the_kernel(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = folder / "small"
    shutil.copytree(TESTS / "suites" / "small", suite)
    words = ("suite", "run", str(suite), "--controller", "copa", "--backend", "kernel", "--quick")
    code, found, _ = command(capsys, *words)
    assert code in (0, 1)
    verdicts = {one["id"]: one["verdict"] for one in found["criteria"]}
    assert verdicts["1-goodput"] in ("pass", "fail")
