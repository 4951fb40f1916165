"""Controllers of a user's crate: the template, the simulator, QUIC, and what is refused."""

from __future__ import annotations

import dataclasses
import functools
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jostle import _core
from jostle.backends import SimBackend, crate_libraries
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.controller_crates import build, dependencies
from jostle.controller_crates.build import ControllerCrate, library_file
from jostle.controller_crates.dependencies import CratesMissingError
from jostle.controller_crates.new_crate import new_crate
from jostle.controller_crates.source import CompilerError, CrateError
from jostle.runner.job import Job
from jostle.runner.spec_texts import SingleSpec
from jostle.safe_io import code_consent
from jostle.safe_io.code_consent import ConsentError, admitted
from jostle.scenario import ScenarioError, load_text
from jostle.scenario.python_controllers.source_files import DIGEST

from crates import ROOT, TWIN, compiled_below, write_crate

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust is not installed")

SCENARIO = """
duration = "6 s"
sampling_interval = "100 ms"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "2 BDP" }
[[flows]]
name = "one"
controller = CONTROLLER
rtt = "20 ms"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the template and a twin of Reno."""
    place = tmp_path_factory.mktemp("crates")
    with compiled_below(place):
        write_crate(place / "mine")
        write_crate(place / "twin", TWIN)
        yield place


def spec_of(folder: Path, controller: str, more: str = "", *, allow_code: bool = True) -> Any:
    text = SCENARIO.replace("CONTROLLER", controller) + more
    loaded = load_text(text, name=str(folder / "s.toml"), allow_code=allow_code)
    return loaded.plan(repeats=1).runs[0].spec


def assert_equal_flows(mine: Any, theirs: Any) -> None:
    assert mine.flows.columns == theirs.flows.columns
    for name in mine.flows.columns:
        np.testing.assert_array_equal(
            mine.flows[name].to_numpy(), theirs.flows[name].to_numpy(), err_msg=name
        )


def overall(record: Any) -> dict[str, Any]:
    phases: dict[str, Any] = record.summary["flows"][0]["phases"]["overall"]
    return phases


def command(*words: str) -> int:
    return status(words, Environment())


def never() -> bool:
    return False


# The template.


def test_the_template_runs(folder: Path) -> None:
    spec = spec_of(folder, '{ name = "crate:mine", target = "4 ms" }')
    controller = spec["flows"][0]["controller"]
    assert controller["name"] == "crate:mine"
    assert controller["parameters"].keys() == {"target", "gain", "beta", DIGEST}
    assert controller["parameters"]["target"] == 4_000_000
    assert spec["flows"][0]["slow_start"]["name"] == "standard"
    record = SimBackend().run(spec)
    assert overall(record)["goodput_bps"] > 7e6
    slow = SimBackend().run(spec_of(folder, '{ name = "crate:mine", target = "20 ms" }'))
    assert overall(slow)["rtt_mean_s"] > overall(record)["rtt_mean_s"] + 2e-3
    assert set(record.flows["mode"]) >= {"avoidance"}
    assert "queueing_delay_s" in str(record.tables["internals"])


