"""What limited a flow: measures, notes below tables, captures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jostle
import pytest
from jostle.results import flow_notes
from jostle.results.measure_samples import MeasureSample
from jostle.results.tables import phase_tables

LIMITS = (
    "application_limited", "cwnd_limited", "receive_window_limited", "send_buffer_limited",
    "pacing_limited",
)  # fmt: skip


def scenario(flow: dict[str, Any], **keys: Any) -> jostle.Scenario:
    """Return a scenario of one flow over 20 Mbit/s and 40 ms."""
    return jostle.Scenario.from_dict(
        {
            "duration": "10 s",
            "bottleneck": {"rate": "20 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
            "flows": [{"name": "main", "controller": "cubic", "rtt": "40 ms", **flow}],
            **keys,
        }
    )


def shares(results: jostle.ResultSet, phase: str = "overall", flow: int = 0) -> dict[str, float]:
    of_phase = results.results[0].run.summary["flows"][flow]["phases"][phase]
    return {name: of_phase[name] for name in LIMITS}


def notes(results: jostle.ResultSet, phase: str = "overall") -> str:
    return "\n".join(note for table in phase_tables(results, phase) for note in table.notes)


@pytest.mark.parametrize("transport", ["tcp", "quic"])
@pytest.mark.parametrize(
    ("flow", "limit"),
    [
        # 64 kB per 40 ms are 13 Mbit/s.
        ({"receive_window": "64 kB"}, "receive_window_limited"),
        ({"controller": "bbr"}, "pacing_limited"),
        ({"controller": "reno"}, "cwnd_limited"),
        (
            {"source": {"kind": "media", "fps": 25, "key_frame_size": "10 kB", "deadline": "1 s"}},
            "application_limited",
        ),
    ],
)
def test_what_limits_a_flow_is_found(transport: str, flow: dict[str, Any], limit: str) -> None:
    # TCP does not pace Reno by default.
    kind = {"kind": "quic", "pacing": False} if transport == "quic" else transport
    found = shares(jostle.run(scenario({"transport": kind, **flow}), store=False))
    assert sum(found.values()) == pytest.approx(1.0)
    assert found[limit] > 0.7, found


def test_a_small_receive_window_is_named_below_the_table_and_a_large_one_is_not() -> None:
    small = jostle.run(scenario({"receive_window": "64 kB"}), store=False)
    share = shares(small)["receive_window_limited"]
    assert share > 0.9
    assert f"main: receive-window-limited {100 * share:.0f} % of the time." in notes(small)
    assert "limited" not in notes(jostle.run(scenario({}), store=False))


def test_phases_and_the_end_of_a_flow_divide_the_time() -> None:
    """The application has data until 4 s, and the flow stops at 6 s."""
    flow = {"source": {"kind": "on_off", "on": "4 s", "off": "100 s"}, "stop": "6 s"}
    phases = {"busy": ["1 s", "3 s"], "idle": ["5 s", "6 s"], "gone": ["7 s", "10 s"]}
    results = jostle.run(scenario(flow, phases=phases), store=False)
    assert shares(results, "busy")["application_limited"] == 0.0
    assert shares(results, "idle")["application_limited"] == 1.0
    assert set(shares(results, "gone").values()) == {None}
    # From the end of the handshake at 0.04 s to 6 s.
    assert shares(results)["application_limited"] == pytest.approx(2 / 5.96, abs=0.02)


def test_a_flow_that_completed_is_limited_by_nothing() -> None:
    results = jostle.run(scenario({"source": {"kind": "fixed", "size": "1 MB"}}), store=False)
    (flow,) = results.results[0].run.summary["flows"]
    assert flow["completion_time_s"] < 2
    # The last round trip, in which all data were sent, is the application's.
    assert 0 < shares(results)["application_limited"] < 0.3


def test_a_capture_shows_the_same_receive_window(tmp_path: Path) -> None:
    results = jostle.run(scenario({"receive_window": "64 kB"}, capture=True), store=tmp_path)
    (run,) = results.results
    captures = list(run.run.captures.values())
    (measured,) = [
        one.run.summary["flows"][0]["phases"]["overall"] for one in jostle.analyze(captures).results
    ]
    assert measured["receive_window_limited"] == pytest.approx(
        shares(results)["receive_window_limited"], abs=0.03
    )
    assert measured["cwnd_limited"] is None
    assert measured["send_buffer_limited"] is None


def test_goodput_is_first_and_many_retransmissions_give_a_warning() -> None:
    results = jostle.run(scenario({}), store=False)
    flows, _ = phase_tables(results, "overall")
    assert flows.header[2].startswith("goodput")
    assert "Warning" not in notes(results)
    lossy = scenario(
        {"controller": "bbr"},
        bottleneck={
            "rate": "20 Mbit/s",
            "loss": "30 %",
            "queue": {"kind": "drop_tail", "limit": "1 BDP"},
        },
    )
    results = jostle.run(lossy, store=False)
    ratio = results.results[0].run.summary["flows"][0]["phases"]["overall"]["retransmission_ratio"]
    assert ratio > 0.25
    warning = f"Warning: main: {100 * ratio:.0f} % of the packets sent were retransmissions."
    assert warning in notes(results)


@pytest.mark.parametrize(("goodput", "kind", "warns"), [
    (7.9e6, "bulk", True), (7.9e6, "transfers", True), (8.1e6, "bulk", False),
    # Voice has small packets: its goodput is far below by design.
    (4e6, "media", False),
])  # fmt: skip
def test_goodput_far_below_throughput_gives_a_warning(
    goodput: float, kind: str, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = jostle.run(scenario({}, duration="1 s"), store=False)
    values = {"goodput": goodput, "throughput": 10e6}
    plain = flow_notes.samples

    def changed(*arguments: Any, **options: Any) -> list[MeasureSample]:
        return [
            replace(one, values=(values.get(one.measure.name, 0.0),))
            for one in plain(*arguments, **options)
        ]

    monkeypatch.setattr(flow_notes, "samples", changed)
    found = flow_notes.flow_notes(results, "overall", kind, [(0, "main")], each=False)
    said = ("Warning: main: goodput is 79 % of throughput.",)
    assert found == (said if warns else ())


def test_flows_in_opposite_directions_do_not_share() -> None:
    def flow(name: str, path: str, back: str) -> dict[str, Any]:
        return {"name": name, "controller": "cubic", "rtt": "40 ms",
                "path": [path], "reverse_path": [back]}  # fmt: skip

    links = [
        {"name": "down", "rate": "50 Mbit/s", "queue": {"kind": "drop_tail", "limit": "250 kB"}},
        {"name": "up", "rate": "10 Mbit/s", "queue": {"kind": "drop_tail", "limit": "50 kB"}},
    ]
    flows = [flow("upload", "up", "down"), flow("one", "down", "up"), flow("two", "down", "up")]
    two_ways = jostle.Scenario.from_dict({"duration": "5 s", "links": links, "flows": flows})
    results = jostle.run(two_ways, store=False)
    summary = results.results[0].run.summary
    upload, one, two = (flow["phases"]["overall"] for flow in summary["flows"])
    assert upload["share"] == 1.0
    assert upload["lead_bps"] == upload["throughput_bps"]
    downloads = one["throughput_bps"] + two["throughput_bps"]
    assert one["share"] == pytest.approx(one["throughput_bps"] / downloads)
    assert one["share"] + two["share"] == pytest.approx(1.0)
    total = summary["totals"]["overall"]["total_throughput_bps"]
    assert total == pytest.approx(downloads + upload["throughput_bps"])
