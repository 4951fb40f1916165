"""What other people have written is never more than text: in a terminal, a figure, or a page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from pathlib import Path

import jostle
import pytest
from jostle.cli import status
from jostle.cli.output import print_texts
from jostle.report import assets
from jostle.report.html import render
from jostle.results import Failure
from jostle.runner.progress import BarProgress
from jostle.safe_io.terminal_text import escape_control_characters
from jostle.scenario import ScenarioError
from small_study import copy_study, leave_first_figure

HOSTILE = "\\u001b]0;owned\\u0007\\u001b[2J\\u202ereversed\\u009b31m$\\\\frac$"
SCENARIO = """
title = "{title}"
duration = "1 s"
[bottleneck]
rate = "10 Mbit/s"
queue = {{ kind = "drop_tail", limit = "1 BDP" }}
[[flows]]
name = "one"
controller = "{controller}"
rtt = "40 ms"
"""
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO.format(title=HOSTILE, controller="reno"), "utf-8")
    return path


def test_what_is_left_is_text_and_the_same_json() -> None:
    hostile = "a\x1b[31m\u202eb\tc\nd\x9b\u2066"
    assert escape_control_characters(hostile) == "a\\u001b[31m\\u202eb\tc\nd\\u009b\\u2066"
    document = json.dumps({"title": hostile}, ensure_ascii=False)
    assert json.loads(escape_control_characters(document)) == {"title": hostile}


def test_titles_are_printed_as_text(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures, report = tmp_path / "figures", tmp_path / "report.html"
    shown = ["-o", f"{figures}/", "-o", str(report)]
    assert status(["run", str(scenario), "--store", "none", *shown]) == 0
    out, err = capsys.readouterr()
    assert "reversed" in out
    assert not OBEYED.search(out + err)
    assert not OBEYED.search(report.read_text("utf-8"))
    assert list(figures.glob("*.png"))
    assert status(["run", str(scenario), "--store", "none", "--json"]) == 0
    out, _ = capsys.readouterr()
    assert not OBEYED.search(out)
    assert json.loads(out)["title"].startswith("\x1b]0;owned")


@pytest.mark.parametrize("key", ["controller", "title"])
def test_errors_are_printed_as_text(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scenario.toml"
    values = {"title": "fine", "controller": "reno", key: HOSTILE}
    text = SCENARIO.format(**values)
    if key == "title":
        text = text.replace('name = "one"', f'name = "{HOSTILE}"\n"{HOSTILE}" = 1')
    path.write_text(text, "utf-8")
    assert status(["run", str(path)]) == 2
    _, err = capsys.readouterr()
    assert err.startswith("error: ")
    assert not OBEYED.search(err)


def test_warnings_are_text(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    text = SCENARIO.format(title="t", controller="dctcp").replace('"one"', f'"one{HOSTILE}"')
    path.write_text(text, "utf-8")
    with pytest.raises(ScenarioError):
        jostle.load(path)
    named = text.replace(f'"one{HOSTILE}"', '"one"')
    path.write_text(f'{named}\n[grid]\n"flows.one.rtt" = {{ "{HOSTILE}" = "40 ms" }}\n', "utf-8")
    with pytest.warns(UserWarning, match="needs ECN marks") as warned:
        jostle.run(path)
    assert not any(OBEYED.search(str(one.message)) for one in warned)


def _holds_our_scripts_only(html: str) -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline';")
    assert "connect-src 'none'" in policy
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert scripts == [str(one) for one in assets.scripts()]
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    assert re.findall(r"'sha256-([^']*)'", policy) == digests
    others = re.findall(r"<script([^>]+)>", html)
    assert all(one.startswith(' type="application/json"') for one in others), "data do not run"
    assert len(re.findall("<script", html)) == len(scripts) + len(others)
    assert not OBEYED.search(html)


def test_a_report_fetches_nothing_and_runs_our_scripts_only(scenario: Path) -> None:
    html = render([jostle.run(scenario)], [str(scenario)])
    _holds_our_scripts_only(html)
    assert not re.search(r'(src|href)="(?!data:|#)', html)


def test_only_our_scripts_run_in_the_page_of_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_study(tmp_path)
    leave_first_figure(folder)
    marks = "![seen](https://example.org/seen.png)\n\n<script>alert(1)</script> \u202e"
    (folder / "setup.md").write_text(marks, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert status(["study", "run", "./small", "--jobs", "1"]) == 0
    html = (tmp_path / "reports" / "small.html").read_text("utf-8")
    _holds_our_scripts_only(html)
    assert "<img" not in re.sub(r'<img [^>]*data-svg="[A-Za-z0-9+/=]*"', "", html)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "No such file"), (b"caf\xe9", "it is not UTF-8")]
)
def test_a_setup_that_cannot_be_read_is_found_before_the_runs(
    content: bytes | None,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = Path(__file__).parent / "studies" / "small"
    folder = tmp_path / "small"
    folder.mkdir()
    for file in small.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "setup.md").unlink()
    if content is not None:
        (folder / "setup.md").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    assert status(["study", "run", "./small", "--jobs", "1"]) == 2
    err = capsys.readouterr().err
    assert f'setup: "setup.md" cannot be read: {message}' in err
    assert "runs" not in err


def test_what_failed_is_text_above_the_bar_too(capsys: pytest.CaptureFixture[str]) -> None:
    progress = BarProgress(["a\x1b[2J"])
    progress.begin(2, 0)
    progress.failed(Failure(0, 1, "b\x1b]0;owned\x07"))
    progress.end()
    told = capsys.readouterr().err
    assert "run failed (a\\u001b[2J, seed 1): b\\u001b]0;owned\\u0007" in told
    assert not OBEYED.search(told)


FORGED = "fine\\nerror: forged"
"""In TOML: a text that would begin another line."""


def test_a_title_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = SCENARIO.format(title=FORGED, controller="reno")
    text += '[grid]\n"flows.one.rtt" = ["40 ms", "50 ms"]\n'
    (tmp_path / "scenarios").mkdir()
    for folder in (".", "scenarios"):
        Path(folder, "scenario.toml").write_text(text, "utf-8")
    commands = [
        ["run", "scenario.toml"],
        ["run", "scenario.toml", "--shard", "1/1"],
        [
            "run",
            "scenario.toml",
            "--store",
            "none",
            "--pivot",
            "rtt:phase",
            "--measures",
            "goodput",
        ],
        ["compare", "scenario.toml", "--vary", "rtt=40 ms,50 ms", "--repeats", "2"],
        ["info", "list", "scenarios"],
    ]
    for command in commands:
        assert status(command) == 0, command
        out, err = capsys.readouterr()
        assert "forged" in out, command
        assert not re.search(r"^\s*error: forged", out + err, re.MULTILINE), (command, out, err)


@pytest.mark.parametrize("values", [f'{{ "{FORGED}" = "40 ms" }}', f'["{FORGED}"]'])
def test_a_label_on_two_lines_is_refused(
    values: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scenario.toml"
    text = SCENARIO.format(title="t", controller="reno")
    path.write_text(f'{text}[grid]\n"flows.one.rtt" = {values}\n', "utf-8")
    assert status(["run", str(path)]) == 2
    _, err = capsys.readouterr()
    assert "a label is on one line" in err
    assert not re.search(r"^\s*error: forged", err, re.MULTILINE), err


def test_the_texts_of_a_study_are_one_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    small = Path(__file__).parent / "studies" / "small"
    folder = tmp_path / "small"
    shutil.copytree(small, folder)
    text = (folder / "study.toml").read_text("utf-8")
    text = text[: text.index("[[figures]]")]
    pattern = re.compile('^((?:title|text|finding|caption|paper) = "[^"]*)"', re.MULTILINE)
    text = pattern.sub(lambda match: f'{match[1]}{FORGED}"', text)
    (folder / "study.toml").write_text(text, "utf-8")
    words = ["--store", str(tmp_path / "store"), "-o", f"{tmp_path / 'page'}/"]
    assert status(["study", "run", str(folder), "--repeats", "1", *words]) == 0
    out, err = capsys.readouterr()
    assert "forged" in out
    assert not re.search(r"^\s*error: forged", out + err, re.MULTILINE), out + err


def test_a_table_of_texts_keeps_line_breaks_and_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("a", "first line\nsecond \x1b[1m line of a bottleneck's connections")]
    monkeypatch.delenv("COLUMNS", raising=False)
    print_texts(("name", "text"), rows, ("name",))
    piped = capsys.readouterr().out
    assert "\\u000a" not in piped
    assert [line.rstrip() for line in piped.splitlines()][1:3] == [
        "a     first line",
        "      second \\u001b[1m line of a bottleneck's connections",
    ]
    monkeypatch.setenv("COLUMNS", "24")
    print_texts(("name", "text"), rows, ("name",))
    words = capsys.readouterr().out.split()
    assert "bottleneck's" in words
    assert "connections" in words
