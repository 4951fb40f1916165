"""A study of two short scenarios, small enough for tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of studies that holds a copy of `small`."""
    shutil.copytree(Path(__file__).parent / "small", tmp_path / "studies" / "small")
    return tmp_path / "studies"
