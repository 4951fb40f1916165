"""Where the object with the controllers for a kernel module comes from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jostle.kernel_images.bridge import BridgeMissingError, bridge_object


def checkout_with(folder: Path, script: str) -> Path:
    link = folder / "crates" / "kernel-bridge" / "link.sh"
    link.parent.mkdir(parents=True)
    link.write_text(script, "utf-8")
    return folder


@pytest.fixture
def cargo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a machine without Rust have a `cargo`, which these scripts do not call."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "cargo"
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


@pytest.mark.usefixtures("cargo")
def test_a_checkout_links_the_object(tmp_path: Path) -> None:
    checkout = checkout_with(tmp_path, 'printf object >"$1"\n')
    assert bridge_object(checkout, tmp_path / "bridge.o") == b"object"


@pytest.mark.usefixtures("cargo")
def test_a_failure_shows_the_last_lines(tmp_path: Path) -> None:
    checkout = checkout_with(tmp_path, "echo error: no memory >&2; exit 1\n")
    with pytest.raises(BridgeMissingError, match=r"link\.sh failed:\n  error: no memory$"):
        bridge_object(checkout, tmp_path / "bridge.o")


def test_a_wheel_contains_the_object(tmp_path: Path) -> None:
    packaged = tmp_path / "bridge.o"
    packaged.write_bytes(b"packaged")
    assert bridge_object(tmp_path, packaged) == b"packaged"


def test_other_wheels_say_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(BridgeMissingError, match="wheels for Linux on x86-64 have them"):
        bridge_object(tmp_path, tmp_path / "bridge.o")


def test_a_checkout_without_cargo_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = checkout_with(tmp_path, "")
    monkeypatch.setenv("PATH", "/none")
    with pytest.raises(BridgeMissingError, match="cargo, which is not installed"):
        bridge_object(checkout, tmp_path / "bridge.o")
