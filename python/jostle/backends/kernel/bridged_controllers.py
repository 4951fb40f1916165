"""Controllers of jostle inside Linux, by the kernel module of `jostle.kernel_images.bridge`.

They are registered once per flow, with the parameters and the random stream that the simulator
gives to the flow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from jostle.backends.kernel.arrivals import is_many
from jostle.backends.kernel.unsupported import Problem, flow_key
from jostle.kernel_images.bridge import MODULE_NAME
from jostle.run_spec import FlowSpec

__all__ = ["ACCECN", "FILE", "MODULE_NAME", "PREFIX", "REGISTER", "problems", "registration"]

FILE: Final = f"{MODULE_NAME}.ko"
"""File name of the module in the folder of the job."""
PREFIX: Final = "jostle"
"""Name of the first registered controller in the kernel without its number, 0."""
REGISTER: Final = f"/sys/module/{MODULE_NAME}/parameters/register"
"""File of the guest that takes registrations."""

ACCECN: Final = ("prague",)
"""Controllers that need AccECN."""
_QUICK_START: Final = "quickstart"
_SIMULATOR: Final = "the simulator can"
# `/` is a part of Base64 and of the names of random streams.
_PLAIN: Final = "/+=:,"


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
    words = [f"controller={_escaped(flow['controller']['name'])}"]
    for what, algorithm in (
        ("controller", flow["controller"]),
        ("slow_start", flow["slow_start"]),
        ("memory", flow["memory"]),
    ):
        if algorithm is None:
            continue
        if what != "controller":
            words.append(f"{what}={_escaped(algorithm['name'])}")
        parameters: Mapping[str, Any] = algorithm["parameters"]
        words += [f"{what}.{name}={_value(value)}" for name, value in parameters.items()]
    words += [f"seed={seed}", f"stream={_escaped('flow/' + flow['name'])}"]
    return f"{flow['peer']} {int(is_many(flow))} {' '.join(words)}\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return f"b{int(value)}"
    if isinstance(value, int):
        return f"i{value}"
    if isinstance(value, float):
        return f"n{value!r}"
    return f"t{_escaped(value)}"


def _escaped(text: str) -> str:
    return quote(text, safe=_PLAIN)
