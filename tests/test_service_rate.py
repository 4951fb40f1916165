"""Numbers derived from the rate of a link use the lower of its capacity and its shaper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jostle import _core
from jostle.backends import canonical_json
from jostle.inference.run_context import with_perturbed_links
from jostle.report.topology_svg import topology
from jostle.results.flow_paths import rate_bps
from jostle.scenario import Scenario
from jostle.scenario.service_rate import constant_service_bps

FAST = "100 Mbit/s"
MBPS = 1e6
FRAMES = {"access_delay": {"0 %": "1 ms", "100 %": "3 ms"}, "packets": 16}
CHANGING = [[f"{second} s", "5 Mbit/s" if second % 2 else FAST] for second in range(20)]


def tbf(rate: str = "10 Mbit/s", burst: str = "15 kB", limit: str = "100 kB") -> dict[str, Any]:
    return {"kind": "tbf", "rate": rate, "burst": burst, "limit": limit}


def policer(burst: str) -> dict[str, Any]:
    return {"kind": "policer", "rate": "10 Mbit/s", "burst": burst}


def cake(**keys: Any) -> dict[str, Any]:
    return {"kind": "cake", "rate": "10 Mbit/s", **keys}


def spec_of(link: dict[str, Any], flow: dict[str, Any], duration: str = "20 s") -> Any:
    document = {"duration": duration, "bottleneck": link, "phases": {"steady": ["5 s", duration]}}
    document["flows"] = [{"name": "flow", "controller": "cubic", "rtt": "40 ms", **flow}]
    return Scenario.from_dict(document).plan().runs[0].spec


def summary_of(spec: Any) -> Any:
    summary = _core.run(canonical_json(spec)).summary
    return json.loads(summary) if isinstance(summary, str) else summary


def cbr(rate_bps: float, size: int = 1400) -> dict[str, Any]:
    source = {"kind": "cbr", "rate": f"{rate_bps:.0f} bit/s", "size": f"{size} B"}
    return {"controller": "none", "source": source}


def trace_of(folder: Path, opportunities_ms: list[int]) -> str:
    file = folder / "link.trace"
    file.write_text("".join(f"{at}\n" for at in opportunities_ms))
    return str(file)


@pytest.mark.parametrize(
    ("link", "service_bps", "size"),
    [
        ({"rate": FAST, "queue": tbf()}, 10 * MBPS, 1400),
        ({"rate": FAST, "queue": tbf()}, 10 * MBPS, 200),
        ({"rate": FAST, "queue": tbf("512 kbit/s", "1540 B", "38 kB")}, 0.512 * MBPS, 1400),
        ({"rate": "1 Gbit/s", "queue": tbf("5 Mbit/s", "1 MB")}, 5 * MBPS, 1400),
        ({"rate": FAST, "queue": cake()}, 10 * MBPS, 1400),
        ({"rate": FAST, "queue": cake(overhead=44)}, 10 * MBPS, 200),
        ({"rate": CHANGING, "queue": tbf()}, 10 * MBPS, 1400),
        ({"rate": CHANGING, "queue": tbf(burst="300 kB")}, 10 * MBPS, 1400),
        (
            {"rate": FAST, "queue": {"kind": "drr", "classes": {"default": {"queue": tbf()}}}},
            10 * MBPS,
            1400,
        ),
        (
            {"rate": FAST, "queue": {"kind": "drop_tail", "limit": "100 kB"}}
            | {"frame_aggregation": FRAMES},
            50 * MBPS,
            1400,
        ),
        ({"rate": FAST, "queue": tbf(burst="100 kB"), "frame_aggregation": FRAMES}, 10e6, 1400),
        ({"rate": FAST, "queue": tbf(burst="1600 B"), "frame_aggregation": FRAMES}, 10e6, 1400),
    ],
)
def test_unresponsive_traffic_uses_the_whole_service_rate(
    link: dict[str, Any], service_bps: float, size: int
) -> None:
    summary = summary_of(spec_of(link, cbr(1.5 * service_bps, size)))
    found = summary["links"][0]["phases"]["steady"]
    assert found["utilisation"] == pytest.approx(1, abs=0.02)
    measured_s = found["queueing_delay_mean_s"]
    assert measured_s > 1e-3
    assert found["queue_delay_estimate_mean_s"] == pytest.approx(measured_s, rel=0.1)


@pytest.mark.parametrize("queue", [tbf(), cake()])
def test_a_shaper_on_a_recorded_link(queue: dict[str, Any], tmp_path: Path) -> None:
    # 24 Mbit/s for half a second, then a tenth of that.
    opportunities_ms = [at // 2 for at in range(1000)] + list(range(500, 1001, 5))
    link = {"trace": trace_of(tmp_path, opportunities_ms), "queue": queue}
    found = summary_of(spec_of(link, cbr(15 * MBPS)))["links"][0]["phases"]["steady"]
    assert found["utilisation"] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("burst", ["15 kB", "150 kB"])
def test_a_policer_limits_the_throughput_and_holds_no_queue(burst: str) -> None:
    link = {"rate": FAST, "queue": policer(burst)}
    summary = summary_of(spec_of(link, cbr(15 * MBPS)))
    found = summary["links"][0]["phases"]["steady"]
    sent_bps = found["utilisation"] * 10 * MBPS
    assert sent_bps == pytest.approx(10 * MBPS, rel=0.02)
    assert found["queue_delay_estimate_mean_s"] < 1e-4


@pytest.mark.parametrize("wire", ["100 Mbit/s", "1 Gbit/s"])
@pytest.mark.parametrize("queue", [tbf(limit="1 BDP"), policer("15 kB") | {"limit": "1 BDP"}])
def test_a_bdp_is_of_the_service_rate(wire: str, queue: dict[str, Any]) -> None:
    link = spec_of({"rate": wire, "queue": queue}, {})["links"][0]
    assert link["queue"]["parameters"]["limit"] == {"bytes": 50_000}


def test_the_queue_of_a_class_has_its_own_bdp() -> None:
    classes = {"shaped": {"queue": tbf(limit="1 BDP")}}
    classes["default"] = {"queue": {"kind": "drop_tail", "limit": "1 BDP"}}
    link = {"rate": FAST, "queue": {"kind": "drr", "classes": classes}}
    limits = [
        one["queue"]["parameters"]["limit"] for one in spec_of(link, {})["links"][0]["classes"]
    ]
    assert limits == [{"bytes": 50_000}, {"bytes": 500_000}]


@pytest.mark.parametrize(
    ("rate", "queue"),
    [
        ("1 Gbit/s", tbf("50 Mbit/s", "50 kB", "1 MB")),
        ([["0 s", FAST], ["9 s", "90 Mbit/s"]], tbf()),
    ],
)
def test_a_load_is_a_share_of_the_service_rate(rate: Any, queue: dict[str, Any]) -> None:
    flow = {"size": "100 kB", "arrivals": {"load": "10 %"}, "rtt": "20 ms"}
    summary = summary_of(spec_of({"rate": rate, "queue": queue}, flow, "60 s"))
    # Poisson arrivals: about 1,800 connections of 50 Mbit/s, 360 of 10 Mbit/s.
    assert summary["links"][0]["phases"]["overall"]["utilisation"] == pytest.approx(0.1, rel=0.15)


def test_drawings_and_paths_show_the_service_rate() -> None:
    spec = spec_of({"rate": FAST, "queue": tbf("512 kbit/s")}, {})
    assert "512 kbit/s (link: 100 Mbit/s)" in topology(spec)
    assert rate_bps(spec, "flow") == 512_000
    plain = spec_of({"rate": FAST, "queue": {"kind": "drop_tail", "limit": "1 BDP"}}, {})
    assert "(link:" not in topology(plain)


def test_a_shaper_is_perturbed_as_a_link_is() -> None:
    spec = spec_of({"rate": FAST, "queue": tbf()}, {})
    changed: Any = with_perturbed_links(spec, 1)["links"][0]
    assert changed["capacity"]["rate_bps"] == 100_200_000
    assert changed["queue"]["parameters"]["rate"] == 10_020_000


def test_queues_without_a_rate_do_not_shape() -> None:
    alike = 0
    for row in json.loads(_core.registry())["queues"]:
        limits = {
            one["name"]: {"packets": 100} for one in row["parameters"] if one["kind"] == "limit"
        }
        parts = {
            "name": "link",
            "capacity": {"kind": "constant", "rate_bps": 7_654_321},
            "queue": {"kind": row["name"], "parameters": limits},
            "delay": {"steps": [{"at_ns": 0, "delay_ns": 0}], "jitter": None},
        }
        found = _core.constant_service_bps(json.dumps(parts))
        if found is not None:
            assert constant_service_bps(parts) == found
            alike += found == 7_654_321
    assert alike >= 10


ATM = {"overhead": 40, "atm": "atm"}
DROP_TAIL = {"kind": "drop_tail", "limit": "100 kB"}
FRAMED = {"frame_aggregation": FRAMES, "queue": DROP_TAIL}


@pytest.mark.parametrize(
    ("downlink", "uplink"),
    [
        ({"framing": ATM, "queue": DROP_TAIL}, {"framing": ATM, "queue": DROP_TAIL}),
        ({"queue": cake(**ATM)}, {"queue": cake(**ATM)}),
        ({"framing": ATM, "queue": cake()}, {"framing": ATM, "queue": cake()}),
        (FRAMED, FRAMED),
    ],
)
def test_measures_of_a_link_do_not_depend_on_the_sampling_interval(
    downlink: dict[str, Any], uplink: dict[str, Any]
) -> None:
    data = {"controller": "cubic", "rtt": "40 ms"}
    on_off = {"kind": "on_off", "on": "500 ms", "off": "500 ms"}
    call = cbr(0.1 * MBPS, 200) | {"rtt": "40 ms"}
    document = {
        "duration": "6 s",
        "phases": {"steady": ["1 s", "6 s"]},
        "downlink": {"rate": "20 Mbit/s"} | downlink,
        "uplink": {"rate": "12 Mbit/s"} | uplink,
        "flows": [
            {"name": "download", **data},
            {"name": "upload", "direction": "up", "source": on_off, **data},
            {"name": "call", "direction": "up", **call},
        ],
    }
    names = ("utilisation", "queue_delay_estimate_mean_s", "queue_delay_estimate_p95_s")
    found = []
    for interval in ("10 ms", "1 s"):
        plan = Scenario.from_dict(document | {"sampling_interval": interval}).plan()
        links = summary_of(plan.runs[0].spec)["links"]
        phases = [link["phases"]["steady"] for link in links]
        found.append([phase[name] for phase in phases for name in names])
    assert found[0] == pytest.approx(found[1], rel=1e-9)
