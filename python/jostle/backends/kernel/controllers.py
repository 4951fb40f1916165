"""Congestion controllers of a RunSpec as kernel names and module parameters.

Module parameters are global to the kernel: all flows of a run that use a module share them.
Therefore kernels built by jostle contain cubic twice, cubic of Linux 4.15 twice, and also BBR of
Linux 4.15.

In virtual time, a flow runs Linux's code if Linux has the controller with all of the flow's
settings, and otherwise jostle's, inside the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.backends.kernel import bridged_controllers
from jostle.backends.kernel.kernel_controllers import IN_VIRTUAL_TIME, KernelOffer
from jostle.backends.kernel.unsupported import Problem, flow_key
from jostle.kernel_images import Kind
from jostle.kernel_images.config import CONTROLLERS as MODULES
from jostle.kernel_images.controller_modules import is_kernel_controller
from jostle.run_spec import FlowSpec
from jostle.scenario.python_controllers.source_files import is_crate_controller

NAMES = ("reno", *MODULES)
"""Controllers available in Linux."""

LINUX_NOW = "6.1"
"""Value of `linux` for a controller as implemented in the running kernel."""

NEEDS_ECN = ("dctcp",)
"""Controllers that must be used at both ends (`TCP_CONG_NEEDS_ECN`)."""

Flow = FlowSpec
Defaults = Mapping[str, Mapping[str, Any]]
"""Controller or slow start → parameter → default."""

_HYSTART_DETECT = {"train": "1", "delay": "2", "both": "3"}


class _NoValueError(ValueError):
    """The kernel's parameter does not support this value."""


def _number(value: Any) -> str:
    return str(int(value))


def _integer_units(unit_ns: int, unit: str) -> Callable[[Any], str]:
    def convert(value_ns: Any) -> str:
        if value_ns % unit_ns:
            raise _NoValueError(f"{value_ns} ns: Linux takes whole {unit}")
        return str(value_ns // unit_ns)

    return convert


_seconds = _integer_units(1_000_000_000, "s")
_milliseconds = _integer_units(1_000_000, "ms")
_microseconds = _integer_units(1_000, "µs")


_Parameters = Mapping[str, tuple[str, Callable[[Any], str]]]
"""Parameter of the RunSpec → module parameter, and function that formats its value."""


def _numbers(*names: str) -> _Parameters:
    return {name: (name, _number) for name in names}


# bic_scale of cubic, window of cdg and all parameters of illinois can only be set at load time.
_PARAMETERS: Mapping[str, _Parameters] = {
    "cubic": _numbers("fast_convergence", "beta", "initial_ssthresh", "tcp_friendliness"),
    "bic": {
        **_numbers("fast_convergence", "max_increment", "low_window", "beta", "initial_ssthresh"),
        **_numbers("smooth_part"),
    },
    "cdg": {
        **_numbers("backoff_beta", "backoff_factor", "hystart_detect"),
        **_numbers("use_ineff", "use_shadow", "use_tolerance"),
    },
    "dctcp": _numbers("dctcp_shift_g", "dctcp_alpha_on_init"),
    "htcp": _numbers("use_rtt_scaling", "use_bandwidth_switch"),
    "hybla": {"rtt0": ("rtt0", _milliseconds)},
    "nv": {**_numbers("nv_pad", "nv_min_cwnd"), "nv_reset_period": ("nv_reset_period", _seconds)},
    "vegas": _numbers("alpha", "beta", "gamma"),
}

# HyStart parameters of cubic's module.
_HYSTART: _Parameters = {
    "detect": ("hystart_detect", lambda name: _HYSTART_DETECT[name]),
    "low_window": ("hystart_low_window", _number),
    "ack_delta": ("hystart_ack_delta_us", _microseconds),
}

# Copies of modules in kernels built by jostle; see jostle/kernel_images/source_patches.py.
_FLAVOURS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "cubic": {LINUX_NOW: ("cubic", "cubic_2"), "4.15": ("cubic_415", "cubic_415_2")},
    "bbr": {"4.15": ("bbr_415",)},
}


@dataclass(frozen=True)
class Plan:
    """Kernel controllers of all flows.

    Attributes
    ----------
    names
        Kernel name of the controller of each flow.
    parameters
        Values of module parameters (`tcp_cubic/hystart`).
    problems
        Settings that the kernel cannot express.
    bridged
        Flows with a controller of jostle or of a crate, by module and in the order of their numbers
        in the kernel.
    """

    names: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    bridged: dict[str, list[Flow]] = field(default_factory=dict)

    def add_bridged(self, flow: Flow) -> None:
        """Add a flow with a controller of jostle, or of a crate."""
        self.problems.extend(bridged_controllers.problems(flow))
        module = bridged_controllers.module_of(flow)
        flows = self.bridged.setdefault(module, [])
        self.names.append(bridged_controllers.kernel_name(module, len(flows)))
        flows.append(flow)

    def has_bridged(self, flow: Flow) -> bool:
        """Return whether a flow of the run has a controller of jostle, or of a crate."""
        return any(flow is other for flows in self.bridged.values() for other in flows)


