"""Congestion controllers of a RunSpec in the words of the kernel: names and module parameters.

A module's parameters belong to the kernel, not to a connection: all flows of a run that use a
controller share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.backends.kernel.problems import Problem, flow_key
from jostle.kernel.config import CONTROLLERS as MODULES

NAMES = ("reno", *MODULES)
"""Controllers that Linux has."""

LINUX_NOW = "6.1"
"""The flavour of a controller that means: as the kernel that runs has it."""

NEEDS_ECN = ("dctcp",)
"""Those of them that have to be at both ends (`TCP_CONG_NEEDS_ECN`)."""

Flow = Mapping[str, Any]
Defaults = Mapping[str, Mapping[str, Any]]
"""Controller or slow start → parameter → default."""

_HYSTART_DETECT = {"train": "1", "delay": "2", "both": "3"}


class _NoValueError(ValueError):
    """The kernel's parameter cannot take this value."""


def _number(value: Any) -> str:
    return str(int(value))


def _whole(unit_ns: int, unit: str) -> Callable[[Any], str]:
    def convert(value_ns: Any) -> str:
        if value_ns % unit_ns:
            raise _NoValueError(f"{value_ns} ns: Linux takes whole {unit}")
        return str(value_ns // unit_ns)

    return convert


_seconds = _whole(1_000_000_000, "s")
_milliseconds = _whole(1_000_000, "ms")
_microseconds = _whole(1_000, "µs")


@dataclass(frozen=True)
class _Module:
    """What can be told to a controller's module.

    Attributes
    ----------
    name
        Of the module.
    parameters
        Parameter of the RunSpec → the module's, and how its value is written there.
    """

    name: str
    parameters: Mapping[str, tuple[str, Callable[[Any], str]]] = field(default_factory=dict)


def _numbers(*names: str) -> dict[str, tuple[str, Callable[[Any], str]]]:
    return {name: (name, _number) for name in names}


# bic_scale of cubic, window of cdg and all of illinois can be set only while a module is loaded.
_PARAMETERS: Mapping[str, _Module] = {
    "cubic": _Module(
        "tcp_cubic",
        _numbers("fast_convergence", "beta", "initial_ssthresh", "tcp_friendliness"),
    ),
    "bic": _Module(
        "tcp_bic",
        _numbers("fast_convergence", "max_increment", "low_window", "beta", "initial_ssthresh")
        | _numbers("smooth_part"),
    ),
    "cdg": _Module(
        "tcp_cdg",
        _numbers("backoff_beta", "backoff_factor", "hystart_detect")
        | _numbers("use_ineff", "use_shadow", "use_tolerance"),
    ),
    "dctcp": _Module("tcp_dctcp", _numbers("dctcp_shift_g", "dctcp_alpha_on_init")),
    "htcp": _Module("tcp_htcp", _numbers("use_rtt_scaling", "use_bandwidth_switch")),
    "hybla": _Module("tcp_hybla", {"rtt0": ("rtt0", _milliseconds)}),
    "nv": _Module(
        "tcp_nv",
        _numbers("nv_pad", "nv_min_cwnd") | {"nv_reset_period": ("nv_reset_period", _seconds)},
    ),
    "vegas": _Module("tcp_vegas", _numbers("alpha", "beta", "gamma")),
}

_HYSTART = _Module(
    "tcp_cubic",
    {
        "detect": ("hystart_detect", lambda name: _HYSTART_DETECT[name]),
        "low_window": ("hystart_low_window", _number),
        "ack_delta": ("hystart_ack_delta_us", _microseconds),
    },
)


def module_parameters(
    flows: Sequence[Flow], defaults: Defaults
) -> tuple[dict[str, str], list[Problem]]:
    """Values of module parameters (`tcp_cubic/hystart`), and what cannot be expressed by them."""
    values: dict[str, str] = {}
    owners: dict[str, str] = {}
    problems: list[Problem] = []
    for flow in flows:
        for key, name, value in _flow_parameters(flow, defaults, problems):
            if values.setdefault(name, value) != value:
                text = (
                    f"all flows of a run share the kernel's {name}: {value} here, "
                    f"{values[name]} for {owners[name]}; the simulator can have both"
                )
                problems.append(Problem(key, text))
            owners.setdefault(name, flow["name"])
    return values, problems


def _flow_parameters(
    flow: Flow, defaults: Defaults, problems: list[Problem]
) -> Iterator[tuple[str, str, str]]:
    """Key, module parameter and value of everything that a flow asks of its controller."""
    controller = flow["controller"]
    name: str = controller["name"]
    key = flow_key(flow, "controller")
    if ":" in name:
        text = f"`{name}` is Python code, which a kernel cannot run; the simulator can"
        problems.append(Problem(key, text))
        return
    if name not in NAMES:
        text = f"Linux has no controller `{name}`: {', '.join(sorted(NAMES))}; the simulator has it"
        problems.append(Problem(key, text))
        return
    module = _PARAMETERS.get(name, _Module(f"tcp_{name}"))
    given = dict(controller["parameters"])
    if name == "cubic":
        problems.extend(_cubic_problems(flow))
        given.pop("hystart", None)
        given.pop("linux", None)
    yield from _translated(key, module, given, defaults.get(name, {}), problems)
    yield from _slow_start(flow, module, defaults, problems)


def _translated(
    key: str,
    module: _Module,
    given: Mapping[str, Any],
    defaults: Mapping[str, Any],
    problems: list[Problem],
) -> Iterator[tuple[str, str, str]]:
    for parameter, value in given.items():
        at = f"{key}.{parameter}"
        known = module.parameters.get(parameter)
        if known is None:
            if value != defaults.get(parameter):
                text = "the kernel's module has no such parameter that could be set; "
                problems.append(Problem(at, f"{text}the simulator can"))
            continue
        try:
            yield at, f"{module.name}/{known[0]}", known[1](value)
        except _NoValueError as error:
            problems.append(Problem(at, str(error)))


def _slow_start(
    flow: Flow, module: _Module, defaults: Defaults, problems: list[Problem]
) -> Iterator[tuple[str, str, str]]:
    """HyStart is a part of cubic; every other controller has its own slow start or Reno's."""
    slow_start = flow["slow_start"]
    key = flow_key(flow, "slow_start")
    name = "standard" if slow_start is None else slow_start["name"]
    cubic = flow["controller"]["name"] == "cubic"
    if name not in (("standard", "hystart") if cubic else ("standard",)):
        has = "`standard` or `hystart`" if cubic else "its own"
        text = f"`{name}`: in Linux {flow['controller']['name']} has {has}; the simulator can"
        problems.append(Problem(key, text))
        return
    if not cubic:
        return
    on = name == "hystart" and flow["controller"]["parameters"].get("hystart", True)
    yield key, f"{module.name}/hystart", str(int(on))
    if on and slow_start is not None:
        given = dict(slow_start["parameters"])
        linux = given.pop("linux", LINUX_NOW)
        if linux not in (LINUX_NOW, "as the controller"):
            problems.append(_other_kernel(f"{key}.linux", linux))
        standard = defaults.get("hystart", {})
        yield from _translated(key, _HYSTART, given, standard, problems)


def _cubic_problems(flow: Flow) -> Iterator[Problem]:
    parameters = flow["controller"]["parameters"]
    key = flow_key(flow, "controller")
    linux = parameters.get("linux", LINUX_NOW)
    if linux != LINUX_NOW:
        yield _other_kernel(f"{key}.linux", linux)
    # `cubictcp_register` derives the friendly region's factor from beta once and for all.
    if parameters.get("beta", 717) != 717 and parameters.get("tcp_friendliness", True):
        text = "with tcp_friendliness Linux takes beta when its module is loaded, 717; "
        yield Problem(f"{key}.beta", f"{text}the simulator can")


def _other_kernel(key: str, linux: str) -> Problem:
    text = f'"{linux}": the kernel that runs is the one that is judged; write "{LINUX_NOW}" for it'
    return Problem(key, f"{text}, or use the simulator")


def defaults_of(registry: Mapping[str, Any]) -> Defaults:
    """Defaults of all controllers and slow starts, from the engine's registry."""
    rows = [*registry.get("controllers", []), *registry.get("slow_starts", [])]
    return {
        row["name"]: {p["name"]: _default(p) for p in row.get("parameters", [])} for row in rows
    }


def _default(parameter: Mapping[str, Any]) -> Any:
    names = ("default", "default_ns", "default_bytes", "default_bps")
    return next((parameter[name] for name in names if name in parameter), None)
