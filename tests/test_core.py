"""The compiled engine behind `jostle._core`."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import fake_core
import numpy as np
import pytest
from jostle import _core, scenario
from jostle.backends.base import canonical_json
from jostle.backends.record_tables import Table

SCENARIOS = Path(__file__).parents[1] / "scenarios"
MS = 1_000_000
S = 1_000 * MS

MEASURES = {
    "sending_rate_bps",
    "throughput_bps",
    "goodput_bps",
    "goodput_ratio",
    "rtt_mean_s",
    "rtt_min_s",
    "rtt_p50_s",
    "rtt_p95_s",
    "rtt_sd_s",
    "segment_rtt_mean_s",
    "segment_rtt_p50_s",
    "segment_rtt_p95_s",
    "segment_rtt_max_s",
    "cwnd_mean_bytes",
    "sent_packets",
    "retransmitted_packets",
    "retransmission_ratio",
    "power_bits",
    "segment_power_bits",
    "share",
    "lead_bps",
}


def spec(duration_s: int = 4, **changes: Any) -> str:
    """Two Reno flows share 10 Mbit/s at a round trip of 40 ms."""
    run = fake_core.spec(controllers=("reno", "reno"), duration_s=duration_s)
    run["phases"] = run["phases"][:1]
    for name, flow in zip(("first", "second"), run["flows"], strict=True):
        flow |= {"name": name, "peer": 1, "start_ns": 0}
    return json.dumps(run | changes)


LONG = spec(100_000, interval_ns=1_000 * S)
"""A run that takes far longer than any test."""


def test_a_run_has_the_measures_of_the_contract() -> None:
    summary = json.loads(_core.run(spec()).summary)
    assert [flow["name"] for flow in summary["flows"]] == ["first", "second"]
    measures = summary["flows"][0]["phases"]["overall"]
    assert set(measures) >= MEASURES
    assert 0 < measures["goodput_bps"] < measures["throughput_bps"] < 10_000_000
    assert 0.040 < measures["rtt_min_s"] < 0.045
    link = summary["links"][0]["phases"]["overall"]
    assert 0.9 < link["utilisation"] <= 1
    assert 0.5 <= summary["fairness"]["overall"]["jain"] <= 1


def test_a_flow_that_waits_for_another_shares_too(tmp_path: Path) -> None:
    """It is there from when it opens, whether or not packets are captured."""
    run = json.loads(spec())
    early, late = run["flows"]
    early["source"] = {"kind": "fixed", "bytes": 200_000}
    late["after"] = 0
    run["flows"] = [early, late, {**early, "name": "third", "source": {"kind": "bulk"}}]
    plain = json.loads(_core.run(json.dumps(run)).summary)
    run["capture"] = {"scenario": "three"}
    captured = json.loads(_core.run(json.dumps(run), None, tmp_path).summary)
    assert captured == plain
    rates = [flow["phases"]["overall"]["throughput_bps"] for flow in plain["flows"]]
    assert min(rates) > 0
    jain = sum(rates) ** 2 / (3 * sum(rate**2 for rate in rates))
    assert plain["fairness"]["overall"]["jain"] == pytest.approx(jain, rel=1e-12)


def test_columns_are_arrays_of_one_length() -> None:
    record = _core.run(spec(record="acks"))
    assert record.acks is not None
    for table in (record.flows, record.links, record.internals, record.acks):
        assert len({column.shape for column in table.values()}) == 1
    assert record.flows["time_s"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert record.flows["flow"].tolist() == [0, 1] * 4
    assert record.links["link"].dtype == np.uint32
    assert int(record.flows["mode"].max()) < len(record.modes)
    # The series and the summary count the same packets.
    sent = [f["phases"]["overall"]["sent_packets"] for f in json.loads(record.summary)["flows"]]
    assert record.flows["sent_packets"].sum() == sum(sent)
    assert _core.run(spec()).acks is None


def test_a_run_repeats_to_the_last_bit() -> None:
    one, two = _core.run(spec(record="acks")), _core.run(spec(record="acks"))
    assert one.summary == two.summary
    assert one.acks is not None
    assert two.acks is not None
    for a, b in ((one.flows, two.flows), (one.links, two.links), (one.acks, two.acks)):
        assert {k: v.tobytes() for k, v in a.items()} == {k: v.tobytes() for k, v in b.items()}


@pytest.mark.parametrize("name", ["video", "revisits", "voice", "pep", "pings", "modest-bbr"])
def test_a_summary_is_the_same_without_series(name: str) -> None:
    plan = scenario.load(SCENARIOS / f"{name}.toml", {"record": "acks"}).plan()
    text = canonical_json(plan.runs[0].spec)
    assert _core.run_summary(text) == _core.run(text).summary


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "not a RunSpec: EOF"),
        (spec(duration_ns=0), "`duration_ns` cannot be 0"),
        (spec(links=[]), "`links` cannot be empty"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(document: str, message: str) -> None:
    for use in (_core.check, _core.run):
        with pytest.raises(ValueError, match=re.escape(message)):
            use(document)
    _core.check(spec())


def test_a_run_can_be_cancelled() -> None:
    answers = iter([False, False, True])
    with pytest.raises(_core.CancelledError):
        _core.run(LONG, lambda: next(answers))


def test_what_the_callable_raises_ends_the_run() -> None:
    def fail() -> bool:
        raise KeyError("reason")

    with pytest.raises(KeyError, match="reason"):
        _core.run(LONG, fail)


def test_ctrl_c_ends_the_run() -> None:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        _core.run(LONG)


def test_a_run_leaves_the_interpreter_to_others() -> None:
    stop = threading.Event()
    raised: list[type[BaseException]] = []

    def work() -> None:
        try:
            _core.run(LONG, stop.is_set)
        except _core.CancelledError as error:
            raised.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    # With the lock held, this line would be reached at the end of the run only.
    assert thread.is_alive()
    stop.set()
    thread.join(timeout=30)
    assert raised == [_core.CancelledError]


def test_the_registries_name_what_a_scenario_can_use() -> None:
    registry = json.loads(_core.registry())
    assert {"controllers", "slow_starts", "queues", "losses"} <= set(registry)
    assert all("slow_start" in row for row in registry["controllers"])


def test_every_parameter_is_described() -> None:
    undescribed = [
        f"{kind}/{row['name']}.{parameter['name']}"
        for kind, rows in json.loads(_core.registry()).items()
        for row in rows
        for parameter in row.get("parameters", ())
        if not parameter["summary"]
    ]
    assert not undescribed


def test_the_version_names_the_engine_source() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\+[0-9a-f]{12}", _core.ENGINE_VERSION)


def test_codes_become_words_and_nan_becomes_null():
    columns = {
        "time_s": np.array([1.0, 2.0]),
        "mode": np.array([1, 0], dtype=np.uint32),
        "rtt_s": np.array([np.nan, 0.5]),
    }
    frame = Table(columns, {"mode": ["slow_start", "avoidance"], "absent": ["x"]}).frame
    assert frame.to_dict(as_series=False) == {
        "time_s": [1.0, 2.0], "mode": ["avoidance", "slow_start"], "rtt_s": [None, 0.5]
    }  # fmt: skip
    none = {name: values[:0] for name, values in columns.items()}
    assert Table(none, {"mode": []}).frame.schema == frame.schema