def plan(
    flows: Sequence[Flow], defaults: Defaults, kind: Kind, offer: KernelOffer | None = None
) -> Plan:
    """Choose a kernel controller with matching parameters for each flow.

    Parameters
    ----------
    kind
        Kind of the kernel. Kernels built by jostle contain several copies of some controllers.
    offer
        Controllers that only this kernel has. Default: none.
    """
    chosen_plan = Plan()
    owners: dict[str, str] = {}
    offer = KernelOffer() if offer is None else offer
    only_here = _OnlyHere(offer, chosen_plan)
    for flow in flows:
        if is_kernel_controller(flow["controller"]["name"]):
            only_here.add(flow)
            continue
        if is_crate_controller(flow["controller"]["name"]):
            if offer.without_jostle is not None:
                text = (
                    offer.without_jostle
                    or f"a crate runs inside kernels of jostle: {IN_VIRTUAL_TIME}"
                )
                chosen_plan.problems.append(Problem(flow_key(flow, "controller"), text))
            chosen_plan.add_bridged(flow)
            continue
        problems: list[Problem] = []
        wanted = list(_flow_parameters(flow, defaults, kind, problems))
        names = _candidates(flow, kind, problems)
        clashes = [_clash(name, wanted, chosen_plan.parameters) for name in names]
        # The first candidate without a clash; otherwise the last one, which the message reports.
        chosen = clashes.index(None) if None in clashes else -1
        name, clash = names[chosen], clashes[chosen]
        if clash is not None:
            key, parameter, value = clash
            text = (
                f"all flows of a run share the kernel's {parameter}: {value} here, "
                f"{chosen_plan.parameters[parameter]} for {owners[parameter]}; "
                "the simulator can have both"
            )
            problems.append(Problem(key, text))
        if (problems or offer.prefers_jostle) and not _is_python(flow):
            if offer.without_jostle is None:
                chosen_plan.add_bridged(flow)
                continue
            if offer.without_jostle:
                problems.append(Problem(flow_key(flow, "controller"), offer.without_jostle))
        if (problem := offer.plain_problem(flow)) is not None:
            problems.insert(0, problem)
        chosen_plan.problems.extend(problems)
        chosen_plan.names.append(name)
        for _, parameter, value in _of_module(name, wanted):
            chosen_plan.parameters.setdefault(parameter, value)
            owners.setdefault(parameter, flow["name"])
    return chosen_plan


class _OnlyHere:
    """Adds the flows with `kernel:NAME` to a plan."""

    def __init__(self, offer: KernelOffer, chosen_plan: Plan) -> None:
        self._offer = offer
        self._plan = chosen_plan
        self._first: dict[str, tuple[Flow, dict[str, str]]] = {}

    def add(self, flow: Flow) -> None:
        """Add a flow."""
        problems = self._plan.problems
        key = flow_key(flow, "controller")
        name = self._offer.name_of(flow)
        if isinstance(name, Problem):
            problems.append(name)
            self._plan.names.append("")
            return
        arguments = self._offer.arguments(flow, problems)
        first, others = self._first.setdefault(name, (flow, arguments))
        if first["controller"]["name"] != flow["controller"]["name"]:
            text = f"this module registers `{name}`, and so does that of {first['name']}; "
            problems.append(Problem(key, f"{text}give them different names in their sources"))
        elif arguments != others:
            text = f"all flows of a run share a module's parameters, and {first['name']} has others"
            problems.append(Problem(key, text))
        self._plan.names.append(name)
        if self._offer.module(flow) is None:
            # Built into the kernel. Parameters of a module are set when it is loaded.
            for parameter, value in arguments.items():
                self._plan.parameters[f"tcp_{name}/{parameter}"] = value


def _is_python(flow: Flow) -> bool:
    return ":" in flow["controller"]["name"]


_Wanted = tuple[str, str, str]
"""Key of the scenario, parameter of the module, value."""


def _of_module(name: str, wanted: Iterable[_Wanted]) -> Iterator[_Wanted]:
    for key, parameter, value in wanted:
        yield key, f"tcp_{name}/{parameter}", value


def _clash(name: str, wanted: Iterable[_Wanted], taken: Mapping[str, str]) -> _Wanted | None:
    """Return the first parameter that already has another value."""
    for key, parameter, value in _of_module(name, wanted):
        if taken.get(parameter, value) != value:
            return key, parameter, value
    return None


