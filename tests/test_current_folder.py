"""Commands in a folder of somebody else: nothing in it runs or is obeyed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import hostile_folder
import numpy as np
import pytest
from jostle.figures import Curve, CurvesData
from jostle.figures.renderer import render_bytes
from jostle.kernel_images import toolchain

# With -P, which children inherit, there would be less to see.
JOSTLE = [sys.executable, str(Path(sysconfig.get_path("scripts"), "jostle"))]
FLOW = """
duration = "1 s"
[bottleneck]
rate = "5 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "download"
controller = "reno"
rtt = "20 ms"
"""
GRID = '[grid]\n"bottleneck.rate" = ["5 Mbit/s", "6 Mbit/s"]\n'
SAMPLE = '[sample]\npoints = 8\n"bottleneck.rate" = { from = "1 Mbit/s", to = "9 Mbit/s" }\n'
SAMPLE += '"flows.download.rtt" = { from = "10 ms", to = "20 ms" }\n'
TUNED = ["--vary", "flows.download.rtt=['10 ms', '20 ms']", "--maximize", "goodput of download"]
POINTS = np.arange(3.0)
DATA = CurvesData("a", "b", (Curve("one", POINTS, POINTS, POINTS, POINTS),))
# Obeys what the real ones obey.
CARGO = """#!/bin/sh
here="$PWD"
pwd >"$0.was_in"
while [ -n "$here" ]; do
    [ -e "$here/.cargo/config.toml" ] && touch "$here/ran"
    [ -e "$here/go.work" ] && [ "$GOWORK" != off ] && touch "$here/ran"
    here="${here%/*}"
done
exit 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a hostile folder with scenarios in it."""
    folder = tmp_path / "theirs"
    hostile_folder.fill(folder)
    write_scenarios(folder)
    return folder


def write_scenarios(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, more in (("flow", ""), ("grid", GRID), ("sample", SAMPLE)):
        (folder / f"{name}.toml").write_text(FLOW + more, "utf-8")


def call(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_STATE_HOME": str(folder.parent / "state"), **variables}
    environment.pop("JOSTLE_STORE", None)
    return subprocess.run(
        [*JOSTLE, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    "words",
    [
        ["run", "grid.toml", "--executor", "processes", "--jobs", "1"],
        ["run", "grid.toml", "--executor", "dask", "--jobs", "1"],
        ["compare", "grid.toml", "--vary", "bottleneck.rate=5 Mbit/s,6 Mbit/s"],
        ["search", "tune", "grid.toml", *TUNED, "--trials", "1"],
        [
            "search",
            "sensitivity",
            "sample.toml",
            "--measure",
            "goodput of download",
            "--points",
            "2",
        ],
        ["new", "home-router", "-o", "-"],
    ],
    ids=lambda words: " ".join(words[:4]),
)
def test_a_command_obeys_nothing_in_its_folder(folder: Path, words: list[str]) -> None:
    done = call(folder, *words)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "ran").exists()


def test_figures_and_reports_are_those_of_any_folder(folder: Path, tmp_path: Path) -> None:
    write_scenarios(tmp_path / "mine")
    (tmp_path / "settings").write_text("figure.facecolor: red\naxes.grid: False\n", "utf-8")
    words = ["run", "flow.toml", "-o", "figures/", "-o", "report.html"]
    for place, settings in ((folder, tmp_path / "settings"), (tmp_path / "mine", tmp_path)):
        done = call(place, *words, MATPLOTLIBRC=str(settings))
        assert done.returncode == 0, done.stderr
        # No warning about settings either.
        assert done.stderr == ""
    theirs, mine = folder, tmp_path / "mine"
    figures = [file.relative_to(mine) for file in (mine / "figures").iterdir()]
    for file in [*figures, Path("report.html")]:
        assert (theirs / file).read_bytes() == (mine / file).read_bytes()
    assert figures
    assert not (folder / "ran").exists()


def test_settings_that_never_end_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "matplotlibrc")
    (tmp_path / "mine").write_text("font.size: 30\n", "utf-8")
    program = (
        "from jostle.safe_io.matplotlib_settings import use_packaged_settings; "
        "use_packaged_settings(); "
        "import matplotlib; print(matplotlib.rcParams['font.size']); "
        "matplotlib.rc_file('mine'); print(matplotlib.rcParams['font.size'])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    # Once it is imported, it opens files as ever.
    assert done.stdout.split() == ["10.0", "30.0"]


def test_figures_of_a_library_do_not_depend_on_its_settings() -> None:
    import matplotlib as mpl

    (expected,) = render_bytes([DATA], ["png"])
    with mpl.rc_context({"figure.facecolor": "red", "axes.grid": False, "text.usetex": True}):
        assert list(render_bytes([DATA], ["png"])) == [expected]


def test_processes_that_draw_obey_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (expected,) = render_bytes([DATA], ["png"])
    monkeypatch.chdir(folder)
    assert list(render_bytes([DATA] * 6, ["png"], jobs=2)) == [expected] * 6
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(("name", "program"), [("s2n-quic", "cargo"), ("quic-go", "go")])
def test_compilers_do_not_run_in_the_folder(
    folder: Path, tmp_path: Path, name: str, program: str
) -> None:
    for needed in ("cargo", "go", "cc"):
        (tmp_path / "bin" / needed).parent.mkdir(exist_ok=True)
        (tmp_path / "bin" / needed).write_text(CARGO, "utf-8")
        (tmp_path / "bin" / needed).chmod(0o755)
    done = call(
        folder, "setup", "quic", name,
        PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin", XDG_CACHE_HOME=str(tmp_path / "cache"),
    )  # fmt: skip
    assert "failed with status 1" in done.stderr
    was_in = (tmp_path / "bin" / f"{program}.was_in").read_text("utf-8").strip()
    assert Path(was_in).is_relative_to(tmp_path / "cache")
    assert not list(tmp_path.rglob("ran"))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_a_header_in_the_folder_is_not_included(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = toolchain.missing()
    monkeypatch.chdir(folder)
    assert toolchain.missing() == expected


def test_programs_are_not_looked_for_in_the_folder(folder: Path) -> None:
    program = (
        "from jostle.emulate.system_commands import available; "
        "from jostle.measurements.live.tcpdump import require; "
        "print(available('ip'), available('latex'))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PATH"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"ip", "latex"} & set(done.stdout.split())
