"""Kernel modules of the user that are congestion controllers, in the user's cache folder.

`jostle setup module` compiles a module for one kernel (`module_build`). Its manifest has the
SHA-256 of that kernel. The structures of another kernel may differ although its version is the
same, and the module would compute wrong numbers there without an error.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jostle.errors import InputError
from jostle.kernel_images.image_paths import Image, cache_folder
from jostle.run_spec import FlowSpec
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.scratch_folder import PartialFolder
from jostle.safe_io.untrusted_files import SCENARIO_BYTES, TABLE_BYTES, read_bytes, read_json

__all__ = [
    "FORMAT", "NAME", "PREFIX", "ControllerModule", "KernelController", "built_modules",
    "is_kernel_controller", "kernel_controller", "name_digest", "publish",
    "refuse_in_simulator", "strings_of",
]  # fmt: skip

FORMAT: Final = "jostle.module/1"
PREFIX: Final = "kernel:"
"""Beginning of the name of a controller that only a kernel has: a user's module, or a controller of
a kernel with a user's changes."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,14}")
"""Names of controllers; Linux limits them to 15 characters (`TCP_CA_NAME_MAX`)."""

_MANIFEST = "module.json"
_MODULE = "module.ko"


def is_kernel_controller(name: str) -> bool:
    """Return whether a controller name refers to a controller that only a kernel has."""
    return name.startswith(PREFIX)


def refuse_in_simulator(flows: Iterable[FlowSpec]) -> None:
    """Raise an error if a flow has a controller that only a kernel has.

    Raises
    ------
    InputError
        The message names the flow.
    """
    for flow in flows:
        name = flow["controller"]["name"]
        if is_kernel_controller(name):
            raise InputError(
                f"flows.{flow['name']}.controller: `{name}` is code inside a Linux kernel, which "
                "the simulator cannot run — run it with --backend kernel"
            )


def name_digest(name: str) -> str:
    """Return the hash by which a run specification identifies the controller ``kernel:NAME``.

    It is a hash of the name, because the module depends on the kernel that runs the specification.
    The hash of the module is a part of the backend's version.
    """
    return hashlib.sha256(f"{PREFIX}{name}".encode()).hexdigest()


@dataclass(frozen=True)
class ControllerModule:
    """A compiled module.

    Attributes
    ----------
    facts
        Content of the manifest.
    content
        All bytes of the module.
    """

    facts: Mapping[str, Any]
    content: bytes

    @property
    def name(self) -> str:
        """Name in scenarios, without the prefix."""
        return str(self.facts["name"])

    @property
    def controller(self) -> str:
        """Name under which the kernel has the controller."""
        return str(self.facts["controller"])

    @property
    def parameters(self) -> Mapping[str, str]:
        """Type of each parameter of the module."""
        return dict(self.facts["parameters"])

    @property
    def kernel_version(self) -> str:
        """Version of the kernel for which it was compiled."""
        return str(self.facts["kernel"]["version"])

    def fits(self, image: Image) -> bool:
        """Return whether it was compiled for a kernel."""
        return bool(self.facts["kernel"]["sha256"] == image.digest)


@dataclass(frozen=True)
class KernelController:
    """A controller ``kernel:NAME`` that the user has allowed; picklable.

    Attributes
    ----------
    name
        Name without the prefix.
    modules
        Modules of that name, for different kernels; empty if it is built into a kernel.
    """

    name: str
    modules: tuple[ControllerModule, ...]

    def digest(self) -> str:
        """Return the hash by which a run specification identifies it."""
        return name_digest(self.name)


def modules_folder() -> Path:
    """Return the folder of modules, in the user's cache folder."""
    return cache_folder().with_name("modules")


def built_modules() -> list[tuple[Path, Mapping[str, Any]]]:
    """Return folder and manifest of all modules in the cache."""
    found: list[tuple[Path, Mapping[str, Any]]] = []
    for file in sorted(modules_folder().glob(f"*/{_MANIFEST}")):
        try:
            facts = read_json(file, SCENARIO_BYTES)
        except (OSError, ValueError):
            continue
        if isinstance(facts, dict) and facts.get("format") == FORMAT:
            found.append((file.parent, facts))
    return found


def kernel_controller(name: str) -> KernelController:
    """Return the modules of a controller, with their contents.

    Raises
    ------
    InputError
        If a module is not the one that was compiled.
    """
    modules = []
    for folder, facts in built_modules():
        if facts["name"] != name:
            continue
        try:
            content = read_bytes(folder / _MODULE, TABLE_BYTES)
        except (OSError, ValueError) as error:
            raise InputError(f"the module {folder / _MODULE} cannot be read: {error}") from error
        if hashlib.sha256(content).hexdigest() != facts["sha256"]:
            raise InputError(
                f"{folder / _MODULE} is not the module that was compiled (its SHA-256 is not the "
                f"one in {_MANIFEST}): `jostle setup module {facts['source']['file']}` makes it "
                "anew"
            )
        modules.append(ControllerModule(facts, content))
    return KernelController(name, tuple(modules))


def publish(module: ControllerModule) -> Path:
    """Move a module to the cache, and return its folder.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    name = f"{module.name}-{module.facts['kernel']['sha256'][:12]}"
    manifest = json.dumps(module.facts, indent=2) + "\n"
    with (
        OpenFolder.at(modules_folder(), make=True) as modules,
        PartialFolder(modules, "module") as partial,
    ):
        partial.content.write_new(_MODULE, module.content)
        partial.content.write_new(_MANIFEST, manifest.encode())
        if modules.has(name):
            # Runs have the content in memory, not the file.
            modules.remove_tree(name)
        partial.publish(modules, name)
    return modules_folder() / name


def strings_of(content: bytes) -> dict[str, list[str]]:
    """Return the entries of a module's section `.modinfo`, such as `license` and `parmtype`.

    Raises
    ------
    ValueError
        If it is not a module.
    """
    found: dict[str, list[str]] = {}
    try:
        for entry in _section(content, b".modinfo").split(b"\0"):
            key, separator, value = entry.decode("utf-8", "replace").partition("=")
            if separator:
                found.setdefault(key, []).append(value)
    except struct.error:
        raise ValueError("it is no kernel module") from None
    return found


def _section(content: bytes, name: bytes) -> bytes:
    """Return a section of an ELF file (elf(5), 64 bits)."""
    (table,) = struct.unpack_from("<Q", content, 40)
    size, count, names = struct.unpack_from("<HHH", content, 58)

    def header(number: int) -> tuple[int, int, int]:
        name_at, _, _, _, offset, length = struct.unpack_from(
            "<IIQQQQ", content, table + number * size
        )
        return name_at, offset, length

    _, names_at, _ = header(names)
    for number in range(count):
        name_at, offset, length = header(number)
        if content[names_at + name_at :].startswith(name + b"\0"):
            return content[offset : offset + length]
    raise ValueError(f"it has no section {name.decode()}")
