"""Kernels for tests: shell scripts that look like one, and a real one if there is any."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_toolchain import FakeToolchain, fake_toolchain
from jostle.kernel import Image, KernelMissingError, find, toolchain


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes minutes, and runs only when asked for")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of kernels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JOSTLE_KERNEL", raising=False)
    return tmp_path / "cache" / "jostle" / "kernels"


@pytest.fixture
def tools(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> FakeToolchain:
    """A fake toolchain as all there is, and an empty cache."""
    fake = fake_toolchain(tmp_path)
    monkeypatch.setenv("PATH", str(fake.programs))
    monkeypatch.setattr(toolchain, "SOURCES", fake.sources)
    return fake


@pytest.fixture(scope="session")
def virtual_kernel() -> Image:
    """A virtual-time kernel: the one that JOSTLE_KERNEL names, or else one that was built."""
    try:
        return find("virtual")
    except KernelMissingError as error:
        pytest.skip(f"no virtual-time kernel: {error}")
