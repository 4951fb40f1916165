"""First scenarios: each is a whole one, and what is filled in is checked before it is written."""

from __future__ import annotations

from pathlib import Path

import jostle
import pytest
from jostle.cli import status
from jostle.scenario import templates

NAMES = templates.names()


def test_the_help_names_all() -> None:
    from jostle.cli.new import new

    assert all(name in (new.help or "") for name in NAMES)
    assert len(NAMES) == 6


@pytest.mark.parametrize("name", NAMES)
def test_a_first_scenario_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert status(["new", name]) == 0
    assert f"next: jostle run {name}.toml" in capsys.readouterr().out
    text = Path(f"{name}.toml").read_text("utf-8")
    assert text.startswith("# ")
    assert "@" not in text
    assert max(map(len, text.splitlines())) <= 120
    scenario = jostle.load(f"{name}.toml")
    assert len(scenario.conditions) > 1
    results = jostle.run(scenario, repeats=1, store=False)
    assert results.failures == ()
    assert results.notes == ()
    assert results.flows["throughput_bps"].sum() > 0


@pytest.mark.parametrize("name", NAMES)
def test_controllers_are_compared(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["new", name, "--controller", "reno", "--controller", "dctcp", "-o", "-"]) == 0
    scenario = jostle.Scenario.from_toml(capsys.readouterr().out)
    (labels,) = [v for key, v in scenario.grid.items() if key.endswith(".controller")]
    assert labels == ("reno", "dctcp")


def test_rates_and_times_are_filled_in(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--rate", "30 Mbit/s", "--rtt", "80 ms", "--controller", "bbr"]
    assert status(["new", "home-router", *given, "-o", "-"]) == 0
    spec = jostle.Scenario.from_toml(capsys.readouterr().out).plan().runs[0].spec
    capacity = spec["links"][0]["capacity"]
    assert capacity["kind"] == "constant"
    assert capacity["rate_bps"] == 30_000_000
    assert spec["flows"][0]["controller"]["name"] == "bbr"


@pytest.mark.parametrize("name", ["starlink", "cellular"])
def test_a_rate_scales_all_later_rates(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    rates = []
    for given in ([], ["--rate", "10 Mbit/s"]):
        assert status(["new", name, *given, "-o", "-"]) == 0
        spec = jostle.Scenario.from_toml(capsys.readouterr().out).plan().runs[0].spec
        rates.append([step["rate_bps"] for step in spec["links"][0]["capacity"]["steps"]])
    usual, scaled = rates
    assert scaled[0] == 10_000_000
    assert [rate / usual[0] for rate in usual] == [rate / scaled[0] for rate in scaled]
    assert len(set(usual) - {0}) >= 4


def test_starlink_has_the_interruptions_that_it_mentions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert status(["new", "starlink", "-o", "-"]) == 0
    spec = jostle.Scenario.from_toml(capsys.readouterr().out).plan().runs[0].spec
    steps = spec["links"][0]["capacity"]["steps"]
    assert [step["at_ns"] // 10**9 for step in steps if step["rate_bps"] == 0] == [15, 30, 45]


def test_a_home_has_its_line_and_applications(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--rate", "100 Mbit/s", "--up", "20 Mbit/s", "--modem-queue", "pie"]
    assert status(["new", "home-router", *given, "--application", "call", "-o", "-"]) == 0
    scenario = jostle.Scenario.from_toml(capsys.readouterr().out)
    specs = [run.spec for run in scenario.plan(repeats=1).runs]
    assert [flow["name"] for flow in specs[0]["flows"]] == ["call-up", "call-down"]
    assert [link["queue"]["kind"] for link in specs[0]["links"]] == ["pie", "pie"]
    # CAKE shapes to 95 % of the rate up.
    assert specs[2]["links"][1]["queue"]["parameters"]["rate"] == 19_000_000


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["home-router", "--application", "gaem"], "no application `gaem`: there is upload"),
        (["home-router", "--up", "fast"], '--up fast: "fast" is not a rate'),
        (["l4s", "--application", "call"], "--application: a l4s scenario has none"),
        (["satelite"], "did you mean `satellite`"),
        (["satellite", "--rate", "1 Mbit/s"], "has none to set"),
        (["l4s", "--rate", "fast"], "fast"),
        (["starlink", "--rate", "fast"], '--rate fast: "fast" is not a rate'),
        (["l4s", "--rtt", 'a"b'], "without quotes"),
        (["l4s", "--controller", "renno"], 'did you mean "reno"'),
        (["l4s", "-o", "there.toml"], "there.toml is there: --force"),
        (["l4s", "-o", "none/x.toml"], "cannot write none/x.toml"),
        ([], "name one of cellular,"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(
    words: list[str],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.toml").write_text("mine")
    assert status(["new", *words]) == 2
    assert why in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["there.toml"]
    assert Path("there.toml").read_text() == "mine"
    assert status(["new", "l4s", "-o", "there.toml", "--force"]) == 0
    assert Path("there.toml").read_text().startswith("# Low latency")
