"""The kernel backend on other machines: what one lacks, and how it gets the kernel."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jostle.backends.base import Lack
from jostle.errors import InputError
from jostle.foreign_files import SCENARIO_BYTES, read_json
from jostle.kernel_images.images import Image, KernelMissingError, cache_folder, check_machine
from jostle.locked_folders import Partial
from jostle.open_folder import OpenFolder

__all__ = ["KernelNeeds", "Shipment"]


@dataclass(frozen=True)
class Shipment:
    """A kernel that was built on one machine, on its way to others.

    Attributes
    ----------
    folder
        What its folder in the cache of kernels is called.
    facts
        What `build.json` says.
    program
        The kernel.
    """

    folder: str
    facts: dict[str, Any]
    program: bytes

    @classmethod
    def of(cls, image: Image) -> Shipment:
        """Pack a kernel of this machine.

        Raises
        ------
        InputError
            When it is not one that `jostle kernel build` has made.
        """
        try:
            if image.kind != "virtual" or image.path is None:
                raise ValueError
            facts = dict(read_json(image.path.with_name("build.json"), SCENARIO_BYTES))
            if facts["sha256"] != image.digest:
                raise ValueError
            name = f"{facts['version']}-{facts['config_hash']}"
            return cls(name, facts, image.path.read_bytes())
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"only kernels that `jostle kernel build` has made are sent to workers, not "
                f"{image.path or image.kind}: install it on their machines"
            ) from error

    def unpack(self) -> None:
        """Put the kernel into the cache of this machine, unless another is in its place.

        Raises
        ------
        OSError
            When it cannot be written.
        """
        cache = cache_folder()
        if (cache / self.folder / "build.json").exists():
            return
        facts = json.dumps(self.facts, indent=2) + "\n"
        with OpenFolder.at(cache, make=True) as kernels, Partial(kernels, "shipped") as partial:
            partial.content.write_new("linux", self.program, mode=0o777)
            partial.content.write_new("build.json", facts.encode())
            if not kernels.has(self.folder):
                partial.publish(kernels, self.folder)


@dataclass(frozen=True)
class KernelNeeds:
    """What the kernel backend needs of a machine.

    Attributes
    ----------
    image
        The kernel; sent to another machine, the same kernel there.
    identity
        What it is where it was chosen.
    """

    image: Image
    identity: str

    def lacks(self) -> Lack | None:
        """Say what is not there; see `Needs`."""
        try:
            check_machine()
        except KernelMissingError as error:
            return Lack(str(error), can_be_sent=False)
        try:
            here = self.image.identity
        except KernelMissingError as error:
            return Lack(str(error), can_be_sent=self.image.kind == "virtual")
        if here != self.identity:
            why = f"its kernel is {here}, not {self.identity}"
            return Lack(why, can_be_sent=self.image.kind == "virtual")
        return None

    def supply(self) -> Callable[[], None]:
        """Pack the kernel; see `Needs`."""
        return Shipment.of(self.image).unpack
