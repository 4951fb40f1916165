"""Requirements of the kernel backend on other machines, and transfer of the kernel."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jostle.backends.base import MissingRequirement
from jostle.errors import InputError
from jostle.kernel_images.image_paths import Image, KernelMissingError, cache_folder, check_machine
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.scratch_folder import PartialFolder
from jostle.safe_io.untrusted_files import SCENARIO_BYTES, read_json

__all__ = ["KernelNeeds", "KernelTransfer"]


@dataclass(frozen=True)
class KernelTransfer:
    """A kernel built on one machine, packed for transfer to others.

    Attributes
    ----------
    folder
        Name of its folder in the kernel cache.
    facts
        Content of `build.json`.
    program
        The kernel executable.
    """

    folder: str
    facts: dict[str, Any]
    program: bytes

    @classmethod
    def of(cls, image: Image) -> KernelTransfer:
        """Pack a kernel of this machine.

        Raises
        ------
        InputError
            If it was not built by `jostle setup kernel`.
        """
        try:
            if image.kind != "virtual" or image.path is None:
                raise ValueError
            facts = dict(read_json(image.path.with_name("build.json"), SCENARIO_BYTES))
            if facts["sha256"] != image.digest:
                raise ValueError
            return cls(image.path.parent.name, facts, image.path.read_bytes())
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"only kernels that `jostle setup kernel` has made are sent to workers, not "
                f"{image.path or image.kind}: install it on their machines"
            ) from error

    def unpack(self) -> None:
        """Install the kernel in the cache of this machine, unless it already exists.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        cache = cache_folder()
        if (cache / self.folder / "build.json").exists():
            return
        facts = json.dumps(self.facts, indent=2) + "\n"
        with (
            OpenFolder.at(cache, make=True) as kernels,
            PartialFolder(kernels, "shipped") as partial,
        ):
            partial.content.write_new("linux", self.program, mode=0o777)
            partial.content.write_new("build.json", facts.encode())
            if not kernels.has(self.folder):
                partial.publish(kernels, self.folder)


@dataclass(frozen=True)
class KernelNeeds:
    """Requirements of the kernel backend on a machine.

    Attributes
    ----------
    image
        The kernel. Unpickled on another machine, it refers to the same kernel there.
    identity
        Identity of the kernel on the machine where it was chosen.
    """

    image: Image
    identity: str

    def lacks(self) -> MissingRequirement | None:
        """Return the missing requirement; see `WorkerRequirements`."""
        try:
            check_machine()
        except KernelMissingError as error:
            return MissingRequirement(str(error), can_be_sent=False)
        try:
            here = self.image.identity
        except KernelMissingError as error:
            return MissingRequirement(str(error), can_be_sent=self.image.kind == "virtual")
        if here != self.identity:
            why = f"its kernel is {here}, not {self.identity}"
            return MissingRequirement(why, can_be_sent=self.image.kind == "virtual")
        return None

    def supply(self) -> Callable[[], None]:
        """Pack the kernel; see `WorkerRequirements`."""
        return KernelTransfer.of(self.image).unpack
