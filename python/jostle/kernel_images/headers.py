"""Headers of a built kernel, against which modules are compiled.

They are the part of the source tree that a module's build reads, with the programs that the build
runs. They belong to one build: a module for another configuration would read other structures.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from jostle.errors import JostleError
from jostle.kernel_images.process_group import run_to_end

FILE = "headers.tar.xz"
"""Name of the archive in the folder of a kernel."""

_FILES = (
    "Makefile", "Kbuild", ".config", "Module.symvers", "include", "scripts",
    "arch/um/Makefile*", "arch/um/include", "arch/um/scripts",
    "arch/x86/Makefile.um", "arch/x86/include",
    "arch/x86/um/Makefile", "arch/x86/um/asm", "arch/x86/um/shared",
)  # fmt: skip


def pack(tree: Path, archive: Path, environment: dict[str, str]) -> None:
    """Write the headers of a compiled tree, after `make linux` and `make modules_prepare`.

    Raises
    ------
    JostleError
        If the archive cannot be written.
    """
    # `make linux` names the list of exported symbols differently than a build with modules does.
    shutil.copyfile(tree / "vmlinux.symvers", tree / "Module.symvers")
    names = sorted(
        path.relative_to(tree).as_posix() for pattern in _FILES for path in tree.glob(pattern)
    )
    # xz at its default level takes 40 s for 62 MB, and saves 1 MB.
    _tar(
        ["--create", "--xz", f"--file={archive}", f"--directory={tree}", *names],
        {**environment, "XZ_OPT": "-2"},
    )


def unpack(archive: Path, folder: Path, environment: dict[str, str]) -> None:
    """Extract the headers to an empty folder.

    Raises
    ------
    JostleError
        If the archive is damaged.
    """
    _tar(["--extract", f"--file={archive}", f"--directory={folder}"], environment)


def _tar(arguments: list[str], environment: dict[str, str]) -> None:
    said: list[str] = []
    command = ["tar", "--force-local", "--no-same-owner", *arguments]
    status = run_to_end(command, said.append, environment=environment)
    if status != 0:
        last = "; ".join(said[-3:]) or f"tar ended with status {status}"
        raise JostleError(f"the kernel's headers cannot be packed or unpacked: {last}")
