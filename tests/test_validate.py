"""`jostle validate`: what it prints where, and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import fake_core
import polars as pl
import pytest
from fake_backend import Constant, FakeBackend
from jostle.backends import Backend
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.errors import InputError

SCENARIO = """
title = "Two flows"
duration = "10 s"
repeats = 3
[bottleneck]
rate = "50 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "incumbent"
controller = "cubic"
rtt = "40 ms"
[[flows]]
name = "newcomer"
controller = "bbr"
rtt = "80 ms"
"""
GRID = '[grid]\n"flows.newcomer.controller" = ["cubic", "bbr"]\n'


@dataclass(frozen=True)
class TwoBackends(Environment):
    """An environment with these backends and no other."""

    backends: dict[str, FakeBackend] = field(default_factory=dict)

    def backend(self, name: str, *_choices: object, **_more: object) -> Backend:
        if name not in self.backends:
            raise InputError(f"there is no {name} here: build it")
        return self.backends[name]


def greedy(flow, _seed):
    """BBR takes 60 %."""
    mbps = 6 if flow["controller"]["name"] == "bbr" else 4
    return Constant(goodput_bps=mbps * 1e6)


@pytest.fixture
def backends() -> dict[str, FakeBackend]:
    return {"sim": FakeBackend("sim", greedy), "kernel": FakeBackend("kernel")}


Jostle = Callable[..., tuple[int, str, str]]


@pytest.fixture
def jostle(backends, tmp_path, monkeypatch, capsys) -> Jostle:
    """Run the command in a folder that holds `plain.toml` and `grid.toml`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JOSTLE_STORE", raising=False)
    Path("plain.toml").write_text(SCENARIO)
    Path("grid.toml").write_text(SCENARIO + GRID)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = status(arguments, TwoBackends(fake_core.FakeEngine(), backends))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_tables(jostle):
    code, out, err = jostle("validate", "grid.toml")
    assert code == 0
    assert err == ""
    assert re.search(r"share \(%\) +60.0 +50.0 +\+10.0 points +OUTSIDE", out)
    assert len(re.findall(r"points +within", out)) == 2
    assert " ".join(out.split()).startswith(
        "1 of 2 cells are within the tolerances in share; not judged: goodput, SRTT, retransmitted"
    )
    assert "Not judged where flows share a link: goodput" in out


def test_both_sides_run_the_same_with_other_starts_in_every_run(jostle, backends):
    jostle("validate", "plain.toml", "--jobs", "1")
    ours, theirs = backends["sim"].specs, backends["kernel"].specs
    assert ours == theirs
    starts = {flow["start_ns"] for spec in ours for flow in spec["flows"]}
    assert len(starts) == 6
    assert 0 <= min(starts) < max(starts) <= 40_000_000


def test_the_simulator_may_run_more_often(jostle, backends):
    _, out, _ = jostle(
        "validate", "plain.toml", "--repeats", "2", "--sim-repeats", "5", "--json",
        "-o", "page.md", "--set", "duration=20 s",
    )  # fmt: skip
    (scenario,) = json.loads(out)["scenarios"]
    assert scenario["conditions"][0]["runs"] == {"simulator": 5, "kernel": 2}
    seeds = [sorted(spec["seed"] for spec in backend.specs) for backend in backends.values()]
    assert seeds == [[1, 2, 3, 4, 5], [1, 2]]
    command = (
        "jostle validate --set 'duration=20 s' --repeats 2 --sim-repeats 5 -o page.md plain.toml\n"
    )
    assert command in Path("page.md").read_text()


def test_the_store_keeps_both_sides(jostle, backends):
    first = jostle("validate", "plain.toml", "--json")
    second = jostle("validate", "plain.toml", "--json")
    assert first[1] == second[1]
    assert [len(backend.specs) for backend in backends.values()] == [3, 3]


def test_json_is_one_document(jostle):
    code, out, err = jostle("validate", "grid.toml", "plain.toml", "--json", "-o", "f/")
    document = json.loads(out)
    assert code == 0
    assert document["schema"] == "jostle.fidelity/2"
    assert document["cells"] == {"within": 1, "total": 3}
    assert [scenario["scenario"] for scenario in document["scenarios"]] == ["grid", "plain"]
    assert "figure: f/grid/overlay-bbr.png" in err


