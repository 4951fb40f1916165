"""Tries a compiled module: registers it in a guest, and runs one short flow with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jostle.backends.kernel.backend import KernelBackend
from jostle.backends.kernel.kernel_controllers import LoadedModule
from jostle.backends.kernel.runner import PROGRAM, KernelRunError, run_job
from jostle.kernel_images import Image
from jostle.kernel_images.config import expected
from jostle.kernel_images.controller_modules import (
    NAME,
    PREFIX,
    ControllerModule,
    KernelController,
)
from jostle.kernel_images.module_build import Compiled, ModuleError
from jostle.safe_io.code_consent import admit
from jostle.scenario import Scenario

__all__ = ["SETUP", "Trial", "try_out"]

SETUP: Final = "10 Mbit/s, 40 ms, a buffer of 1 BDP, 5 s"
_SCENARIO: Final = {
    "duration": "5 s",
    "bottleneck": {"rate": "10 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "flows": [{"name": "trial", "controller": "reno", "rtt": "40 ms"}],
}
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Trial:
    """Result of a trial.

    Attributes
    ----------
    module
        The module, with its complete manifest.
    flow
        Measures of the flow over the whole run.
    """

    module: ControllerModule
    flow: Mapping[str, Any]


def try_out(compiled: Compiled, image: Image, name: str | None) -> Trial:
    """Register a module in a guest, and run a flow of five seconds with it.

    Parameters
    ----------
    name
        Name in scenarios; by default the name that the module registers.

    Raises
    ------
    ModuleError
        If the kernel refuses it, it registers nothing, or no flow can run.
    """
    what = str(compiled.facts["module"])
    controllers = _registered(compiled, image, what)
    if not controllers:
        raise ModuleError(
            f"{what} was loaded and registered no congestion control: call "
            "tcp_register_congestion_control from its module_init function, and return its result"
        )
    if name is None and len(controllers) > 1:
        raise ModuleError(f"{what} registers {', '.join(controllers)}: choose one with --name")
    if name is not None and len(controllers) > 1 and name not in controllers:
        raise ModuleError(f"{what} registers {', '.join(controllers)}, not --name {name}")
    controller = name if name in controllers else controllers[0]
    module = compiled.named(name or controller, controller, controllers)
    if not NAME.fullmatch(module.name):
        raise ModuleError(f"`{module.name}` cannot be written as {PREFIX}NAME: give a --name")
    return Trial(module, _short_flow(module, image))


def _registered(compiled: Compiled, image: Image, what: str) -> list[str]:
    """Return the names of the controllers that a module registers."""
    loaded = LoadedModule(compiled.named(what, "", []), {})
    files = {loaded.file: compiled.content}
    program = f"{PROGRAM.name}.registration"
    try:
        with run_job(
            {"own_modules": [loaded.job()]}, files, image,
            memory_mb=256, seed=1, timeout_s=_TIMEOUT_S, cancelled=None, modules=[what],
            program=program,
        ) as (folder, _):  # fmt: skip
            found: list[str] = json.loads((folder / "events.json").read_bytes())["controllers"]
            return found
    except KernelRunError as error:
        text = str(error)
        if "already has" in text:
            text += f"; names of the kernel: {', '.join(expected())}"
        raise ModuleError(text) from error


def _short_flow(module: ControllerModule, image: Image) -> Mapping[str, Any]:
    """Return the measures of a short flow."""
    admit(KernelController(module.name, (module,)))
    spec = Scenario.from_dict(_SCENARIO).plan(repeats=1).runs[0].spec
    spec["flows"][0]["controller"] = {"name": f"{PREFIX}{module.name}", "parameters": {}}
    spec["flows"][0]["slow_start"] = None
    try:
        record = KernelBackend(image=image).run(spec)
    except KernelRunError as error:
        raise ModuleError(f"a short flow ({SETUP}) failed: {error}") from error
    flow: Mapping[str, Any] = record.summary["flows"][0]["phases"]["overall"]
    return flow
