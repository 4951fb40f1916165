"""Controllers of a user's crate inside Linux, over TCP and over QUIC."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jostle.backends import SimBackend
from jostle.backends.kernel import KernelBackend, capabilities
from jostle.backends.kernel.controllers import Defaults, plan
from jostle.backends.kernel.kernel_controllers import KernelOffer
from jostle.backends.kernel.runner import KernelRunError
from jostle.controller_crates.source import CompilerError
from jostle.errors import InputError
from jostle.kernel_images import Image
from jostle.scenario import load_text

from crates import TWIN, compiled_below, write_crate

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust is not installed")

SCENARIO = """
duration = "4 s"
sampling_interval = "100 ms"
[bottleneck]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = CONTROLLER
rtt = "20 ms"
"""
VIRTUAL = KernelOffer(Image("virtual", Path("/nowhere/linux"), "6.1.192"), has_bridge=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the template and a twin of Reno."""
    place = tmp_path_factory.mktemp("crates")
    with compiled_below(place):
        write_crate(place / "mine")
        write_crate(place / "twin", TWIN)
        yield place


def spec_of(folder: Path, controller: str, more: str = "", duration: str = "4 s") -> Any:
    text = SCENARIO.replace("CONTROLLER", controller).replace("4 s", duration) + more
    loaded = load_text(text, name=str(folder / "s.toml"), allow_code=True)
    return loaded.plan(repeats=1).runs[0].spec


def series(record: Any, flow: str = "one") -> dict[str, np.ndarray[Any, Any]]:
    table = record.flows.filter(record.flows["flow"] == flow)
    return {name: table[name].to_numpy() for name in table.columns if name != "flow"}


def assert_equal_series(mine: Any, theirs: Any) -> None:
    for name, column in series(theirs).items():
        np.testing.assert_array_equal(series(mine)[name], column, err_msg=name)


def goodput_bps(record: Any) -> float:
    value: float = record.summary["flows"][0]["phases"]["overall"]["goodput_bps"]
    return value


# What is planned.


def test_each_crate_has_its_module(folder: Path, defaults: Defaults) -> None:
    controllers = ('"crate:twin"', '"copa"', '"crate:mine"', '"crate:twin"')
    flows = [spec_of(folder, each)["flows"][0] for each in controllers]
    made = plan(flows, defaults, "virtual", VIRTUAL)
    twin, mine = (flows[at]["controller"]["parameters"]["source_sha256"][:8] for at in (0, 2))
    assert made.names == [f"jk_{twin}.0", "jostle.0", f"jk_{mine}.0", f"jk_{twin}.1"]
    assert all(len(name) <= 15 for name in made.names)
    assert made.problems == []


def test_in_real_time_there_are_none(folder: Path, defaults: Defaults) -> None:
    with pytest.raises(InputError, match=r"flows\.one\.controller: a crate runs inside kernels of"):
        capabilities.check(spec_of(folder, '"crate:twin"'), defaults, "realtime")


# Inside the kernel.


def test_every_series_is_that_of_linux(folder: Path, backend: KernelBackend, kernel: Image) -> None:
    spec = spec_of(folder, '"crate:twin"')
    mine = backend.run(spec)
    assert mine.backend_version == backend.version_of(spec)
    assert "+jk_" in mine.backend_version
    # The same controller from the registry: in the simulator as well as here.
    jostles = KernelBackend(image=kernel, controllers="jostle")
    assert_equal_series(mine, jostles.run(spec_of(folder, '"reno"')))
    assert goodput_bps(mine) == pytest.approx(goodput_bps(SimBackend().run(spec)), rel=0.01)


def test_the_template_next_to_another_crate(folder: Path, backend: KernelBackend) -> None:
    second = '[[flows]]\nname = "two"\ncontroller = "crate:twin"\nrtt = "20 ms"\n'
    spec = spec_of(folder, '{ name = "crate:mine", target = "5 ms" }', second)
    record = backend.run(spec)
    assert record.backend_version.count("+jk_") == 2
    shares = [flow["phases"]["overall"]["goodput_bps"] for flow in record.summary["flows"]]
    assert sum(shares) > 17e6
    # Reno fills the queue, and the template leaves it.
    assert shares[1] > 1.5 * shares[0]
    observed = record.internals.filter(record.internals["flow"] == "one")
    assert set(observed["quantity"]) == {"queueing_delay_s"}
    assert observed["value"].drop_nans().max() > 5e-3


def test_over_quic(folder: Path, backend: KernelBackend) -> None:
    transport = 'transport = "quic"\n'
    mine, jostles = (
        backend.run(spec_of(folder, controller, transport, duration="2 s"))
        for controller in ('"crate:twin"', '"reno"')
    )
    assert_equal_series(mine, jostles)


def test_a_panic_names_its_place(folder: Path, backend: KernelBackend) -> None:
    controller = '{ name = "crate:twin", panics = "loss" }'
    with pytest.raises(KernelRunError, match=r"panicked at .*lib\.rs:\d+:\d+:\s+cwnd was \d+"):
        backend.run(spec_of(folder, controller))
    with pytest.raises(KernelRunError, match=r"lib\.rs:\d+:\d+: cwnd was \d+ \(controller of"):
        backend.run(spec_of(folder, controller, 'transport = "quic"\n'))


def test_the_module_travels_with_the_backend(
    folder: Path, backend: KernelBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(folder, '"crate:twin"')
    version = backend.version_of(spec)
    there = pickle.loads(pickle.dumps(backend))

    def refuse(*_: object) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr("jostle.backends.kernel.backend.bridge_module", refuse)
    monkeypatch.setattr("jostle.backends.kernel.backend.kernel_object", refuse)
    assert there.version_of(spec) == version


@pytest.mark.slow
def test_the_standard_library_is_not_in_linux(folder: Path, backend: KernelBackend) -> None:
    uses_it = TWIN.replace("#![no_std]", "").replace(
        "if self.panics {", 'if std::env::var("X").is_ok() {'
    )
    write_crate(folder / "with-std", uses_it)
    spec = spec_of(folder, '"crate:with-std"')
    assert goodput_bps(SimBackend().run(spec)) > 8e6
    with pytest.raises(CompilerError, match="cannot be compiled"):
        backend.run(spec)