def test_figures(jostle):
    _, out, _ = jostle("validate", "plain.toml", "-o", "figures/", "-o", "figures/*.svg",
                       "--repeats", "1")  # fmt: skip
    assert "figure: figures/overlay.png\nfigure: figures/overlay.svg" in out
    assert sorted(path.suffix for path in Path("figures").iterdir()) == [".png", ".svg"]


def test_report_with_causes(jostle):
    Path("fidelity-causes.toml").write_text('[[cause]]\nscenario = "grid"\ntext = "greed"\n')
    code, out, _ = jostle("validate", "grid.toml", "-o", "fidelity.md")
    assert code == 0
    assert "report: fidelity.md" in out
    page = Path("fidelity.md").read_text()
    assert "$ jostle validate -o fidelity.md grid.toml" in page
    assert "| greed |" in page
    assert page.startswith("# Fidelity\n")


def test_a_page_has_the_title_of_the_file_beside_it(jostle):
    Path("page-causes.toml").write_text('title = "Over QUIC"\n')
    code, _, _ = jostle("validate", "plain.toml", "-o", "page.md")
    assert code == 0
    assert Path("page.md").read_text().startswith("# Over QUIC\n")


def test_the_simulator_is_not_compared_with_itself(jostle, backends):
    code, _, err = jostle("validate", "plain.toml", "--backend", "sim")
    assert code == 2
    assert "the simulator is compared with a kernel" in err
    assert backends["sim"].specs == []


def test_bad_causes_are_told_before_anything_runs(jostle, backends):
    Path("fidelity-causes.toml").write_text("causes = 1")
    code, _, err = jostle("validate", "grid.toml", "-o", "fidelity.md")
    assert code == 2
    assert "fidelity-causes.toml: write nothing but a title and [[cause]] tables" in err
    assert backends["sim"].specs == []


def test_strict_fails_if_a_cell_is_outside(jostle, backends):
    assert jostle("validate", "grid.toml", "--fail-on", "tolerance")[0] == 1
    backends["sim"].behaviour = backends["kernel"].behaviour
    assert jostle("validate", "grid.toml", "--fail-on", "tolerance", "--store", "none")[0] == 0


def test_a_run_that_fails(jostle, backends):
    backends["kernel"].broken = lambda spec: spec["seed"] == 2
    code, out, err = jostle("validate", "plain.toml", "--json")
    assert code == 1
    assert "run failed (seed 2): the kernel is out of order" in err
    (scenario,) = json.loads(out)["scenarios"]
    assert scenario["failures"] == [
        {"side": "kernel", "condition": {}, "seed": 2, "error": "the kernel is out of order"}
    ]
    assert scenario["conditions"][0]["runs"] == {"simulator": 3, "kernel": 2}


def test_what_is_assumed_and_left_out_is_listed(jostle, backends):
    backend = backends["kernel"]
    check = backend.check

    def refuse(spec):
        if spec["flows"][1]["controller"]["name"] == "bbr":
            raise InputError("flows.newcomer.controller: this kernel has no bbr")
        check(spec)

    object.__setattr__(backend, "check", refuse)
    code, out, _ = jostle("validate", "grid.toml", "--json")
    assert code == 0
    (scenario,) = json.loads(out)["scenarios"]
    assert scenario["assumptions"] == [
        "Starts are drawn from one shortest base RTT, because no flow has start_jitter.",
        "Left out: flows.newcomer.controller = bbr: flows.newcomer.controller: this kernel has no "
        "bbr (kernel)",
    ]
    _, out, _ = jostle("validate", "grid.toml", "-o", "page.md")
    shown = " ".join(out.split())
    for sentence in scenario["assumptions"]:
        assert sentence in shown
    assert f"- grid: {scenario['assumptions'][1]}" in Path("page.md").read_text()
    _, out, _ = jostle("validate", "plain.toml", "--set", "flows.newcomer.start_jitter=10 ms")
    assert "Assumptions" not in out


