"""Files that are written whole or not at all, wherever they are to be."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from jostle.errors import InputError
from jostle.safe_io.atomic_write import atomic_writer, write_atomically


def test_a_named_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, b"a page")
    reader.join(timeout=10)
    assert read == [b"a page"]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_what_a_link_points_to_is_replaced_and_not_the_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "page.html", tmp_path / "page.html"
    target.write_bytes(b"the page of before")
    link.symlink_to(target)
    write_atomically(link, b"a page")
    assert link.is_symlink()
    assert target.read_bytes() == b"a page"
    assert list(target.parent.iterdir()) == [target]


def test_a_link_that_points_to_itself_is_replaced(tmp_path: Path) -> None:
    link = tmp_path / "page.html"
    link.symlink_to(link)
    write_atomically(link, b"a page")
    assert link.read_bytes() == b"a page"
    assert list(tmp_path.iterdir()) == [link]


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*page\.html: Is a directory"):
        write_atomically(tmp_path / "page.html", b"a page")
    assert list(tmp_path.iterdir()) == [tmp_path / "page.html"]


def test_what_ends_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(b"the page of before")

    def interrupted() -> None:
        with atomic_writer(page) as partial:
            partial.write_bytes(b"half a p")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert page.read_bytes() == b"the page of before"
    assert list(tmp_path.iterdir()) == [page]
