"""Warnings: controllers that need marks where no queue marks, and flows that may never start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jostle
import pytest

SCENARIO = """
title = "Marks"
duration = "200 ms"
[bottleneck]
rate = "10 Mbit/s"
queue = {queue}
[[flows]]
name = "one"
controller = "{controller}"
rtt = "10 ms"
{more}
[[flows]]
name = "other"
controller = "cubic"
rtt = "10 ms"
"""


def write(folder: Path, controller: str, queue: str, more: str = "") -> Path:
    path = folder / "marks.toml"
    path.write_text(SCENARIO.format(controller=controller, queue=queue, more=more))
    return path


@pytest.mark.parametrize("controller", ["dctcp", "prague"])
@pytest.mark.parametrize("queue", ['{ kind = "drop_tail", limit = "1 BDP" }', '"codel"'])
def test_a_path_that_never_marks_is_told_of_once(tmp_path, controller, queue):
    path = write(tmp_path, controller, queue)
    (note,) = jostle.load(path).plan(repeats=3).notes
    assert note.startswith(
        f"flow one: {controller} needs ECN marks, and no queue of its path marks"
    )
    kind = "codel" if "codel" in queue else "drop_tail"
    assert f"(bottleneck: {kind})" in note
    with pytest.warns(UserWarning, match="flow one: "):
        jostle.run(path)


@pytest.mark.parametrize(
    ("controller", "queue", "more"),
    [
        ("dctcp", '{ kind = "codel", ecn = true }', ""),
        ("dctcp", '{ kind = "step_mark", threshold = "1 ms" }', ""),
        ("prague", '"dualpi2"', ""),
        ("prague", '"codel"', "ecn = false"),
        ("reno", '"codel"', ""),
    ],
)
def test_nothing_is_said_where_marks_come_or_are_not_wanted(tmp_path, controller, queue, more):
    assert jostle.load(write(tmp_path, controller, queue, more)).plan().notes == ()


def test_the_command_line_says_it_on_stderr(tmp_path):
    path = write(tmp_path, "dctcp", '"codel"')
    start = "import sys; from jostle.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "run", "--store", "none", "--json", str(path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "note: flow one: dctcp needs ECN marks" in told.stderr
    assert "needs ECN marks" not in told.stdout


@pytest.mark.parametrize("stop", ["", 'stop = "100 ms"'])
def test_a_flow_that_waits_for_a_stopped_one_may_never_start(tmp_path, stop):
    path = write(tmp_path, "reno", '"codel"', f'size = "10 MB"\n{stop}')
    path.write_text(path.read_text() + 'after = "one"\n')
    notes = jostle.load(path).plan(repeats=3).notes
    note = "flow other: starts after one is complete, and never if one is stopped at 100 ms"
    assert notes == ((f"{note} before that",) if stop else ())
