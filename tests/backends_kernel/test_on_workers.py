"""Runs on the kernel, carried out by Dask's workers, which get the kernel if they have none."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterator
from pathlib import Path

import jostle
import pytest
from dask_cluster import Cluster
from jostle.backends.kernel import KernelBackend
from jostle.backends.kernel.remote_workers import KernelNeeds, KernelTransfer
from jostle.errors import InputError
from jostle.kernel_images import Image, KernelMissingError, image_paths
from jostle.kernel_images.image_paths import _resolve_image
from jostle.runner.executors.dask_cluster import DaskExecutor

pytestmark = pytest.mark.cluster

SCENARIO = {
    "duration": "2 s",
    "repeats": 2,
    "bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "flows": [
        {"name": "one", "controller": "cubic", "rtt": "30 ms", "start_jitter": "9 ms"},
        # Workers get the module of this one, too.
        {"name": "two", "controller": "copa", "rtt": "30 ms"},
    ],
}
ELSEWHERE = Path("/nowhere/linux")


def from_afar(image: Image) -> tuple[object, ...]:
    """What a machine sends that has the kernel where workers have nothing."""
    return _resolve_image, (image.kind, ELSEWHERE, image.version, image.modules, image.digest)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    # Workers have a cache of their own, without a kernel.
    made = Cluster(tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"), JOSTLE_KERNEL="")
    made.start_scheduler()
    made.start_workers(1)
    yield made
    made.close()


def test_workers_get_the_kernel(
    cluster: Cluster, kernel: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = KernelBackend(image=kernel)
    scenario = jostle.Scenario.from_dict(SCENARIO)
    executor = DaskExecutor(cluster.address)
    try:
        executor.client.wait_for_workers(1, timeout=120)
        with monkeypatch.context() as patch:
            patch.setattr(Image, "__reduce__", from_afar)
            there = jostle.run(scenario, backend, executor=executor, store=tmp_path / "there")
    finally:
        executor.shutdown()
    assert there.failures == ()
    here = jostle.run(scenario, backend, store=tmp_path / "here")
    assert there.to_json() == here.to_json()
    (sent,) = (tmp_path / "cache" / "jostle" / "kernels").glob("*/linux")
    assert sent.read_bytes() == kernel.path.read_bytes()


def test_a_kernel_is_resolve_image_by_its_digest(
    kernel: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    needs = KernelNeeds(kernel, kernel.identity)
    assert needs.lacks() is None
    shipment = KernelTransfer.of(kernel)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    make, told = from_afar(kernel)
    lost = make(*told)
    assert lost.path == ELSEWHERE
    lack = dataclasses.replace(needs, image=lost).lacks()
    assert lack is not None
    assert lack.can_be_sent
    assert "the kernel /nowhere/linux cannot be read here" in lack.why
    for _ in range(2):
        shipment.unpack()
    found = make(*told)
    assert found.path == tmp_path / "jostle" / "kernels" / shipment.folder / "linux"
    assert found.identity == kernel.identity
    # What is not what was built is not taken.
    found.path.write_bytes(b"another")
    assert make(*told).path == ELSEWHERE


def test_what_cannot_be_sent_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "linux"
    program.write_bytes(b"a kernel")
    image = Image("virtual", program, "6.1.0")
    with pytest.raises(InputError, match=f"are sent to workers, not {program}"):
        KernelNeeds(image, image.identity).supply()
    lack = KernelNeeds(image, "virtual-6.1.0-0123").lacks()
    assert lack is not None
    assert f"its kernel is {image.identity}, not virtual-6.1.0-0123" in lack.why
    monkeypatch.setitem(image_paths.TOOLS, "no-such-tool", "package")
    lack = KernelNeeds(image, image.identity).lacks()
    assert lack is not None
    assert not lack.can_be_sent
    assert "no-such-tool missing, which set up the networks" in lack.why
    assert "run `apt-get install package`" in lack.why
    gone = Image("virtual", ELSEWHERE, "6.1.0")
    with pytest.raises(KernelMissingError, match="cannot be read here"):
        _ = gone.identity
