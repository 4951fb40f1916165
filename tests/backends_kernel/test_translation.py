"""A RunSpec as hosts, wires, `tc` commands and module parameters."""

from __future__ import annotations

import math

import pytest
from jostle.backends.kernel import (
    capabilities,
    controllers,
    job,
    kernel_modules,
    tc_queues,
)
from jostle.backends.kernel.guest.sampling import moments_ns
from jostle.backends.kernel.network_hosts import Route
from jostle.backends.kernel.topology import Burst, Machine, topology
from jostle.kernel_images import Image

from backends_kernel.kernel_specs import PARKING_LOT, SCENARIO, spec_of

VIRTUAL = Image("virtual", None, "6.1.0")
NATIVE = Image("native", None, "6.1.0")
MACHINE = Machine(Burst(200, 0))
OWN = Machine(Burst(200, 0), own=True, tick_ns=1_000_000)


def flow_keys(spec, defaults):
    return controllers.plan(spec["flows"], defaults, "virtual").parameters


def test_a_dumbbell():
    made = topology(spec_of(), MACHINE)
    assert list(made.hosts) == ["a0", "z0", "s0", "r0"]
    assert made.wires == [
        ("a0", "queue", "z0", "in"),
        ("s0", "out", "a0", "in.s0"),
        ("z0", "to.r0", "r0", "in"),
        ("r0", "back", "s0", "back"),
    ]
    assert made.hosts["a0"].tc == [
        "qdisc add dev queue root handle 1: htb default 10",
        "class add dev queue parent 1: classid 1:10 htb rate 20000000bit ceil 20000000bit "
        "burst 200 cburst 200 quantum 1514",
        "qdisc add dev queue parent 1:10 handle 10: bfifo limit 100000",
    ]
    assert made.hosts["z0"].routes == [Route("10.2.0.1", "to.r0")]
    assert made.timetable == []


def test_the_return_delay_makes_up_for_htb_that_hands_over_at_the_beginning():
    # 40 ms, and 1514 bytes at 20 Mbit/s, in whole microseconds.
    delays_us = topology(spec_of(), MACHINE).hosts["r0"].delays_us
    assert delays_us == {"back": 40_000 + round(1514 * 8 / 20)}


def test_sending_times_of_every_link_and_of_the_card_count():
    spec = spec_of(PARKING_LOT)
    spec["flows"][0]["nic_rate_bps"] = 100_000_000
    hosts = topology(spec, MACHINE).hosts
    sending_us = 1514 * 8 / 20 + 1514 * 8 / 10 + 66 * 8 / 1 + 1514 * 8 / 100
    # ACKs cross the links first.
    assert hosts["z2"].delays_us["to.s0"] == pytest.approx(40_000 - 5_000 + sending_us, abs=1)
    assert not hosts["r0"].delays_us
    assert set(hosts["r1"].delays_us) == {"back"}


def test_links_in_a_row_share_routers_and_part_by_address():
    made = topology(spec_of(PARKING_LOT), MACHINE)
    assert ("z0", "to.1", "a1", "in.z0") in made.wires
    assert ("s1", "out", "a1", "in.s1") in made.wires
    assert made.hosts["z0"].routes == [Route("10.2.0.1", "to.1")]
    assert made.hosts["z1"].routes == [Route("10.2.0.1", "to.r0"), Route("10.2.0.2", "to.r1")]
    # The long flow's ACKs cross the third link; the short one's go straight home.
    assert ("r0", "back", "a2", "in.r0") in made.wires
    assert ("z2", "to.s0", "s0", "back") in made.wires
    assert made.hosts["z2"].routes == [Route("10.1.0.1", "to.s0")]
    assert ("r1", "back", "s1", "back") in made.wires
    assert len(made.wires) == len(set(made.wires))


def test_delay_and_loss_lie_behind_the_queue():
    made = topology(spec_of(PARKING_LOT), MACHINE)
    assert made.hosts["m0"].tc == [
        "qdisc add dev far root handle 1: netem limit 1000000 delay 5000us"
    ]
    assert made.hosts["m1"].tc == [
        "qdisc add dev far root handle 1: netem limit 1000000 loss random 0.1000000%"
    ]
    assert "m2" not in made.hosts
    assert [queue["losses"] and queue["losses"]["host"] for queue in made.queues] == [
        "m0",
        "m1",
        None,
    ]


