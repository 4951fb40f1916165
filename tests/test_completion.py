"""What shells complete."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete, get_completion_class
from jostle.cli import cli, status
from jostle.cli.shell_completion import SHELLS


def completed(*words: str) -> list[str]:
    *args, incomplete = words
    shell = ShellComplete(cli, {}, "jostle", "_JOSTLE_COMPLETE")
    return [item.value for item in shell.get_completions(args, incomplete)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("comp",), ["compare"]),
        (("run", "--rep"), ["--repeats"]),
        (
            ("run", "--backend", ""),
            [
                "sim",
                "kernel",
                "kernel:virtual",
                "kernel:realtime",
                "kernel:native",
                "kernel:jostle",
            ],
        ),
        (("info", "explain", "modest"), ["modest-bbr"]),
        (("info", "explain", "viasat"), ["viasat-2"]),
        (("info", "list", "que"), ["queues"]),
        (("study", "run", "geo-s"), ["geo-shared", "geo-solo"]),
        (("new", "data"), ["datacentre"]),
        (("new", "l4s", "--controller", "prag"), ["prague"]),
        (("run", "x.toml", "--set", "flows.a.controller=hyb"), ["flows.a.controller=hybla"]),
        (("run", "x.toml", "--set", "bottleneck.queue=fq_c"), ["bottleneck.queue=fq_codel"]),
        (("run", "x.toml", "--set", "bottleneck.rate=fq"), []),
        (("run", "x.toml", "--measures", "rtt,retransmitt"), ["rtt,retransmitted"]),
        (
            ("run", "scenarios/first.toml", "--set", "flows.newcomer.r"),
            ["flows.newcomer.rtt="],
        ),
        (("run", "nowhere.toml", "--set", "flows."), []),
        (("identify", "x.log", "--candidates", "cubic,bbr"), ["cubic,bbr", "cubic,bbr3"]),
        (("advise", "x.log", "--candidates", "hyb"), ["hybla"]),
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
    assert completed("run", "nowhere/x") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    assert status(["setup", "completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_JOSTLE_COMPLETE" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


_BASH = """
for words in "$@"; do
    COMP_WORDS=($words) COMPREPLY=()
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _jostle_completion jostle
    echo "${COMPREPLY[@]}"
done
"""
_FISH = """
for words in $argv
    complete -C $words
end
"""
_LINES = {
    "jostle analy": "analyze",
    "jostle info explain viasa": "viasat-2",
    "jostle run --measures throughput,retransmitt": "throughput,retransmitted",
    "jostle run a.toml --set a.controller=hyb": "a.controller=hybla",
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "a.toml", "--set", "a.controller", "=", "hyb"], "plain,hybla"),
        (["run", "a.toml", "--set", "a.queue", "="], "plain,fq_codel"),
        (["run", "--backend", "kernel", ":", "real"], "plain,realtime"),
        (["identify", "a.log", "--candidates", "cubic,hyb"], "plain,cubic,hybla"),
        (["run", "scenarios/first.toml", "--set", "bottleneck.ra"], "plain,bottleneck.rate="),
    ],
)
def test_words_that_bash_divides(
    words: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", "\n".join(["jostle", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    bash = get_completion_class("bash")
    assert bash is not None
    found = bash(cli, {}, "jostle", "_JOSTLE_COMPLETE").complete().split("\n")
    assert expected in found


@pytest.mark.parametrize(("shell", "program"), [("bash", _BASH), ("fish", _FISH)])
def test_shells_complete(shell: str, program: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    here = Path(sys.executable).parent
    jostle = [str(here / "jostle"), "setup", "completion", shell]
    script = subprocess.run(jostle, capture_output=True, text=True, check=True).stdout
    path = tmp_path / "script"
    path.write_text(f"{script}\n{program}")
    found = subprocess.run(
        [shell, str(path), *_LINES],
        env={"PATH": f"{here}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert [line.split("\t")[0] for line in found] == list(_LINES.values())


@pytest.mark.parametrize("kind", ["profiles", "measures", "studies", "suites"])
def test_what_has_no_family_tree_says_so(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["info", "list", kind, "--tree"]) == 2
    assert f"no family tree of {kind}" in capsys.readouterr().err
