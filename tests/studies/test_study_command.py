"""`jostle study`: what it prints and writes, and what it says of a study that is wrong."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment


@pytest.fixture
def jostle(folder, monkeypatch, capsys):
    """Run the command beside the folder of studies."""
    monkeypatch.chdir(folder.parent)
    monkeypatch.delenv("JOSTLE_STORE", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = status(arguments, Environment(_core))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_tables_page_and_figures(jostle, folder):
    code, out, err = jostle("study", "run", "./studies/small", "--jobs", "1")
    assert code == 0, err
    assert "Of 2 claims in 1 setup: 1 holds, 1 fails." in out
    assert "[1/2] small: flow (sim, 9 runs)" in err
    page = (folder.parent / "reports" / "small.html").read_text()
    assert "&lt;b&gt;link&lt;/b&gt;" in page
    assert page.count("<img ") == 6
    assert 'src="http' not in page
    assert "It is said to be faster than the link." in page
    figures = {path.name for path in (folder.parent / "reports" / "small").iterdir()}
    assert {"1-series.png", "6-size.pdf"} <= figures


@pytest.mark.usefixtures("one_figure")
def test_the_page_says_how_it_is_had_again(jostle, folder):
    path = folder / "small"
    code, _, err = jostle("study", "run", str(path), "--repeats", "2", "--allow-code")
    assert code == 0, err
    page = (folder.parent / "reports" / "small.html").read_text()
    assert f"<pre>jostle study run {path} --backend sim --repeats 2 --allow-code</pre>" in page
    assert re.search(r"\d+ runs\. The command that wrote this page spent \d+ s on runs that", page)


@pytest.mark.usefixtures("one_figure")
def test_the_json_document(jostle):
    code, out, _ = jostle("study", "run", "./studies/small", "--json", "--repeats", "2")
    assert code == 0
    document = json.loads(out)
    assert document["schema"] == "jostle.study/4"
    (study,) = document["studies"]
    assert study["id"] == "small"
    assert [claim["holds"] for claim in study["claims"]] == [True, False]
    for claim in study["claims"]:
        assert {"id", "text", "published", "ours", "interval", "holds"} <= claim.keys()
    for number in study["numbers"]:
        assert {"id", "unit", "published", "ours", "interval"} <= number.keys()


@pytest.mark.slow
def test_the_second_time_nothing_is_run(jostle):
    jostle("study", "run", "./studies/small")
    first = jostle("study", "run", "./studies/small", "--json")
    assert "9 of 9 runs are in the store" in first[2]


def test_list_studies(jostle):
    code, out, _ = jostle("study", "list")
    assert code == 0
    assert re.search(r"\./studies/small\s+A study", out)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "A study"', 'titel = "A study"', "study.toml:1: titel"),
        ('scenario = "flow.toml"', 'scenario = "flow.tml"', "flow.tml"),
        ('experiment = "flow"', 'experiment = "flw"', "`flow`"),
        ('measure = "rtt"\npublished', 'measure = "rt"\npublished', "did you mean `rtt`"),
        ('where = { controller = "reno" }\nmeasure', 'where = { kind = "reno" }\nmeasure',
         "key `kind`"),
        ('measured_by = "controller"\n', "", "`measured_by` goes with"),
        ("published = { reno = 10, bbr = 1000 }", "published = { reno = 10, bbrr = 1000 }",
         "did you mean `bbr`"),
        ('window = "late"\nmeasured_by', 'window = "lat"\nmeasured_by', "did you mean `late`"),
        ('{ bytes = ["50 %", "100 %"] }', "{ }", "either `time` or `bytes`"),
        ('relation = "about", right = 10, tolerance = 0.05', 'relation = "about", right = 10',
         "`tolerance`, `within` and `times`"),
        ('relation = "about", right', 'finding = "x", relation = "about", right',
         "no key `finding` here: it belongs to claims.0, so write it above [[claims.parts]]"),
        ('kind = "series"\nwhere = { controller = "reno" }', 'kind = "series"\nquote = "x"',
         "quote: no key `quote` here: it belongs to another table"),
        ('kind = "series"\nwhere = { controller = "reno" }', 'kind = "series"',
         "one condition"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(jostle, folder, old, new, words):
    path = folder / "small" / "study.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    code, _, err = jostle("study", "run", "./studies/small")
    assert code == 2
    assert words in err
    assert re.search(r"small/(study|flow)\.t", err)


def test_no_such_study(jostle):
    code, _, err = jostle("study", "run", "./studies/smal")
    assert code == 2
    assert "did you mean `small`" in err
    assert "looked for studies/smal/study.toml" in err


def test_a_copy_of_an_installed_study_is_listed_once(jostle, folder):
    from jostle.studies.library import STUDIES

    shutil.copytree(STUDIES.installed / "geo-solo", folder / "geo-solo")
    assert "./studies/geo-solo" not in jostle("study", "list")[1]
    file = folder / "geo-solo" / "study.toml"
    file.write_text(file.read_text() + "\n")
    assert "./studies/geo-solo" in jostle("study", "list")[1]


def test_an_id_never_means_the_current_folder(jostle, folder):
    shutil.copytree(folder / "small", folder / "geo-solo")
    code, _, err = jostle("study", "run", "small")
    assert code == 2
    assert "for the one in this folder, write ./studies/small" in err
    shutil.copytree(folder / "small", folder.parent / "elsewhere")
    err = jostle("study", "run", "elsewhere")[2]
    assert "for the one in this folder, write ./elsewhere" in err
    code, out, _ = jostle("study", "list")
    assert code == 0
    titles = dict(line.split(maxsplit=1) for line in out.splitlines()[1:])
    assert titles["./studies/geo-solo"] == "A study"
    assert titles["geo-solo"] != "A study"


@pytest.mark.parametrize("name", ["../escaped", "a/b", "..", "/tmp/escaped", "a.b", "", "a b"])
@pytest.mark.parametrize("table", ["figures", "numbers", "claims"])
def test_ids_are_plain_names(jostle, folder, table, name):
    path = folder / "small" / "study.toml"
    at = path.read_text().index(f"[[{table}]]")
    text = path.read_text()
    text = text[:at] + re.sub(r'id = ".*"', f'id = "{name}"', text[at:], count=1)
    path.write_text(text)
    code, _, err = jostle("study", "run", "./studies/small")
    assert code == 2
    assert f'"{name}" is no plain name' in err
    assert not list(folder.parent.rglob("*escaped*"))


@pytest.mark.parametrize("outside", ["../../secret.md", "linked.md", "/etc/passwd"])
def test_files_stay_inside_the_study(jostle, folder, outside):
    (folder.parent / "secret.md").write_text("not to be shown")
    (folder / "small" / "linked.md").symlink_to(folder.parent / "secret.md")
    path = folder / "small" / "study.toml"
    path.write_text(f'setup = "{outside}"\n{path.read_text()}')
    code, _, err = jostle("study", "run", "./studies/small")
    assert code == 2
    assert "study.toml:1: setup" in err
    assert f'"{outside}" lies outside of the study' in err


def test_scenarios_and_what_they_name_stay_inside_the_study(jostle, folder):
    path = folder / "small" / "study.toml"
    (folder.parent / "flow.toml").write_bytes((folder / "small" / "flow.toml").read_bytes())
    text = path.read_text()
    path.write_text(text.replace('"flow.toml"', '"../../flow.toml"'))
    code, _, err = jostle("study", "run", "./studies/small")
    assert code == 2
    assert '"../../flow.toml" lies outside of the study' in err
    path.write_text(text)
    flow = folder / "small" / "flow.toml"
    rate = re.sub(r'rate *= *".*"', 'rate = { trace = "../../secret" }', flow.read_text(), count=1)
    flow.write_text(rate)
    (folder.parent / "secret").write_text("the secret")
    code, _, err = jostle("study", "run", "./studies/small")
    assert code == 2
    assert '"../../secret" lies outside of the study' in err
    assert "the secret" not in err


@pytest.mark.usefixtures("one_figure")
def test_numbers_and_claims_are_written_to_files(jostle):
    code, out, _ = jostle("study", "run", "./studies/small", "--csv", "-o", "s.parquet")
    assert code == 0
    frame = pl.read_parquet("s.parquet")
    assert out.splitlines()[0] == ",".join(frame.columns)
    assert frame["id"].to_list() == ["throughput.reno", "throughput.bbr", "rtt", "true", "false"]
    assert frame["holds"].to_list()[-2:] == ["yes", "no"]
    assert frame["published"][0] == 10
    assert frame["asks"][-1] == "≥ 2 ×"


def test_a_long_text_is_no_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    scenario = folder / "small" / "flow.toml"
    text = scenario.read_text("utf-8").replace("One flow", "x" * 300)
    scenario.write_text(text, "utf-8")
    assert status(["study", "coverage", "studies/small"], Environment(_core)) == 0