def test_bursts_of_losses_in_the_order_of_netem():
    spec = spec_of()
    spec["links"][0]["loss"] = {
        "kind": "gilbert_elliott",
        "parameters": {
            "good_to_bad": 0.01,
            "bad_to_good": 0.2,
            "loss_good": 0.001,
            "loss_bad": 0.5,
        },
    }
    (command,) = topology(spec, MACHINE).hosts["m0"].tc
    loss = "loss gemodel 1.0000000% 20.0000000% 50.0000000% 0.1000000%"
    assert command.endswith(f"netem limit 1000000 {loss}")


def test_steps_of_a_rate_change_the_class_and_the_delays():
    rate = '[["0 s", "20 Mbit/s"], ["2 s", "5 Mbit/s"], ["99 s", "1 Mbit/s"]]'
    spec = spec_of(overrides={"bottleneck.rate": rate, "bottleneck.queue.limit": '"100 kB"'})
    first, second = topology(spec, MACHINE).timetable
    assert (first["at_ns"], first["host"]) == (2 * 10**9, "a0")
    assert "class change dev queue parent 1: classid 1:10 htb rate 5000000bit" in first["tc"][0]
    assert (second["at_ns"], second["host"]) == (2 * 10**9, "r0")
    assert second["delays_us"] == {"back": 40_000 + round(1514 * 8 / 5)}


def test_ends_of_a_flow():
    overrides = {
        "flows.one.pacing": '"fq"',
        "flows.one.nic_rate": '"50 Mbit/s"',
        "flows.one.initial_window": "4",
        "flows.one.receive_window": '"1 MB"',
        "flows.one.ecn": "true",
    }
    sender = topology(spec_of(overrides=overrides), MACHINE).hosts["s0"]
    assert sender.tc == [
        "qdisc add dev out root handle 1: tbf rate 50000000bit burst 1514 limit 1000000000",
        "qdisc add dev out parent 1: handle 10: fq",
    ]
    assert sender.routes == [Route(None, "out", "10.1.0.1", 4)]
    assert sender.sysctls["net.ipv4.tcp_rmem"] == "4096 2000000 2000000"
    assert sender.sysctls["net.ipv4.tcp_ecn"] == "1"


MTUS = """
duration = "6 s"
[[links]]
name = "first"
rate = "20 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "100 kB" }
[[links]]
name = "second"
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "100 kB" }
[[flows]]
name = "jumbo"
controller = "reno"
path = ["first"]
rtt = "40 ms"
mtu = "9000 B"
nic_rate = "100 Mbit/s"
[[flows]]
name = "small"
controller = "reno"
path = ["first", "second"]
rtt = "40 ms"
mtu = "576 B"
"""


def test_devices_of_a_flow_have_its_mtu_and_those_of_links_the_largest():
    spec = spec_of(MTUS) | {"capture": {"scenario": "one"}}
    mtus = {name: host.mtu_bytes for name, host in topology(spec, MACHINE).hosts.items()}
    ends = {"s0": 9000, "r0": 9000, "s1": 576, "r1": 576}
    links = {"a0": 9000, "m0": 9000, "z0": 9000, "a1": 1500, "z1": 1500}
    # What delays the ACKs carries nothing else.
    assert mtus == ends | links | {"h0": 1500, "h1": 1500}


def test_links_of_our_own_need_no_compensation():
    spec = spec_of(MTUS)
    # They hand packets over when their sending ends; of the card, tbf does so when it begins.
    delays_us = topology(spec, OWN).hosts["r0"].delays_us
    assert delays_us == {"back": 35_000 + round(9014 * 8 / 100)}


def test_a_full_packet_of_the_flow_is_what_htb_and_the_card_send():
    made = topology(spec_of(MTUS), MACHINE).hosts
    first_us, second_us = 590 * 8 / 20, 590 * 8 / 10
    assert made["r1"].delays_us == {"back": round(35_000 + first_us + second_us)}
    # tbf drops what is larger than its burst.
    assert "burst 9014 " in made["s0"].tc[0]