@pytest.mark.slow
def test_the_templates_own_tests_pass(folder: Path) -> None:
    words = ["cargo", "test", "--quiet"]
    done = subprocess.run(words, cwd=folder / "mine", capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_the_templates_comparison_is_planned(folder: Path) -> None:
    file = folder / "mine" / "compare.toml"
    plan = load_text(file.read_text(), name=str(file), allow_code=True).plan(repeats=1)
    assert len(plan.runs) == 8


def test_the_example_of_the_tutorial_is_the_template(tmp_path: Path) -> None:
    new_crate(tmp_path / "mine")
    shutil.rmtree(tmp_path / "mine" / ".cargo")
    example = ROOT / "examples" / "mine"
    for file in filter(Path.is_file, (tmp_path / "mine").rglob("*")):
        written = example / file.relative_to(tmp_path / "mine")
        assert written.read_text() == file.read_text(), written


def test_a_new_crate_has_a_name_and_its_own_folder(tmp_path: Path) -> None:
    with pytest.raises(CrateError, match='"1st" cannot be the name of a crate'):
        new_crate(tmp_path / "1st")
    (tmp_path / "file").touch()
    with pytest.raises(CrateError, match="is not empty"):
        new_crate(tmp_path)
    assert new_crate(tmp_path / "mine")
    source = tmp_path / "mine" / "src" / "lib.rs"
    source.write_text("mine", "utf-8")
    shutil.rmtree(tmp_path / "mine" / ".cargo")
    assert not new_crate(tmp_path / "mine")
    assert source.read_text() == "mine"
    assert (tmp_path / "mine" / ".cargo" / "config.toml").is_file()


def test_a_scenario_is_no_crate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("new", "home-router", "--crate", str(tmp_path / "mine")) == 2
    assert "--crate writes no scenario" in capsys.readouterr().err


@pytest.mark.slow
def test_a_wheel_has_all_that_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Cargo's cache, a network and the checkout."""
    tool = ROOT / "tools" / "controller_crates.py"
    subprocess.run([sys.executable, str(tool), str(tmp_path / "sources")], check=True)
    packaged = functools.partial(dependencies.crate_folders, tmp_path / "sources", tmp_path)
    monkeypatch.setattr(dependencies, "crate_folders", packaged)
    with compiled_below(tmp_path):
        monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "target"))
        monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
        crate = write_crate(tmp_path / "mine")
        assert str(tmp_path / "sources") in (crate / ".cargo" / "config.toml").read_text()
        spec = spec_of(tmp_path, '"crate:mine"')
        assert overall(SimBackend().run(spec))["goodput_bps"] > 7e6
        if sys.platform == "linux":
            code = crate_libraries.crate_of(spec["flows"][0])
            assert b"jk_register" in build.kernel_object(code)


def test_a_package_without_sources_says_so(tmp_path: Path) -> None:
    with pytest.raises(CratesMissingError, match="install a wheel of jostle, or use a source"):
        dependencies.crate_folders(tmp_path / "sources", tmp_path)


# The same calls as in the engine.


@pytest.mark.parametrize(
    "more",
    [
        "",
        'transport = "quic"\n',
        'slow_start = "hystart"\n',
        'size = "200 kB"\narrivals = { load = "30 %" }\n',
        'size = "1 MB"\ncount = 2\none_at_a_time = "100 ms"\npeer_cache = "tcp-cache"\n',
    ],
    ids=["TCP", "QUIC", "a slow start", "many connections", "a peer cache"],
)
def test_every_series_is_that_of_the_engine(folder: Path, more: str) -> None:
    mine = SimBackend().run(spec_of(folder, '"crate:twin"', more))
    assert_equal_flows(mine, SimBackend().run(spec_of(folder, '"reno"', more)))


# The code belongs to the run.


def test_a_changed_source_is_another_run(folder: Path) -> None:
    write_crate(folder / "changing", TWIN)
    first = spec_of(folder, '"crate:changing"')["flows"][0]["controller"]
    assert first == spec_of(folder, '"crate:changing"')["flows"][0]["controller"]
    source = folder / "changing" / "src" / "lib.rs"
    source.write_text(source.read_text() + "// more\n")
    second = spec_of(folder, '"crate:changing"')["flows"][0]["controller"]
    assert first["parameters"][DIGEST] != second["parameters"][DIGEST]


def test_a_crate_is_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec_of(folder, '"crate:twin"')
    monkeypatch.setattr(build, "_compiled", {})

    def refuse(*_: object) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr(build, "_cargo", refuse)
    spec_of(folder, '"crate:twin"')


def test_a_worker_gets_the_library(folder: Path, tmp_path: Path) -> None:
    spec = spec_of(folder, '"crate:twin"')
    backend = SimBackend()
    job = pickle.loads(pickle.dumps(Job.of(backend, None, [(SingleSpec(spec), 1)], never)))  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(code_consent, "_admitted", {})
        with pytest.raises(ConsentError, match="the crate of crate:twin"):
            backend.run(spec)
        with compiled_below(tmp_path):
            (outcome,) = job().done
    assert outcome.error is None
    assert list((tmp_path / "crates").glob("*/library-*"))


def test_another_kind_of_machine_refuses(folder: Path) -> None:
    spec = spec_of(folder, '"crate:twin"')
    crate = crate_libraries.crate_of(spec["flows"][0])
    assert isinstance(crate, ControllerCrate)
    with pytest.raises(CrateError, match=r"was compiled for darwin-arm64, and this machine is"):
        library_file(dataclasses.replace(crate, machine="darwin-arm64"))


