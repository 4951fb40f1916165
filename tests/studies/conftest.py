"""A study of two short scenarios, small enough for tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_study import copy_study, leave_first_figure


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of studies that holds a copy of `small`."""
    return copy_study(tmp_path / "studies").parent


@pytest.fixture
def one_figure(folder: Path) -> None:
    """Leave the study one figure, where a test is about its numbers."""
    leave_first_figure(folder / "small")