def test_writes_are_whole_segments(defaults):
    flows = job.build(spec_of(MTUS), VIRTUAL, defaults)["flows"]
    assert [flow["write_bytes"] for flow in flows] == [117 * 8948, 2001 * 524]
    usual = job.build(spec_of(), VIRTUAL, defaults)["flows"]
    assert usual[0]["write_bytes"] == 724 * 1448


def test_a_window_that_tunes_itself_starts_below_its_limit():
    overrides = {
        "flows.one.receive_window": '"1 MB"',
        "flows.one.receive_window_autotuning": "true",
    }
    spec = spec_of(overrides=overrides)
    receiver = topology(spec, MACHINE).hosts["r0"]
    assert receiver.sysctls["net.ipv4.tcp_rmem"] == "4096 131070 2000000"


def test_only_the_receivers_card_puts_segments_together():
    merging = {
        gro: {
            name: host.merging
            for name, host in topology(
                spec_of(overrides={"flows.one.receiver_gro": gro}), MACHINE
            ).hosts.items()
        }
        for gro in ("true", "false")
    }
    assert merging["true"] == merging["false"] | {"r0": ["in"]}
    assert not any(merging["false"].values())


@pytest.mark.parametrize(
    ("controller", "ecn", "agreed", "receiver"),
    [
        ("dctcp", None, True, "dctcp"),
        ("dctcp", "false", False, None),
        ("cubic", "true", True, None),
        ("cubic", None, False, None),
    ],
)
def test_a_controller_that_needs_ecn_is_put_on_the_receiver_too(controller, ecn, agreed, receiver):
    overrides = {"flows.one.controller": f'"{controller}"'}
    if ecn is not None:
        overrides["flows.one.ecn"] = ecn
    spec = spec_of(overrides=overrides)
    assert spec["flows"][0]["ecn"] is agreed
    made = job.build(spec, VIRTUAL, {controller: {}, "hystart": {}})
    assert made["flows"][0]["receiver_controller"] == receiver


def test_every_flow_has_addresses_of_its_own():
    spec = spec_of()
    spec["flows"] = [{**spec["flows"][0], "name": str(number)} for number in range(1000)]
    made = job.build(spec, VIRTUAL, {"cubic": {}, "hystart": {}})
    ends = [flow[end] for flow in made["flows"] for end in ("sender_address", "receiver_address")]
    assert len(set(ends)) == 2000
    assert all(0 < int(part) < 255 for end in ends for part in (end.split(".")[3],))
    assert all(len(device) < 16 for wire in made["wires"] for device in (wire[1], wire[3]))


def test_a_link_that_tc_has_no_words_for_is_one_discipline():
    outage = '{ every = "5 s", durations = "1 s" }'
    spec = spec_of(overrides={"bottleneck.outage": outage, "bottleneck.loss": '"1 %"'})
    made = topology(spec, OWN)
    assert list(made.hosts) == ["a0", "z0", "s0", "r0"]
    (link,) = made.hosts["a0"].disciplines
    assert link == {
        "device": "queue",
        "kind": "jostle_link",
        "handle": 0x10000,
        "parent": 0xFFFFFFFF,
        "options": "jostle_link-0",
    }
    assert made.hosts["a0"].tc == ["qdisc add dev queue parent 1:1 handle 10: bfifo limit 100000"]
    # It hands packets over when their sending ends.
    assert made.hosts["r0"].delays_us == {"back": 40_000}
    (places,) = made.queues
    assert (places["queue"]["handle"], places["losses"]["kind"]) == (0x100000, "jostle_link")


def test_a_queue_that_linux_has_not_lies_in_a_link_of_ours():
    queue = '{ kind = "occupancy_drop", limit = "1 MB", threshold = "500 kB" }'
    disciplines = topology(spec_of(overrides={"bottleneck.queue": queue}), OWN).hosts["a0"]
    assert disciplines.tc == []
    kinds = [(made["kind"], made["parent"]) for made in disciplines.disciplines]
    assert kinds == [("jostle_link", 0xFFFFFFFF), ("jostle_queue", 0x10001)]


