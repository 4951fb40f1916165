"""What shells complete."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from jostle.cli import cli, status
from jostle.cli.completing import SHELLS


def completed(*words: str) -> list[str]:
    *args, incomplete = words
    shell = ShellComplete(cli, {}, "jostle", "_JOSTLE_COMPLETE")
    return [item.value for item in shell.get_completions(args, incomplete)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("rep",), ["report"]),
        (("run", "--rep"), ["--repeats", "--report"]),
        (("run", "--backend", ""), ["sim", "kernel"]),
        (("explain", "modest"), ["modest-bbr"]),
        (("explain", "viasat"), ["viasat-2"]),
        (("list", "que"), ["queues"]),
        (("study", "geo-s"), ["geo-shared", "geo-solo"]),
        (("new", "data"), ["datacentre"]),
        (("new", "l4s", "--controller", "prag"), ["prague"]),
        (("run", "x.toml", "--set", "flows.a.controller=hyb"), ["flows.a.controller=hybla"]),
        (("run", "x.toml", "--set", "bottleneck.queue=fq_c"), ["bottleneck.queue=fq_codel"]),
        (("run", "x.toml", "--set", "bottleneck.rate=fq"), []),
        (("run", "x.toml", "--columns", "rtt,retransmitt"), ["rtt,retransmitted"]),
    ],
)
def test_names(words: tuple[str, ...], expected: list[str]) -> None:
    found = completed(*words)
    assert sorted(found) == sorted(expected)


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one.toml", "one.csv", ".hidden.toml"):
        Path(name).touch()
    Path("folder").mkdir()
    Path("folder/two.toml").touch()
    assert completed("run", "") == ["folder/", "one.toml"]
    assert completed("run", "folder/t") == ["folder/two.toml"]
    assert completed("report", "nowhere/x") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    assert status(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_JOSTLE_COMPLETE" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize("kind", ["profiles", "measures", "studies"])
def test_what_has_no_family_tree_says_so(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["list", kind, "--tree"]) == 2
    assert f"no family tree of {kind}" in capsys.readouterr().err
