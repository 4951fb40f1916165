"""What the kernel backend refuses, and by which key."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jostle import _core
from jostle.backends.kernel import capabilities, tc_queues
from jostle.errors import InputError

from backends_kernel.kernel_specs import PARKING_LOT, SCENARIO, spec_of

TWO_CUBICS = f"""{SCENARIO}
[[flows]]
name = "two"
controller = {{ name = "cubic", fast_convergence = false }}
rtt = "40 ms"
"""

# Override of the scenario → key that is named, and a word of the reason.
REFUSED = {
    "record": ('"acks"', "record", "per ACK"),
    "bottleneck.delay": ('[["0 s", "5 ms"], ["5 s", "1 ms"]]', "bottleneck.delay", "reorder"),
    "bottleneck.jitter": (
        '{ quantiles = { "0 %" = "0 ms", "100 %" = "5 ms" }, correlation = "1 s" }',
        "bottleneck.jitter",
        "netem",
    ),
    "bottleneck.outage": ('{ every = "5 s", durations = "1 s" }', "bottleneck.outage", "outages"),
    "bottleneck.quick_start": ('"5 Mbit/s"', "bottleneck.quick_start", "Quick-Start"),
    "flows.one.peer_cache": ('"stateful"', "flows.one.peer_cache", "no such memory"),
    "flows.one.receiver": ('"ack_division"', "flows.one.receiver", "Linux's own"),
    "flows.one.transport": (
        '{ kind = "tcp", prr = "rfc9937" }',
        "flows.one.transport.prr",
        "the kernel has its own",
    ),
    "flows.one.timers": ("{ hz = 300 }", "flows.one.timers.hz", "ticks"),
    "flows.one.timers ": ('{ slack = "50 us" }', "flows.one.timers.slack", "exact"),
    "flows.one.timers  ": ('{ resolution = "1 ms" }', "flows.one.timers.resolution", "exact"),
    "flows.one.initial_pacing": ("true", "flows.one.initial_pacing", "fq"),
    "flows.one.initial_receive_window": (
        '"1 MB"',
        "flows.one.initial_receive_window",
        "SYN-ACK",
    ),
    "flows.one.slow_start ": ('"suss"', "flows.one.slow_start", "the simulator can"),
    "flows.one.slow_start  ": ('"paced-chirping"', "flows.one.slow_start", "the simulator can"),
    "bottleneck.rate": ('[["0 s", "5 Mbit/s"], ["2 s", "0 Mbit/s"]]', "bottleneck.rate", "stop"),
    "bottleneck.rate ": (
        '{ mean = "5 Mbit/s", deviation = "1 Mbit/s", correlation = "1 s" }',
        "bottleneck.rate",
        "random",
    ),
    "bottleneck.queue": (
        '{ kind = "occupancy_drop", limit = "1 MB", threshold = "500 kB" }',
        "bottleneck.queue.kind",
        "occupancy_drop",
    ),
    "bottleneck.queue ": (
        '{ kind = "codel", limit = "100 kB" }',
        "bottleneck.queue.limit",
        '"66 packets"',
    ),
    "bottleneck.queue  ": (
        '{ kind = "pie", alpha = 0.3 }',
        "bottleneck.queue.alpha",
        "sixteenths",
    ),
    "bottleneck.queue   ": (
        '{ kind = "red", limit = "80 packets", min = "20 kB", max = "60 kB" }',
        "bottleneck.queue.limit",
        "bytes",
    ),
    "bottleneck.queue    ": (
        '{ kind = "drop_tail", limit = "5 GB" }',
        "bottleneck.queue.limit",
        "32 bits",
    ),
    "bottleneck.queue     ": ('"dualpi2"', "bottleneck.queue.kind", "dualpi2"),
    "bottleneck.queue      ": (
        '{ kind = "red", limit = "3 GB", min = "1700 MB", max = "2 GB" }',
        "bottleneck.queue.weight",
        "with this `min`",
    ),
    "flows.one.controller": ('"vivace"', "flows.one.controller", "no controller `vivace`"),
    "flows.one.controller ": (
        '{ name = "cubic", linux = "4.15" }',
        "flows.one.controller.linux",
        'write "6.1"',
    ),
    "flows.one.controller  ": (
        '{ name = "cubic", beta = 800 }',
        "flows.one.controller.beta",
        "tcp_friendliness",
    ),
    "flows.one.controller   ": (
        '{ name = "cubic", bic_scale = 50 }',
        "flows.one.controller.bic_scale",
        "no such parameter",
    ),
    "flows.one.controller    ": (
        '{ name = "bbr", startup_gain = 3.0 }',
        "flows.one.controller.startup_gain",
        "no such parameter",
    ),
    "flows.one.controller     ": (
        '{ name = "hybla", rtt0 = "12.5 ms" }',
        "flows.one.controller.rtt0",
        "whole ms",
    ),
    "flows.one.controller      ": (
        '{ name = "cubic", flavour = "rfc9438" }',
        "flows.one.controller.flavour",
        "no such parameter",
    ),
    "flows.one.controller       ": (
        '{ name = "reno", flavour = "rfc9002" }',
        "flows.one.controller.flavour",
        "no such parameter",
    ),
    "flows.one.slow_start": (
        '{ name = "hystart", linux = "4.15" }',
        "flows.one.slow_start.linux",
        'part of cubic, which is "6.1"',
    ),
}


# What `tc` has no words for, and the virtual-time kernel has.
PLAYED_BACK = [
    "bottleneck.delay",
    "bottleneck.jitter",
    "bottleneck.outage",
    "bottleneck.rate",
    "bottleneck.rate ",
    "bottleneck.queue",
    "flows.one.controller ",
]


@pytest.mark.parametrize("key", PLAYED_BACK)
def test_the_virtual_kernel_can_what_tc_cannot(key, defaults):
    spec = spec_of(overrides={key.strip(): REFUSED[key][0]})
    assert capabilities.problems(spec, defaults, "virtual") == []
    for kind in ("realtime", "native"):
        (problem,) = capabilities.problems(spec, defaults, kind)
        assert problem.key == REFUSED[key][1]
        assert "linux" in problem.key or "--backend kernel" in problem.text


def test_jitter_that_is_too_fine_to_be_played_back_is_refused(defaults):
    jitter = '{ quantiles = { "0 %" = "0 ms", "100 %" = "5 ms" }, correlation = "10 us" }'
    spec = spec_of(overrides={"bottleneck.jitter": jitter})
    (problem,) = capabilities.problems(spec, defaults, "virtual")
    assert problem.key == "bottleneck.jitter.correlation"


@pytest.mark.parametrize("key", REFUSED, ids=lambda key: f"{key.strip()}-{key.count(' ')}")
def test_a_refusal_names_its_key(key, defaults):
    value, named, why = REFUSED[key]
    found = capabilities.problems(spec_of(overrides={key.strip(): value}), defaults, "native")
    assert named in {problem.key for problem in found}, found
    assert any(why in problem.text for problem in found if problem.key == named), found


def test_a_queue_of_our_own_hides_no_other_key(defaults):
    overrides = {key: REFUSED[key][0] for key in ("bottleneck.queue", "bottleneck.quick_start")}
    (problem,) = capabilities.problems(spec_of(overrides=overrides), defaults, "virtual")
    assert problem.key == "bottleneck.quick_start"


def test_the_kernel_in_virtual_time_has_a_thousand_ticks_per_second(defaults):
    spec = spec_of(overrides={"flows.one.timers": "{ hz = 1000 }"})
    assert capabilities.problems(spec, defaults, "virtual") == []
    (problem,) = capabilities.problems(spec, defaults, "realtime")
    assert problem.key == "flows.one.timers.hz"


def test_a_card_that_puts_segments_together_is_not_captured(defaults):
    spec = spec_of(overrides={"flows.one.receiver_gro": "true"})
    assert capabilities.problems(spec, defaults, "virtual") == []
    spec["capture"] = {"scenario": "one"}
    (problem,) = capabilities.problems(spec, defaults, "virtual")
    assert problem.key == "flows.one.receiver_gro"


def test_the_documentation_names_what_is_refused():
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "kernel-backend.md").read_text(
        "utf-8"
    )
    section = page.split("## Limits")[1].split("\n## ")[0]
    assert '`record = "acks"`' in section
    named = set(re.findall(r"`(\w+)`", section)) | {"record"}
    # Of the many parameters of controllers it says what they have in common.
    keys = {key for _, key, _ in REFUSED.values() if ".controller." not in key}
    last = {key.split(".")[-1] for key in keys} - {"kind", "linux"}
    assert last | {"correlation", "path"} <= named
    kinds = {row["name"] for row in json.loads(_core.registry())["queues"]}
    assert kinds - tc_queues.DISCIPLINES.keys() <= named, "queues"


def test_mahimahi_traces_are_refused(defaults):
    spec = spec_of()
    spec["links"][0]["capacity"] = {
        "kind": "trace",
        "opportunities_ms": [1, 2],
        "opportunity_bytes": 1514,
    }
    (problem,) = capabilities.problems(spec, defaults, "native")
    assert problem.key == "bottleneck.trace"


def test_slow_starts_that_linux_has_not_beside_a_controller_are_refused(defaults):
    spec = spec_of(overrides={"flows.one.controller": '"reno"'})
    spec["flows"][0]["slow_start"] = {"name": "hystart", "parameters": {}}
    (problem,) = capabilities.problems(spec, defaults, "native")
    assert problem.key == "flows.one.slow_start"
    assert "reno has its own" in problem.text


def test_flows_of_one_controller_must_agree(defaults):
    (problem,) = capabilities.problems(spec_of(TWO_CUBICS), defaults, "native")
    assert problem.key == "flows.two.controller.fast_convergence"
    assert "share the kernel's tcp_cubic/fast_convergence: 0 here, 1 for one" in problem.text


def test_three_flavours_are_one_too_many(defaults):
    cubic = '{ name = "cubic", beta = 600, tcp_friendliness = false }'
    third = f'[[flows]]\nname = "three"\ncontroller = {cubic}\nrtt = "40 ms"'
    spec = spec_of(f"{TWO_CUBICS}{third}")
    (problem,) = capabilities.problems(spec, defaults, "virtual")
    assert problem.key == "flows.three.controller.fast_convergence"
    assert "tcp_cubic_2/fast_convergence" in problem.text


def test_hystart_must_be_on_or_off_for_all_cubic_flows(defaults):
    spec = spec_of(TWO_CUBICS.replace("fast_convergence = false", "hystart = false"))
    (problem,) = capabilities.problems(spec, defaults, "native")
    assert problem.key == "flows.two.slow_start"
    assert "tcp_cubic/hystart" in problem.text


def test_a_way_that_crosses_a_link_twice_is_refused(defaults):
    spec = spec_of(PARKING_LOT)
    spec["flows"][0]["path"] = [0, 1, 0]
    (problem,) = capabilities.problems(spec, defaults, "native")
    assert problem.key == "flows.long.path"


def test_too_many_flows_and_links_are_refused(defaults):
    spec = spec_of(PARKING_LOT)
    spec["links"] *= 40
    spec["flows"][0]["path"] = list(range(100))
    spec["flows"] *= 501
    keys = {problem.key for problem in capabilities.problems(spec, defaults, "native")}
    assert keys == {"flows", "flows.long.path"}


def test_names_with_spaces_are_quoted(defaults):
    spec = spec_of(PARKING_LOT)
    spec["links"][1]["queue"] = {"kind": "choke", "parameters": {"limit": {"packets": 9}}}
    (problem,) = capabilities.problems(spec, defaults, "native")
    assert problem.key == 'links."second hop".queue.kind'


def test_everything_is_told_at_once(defaults):
    overrides = {"record": '"acks"', "flows.one.controller": '"vivace"'}
    with pytest.raises(InputError, match=re.compile("record: .*flows.one.controller: ", re.S)):
        capabilities.check(spec_of(overrides=overrides), defaults, "native")


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"bottleneck.queue": '"codel"'},
        {"bottleneck.queue": '"fq_codel"'},
        {"bottleneck.queue": '"pie"'},
        {"bottleneck.queue": '"fq_pie"'},
        {"bottleneck.queue": '"sfq"'},
        {"bottleneck.queue": '"cake"'},
        {"bottleneck.queue": '"tbf"'},
        {"bottleneck.queue": '"policer"'},
        {"bottleneck.queue": '{ kind = "drr", classes = { default = { queue = "codel" } } }'},
        {"bottleneck.queue": '{ kind = "red", limit = "1 MB", min = "30 kB", max = "90 kB" }'},
        {"bottleneck.queue.limit": '"70 packets"'},
        {"bottleneck.rate": '[["0 s", "5 Mbit/s"], ["2 s", "8 Mbit/s"]]'},
        {"bottleneck.loss": '"1 %"', "bottleneck.delay": '"5 ms"'},
        {"flows.one.controller": '{ name = "cubic", hystart = false }'},
        {"flows.one.controller": '{ name = "cubic", beta = 800, tcp_friendliness = false }'},
        {"flows.one.controller": '{ name = "hybla", rtt0 = "30 ms" }'},
        {"flows.one.slow_start": '{ name = "hystart", detect = "delay" }'},
        {"flows.one.pacing": '"fq"', "flows.one.nic_rate": '"1 Gbit/s"'},
        {"flows.one.size": '"1 MB"', "flows.one.count": "3", "flows.one.one_at_a_time": '"1 s"'},
    ],
    ids=str,
)
def test_what_the_kernel_can_do_is_accepted(overrides, defaults):
    capabilities.check(spec_of(overrides=overrides), defaults, "native")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "frame_aggregation",
            '{ access_delay = "2 ms" }',
            r"bottleneck\.frame_aggregation: `tc` sends no packets",
        ),
        ("ack_thinning", "{ max_acks = 8 }", r"bottleneck\.ack_thinning: .*cake with `ack_filter`"),
        ("faults", '{ duplicate = "1 %" }', r"bottleneck\.faults: `tc` cannot do the same"),
        ("netem", "{ limit = 100 }", r"bottleneck\.netem: `tc` cannot do the same"),
        (None, None, r"bottleneck\.loss: netem's losses have one probability for the whole run"),
    ],
)
def test_links_that_tc_is_not_are_those_of_virtual_time(key, value, message, defaults):
    spec = spec_of(overrides={f"bottleneck.{key}": value} if key else {})
    if key is None:
        spec["links"][0]["loss_steps"] = [{"at_ns": 0, "probability": 0.1}]
    capabilities.check(spec, defaults, "virtual")
    for kind in ("realtime", "native"):
        with pytest.raises(InputError, match=f"{message}.*--backend kernel"):
            capabilities.check(spec, defaults, kind)


def test_routes_change_at_an_exact_time_in_virtual_time_only(defaults):
    text = PARKING_LOT.replace('["back"]', '["back"]\nroutes = [{ at = "3 s", path = ["first"] }]')
    assert not capabilities.problems(spec_of(text), defaults, "virtual")
    for kind in ("native", "realtime"):
        (problem,) = capabilities.problems(spec_of(text), defaults, kind)
        assert problem.key == "flows.long.routes"
        assert "virtual-time kernel" in problem.text
