"""Tunnels: the connections and links of a tunnel, and the paths of the flows inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jostle
import pytest
from jostle import api
from jostle.backends import SimBackend
from jostle.backends.kernel import capabilities
from jostle.inference.flow_benefits import traffic_groups
from jostle.results.flow_groups import flow_groups
from jostle.results.flow_paths import base_rtt_s, path_of, rate_bps
from jostle.scenario import ScenarioError, load_text

LINE = """
duration = "10 s"
[downlink]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[uplink]
rate = "5 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
"""
TUNNEL = """
[[flows]]
name = "vpn"
controller = "cubic"
rtt = "60 ms"
source = {source}
transport = {transport}
"""
INSIDE = """
[[flows]]
name = "web"
controller = "reno"
tunnel = "vpn"
"""
LINKS = """
duration = "10 s"
[[links]]
name = "lan"
rate = "100 Mbit/s"
delay = "1 ms"
queue = { kind = "drop_tail", limit = "1 MB" }
[[links]]
name = "wan"
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "1 MB" }
[[links]]
name = "back"
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "1 MB" }
[[flows]]
name = "vpn"
controller = "cubic"
rtt = "30 ms"
path = ["wan"]
reverse_path = ["back"]
source = { kind = "tunnel", queue = "fq_codel" }
"""


def tunnel(transport: str = '"tcp"', source: str = '"tunnel"') -> str:
    return TUNNEL.replace("{source}", source).replace("{transport}", transport)


def spec_of(text: str) -> dict[str, Any]:
    return dict(load_text(text).plan(repeats=1).runs[0].spec)


def ways(spec: dict[str, Any]) -> list[tuple[str, list[int], list[int], int]]:
    keys = ("name", "path", "reverse_path", "base_delay_ns")
    return [tuple(flow[key] for key in keys) for flow in spec["flows"]]


def test_a_tunnel_is_two_connections_and_two_links() -> None:
    spec = spec_of(LINE + tunnel() + INSIDE)
    assert ways(spec) == [
        ("vpn", [0], [1], 60_000_000),
        ("web", [2], [3], 0),
        ("vpn-back", [1], [0], 60_000_000),
    ]
    names = [(link["name"], link["capacity"]) for link in spec["links"][2:]]
    assert names == [
        ("vpn", {"kind": "tunnel", "flow": 0}),
        ("vpn-back", {"kind": "tunnel", "flow": 2}),
    ]
    # The fixed delay of the path is on the way back, for the inner packets, too.
    delays = [link["delay"]["steps"] for link in spec["links"][2:]]
    assert [steps[0]["delay_ns"] for steps in delays] == [0, 60_000_000]
    sources = [flow["source"] for flow in spec["flows"]]
    # 2 BDP of 20 Mbit/s and 60 ms.
    common = {"kind": "tunnel", "header_bytes": 26, "send_buffer_bytes": 300_000}
    assert sources == [{**common, "link": 2}, {"kind": "bulk"}, {**common, "link": 3}]


@pytest.mark.parametrize(
    ("transport", "source", "mtu"),
    [
        ('"tcp"', '"tunnel"', 1500 - 52 - 26),
        ('"quic"', '"tunnel"', 1500 - 28 - 38 - 2),
        ('"udp"', '"tunnel"', 1500 - 28 - 32),
        ('"udp"', '{ kind = "tunnel", header = "8 B" }', 1500 - 28 - 8),
    ],
)
def test_the_inner_mtu_follows_from_the_headers(transport: str, source: str, mtu: int) -> None:
    text = LINE + tunnel(transport, source) + INSIDE
    if transport == '"udp"':
        text = text.replace('controller = "cubic"', 'controller = "none"')
    flows = spec_of(text)["flows"]
    assert flows[1]["mtu_bytes"] == mtu
    # RFC 6040: a tunnel of datagrams copies the ECN field.
    assert flows[0]["ecn"] is (transport == '"udp"')
    if transport == '"quic"':
        quic = flows[0]["quic"]
        assert (quic["initial_mtu_bytes"], quic["mtu_discovery"]) == (1472, False)
        assert quic["gso_packets"] == 1


def test_a_tunnel_replaces_its_links_in_a_longer_path() -> None:
    inside = INSIDE + 'rtt = "50 ms"\npath = ["lan", "wan"]\nreverse_path = ["back"]\n'
    spec = spec_of(LINKS + inside)
    # 50 ms without 21 ms of links, and without the 10 ms that the tunnel has besides its links.
    assert ways(spec)[1] == ("web", [0, 3], [4], 19_000_000)
    assert spec["links"][3]["queue"]["kind"] == "fq_codel"


def test_an_upload_crosses_the_tunnel_in_the_other_direction() -> None:
    spec = spec_of(LINE + tunnel() + INSIDE + 'direction = "up"\n')
    assert ways(spec)[1] == ("web", [3], [2], 0)
    named = spec_of(LINKS + INSIDE + 'direction = "up"\n')
    assert ways(named)[1] == ("web", [4], [3], 0)


def test_a_bottleneck_has_a_way_back_without_links() -> None:
    text = LINE.replace("[downlink]", "[bottleneck]").split("[uplink]")[0]
    spec = spec_of(text + tunnel() + INSIDE)
    assert ways(spec) == [
        ("vpn", [0], [], 60_000_000),
        ("web", [1], [2], 0),
        ("vpn-back", [], [0], 60_000_000),
    ]


def test_copies_share_a_tunnel_and_routes_change_with_it() -> None:
    changed = LINKS.replace("source = {", 'routes = [{ at = "5 s", path = ["lan"] }]\nsource = {')
    spec = spec_of(changed + INSIDE + "count = 2\n")
    assert [flow["path"] for flow in spec["flows"]] == [[1], [3], [3], [2]]
    assert spec["flows"][0]["routes"] == [{"at_ns": 5 * 10**9, "path": [0], "reverse_path": [2]}]
    assert spec["flows"][3]["routes"] == [{"at_ns": 5 * 10**9, "path": [2], "reverse_path": [0]}]


def test_a_flow_can_leave_the_tunnel_in_a_grid() -> None:
    text = LINE + tunnel() + INSIDE + 'rtt = "60 ms"\n'
    grid = '[grid."flows.web.tunnel"]\ninside = "vpn"\noutside = "none"\n'
    runs = load_text(text + grid).plan(repeats=1).runs
    assert [run.spec["flows"][1]["path"] for run in runs] == [[2], [0]]


def test_classes_of_an_entrance_know_the_flows_inside() -> None:
    queue = '{ kind = "drr", limit = "100 kB", classes = { web = {}, default = {} } }'
    source = f'{{ kind = "tunnel", queue = {queue} }}'
    spec = spec_of(LINE + tunnel(source=source) + INSIDE + INSIDE.replace('"web"', '"other"'))
    assert [[it["flows"] for it in link["classes"]] for link in spec["links"][2:]] == [
        [[1], [2]],
        [[1], [2]],
    ]


def test_the_kernel_backend_refuses_tunnels_with_the_reason() -> None:
    spec = load_text(LINE + tunnel() + INSIDE).plan(repeats=1).runs[0].spec
    found = [str(problem) for problem in capabilities.problems(spec, {}, "virtual")]
    assert found == [
        "flows.vpn.source: no program of the guest carries the packets of other flows; "
        "the simulator can"
    ]


@pytest.mark.parametrize("transport", ['"tcp"', '"quic"', '"udp"'])
def test_tunnels_and_the_flows_inside_have_measures(transport: str, tmp_path: Path) -> None:
    text = LINE + tunnel(transport) + INSIDE + INSIDE.replace('"web"', '"second"')
    if transport == '"udp"':
        text = text.replace('controller = "cubic"', 'controller = "none"')
    file = tmp_path / "tunnel.toml"
    file.write_text(text)
    results = api.run(file)
    flows = {row["flow"]: row for row in results.flows.iter_rows(named=True)}
    links = {row["link"]: row for row in results.links.iter_rows(named=True)}
    assert set(flows) == {"vpn", "web", "second", "vpn-back"}
    assert set(links) == {"downlink", "uplink", "vpn", "vpn-back"}
    # The shares are of the flows inside, and the tunnel has the bytes of both and their headers.
    shares = [flows[name]["share"] for name in ("web", "second")]
    assert sum(shares) == pytest.approx(1)
    assert flows["vpn"]["share"] is None
    inside = sum(flows[name]["goodput_bps"] for name in ("web", "second"))
    assert 1.02 < flows["vpn"]["goodput_bps"] / inside < 1.1
    assert flows["web"]["rtt_min_s"] >= 0.060
    assert links["vpn"]["utilisation"] is None
    assert 0.9 < links["downlink"]["utilisation"] <= 1


@pytest.mark.parametrize("transport", ["tcp", "quic", "udp"])
@pytest.mark.parametrize(
    "inside",
    [
        'source = { kind = "web", think_time = "100 ms" }',
        'source = { kind = "video", segment = "1 s" }',
        'source = { kind = "media", fps = 30, key_frame_size = "9 kB", deadline = "1 s" }',
        'source = { kind = "request_response", size = "20 kB", think_time = "50 ms" }',
        'arrivals = { rate = "5 /s" }\nsize = "20 kB"',
        'size = "200 kB"\nreader = { rate = "2 Mbit/s" }',
        'transport = "quic"',
        'pacing = "fq"\nnic_rate = "50 Mbit/s"\nreceiver_gro = true\nrtt = "80 ms"',
        'controller = "none"\nsource = { kind = "ping", size = "20 B", period = "50 ms" }',
        'controller = "none"\nsource = { kind = "cbr", codec = "g711" }',
        'receiver = "optimistic_acking"',
        'direction = "up"\ncount = 2\nafter = "first"',
    ],
)
def test_every_kind_of_flow_runs_inside(inside: str, transport: str, tmp_path: Path) -> None:
    """With losses, duplicates and reordering below, each flow delivers data."""
    reorder = '{ probability = "2 %", late = "5 ms" }'
    faults = f'{{ duplicate = "1 %", reorder = {reorder}, corrupt = "1 %" }}'
    line = LINE.replace('"10 s"', '"5 s"')
    line = line.replace("[uplink]", f'loss = "1 %"\nfaults = {faults}\n[uplink]')
    carrier = tunnel(f'"{transport}"')
    if transport == "udp":
        carrier = carrier.replace('controller = "cubic"', 'controller = "none"')
    own = INSIDE if "controller" not in inside else INSIDE.replace('controller = "reno"\n', "")
    first = INSIDE.replace('"web"', '"first"') + 'size = "20 kB"\n'
    file = tmp_path / "inside.toml"
    file.write_text(line + carrier + first + own + inside + "\n")
    flows = {row["flow"]: row for row in api.run(file).flows.iter_rows(named=True)}
    delivered = [row["throughput_bps"] for name, row in flows.items() if name.startswith("web")]
    assert delivered
    assert all(delivered)
    assert flows["first"]["completion_time_s"] is not None


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_captures_show_outer_and_inner_packets(transport: str) -> None:
    text = LINE.replace("[uplink]", 'loss = "1 %"\n[uplink]') + tunnel(f'"{transport}"') + INSIDE
    spec = load_text("capture = true\n" + text).plan(repeats=1).runs[0].spec
    record = SimBackend().run(spec)
    truth = {flow["name"]: flow["phases"]["overall"] for flow in record.summary["flows"]}
    assert set(record.captures) == {
        f"{flow}.{end}" for flow in truth for end in ("sender", "receiver")
    }
    for flow in ("vpn", "web") if transport == "tcp" else ("web",):
        seen = jostle.analyze(record.captures[f"{flow}.sender"]).results[0].run.summary["flows"]
        (measured,) = [it["phases"]["overall"] for it in seen if it["name"] == flow]
        sent = truth[flow]["sent_packets"]
        assert measured["sent_packets"] == pytest.approx(sent, abs=3)


def test_a_shaper_at_the_entrance_is_refused() -> None:
    queue = '{ kind = "tbf", rate = "5 Mbit/s", burst = "10 kB", limit = "100 kB" }'
    with pytest.raises(ScenarioError) as caught:
        load_text(LINE + tunnel(source=f'{{ kind = "tunnel", queue = {queue} }}') + INSIDE)
    assert str(caught.value) == (
        "scenario:14: flows.vpn.source.queue.kind: cannot be `tbf` — expected a queue without a "
        "rate of its own: the connection sets the rate"
    )


def test_tunnels_have_a_table_of_their_own_and_no_advice() -> None:
    spec = load_text(LINE + tunnel() + INSIDE).plan(repeats=1).runs[0].spec
    kinds = {group.name: group.kind for group in flow_groups(spec)}
    assert kinds == {"vpn": "tunnels", "web": "bulk", "vpn-back": "tunnels"}
    assert [group.name for group in traffic_groups(spec)] == ["web"]
    # The path of the flow inside is that of the tunnel.
    assert base_rtt_s(spec, "web") == base_rtt_s(spec, "vpn") == 0.06
    assert rate_bps(spec, "web") == 20e6
    assert path_of(spec, "web") == [0]
