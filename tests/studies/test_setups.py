"""Setups of a paper, judged separately; and the list of a paper's figures."""

from __future__ import annotations

import json
import re

import pytest
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.studies.load import load
from jostle.studies.models import Value
from jostle.studies.run_study import setups_on

SETUPS = """
findings = ["Reno has {throughput.reno}, {throughput.reno@slow} when slow, {rtt@later} later."]
described = "as printed"
[[setups]]
id = "slow"
title = "slower link"
text = "The link has half the rate."
support = [{ quote = "about 5 Mbit/s", source = "section 3" }]
changes = [{ set = { "bottleneck.rate" = "5 Mbit/s" }, experiments = ["flow"] }]
repeats = 2
figures = ["1-series"]
[[setups]]
id = "later"
title = "slower for BBR"
text = "And BBR's link is slower still."
support = [{ quote = "slower", source = "section 4" }]
over = ["slow"]
[[setups.changes]]
set = { "bottleneck.rate" = "2 Mbit/s" }
where = { controller = "bbr" }
experiments = ["flow"]
[[coverage]]
item = "Figure 1"
shows = "Reno over time"
ours = ["1-series", "true"]
[[coverage]]
item = "Figure 2"
shows = "a picture of the testbed"
why = "nothing is measured in it"
[[coverage]]
item = "Table I"
shows = "rates"
ours = ["throughput"]
why = "without the last column"
"""


@pytest.fixture
def study(folder):
    """The small study with two setups and a list of figures."""
    path = folder / "small" / "study.toml"
    head, _, rest = path.read_text().partition("[experiments.flow]")
    first, *tables = SETUPS.partition("[[setups]]")
    path.write_text(f"{head}{first}[experiments.flow]{rest}{''.join(tables)}")
    return load("small", folder)


@pytest.fixture
def jostle(folder, study, monkeypatch, capsys):
    """Run the command beside the folder of studies."""
    monkeypatch.chdir(folder.parent)
    monkeypatch.delenv("JOSTLE_STORE", raising=False)

    def run(*arguments: str, command: str = "run") -> tuple[int, str, str]:
        jobs = ["--jobs", "1"] if command == "run" else []
        words = ["study", command, "./studies/small", *jobs, *arguments]
        code = status(words, Environment(_core))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def rates(study, setup):
    """Rate of the bottleneck by condition of the experiment `flow`."""
    scenario = study.with_setup(setup).scenarios["flow"]
    return [
        planned.spec["links"][0]["capacity"]
        for planned in scenario.plan().first_run_of_each_condition()
    ]


def test_a_reading_changes_what_it_says_and_where(study) -> None:
    described, slow, later = (rates(study, name) for name in ("described", "slow", "later"))
    assert len({str(one) for one in (*described, *slow)}) == 2
    assert later[::2] == slow[::2]
    assert later[1] not in (slow[1], described[1])
    transfers = [study.with_setup(name).scenarios["transfer"] for name in study.setups]
    assert all(one is transfers[0] for one in transfers)


@pytest.mark.slow
def test_experiments_that_a_setup_does_not_change_run_once(jostle) -> None:
    code, out, err = jostle("--json")
    assert code == 0, err
    steps = [line for line in err.splitlines() if line.startswith("[")]
    assert steps == [
        "[1/4] small: flow (sim, 9 runs)",
        "[2/4] small: flow, slow (sim, 6 runs)",
        "[3/4] small: flow, later (sim, 9 runs)",
        "[4/4] small: transfer (sim, 1 runs)",
    ]
    (found,) = json.loads(out)["studies"]
    assert [(one["id"], one["title"]) for one in found["setups"]] == [
        ("described", "as printed"), ("slow", "slower link"), ("later", "slower for BBR"),
    ]  # fmt: skip
    numbers = {one["id"]: one for one in found["numbers"]}
    reno = {name: one["sim"]["ours"] for name, one in numbers["throughput.reno"]["setups"].items()}
    assert reno == {
        "described": pytest.approx(10, rel=0.03),
        "slow": pytest.approx(5, rel=0.03),
        "later": pytest.approx(5, rel=0.03),
    }
    assert numbers["throughput.reno"]["ours"] == reno["described"]
    # Reno fills the link of 10 Mbit/s; by the other setup there is none.
    claims = {one["id"]: one for one in found["claims"]}["true"]["setups"]
    assert [one["sim"]["holds"] for one in claims.values()] == [True, False, False]
    assert [one["claims"]["holds"] for one in found["setups"]] == [1, 0, 1]
    (sentence,) = found["learned"]
    assert sentence.startswith("Reno has 9.9")
    assert " Mbit/s, 4.9" in sentence


