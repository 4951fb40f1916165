"""What is kept of Linux's answers beside a study."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment

SCRIPT = Path(__file__).parents[2] / "tools" / "results" / "record_linux.py"


def script():
    """Return the script that writes recordings."""
    spec = importlib.util.spec_from_file_location("record_linux", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def recording(document):
    """Make a recording of a document as the script in docs does."""
    # As if Linux had given these results.
    (study,) = json.loads(json.dumps(document).replace('"sim"', '"kernel"'))["studies"]
    study |= {"versions": {"kernel": "virtual-6.1"}}
    return script().recording(study, "2026-11-22", {})


@pytest.fixture
def jostle(folder, monkeypatch, capsys):
    """Run the study beside its folder."""
    monkeypatch.chdir(folder.parent)
    monkeypatch.delenv("JOSTLE_STORE", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = status(
            ["study", "run", "./studies/small", "--jobs", "1", *arguments], Environment(_core)
        )
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.slow
def test_a_column_has_what_is_kept(jostle, folder):
    code, out, _ = jostle("--json")
    assert code == 0
    document = json.loads(out)
    assert set(document["studies"][0]["versions"]) == {"sim"}
    kept = folder / "small" / "linux.json"
    kept.write_text(json.dumps(recording(document)))
    path = folder / "small" / "study.toml"
    text = path.read_text()
    path.write_text(text.replace("faster than the link.", "faster, {throughput.reno@linux} here."))

    found = json.loads(jostle("--json")[1])["studies"][0]
    assert [(one["backend"], one["title"]) for one in found["setups"]] == [
        ("sim", "simulator"),
        ("kernel", "Linux, 2026-11-22"),
    ]
    for table in ("claims", "numbers"):
        for row in found[table]:
            ours, linux = row["backends"]["sim"], row["backends"]["kernel"]
            assert linux["holds"] == ours["holds"]
            assert linux["ours"] == pytest.approx(ours["ours"], rel=1e-5)
    page = (folder.parent / "reports" / "small.html").read_text().replace("\xa0", " ")
    assert "virtual-6.1, 2026-11-22, kept in linux.json" in page
    reno = next(row for row in found["numbers"] if row["id"] == "throughput.reno")
    assert f"faster, {reno['ours']:.2f} ± " in page


@pytest.mark.slow
def test_recorded_values_are_judged_by_the_present_range_and_dropped_if_others_are_compared(
    jostle, folder
):
    kept = recording(json.loads(jostle("--json")[1]))
    (folder / "small" / "linux.json").write_text(json.dumps(kept))
    path = folder / "small" / "study.toml"
    text = path.read_text()
    path.write_text(
        text.replace('"rtt"\n', '"round"\n', 1).replace("factor = 2 }", "factor = 0.5 }")
    )
    found = json.loads(jostle("--json")[1])["studies"][0]
    claims = {row["id"]: row["backends"]["kernel"] for row in found["claims"]}
    assert claims["true"]["verdict"] == "holds"
    assert claims["false"]["verdict"] == "holds", "the factor is a bound, not a value"
    numbers = {row["id"]: row["backends"]["kernel"] for row in found["numbers"]}
    assert numbers["round"]["ours"] is None
    path.write_text(text.replace('measure = "throughput"', 'measure = "goodput"'))
    found = json.loads(jostle("--json")[1])["studies"][0]
    claims = {row["id"]: row["backends"]["kernel"] for row in found["claims"]}
    assert claims["false"]["verdict"] is None


@pytest.mark.parametrize("text", ["", "{}", '{"schema": "jostle.study/2"}', '{"schema": NaN}'])
def test_a_file_that_is_no_recording_is_told(jostle, folder, text):
    (folder / "small" / "linux.json").write_text(text)
    code, _, err = jostle("--json")
    assert code == 2
    assert "linux.json: no recording of a study" in err


@pytest.mark.usefixtures("one_figure")
def test_a_link_is_not_followed(jostle, folder):
    (folder / "small" / "linux.json").symlink_to("/etc/passwd")
    code, out, _ = jostle("--json")
    assert code == 0
    assert "kernel" not in out


def test_what_was_kept_before_stays():
    number = {"ours": 1.0, "interval": None, "holds": None}
    old = {
        "version": "a",
        "date": "2026-11-21",
        "numbers": {"x": number, "y": number},
        "claims": {},
        "orders": {},
    }
    new = old | {
        "version": "b",
        "date": "2026-11-22",
        "numbers": {"y": number | {"ours": 2.0}},
    }
    merged = script().beside(new, old)
    assert (merged["version"], merged["date"]) == ("a, b", "2026-11-22")
    assert {name: one["ours"] for name, one in merged["numbers"].items()} == {"x": 1.0, "y": 2.0}
    # Again, with another build: each version once.
    assert script().beside(new, merged)["version"] == "a, b"
    # A recording that has all values replaces the other.
    assert script().beside(new, new) == new


def test_numbers_are_kept_of_studies_without_claims(tmp_path, monkeypatch):
    linux = {"ours": 4.608119, "interval": None, "n": 1, "holds": None}
    number = linux | {"id": "goodput.cubic", "setups": {"described": {"kernel": linux}}}
    empty = {
        "setups": [{"id": "described"}],
        "claims": [],
        "rankings": [],
        "points": [],
        "versions": {"kernel": "virtual-6.1"},
    }
    studies = [
        empty | {"id": "measured", "numbers": [number]},
        empty | {"id": "simulated", "numbers": [number | {"ours": None}]},
    ]
    for study in studies:
        (tmp_path / study["id"]).mkdir()
    (tmp_path / "kernel.json").write_text(json.dumps({"studies": studies}))
    module = script()
    monkeypatch.setattr(module, "STUDIES", tmp_path)
    monkeypatch.setattr("sys.argv", ["record", str(tmp_path / "kernel.json"), "2026-11-23"])
    module.main()
    assert {path.parent.name for path in tmp_path.rglob("linux.json")} == {"measured"}
    kept = json.loads((tmp_path / "measured" / "linux.json").read_text())
    numbers = kept["setups"]["described"]["numbers"]
    assert numbers["goodput.cubic"] == linux | {"ours": 4.60812}
