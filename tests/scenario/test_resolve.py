"""What a run is given for what a scenario says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jostle.scenario import Registry, Scenario, ScenarioError, load, load_text

Read = Callable[..., Scenario]
QUEUE = 'queue = { kind = "drop_tail", limit = "1 BDP" }'


def spec(scenario: Scenario) -> dict[str, Any]:
    return dict(scenario.plan().runs[0].spec)


def test_a_plain_scenario(read: Read, run_spec_schema: dict[str, Any]) -> None:
    run = spec(read())
    jsonschema.validate(run, run_spec_schema)
    assert run["phases"] == [{"name": "overall", "from_ns": 0, "to_ns": 10_000_000_000}]
    assert run["interval_ns"] == 100_000_000
    assert (run["seed"], run["record"]) == (1, "none")
    link = run["links"][0]
    assert link["capacity"] == {"kind": "constant", "rate_bps": 10_000_000}
    # 1 BDP is that of the largest round trip: 10 Mbit/s × 80 ms.
    assert link["queue"] == {"kind": "drop_tail", "parameters": {"limit": {"bytes": 100_000}}}
    first, second = run["flows"]
    assert (first["path"], first["reverse_path"]) == ([0], [])
    assert (first["base_delay_ns"], second["base_delay_ns"]) == (40_000_000, 80_000_000)
    assert first["receive_window_bytes"] == 32 * 2**20
    assert (first["initial_window_packets"], first["ecn"], first["pacing"]) == (10, False, False)
    assert first["source"] == {"kind": "bulk"}
    assert first["slow_start"]["name"] == "hystart"
    assert second["slow_start"] == {"name": "standard", "parameters": {}}


def test_a_removed_flow_does_not_count(read: Read) -> None:
    both, first = (read(overrides={"flows.second.count": count}).plan() for count in "10")
    run = dict(first.runs[0].spec)
    assert [flow["name"] for flow in run["flows"]] == ["first"]
    assert run["flows"] == both.runs[0].spec["flows"][:1]
    # The largest round trip is that of the first flow: 10 Mbit/s × 40 ms.
    assert run["links"][0]["queue"]["parameters"] == {"limit": {"bytes": 50_000}}
    assert run["interval_ns"] == 50_000_000


def test_a_capture_carries_the_title(read: Read, run_spec_schema: dict[str, Any]) -> None:
    assert spec(read())["capture"] is None
    run = spec(read(add="", overrides={"capture": "true", "title": '"Two of a kind"'}))
    jsonschema.validate(run, run_spec_schema)
    assert run["capture"] == {"scenario": "Two of a kind", "qlog": False}


def test_a_capture_needs_few_flows_with_short_names(read: Read) -> None:
    for key, value, told in (
        ("flows.first.count", "100", "cannot be set with 101 flows — expected at most 100 flows"),
        (
            "flows.first.name",
            f'"{"x" * 201}"',
            "expected one that can name a file, of at most 200 bytes",
        ),
    ):
        read(overrides={key: value})
        with pytest.raises(ScenarioError, match=told):
            read(overrides={"capture": "true", key: value})


def test_a_profile_carries_the_quiet_link(read: Read) -> None:
    run = spec(
        read(
            ('rate = "10 Mbit/s"\n' + QUEUE, 'profile = "viasat-2"'),
            ('rtt = "40 ms"\n', ""),
            ('"80 ms"', '"800 ms"'),
        )
    )
    link, flow = run["links"][0], run["flows"][0]
    quantiles = [point["value_ns"] for point in link["delay"]["jitter"]["quantiles"]]
    delay = link["delay"]["steps"][0]["delay_ns"]
    assert delay + flow["base_delay_ns"] + quantiles[0] == 564_000_000
    assert delay + flow["base_delay_ns"] + 24_000_000 == 588_000_000
    assert link["queue"]["parameters"]["limit"] == {"bytes": 36_000_000}
    assert flow["receive_window_bytes"] == 2 * (144_000_000 * 588 // 8000 + 36_000_000)


def test_keys_beside_a_profile_override_it(read: Read) -> None:
    keys = """
    profile = "viasat-2"
    rate = "10 Mbit/s"
    jitter = { correlation = "2 s" }
    outage = "none"
    """
    link = spec(
        read(
            (f'rate = "10 Mbit/s"\n{QUEUE}', f'{keys}\nqueue = {{ limit = "30 MB" }}'),
            ('"40 ms"', '"600 ms"'),
            ('"80 ms"', '"700 ms"'),
        )
    )["links"][0]
    assert link["capacity"]["rate_bps"] == 10_000_000
    assert link["delay"]["jitter"]["correlation_ns"] == 2_000_000_000
    assert len(link["delay"]["jitter"]["quantiles"]) > 10
    assert link["outages"] is None
    assert link["queue"]["parameters"]["limit"] == {"bytes": 30_000_000}
    assert link["queue"]["parameters"]["threshold"] == 18_000_000


def test_a_random_rate_has_steps_and_bounds(read: Read, run_spec_schema: dict[str, Any]) -> None:
    def drawn(rate: str) -> dict[str, Any]:
        run = spec(read(overrides={"bottleneck.rate": f"{{ {rate} }}"}))
        jsonschema.validate(run, run_spec_schema)
        capacity: dict[str, Any] = run["links"][0]["capacity"]
        # 1 BDP is that of the mean: 10 Mbit/s × 80 ms.
        assert run["links"][0]["queue"]["parameters"]["limit"] == {"bytes": 100_000}
        return capacity

    wide = 'mean = "10 Mbit/s", deviation = "4 Mbit/s", correlation = "8 s"'
    assert drawn(wide) == {
        "kind": "autoregressive",
        "mean_bps": 10_000_000,
        "deviation_bps": 4_000_000,
        "correlation_ns": 8_000_000_000,
        "step_ns": 500_000_000,
        "min_bps": 1_000_000,
        "max_bps": 22_000_000,
    }
    narrow = drawn(wide.replace("4 Mbit/s", "1 Mbit/s").replace("8 s", "10 ms"))
    assert (narrow["min_bps"], narrow["max_bps"]) == (7_000_000, 13_000_000)
    assert narrow["step_ns"] == 1_000_000
    given = drawn(f'{wide}, step = "2 s", min = "9 Mbit/s", max = "12 Mbit/s"')
    assert (given["step_ns"], given["min_bps"], given["max_bps"]) == (
        2_000_000_000,
        9_000_000,
        12_000_000,
    )


def test_windows_have_room_for_the_upper_bound_of_a_random_rate(read: Read) -> None:
    rate = '{ mean = "1 Gbit/s", deviation = "100 Mbit/s", correlation = "1 s", max = "8 Gbit/s" }'
    run = spec(read(overrides={"bottleneck.rate": rate}))
    limit = run["links"][0]["queue"]["parameters"]["limit"]["bytes"]
    assert limit == 1_000_000_000 * 80 // 8000
    assert run["flows"][1]["receive_window_bytes"] == 2 * (8_000_000_000 * 80 // 8000 + limit)


def test_a_default_limit_in_packets_is_counted_in_packets(registry: Registry) -> None:
    text = """
    duration = "1 s"
    [bottleneck]
    rate = "10 Mbit/s"
    queue = "fq_codel"
    [[flows]]
    name = "x"
    controller = "reno"
    rtt = "50 ms"
    """
    (link,) = spec(load_text(text, registry=registry))["links"]
    assert link["queue"]["parameters"]["limit"] == 10_240


def test_links_of_a_path_share_the_round_trip(registry: Registry) -> None:
    text = """
    duration = "1 s"
    [[links]]
    name = "a"
    rate = "10 Mbit/s"
    queue = "codel"
    delay = [["0 s", "5 ms"], ["1 ms", "50 ms"]]
    [[links]]
    name = "b"
    rate = [["0 s", "10 Mbit/s"], ["0.5 s", "0 bit/s"]]
    queue = { kind = "fq_codel", limit = "2 BDP" }
    delay = "7 ms"
    jitter.quantiles = { "0 %" = "0 ms", "100 %" = "4 ms" }
    jitter.correlation = "0 s"
    [[flows]]
    name = "x"
    controller = "reno"
    path = ["b"]
    reverse_path = ["a"]
    rtt = "50 ms"
    """
    run = spec(load_text(text, registry=registry))
    (flow,) = run["flows"]
    assert (flow["path"], flow["reverse_path"]) == ([1], [0])
    # The links' first delays and the jitter's median are part of the 50 ms.
    assert flow["base_delay_ns"] == (50 - 5 - 7 - 2) * 10**6
    assert run["links"][1]["capacity"]["steps"][1] == {"at_ns": 500_000_000, "rate_bps": 0}
    # 2 BDP = 125,000 B, in whole packets of 1514 B.
    assert run["links"][1]["queue"]["parameters"]["limit"] == 83


def test_packet_limits_stay_packets(read: Read) -> None:
    run = spec(read(("1 BDP", "1000 packets")))
    assert run["links"][0]["queue"]["parameters"]["limit"] == {"packets": 1000}


def test_every_queue_of_the_registry_fits_the_run_spec(
    read: Read, registry: Registry, run_spec_schema: dict[str, Any]
) -> None:
    assert registry.queues
    for kind, row in registry.queues.items():
        needed = {
            n: f'{n} = "{i + 1} BDP"'
            for i, (n, p) in enumerate(row.parameters.items())
            if p.default is None
        }
        needed["limit"] = 'limit = "9 BDP"'
        table = ", ".join([f'kind = "{kind}"', *needed.values()])
        run = spec(read((QUEUE, f"queue = {{ {table} }}")))
        jsonschema.validate(run, run_spec_schema)
        assert set(run["links"][0]["queue"]["parameters"]) == set(row.parameters)


def test_a_trace_has_its_mean_rate(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "t.mahi").write_text("1\n1\n2\n\n4\n")
    text = """
    duration = "1 s"
    [bottleneck]
    trace = "t.mahi"
    queue = { kind = "drop_tail", limit = "10 BDP" }
    [[flows]]
    name = "x"
    controller = "reno"
    rtt = "4 ms"
    """
    (tmp_path / "s.toml").write_text(text)
    link = spec(load(tmp_path / "s.toml", registry=registry))["links"][0]
    assert link["capacity"] == {
        "kind": "trace",
        "opportunities_ms": [1, 1, 2, 4],
        "opportunity_bytes": 1514,
    }
    # 4 opportunities in 4 ms: 12.112 Mbit/s × 4 ms = 6056 B.
    assert link["queue"]["parameters"]["limit"] == {"bytes": 60_560}


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        ('"0.1 %"', {"kind": "independent", "parameters": {"probability": 0.001}}),
        ("0.5", {"kind": "independent", "parameters": {"probability": 0.5}}),
        (
            '{ kind = "independent", probability = "1 %" }',
            {"kind": "independent", "parameters": {"probability": 0.01}},
        ),
        (
            '{ kind = "gilbert_elliott", good_to_bad = 0.1, bad_to_good = "50 %" }',
            {
                "kind": "gilbert_elliott",
                "parameters": {
                    "good_to_bad": 0.1,
                    "bad_to_good": 0.5,
                    "loss_good": 0.0,
                    "loss_bad": 1.0,
                },
            },
        ),
        ('"none"', None),
    ],
)
def test_losses(read: Read, written: str, resolved: dict[str, Any] | None) -> None:
    assert spec(read((QUEUE, f"loss = {written}\n{QUEUE}")))["links"][0]["loss"] == resolved


def test_a_router_grants_an_allowance(read: Read) -> None:
    table = '{ allowance = "8 Mbit/s", interval = "600 ms" }'
    for written, interval_ns in (('"8 Mbit/s"', 150 * 10**6), (table, 600 * 10**6)):
        link = spec(read((QUEUE, f"quick_start = {written}\n{QUEUE}")))["links"][0]
        assert link["quick_start"] == {"allowance_bps": 8_000_000, "interval_ns": interval_ns}
    assert spec(read())["links"][0]["quick_start"] is None


def test_outages_of_one_length(read: Read) -> None:
    link = spec(read((QUEUE, f'outage = {{ every = "20 min", durations = "1 s" }}\n{QUEUE}')))[
        "links"
    ][0]
    assert link["outages"] == {
        "mean_interval_ns": 1_200_000_000_000,
        "durations": [
            {"probability": 0.0, "value_ns": 1_000_000_000},
            {"probability": 1.0, "value_ns": 1_000_000_000},
        ],
    }


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        ('size = "1 GB"', {"kind": "fixed", "bytes": 10**9}),
        ('source = { kind = "fixed", size = "1 kB" }', {"kind": "fixed", "bytes": 1000}),
        ('source = "bulk"', {"kind": "bulk"}),
        (
            'source = { kind = "on_off", on = "1 s", off = "2 s" }',
            {"kind": "on_off", "on_ns": 10**9, "off_ns": 2 * 10**9},
        ),
        (
            'source = { kind = "request_response", size = "1 kB", think_time = "0 s", count = 3 }',
            {
                "kind": "request_response",
                "bytes": 1000,
                "think_ns": 0,
                "count": 3,
            },
        ),
        (
            'source = { kind = "video", length = "92 s", buffer = "40 s", variation = "20 %" }',
            {
                "kind": "video",
                "bitrates_bps": [
                    kbps * 1000 for kbps in (235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800)
                ],
                "segment_ns": 4 * 10**9,
                "segments": 23,
                "variation": 0.2,
                # 90 s and 126 s of 240 s, as published.
                "choice": {
                    "kind": "buffer",
                    "reservoir_ns": 15 * 10**9,
                    "cushion_ns": 21 * 10**9,
                },
                "startup_ns": 4 * 10**9,
                "buffer_ns": 40 * 10**9,
            },
        ),
        (
            'source = { kind = "video", bitrates = ["1 Mbit/s"], abr = "throughput", segment = '
            '"2 s", startup_buffer = "5 s" }',
            {
                "kind": "video",
                "bitrates_bps": [10**6],
                "segment_ns": 2 * 10**9,
                "segments": None,
                "variation": 0.0,
                "choice": {"kind": "throughput", "samples": 20, "safety": 0.85},
                "startup_ns": 5 * 10**9,
                "buffer_ns": 240 * 10**9,
            },
        ),
        (
            'source = { kind = "web", main_object = "10 kB", object_count = 0, '
            'object_size = "1 kB", parse_time = "0 s", '
            'think_time = "5 s", multiplexed = true, pages = 7 }',
            {
                "kind": "web",
                "pages": 7,
                "main_bytes": 10_000,
                "objects": 0,
                "object_bytes": 1000,
                "request_bytes": 350,
                "parse_ns": 0,
                "think_ns": 5 * 10**9,
                "connections": 1,
                "multiplexed": True,
            },
        ),
    ],
)
def test_sources(
    read: Read, written: str, resolved: dict[str, Any], run_spec_schema: dict[str, Any]
) -> None:
    run = spec(read(('rtt = "40 ms"', f'rtt = "40 ms"\n{written}')))
    jsonschema.validate(run, run_spec_schema)
    assert run["flows"][0]["source"] == resolved


def test_pings_have_no_controller(read: Read, run_spec_schema: dict[str, Any]) -> None:
    source = 'source = { kind = "ping", size = "20 B", period = "200 ms" }'
    run = spec(
        read(
            ('rtt = "40 ms"', f'rtt = "40 ms"\n{source}'),
            ('controller = "cubic"', 'controller = "none"'),
        )
    )
    jsonschema.validate(run, run_spec_schema)
    flow = run["flows"][0]
    assert flow["source"] == {
        "kind": "ping",
        "bytes": 20,
        "every_ns": 200_000_000,
        "timeout_ns": 10_000_000_000,
    }
    assert flow["transport"] == "udp"
    assert flow["controller"] == {"name": "none", "parameters": {}}
    assert flow["slow_start"] is None


def test_the_other_keys_of_a_flow(read: Read) -> None:
    keys = """rtt = "40 ms"
    start = "1 s"
    stop = "9 s"
    count = 3
    pacing = "fq"
    ecn = true
    initial_window = "32 packets"
    initial_pacing = true
    receive_window = "2 BDP"
    initial_receive_window = "1 BDP"
    nic_rate = "1 Gbit/s"
    linux_version = "4.15"
    """
    flows = spec(read(('rtt = "40 ms"', keys)))["flows"]
    assert [flow["name"] for flow in flows] == ["first-1", "first-2", "first-3", "second"]
    flow = flows[2]
    assert (flow["start_ns"], flow["stop_ns"]) == (10**9, 9 * 10**9)
    assert (flow["pacing"], flow["ecn"]) == (True, True)
    assert (flow["initial_window_packets"], flow["initial_pacing"]) == (32, True)
    assert flow["receive_window_bytes"] == 100_000
    assert flow["initial_receive_window_bytes"] == 50_000
    assert flow["nic_rate_bps"] == 10**9
    assert (flow["linux"], flows[3]["linux"]) == ("4.15", "6.1")


def test_flows_follow_each_other(read: Read) -> None:
    keys = """rtt = "40 ms"
    start = "1 s"
    size = "1 MB"
    count = 3
    one_at_a_time = "100 ms"
    peer_cache = { name = "stateful", slots = 16 }
    """
    last = 'rtt = "80 ms"\nafter = "first"\nstart = "2 s"\npeer = "192.168.0.1"'
    flows = spec(read(('rtt = "40 ms"', keys), ('rtt = "80 ms"', last)))["flows"]
    opens = [(flow["after"], flow["start_ns"] // 10**6) for flow in flows]
    assert opens == [(None, 1000), (0, 100), (1, 100), (2, 2000)]
    assert [flow["peer"] for flow in flows] == [0x0A000001] * 3 + [0xC0A80001]
    assert flows[0]["memory"]["parameters"]["slots"] == 16
    assert flows[3]["memory"] is None


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ('after = "third"', 'there is no flow "third" before this one'),
        ('after = "second"', 'there is no flow "second" before this one'),
        ('after = "first"', '"first" has no end'),
        ('count = 2\none_at_a_time = "0 s"', "the flows have no end"),
        ('size = "1 MB"\none_at_a_time = "0 s"', "there is a single flow"),
        ('peer = "300.1.1.1"', "is no IPv4 address"),
        ('peer_cache = "statefull"', 'did you mean "stateful"'),
    ],
)
def test_what_cannot_follow_is_said(read: Read, keys: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        spec(read(('rtt = "80 ms"', f'rtt = "80 ms"\n{keys}')))


def test_what_only_follows_from_a_mistake_is_not_told(read: Read) -> None:
    """The round trip is wrong: that the queue's limit in BDP is too, is no second mistake."""
    with pytest.raises(ScenarioError) as caught:
        read(('"80 ms"', '"80"'), ('"40 ms"', '"40"'))
    assert [p.key for p in caught.value.problems] == ["flows.first.rtt", "flows.second.rtt"]
