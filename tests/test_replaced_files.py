"""Files that are written whole or not at all, wherever they are to be."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from jostle.errors import InputError
from jostle.figures.files import replace_file


def test_a_named_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    replace_file(pipe, b"a page")
    reader.join(timeout=10)
    assert read == [b"a page"]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_what_a_link_points_to_is_replaced_and_not_the_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "page.html", tmp_path / "page.html"
    target.write_bytes(b"the page of before")
    link.symlink_to(target)
    replace_file(link, b"a page")
    assert link.is_symlink()
    assert target.read_bytes() == b"a page"
    assert list(target.parent.iterdir()) == [target]


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*page\.html: Is a directory"):
        replace_file(tmp_path / "page.html", b"a page")
    assert list(tmp_path.iterdir()) == [tmp_path / "page.html"]
