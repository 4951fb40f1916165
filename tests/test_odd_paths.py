"""Names of files and folders that a library could take for a pattern, an address or a format."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from jostle.cli import status
from jostle.store.store import Reader, Store
from selection import one_in

# Each would match the neighbours below, or is expanded, unescaped or cut by something.
NAMES = [
    "results[2]",
    "r*",
    "result?1",
    "%20b %s %(x)s",
    'it\'s "q"; --',
    "für ✓",
    "{a,b} $HOME",
    "$\\frac{1",
    "-dash",
    "~",
    "file:x",
    "a=1#b&c",
]
NEIGHBOURS = ("results1", "results2")
SCENARIO = """
title = "one"
duration = "2 s"
sampling_interval = "200 ms"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "20 packets" }
[[flows]]
name = "a"
controller = "cubic"
rtt = "10 ms"
"""

Jostle = Callable[..., str]


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores: one has the run that tests store, in a segment of the same name; one has another."""
    folder = tmp_path_factory.mktemp("neighbours")
    (folder / "plain.toml").write_text(SCENARIO)
    for seed, name in enumerate(NEIGHBOURS, 1):
        words = ["run", str(folder / "plain.toml"), "--seed", str(seed), "--store"]
        assert status([*words, str(folder / name)]) == 0
    return folder


@pytest.fixture
def jostle(
    tmp_path: Path, neighbours: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> Jostle:
    """Run commands in a folder with neighbours; return what they print."""
    shutil.copytree(neighbours, tmp_path / "here")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")

    def run(*words: str) -> str:
        capfd.readouterr()
        assert status(words) == 0, capfd.readouterr().err
        return str(capfd.readouterr().out)

    return run


def in_home(tmp_path: Path) -> list[str]:
    """Names of files in the home folder, but for caches of libraries."""
    return [path.name for path in (tmp_path / "home").iterdir() if path.name[0] != "."]


def toml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.parametrize("name", NAMES)
def test_a_store_is_that_folder_and_no_other(name: str, jostle: Jostle, tmp_path: Path) -> None:
    store = ["--store", name]
    jostle("run", "plain.toml", *store)
    assert jostle("store", "check", *store).startswith("1 runs in 1 segments, 0 in folders")
    assert jostle("store", "sql", "SELECT count(*) AS n FROM runs", "--csv", *store) == "n\n1\n"
    assert len(Reader(Path(name)).names()) == 1
    (run,) = Reader(Path(name)).names()
    found = Store(name).get(run)
    assert found is not None
    flows = found.flows
    assert flows.height == 10
    for ending, read in ((".csv", pl.read_csv), (".parquet", pl.read_parquet)):
        jostle("store", "export", "--table", "flows", *store, "--", f"{name}/out{ending}")
        with Path(f"{name}/out{ending}").open("rb") as file:
            assert read(file).height == flows.height
    jostle("run", "plain.toml", "--seed", "3", *store)
    assert jostle("store", "compact", *store).startswith("2 segments became 1, 0 runs")
    assert not (Path(name) / ".damaged").exists()
    for neighbour in NEIGHBOURS:
        assert len(Reader(Path(neighbour)).names()) == 1
    assert in_home(tmp_path) == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_where_it_should_be(name: str, jostle: Jostle, tmp_path: Path) -> None:
    Path(f"{name}.toml").write_text(SCENARIO)
    jostle(
        *("run", "--store", name, "-o", f"{name}.csv", "-o", f"{name}.parquet"),
        *("-o", f"{name}.html", "--", f"{name}.toml"),
    )
    jostle("new", "satellite", "-o", f"{name} new.toml")
    before = {"plain.toml", *NEIGHBOURS, name, f"{name}.toml"}
    written = {f"{name}{ending}" for ending in (".csv", ".parquet", ".html")}
    found = {path.name for path in Path().iterdir()}
    assert found - {".jostle"} == before | written | {f"{name} new.toml"}
    assert in_home(tmp_path) == []


@pytest.mark.parametrize("name", one_in(3, NAMES))
def test_figures_are_where_they_should_be(name: str, jostle: Jostle) -> None:
    jostle("run", "plain.toml", "--store", "none", "-o", f"{name} figures/")
    found = {path.name for path in Path().iterdir()}
    assert found - {".jostle"} == {"plain.toml", *NEIGHBOURS, f"{name} figures"}
    assert [path.suffix for path in Path(f"{name} figures").iterdir()] == [".png"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_is_that_file(name: str, jostle: Jostle, tmp_path: Path) -> None:
    jostle("link", "generate", "--rates", "1 Mbit/s,9 Mbit/s", "--duration", "3 s", "-o", name)
    jostle("link", "show", "-o", f"{name}.svg", "--", name)
    text = SCENARIO.replace('rate = "10 Mbit/s"', f"trace = {toml(name)}")
    Path("traced.toml").write_text("capture = true\n" + text)
    jostle("run", "traced.toml", "--store", "kept")
    captures = sorted(Path("kept").glob("*/captures/*.pcapng"))
    copies = [shutil.copy(path, f"{name} {path.name}") for path in captures]
    assert len(copies) == 2
    jostle("analyze", "-o", f"{name}.csv", "--store", f"{name} analyzed", "--", *copies)
    assert Path(f"{name}.csv").read_text().count("\n") > 1
    assert len(Reader(Path(f"{name} analyzed")).names()) == 1


STUDY = """
title = "A study"
paper = "Nobody: Nothing, never"
experiments = { alone = { scenario = "it.toml", keys = { controller = "flows.a.controller" } } }
defaults = { experiment = "alone", flow = "a" }
numbers = [{ id = "rate", text = "Throughput", measure = "throughput", published = 9 }]
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_study_is_that_folder(name: str, jostle: Jostle) -> None:
    Path(name).mkdir()
    Path(name, "study.toml").write_text(STUDY)
    Path(name, "setup.md").write_text("One flow.")
    Path(name, "it.toml").write_text(SCENARIO + '[grid]\n"flows.a.controller" = ["reno"]\n')
    jostle("study", "run", f"./{name}", "--store", f"{name} store", "-o", f"{name}.csv")
    assert "Throughput" in Path(f"{name}.csv").read_text()
    assert len(Reader(Path(f"{name} store")).names()) == 1


def test_a_plot_may_have_the_name_of_a_folder(jostle: Jostle) -> None:
    Path("results[1]").mkdir()
    jostle("plot", "plain.toml", "--store", "none", "-o", "results[1].svg")
    assert Path("results[1].svg").is_file()