def test_a_policer_is_a_filter_in_front_of_a_fifo_whose_drops_are_told_apart():
    queue = '{ kind = "policer", rate = "5 Mbit/s", burst = "20 kB", limit = "9 packets" }'
    made = topology(spec_of(overrides={"bottleneck.queue": queue}), MACHINE)
    assert made.hosts["a0"].tc[-4:] == [
        "qdisc add dev queue parent 1:10 handle 10: drr",
        "class add dev queue parent 10: classid 10:1 drr quantum 1514",
        "qdisc add dev queue parent 10:1 handle 101: pfifo limit 9",
        "filter add dev queue parent 10: protocol all prio 1 matchall flowid 10:1 "
        "action police rate 5000000bit burst 20000 mtu 65550 conform-exceed drop/ok",
    ]
    assert made.queues[0]["queue"]["inner"] == 0x1010000


@pytest.mark.parametrize("queue", ['"tbf"', '"policer"', '{ kind = "cake", rate = "1 Mbit/s" }'])
def test_shapers_inside_of_classes_are_refused(queue, defaults):
    classes = f'{{ kind = "drr", classes = {{ one = {{ queue = {queue} }} }} }}'
    spec = spec_of(overrides={"bottleneck.queue": classes})
    (found,) = capabilities.problems(spec, defaults, "virtual")
    assert found.key == "bottleneck.queue.classes"


def test_the_number_of_buckets_of_sfq_is_a_power_of_two():
    queue = spec_of(overrides={"bottleneck.queue": '{ kind = "sfq", divisor = 1000 }'})
    (found,) = tc_queues.problems(queue["links"][0]["queue"], {1514})
    assert found.key == "divisor"


CLASSES = """{ kind = "drr", quantum = "2 kB", classes = {
    one = { weight = 2, queue = "codel" }, default = {} } }"""


@pytest.mark.parametrize("machine", [MACHINE, OWN])
def test_classes_have_filters_by_the_addresses_of_their_flows(machine):
    text = PARKING_LOT.replace(
        '{ kind = "drop_tail", limit = "100 kB" }', CLASSES.replace("\n", "")
    )
    text = text.replace('{ kind = "drop_tail", limit = "50 packets" }', '"drr"')
    made = topology(spec_of(text), machine)
    assert made.hosts["a0"].tc[-5:] == [
        "class add dev queue parent 10: classid 10:1 drr quantum 4000",
        "qdisc add dev queue parent 10:1 handle 101: "
        "codel limit 1000 target 5000us interval 100000us noecn",
        "class add dev queue parent 10: classid 10:2 drr quantum 2000",
        "qdisc add dev queue parent 10:2 handle 102: bfifo limit 1514000",
        "filter add dev queue parent 10: protocol ip prio 1 u32 match ip dst 10.2.0.1/32 "
        "flowid 10:2",
    ]
    # ACKs come back through the other one, where every flow is a class.
    assert made.hosts["a2"].tc[-3:] == [
        "class add dev queue parent 10: classid 10:1 drr quantum 1514",
        "qdisc add dev queue parent 10:1 handle 101: bfifo limit 1514000",
        "filter add dev queue parent 10: protocol ip prio 1 u32 match ip dst 10.1.0.1/32 "
        "flowid 10:1",
    ]


def test_steps_of_a_rate_are_played_back_where_that_can_be():
    rate = '[["0 s", "20 Mbit/s"], ["2 s", "0 Mbit/s"]]'
    spec = spec_of(overrides={"bottleneck.rate": rate, "bottleneck.queue.limit": '"100 kB"'})
    assert topology(spec, OWN).timetable == []
    assert len(topology(spec, OWN).hosts["a0"].disciplines) == 1


