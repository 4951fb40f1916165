"""The default sampling interval."""

from __future__ import annotations

import jostle
import pytest
from jostle.errors import InputError
from jostle.scenario.resolve.sampling import MOST_ROWS, automatic_interval

MS, S, DAY_S = 10**6, 10**9, 86_400
BULK = {"source": {"kind": "bulk"}, "path": [0]}
PING = {"source": {"kind": "ping", "every_ns": 200 * MS}, "path": [0]}
CALL = {
    "source": {"kind": "cbr", "bytes": 172, "steps": [{"rate_bps": 68_800}]},
    "path": [0],
}
SCENARIO = """
duration = "{duration}"
{interval}
[bottleneck]
rate = "10 Mbit/s"
queue = {{ kind = "drop_tail", limit = "100 kB" }}
[[flows]]
name = "one"
controller = "cubic"
rtt = "{rtt}"
"""


def interval_ns(duration: str, rtt: str, interval: str = "") -> int:
    text = SCENARIO.format(duration=duration, rtt=rtt, interval=interval)
    return jostle.Scenario.from_toml(text).plan().runs[0].spec["interval_ns"]


@pytest.mark.parametrize(
    ("duration", "rtt", "expected_ns"),
    [
        ("20 s", "40 ms", 50 * MS),  # the base RTT
        ("60 s", "5 ms", 100 * MS),  # 1000 points
        ("1000 s", "40 ms", S),
        ("1001 s", "40 ms", 2 * S),
        ("60 s", "600 ms", S),
        ("5 s", "600 ms", 500 * MS),  # ten points
        ("150 ms", "40 ms", 10 * MS),
        ("1 ns", "1 ms", 1),
    ],
)
def test_rtt_and_duration_set_the_interval(duration: str, rtt: str, expected_ns: int) -> None:
    assert interval_ns(duration, rtt) == expected_ns
    assert interval_ns(duration, rtt, 'sampling_interval = "auto"') == expected_ns


def test_the_default_is_a_round_number_with_400_to_1000_points() -> None:
    for duration_ms in range(20_000, 600_000, 777):
        found = automatic_interval(duration_ms * MS, [20 * MS], [BULK], [100_000_000])
        assert str(found).rstrip("0") in ("1", "2", "5")
        assert 400 <= duration_ms * MS / found <= 1000


def test_an_interval_covers_events() -> None:
    fast = [100_000_000]
    assert automatic_interval(60 * S, [20 * MS], [BULK, PING], fast) == 200 * MS
    assert automatic_interval(10 * S, [10 * MS], [CALL], fast) == 20 * MS
    # Ten packets of 12 ms per flow and link.
    assert automatic_interval(60 * S, [20 * MS], [BULK, BULK], [1_000_000]) == 500 * MS
    # ACKs on a slow way back need no longer intervals.
    assert automatic_interval(60 * S, [20 * MS], [BULK], [100_000_000, 1_000_000]) == 100 * MS


@pytest.mark.parametrize("flows", [1, 100, 1000, 10_000])
@pytest.mark.parametrize("duration_s", [10, 600, DAY_S, 30 * DAY_S])
def test_the_number_of_rows_is_bounded(flows: int, duration_s: int) -> None:
    rtts = [20 * MS] * flows
    found = automatic_interval(duration_s * S, rtts, [BULK] * flows, [10**9])
    rows = -(-duration_s * S // found) * (flows + 1)
    assert rows <= MOST_ROWS
    if found < S:
        assert rows <= 20_000 or -(-duration_s * S // found) <= 10


def test_other_words_are_refused() -> None:
    with pytest.raises(InputError, match='or "auto"'):
        interval_ns("10 s", "40 ms", 'sampling_interval = "fine"')
