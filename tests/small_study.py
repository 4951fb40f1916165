"""A copy of the small study of the tests."""

from __future__ import annotations

import shutil
from pathlib import Path

SMALL = Path(__file__).parent / "studies" / "small"


def copy_study(folder: Path) -> Path:
    """Copy the study into a new folder, and return the path of the copy."""
    copy = folder / "small"
    shutil.copytree(SMALL, copy)
    return copy


def leave_first_figure(study: Path) -> None:
    """Remove the other figures: drawing six in three formats takes two seconds of CPU."""
    file = study / "study.toml"
    head, figure, *_ = file.read_text("utf-8").split("[[figures]]")
    file.write_text(f"{head}[[figures]]{figure}", "utf-8")
