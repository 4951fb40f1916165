"""Controllers of jostle inside Linux, by the kernel module of `jostle.kernel_images.bridge`.

They are registered once per flow, with the parameters and the random stream that the simulator
gives to the flow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from jostle.backends.kernel.arrivals import is_many
from jostle.backends.kernel.unsupported import Problem, flow_key
from jostle.kernel_images.bridge import MODULE_NAME
from jostle.run_spec import FlowSpec
from jostle.scenario.python_controllers.source_files import DIGEST, is_crate_controller

__all__ = [
    "ACCECN", "MODULE_NAME", "file_name", "kernel_name", "module_of", "problems", "registration",
    "registrations",
]  # fmt: skip

ACCECN: Final = ("prague",)
"""Controllers that need AccECN."""
_QUICK_START: Final = "quickstart"
_SIMULATOR: Final = "the simulator can"


def module_of(flow: FlowSpec) -> str:
    """Return the name of the kernel module with a flow's controller.

    Each crate has a module. Linux limits the names of controllers to 15 characters, which
    begin with the name of the module (`kernel_name`).
    """
    controller = flow["controller"]
    if not is_crate_controller(controller["name"]):
        return MODULE_NAME
    return f"jk_{str(controller['parameters'][DIGEST])[:8]}"


def kernel_name(module: str, number: int) -> str:
    """Return the kernel's name of a registered controller of a module.

    No module of a user has such a name, because of the full stop (`controller_modules.NAME`).
    """
    return f"{module}.{number}"


def file_name(module: str) -> str:
    """Return the name of a module's file in the folder of the job."""
    return f"{module}.ko"


def registrations(module: str, flows: Sequence[FlowSpec], seed: int) -> dict[str, Any]:
    """Return a module for the guest, and a line for each of its controllers."""
    return {
        "module": {"file": file_name(module), "name": module, "arguments": ""},
        "register": f"/sys/module/{module}/parameters/register",
        "lines": [registration(flow, seed) for flow in flows],
    }


def problems(flow: FlowSpec) -> Iterator[Problem]:
    """Yield what the transport of Linux cannot give to a flow's controller."""
    if flow["controller"]["name"] in ACCECN:
        text = "counted ECN feedback (AccECN), which Linux has from 7.0 on; "
        key = flow_key(flow, "controller")
        yield Problem(key, f"`{flow['controller']['name']}` needs {text}{_SIMULATOR}")
    slow_start = flow["slow_start"]
    if slow_start is not None and slow_start["name"] == _QUICK_START:
        text = f"`{_QUICK_START}`: the SYN of Linux requests no rate; {_SIMULATOR}"
        yield Problem(flow_key(flow, "slow_start"), text)


def registration(flow: FlowSpec, seed: int) -> str:
    """Return the line that registers a flow's controller.

    `kernel_images/controller_module/tcp_jostle.c` and `crates/kernel-bridge/src/registration.rs`
    read it.
    """
    from jostle import _core

    line = _core.kernel_registration(json.dumps(flow), seed)
    return f"{flow['peer']} {int(is_many(flow))} {line}\n"