def test_pie_is_asked_for_a_tick_less_where_ticks_are_known():
    queue = spec_of(overrides={"bottleneck.queue": '"pie"'})["links"][0]["queue"]
    assert "tupdate 14000us" in tc_queues.command(queue, tc_queues.QueueContext(10**7, 1_000_000))
    assert "tupdate 15000us" in tc_queues.command(queue, tc_queues.QueueContext(10**7, None))


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ('{ kind = "drop_tail", limit = "70 packets" }', "pfifo limit 70"),
        ('"codel"', "codel limit 1000 target 5000us interval 100000us noecn"),
        (
            '{ kind = "fq_codel", queues = 64, ecn = false }',
            "flows 64 quantum 1514 target 5000us interval 100000us",
        ),
        (
            '{ kind = "pie", ecn = true }',
            "pie limit 1000 target 15000us tupdate 15000us alpha 2 beta 20 ecn nobytemode",
        ),
        (
            '{ kind = "red", limit = "200 kB", min = "20 kB", max = "60 kB", ecn = true }',
            "red limit 200000 min 20000 max 60000 avpkt 1514 burst ",
        ),
        (
            '{ kind = "step_mark", limit = "70 packets", threshold = "800 us" }',
            "codel limit 70 target 2000s interval 2000s ce_threshold 800us noecn",
        ),
        (
            '{ kind = "cake", rate = "5 Mbit/s", isolation = "none", overhead = 44 }',
            "cake bandwidth 5000000bit besteffort flowblind rtt 100000us overhead 44",
        ),
        (
            '{ kind = "cake", mpu = 84, memory_limit = "2 MB" }',
            "cake unlimited besteffort flows rtt 100000us overhead 14 mpu 84 memlimit 2000000",
        ),
        ('"cake"', "cake unlimited besteffort flows rtt 100000us overhead 14"),
        ('"sfq"', "sfq limit 127 depth 127 flows 128 divisor 1024 quantum 1514"),
        (
            '{ kind = "fq_pie", ecn = true }',
            "quantum 1514 target 15000us tupdate 15000us alpha 2 beta 20 memory_limit ",
        ),
        (
            '{ kind = "tbf", rate = "5 Mbit/s", burst = "20 kB", limit = "90 kB" }',
            "tbf rate 5000000bit burst 20000 limit 90000",
        ),
    ],
)
def test_queues(queue, words):
    spec = spec_of(overrides={"bottleneck.queue": queue})
    assert words in tc_queues.command(spec["links"][0]["queue"], tc_queues.QueueContext(20_000_000))


def test_limits_in_bytes_are_as_many_packets_as_the_flows_have():
    jumbo = tc_queues.QueueContext(20_000_000, None, 9014)
    limit = {"limit": {"bytes": 90_140}}
    queue = spec_of(overrides={"bottleneck.queue": '"codel"'})["links"][0]["queue"]
    queue["parameters"] |= limit
    assert tc_queues.problems(queue, {9014}) == []
    assert tc_queues.command(queue, jumbo).startswith("codel limit 10 ")
    for sizes in ({1514}, {1514, 9014}):
        (problem,) = tc_queues.problems(queue, sizes)
        assert problem.key == "limit"


def test_fq_codel_has_memory_for_the_largest_packets():
    queue = spec_of(overrides={"bottleneck.queue": '"fq_codel"'})["links"][0]["queue"]
    words = tc_queues.command(queue, tc_queues.QueueContext(20_000_000, None, 65_549)).split()
    limit = int(words[words.index("limit") + 1])
    # Linux counts what a packet occupies, which is more than its length.
    assert int(words[words.index("memory_limit") + 1]) > 1.5 * limit * 65_549


@pytest.mark.parametrize("min_bytes", [1514, 30_000, 3_000_000])
@pytest.mark.parametrize("weight", [0.25, 0.02, 0.002, 0.0001])
def test_red_is_told_the_burst_of_which_tc_makes_the_weight(weight, min_bytes):
    def tc_red_eval_ewma(burst: int) -> int:
        # As iproute2 has it: the weight is 2 to the power of minus the result.
        excess = burst + 1 - min_bytes / 1514
        assert excess >= 1
        for wlog in range(1, 32):
            share = 0.5**wlog
            if excess <= (1 - (1 - share) ** burst) / share:
                return wlog
        return -1

    queue = {
        "kind": "red",
        "parameters": {
            "limit": {"bytes": 10**7},
            "min": min_bytes,
            "max": 3 * min_bytes,
            "probability": 0.02,
            "weight": weight,
            "ecn": False,
        },
    }
    found = tc_queues.problems(queue, {1514})
    if found:
        assert [problem.key for problem in found] == ["weight"]
        # A lower threshold of one packet or of thousands leaves no burst that gives the weight.
        assert min_bytes != 30_000 or weight == 0.25
        return
    words = tc_queues.command(queue, tc_queues.QueueContext(10**7)).split()
    burst = int(words[words.index("burst") + 1])
    assert 2.0 ** -tc_red_eval_ewma(burst) == pytest.approx(weight, rel=math.sqrt(2) - 1)


