"""Temporary folders: gone in the end, whatever the end is."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from jostle.locked_folders import temporary_folder

HOLDING = """
import time
from jostle.locked_folders import temporary_folder
with temporary_folder("run") as folder:
    (folder / "job.json").write_text("{}")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_killed_process_left_goes_at_the_next_start(temporary: Path) -> None:
    command = [sys.executable, "-c", HOLDING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with temporary_folder("run"):
            assert (left / "job.json").exists(), "its owner lives"
        process.kill()
    assert (left / "job.json").exists()
    with temporary_folder("guest"):
        assert left.exists(), "another kind"
    with temporary_folder("run") as folder:
        assert list(temporary.iterdir()) == [folder]
    assert list(temporary.iterdir()) == []


def test_folders_of_others_stay(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (temporary / "jostle-run-notes").mkdir()
    (temporary / f"jostle-run-{'0' * 32}").symlink_to(elsewhere)
    with temporary_folder("run"):
        pass
    names = {path.name for path in temporary.iterdir()}
    assert names == {"elsewhere", "jostle-run-notes", f"jostle-run-{'0' * 32}"}


def test_it_goes_when_something_is_raised(temporary: Path) -> None:
    def fail() -> None:
        with temporary_folder("check") as folder:
            (folder / "file").write_text("")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(temporary.iterdir()) == []
