"""What a guest leaves is read as the files of other people are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jostle.backends.kernel import captures, guest_samples
from jostle.backends.kernel.captures import read_captures
from jostle.kernel_images import Image


@pytest.mark.parametrize("name", ["samples", "events.json"])
@pytest.mark.parametrize("how", ["pipe", "device"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, name: str, how: str) -> None:
    (tmp_path / "samples").write_bytes(bytes(10**6))
    if name == "samples":
        (tmp_path / "samples").unlink()
    if how == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises((OSError, ValueError), match="Not a regular file"):
        guest_samples.read(tmp_path, 0, 0)


def test_captures_that_are_no_file_either(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "events.json")
    spec = {"capture": {"scenario": ""}, "flows": [{}]}
    image = Image("virtual", tmp_path / "linux", "6.1.9")
    with pytest.raises(OSError, match="Not a regular file"):
        read_captures(spec, tmp_path, image, None)
    (tmp_path / "events.json").unlink()
    (tmp_path / "events.json").write_text(
        '{"captures": {"start_ns": 0, "hosts": {"s0": [0, 0], "r0": [0, 0]}}}'
    )
    ring, _ = captures.wanted(spec)["s0"]
    os.mkfifo(tmp_path / ring)
    with pytest.raises(Exception, match="Not a regular file"):
        read_captures(spec, tmp_path, image, None)
