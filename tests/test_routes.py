"""Routes that change during a run: from the scenario to results, reports and other backends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jostle
import pytest
from jostle.report.topology_svg import topology
from jostle.scenario import ScenarioError, load_text
from jostle.studies.time_windows import RunView

TWO = """
duration = "6 s"
[phases]
first = ["1 s", "2 s"]
second = ["3 s", "4 s"]
third = ["5 s", "6 s"]
[[links]]
name  = "far"
rate  = "20 Mbit/s"
delay = "50 ms"
queue = { kind = "drop_tail", limit = "400 kB" }
[[links]]
name  = "far back"
rate  = "5 Mbit/s"
delay = "50 ms"
queue = { kind = "drop_tail", limit = "100 packets" }
[[links]]
name  = "near"
rate  = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "400 kB" }
[[links]]
name  = "last"
rate  = "100 Mbit/s"
delay = "1 ms"
queue = { kind = "drop_tail", limit = "100 kB" }
[[flows]]
name         = "one"
controller   = "cubic"
rtt          = "110 ms"
path         = ["far", "last"]
reverse_path = ["far back"]
receive_window = "300 kB"
routes = [
    { at = "2 s", path = ["near", "last"], reverse_path = [] },
    { at = "4 s", path = ["far", "last"], reverse_path = ["far back"] },
]
"""


def spec_of(text: str = TWO, overrides: dict[str, str] | None = None) -> dict[str, Any]:
    planned = load_text(text, overrides=overrides).plan(repeats=1)
    spec: dict[str, Any] = json.loads(json.dumps(planned.runs[0].spec))
    return spec


def run(text: str, tmp_path: Path) -> Any:
    file = tmp_path / "routes.toml"
    file.write_text(text)
    return jostle.run(file, store=False)


def test_a_route_keeps_the_direction_that_it_does_not_name():
    spec = spec_of(TWO.replace('path = ["near", "last"], reverse_path = []', "reverse_path = []"))
    routes = spec["flows"][0]["routes"]
    assert routes == [
        {"at_ns": 2 * 10**9, "path": [0, 3], "reverse_path": []},
        {"at_ns": 4 * 10**9, "path": [0, 3], "reverse_path": [1]},
    ]
    assert spec_of(overrides={"flows.one.routes": "[]"})["flows"][0].get("routes") is None


def test_an_upload_moves_in_both_directions():
    text = TWO.replace("receive_window", 'direction = "up"\nreceive_window')
    with pytest.raises(ScenarioError, match=r"routes\[0\]\.reverse_path: no link for the data"):
        spec_of(text)
    text = text.replace('"last"], reverse_path = []', '"last"], reverse_path = ["near"]')
    flow = spec_of(text)["flows"][0]
    assert (flow["path"], flow["reverse_path"]) == ([1], [0, 3])
    assert (flow["routes"][0]["path"], flow["routes"][0]["reverse_path"]) == ([2], [2, 3])


def test_a_longer_route_widens_the_default_window():
    """Twice the bandwidth-delay product and the queue of the later route."""
    text = TWO.replace('receive_window = "300 kB"\n', "").replace('"10 Mbit/s"', '"9 Gbit/s"')
    text = text.replace('delay = "10 ms"', 'delay = "200 ms"')
    window_bytes = spec_of(text)["flows"][0]["receive_window_bytes"]
    # 110 ms, less the 50 ms each of two links, plus 200 ms.
    assert window_bytes == 2 * (9 * 10**9 * 210 // 8000 + 400_000)


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_a_flow_uses_the_links_of_its_route_and_the_run_is_another(transport, tmp_path):
    text = TWO.replace("receive_window", f'transport = "{transport}"\nreceive_window')
    results = run(text, tmp_path)
    links = results.links
    used = {
        (row["link"], row["phase"]): row["utilisation"] > 0
        for row in links.iter_rows(named=True)
        if row["phase"] != "overall"
    }
    at_far = {"far": True, "far back": True, "near": False, "last": True}
    for link, there in at_far.items():
        moved = True if link == "last" else not there
        shown = [used[link, phase] for phase in ("first", "second", "third")]
        assert shown == [there, moved if link != "far back" else False, there], link
    fixed = run(text.split("routes = [")[0], tmp_path)
    assert results.flows["run_id"][0] != fixed.flows["run_id"][0]


def test_routes_meet_graphs_classes_and_faults():
    text = """
