"""A run as a data file that flent opens; `flent.py` says what is in one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jostle.backends.kernel.packet_sizes import LINK_HEADER_BYTES
from jostle.errors import InputError
from jostle.measurements.flent import VERSION
from jostle.measurements.log_samples import HEADER_BYTES, NS

if TYPE_CHECKING:
    from jostle.backends import Run

SUFFIX: Final = ".flent.gz"
T0: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""When a run began: its own clock has no date."""


def write(run: Run, path: Path) -> int:
    """Write a run as a file that flent opens, and give the number of its flows.

    A flow is a series of its goodput, `TCP upload::NAME`, with window, smoothed RTT and pacing rate
    as what `ss` would have said at the end of each interval. Pings are series of the mean round
    trip of each interval. The same run gives the same bytes.

    Raises
    ------
    InputError
        When the file is not called `.flent.gz`, or cannot be written.
    """
    if not path.name.endswith(SUFFIX):
        raise InputError(f"{path}: flent opens files that end in {SUFFIX}")
    text = json.dumps(document_of(run, path.name), sort_keys=True, allow_nan=False)
    try:
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    return len(run.spec["flows"])


def document_of(run: Run, name: str) -> dict[str, Any]:
    """Give what a data file of this name says of a run."""
    import polars as pl

    flows = run.spec["flows"]
    x_values = run.flows["time_s"].unique().sort().to_list()
    results: dict[str, list[float | None]] = {}
    raw: dict[str, list[dict[str, float]]] = {}
    about: dict[str, dict[str, Any]] = {}
    for flow in flows:
        series = _series_of(flow, about)
        rows = run.flows.filter(pl.col("flow") == flow["name"]).sort("time_s").to_dicts()
        make = _round_trip if about[series]["UNITS"] == "ms" else _rate
        said = {row["time_s"]: make(row, about[series]["TCP_MSS"]) for row in rows}
        before = 0.0
        for at_s, value in said.items():
            value["t"] = T0.timestamp() + at_s
            if "val" in value:
                value["dur"] = at_s - before
            before = at_s
        results[series] = [said.get(x, {}).get("val") for x in x_values]
        raw[series] = [value for value in said.values() if len(value) > 1]
    rates = [results[series] for series in about if about[series]["UNITS"] != "ms"]
    if rates:
        # The default figure of flent's test has the sum, which has no raw values there either.
        results["TCP upload sum"] = [
            sum(value or 0.0 for value in values) for values in zip(*rates, strict=True)
        ]
        about["TCP upload sum"] = {"UNITS": "Mbits/s"}
    seconds = run.spec["duration_ns"] / NS
    began = T0.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    metadata = {
        "NAME": "tcp_nup", "TITLE": f"jostle {run.run_id[:8]}", "NOTE": f"run {run.run_id}",
        "TIME": began, "T0": began, "LENGTH": seconds, "TOTAL_LENGTH": seconds,
        "STEP_SIZE": run.spec["interval_ns"] / NS, "DATA_FILENAME": name, "HOST": "jostle",
        "HOSTS": ["jostle"], "LOCAL_HOST": "jostle", "IP_VERSION": 4, "FLENT_VERSION": "2.3.0",
        "TEST_PARAMETERS": {"upload_streams": len(rates)}, "SERIES_META": about,
    }  # fmt: skip
    return {
        "version": VERSION, "metadata": metadata, "x_values": x_values, "results": results,
        "raw_values": raw,
    }  # fmt: skip


def _series_of(flow: Mapping[str, Any], about: dict[str, dict[str, Any]]) -> str:
    """Name a flow as flent names its series, and say what it is."""
    mss = int(flow["mtu_bytes"]) + LINK_HEADER_BYTES - HEADER_BYTES
    if flow["source"]["kind"] == "ping":
        # The name that figures of flent show; further pings are in those that show all.
        first = "Ping (ms) ICMP"
        name = f"Ping (ms) {flow['name']}" if first in about else first
        about[name] = {"UNITS": "ms", "TCP_MSS": mss}
    else:
        name = f"TCP upload::{flow['name']}"
        controller = flow["controller"]["name"]
        about[name] = {"UNITS": "Mbits/s", "TCP_MSS": mss, "CONG_CONTROL": controller}
    return name


def _rate(row: Mapping[str, Any], mss: int) -> dict[str, float]:
    """Give goodput in Mbit/s, and what `ss` would say: window in packets, RTT in ms."""
    said = {
        "val": (row["goodput_bps"], 1e6),
        "tcp_cwnd": (row["cwnd_bytes"], mss),
        "tcp_rtt": (row["srtt_s"] or None, 1e-3),
        "tcp_pacing_rate": (row["pacing_rate_bps"], 1e6),
    }
    return {key: value / unit for key, (value, unit) in said.items() if value is not None}


def _round_trip(row: Mapping[str, Any], _mss: int) -> dict[str, float]:
    rtt_s = row["rtt_mean_s"]
    return {} if rtt_s is None else {"val": rtt_s / 1e-3}