def test_module_parameters_of_cubic(defaults):
    overrides = {"flows.one.controller": '{ name = "cubic", fast_convergence = false }'}
    assert flow_keys(spec_of(overrides=overrides), defaults) == {
        "tcp_cubic/fast_convergence": "0",
        "tcp_cubic/beta": "717",
        "tcp_cubic/initial_ssthresh": "0",
        "tcp_cubic/tcp_friendliness": "1",
        "tcp_cubic/hystart": "1",
        "tcp_cubic/hystart_detect": "3",
        "tcp_cubic/hystart_low_window": "16",
        "tcp_cubic/hystart_ack_delta_us": "2000",
    }


@pytest.mark.parametrize(
    ("override", "parameters"),
    [
        ({"flows.one.controller": '"reno"'}, {}),
        ({"flows.one.controller": '"bbr"'}, {}),
        ({"flows.one.controller": '"hybla"'}, {"tcp_hybla/rtt0": "25"}),
        (
            {"flows.one.controller": '{ name = "vegas", alpha = 3 }'},
            {"tcp_vegas/alpha": "3", "tcp_vegas/beta": "4", "tcp_vegas/gamma": "1"},
        ),
    ],
)
def test_module_parameters_of_others(override, parameters, defaults):
    assert flow_keys(spec_of(overrides=override), defaults) == parameters


def test_hystart_off(defaults):
    overrides = {"flows.one.controller": '{ name = "cubic", hystart = false }'}
    assert flow_keys(spec_of(overrides=overrides), defaults)["tcp_cubic/hystart"] == "0"


TWO_CUBICS = f"""{SCENARIO}
[[flows]]
name = "two"
controller = {{ name = "cubic", hystart = false }}
rtt = "40 ms"
"""


def test_two_flavours_of_cubic_are_two_modules(defaults):
    plan = controllers.plan(spec_of(TWO_CUBICS)["flows"], defaults, "virtual")
    assert (plan.names, plan.problems) == (["cubic", "cubic_2"], [])
    hystart = {name: plan.parameters[f"tcp_{name}/hystart"] for name in plan.names}
    assert hystart == {"cubic": "1", "cubic_2": "0"}


def test_two_flows_of_a_flavour_share_a_module(defaults):
    flows = spec_of(TWO_CUBICS.replace("hystart = false", "beta = 717"))["flows"]
    assert controllers.plan(flows, defaults, "virtual").names == ["cubic", "cubic"]


def test_the_cubic_of_linux_4_15_is_a_module_of_its_own(defaults):
    flows = spec_of(TWO_CUBICS.replace("hystart = false", 'linux = "4.15"'))["flows"]
    assert controllers.plan(flows, defaults, "virtual").names == ["cubic", "cubic_415"]
    job_flows = job.build(spec_of(TWO_CUBICS), VIRTUAL, defaults)["flows"]
    assert [flow["controller"] for flow in job_flows] == ["cubic", "cubic_2"]


def test_the_bbr_of_linux_4_15_is_a_module_of_its_own(defaults):
    old = {"flows.one.controller": '"bbr"', "flows.one.linux_version": '"4.15"'}
    flows = spec_of(overrides=old)["flows"]
    virtual = controllers.plan(flows, defaults, "virtual")
    assert (virtual.names, virtual.parameters, virtual.problems) == (["bbr_415"], {}, [])
    (problem,) = controllers.plan(flows, defaults, "realtime").problems
    assert problem.key == "flows.one.linux_version"
    new = spec_of(overrides={"flows.one.controller": '"bbr"'})["flows"]
    assert controllers.plan(new, defaults, "virtual").names == ["bbr"]


