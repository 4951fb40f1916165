"""Files with mistakes, read by the public command: each is refused with its reason, or accepted."""

from __future__ import annotations

import random
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import jostle.emulate
import pytest
from jostle.cli import status
from jostle.errors import InputError
from jostle.running.session import Session
from mutated import mutated, mutated_text, toml
from scenario.test_graphs import GML, GRAPHML

HERE = Path(__file__).parent
SCENARIOS = HERE.parent / "scenarios"
PLANNED = "nothing is run here"
HEAD = 'duration = "2 s"\n[bottleneck]\n'
QUEUE = 'queue = { kind = "drop_tail", limit = "10 packets" }\n'
FLOW = '[[flows]]\nname = "x"\ncontroller = "cubic"\n'
GRAPH = (
    f'duration = "2 s"\n[graph]\nfile = "file"\nrate = "1 Mbit/s"\ndelay = "1 ms"\n{QUEUE}{FLOW}'
)
TRACED = f'{HEAD}rate = {{ file = "file" }}\n{QUEUE}{FLOW}rtt = "9 ms"\n'
DRAWN = 'bytes = { distribution = "empirical", file = "file" }\narrivals = { rate = "5 /s" }\n'
CLAIM = """
defaults = { flow = "cubic" }
[[parts]]
left = { measure = "throughput" }
relation = "about"
right = { measure = "throughput", flow = "bbr" }
tolerance = 0.1
"""
LINK = """
title = "link"
seed = 3
rtt = "40 ms"
[bottleneck]
rate = "10 Mbit/s"
queue = "codel"
loss = "1 %"
jitter = { quantiles = [["0 %", "0 s"], ["100 %", "1 ms"]], correlation = "1 ms" }
"""
RATES = "time,down_mbps,rtt_ms\n" + "".join(f"{at},{at + 1},{20 - at}\n" for at in range(6))

Make = Callable[[random.Random], list[str]]
"""Writes a file with mistakes, and returns the command that reads it."""


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stop(*_: object, **__: object) -> None:
        raise InputError(PLANNED)

    monkeypatch.setattr(Session, "carry_out", stop)
    monkeypatch.setattr(jostle.emulate, "emulate", stop)
    monkeypatch.chdir(tmp_path)


def scenarios() -> Make:
    names = ("first", "classes", "pep", "abilene", "sampled", "frames", "sessions", "handover")
    shutil.copytree(SCENARIOS, "scenarios")
    read = [tomllib.loads(Path("scenarios", f"{name}.toml").read_text("utf-8")) for name in names]

    def make(draw: random.Random) -> list[str]:
        document = mutated(draw.choice(read), draw, [draw.choice(read)])
        Path("scenarios/mutated.toml").write_text(toml(document), "utf-8")
        return ["run", "--no-cache", "scenarios/mutated.toml"]

    return make


def tables(folder: str, name: str, *words: str) -> Make:
    """Give mistakes to a TOML file in a folder of tests."""
    shutil.copytree(HERE / folder, "copy")
    document = tomllib.loads(Path("copy", name).read_text("utf-8"))

    def make(draw: random.Random) -> list[str]:
        Path("copy", name).write_text(toml(mutated(document, draw)), "utf-8")
        return [*words, "--store", "store"]

    return make


def one(text: str, *words: str) -> Make:
    """Give mistakes to a TOML file that stands alone."""
    document = tomllib.loads(text)

    def make(draw: random.Random) -> list[str]:
        Path("mutated.toml").write_text(toml(mutated(document, draw)), "utf-8")
        return list(words)

    return make


def words_of(text: str, scenario: str) -> Make:
    """Give mistakes to a file that a scenario names."""
    Path("scenario.toml").write_text(scenario, "utf-8")

    def make(draw: random.Random) -> list[str]:
        Path("file").write_text(mutated_text(text, draw), "utf-8")
        return ["run", "--no-cache", "scenario.toml"]

    return make


READERS: dict[str, tuple[int, Callable[[], Make]]] = {
    "scenario": (40, scenarios),
    "study": (30, lambda: tables("studies/small", "study.toml", "study", "./copy")),
    "suite": (
        30, lambda: tables("suites/small", "suite.toml", "suite", "./copy", "--controller", "reno"),
    ),
    "claim": (
        40,
        lambda: one(
            CLAIM, "boundary", str(SCENARIOS / "sensitivity.toml"), "--claim", "mutated.toml",
            "--no-cache",
        ),
    ),
    "link": (60, lambda: one(LINK, "emulate", "mutated.toml", "--", "true")),
    "GML": (60, lambda: words_of(GML, GRAPH + 'from = "A"\nto = "B"\n')),
    "GraphML": (60, lambda: words_of(GRAPHML, GRAPH + 'from = "A"\nto = "B"\n')),
    "table of rates": (60, lambda: words_of(RATES, TRACED)),
    "delivery opportunities": (60, lambda: words_of("1\n3\n3\n40\n", TRACED)),
    "distribution": (
        60,
        lambda: words_of(
            "1000 0\n2000 0.5\n9000 1\n",
            f'{HEAD}rate = "1 Mbit/s"\n{QUEUE}{FLOW}rtt = "9 ms"\n{DRAWN}',
        ),
    ),
}  # fmt: skip
"""How many files with mistakes are read, and what makes them."""


@pytest.mark.parametrize("reader", READERS)
def test_no_mistake_ends_in_a_traceback(reader: str, capsys: pytest.CaptureFixture[str]) -> None:
    count, prepare = READERS[reader]
    make, draw = prepare(), random.Random(reader)
    accepted = 0
    for case in range(count):
        command = make(draw)
        assert status(command) in (0, 2), (reader, case)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err, (reader, case)
        accepted += PLANNED in err
    # Mistakes that nobody accepts would test the first check alone.
    assert accepted > 0, reader
