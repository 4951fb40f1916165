"""Paragraphs of result, numbers that nobody has published, and runs relative to others."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.studies.load import load
from jostle.studies.models import Value
from jostle.studies.runs import Runs

if TYPE_CHECKING:
    from jostle.results import ResultSet

STUDY = """
title = "Measured only"
paper = "Nobody has measured this"
[experiments.flow]
scenario = "flow.toml"
keys = { controller = "flows.download.controller" }
[[numbers]]
id = "throughput"
text = "Throughput of {controller}"
flow = "download"
measure = "throughput"
window = "late"
measured_by = "controller"
[[numbers]]
id = "of-reno"
text = "Throughput of {controller}, of Reno's"
flow = "download"
measure = "throughput"
window = "late"
measured_by = "controller"
relative_to = { controller = "reno" }
[[figures]]
id = "bars"
caption = "Bars <b>"
kind = "bars"
finding = "`reno` gets {throughput.reno}, which is {of-reno.reno} of itself."
[[figures.curves]]
label = "Reno"
where = { controller = "reno" }
flow = "download"
measure = "throughput"
"""


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Carry out the study above."""
    (folder / "small" / "study.toml").write_text(STUDY)
    monkeypatch.chdir(folder.parent)
    monkeypatch.delenv("JOSTLE_STORE", raising=False)

    def run(*arguments: str) -> str:
        code = status(
            ["study", "run", "studies/small", "--jobs", "1", *arguments], Environment(_core)
        )
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    return run


def test_numbers_stand_in_paragraphs(run, folder):
    document = json.loads(run("--json"))
    (study,) = document["studies"]
    numbers = {number["id"]: number for number in study["numbers"]}
    assert list(numbers) == [
        *(f"throughput.{name}" for name in ("reno", "bbr", "vivace")),
        *(f"of-reno.{name}" for name in ("reno", "bbr", "vivace")),
    ]
    assert {number["published"] for number in numbers.values()} == {None}
    assert {number["holds"] for number in numbers.values()} == {None}
    assert numbers["of-reno.reno"] | {"ours": 1.0, "unit": "×"} == numbers["of-reno.reno"]
    assert numbers["of-reno.bbr"]["ours"] == pytest.approx(1, abs=0.1)
    (finding,) = study["findings"]
    assert finding["figure"] == "bars"
    assert finding["text"].startswith("`reno` gets 9.98 ± ")
    assert "{" not in finding["text"]


def test_they_are_printed_and_on_the_page(run, folder):
    out = run()
    assert "published" not in out
    assert "claims hold" not in out
    assert "reno gets 9.98 ± " in " ".join(out.split())
    page = (folder.parent / "reports" / "small.html").read_text()
    assert "<code>reno</code> gets 9.98\u00a0±\u00a0" in page
    assert "claims hold" not in page
    assert "A number holds" not in page
    assert "Bars &lt;b&gt;" in page


def test_what_is_drawn_comes_first_where_nothing_is_judged(run, folder):
    run()
    page = (folder.parent / "reports" / "small.html").read_text()
    order = [page.index(f'id="{part}"') for part in ("figures", "numbers", "setup", "provenance")]
    assert order == sorted(order)
    links = [page.index(f'href="#{part}"') for part in ("figures", "numbers", "setup")]
    assert links == sorted(links)


def test_the_setup_may_define_terms(run, folder):
    (folder / "small" / "setup.md").write_text("# Setup\n\nThe link\n: has 10 Mbit/s.\n")
    run()
    page = (folder.parent / "reports" / "small.html").read_text()
    assert "<dt>The link</dt>" in page
    assert "has 10 Mbit/s." in page


class Finished:
    """Results of runs that took as many seconds as they are said to, by controller and seed."""

    def __init__(self, seconds: dict[str, dict[int, float]]) -> None:
        key = "flows.download.controller"
        self.conditions = [{key: name} for name in seconds]
        self._seconds = list(seconds.values())

    def runs_of(self, condition: int) -> list[SimpleNamespace]:
        phases = [{"name": "overall", "from_ns": 0, "to_ns": 10**10}]
        return [
            SimpleNamespace(
                run=SimpleNamespace(
                    spec={"seed": seed, "phases": phases},
                    summary={"flows": [{"name": "download", "completion_time_s": seconds}]},
                )
            )
            for seed, seconds in self._seconds[condition].items()
        ]


def test_a_run_is_divided_by_that_of_its_seed(folder):
    """Reno's third run failed, and BBR's second: only their first ones belong together."""
    (folder / "small" / "study.toml").write_text(STUDY)
    finished = Finished({"reno": {1: 2.0, 2: 4.0}, "bbr": {1: 3.0, 3: 5.0}, "vivace": {2: 1.0}})
    runs = Runs(load("small", folder), {"flow": cast("ResultSet", finished)})

    def relative(**where: str) -> list[float | None]:
        value = Value(
            where=where,
            flow="download",
            measure="completion_time",
            relative_to={"controller": "reno"},
        )
        return runs.per_run(value)

    assert relative(controller="bbr") == [1.5, None]
    assert relative() == [1.0, 1.0, 1.5, None, 0.25]
