"""Kernels for tests: shell scripts that look like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_toolchain import FakeToolchain, fake_toolchain
from jostle.kernel_images import debian


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
    monkeypatch.setattr(debian, "SOURCES", fake.sources)
    return fake
