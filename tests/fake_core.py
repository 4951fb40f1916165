"""The engine with accidents on demand, tiny runs for it, and a small registry."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jostle import _core

MS = 1_000_000
SECOND = 1_000 * MS
START_NS = 1_300 * MS
"""When flows start, or a little later: in their first second nothing has a value."""
_SLOW_START = {
    row["name"]: row["slow_start"] for row in json.loads(_core.registry())["controllers"]
}

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
    "peer_caches": [
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
class FakeEngine:
    """The engine: its runs are those of `jostle._core`.

    Attributes
    ----------
    lasts_s
        How long it waits before each run.
    broken_seeds
        Seeds whose runs fail.
    rows
        The registries, instead of the engine's.
    started, calls
        Set when a run begins; how many there were.
    """

    ENGINE_VERSION: str = "fake-1"
    lasts_s: float = 0.0
    broken_seeds: tuple[int, ...] = ()
    rows: dict[str, Any] | None = None
    started: threading.Event = field(default_factory=threading.Event)
    calls: int = 0

    def registry(self) -> str:
        return _core.registry() if self.rows is None else json.dumps(self.rows)

    def find_problem(self, _spec_json: str) -> None:
        return None

    def run_spec_schema(self) -> str:
        return _core.run_spec_schema()

    def run(
        self,
        spec_json: str,
        cancelled: Callable[[], bool] | None = None,
        capture_folder: Path | None = None,
    ) -> _core.RunRecord:
        self.calls += 1
        self.started.set()
        until = time.monotonic() + self.lasts_s
        while time.monotonic() < until:
            if cancelled is not None and cancelled():
                raise RuntimeError("cancelled")
            time.sleep(0.005)
        if json.loads(spec_json)["seed"] in self.broken_seeds:
            raise ValueError("link `bottleneck`: the queue is upside down")
        return _core.run(spec_json, cancelled, capture_folder)

    def run_summary(
        self,
        spec_json: str,
        cancelled: Callable[[], bool] | None = None,
        make_controller: object = None,
        libraries: object = None,
    ) -> str:
        return self.run(spec_json, cancelled).summary


def spec(  # noqa: PLR0917
    seed: int = 1,
    controllers: tuple[str, ...] = ("cubic", "bbr"),
    duration_s: int = 10,
    trace: str = "none",
    capture: bool = False,
    jitter: bool = True,
) -> dict[str, Any]:
    """Flows that share 10 Mbit/s; those of another seed start at other times, with `jitter`."""
    names = ["incumbent", "newcomer", *(f"flow-{n}" for n in range(3, len(controllers) + 1))]
    pairs = enumerate(zip(names, controllers, strict=False))
    return {
        "seed": seed,
        "duration_ns": duration_s * SECOND,
        "interval_ns": SECOND,
        "record": trace,
        "capture": {"scenario": "for tests", "qlog": False} if capture else None,
        "phases": [
            {"name": "overall", "from_ns": 0, "to_ns": duration_s * SECOND},
            {"name": "startup", "from_ns": 0, "to_ns": duration_s * SECOND // 8},
            {"name": "steady", "from_ns": duration_s * SECOND // 2, "to_ns": duration_s * SECOND},
        ],
        "links": [
            {
                "name": "bottleneck",
                "capacity": {"kind": "constant", "rate_bps": 10_000_000},
                "queue": {"kind": "drop_tail", "parameters": {"limit": {"bytes": 50_000}}},
                "delay": {"steps": [{"at_ns": 0, "delay_ns": 20 * MS}], "jitter": None},
                "loss": None,
                "outages": None,
                "quick_start": None,
            }
        ],
        "flows": [
            _flow(name, controller, START_NS + jitter * ((37 * seed + 59 * number) % 100) * MS)
            for number, (name, controller) in pairs
        ],
    }


def _flow(name: str, controller: str, start_ns: int) -> dict[str, Any]:
    slow_start = _SLOW_START.get(controller)
    pings = {"kind": "ping", "bytes": 20, "every_ns": 200 * MS, "timeout_ns": SECOND}
    return {
        "name": name,
        "transport": "udp" if controller == "none" else "tcp",
        "controller": {"name": controller, "parameters": {}},
        "slow_start": {"name": slow_start, "parameters": {}} if slow_start else None,
        "memory": None,
        "peer": 0,
        "path": [0],
        "reverse_path": [],
        "base_delay_ns": 20 * MS,
        "after": None,
        "start_ns": start_ns,
        "stop_ns": None,
        "source": pings if controller == "none" else {"kind": "bulk"},
        "pacing": controller in ("bbr", "vivace"),
        "ecn": False,
        "mtu_bytes": 1500,
        "initial_window_packets": 10,
        "initial_pacing": False,
        "linux": "6.1",
        "receive_window_bytes": 60_000_000,
        "initial_receive_window_bytes": 65_535,
        "receive_window_autotuning": False,
        "gro": False,
        "nic_rate_bps": None,
    }