@pytest.mark.parametrize(
    ("losses", "where"),
    [
        (["1 %"], " of 1 %"),
        (["1 %", "2 %"], " of each of the 2 conditions"),
        (
            ["none", "1 %", "2 %"],
            " of each of 2 conditions (1 %; 2 %)",
        ),
        (["none", "1 %"], " of 1 %"),
    ],
)
def test_runs_without_a_partner_are_listed_in_one_line(jostle, backends, losses, where):
    single = SCENARIO.split('[[flows]]\nname = "newcomer"', maxsplit=1)[0]
    Path("lossy.toml").write_text(f"{single}\n[grid]\n'bottleneck.loss' = {losses}\n")
    _, out, _ = jostle("validate", "lossy.toml", "--repeats", "2", "--sim-repeats", "5",
                       "--json")  # fmt: skip
    (scenario,) = json.loads(out)["scenarios"]
    starts, *left_out = scenario["assumptions"]
    assert starts.startswith("Starts are drawn")
    assert left_out == [
        f"Left out: 3 runs of the simulator{where}, because the other side has no run with the "
        "same seed, and seeds set the losses."
    ]


def test_runs_without_a_partner_of_the_only_condition(jostle, backends):
    single = SCENARIO.split('[[flows]]\nname = "newcomer"', maxsplit=1)[0]
    Path("lossy.toml").write_text(single.replace("[[flows]]", 'loss = "1 %"\n[[flows]]'))
    _, out, _ = jostle("validate", "lossy.toml", "--repeats", "2", "--sim-repeats", "5",
                       "--json")  # fmt: skip
    (scenario,) = json.loads(out)["scenarios"]
    assert "Left out: 3 runs of the simulator, because the other side" in scenario["assumptions"][1]


def test_no_kernel_is_told_before_anything_runs(jostle, backends):
    simulator = backends["sim"]
    del backends["kernel"]
    assert jostle("validate", "plain.toml") == (2, "", "error: there is no kernel here: build it\n")
    assert simulator.specs == []


def test_what_the_kernel_cannot_do_is_told_before_anything_runs(jostle, backends):
    backends["kernel"].refuses = "bottleneck.outage: `tc` has no outages"
    code, out, err = jostle("validate", "grid.toml")
    assert (code, out) == (2, "")
    assert "flows.newcomer.controller = cubic: bottleneck.outage: `tc` has no outages" in err
    assert backends["sim"].specs == []


def test_which_kernel(jostle, backends, monkeypatch):
    asked = []

    def backend(_self, name):
        asked.append(name)
        return backends[name.partition(":")[0]]

    monkeypatch.setattr(TwoBackends, "backend", backend)
    jostle("validate", "plain.toml", "--backend", "kernel:realtime:6.12")
    assert asked == ["sim", "kernel:realtime:6.12"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.toml"], "missing.toml: cannot be read"),
        (["plain.toml", "./plain.toml"], "two files are called plain"),
        (["plain.toml", "--set", "duration=5"], "duration"),
        (["plain.toml", "--repeats", "0"], "--repeats"),
        (["plain.toml", "--backend", "kernel:imaginary"], "imaginary"),
        (["plain.toml", "-o", "plain.toml/"], "cannot make the folder"),
        ([], "FILE"),
    ],
)
def test_bad_input(jostle, backends, arguments: list[str], said: str):
    code, out, err = jostle("validate", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert backends["sim"].specs == []


def test_cells_are_written_to_files(jostle):
    code, out, _ = jostle("validate", "grid.toml", "--csv", "-o", "cells.parquet")
    assert code == 0
    frame = pl.read_parquet("cells.parquet")
    assert out.splitlines()[0] == ",".join(frame.columns)
    share = frame.filter(quantity="share", flow="newcomer")
    assert share["verdict"].to_list() == ["within", "outside"]
    assert share["simulator"].to_list() == pytest.approx([0.5, 0.6])
    assert share["flows.newcomer.controller"].to_list() == ["cubic", "bbr"]


@pytest.mark.parametrize("width", [78, 80, 200])
def test_tables_fit(jostle, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = jostle("validate", "grid.toml")
    assert max(map(len, out.splitlines())) <= width
    heading = "newcomer (bbr)" if width < 100 else "difference"
    assert heading in out