def _candidates(flow: Flow, kind: Kind, problems: list[Problem]) -> Sequence[str]:
    """Return the kernel controllers that implement a flow's controller."""
    controller = flow["controller"]
    name: str = controller["name"]
    linux = str(controller["parameters"].get("linux", LINUX_NOW))
    if kind == "virtual":
        return _FLAVOURS.get(name, {}).get(linux, (name,))
    if flow["linux"] != LINUX_NOW:
        problems.append(_unsupported_release(flow_key(flow, "linux_version"), flow["linux"]))
    elif linux != LINUX_NOW:
        problems.append(_unsupported_release(flow_key(flow, "controller.linux"), linux))
    return (name,)


def _flow_parameters(
    flow: Flow, defaults: Defaults, kind: Kind, problems: list[Problem]
) -> Iterator[_Wanted]:
    """Yield key, module parameter and value of all controller settings of a flow."""
    controller = flow["controller"]
    name: str = controller["name"]
    key = flow_key(flow, "controller")
    if _is_python(flow):
        text = f"`{name}` is Python code, which a kernel cannot run; the simulator can"
        problems.append(Problem(key, text))
        return
    if name not in NAMES:
        text = f"Linux has no controller `{name}`: {', '.join(sorted(NAMES))}; the simulator has it"
        problems.append(Problem(key, text))
        return
    memory = flow["memory"]
    if memory is not None:
        text = f"`{memory['name']}`: Linux has no such memory of peers; the simulator can"
        problems.append(Problem(flow_key(flow, "peer_cache"), text))
    known = _PARAMETERS.get(name, {})
    given = dict(controller["parameters"])
    given.pop("linux", None)
    if name == "cubic":
        problems.extend(_cubic_problems(flow))
        given.pop("hystart", None)
    yield from _translated(key, known, given, defaults.get(name, {}), problems)
    yield from _slow_start(flow, defaults, problems)


def _translated(
    key: str,
    module: _Parameters,
    given: Mapping[str, Any],
    defaults: Mapping[str, Any],
    problems: list[Problem],
) -> Iterator[_Wanted]:
    for parameter, value in given.items():
        at = f"{key}.{parameter}"
        known = module.get(parameter)
        if known is None:
            if value != defaults.get(parameter):
                text = "the kernel's module has no such parameter that could be set; "
                problems.append(Problem(at, f"{text}the simulator can"))
            continue
        try:
            yield at, known[0], known[1](value)
        except _NoValueError as error:
            problems.append(Problem(at, str(error)))


def _slow_start(flow: Flow, defaults: Defaults, problems: list[Problem]) -> Iterator[_Wanted]:
    """Yield HyStart parameters of cubic; other controllers have a fixed slow start."""
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
    yield key, "hystart", "1" if on else "0"
    if on and slow_start is not None:
        given = dict(slow_start["parameters"])
        linux = given.pop("linux", "as the controller")
        cubics = flow["controller"]["parameters"].get("linux", LINUX_NOW)
        if linux not in (cubics, "as the controller"):
            text = f'"{linux}": in Linux HyStart is a part of cubic, which is "{cubics}"; '
            problems.append(Problem(f"{key}.linux", f"{text}the simulator can have both"))
        standard = defaults.get("hystart", {})
        yield from _translated(key, _HYSTART, given, standard, problems)


def _cubic_problems(flow: Flow) -> Iterator[Problem]:
    parameters = flow["controller"]["parameters"]
    key = flow_key(flow, "controller")
    # `cubictcp_register` computes the factor of the Reno-friendly region from beta at load time.
    if parameters.get("beta", 717) != 717 and parameters.get("tcp_friendliness", True):
        text = "with tcp_friendliness Linux takes beta when its module is loaded, 717; "
        yield Problem(f"{key}.beta", f"{text}the simulator can")


def _unsupported_release(key: str, linux: str) -> Problem:
    text = f'"{linux}": the kernel that runs is the one that is judged; write "{LINUX_NOW}" for it'
    return Problem(key, f"{text}, or use virtual time (--backend kernel) or the simulator")


def defaults_of(registry: Mapping[str, Any]) -> Defaults:
    """Return the parameter defaults of all controllers and slow starts in the engine's registry."""
    rows = [*registry.get("controllers", []), *registry.get("slow_starts", [])]
    return {
        row["name"]: {p["name"]: _default(p) for p in row.get("parameters", [])} for row in rows
    }


def _default(parameter: Mapping[str, Any]) -> Any:
    names = ("default", "default_ns", "default_bytes", "default_bps")
    return next((parameter[name] for name in names if name in parameter), None)