def test_the_page_has_a_column_for_each(jostle, folder) -> None:
    code, out, err = jostle()
    assert code == 0, err
    assert out.startswith("Of 2 claims in 3 setups: ")
    page = (folder.parent / "reports" / "small.html").read_text()
    assert page.index("Findings</h2>") < page.index("Setups</h2>") < page.index("Claims</h2>")
    assert "“about 5 Mbit/s” (section 3)" in page
    assert len(re.findall(r'<th scope="col"[^>]*>slower link</th>', page)) == 4
    assert page.count("<img ") == 7
    drawn = {path.name for path in (folder.parent / "reports" / "small").iterdir()}
    assert {"1-series.png", "1-series-slow.png"} <= drawn
    assert "1-series-later.png" not in drawn


@pytest.mark.slow
def test_one_setup_alone(jostle, folder) -> None:
    code, out, err = jostle("--setup", "slow", "--json")
    assert code == 0, err
    (found,) = json.loads(out)["studies"]
    assert [one["id"] for one in found["setups"]] == ["slow"]
    assert found["learned"][0].endswith("when slow, – later.")
    page = (folder.parent / "reports" / "small.html").read_text()
    assert "--backend sim --setup slow" in page
    said = "– stands for numbers of what was not run"
    assert f"{said} here: later." in page
    code, out, _ = jostle("--setup", "slow")
    assert code == 0
    assert f"{said}: later." in out
    assert said not in jostle()[1]
    code, _, err = jostle("--setup", "slwo")
    assert code == 2
    assert "study small: no setup `slwo`; did you mean `slow`?" in err


def test_on_the_kernel_only_what_is_described_unless_asked_for(study) -> None:
    assert setups_on(study, "sim", []) == ["described", "slow", "later"]
    assert setups_on(study, "kernel", []) == ["described"]
    assert setups_on(study, "kernel", ["later"]) == ["later"]


def test_changes_of_single_conditions(folder) -> None:
    path = folder / "small" / "study.toml"
    change = '{ set = { "bottleneck.rate" = "3 Mbit/s" }, where = { controller = "reno" } }'
    path.write_text(path.read_text().replace("kernel_repeats = 1", f"changes = [{change}]"))
    found = load("small", folder)
    first, *others = rates(found, "described")
    assert first not in others
    assert found.conditions(Value(where={"controller": "reno"})) == [0]


def test_coverage(jostle) -> None:
    code, out, err = jostle(command="coverage")
    assert (code, err) == (0, "")
    assert "Nobody: Nothing, never" in out
    assert "1 yes, 1 in part, 1 no" in out
    items = re.split(r"\n *\n", out)
    told = {item.split("  ")[0]: " ".join(item.split()) for item in items}
    assert told["Figure 1"] == "Figure 1 Reno over time ours 1-series, true status yes"
    assert "status no missing nothing is measured in it" in told["Figure 2"]
    assert "status in part missing without the last column" in told["Table I"]
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = jostle("--json", command="coverage")
    document = json.loads(out)
    assert document["schema"] == "jostle.coverage/1"
    (found,) = document["studies"]
    assert [one["status"] for one in found["items"]] == ["yes", "no", "in part"]


@pytest.mark.usefixtures("one_figure")
def test_recorded_results_of_linux_are_columns_of_their_setups(jostle, folder) -> None:
    versions = "virtual-6.1.192-1c+a1, virtual-6.1.176-2d+b2"
    kept = {"version": versions, "date": "2026-11-22", "numbers": {}, "claims": {}}
    setups = {name: kept | {"orders": {}} for name in ("described", "slow", "unknown")}
    document = {"schema": "jostle.recorded/2", "setups": setups}
    (folder / "small" / "linux.json").write_text(json.dumps(document))
    code, out, err = jostle("--repeats", "1", "--json")
    assert code == 0, err
    (found,) = json.loads(out)["studies"]
    on_linux = [(one["id"], one["title"]) for one in found["setups"] if one["backend"] == "kernel"]
    assert on_linux == [
        ("described", "Linux 6.1, 2026-11-22"),
        ("slow", "slower link, Linux 6.1, 2026-11-22"),
    ]
