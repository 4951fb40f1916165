"""Controllers of jostle inside Linux."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from jostle import _core
from jostle.backends import SimBackend
from jostle.backends.kernel import KernelBackend, bridged_controllers, capabilities
from jostle.backends.kernel.controller_states import ControllerState, read_states
from jostle.backends.kernel.controllers import Defaults, plan
from jostle.backends.kernel.kernel_controllers import KernelOffer
from jostle.backends.kernel.runner import KernelRunError
from jostle.errors import InputError
from jostle.kernel_images import Image, bridge
from jostle.kernel_images.source_patches import WITHOUT_HOOKS
from jostle.scenario import load_text

VIRTUAL = KernelOffer(Image("virtual", Path("/nowhere/linux"), "6.1.192"), has_bridge=True)
SCENARIO = """
duration = "4 s"
sampling_interval = "100 ms"
[bottleneck]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = "reno"
rtt = "20 ms"
"""
SECOND = '[[flows]]\nname = "two"\ncontroller = "cubic"\nrtt = "20 ms"\n'

# Their code in Linux draws no random numbers.
SAME_AS_LINUX = (
    "reno", "bic", "highspeed", "scalable", "htcp", "westwood", "hybla", "vegas", "veno", "yeah",
    "illinois", "lp", "dctcp",
)  # fmt: skip
DROP_TAIL = 'queue = { kind = "drop_tail", limit = "1 BDP" }\n'
CONDITIONS: Mapping[str, tuple[str, str]] = {
    "a full buffer": (DROP_TAIL, ""),
    "timeouts": ('queue = { kind = "drop_tail", limit = "0.1 BDP" }\n', ""),
    "random loss": (f'loss = "0.2 %"\n{DROP_TAIL}', ""),
    "marks": ('queue = { kind = "codel" }\n', "ecn = true\n"),
    "idle times": (DROP_TAIL, 'source = { kind = "on_off", on = "0.7 s", off = "1.3 s" }\n'),
    # Recoveries that prove to be spurious are undone.
    "reordering": (
        'jitter = { quantiles = [["0 %", "0 ms"], ["99 %", "0 ms"], ["100 %", "12 ms"]], '
        f'correlation = "50 ms", reorder = true }}\n{DROP_TAIL}',
        "",
    ),
}
"""Name → keys of the link and of the flow."""
NOT_SAMPLED = {"mode", "pacing_rate"}
"""Columns that a controller of Linux has in TCP_INFO, or that only jostle's has."""


def spec_of(text: str = SCENARIO, overrides: Mapping[str, str] | None = None) -> Any:
    planned = load_text(text, overrides=overrides).plan(repeats=1)
    return copy.deepcopy(planned.runs[0].spec)


def flow_of(controller: str, more: str = "") -> Any:
    text = SCENARIO.replace('"reno"', controller) + more
    return spec_of(text)["flows"][0]


@pytest.fixture(scope="session")
def jostles(kernel: Image) -> KernelBackend:
    """A backend with jostle's code for all controllers."""
    return KernelBackend(image=kernel, controllers="jostle")


