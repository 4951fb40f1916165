"""Controllers ``kernel:NAME``: modules of the user, and controllers of a changed kernel."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from jostle.backends.kernel.unsupported import Problem, flow_key
from jostle.kernel_images import Image, headers
from jostle.kernel_images.config import CONTROLLERS
from jostle.kernel_images.controller_modules import (
    PREFIX,
    ControllerModule,
    KernelController,
    is_kernel_controller,
    name_digest,
)
from jostle.kernel_images.image_paths import BuiltKernel, built
from jostle.kernel_images.source_patches import WITHOUT_HOOKS
from jostle.run_spec import FlowSpec, RunSpec
from jostle.safe_io.code_consent import admitted, require_consent

__all__ = ["IN_VIRTUAL_TIME", "KernelOffer", "LoadedModule", "modules_of"]

IN_VIRTUAL_TIME: Final = "run it with --backend kernel, in virtual time"


@dataclass(frozen=True)
class LoadedModule:
    """A module that a run loads.

    Attributes
    ----------
    module
        The module.
    arguments
        Values of its parameters, as the kernel reads them when it loads the module.
    """

    module: ControllerModule
    arguments: Mapping[str, str]

    @property
    def file(self) -> str:
        """File name in the folder of the job."""
        return f"{self.module.name}.ko"

    def job(self) -> dict[str, str]:
        """Return the guest's instructions to load it."""
        words = (
            f'{name}="{value}"' if " " in value else f"{name}={value}"
            for name, value in self.arguments.items()
        )
        return {"file": self.file, "name": self.module.name, "arguments": " ".join(words)}


class KernelOffer:
    """The controllers that a kernel has for flows with ``kernel:NAME``.

    Parameters
    ----------
    image
        The kernel; None for one without such controllers.
    prefers_jostle
        Whether flows run jostle's code also if Linux has the controller.
    has_bridge
        Whether the module with jostle's controllers is compiled already.
    """

    def __init__(
        self,
        image: Image | None = None,
        *,
        prefers_jostle: bool = False,
        has_bridge: bool = False,
    ) -> None:
        self._image = image
        self.prefers_jostle = prefers_jostle
        self._has_bridge = has_bridge

    @functools.cached_property
    def changed(self) -> BuiltKernel | None:
        """The kernel, if it has changes of the user."""
        if self._image is None:
            return None
        mine = (one for one in built() if one.name and one.image.path == self._image.path)
        return next(mine, None)

    @functools.cached_property
    def without_jostle(self) -> str | None:
        """Why jostle's controllers cannot run here, empty in real time; None if they can."""
        if self._image is None or self._image.kind != "virtual" or self._image.path is None:
            return ""
        if self.changed is not None and WITHOUT_HOOKS in self.changed.facts["left_out"]:
            where = f"the source of the kernel {self.changed.name}"
            return f"{where} has no place for the {WITHOUT_HOOKS}"
        if not self._has_bridge and not self._image.path.with_name(headers.FILE).is_file():
            where = f"beside the kernel {self._image.path}"
            return f"{headers.FILE}, with which jostle's are compiled, is not {where}"
        return None

    def plain_problem(self, flow: FlowSpec) -> Problem | None:
        """Return why a flow cannot have a plain name of Linux on this kernel."""
        name = flow["controller"]["name"]
        if self.changed is None or name not in {"reno", *CONTROLLERS}:
            return None
        text = f"`{name}` is Linux's own, and the kernel {self.changed.name} has changes of yours: "
        return Problem(
            flow_key(flow, "controller"), f'{text}write "{PREFIX}{name}" for what it has'
        )

    def name_of(self, flow: FlowSpec) -> str | Problem:
        """Return the kernel's name of a flow's controller, or why the kernel does not have it."""
        name = _name(flow)
        module = self.module(flow)
        if module is not None:
            return module.controller
        key = flow_key(flow, "controller")
        if self._image is None or self._image.kind != "virtual":
            return Problem(key, f"`{PREFIX}{name}` is for kernels of jostle: {IN_VIRTUAL_TIME}")
        if self.changed is not None:
            has = self.changed.facts["controllers"]
            if name in has:
                return name
            left_out = ", ".join(self.changed.facts["left_out"]) or "nothing"
            text = f"the kernel {self.changed.name} has no controller `{name}`: there is "
            return Problem(key, f"{text}{', '.join(has)}; left out of it was {left_out}")
        if name in {"reno", *CONTROLLERS}:
            return Problem(key, f'`{name}` is Linux\'s own here, and no module: write "{name}"')
        others = [module.kernel_version for module in _known(name).modules]
        version = self._image.version
        text = f"there is no module `{name}` for this kernel, Linux {version}"
        if others:
            text += f", only for {', '.join(others)} of another build"
        option = "" if version.startswith("6.1.") else f" --version {version}"
        return Problem(key, f"{text}: run `jostle setup module FILE.c --name {name}{option}`")

    def module(self, flow: FlowSpec) -> ControllerModule | None:
        """Return the module of a flow's controller for this kernel.

        Raises
        ------
        ConsentError
            If the user has not allowed the controller.
        """
        if self._image is None or self._image.kind != "virtual":
            return None
        modules = _known(_name(flow)).modules
        return next((module for module in modules if module.fits(self._image)), None)

    def arguments(self, flow: FlowSpec, problems: list[Problem]) -> dict[str, str]:
        """Return the parameters of a flow's controller as the kernel reads them."""
        module = self.module(flow)
        key = flow_key(flow, "controller")
        found: dict[str, str] = {}
        for name, value in flow["controller"]["parameters"].items():
            known = None if module is None else module.parameters
            if known is not None and name not in known:
                near = difflib.get_close_matches(name, known, 1) or sorted(known)
                text = f"the module has no such parameter: {', '.join(near) or 'it has none'}"
                problems.append(Problem(f"{key}.{name}", text))
            elif isinstance(value, float):
                text = f"{value}: parameters of kernel modules are whole numbers or texts"
                problems.append(Problem(f"{key}.{name}", text))
            elif isinstance(value, str) and any(c in '"\\' or not c.isprintable() for c in value):
                problems.append(Problem(f"{key}.{name}", "the kernel cannot read this text"))
            else:
                found[name] = str(int(value)) if isinstance(value, bool) else str(value)
        return found


def modules_of(spec: RunSpec, image: Image) -> Iterator[LoadedModule]:
    """Yield the modules that a run loads; its flows must have no problems."""
    offer = KernelOffer(image)
    seen = set()
    for flow in spec["flows"]:
        if not is_kernel_controller(flow["controller"]["name"]):
            continue
        module = offer.module(flow)
        if module is not None and module.name not in seen:
            seen.add(module.name)
            yield LoadedModule(module, offer.arguments(flow, []))


def _name(flow: FlowSpec) -> str:
    name: str = flow["controller"]["name"]
    return name.removeprefix(PREFIX)


def _known(name: str) -> KernelController:
    """Return an allowed controller.

    Raises
    ------
    ConsentError
        If the user has not allowed it. Scenarios with such controllers are rejected earlier, but
        specifications that were written by hand or read from a store are checked here.
    """
    code = admitted(name_digest(name))
    if not isinstance(code, KernelController):
        require_consent(f"the kernel module {name}", allow_code=False)
    assert isinstance(code, KernelController)
    return code
