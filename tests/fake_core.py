"""An engine that needs no network: plausible curves computed from the spec, always the same.

Stands in for `jostle._core` where a test is about what happens to results, not about their truth.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

# How greedy a controller is beside another, and when it leaves its start-up.
_WEIGHT = {"cubic": 1.0, "bbr": 4.0, "vivace": 0.5, "hybla": 1.6, "reno": 0.8}
_RISE_S = {"cubic": 14.0, "bbr": 6.0, "vivace": 12.0, "hybla": 4.0, "reno": 18.0}
_MTU = 1514

REGISTRY = {
    "controllers": [
        {
            "name": "cubic",
            "summary": "The default of Linux",
            "class": "loss",
            "based_on": ["bic"],
            "source": "RFC 9438",
            "slow_start": "standard",
            "parameters": [
                {"name": "beta", "summary": "What a loss leaves of the window", "kind": "number",
                 "default": 0.7, "min": 0.1, "max": 0.99},
                {"name": "fast_convergence", "summary": "Give way to newcomers", "kind": "bool",
                 "default": True},
                {"name": "linux", "summary": "Which Linux", "kind": "choice", "default": "6.1",
                 "choices": ["4.15", "6.1"]},
            ],
        },
        {
            "name": "hybla",
            "summary": "For long round trips",
            "class": "loss",
            "based_on": ["reno"],
            "source": "Caini, Firrincieli 2004",
            "slow_start": None,
            "parameters": [
                {"name": "rtt0", "summary": "Round trip to keep up with", "kind": "span",
                 "default_ns": 25_000_000, "min_ns": 1_000_000, "max_ns": 2**63 - 1},
                {"name": "floor", "summary": "Least rate", "kind": "rate",
                 "default_bps": 1_000_000, "min_bps": 0, "max_bps": 10_000_000_000},
                {"name": "reserve", "summary": "Bytes kept back", "kind": "size",
                 "default_bytes": None, "min_bytes": 0, "max_bytes": 1_000_000},
                {"name": "rounds", "summary": "Rounds to wait", "kind": "integer",
                 "default": 3, "min": 1, "max": 9},
            ],
        },
        {
            "name": "bbr",
            "summary": "Builds a model of the path",
            "class": "model",
            "based_on": [],
            "source": "tcp_bbr.c",
            "slow_start": None,
            "parameters": [],
        },
    ],
    "slow_starts": [
        {"name": "standard", "summary": "Doubles every round trip", "class": "window",
         "based_on": [], "source": "RFC 5681", "parameters": []},
    ],
    "memories": [
        {"name": "stateful", "summary": "Starts at the last bandwidth", "class": "bandwidth",
         "based_on": [], "source": "", "parameters": []},
    ],
    "queues": [
        {"name": "drop_tail", "summary": "First in, first out", "class": "passive",
         "based_on": [], "source": "", "parameters": [
             {"name": "limit", "summary": "Most that it holds", "kind": "limit",
              "default": None, "min_bytes": 1514, "max_bytes": 2**63 - 1}]},
    ],
    "losses": [
        {"name": "independent", "summary": "Each by itself", "class": "per packet",
         "based_on": [], "source": "", "parameters": [
             {"name": "probability", "summary": "Of loss", "kind": "probability",
              "default": None}]},
    ],
}  # fmt: skip


@dataclass
class FakeRecord:
    summary: str
    flows: dict[str, np.ndarray]
    links: dict[str, np.ndarray]
    internals: dict[str, np.ndarray]
    acks: dict[str, np.ndarray] | None
    modes: list[str] = field(default_factory=lambda: ["slow_start", "congestion_avoidance"])
    quantities: list[str] = field(default_factory=lambda: ["w_max", "min_rtt"])


@dataclass
class FakeEngine:
    """The engine.

    Attributes
    ----------
    random
        Whether seeds make a difference.
    lasts_s
        How long a run takes.
    broken_seeds
        Seeds whose runs fail.
    started, calls
        Set when a run begins; how many there were.
    """

    ENGINE_VERSION: str = "fake-1"
    random: bool = True
    lasts_s: float = 0.0
    broken_seeds: tuple[int, ...] = ()
    started: threading.Event = field(default_factory=threading.Event)
    calls: int = 0

    def registry(self) -> str:
        return json.dumps(REGISTRY)

    def find_problem(self, _spec_json: str) -> None:
        return None

    def run_spec_schema(self) -> str:
        return json.dumps({"title": "RunSpec"})

    def run(
        self,
        spec_json: str,
        cancelled: Callable[[], bool] | None = None,
        capture_folder: Path | None = None,
    ) -> FakeRecord:
        spec = json.loads(spec_json)
        self.calls += 1
        self.started.set()
        until = time.monotonic() + self.lasts_s
        while time.monotonic() < until:
            if cancelled is not None and cancelled():
                raise RuntimeError("cancelled")
            time.sleep(0.005)
        if spec["seed"] in self.broken_seeds:
            raise ValueError("link `bottleneck`: the queue is upside down")
        if spec["capture"] is not None:
            assert capture_folder is not None
            for flow in spec["flows"]:
                for end in ("sender", "receiver"):
                    name = f"{flow['name']}.{end}"
                    (capture_folder / f"{name}.pcapng").write_text(f"packets of {name}")
        return _record(spec, self.random)


def spec(
    seed: int = 1,
    controllers: tuple[str, ...] = ("cubic", "bbr"),
    duration_s: int = 10,
    trace: str = "none",
    capture: bool = False,
) -> dict[str, Any]:
    """A spec with what the fake looks at."""
    second = 10**9
    names = ["incumbent", "newcomer", *(f"flow-{n}" for n in range(3, len(controllers) + 1))]
    return {
        "seed": seed,
        "duration_ns": duration_s * second,
        "interval_ns": second,
        "trace": trace,
        "capture": {"scenario": "for tests"} if capture else None,
        "phases": [
            {"name": "overall", "from_ns": 0, "to_ns": duration_s * second},
            {"name": "startup", "from_ns": 0, "to_ns": duration_s * second // 8},
            {"name": "steady", "from_ns": duration_s * second // 2, "to_ns": duration_s * second},
        ],
        "links": [
            {
                "name": "bottleneck",
                "capacity": {"kind": "constant", "rate_bps": 144_000_000},
                "loss": None,
                "outages": None,
            }
        ],
        "flows": [
            {"name": name, "controller": {"name": controller, "parameters": {}}}
            for name, controller in zip(names, controllers, strict=False)
        ],
    }


def _record(spec: Mapping[str, Any], random: bool) -> FakeRecord:
    generator = np.random.default_rng(spec["seed"] if random else 0)
    bins = spec["duration_ns"] // spec["interval_ns"]
    step_s = spec["interval_ns"] / 1e9
    ends_s = (np.arange(bins) + 1) * step_s
    capacity_bps = spec["links"][0]["capacity"]["rate_bps"]
    names = [f["controller"]["name"] for f in spec["flows"]]
    flows = len(names)

    wish = np.array(
        [_WEIGHT.get(n, 1.0) * (1 - np.exp(-((ends_s / _RISE_S.get(n, 9.0)) ** 2))) for n in names]
    )
    wish *= 1 + 0.12 * generator.standard_normal(wish.shape)
    wish = np.clip(wish, 0.002, None)
    total = wish.sum(axis=0)
    throughput = wish / np.maximum(total, 1.0) * capacity_bps * 0.95
    rtt = 0.6 + 0.25 * np.minimum(total, 2) + 0.03 * generator.standard_normal(total.shape)
    rtts = rtt + np.zeros((flows, 1))
    rtts[:, :1] = np.nan
    cwnd = throughput * np.nan_to_num(rtts, nan=0.6) / 8
    sent = np.round(throughput * step_s / 8 / _MTU)
    bursts = generator.random(sent.shape) < 0.1
    retransmitted = np.round(sent * np.where(bursts, 0.04 * generator.random(sent.shape), 0.0))

    def column(values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values.T).ravel()

    flow_columns = {
        "time_s": np.repeat(ends_s, flows),
        "flow": np.tile(np.arange(flows, dtype=np.uint32), bins),
        "sending_rate_bps": column(throughput * 1.01),
        "throughput_bps": column(throughput),
        "goodput_bps": column(throughput * 0.95),
        "rtt_mean_s": column(rtts),
        "rtt_last_s": column(rtts),
        "srtt_s": column(rtts),
        "cwnd_bytes": column(cwnd),
        "ssthresh_bytes": np.full(bins * flows, np.nan),
        "in_flight_bytes": column(cwnd * 0.9),
        "sent_packets": column(sent).astype(np.uint64),
        "retransmitted_packets": column(retransmitted).astype(np.uint64),
        "pacing_rate_bps": np.full(bins * flows, np.nan),
        "mode": (np.repeat(ends_s, flows) > 5).astype(np.uint8),
    }
    link_columns = {
        "time_s": ends_s,
        "link": np.zeros(bins, dtype=np.uint32),
        "utilisation": throughput.sum(axis=0) / capacity_bps,
        "queue_bytes": (rtt - 0.6) * capacity_bps / 8,
        "queue_mean_bytes": (rtt - 0.6) * capacity_bps / 8,
        "sent_packets": sent.sum(axis=0).astype(np.uint64),
        "dropped_overflow": retransmitted.sum(axis=0).astype(np.uint64),
    }
    internals = {
        "time_s": ends_s,
        "flow": np.zeros(bins, dtype=np.uint32),
        "quantity": np.zeros(bins, dtype=np.uint16),
        "value": cwnd[0],
    }
    acks = None
    if spec["trace"] == "acks":
        keys = ("rtt_s", "cwnd_bytes", "in_flight_bytes", "acked_bytes", "lost_packets")
        acks = {"time_s": ends_s, "flow": np.zeros(bins, dtype=np.uint32)}
        acks |= {key: np.arange(bins, dtype=np.float64) for key in keys}
    measured = _Measured(throughput, rtts, cwnd, sent, retransmitted, capacity_bps)
    summary = json.dumps(_summary(spec, ends_s, measured))
    return FakeRecord(summary, flow_columns, link_columns, internals, acks)


@dataclass
class _Measured:
    throughput: np.ndarray
    rtt: np.ndarray
    cwnd: np.ndarray
    sent: np.ndarray
    retransmitted: np.ndarray
    capacity_bps: float


def _summary(spec: Mapping[str, Any], ends_s: np.ndarray, m: _Measured) -> dict[str, Any]:
    windows = {
        p["name"]: (ends_s > p["from_ns"] / 1e9) & (ends_s <= p["to_ns"] / 1e9)
        for p in spec["phases"]
    }
    flows = [
        {
            "name": flow["name"],
            "transport": flow["transport"],
            "controller": flow["controller"]["name"],
            "completion_s": None,
            "phases": {name: _flow_phase(m, n, w) for name, w in windows.items()},
        }
        for n, flow in enumerate(spec["flows"])
    ]
    fairness = {}
    for name in windows:
        shares = np.array([f["phases"][name]["throughput_bps"] for f in flows])
        fairness[name] = {"jain": float(shares.sum() ** 2 / len(shares) / (shares**2).sum())}
    links = [
        {
            "name": link["name"],
            "phases": {
                name: {
                    "utilisation": float(m.throughput[:, w].sum(axis=0).mean() / m.capacity_bps),
                    "queue_mean_bytes": 1e6,
                    "queue_p95_bytes": 2e6,
                    "dropped_packets": int(m.retransmitted[:, w].sum()),
                    "marked_packets": 0,
                }
                for name, w in windows.items()
            },
        }
        for link in spec["links"]
    ]
    counts = {"events": len(ends_s), "bottleneck_packets": int(m.sent.sum())}
    return {"flows": flows, "links": links, "fairness": fairness, "counts": counts}


def _flow_phase(m: _Measured, flow: int, window: np.ndarray) -> dict[str, float | int | None]:
    throughput = float(m.throughput[flow, window].mean())
    rtt = m.rtt[flow, window]
    rtt = rtt[~np.isnan(rtt)]
    sent, again = int(m.sent[flow, window].sum()), int(m.retransmitted[flow, window].sum())

    def of_rtt(statistic: Callable[[np.ndarray], Any]) -> float | None:
        return float(statistic(rtt)) if rtt.size else None

    return {
        "sending_rate_bps": throughput * 1.01,
        "throughput_bps": throughput,
        "goodput_bps": throughput * 0.95,
        "goodput_ratio": 0.94,
        "rtt_mean_s": of_rtt(np.mean),
        "rtt_min_s": of_rtt(np.min),
        "rtt_p50_s": of_rtt(np.median),
        "rtt_p95_s": of_rtt(lambda r: np.percentile(r, 95)),
        "rtt_sd_s": of_rtt(np.std),
        "cwnd_mean_bytes": float(m.cwnd[flow, window].mean()),
        "sent_packets": sent,
        "retransmitted_packets": again,
        "retransmission_ratio": again / sent if sent else None,
        "power_bits": throughput / float(np.mean(rtt)) if rtt.size else None,
    }
