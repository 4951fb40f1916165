"""The object with the controllers of jostle for a kernel module.

Wheels contain it. A source checkout links it with cargo, so that it always has the present sources.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from jostle.errors import InputError
from jostle.kernel_images.process_group import run_to_end
from jostle.safe_io.scratch_folder import temporary_folder

_PACKAGED = Path(__file__).with_name("bridge.o")
_LINK = Path("crates/kernel-bridge/link.sh")
_CHECKOUT = Path(__file__).parents[3]
_SHOWN_LINES = 12


class BridgeMissingError(InputError):
    """There is no object, and it cannot be linked."""


def bridge_object(checkout: Path = _CHECKOUT, packaged: Path = _PACKAGED) -> bytes:
    """Return the object.

    Parameters
    ----------
    checkout
        Root of the source checkout.
    packaged
        The object of an installed wheel.

    Raises
    ------
    BridgeMissingError
        If the package does not contain it and it cannot be linked.
    """
    link = checkout / _LINK
    if packaged.is_file():
        return packaged.read_bytes()
    if not link.is_file():
        raise BridgeMissingError(
            "this package has no controllers for kernel modules (bridge.o): wheels for Linux on "
            "x86-64 have them, and a source checkout links them with cargo"
        )
    if shutil.which("cargo") is None:
        raise BridgeMissingError(
            f"{link} compiles the controllers for a kernel module with cargo, which is not "
            "installed: see https://rustup.rs, or install a wheel of jostle"
        )
    with temporary_folder("bridge") as folder:
        file = folder / "bridge.o"
        lines: list[str] = []
        status = run_to_end(["sh", str(link), str(file)], lines.append, environment=os.environ)
        if status != 0:
            listed = "\n".join(f"  {line}" for line in lines[-_SHOWN_LINES:])
            raise BridgeMissingError(f"{link} failed:\n{listed}")
        return file.read_bytes()
