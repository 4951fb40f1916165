"""A suite of one short scenario, and the command beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment

HERE = Path(__file__).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of suites that holds a copy of `small`."""
    shutil.copytree(HERE / "small", tmp_path / "suites" / "small")
    return tmp_path / "suites"


@pytest.fixture
def jostle(folder, monkeypatch, capsys):
    """Run the command beside the folder of suites."""
    monkeypatch.chdir(folder.parent)
    monkeypatch.delenv("JOSTLE_STORE", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = status(arguments, Environment(_core))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
