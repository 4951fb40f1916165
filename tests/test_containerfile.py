"""The Containerfile: what it asks for, and at night its steps in a root made by debootstrap."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from container_root import ContainerRoot, host_toolchain, removed_afterwards, steps_of
from jostle.kernel_images import toolchain

ROOT = Path(__file__).parents[1]
STEPS = steps_of((ROOT / "Containerfile").read_text("utf-8"))


def test_steps_are_read() -> None:
    text = "# why\nFROM a:1\nRUN one \\\n && two\n\n# again\nENV PATH=/x\n"
    assert steps_of(text) == [("FROM", "a:1"), ("RUN", "one && two"), ("ENV", "PATH=/x")]


def test_everything_but_packages_runs_without_root() -> None:
    assert STEPS[0] == ("FROM", "docker.io/library/debian:12")
    user = [instruction for instruction, _ in STEPS].index("USER")
    assert STEPS[user][1] != "root"
    before = [rest for instruction, rest in STEPS[:user] if instruction == "RUN"]
    assert [rest.split()[0] for rest in before] == ["apt-get", "useradd"]
    after = [rest for instruction, rest in STEPS[user:] if instruction == "RUN"]
    assert "USER" not in [instruction for instruction, _ in STEPS[user + 1 :]]
    assert after[1:] == [
        "make demo", "jostle setup kernel", "jostle run scenarios/first.toml --backend kernel",
    ]  # fmt: skip


def test_the_tools_of_the_kernel_build_are_installed() -> None:
    installed = set(STEPS[1][1].split())
    assert {*toolchain.PROGRAMS.values(), *toolchain._LIBRARIES} <= installed
    guide = (ROOT / "docs/howto/install.md").read_text("utf-8")
    named = re.search(r"sudo apt-get install (make .*)", guide)
    assert named is not None
    assert set(named[1].split()) <= installed


def test_what_is_built_is_not_copied() -> None:
    left_out = set((ROOT / ".containerignore").read_text("utf-8").split())
    assert {".git", ".venv", "target", "dist"} <= left_out


@pytest.mark.slow
def test_its_steps_work_on_debian_12(tmp_path: Path) -> None:
    """Images cannot be pulled everywhere; debootstrap makes the same root from packages."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap: apt-get install debootstrap")
    rust = host_toolchain(ROOT)
    if rust is None:
        pytest.skip("needs Rust, which the root takes from this machine")
    with removed_afterwards(tmp_path / "root") as folder:
        root = ContainerRoot(folder, ROOT, rust)
        for instruction, rest in STEPS:
            root.carry_out(instruction, rest)
        assert list((folder / root.workdir.lstrip("/") / "demo").glob("*.png"))
