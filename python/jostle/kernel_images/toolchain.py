"""Tools for compiling a kernel: which are missing, and how to install them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from jostle.errors import InputError, JostleError
from jostle.kernel_images import debian
from jostle.kernel_images.process_group import Line

PROGRAMS: Mapping[str, str] = {
    "make": "make", "gcc": "gcc", "ld": "binutils", "flex": "flex", "bison": "bison", "bc": "bc",
    "tar": "tar", "xz": "xz-utils",
}  # fmt: skip
"""Required programs → Debian package. Other programs are in packages of their names."""

_C_LIBRARY = "libc6-dev"
# Libraries for the kernel's host programs, depending on options; and the C library, which gcc only
# recommends.
_LIBRARIES = (_C_LIBRARY, "libelf-dev", "libssl-dev")


class ToolsMissingError(InputError):
    """A tool for the build is not installed; the message says how to get it."""


def missing(also: Sequence[str] = ()) -> list[str]:
    """Return the Debian packages that are missing.

    Parameters
    ----------
    also
        Programs that are needed in addition to `PROGRAMS`.
    """
    needed = {**PROGRAMS, **{program: program for program in also}}
    packages = [p for program, p in needed.items() if shutil.which(program) is None]
    if "gcc" not in packages and not _finds_c_library():
        packages.append(_C_LIBRARY)
    return packages


def install_command(lacking: Sequence[str]) -> list[str]:
    """Return the command that installs the missing packages and the required libraries."""
    packages = dict.fromkeys([*lacking, *_LIBRARIES])
    return ["apt-get", "install", "-y", "--no-install-recommends", *packages]


def can_install() -> bool:
    """Return whether this user can install Debian packages."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(lacking: Sequence[str], on_line: Line) -> None:
    """Install packages.

    Raises
    ------
    ToolsMissingError
        If the machine's package sources lack a package.
    JostleError
        If apt-get fails for another reason.
    """
    command = install_command(lacking)
    # New systems, especially containers, have no package lists yet.
    for step in (command, ["apt-get", "update"], command):
        status, said = debian.run_apt(step[1:], on_line)
        if step is command and status == 0:
            return
    unknown = debian.unknown_packages(said)
    if unknown:
        raise ToolsMissingError(debian.unknown_message(unknown))
    last = "\n".join(f"  {line}" for line in said[-8:])
    raise JostleError(f"`{' '.join(command)}` failed:\n{last}")


def missing_message(lacking: Sequence[str]) -> str:
    """Return a message about the missing packages and how to install them."""
    command = " ".join(install_command(lacking))
    unknown = _unknown(lacking)
    if unknown:
        return debian.unknown_message(unknown)
    if shutil.which("apt-get") is None:
        return (
            f"not installed: {', '.join(lacking)} (Debian's names); install what your "
            "distribution calls them, and give a kernel's source with --source and --sha256"
        )
    return f"not installed: {', '.join(lacking)}; as root, run `{command}`"


def _unknown(packages: Sequence[str]) -> list[str]:
    """Return the packages that the package sources lack; empty if there are no package lists."""

    def is_known(package: str) -> bool:
        command = ["apt-cache", "show", "--no-all-versions", package]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    # Without package lists, as on a new machine, no package is known.
    if shutil.which("apt-cache") is None or not is_known("make"):
        return []
    return [package for package in packages if not is_known(package)]


def compiler() -> str:
    """Return name and version of the compiler."""
    completed = subprocess.run(
        ["gcc", "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return (completed.stdout.splitlines() or ["unknown"])[0]


def _finds_c_library() -> bool:
    command = ["gcc", "-fsyntax-only", "-x", "c", "-"]
    # In angle brackets, because `-include` searches the current folder first.
    completed = subprocess.run(
        command, input=b"#include <stdio.h>\n", capture_output=True, check=False
    )
    return completed.returncode == 0
