"""Fixtures that stand in for the engine."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import browser
import fake_core
import hypothesis
import pytest
from jostle import store
from jostle.backends import SimBackend
from jostle.kernel_images import Image, KernelMissingError, Kind, find
from jostle.results import ResultSet
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.scenario import RunPlan
from jostle.store.store import Store
from limited import Limited

KERNEL_FIXTURES = {"virtual_kernel", "realtime_kernel", "native_kernel", "any_kernel"}
"""A test that asks for one of these boots a kernel, so it is marked `kernel`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that boot a kernel."""
    for item in items:
        if KERNEL_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kernel)


def pytest_collection_finish() -> None:
    """Exclude libraries and collected tests, which live to the end, from garbage collection."""
    gc.collect()
    gc.freeze()


# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile("jostle", deadline=None)
hypothesis.settings.load_profile("jostle")


@pytest.fixture(autouse=True, scope="session")
def interruptions() -> None:
    """Let SIGINT interrupt: a shell's background jobs inherit that it is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def default_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what `jostle.run` stores by default out of the folder that tests run in.

    Each call has a store of its own: what is run twice is to be compared, not looked up.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, "default_store", lambda: str(tmp_path_factory.mktemp("store")))
        yield


@pytest.fixture(autouse=True, scope="session")
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the records of sweeps out of the home folder of the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def limited() -> Iterator[Limited]:
    """Run commands that may take no more than `limited` says, or that start at once."""
    commands = Limited()
    yield commands
    commands.close()


@pytest.fixture(scope="module")
def shared_browser() -> Iterator[None]:
    """Open all pages of a module in one browser."""
    with browser.launched():
        yield


@pytest.fixture
def engine() -> fake_core.FakeEngine:
    return fake_core.FakeEngine()


Carry = Callable[..., ResultSet]


@pytest.fixture
def carry_out(engine: fake_core.FakeEngine) -> Carry:
    """Carry a plan out with the fake engine, in memory unless a store is given."""

    def carry(plan: RunPlan, store: Path | None = None, jobs: int = 2) -> ResultSet:
        executor = local(jobs)
        try:
            kept = None if store is None else Store(store)
            return Session(SimBackend(engine), executor, kept).carry_out(plan)
        finally:
            executor.shutdown()

    return carry


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 kB, which root can mount."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(small)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("a small file system can be mounted by root only")
    yield small
    subprocess.run(["umount", str(small)], check=True)


@pytest.fixture(scope="session")
def virtual_kernel() -> Image:
    """A virtual-time kernel: the one that JOSTLE_KERNEL names, or else one that was built."""
    return _kernel("virtual")


@pytest.fixture(scope="session")
def realtime_kernel() -> Image:
    """The distribution's User-Mode Linux."""
    return _kernel("realtime")


@pytest.fixture(scope="session")
def native_kernel() -> Image:
    """This machine's own."""
    return _kernel("native")


def _kernel(kind: Kind) -> Image:
    """Find a kernel; without one a test is skipped, or fails if .ci/kernels has promised one."""
    try:
        return find(kind)
    except KernelMissingError as error:
        if kind in os.environ.get("JOSTLE_TEST_KERNELS", "").split():
            pytest.fail(f"JOSTLE_TEST_KERNELS has {kind}, and there is none: {error}")
        pytest.skip(f"no {kind} kernel: {error}")