def test_the_hosts_of_linux_4_15_burst_and_acknowledge_as_it_did(defaults):
    def sysctls(linux: str) -> list[tuple[str | None, str | None]]:
        made = job.build(
            spec_of(overrides={"flows.one.linux_version": f'"{linux}"'}), VIRTUAL, defaults
        )
        names = ("net.ipv4.tcp_tso_rtt_log", "net.ipv4.tcp_comp_sack_nr")
        found = [tuple(host["sysctls"].get(name) for name in names) for host in made["hosts"]]
        return [pair for pair in found if pair != (None, None)]

    assert sysctls("4.15") == [("0", "0")] * 2
    assert sysctls("6.1") == []


def test_this_machine_is_left_as_it_is(defaults):
    here = job.build(spec_of(), NATIVE, defaults)
    assert (here["may_set_parameters"], here["sysctls"]) == (False, {})
    guest = job.build(spec_of(), VIRTUAL, defaults)
    assert guest["may_set_parameters"] is True
    assert guest["sysctls"].keys() == {"net.ipv4.tcp_mem", "net.core.netdev_max_backlog"}


@pytest.mark.parametrize(
    ("flows", "interval", "parts"),
    [(1, 1000, 100), (2, 1000, 50), (9, 1000, 20), (2, 15, 1), (1, 25, 3)],
)
def test_samples_divide_the_interval(flows, interval, parts):
    spec = spec_of()
    spec["flows"] *= flows
    spec["interval_ns"] = interval * 1_000_000
    assert job.samples_per_interval(spec) == parts


def test_ends_of_intervals_and_phases_are_sampled(defaults):
    spec = spec_of(SCENARIO.replace('late = ["5 s"', 'late = ["4.321 s"'))
    spec["interval_ns"] = 70_000_001
    moments = moments_ns(job.build(spec, VIRTUAL, defaults))
    ends = {70_000_001 * number for number in range(143)}
    assert {*ends, 4_321_000_000, 10 * 10**9} <= set(moments)
    assert moments == sorted(set(moments))
    assert len(moments) == 142 * 8 + 7 + 2


def test_a_guest_has_memory_for_what_is_in_flight():
    small, large = spec_of(), spec_of()
    large["links"][0]["capacity"]["rate_bps"] = 10**9
    large["flows"][0]["base_delay_ns"] = 600_000_000
    large["flows"][0]["receive_window_bytes"] = 300 * 10**6
    in_flight_mb = 10**9 / 8 * 0.6 / 2**20
    assert job.memory_mb(small) < 600
    assert job.memory_mb(large) > 512 + 3 * in_flight_mb


def test_small_packets_take_more_memory():
    small, usual, jumbo = (
        spec_of(overrides={"flows.one.mtu": f'"{mtu} B"', "bottleneck.queue.limit": '"80 MB"'})
        for mtu in (576, 1500, 9000)
    )
    assert job.memory_mb(small) > job.memory_mb(usual) + 200
    assert job.memory_mb(usual) > job.memory_mb(jumbo) + 100


def test_modules_are_loaded_after_those_they_depend_on(tmp_path):
    (tmp_path / "modules.dep").write_text(
        "kernel/tcp_yeah.ko: kernel/tcp_vegas.ko\nkernel/tcp_vegas.ko:\nkernel/sch-htb.ko:\n"
    )
    spec = spec_of(overrides={"bottleneck.queue": '"pie"', "flows.one.pacing": '"fq"'})
    assert kernel_modules.needed(spec) == [
        "veth", "sch_htb", "sch_netem", "sch_pie", "tcp_cubic", "sch_fq"
    ]  # fmt: skip
    # What is not listed is built in.
    assert kernel_modules.files(["veth", "sch_htb", "tcp_yeah", "tcp_vegas"], tmp_path) == [
        str(tmp_path / "kernel" / name) for name in ("sch-htb.ko", "tcp_vegas.ko", "tcp_yeah.ko")
    ]


def test_what_may_be_sent_at_once_grows_with_the_rate():
    burst = Burst(1600, 1000)
    assert burst.size_bytes(1_000_000) == 1600
    assert burst.size_bytes(100_000_000) == 12_500
