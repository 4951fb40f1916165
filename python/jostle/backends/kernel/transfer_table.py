"""Transfers of multi-connection flows: the table, and measures of groups.

The engine computes both for simulated connections, but samples do not describe single connections.
The definitions are the same as in the engine's functions named here; `test_connections.py` compares
the numbers with a simulation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle.backends.base import Spec
from jostle.backends.kernel import packet_sizes
from jostle.backends.kernel.quantiles import mean, ranked
from jostle.run_spec import FlowSpec
from jostle.scenario.service_rate import ConstantService, constant_service

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[Any]

# Size classes, `SIZES_BYTES` of crates/metrics/src/transfer_stats.rs: (above, up to].
_CLASSES = {
    "small_": (0, 100_000),
    "medium_": (100_000, 10_000_000),
    "large_": (10_000_000, 2**64),
}


def table(spec: Spec, events: Sequence[Mapping[str, Any]]) -> dict[str, Column] | None:
    """Return the columns of the transfer table, in the order of the requests.

    Parameters
    ----------
    events
        Events of each flow, with `transfers_ns` for multi-connection flows.

    Returns
    -------
    dict of arrays or None
        None without flows with arrivals.
    """
    import numpy as np

    if all(flow.get("arrivals") is None for flow in spec["flows"]):
        return None
    transfers = [
        (asked_ns, flow, number, size_bytes, took_ns, retransmitted)
        for flow, seen in enumerate(events)
        for number, asked_ns, size_bytes, took_ns, retransmitted in seen.get("transfers_ns", ())
    ]
    # A completion after the end of the run is treated as unknown.
    end_ns = spec["duration_ns"]
    rows = sorted(row for row in transfers if row[0] < end_ns)
    # Connections are numbered over the whole run, in the order of their requests.
    numbers: dict[tuple[int, int], int] = {}
    firsts = []
    for _, flow, number, *_ in rows:
        firsts.append((flow, number) not in numbers)
        numbers.setdefault((flow, number), len(numbers))
    services = [constant_service(link) for link in spec["links"]]
    least_s = [
        _least_s(spec, services, spec["flows"][row[1]], row[3], first=first)
        for row, first in zip(rows, firsts, strict=True)
    ]
    completion_time_s = np.array(
        [np.nan if _is_unknown(row, end_ns) else row[4] / 1e9 for row in rows], float
    )
    return {
        "time_s": np.array([row[0] / 1e9 for row in rows], float),
        "flow": np.array([row[1] for row in rows], "u4"),
        "connection": np.array([numbers[row[1], row[2]] for row in rows], "u4"),
        "bytes": np.array([row[3] for row in rows], "u8"),
        "completion_time_s": completion_time_s,
        "slowdown": completion_time_s / np.array(least_s, float),
        "retransmitted_packets": np.array([row[5] for row in rows], "u4"),
    }


def _is_unknown(row: Sequence[Any], end_ns: int) -> bool:
    return row[4] is None or row[0] + row[4] > end_ns


def _least_s(
    spec: Spec,
    services: Sequence[ConstantService | None],
    flow: FlowSpec,
    size_bytes: int,
    *,
    first: bool,
) -> float:
    """Return the time of a transfer on an empty path; NaN if a service rate varies.

    See `completion_s` of crates/metrics/src/transfer_log.rs.
    """
    links = spec["links"]

    def delay_ns(path: Sequence[int]) -> int:
        return sum(int(links[number]["delay"]["steps"][0]["delay_ns"]) for number in path)

    slowest = _slowest(services, flow["path"])
    if slowest is None:
        return float("nan")
    one_way_ns = delay_ns(flow["path"])
    rtt_ns = one_way_ns + delay_ns(flow["reverse_path"]) + flow["base_delay_ns"]
    transfer_delay_ns = one_way_ns if flow["source"]["kind"] == "request_response" else rtt_ns
    segments = -(-size_bytes // packet_sizes.payload_bytes(flow))
    wire_bytes = size_bytes + segments * packet_sizes.HEADER_BYTES
    delays_ns = (rtt_ns if first else 0) + transfer_delay_ns
    return slowest.shortest_time_s(wire_bytes) + delays_ns / 1e9


def _slowest(
    services: Sequence[ConstantService | None], path: Sequence[int]
) -> ConstantService | None:
    crossed = [services[number] for number in path]
    known = [service for service in crossed if service is not None]
    if len(known) < len(crossed):
        return None
    return min(known, key=lambda service: service.rate_bps, default=None)


def add_transfers(
    groups: Sequence[Mapping[str, Any]], spec: Spec, transfers: Mapping[str, Column]
) -> list[dict[str, Any]]:
    """Return the summaries of groups with the measures of their transfers.

    Parameters
    ----------
    groups
        Summaries of the engine, which does not know the transfers of this backend.
    transfers
        Transfer table of the run.
    """
    import numpy as np

    found = []
    for group in groups:
        members = [
            number
            for number, flow in enumerate(spec["flows"])
            if (flow["group"] or flow["name"]) == group["name"] and flow.get("arrivals") is not None
        ]
        is_member = np.isin(transfers["flow"], members)
        chosen = {name: column[is_member] for name, column in transfers.items()}
        found.append({**group, **(_measures(chosen, spec["duration_ns"]) if members else {})})
    return found


def _measures(transfers: Mapping[str, Column], duration_ns: int) -> dict[str, Any]:
    """Return the measures of `measures/group.rs` and `measures/transfers_by_size.rs`, by key."""
    import numpy as np

    sizes_bytes, completions_s = transfers["bytes"], transfers["completion_time_s"]
    over = ~np.isnan(completions_s)
    took_s: list[float] = completions_s[over].tolist()
    rates_bps = sizes_bytes[over] * 8.0 / completions_s[over]
    unfinished = int(np.count_nonzero(~over))
    measures: dict[str, Any] = {
        "completion_time_mean_s": mean(took_s),
        **{
            f"completion_time_p{percent}_s": ranked(
                completions_s[over].tolist(), unfinished, percent / 100
            )
            for percent in (50, 95, 99)
        },
        "completion_rate_mean_bps": mean(rates_bps.tolist()),
        "unfinished": unfinished if len(over) else None,
        "transfers_finished": float(np.count_nonzero(over)),
        "offered_rate_bps": float(sizes_bytes.sum()) * 8.0 / (duration_ns / 1e9),
        "slowdown_p50": _slowdown(transfers, 0.5),
        "slowdown_p95": _slowdown(transfers, 0.95),
    }
    everything = np.ones(len(sizes_bytes), bool)
    classes = {"": everything} | {
        name: (above < sizes_bytes) & (sizes_bytes <= up_to)
        for name, (above, up_to) in _CLASSES.items()
    }
    for name, members in classes.items():
        transfers_of_class = {key: column[members] for key, column in transfers.items()}
        measures[f"{name}transfers"] = float(len(transfers_of_class["bytes"]))
        measures[f"{name}slowdown_mean"] = mean(_known(transfers_of_class["slowdown"]))
        if name:
            measures[f"{name}completion_time_mean_s"] = mean(completions_s[members & over].tolist())
        if name in ("", "small_"):
            measures[f"{name}slowdown_p99"] = _slowdown(transfers_of_class, 0.99)
    small = classes["small_"]
    unfinished_small = int(np.count_nonzero(small & ~over))
    measures["small_completion_time_p99_s"] = ranked(
        completions_s[small & over].tolist(), unfinished_small, 0.99
    )
    return measures


def _slowdown(transfers: Mapping[str, Column], share: float) -> float | None:
    import numpy as np

    known = _known(transfers["slowdown"])
    unfinished = int(np.count_nonzero(np.isnan(transfers["completion_time_s"])))
    return ranked(known, unfinished, share) if known else None


def _known(values: Column) -> list[float]:
    import numpy as np

    found: list[float] = values[~np.isnan(values)].tolist()
    return found
