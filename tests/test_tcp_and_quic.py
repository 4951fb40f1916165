"""The same controllers over TCP and over QUIC: unused windows, and ssthresh after a loss."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from jostle.backends import SimBackend
from jostle.scenario import load_text
from jostle.scenario.registry import Registry

ROWS = Registry.of_engine().controllers
TRANSPORTS = ("tcp", "quic")
NEEDS_TCP = {"lp"}
"""Controllers that read a TCP option."""

WRITE_BYTES = 14_480
UNUSED_WINDOWS = {
    ("vegas", "tcp"): "Linux 6.1 does so: a kernel run has 1,323 kB on average after 20 s",
    (
        "hybla",
        "tcp",
    ): "Linux 6.1 does so: the first window adds 2^rho - 1 packets per ACK; a kernel "
    "run has 132 kB",
    ("sprout", "tcp"): "the window is the forecast, and arrivals are a lower bound of the rate",
    ("sprout", "quic"): "as over TCP",
    (
        "learned",
        "tcp",
    ): "the policy decides: the one that is built in raises its rate until the RTT rises",
    ("learned", "quic"): "as over TCP",
}
"""Rows whose window exceeds four times what the flow used, with the reason."""


def run(text: str) -> pl.DataFrame:
    """Series of the only flow of a scenario."""
    return SimBackend().run(load_text(text).plan(repeats=1).runs[0].spec).flows.sort("time_s")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_an_unused_window_does_not_grow(name: str, tmp_path: Path) -> None:
    # RFC 9002 §7.8, and RFC 7661: an application writes 1.2 Mbit/s for 60 s.
    writes = tmp_path / "writes.csv"
    writes.write_text("".join(f"{0.1 * n:.3f},{WRITE_BYTES}\n" for n in range(600)))
    for transport in TRANSPORTS:
        if transport == "quic" and name in NEEDS_TCP:
            continue
        series = run(
            f"""
title = "application-limited"
duration = "60 s"
sampling_interval = "1 s"
[bottleneck]
rate = "100 Mbit/s"
queue = {{ kind = "codel", ecn = true }}
[[flows]]
name = "app"
rtt = "50 ms"
ecn = true
controller = "{name}"
transport = "{transport}"
source = {{ kind = "trace", file = "{writes}" }}
"""
        )
        last = series.row(-1, named=True)
        allowed = last["cwnd_bytes"]
        if (rate := last["pacing_rate_bps"]) is not None and last["srtt_s"]:
            # A rate limits the data in flight, too.
            allowed = min(allowed, rate * last["srtt_s"] / 8)
        exceeds = allowed > 4 * WRITE_BYTES
        assert exceeds == ((name, transport) in UNUSED_WINDOWS), f"{transport}: {allowed} bytes"


def reduced(name: str, transport: str, lost_ms: int, tmp_path: Path) -> tuple[float, float]:
    """ssthresh after losses, relative to cwnd and to a flight that the receive window limits."""
    losses = tmp_path / "loss.csv"
    losses.write_text(f"time,loss\n0,0\n4,1\n{4 + lost_ms / 1000},0\n")
    name, _, flavour = name.partition(":")
    controller = f'{{ name = "{name}", flavour = "{flavour}" }}' if flavour else f'"{name}"'
    series = run(
        f"""
title = "a burst of losses"
duration = "6 s"
sampling_interval = "0.01 s"
[bottleneck]
rate = "100 Mbit/s"
queue = {{ kind = "drop_tail", limit = "4 BDP" }}
loss = {{ file = "{losses}", column = "loss" }}
[[flows]]
name = "download"
rtt = "100 ms"
controller = {controller}
receive_window = "200 kB"
transport = "{transport}"
{'pacing = "fq"' if transport == "tcp" else ""}
"""
    )
    before = series.filter(pl.col("time_s").is_between(3.8, 4.0))
    known = before["ssthresh_bytes"].fill_nan(0).fill_null(0)[-1]
    later = series.filter(pl.col("time_s") > 4)["ssthresh_bytes"].fill_nan(0).fill_null(0)
    ssthresh = later.filter((later > 0) & (later != known))[0]
    return ssthresh / before["cwnd_bytes"][-1], ssthresh / before["in_flight_bytes"].max()


SHARES = {
    "reno": 0.5,
    "reno:rfc9002": 0.5,
    "bic": 0.8,
    "cubic": 0.7,
    "highspeed": 0.5,
    "scalable": 0.875,
    "htcp": 0.5,
    "westwood": 0.5,
    "log-westwood+": 0.5,
    "tcpw": 1.0,
    "tcpw-a": 0.5,
    "hybla": 0.5,
}
"""Shares of cwnd that a loss leaves. `tcpw` measures more bandwidth than the flight needs here."""


@pytest.mark.parametrize("name", SHARES)
def test_the_same_losses_leave_the_same_ssthresh(name: str, tmp_path: Path) -> None:
    for transport in TRANSPORTS:
        share, _ = reduced(name, transport, 60, tmp_path)
        assert share == pytest.approx(SHARES[name], abs=0.01), transport
    loss_based = {row.name for row in ROWS.values() if row.group == "loss"}
    assert loss_based == {name.partition(":")[0] for name in SHARES}


@pytest.mark.parametrize("lost_ms", [10, 60])
def test_lost_packets_belong_to_the_flight(lost_ms: int, tmp_path: Path) -> None:
    # RFC 9438 §4.6: 0.7 of the outstanding data, which is half of cwnd here.
    for transport in TRANSPORTS:
        of_cwnd, of_flight = reduced("cubic:rfc9438", transport, lost_ms, tmp_path)
        assert of_flight == pytest.approx(0.7, abs=0.03), transport
        assert of_cwnd < 0.4, transport