def test_a_suite_judges_a_crate(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    suite = str(ROOT / "tests" / "suites" / "small")
    named = f"crate:{folder.name}/twin"
    words = ["suite", "run", suite, "--quick", "--store", "none", "--controller"]
    assert command(*words, named) == 2
    assert "--allow-code" in capsys.readouterr().err
    assert command(*words, f'{{ name = "{named}", panics = "never" }}', "--allow-code") in (0, 1)
    assert "pass     1-goodput" in capsys.readouterr().out


# What is refused.


def test_without_consent_nothing_is_read(folder: Path) -> None:
    with pytest.raises(ScenarioError, match=r'"crate:twin" would run the crate .*--allow-code'):
        spec_of(folder, '"crate:twin"', allow_code=False)


@pytest.mark.parametrize(
    ("controller", "reason"),
    [
        ('"crate:none"', r"none has no Cargo\.toml: `jostle new --crate none` makes a crate"),
        ('"crate:../other"', r"other is outside of the scenario's folder"),
        (
            '{ name = "crate:mine", tarjet = "5 ms" }',
            '"crate:mine" has no parameter "tarjet" — did you mean "target"',
        ),
        ('{ name = "crate:mine", beta = 3 }', r"accepted: a number from 0\.1 to 0\.95"),
        ('{ name = "crate:mine", source_sha256 = "0" }', r'has no parameter "source_sha256"'),
    ],
)
def test_what_a_scenario_cannot_name(folder: Path, controller: str, reason: str) -> None:
    with pytest.raises(ScenarioError, match=reason):
        spec_of(folder, controller)


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    crate = write_crate(folder / "linked")
    (crate / "src" / "tests.rs").unlink()
    (crate / "src" / "tests.rs").symlink_to(tmp_path)
    with pytest.raises(ScenarioError, match="is a link: a crate consists of its own files"):
        spec_of(folder, '"crate:linked"')


def test_the_compilers_lines_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crate = write_crate(folder / "broken", TWIN.replace("window.cwnd / 2", "window.cwnd / 2.0"))
    with pytest.raises(CompilerError, match=r"cannot divide `u32` by `\{float\}`"):
        spec_of(folder, '"crate:broken"')
    file = folder / "broken.toml"
    file.write_text(SCENARIO.replace("CONTROLLER", '"crate:broken"'), "utf-8")
    assert command("run", str(file), "--allow-code", "--store", "none") == 2
    shown = capsys.readouterr().err
    assert f"the crate {crate} cannot be compiled" in shown
    assert f"--> {crate}/src/lib.rs:" in shown


@pytest.mark.parametrize("transport", ["", 'transport = "quic"\n'], ids=["TCP", "QUIC"])
def test_a_panic_ends_the_run_with_its_place(folder: Path, transport: str) -> None:
    spec = spec_of(folder, '{ name = "crate:twin", panics = "loss" }', transport)
    with pytest.raises(_core.ControllerError, match=r"^twin/src/lib\.rs:\d+:\d+: cwnd was"):
        SimBackend().run(spec)
    # The process and the library can go on.
    assert overall(SimBackend().run(spec_of(folder, '"crate:twin"')))["goodput_bps"] > 8e6


def test_without_rust(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build._compiler.cache_clear()
    monkeypatch.setenv("PATH", "/none")
    with pytest.raises(ScenarioError, match=r"compiled with cargo, which is not installed: see"):
        spec_of(folder, '"crate:twin"')
    build._compiler.cache_clear()


def test_on_windows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build._compiler.cache_clear()
    monkeypatch.setattr(build.sys, "platform", "win32")
    with pytest.raises(ScenarioError, match="on Linux and macOS, not on Windows"):
        spec_of(folder, '"crate:twin"')


def test_code_that_was_not_admitted_is_not_loaded(folder: Path) -> None:
    spec = spec_of(folder, '"crate:twin"')
    spec["flows"][0]["controller"]["parameters"][DIGEST] = "0" * 64
    assert admitted("0" * 64) is None
    with pytest.raises(ConsentError, match="which no scenario has named"):
        SimBackend().run(spec)
