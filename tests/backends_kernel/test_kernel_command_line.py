"""`jostle run --backend kernel` and what it says when it cannot."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import jostle
import pytest
from jostle.backends import SimBackend, create
from jostle.backends.kernel import KernelBackend
from jostle.cli import status
from jostle.errors import InputError
from jostle.kernel_images import Image, KernelMissingError

from backends_kernel.kernel_specs import SCENARIO


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(SCENARIO.replace('"10 s"', '"3 s"').replace('"5 s"', '"1 s"'))
    return path


@pytest.fixture
def no_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JOSTLE_KERNEL", raising=False)


@pytest.fixture
def any_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is found and never started."""
    found = Image("virtual", Path("/bin/false"), "6.1.0")
    monkeypatch.setattr("jostle.backends.kernel.backend.find", lambda _kind, _version: found)


@pytest.mark.usefixtures("no_kernel")
def test_a_missing_kernel_says_what_to_do(file, capsys):
    assert status(["run", str(file), "--backend", "kernel", "--store", "none"]) == 2
    assert "jostle setup kernel" in capsys.readouterr().err
    with pytest.raises(KernelMissingError):
        jostle.run(file, backend="kernel")


@pytest.mark.usefixtures("any_kernel")
def test_what_cannot_be_done_is_told_before_anything_starts(file, tmp_path, capsys):
    with file.open("a") as text:
        text.write(
            '[grid]\n"flows.one.controller" = ["vivace", { name = "bbr", startup_gain = 3.0 }]\n'
        )
    arguments = ["run", str(file), "--backend", "kernel", "--store", str(tmp_path / "store")]
    assert status(arguments) == 2
    told = capsys.readouterr().err
    assert "flows.one.controller = vivace: the kernel backend cannot run this scenario" in told
    assert "flows.one.controller: Linux has no controller `vivace`: bbr, bic" in told
    assert [path.name for path in (tmp_path / "store").iterdir()] == [".partial"]


@pytest.mark.usefixtures("any_kernel")
def test_conditions_that_cannot_be_done_are_left_out(file, capsys, monkeypatch):
    with file.open("a") as text:
        text.write('[grid]\n"flows.one.controller" = ["vivace", "cubic"]\n')
    simulator = SimBackend()
    monkeypatch.setattr(KernelBackend, "run", lambda _self, spec, _stop: simulator.run(spec))
    assert status(["run", str(file), "--backend", "kernel", "--store", "none", "--json"]) == 0
    out, told = capsys.readouterr()
    assert "left out: flows.one.controller = vivace: the kernel backend cannot" in told
    (condition,) = json.loads(out)["conditions"]
    assert condition["condition"] == {"flows.one.controller": "cubic"}
    assert jostle.load(file).plan().conditions[0]["flows.one.controller"] == "vivace"


@pytest.mark.usefixtures("any_kernel")
def test_a_kernel_that_breaks_down_is_an_error_and_leaves_nothing(
    file, tmp_path, capsys, monkeypatch
):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(work))
    store = tmp_path / "store"
    assert status(["run", str(file), "--backend", "kernel", "--store", str(store)]) == 1
    told = capsys.readouterr().err
    assert "run failed (seed 1): the guest kernel broke down" in told
    assert "Traceback" not in told
    assert list(work.iterdir()) == []
    assert sorted(path.name for path in store.iterdir()) == [".partial", ".plans", ".sweeps"]
    assert list((store / ".partial").iterdir()) == []


def test_the_simulator_has_no_kernel_to_choose(file, capsys):
    assert status(["run", str(file), "--backend", "sim:native", "--store", "none"]) == 2
    assert "the backend `sim` has no `native`" in capsys.readouterr().err
    with pytest.raises(InputError, match="no `kernel_version` to choose"):
        create("sim", kernel_version="6.1")


@pytest.mark.usefixtures("kernel")
def test_a_scenario_on_the_kernel(file, tmp_path, capsys):
    arguments = ["run", str(file), "--backend", "kernel", "--store", str(tmp_path / "store")]
    assert status([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["backend"] == "kernel"
    (run,) = document["conditions"][0]["runs"]
    assert run["flows"][0]["phases"]["overall"]["goodput_bps"] > 15e6
    assert status(arguments) == 0
    results = jostle.run(file, backend="kernel", store=tmp_path / "store")
    assert results.results[0].run.run_id == run["run_id"]