def series(record: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The measured columns of the flows."""
    table = record.flows
    names = [name for name in table.columns if not name.startswith(tuple(NOT_SAMPLED))]
    return {name: table[name].to_numpy() for name in names}


def assert_equal_series(ours: Any, linux: Any) -> None:
    mine, theirs = series(ours), series(linux)
    assert mine.keys() == theirs.keys()
    for name, column in theirs.items():
        np.testing.assert_array_equal(mine[name], column, err_msg=name)


# What a line of a registration has.


def test_a_registration_has_all_that_a_controller_is_made_of() -> None:
    more = 'slow_start = "search"\npeer_cache = "stateful"\n'
    flow = flow_of('{ name = "cubic", beta = 700, fast_convergence = false }', more)
    flow["name"], flow["peer"] = "a b=%", 3
    line = bridged_controllers.registration(flow, 7)
    head, _, words = line.partition(" controller=")
    assert head == "3 0"
    assert words.startswith("cubic controller.")
    assert "controller.beta=i700" in words
    assert "controller.fast_convergence=b0" in words
    assert " slow_start=search " in words
    assert " memory=stateful " in words
    assert words.endswith(" seed=7 stream=flow/a%20b=%25\n")


def test_every_value_of_the_registry_can_be_written() -> None:
    parameters = {"a": True, "b": -3, "c": 1e-7, "d": "0.5 Mbit/s", "e": "aGk=+/"}
    flow = flow_of('"reno"')
    flow["controller"] = {"name": "reno", "parameters": parameters}
    line = bridged_controllers.registration(flow, 1)
    written = dict(word.split("=", 1) for word in line.split() if word.startswith("controller."))
    assert list(written.values()) == ["b1", "i-3", "n1e-7", "t0.5%20Mbit/s", "taGk=+/"]


# Which code a flow runs.


@pytest.mark.parametrize(
    ("controller", "more"),
    [
        ('"copa"', ""),
        ('"reno"', 'slow_start = "search"\n'),
        ('"cubic"', 'peer_cache = "tcp-cache"\n'),
        ('{ name = "illinois", theta = 7 }', ""),
    ],
)
def test_what_linux_lacks_is_jostles(controller: str, more: str, defaults: Defaults) -> None:
    made = plan([flow_of('"bbr"'), flow_of(controller, more)], defaults, "virtual", VIRTUAL)
    assert made.problems == []
    assert made.names == ["bbr", "jostle.0"]
    (problem, *_) = plan([flow_of(controller, more)], defaults, "realtime").problems
    assert "the simulator" in str(problem)


def test_a_third_set_of_parameters_is_jostles(defaults: Defaults) -> None:
    flows = [flow_of(f'{{ name = "cubic", beta = {beta} }}') for beta in (717, 700, 600)]
    for flow in flows:
        flow["controller"]["parameters"]["tcp_friendliness"] = False
    made = plan(flows, defaults, "virtual", VIRTUAL)
    assert made.problems == []
    assert made.names == ["cubic", "cubic_2", "jostle.0"]


def test_jostles_code_on_request(defaults: Defaults) -> None:
    offer = KernelOffer(VIRTUAL._image, prefers_jostle=True, has_bridge=True)
    made = plan([flow_of('"cubic"'), flow_of('"reno"')], defaults, "virtual", offer)
    assert (made.names, made.problems) == (["jostle.0", "jostle.1"], [])


@pytest.mark.parametrize(
    ("controller", "more", "reason"),
    [
        ('"prague"', "", r"flows\.one\.controller: .*AccECN"),
        ('"reno"', 'slow_start = "quickstart"\n', r"flows\.one\.slow_start: .*requests no rate"),
    ],
)
def test_what_the_transport_cannot_give(
    controller: str, more: str, reason: str, defaults: Defaults
) -> None:
    spec = spec_of(SCENARIO.replace('"reno"', controller) + more)
    with pytest.raises(InputError, match=reason):
        capabilities.check(spec, defaults, "virtual", VIRTUAL)


def test_the_rows_that_are_refused_are_those_with_such_needs() -> None:
    rows = json.loads(_core.registry())
    needs_accecn = [row["name"] for row in rows["controllers"] if row["needs_accecn"]]
    assert needs_accecn == list(bridged_controllers.ACCECN)


def test_a_kernel_without_hooks_refuses(defaults: Defaults, monkeypatch: Any) -> None:
    changed = dataclasses.make_dataclass("Changed", ["name", "facts"])
    offer = KernelOffer(VIRTUAL._image)
    facts = {"left_out": [WITHOUT_HOOKS], "controllers": []}
    monkeypatch.setattr(KernelOffer, "changed", changed("mine", facts))
    (*_, problem) = plan([flow_of('"copa"')], defaults, "virtual", offer).problems
    assert "kernel mine has no place for the hooks for jostle's controllers" in str(problem)


def test_a_kernel_without_headers_refuses(defaults: Defaults) -> None:
    offer = KernelOffer(VIRTUAL._image)
    (*_, problem) = plan([flow_of('"copa"')], defaults, "virtual", offer).problems
    assert "headers.tar.xz" in str(problem)
    assert "/nowhere/linux" in str(problem)


# Inside the kernel.


def test_a_controller_of_jostle_next_to_one_of_linux(backend: KernelBackend) -> None:
    spec = spec_of(SCENARIO.replace('"reno"', '"copa"') + SECOND)
    record = backend.run(spec)
    assert "+jostle-" in record.backend_version
    assert record.backend_version == backend.version_of(spec)
    assert backend.version_of(spec_of()) == backend.version
    copa, cubic = (flow["phases"]["overall"] for flow in record.summary["flows"])
    simulated = SimBackend().run(spec).summary["flows"][0]["phases"]["overall"]
    assert copa["goodput_bps"] == pytest.approx(simulated["goodput_bps"], rel=0.4)
    assert copa["goodput_bps"] + cubic["goodput_bps"] == pytest.approx(18.4e6, rel=0.06)
    assert_equal_series(backend.run(spec), record)


def test_the_same_code_as_in_the_kernel(backend: KernelBackend, jostles: KernelBackend) -> None:
    spec = spec_of()
    ours = jostles.run(spec)
    assert ours.backend_version.split("+").count("jostle") == 1
    assert_equal_series(ours, backend.run(spec))


def test_parameters_and_seeds(backend: KernelBackend) -> None:
    flow = '[[flows]]\nname = "two"\nrtt = "20 ms"\ncontroller = '
    spec = spec_of(
        SCENARIO.replace('"reno"', '{ name = "ledbat", target = "5 ms" }')
        + flow
        + '{ name = "ledbat", target = "20 ms" }\n'
    )
    overall = [f["phases"]["overall"] for f in backend.run(spec).summary["flows"]]
    assert overall[1]["goodput_bps"] > 3 * overall[0]["goodput_bps"]
    # Vivace draws random numbers.
    one = spec_of(SCENARIO.replace('"reno"', '"vivace"'))
    two = {**one, "seed": one["seed"] + 1}
    first, again, other = (backend.run(spec) for spec in (one, one, two))
    assert_equal_series(again, first)
    assert not np.array_equal(series(other)["cwnd_bytes"], series(first)["cwnd_bytes"])


def test_a_line_that_the_module_refuses(backend: KernelBackend, monkeypatch: Any) -> None:
    spec = spec_of(SCENARIO.replace('"reno"', '"copa"'))
    line = bridged_controllers.registration(spec["flows"][0], 1).replace("copa", "none")
    monkeypatch.setattr(bridged_controllers, "registration", lambda _flow, _seed: line)
    with pytest.raises(KernelRunError, match=r"cannot register .*: there is no controller `none`"):
        backend.run(spec)


def test_a_line_may_be_longer_than_a_write(backend: KernelBackend, monkeypatch: Any) -> None:
    # The table of `remy` is a file.
    spec = spec_of(SCENARIO.replace('"reno"', '"remy"').replace('"4 s"', '"1 s"'))
    long = bridged_controllers.registration(spec["flows"][0], 1)
    padded = long.replace(" seed=", " " * 9000 + " seed=")
    monkeypatch.setattr(bridged_controllers, "registration", lambda _flow, _seed: padded)
    assert backend.run(spec).summary["flows"][0]["phases"]["overall"]["goodput_bps"] > 1e6


def test_the_module_travels_with_the_backend(
    backend: KernelBackend, kernel: Image, monkeypatch: Any
) -> None:
    spec = spec_of(SCENARIO.replace('"reno"', '"copa"'))
    version = backend.version_of(spec)
    there = pickle.loads(pickle.dumps(backend))

    def refuse(*_: object) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr("jostle.backends.kernel.backend.bridge_module", refuse)
    assert there.version_of(spec) == version


def test_it_is_compiled_once(kernel: Image, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = bridge.bridge_module.__wrapped__(kernel)
    (file,) = (tmp_path / "jostle" / "bridges").glob("*/jostle.ko")
    assert file.read_bytes() == made.content
    assert made.identity == bridge.bridge_module(kernel).identity

    def refuse(*_: object) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr(bridge, "compile_module", refuse)
    assert bridge.bridge_module.__wrapped__(kernel) == made


@pytest.mark.slow
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("controller", SAME_AS_LINUX)
def test_every_series_is_that_of_linux(
    controller: str, condition: str, backend: KernelBackend, jostles: KernelBackend
) -> None:
    link, flow = CONDITIONS[condition]
    text = SCENARIO.replace(DROP_TAIL, link).replace('"reno"', f'"{controller}"') + flow
    spec = spec_of(text.replace('"4 s"', '"10 s"'))
    linux = backend.run(spec)
    overall = linux.summary["flows"][0]["phases"]["overall"]
    assert overall["retransmitted_packets"] > 0 or controller in ("vegas", "dctcp")
    assert_equal_series(jostles.run(spec), linux)


@pytest.mark.slow
def test_cubic_differs_by_its_root(backend: KernelBackend, jostles: KernelBackend) -> None:
    # `cubic_root` of Linux approximates: after a loss at 348 packets it returns 6552, and the
    # largest integer whose cube does not exceed the number is 6554, in units of 1/1024 s.
    spec = spec_of(SCENARIO.replace('"reno"', '"cubic"').replace('"4 s"', '"10 s"'))
    ours, linux = jostles.run(spec), backend.run(spec)
    mine, theirs = (series(record)["cwnd_bytes"] for record in (ours, linux))
    assert np.nanmax(np.abs(mine - theirs)) <= 2 * 1448
    overall = [record.summary["flows"][0]["phases"]["overall"] for record in (ours, linux)]
    assert overall[0]["rtt_mean_s"] == pytest.approx(overall[1]["rtt_mean_s"], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("controller", ["cdg", "nv", "bbr"])
def test_controllers_with_random_numbers(
    controller: str, backend: KernelBackend, jostles: KernelBackend
) -> None:
    spec = spec_of(SCENARIO.replace('"reno"', f'"{controller}"').replace('"4 s"', '"8 s"'))
    means = [
        np.mean(
            [
                kernel.run({**spec, "seed": seed}).summary["flows"][0]["phases"]["overall"][
                    "goodput_bps"
                ]
                for seed in range(1, 6)
            ]
        )
        for kernel in (jostles, backend)
    ]
    assert means[0] == pytest.approx(means[1], rel=0.05)


# Modes and internal values.


def states_of(record: Any, flow: str) -> tuple[set[str], dict[str, float]]:
    """The modes of a flow, and the mean of each internal value."""
    rows = record.flows.filter(record.flows["flow"] == flow)
    values = record.internals.filter(record.internals["flow"] == flow)
    means = values.group_by("quantity").agg(pl.col("value").mean())
    return set(rows["mode"]), dict(means.iter_rows())


def test_modes_and_internal_values_are_the_simulators(backend: KernelBackend) -> None:
    spec = spec_of(SCENARIO.replace('"reno"', '"copa"') + SECOND.replace('"cubic"', '"bbr3"'))
    inside, simulated = (
        {name: states_of(record, name) for name in ("one", "two")}
        for record in (backend.run(spec), SimBackend().run(spec))
    )
    for name in inside:
        modes, values = inside[name]
        other_modes, other_values = simulated[name]
        assert len(modes & other_modes) >= 2, name
        assert values.keys() == other_values.keys(), name
    # 20 Mbit/s, 20 ms.
    assert inside["two"][1]["min_rtt_s"] == pytest.approx(0.020, rel=0.05)


def test_a_pacing_rate_is_only_that_of_the_controller(jostles: KernelBackend) -> None:
    record = jostles.run(spec_of(SCENARIO.replace('"reno"', '"bbr"') + SECOND))
    paced, unpaced = (
        record.flows.filter(record.flows["flow"] == name)["pacing_rate_bps"].drop_nulls()
        for name in ("one", "two")
    )
    assert len(unpaced) == 0
    assert paced.median() == pytest.approx(20e6, rel=0.6)


def test_a_state_that_is_damaged_is_refused() -> None:
    head = struct.pack("=Q?", 8_000_000, True)
    (state, none) = read_states([(head + b"drain\0rtt_s\0" + struct.pack("=d", 0.5)).hex(), ""])
    assert none is None
    assert state == ControllerState(8_000_000, True, "drain", {"rtt_s": 0.5})
    for damaged in (head[:3], head + b"drain", head + b"drain\0rtt_s\0" + bytes(3)):
        with pytest.raises(ValueError, match=r"damaged|not found"):
            read_states([damaged.hex()])


# Peer caches and slow starts, compared with the simulator.


def completions(spec: Any, backend: Any) -> list[float]:
    return [flow["completion_time_s"] for flow in backend.run(spec).summary["flows"]]


def test_a_second_visit_is_faster(backend: KernelBackend) -> None:
    more = 'size = "1 MB"\ncount = 2\none_at_a_time = "100 ms"\npeer_cache = "tcp-cache"\n'
    text = SCENARIO.replace('"20 ms"', '"60 ms"').replace("20 Mbit/s", "50 Mbit/s")
    spec = spec_of(text + more)
    inside = completions(spec, backend)
    assert inside[1] < 0.8 * inside[0]
    assert inside == pytest.approx(completions(spec, SimBackend()), rel=0.02)


def test_every_connection_of_a_flow_has_its_controller(backend: KernelBackend) -> None:
    # Vivace draws random numbers, from a stream per connection.
    many = (
        SCENARIO.replace('"reno"', '"vivace"') + 'size = "100 kB"\narrivals = { load = "40 %" }\n'
    )
    spec = spec_of(many + SECOND.replace('"cubic"', '"copa"'))
    inside, simulated = (
        [flow["phases"]["overall"]["goodput_bps"] for flow in record.summary["flows"]]
        for record in (backend.run(spec), SimBackend().run(spec))
    )
    assert inside == pytest.approx(simulated, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    "slow_start",
    ["standard", "limited", "hystart", "hystart-paper", "hystart++", "search", "capstart",
     "stopeg", "suss", "jumpstart", "paced-chirping"],
)  # fmt: skip
def test_slow_starts(slow_start: str, backend: KernelBackend) -> None:
    more = f'size = "3 MB"\nslow_start = "{slow_start}"\n'
    spec = spec_of(SCENARIO.replace('"reno"', '"cubic"').replace('"20 ms"', '"60 ms"') + more)
    assert completions(spec, backend) == pytest.approx(completions(spec, SimBackend()), rel=0.03)
