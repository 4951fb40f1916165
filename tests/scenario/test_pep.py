"""Flows that proxies split: which connections a scenario's flow becomes."""

from __future__ import annotations

from typing import Any

from jostle.scenario import load_text
from jostle.scenario.schema import json_schema

LINKS = """
duration = "10 s"
[[links]]
name = "lan"
rate = "100 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "1 MB" }
[[links]]
name = "sat"
rate = "20 Mbit/s"
delay = "250 ms"
queue = { kind = "drop_tail", limit = "1 MB" }
[[links]]
name = "home"
rate = "50 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "1 MB" }
[[links]]
name = "back"
rate = "50 Mbit/s"
delay = "6 ms"
queue = { kind = "drop_tail", limit = "1 MB" }
"""
FLOW = """
[[flows]]
name = "f"
controller = "cubic"
rtt = "600 ms"
path = ["lan", "sat", "home"]
proxy = {}
"""
PEP = '{ link = "sat", controller = "hybla", buffer = "4 MB" }'


def flows_of(text: str) -> list[dict[str, Any]]:
    return list(load_text(text).plan(repeats=1).runs[0].spec["flows"])


def ways(flows: list[dict[str, Any]]) -> list[tuple[str, list[int], list[int], int]]:
    keys = ("name", "path", "reverse_path", "base_delay_ns")
    return [tuple(flow[key] for key in keys) for flow in flows]


def test_a_proxy_makes_two_connections_with_a_part_of_the_way_each():
    flows = flows_of(LINKS + FLOW.format(PEP))
    # 10 ms of a link, and what is left of 600 ms beside 255 ms of links.
    assert ways(flows) == [("f", [0], [], 0), ("f@sat", [1, 2], [], 335_000_000)]
    first, second = flows
    assert (first["controller"]["name"], second["controller"]["name"]) == ("cubic", "hybla")
    assert second["source"] == {"kind": "relay", "from": 0, "buffer_bytes": 4_000_000}
    assert first["source"] == {"kind": "bulk"}
    assert (first["receive_window_bytes"], first["initial_receive_window_bytes"]) == (
        4_000_000,
        65_535,
    )
    # The receiver's window stays the flow's.
    assert second["receive_window_bytes"] == 32 * 2**20
    assert (first["group"], second["group"]) == ("f", "f@sat")


def test_it_stands_at_the_slowest_link_unless_it_says_where():
    at_sat = flows_of(LINKS + FLOW.format(PEP))
    assert flows_of(LINKS + FLOW.format(PEP.replace('link = "sat", ', ""))) == at_sat


def test_several_stand_in_a_row():
    second = '{ link = "home", controller = "bbr", buffer = "1 MB", rtt = "520 ms" }'
    flows = flows_of(LINKS + FLOW.format(f"[{PEP}, {second}]"))
    assert ways(flows) == [
        ("f", [0], [], 0),
        ("f@sat", [1], [], 270_000_000),
        ("f@home", [2], [], 65_000_000),
    ]
    assert [flow["source"].get("from") for flow in flows] == [None, 0, 1]


def test_the_way_back_is_split_at_the_mirrored_place_or_where_it_is_said():
    mirrored = FLOW.replace('"home"]', '"sat"]').replace('["lan", "sat", "sat"]', '["lan", "sat"]')
    mirrored += 'reverse_path = ["back", "home"]\n'
    flows = flows_of(LINKS + mirrored.format(PEP))
    assert ways(flows) == [
        ("f", [0], [2], 0),
        ("f@sat", [1], [3], 600_000_000 - 15_000_000 - 256_000_000),
    ]
    said = FLOW + 'reverse_path = ["back"]\n'
    for back, expected in (("back", [[3], []]),):
        flows = flows_of(LINKS + said.format(PEP.replace("{ ", f'{{ reverse_link = "{back}", ')))
        assert [flow["reverse_path"] for flow in flows] == expected


def test_beside_the_sender_it_has_a_round_trip_all_the_same():
    text = """
duration = "10 s"
[bottleneck]
rate = "20 Mbit/s"
queue = {{ kind = "drop_tail", limit = "1 BDP" }}
[[flows]]
name = "f"
controller = "cubic"
rtt = "600 ms"
proxy = {{ controller = "hybla", buffer = "1 BDP"{} }}
"""
    flows = flows_of(text.format(""))
    assert ways(flows) == [
        ("f", [], [], 1_000_000),
        ("f@bottleneck", [0], [], 599_000_000),
    ]
    assert flows[1]["source"]["buffer_bytes"] == 1_500_000
    told = flows_of(text.format(', rtt = "30 ms", receive_window = "1 MB", initial_window = 30'))
    assert ways(told)[0] == ("f", [], [], 30_000_000)
    assert (told[0]["receive_window_bytes"], told[0]["initial_window_packets"]) == (1_000_000, 10)
    assert told[1]["initial_window_packets"] == 30


def test_every_copy_has_its_own_proxy_and_opens_when_it_does():
    text = LINKS + FLOW.format(PEP) + "count = 2\nstart = '1 s'\n"
    flows = flows_of(
        text + '[[flows]]\nname = "g"\ncontroller = "bbr"\nrtt = "1 s"\npath = ["lan"]'
    )
    assert [flow["name"] for flow in flows] == ["f-1", "f-2", "g", "f-1@sat", "f-2@sat"]
    assert [flow["source"].get("from") for flow in flows[3:]] == [0, 1]
    assert {flow["start_ns"] for flow in flows[3:]} == {10**9}


def test_a_connection_is_of_its_flow_s_class():
    classes = """queue = { kind = "drr", limit = "1 MB", classes = { mine = {}, default = {} } }"""
    links = LINKS.replace(
        '"250 ms"\nqueue = { kind = "drop_tail", limit = "1 MB" }', '"250 ms"\n' + classes
    )
    text = links + FLOW.format(PEP) + 'class = "mine"\n'
    spec = load_text(text).plan(repeats=1).runs[0].spec
    assert [one["flows"] for one in spec["links"][1]["classes"]] == [[1], []]


def test_none_is_no_proxy():
    assert flows_of(LINKS + FLOW.format('"none"')) == flows_of(
        LINKS + FLOW.replace("proxy = {}", "")
    )


def test_the_schema_knows_one_and_several():
    pep = json_schema()["$defs"]["Flow"]["properties"]["proxy"]["anyOf"]
    assert pep[:2] == [{"const": "none"}, {"$ref": "#/$defs/Proxy"}]
