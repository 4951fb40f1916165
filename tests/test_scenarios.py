"""Every example runs: each of its conditions for two seconds, by the real engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jostle import _core, scenario

SCENARIOS = Path(__file__).parents[1] / "scenarios"
DURATION_NS = 2 * 10**9
LATEST_START_NS = 5 * 10**8


def shortened(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The run's first seconds; flows that start later start early, so that all of them run."""
    flows = [
        {**flow, "start_ns": min(flow["start_ns"], LATEST_START_NS), "stop_ns": None}
        for flow in spec["flows"]
    ]
    return {
        **spec,
        "duration_ns": DURATION_NS,
        "phases": [{"name": "overall", "from_ns": 0, "to_ns": DURATION_NS}],
        "flows": flows,
    }


def test_there_are_examples() -> None:
    assert {path.stem for path in SCENARIOS.glob("*.toml")} >= {"first", "geo-shared"}


@pytest.mark.parametrize("path", sorted(SCENARIOS.rglob("*.toml")), ids=lambda p: p.stem)
def test_every_condition_of_an_example_runs(path: Path) -> None:
    for planned in scenario.load(path).plan(repeats=1).runs:
        summary = json.loads(_core.run(json.dumps(shortened(planned.spec))).summary)
        every = [flow["phases"]["overall"] for flow in summary["flows"]]
        silent = [flow for flow in every if flow["goodput_bps"] == 0]
        # A crowd that begins all at once now takes longer to get through.
        assert len(silent) <= len(every) // 2
        for overall in every:
            # Datagrams may begin later than that.
            some = overall["sent_packets"] > overall["retransmitted_packets"]
            assert some or overall["sent_packets"] == 0
        # The time in which a flow changes its route may be too short.
        crossed = {n for flow in planned.spec["flows"] for n in flow["path"] + flow["reverse_path"]}
        for number, link in enumerate(summary["links"]):
            utilisation = link["phases"]["overall"]["utilisation"]
            if planned.spec["links"][number]["capacity"]["kind"] == "tunnel":
                assert utilisation is None
                continue
            assert utilisation <= 1
            assert utilisation > 0 or number not in crossed


def test_pings_see_the_queue_that_a_download_builds() -> None:
    found = {}
    for planned in scenario.load(SCENARIOS / "pings.toml").plan(repeats=1).runs:
        summary = json.loads(_core.run(json.dumps(planned.spec)).summary)
        _, pings = summary["flows"]
        counts = pings["pings"]
        assert counts["sent"] == counts["echoed"] + counts["lost"] + counts["waiting"]
        rtts = {name: phase["rtt_mean_s"] for name, phase in pings["phases"].items()}
        assert rtts["before"] == pytest.approx(0.05, rel=0.01)
        assert rtts["after"] == pytest.approx(0.05, rel=0.01)
        found[planned.condition] = rtts["beside"]
    deep, codel, fq_codel = (found[at] for at in range(3))
    assert deep > 3 * codel > 3 * fq_codel