duration = "4 s"
[graph]
rate  = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "100 kB" }
edges = [
    { between = ["A", "B"], delay = "5 ms" },
    { between = ["B", "C"], delay = "5 ms" },
    { between = ["A", "D"], delay = "20 ms" },
    { between = ["D", "C"], delay = "20 ms" },
]
[[flows]]
name       = "one"
controller = "cubic"
from       = "A"
to         = "C"
routes     = [{ at = "2 s", path = ["A to D", "D to C"], reverse_path = ["C to D", "D to A"] }]
"""
    spec = spec_of(text)
    names = [link["name"] for link in spec["links"]]
    assert "D to A" in names
    assert len(names) == 8
    drawn = topology(spec)
    assert "RTT 20 ms<" in drawn
    assert "RTT 80 ms, from 2 s" in drawn
    classes = '{ kind = "drr", limit = "100 packets", classes = { fast = {}, default = {} } }'
    numbered = '[{ flow = "one", lose = [3] }]'
    spec = spec_of(TWO, {"links.near.queue": classes, "links.near.faults.packets": numbered})
    assert spec["links"][2]["classes"][1]["flows"] == [0]
    assert spec["links"][2]["faults"]["packets"][0]["flow"] == 0


def test_delays_that_hypatia_recorded_apply_to_the_links_of_a_route(tmp_path):
    rows = [
        f"{step * 100_000_000},{20_000_000 + step * 1_000_000}.0000000000" for step in range(40)
    ]
    (tmp_path / "networkx_rtt_1_to_2.txt").write_text("\n".join(rows) + "\n")
    recorded = '{ file = "networkx_rtt_1_to_2.txt", column = "rtt", scale = 0.5 }'
    text = TWO.replace('delay = "10 ms"', f"delay = {recorded}").replace('"300 kB"', '"20 kB"')
    rtts = run(text, tmp_path).flows
    second = rtts.filter(rtts["phase"] == "second")["rtt_min_s"][0]
    # From 3 s to 4 s: half of 50 to 60 ms there, 1 ms, and the remaining 9 ms back.
    assert 0.035 < second < 0.038


def test_the_report_draws_every_route():
    drawn = topology(spec_of())
    for label in ("RTT 110 ms<", "RTT 20 ms, from 2 s", "RTT 110 ms, from 4 s"):
        assert label in drawn
    assert drawn.count('class="crossed"') == 6
    assert drawn.count('class="back"') == 2


MEETING = """
duration = "6 s"
[phases]
apart = ["1 s", "3 s"]
across = ["2 s", "4 s"]
together = ["4 s", "6 s"]
[[links]]
name  = "left"
rate  = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "100 kB" }
[[links]]
name  = "right"
rate  = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "100 kB" }
[[flows]]
name         = "mover"
controller   = "cubic"
rtt          = "40 ms"
path         = ["left"]
routes       = [{ at = "3 s", path = ["right"] }]
[[flows]]
name         = "resident"
controller   = "cubic"
rtt          = "40 ms"
path         = ["right"]
"""


def test_flows_compete_from_the_time_at_which_their_routes_meet(tmp_path):
    results = run(MEETING, tmp_path)
    flows = results.results[0].run.summary["flows"]
    values = {
        phase: [flow["phases"][phase] for flow in flows]
        for phase in ("apart", "across", "together", "overall")
    }
    apart = values["apart"]
    assert [flow["share"] for flow in apart] == [1, 1]
    assert [flow["lead_bps"] for flow in apart] == [flow["throughput_bps"] for flow in apart]
    for phase in ("across", "together", "overall"):
        assert sum(flow["share"] for flow in values[phase]) == pytest.approx(1), phase
        assert sum(flow["lead_bps"] for flow in values[phase]) == pytest.approx(0, abs=1), phase
    series = RunView(results.results[0].run)._series
    assert series.window_measure("share", 0, 1.0, 3.0) == 1
    shares = [series.window_measure("share", flow, 4.0, 6.0) for flow in (0, 1)]
    assert shares == pytest.approx([flow["share"] for flow in values["together"]], abs=1e-6)
