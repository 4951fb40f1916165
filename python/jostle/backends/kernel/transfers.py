"""What became of the transfers of flows that are many connections: a table, and measures of groups.

The engine makes both of what it is told of a run's connections; samples do not tell it of those.
Definitions are the engine's, of the functions that are named here, and `test_connections.py` holds
the numbers against those of a simulated run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle.backends.base import Spec
from jostle.backends.kernel import packets
from jostle.backends.kernel.ranks import mean, ranked
from jostle.run_spec import FlowSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[Any]

# Classes of sizes, `SIZES_BYTES` of crates/record/src/transfer.rs: above, and up to.
_CLASSES = {
    "small_": (0, 100_000),
    "medium_": (100_000, 10_000_000),
    "large_": (10_000_000, 2**64),
}


def table(spec: Spec, events: Sequence[Mapping[str, Any]]) -> dict[str, Column] | None:
    """Give the columns of the table of transfers, in the order in which they were asked for.

    Parameters
    ----------
    events
        Of each flow, with its `transfers_ns` if it is many connections.

    Returns
    -------
    dict of arrays or None
        None if no flow is.
    """
    import numpy as np

    if all(flow.get("arrivals") is None for flow in spec["flows"]):
        return None
    told = [
        (asked_ns, flow, number, size_bytes, took_ns, again)
        for flow, seen in enumerate(events)
        for number, asked_ns, size_bytes, took_ns, again in seen.get("transfers_ns", ())
    ]
    # What is known of a transfer that ended after the run is not of the run.
    end_ns = spec["duration_ns"]
    rows = sorted(row for row in told if row[0] < end_ns)
    # Connections are counted over the run, as they come.
    numbers: dict[tuple[int, int], int] = {}
    firsts = []
    for _, flow, number, *_ in rows:
        firsts.append((flow, number) not in numbers)
        numbers.setdefault((flow, number), len(numbers))
    least_s = [
        _least_s(spec, spec["flows"][row[1]], row[3], first=first)
        for row, first in zip(rows, firsts, strict=True)
    ]
    completion_s = np.array(
        [np.nan if _is_unknown(row, end_ns) else row[4] / 1e9 for row in rows], float
    )
    return {
        "time_s": np.array([row[0] / 1e9 for row in rows], float),
        "flow": np.array([row[1] for row in rows], "u4"),
        "connection": np.array([numbers[row[1], row[2]] for row in rows], "u4"),
        "bytes": np.array([row[3] for row in rows], "u8"),
        "completion_s": completion_s,
        "slowdown": completion_s / np.array(least_s, float),
        "retransmitted_packets": np.array([row[5] for row in rows], "u4"),
    }


def _is_unknown(row: Sequence[Any], end_ns: int) -> bool:
    return row[4] is None or row[0] + row[4] > end_ns


def _least_s(spec: Spec, flow: FlowSpec, size_bytes: int, *, first: bool) -> float:
    """Time of a transfer on an empty path, `Least::completion_s`; NaN if a rate varies."""
    links = spec["links"]

    def delay_ns(path: Sequence[int]) -> int:
        return sum(int(links[number]["delay"]["steps"][0]["delay_ns"]) for number in path)

    rates_bps = [
        capacity["rate_bps"] if capacity["kind"] == "constant" else None
        for capacity in (links[number]["capacity"] for number in flow["path"])
    ]
    known_bps = [rate_bps for rate_bps in rates_bps if rate_bps is not None]
    if not known_bps or len(known_bps) < len(rates_bps):
        return float("nan")
    one_way_ns = delay_ns(flow["path"])
    rtt_ns = one_way_ns + delay_ns(flow["reverse_path"]) + flow["access_delay_ns"]
    way_ns = one_way_ns if flow["source"]["kind"] == "request_response" else rtt_ns
    segments = -(-size_bytes // packets.payload_bytes(flow))
    wire_bytes = size_bytes + segments * packets.HEADER_BYTES
    return wire_bytes * 8 / min(known_bps) + ((rtt_ns if first else 0) + way_ns) / 1e9


def told_to_groups(
    groups: Sequence[Mapping[str, Any]], spec: Spec, transfers: Mapping[str, Column]
) -> list[dict[str, Any]]:
    """Give the summaries of groups with what became of their transfers.

    Parameters
    ----------
    groups
        As the engine has them, which knows of no transfer.
    transfers
        The table of a run.
    """
    import numpy as np

    found = []
    for group in groups:
        members = [
            number
            for number, flow in enumerate(spec["flows"])
            if (flow["group"] or flow["name"]) == group["name"] and flow.get("arrivals") is not None
        ]
        theirs = np.isin(transfers["flow"], members)
        chosen = {name: column[theirs] for name, column in transfers.items()}
        found.append({**group, **(_measures(chosen, spec["duration_ns"]) if members else {})})
    return found


def _measures(transfers: Mapping[str, Column], duration_ns: int) -> dict[str, Any]:
    """Compute the measures of `measures/group.rs` and `measures/arrived.rs`, by their keys."""
    import numpy as np

    sizes_bytes, completions_s = transfers["bytes"], transfers["completion_s"]
    over = ~np.isnan(completions_s)
    took_s: list[float] = completions_s[over].tolist()
    rates_bps = sizes_bytes[over] * 8.0 / completions_s[over]
    unfinished = int(np.count_nonzero(~over))
    made: dict[str, Any] = {
        "completion_mean_s": mean(took_s),
        **{
            f"completion_p{percent}_s": ranked(
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
        one = {key: column[members] for key, column in transfers.items()}
        made[f"{name}transfers"] = float(len(one["bytes"]))
        made[f"{name}slowdown_mean"] = mean(_known(one["slowdown"]))
        if name:
            made[f"{name}completion_mean_s"] = mean(completions_s[members & over].tolist())
        if name in ("", "small_"):
            made[f"{name}slowdown_p99"] = _slowdown(one, 0.99)
    small = classes["small_"]
    late = int(np.count_nonzero(small & ~over))
    made["small_completion_p99_s"] = ranked(completions_s[small & over].tolist(), late, 0.99)
    return made


def _slowdown(transfers: Mapping[str, Column], share: float) -> float | None:
    import numpy as np

    known = _known(transfers["slowdown"])
    unfinished = int(np.count_nonzero(np.isnan(transfers["completion_s"])))
    return ranked(known, unfinished, share) if known else None


def _known(values: Column) -> list[float]:
    import numpy as np

    found: list[float] = values[~np.isnan(values)].tolist()
    return found
