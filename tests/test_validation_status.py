"""Every run says how well its controllers are validated, from the recorded comparisons."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import jostle
import pytest
from jostle import _core
from jostle.cli import status as run_command
from jostle.cli.environment import Environment
from jostle.fidelity import validation_status
from jostle.fidelity.validation_status import (
    ValidationStatus,
    evidence,
    in_a_line,
    recorded_cells,
    status_of,
    statuses,
)
from jostle.report import write_report

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "results"))

import record_cells  # noqa: E402

CONTROLLERS = [row["name"] for row in json.loads(_core.registry())["controllers"]]
SCENARIO = """
title = "Two flows"
duration = "2 s"

[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }

[[flows]]
name = "incumbent"
controller = "cubic"
rtt = "20 ms"

[[flows]]
name = "newcomer"
controller = "copa"
rtt = "20 ms"
"""


def test_the_data_are_those_of_the_page() -> None:
    cells = record_cells.recorded_cells()
    quic = record_cells.recorded_cells(record_cells.QUIC_PAGE, "quic")
    assert record_cells.DATA.read_text("utf-8") == record_cells.data_of([*cells, *quic])
    assert record_cells.PAGE.read_text("utf-8") == record_cells.page_with_causes(cells)


def test_the_page_counts_the_same_cells() -> None:
    page = record_cells.PAGE.read_text("utf-8")
    cells = record_cells.recorded_cells()
    rows = re.findall(r"^\| `([\w-]+)` \| [^|]+ \| (\d+) \| (\d+) \|", page, re.M)
    counted = [
        (
            scenario,
            str(sum(cell.scenario == scenario for cell in cells)),
            str(sum(cell.scenario == scenario and cell.within for cell in cells)),
        )
        for scenario, *_ in rows
    ]
    assert counted == rows
    assert len(rows) == 16


def test_every_controller_has_one_row() -> None:
    compared = {one.controller for one in recorded_cells() if one.transport == "tcp"}
    assert compared.isdisjoint(evidence())
    assert compared | set(evidence()) == set(CONTROLLERS)


@pytest.mark.parametrize("name", sorted(evidence()))
def test_the_page_of_a_controller_supports_its_level(name: str) -> None:
    page = (ROOT / status_of(name).page).read_text("utf-8")
    if evidence()[name] == "unverified":
        assert re.search(r"unverified|not available|not part of|interpret", page, re.IGNORECASE)
    else:
        assert re.search(r"^## (Validation|Measurements|Tests)", page, re.M), "no numbers"


@pytest.mark.parametrize(
    ("controller", "queue", "level", "text"),
    [
        ("bbr", "codel", "linux", r"equals Linux 6\.1 within tolerances \(2 cells\)"),
        (
            "illinois",
            "drop_tail",
            "linux",
            r"equals Linux 6\.1 within tolerances in \d+ of \d+ cells",
        ),
        ("hybla", "drop_tail", "linux", r".* in \d+ of \d+ cells, \d+ unexplained"),
        (
            "bbr",
            "cake",
            "linux_other_queue",
            r"equals Linux 6\.1 within tolerances behind other queues .*, not compared behind cake",
        ),
        ("copa", "drop_tail", "authors_code", "checked against the authors' code"),
        ("ledbat", "drop_tail", "paper", "checked against the paper"),
        ("dual", "drop_tail", "unverified", "unverified"),
        ("my-own", "drop_tail", "unverified", "unverified"),
    ],
)
def test_levels(controller: str, queue: str, level: str, text: str) -> None:
    found = status_of(controller, queue)
    assert found.level == level
    assert re.fullmatch(text, found.text)
    assert (ROOT / found.page).is_file() or controller == "my-own"


def test_a_run_quotes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.toml"
    file.write_text(SCENARIO)
    command = ["run", str(file), "--store", "none"]
    assert run_command(command) == 0
    last = " ".join(capsys.readouterr().out.splitlines()[-3:])
    assert re.search(r"Validation: cubic equals Linux 6\.1 .*; copa checked against the aut", last)
    assert run_command([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["level"] for one in document["validation"]] == ["linux", "authors_code"]
    page = write_report([jostle.run(file)], tmp_path / "two.html", [str(file)]).read_text("utf-8")
    assert "Validation: cubic equals Linux 6.1" in page
    assert "docs/reference/algorithms/copa.md" in page


def test_a_quic_flow_quotes_the_cells_of_quic() -> None:
    found = status_of("cubic", "drop_tail", "quic")
    text = "equals the QUIC endpoint on Linux 6.1 within tolerances (7 cells)"
    assert (found.level, found.text) == ("linux", text)
    assert found.page == "docs/results/fidelity-quic.md"
    assert in_a_line([found]) == f"Validation: cubic over QUIC {text}."
    behind = status_of("cubic", "cake", "quic")
    assert in_a_line([behind]).endswith("behind other queues (8 cells), not compared behind cake.")
    never = in_a_line([status_of("bic", "drop_tail", "quic")])
    assert re.fullmatch(
        r"Validation: bic over TCP equals Linux .*, not compared over QUIC\.", never
    )
    assert status_of("copa", "drop_tail", "quic").level == "authors_code"


def test_a_proxy_without_a_link_has_no_empty_queue(tmp_path: Path) -> None:
    file = tmp_path / "proxy.toml"
    proxy = 'proxy = { link = "bottleneck", controller = "bbr", buffer = "1 MB" }\n'
    file.write_text(
        SCENARIO.replace('"copa"', '"bbr"').replace('rtt = "20 ms"\n', f'rtt = "20 ms"\n{proxy}', 1)
        + 'transport = "quic"\n'
    )
    line = in_a_line(statuses(jostle.run(file, store=None)))
    assert " behind  " not in line
    assert line.count("bbr over QUIC equals the QUIC endpoint on Linux 6.1") == 1
    assert "cubic equals Linux 6.1" in line


def test_other_parameters_are_said(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    beta = 'controller = { name = "cubic", beta = 800 }'
    file.write_text(SCENARIO.replace('controller = "cubic"', beta))
    first, second = statuses(jostle.run(file, store=False))
    assert first.text.endswith(", with other parameters")
    assert not second.text.endswith(", with other parameters")


def test_the_slowest_link_names_the_queue() -> None:
    slow = {"capacity": {"kind": "constant", "rate_bps": 10}, "queue": {"kind": "codel"}}
    fast = {"capacity": {"kind": "constant", "rate_bps": 20}, "queue": {"kind": "drop_tail"}}
    varying = {"capacity": {"kind": "trace"}, "queue": {"kind": "pie"}}
    spec = {"links": [fast, slow, varying]}
    for path, queue in (([0, 1], "codel"), ([0, 1, 2], "pie"), ([0], "drop_tail"), ([], "")):
        assert validation_status._slowest_queue(spec, {"path": path}) == queue  # type: ignore[arg-type,typeddict-item]


def test_equal_words_are_written_once() -> None:
    found = [status_of("copa", "codel"), status_of("proteus", "codel"), status_of("dual", "codel")]
    assert in_a_line(found) == (
        "Validation: copa, proteus checked against the authors' code; dual unverified."
    )
    both = [status_of("reno", "codel"), status_of("reno", "pie")]
    assert in_a_line(both).startswith("Validation: reno behind codel, reno behind pie equals Linux")
    others = [status_of("cubic", "cake"), status_of("cubic", "sfq"), status_of("bbr", "cake")]
    line = in_a_line(others)
    assert line.count("cubic equals") == 1
    assert "not compared behind cake, sfq;" in line
    assert line.endswith("not compared behind cake.")
    assert in_a_line([]) == ""
    assert ValidationStatus("a", "b", "paper", "c", "d").to_dict()["unexplained"] == []


def test_info_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["info", "explain", "hybla"], Environment())
    out = capsys.readouterr().out
    assert re.search(r"validation: +equals Linux 6\.1 .*\(docs/results/fidelity\.md\)", out)
    assert "why solo-600ms: controller hybla" in out
