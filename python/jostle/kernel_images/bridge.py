"""The controllers of jostle as a kernel module.

Their code in Rust is one object for all kernels. Wheels contain it; a source checkout links it with
cargo, so that it always has the present sources. The module around it is compiled from C for each
kernel, once.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jostle.errors import InputError
from jostle.kernel_images.image_paths import Image, cache_folder
from jostle.kernel_images.module_build import compile_module
from jostle.kernel_images.process_group import run_to_end
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.scratch_folder import PartialFolder, temporary_folder
from jostle.safe_io.untrusted_files import TABLE_BYTES, read_bytes

__all__ = ["MODULE_NAME", "BridgeMissingError", "BridgeModule", "bridge_module", "bridge_object"]

MODULE_NAME: Final = "jostle"
"""Name of the module in the kernel."""

_PACKAGED = Path(__file__).with_name("bridge.o")
_LINK = Path("crates/kernel-bridge/link.sh")
_CHECKOUT = Path(__file__).parents[3]
_SHOWN_LINES = 12
_SOURCES = Path(__file__).with_name("controller_module")
_FILE = "jostle.ko"


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


@dataclass(frozen=True)
class BridgeModule:
    """The controllers of jostle for one kernel.

    Attributes
    ----------
    name
        Name in the kernel.
    content
        All bytes of the module.
    object_sha256
        Hash of the object in it, which has the controllers.
    kernel_sha256
        Hash of the kernel for which it was compiled.
    """

    name: str
    content: bytes
    object_sha256: str
    kernel_sha256: str

    @functools.cached_property
    def identity(self) -> str:
        """Hashes of the object and the module, on which results depend."""
        return (
            f"{self.name}-{self.object_sha256[:12]}-{hashlib.sha256(self.content).hexdigest()[:12]}"
        )


@functools.cache
def bridge_module(
    image: Image, name: str = MODULE_NAME, content: bytes | None = None
) -> BridgeModule:
    """Return the module for a kernel, which is compiled at the first use.

    Parameters
    ----------
    name
        Name of the module in the kernel.
    content
        Object with the controllers of a user's crate. Default: jostle's.

    Raises
    ------
    BridgeMissingError
        If there is no object, and it cannot be linked.
    InputError
        If the module cannot be compiled. The message says what is missing.
    """
    if content is None:
        content = bridge_object()
    object_sha256 = hashlib.sha256(content).hexdigest()
    key = hashlib.sha256()
    for part in (name, object_sha256, image.digest):
        key.update(f"{part}\n".encode())
    for path in _sources():
        key.update(path.name.encode() + b"\0" + path.read_bytes())
    place = f"{image.version}-{key.hexdigest()[:12]}"
    folder = cache_folder().with_name("bridges")
    try:
        module = read_bytes(folder / place / _FILE, TABLE_BYTES)
    except OSError:
        module = _compiled(name, content, image)
        _publish(folder, place, module)
    return BridgeModule(name, module, object_sha256, image.digest)


def _sources() -> list[Path]:
    return sorted(path for path in _SOURCES.iterdir() if path.is_file())


def _compiled(name: str, content: bytes, image: Image) -> bytes:
    with temporary_folder("bridge") as folder:
        for path in _sources():
            shutil.copyfile(path, folder / path.name)
        (folder / "bridge.o_shipped").write_bytes(content)
        build = folder / "Kbuild"
        named = build.read_text().replace(f"module := {MODULE_NAME}\n", f"module := {name}\n")
        build.write_text(named)
        return compile_module(folder, image, lambda _line: None).content


def _publish(folder: Path, name: str, module: bytes) -> None:
    with (
        OpenFolder.at(folder, make=True) as bridges,
        PartialFolder(bridges, "bridge") as partial,
    ):
        partial.content.write_new(_FILE, module)
        if not bridges.has(name):
            partial.publish(bridges, name)
