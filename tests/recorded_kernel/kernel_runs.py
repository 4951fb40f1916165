"""Recorded kernel runs, and the simulator's run of the same scenario."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jostle import _core
from jostle.scenario import load_text

RECORDED = Path(__file__).parent / "recorded"
SOLO = ("reno", "cubic", "bbr", "hybla", "vegas")
PAIRS = ("cubic-cubic", "cubic-reno", "cubic-bbr", "cubic-hybla", "cubic-vegas")
PACKET_BYTES = 1514
PAYLOAD_BYTES = 1448
SAMPLE_S = 0.1


@dataclass(frozen=True)
class FlowRun:
    """One flow of a run, sampled every 100 ms; arrays of equal length."""

    controller: str
    time_s: np.ndarray
    acked_bytes: np.ndarray
    srtt_ms: np.ndarray
    cwnd_packets: np.ndarray
    retransmitted: np.ndarray

    def goodput_mbps(self, from_s: float, to_s: float) -> float:
        """Mean goodput between two times of the run."""
        first, last = np.searchsorted(self.time_s, (from_s - 1e-3, to_s - 1e-3))
        last = min(last, len(self.time_s) - 1)
        span_s = self.time_s[last] - self.time_s[first]
        return float((self.acked_bytes[last] - self.acked_bytes[first]) * 8e-6 / span_s)

    def mean_srtt_ms(self, from_s: float) -> float:
        """Mean of the smoothed RTT from a time of the run on."""
        return float(self.srtt_ms[self.time_s > from_s + 1e-3].mean())


def recorded(name: str) -> tuple[dict[str, Any], list[FlowRun]]:
    """Read a recorded run: its setup and its flows."""
    document = json.loads((RECORDED / f"{name}.json").read_text())
    flows = [
        FlowRun(
            flow["cc"],
            np.array(flow["t"]),
            np.array(flow["acked_bytes"]),
            np.array(flow["srtt_ms"]),
            np.array(flow["cwnd"]),
            np.array(flow["retrans"]),
        )
        for flow in document["flows"]
    ]
    return document["spec"], flows


def simulated(setup: dict[str, Any], later_s: float = 0.0) -> list[FlowRun]:
    """Run the recorded setup in the simulator; the second flow starts `later_s` later."""
    spec = run_spec(setup, later_s)
    record = _core.run(json.dumps(spec))
    assert record.acks is not None
    runs = []
    for position, flow in enumerate(setup["flows"]):
        column = _of_flow(record.flows, position)
        acks = _of_flow(record.acks, position)
        acks_so_far = np.searchsorted(acks["time_s"], column["time_s"], side="right")
        acked_bytes = np.concatenate(([0], acks["acked_bytes"]))[acks_so_far]
        runs.append(
            FlowRun(
                flow["cc"],
                column["time_s"],
                acked_bytes,
                np.nan_to_num(column["srtt_s"]) * 1e3,
                column["cwnd_bytes"] / PAYLOAD_BYTES,
                np.cumsum(column["retransmitted_packets"]),
            )
        )
    return runs


def _of_flow(table: dict[str, np.ndarray], position: int) -> dict[str, np.ndarray]:
    rows = np.asarray(table["flow"]) == position
    return {name: np.asarray(values)[rows] for name, values in table.items()}


def run_spec(setup: dict[str, Any], later_s: float = 0.0) -> dict[str, Any]:
    """Translate a recorded setup into the simulator's terms.

    `htb` hands a packet over when its turn begins, a link when its turn ends: the simulated round
    trip is shorter by the time of one packet, so that both see the same. And the first packet of
    every recorded connection waits a round trip for address resolution: a link of its own, ahead
    of the bottleneck, delays it.
    """
    rate_bps = setup["rate_mbit"] * 1e6
    packet_ms = PACKET_BYTES * 8e3 / rate_bps
    flows = "".join(
        f"""
        [[flows]]
        name = "{position}-{flow["cc"]}"
        controller = "{flow["cc"]}"
        rtt = "{flow["rtt_ms"] - packet_ms:.6f} ms"
        start = "{flow.get("start_s", 0) + (later_s if position else 0):.6f} s"
        receive_window = "32 MiB"
        """
        for position, flow in enumerate(setup["flows"])
    )
    scenario = load_text(
        f"""
        title = "as recorded"
        record = "acks"
        duration = "{setup["duration_s"]} s"
        sampling_interval = "{SAMPLE_S * 1e3:.0f} ms"
        [bottleneck]
        rate = "{setup["rate_mbit"]} Mbit/s"
        queue = {{ kind = "drop_tail", limit = "{setup["buffer_bytes"]} B" }}
        {flows}
        """
    )
    spec: dict[str, Any] = scenario.plan().runs[0].spec
    for position, flow in enumerate(spec["flows"]):
        resolved_ns = flow["start_ns"] + flow["base_delay_ns"]
        wait = [{"at_ns": 0, "delay_ns": flow["base_delay_ns"]}]
        wait.append({"at_ns": resolved_ns, "delay_ns": 0})
        link = json.loads(json.dumps(spec["links"][0]))
        link["name"] = f"address-resolution-{position}"
        link["capacity"] = {"kind": "constant", "rate_bps": 10**11}
        link["queue"] = {"kind": "drop_tail", "parameters": {"limit": {"packets": 10**6}}}
        link["delay"] = {"steps": wait, "jitter": None}
        spec["links"].append(link)
        flow["path"] = [len(spec["links"]) - 1, 0]
    return spec


def shares(flows: Sequence[FlowRun], duration_s: float) -> list[float]:
    """Each flow's part of the goodput of the second half, in percent."""
    goodputs = [flow.goodput_mbps(duration_s / 2, duration_s) for flow in flows]
    return [100 * goodput / sum(goodputs) for goodput in goodputs]


def pair_shares(name: str, setup: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """First flow's share, recorded and simulated, for each of the recorded starts of the second."""
    runs = json.loads((RECORDED / "pairs.json").read_text())[name]
    planned_s = setup["flows"][1]["start_s"]
    kernel = [100 * run["goodput_mbps"][0] / sum(run["goodput_mbps"]) for run in runs]
    ours = [
        shares(simulated(setup, run["start_s"] - planned_s), setup["duration_s"])[0] for run in runs
    ]
    return np.array(kernel), np.array(ours)
