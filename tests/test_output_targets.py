"""The option `-o`: endings, folders, and what happens before anything runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.cli.output_targets import Outputs
from jostle.safe_io.untrusted_files import open_regular
from test_cli import GRID, SCENARIO

Jostle = Callable[..., tuple[int, str, str]]


@pytest.fixture
def jostle(engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> Jostle:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JOSTLE_STORE", raising=False)
    Path("plain.toml").write_text(SCENARIO)
    Path("grid.toml").write_text(SCENARIO + GRID)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = status(arguments, Environment(engine))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_one_command_writes_several_contents(jostle: Jostle) -> None:
    code, out, err = jostle(
        "run", "plain.toml", "-o", "a/b.csv", "-o", "b.parquet", "-o", "b.json", "-o", "figures/",
        "-o", "drawn/*.svg",
    )  # fmt: skip
    assert code == 0
    assert pl.read_csv("a/b.csv").height == pl.read_parquet("b.parquet").height
    assert json.loads(Path("b.json").read_text())["schema"] == "jostle.summary/3"
    assert {path.suffix for path in Path("figures").iterdir()} == {".png"}
    assert {path.suffix for path in Path("drawn").iterdir()} == {".svg"}
    assert "newcomer" in out.splitlines()[0]
    assert err.splitlines() == ["csv: a/b.csv", "parquet: b.parquet", "json: b.json"]


def test_stdout_has_one_content(jostle: Jostle) -> None:
    _, csv, _ = jostle("run", "plain.toml", "--csv")
    assert csv.startswith("phase,flow,")
    _, document, err = jostle("run", "plain.toml", "--json", "-o", "a.csv")
    assert json.loads(document)["schema"] == "jostle.summary/3"
    assert Path("a.csv").read_text() == csv
    assert err.splitlines()[-1] == "csv: a.csv"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "plain.toml", "-o", "a.txt"), "-o a.txt: no content has the ending .txt"),
        (("run", "plain.toml", "-o", "figures"), "-o figures: no ending — end it with .csv"),
        (("run", "plain.toml", "-o", "a.png"), "-o a.png: no content has the ending .png"),
        (("plot", "plain.toml", "-o", "a.gif"), "-o a.gif: no content has the ending .gif"),
        (("compare", "grid.toml", "--vary", "controller=cubic,bbr", "-o", "a.png"),
         "only --method envelope draws a figure"),
        (("run", "plain.toml", "-o", "plain.toml/a.csv"), "cannot make the folder plain.toml"),
        (("run", "plain.toml", "-o", "a.csv", "-o", "there.csv"), "cannot write there.csv"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_before_anything_runs(
    jostle: Jostle, engine, words: tuple[str, ...], message: str
) -> None:
    Path("there.csv").mkdir()
    code, out, err = jostle(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert engine.calls == 0
    assert not Path("a.csv").exists()


def test_a_dry_run_runs_and_writes_nothing(jostle: Jostle, engine) -> None:
    code, out, err = jostle("run", "grid.toml", "--dry-run", "-o", "out/a.csv")
    assert (code, err) == (0, "")
    assert out == (
        "grid.toml is valid: 2 conditions, 6 runs on the sim backend, 60 s of simulated time\n"
    )
    assert engine.calls == 0
    assert not Path("out").exists()
    assert not Path(".jostle").exists()
    assert jostle("run", "grid.toml", "--dry-run", "--phase", "none")[0] == 2


def _write_inputs() -> None:
    trace = '{ file = "in/rate.csv", column = "rate_bps" }'
    Path("in").mkdir()
    Path("in/rate.csv").write_text("time_s,rate_bps\n0,1e6\n5,2e6\n10,2e6\n")
    Path("recorded.toml").write_text(SCENARIO.replace('"50 Mbit/s"', trace))
    log = Path(__file__).parent / "logs" / "iperf3-omit.json"
    Path("log.json").write_bytes(log.read_bytes())
    # The names of files that `advise` writes.
    for name in ("in/1.toml", "in/now.toml"):
        Path(name).write_text(SCENARIO)


@pytest.mark.parametrize(
    ("words", "replaced"),
    [
        (("run", "recorded.toml", "-o", "in/rate.csv"), "in/rate.csv"),
        (("run", "recorded.toml", "-o", "a.html", "-o", "./in/../in/rate.csv"), "in/rate.csv"),
        (("advise", "in/1.toml", "--goal", "calls", "-o", "in/"), "in/1.toml"),
        (("advise", "in/now.toml", "--goal", "calls", "-o", "in/"), "in/now.toml"),
        (("fit", "plain.toml", "--data", "log.json", "--vary", "bottleneck.rate",
          "-o", "plain.toml"),
         "plain.toml"),
        (("analyze", "log.json", "-o", "log.json"), "log.json"),
        (("link", "convert", "in/rate.csv", "-o", "in/rate.csv"), "in/rate.csv"),
    ],
)  # fmt: skip
def test_an_input_is_not_replaced(
    jostle: Jostle, engine, words: tuple[str, ...], replaced: str
) -> None:
    _write_inputs()
    before = Path(replaced).read_bytes()
    code, out, err = jostle(*words)
    assert (code, out) == (2, "")
    assert "-o would replace" in err
    assert "which this command reads — write to another file" in err
    assert engine.calls == 0
    assert Path(replaced).read_bytes() == before


def test_a_finished_command_reserves_no_file(jostle: Jostle) -> None:
    assert jostle("run", "plain.toml", "-o", "a.json", "-o", "a.json")[0] == 0
    assert jostle("run", "plain.toml", "-o", "a.json")[0] == 0
    with open_regular("a.json") as file:
        assert file.read(1) == b"{"


def test_no_store_keeps_nothing(jostle: Jostle, engine) -> None:
    jostle("run", "plain.toml", "--store", "none")
    jostle("run", "plain.toml", "--store", "none")
    assert engine.calls == 6
    assert not Path(".jostle").exists()
    assert not Path("none").exists()
    code, _, err = jostle("store", "check", "--store", "none")
    assert code == 2
    assert "--store none: this command needs a store" in err


def test_folders_have_formats() -> None:
    outputs = Outputs(("a/", "a/*.pdf", "b/*.svg", "x.csv"))
    assert outputs.folders() == {Path("a"): ("png", "pdf"), Path("b"): ("svg",)}
    assert outputs.with_ending(".csv") == ["x.csv"]


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("kernle", "no backend `kernle`; did you mean `kernel`?"),
        ("kernel:fast", "has no `fast`: there is virtual, realtime, native, jostle, or a version"),
        ("kernel:6.1:6.12", "has no `6.12`"),
        ("sim:6.1", "the backend `sim` has no `6.1`: there is none"),
    ],
)
def test_a_backend_is_checked(jostle: Jostle, engine, backend: str, message: str) -> None:
    code, _, err = jostle("run", "plain.toml", "--backend", backend)
    assert code == 2
    assert message in " ".join(err.split())
    assert engine.calls == 0
