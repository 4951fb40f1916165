"""Temporary folders: gone in the end, whatever the end is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.scratch_folder import (
    PartialFolder,
    TemporaryFolder,
    _handed_over,
    temporary_folder,
)

HOLDING = """
import time
from jostle.safe_io.scratch_folder import temporary_folder
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


def test_what_was_killed_before_it_had_its_name_goes_too(temporary: Path) -> None:
    (temporary / ".jostle-run-x1y2z3").mkdir()
    full = temporary / ".jostle-run-notes"
    full.mkdir()
    (full / "mine").write_text("")
    with temporary_folder("run"):
        assert not (temporary / ".jostle-run-x1y2z3").exists()
    assert (full / "mine").exists(), "nothing is in one of ours before it has its name"


def test_one_that_another_process_took_for_abandoned_is_made_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def taken_away(**keys: str) -> str:
        made.append(temporary / f"{keys['prefix']}{len(made)}")
        if len(made) > 1:
            made[-1].mkdir()
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", taken_away)
    with temporary_folder("run") as folder:
        assert folder.is_dir()
    assert len(made) == 2


def test_all_that_is_handed_over_stays_until_it_is_taken(temporary: Path) -> None:
    waiting = [TemporaryFolder("capture").hand_over() for _ in range(100)]
    # Whoever makes another one sweeps first.
    TemporaryFolder("capture").remove()
    assert [path for path in waiting if not path.is_dir()] == []
    taken = [TemporaryFolder.adopt(path) for path in waiting]
    TemporaryFolder("capture").hand_over()
    assert len(_handed_over) == 1, "locks of those that were taken are given back"
    assert all(folder.path.is_dir() for folder in taken)
    for folder in taken:
        folder.remove()


def test_deep_folders_are_removed(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = temporary / "outside"
    outside.mkdir()
    folder = TemporaryFolder("deep")
    (folder.path / "link").symlink_to(outside)
    monkeypatch.chdir(folder.path)
    # Deeper than the interpreter recurses, and than a path may be long.
    for _ in range(3000):
        os.mkdir("x")
        os.chdir("x")
        Path("file").touch()
    os.chdir(temporary)
    folder.remove()
    assert list(temporary.iterdir()) == [outside]
    with temporary_folder("deep") as other:
        assert other.is_dir()


@pytest.mark.parametrize("before", ["folder", "open_again", "move"])
def test_a_partial_folder_that_was_taken_for_abandoned_is_made_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    called = getattr(OpenFolder, before)
    removed: list[Path] = []

    def remove(*words: object) -> object:
        if not removed:
            removed.extend(temporary.iterdir())
            removed[0].rmdir()
        return called(*words)

    monkeypatch.setattr(OpenFolder, before, remove)
    with OpenFolder.at(temporary) as parent, PartialFolder(parent, "run") as partial:
        partial.content.write_new("file", b"")
        assert len(removed) == 1
    assert list(temporary.iterdir()) == []


def test_a_partial_folder_needs_its_parent(temporary: Path) -> None:
    (temporary / "parent").mkdir()
    with OpenFolder.at(temporary / "parent") as parent:
        (temporary / "parent").rmdir()
        with pytest.raises(FileNotFoundError), PartialFolder(parent, "run"):
            pass
