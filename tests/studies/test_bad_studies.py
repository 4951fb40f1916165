"""Malformed studies: what is said about each stands beside it.

Each file stands in for `study.toml` of the small study. `JOSTLE_BLESS=1 pytest
tests/studies/test_bad_studies.py` writes the messages anew; review the difference.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment

BAD = Path(__file__).parent / "bad"
FILES = sorted(BAD.glob("*.toml"))


def test_there_is_a_message_for_each() -> None:
    assert len(FILES) >= 30
    assert {path.stem for path in BAD.glob("*.txt")} == {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_wrong_is_told_with_file_and_line(path, folder, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder.parent)
    shutil.copy(path, folder / "small" / "study.toml")
    assert status(["study", "run", "studies/small"], Environment(_core)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    expected = path.with_suffix(".txt")
    if os.environ.get("JOSTLE_BLESS"):
        expected.write_text(captured.err)
    assert captured.err == expected.read_text()
    assert re.search(r"^(error: )?studies/small/\w+\.toml:(\d+:)? ", captured.err, re.MULTILINE)
    assert not (folder.parent / "reports").exists()
