"""Output of ping: `jostle analyze` and `jostle link` read the same probes, losses and RTTs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import jostle
import pytest
from jostle.errors import InputError
from jostle.measurements.ping import MOST_PINGS
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.traces.ping_output import PingLog, SequenceNumbers, parse_ping
from jostle.scenario.traces.reader import read

HEADER = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data."
T0 = 1_700_000_000.0
Both = Callable[..., PingLog]


def echoes(numbers: Iterable[int], *, every_s: float = 1.0) -> list[str]:
    """Lines of `ping -D` for probes with these numbers; the RTT is 20 ms."""
    return [
        f"[{T0 + number * every_s + 0.02:.6f}] 64 bytes from 192.0.2.1: "
        f"icmp_seq={number % 65_536} ttl=57 time=20.0 ms"
        for number in numbers
    ]


def summary(sent: int, received: int, word: str = "") -> str:
    return f"{sent} packets transmitted, {received} {word}received, 9% packet loss, time 9ms"


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """Read a log with both commands and the parser, which must agree."""

    def make(*lines: str) -> PingLog:
        path = tmp_path / "ping.txt"
        path.write_text("\n".join(lines) + "\n")
        log = parse_ping(lines, MOST_PINGS)
        assert log is not None
        lost = log.sent - len(log.replies)
        (flow,) = jostle.analyze(path).results[0].run.summary["flows"]
        assert (flow["pings"]["sent"], flow["pings"]["lost"]) == (log.sent, lost)
        recording = read(path)
        (loss,) = (one.values for one in recording.columns if one.name == "loss")
        assert (loss.size, loss.sum()) == (log.sent, lost)
        assert recording.length_s == pytest.approx(log.sent * log.interval_s)
        return log

    return make


def test_more_probes_than_sequence_numbers(both: Both) -> None:
    count = 68_400
    log = both(HEADER, *echoes(range(1, count + 1)), summary(count, count))
    assert (log.sent, len(log.replies)) == (count, count)
    assert log.interval_s == pytest.approx(1.0)


def test_the_start_of_a_log_is_cut_off(both: Both) -> None:
    assert both(HEADER, *echoes(range(5_001, 5_301))).sent == 300
    # The summary is of all probes, and two replies of the rest are missing.
    for last in (5_300, 70_836, 136_372):
        numbers = [number for number in range(last - 299, last + 1) if number % 100]
        log = both(*echoes(numbers), summary(last + 5, last - 2))
        assert (log.sent, len(log.replies)) == (305, 297)


@pytest.mark.parametrize(
    ("word", "numbers", "sent", "lost_first"),
    [("", range(4, 101), 100, 3), ("packets ", range(4, 100), 100, 4)],
    ids=["iputils counts from 1", "BSD counts from 0"],
)
def test_the_first_probes_are_lost(
    word: str, numbers: range, sent: int, lost_first: int, both: Both
) -> None:
    log = both(HEADER, *echoes(numbers), summary(sent, len(numbers), word))
    assert (log.sent, min(log.replies)) == (sent, lost_first)


UNREACHABLE = "[{at}] From 192.0.2.254 icmp_seq={n} Destination Host Unreachable"
UNANSWERED = "[{at}] no answer yet for icmp_seq={n}"
TIMEOUT = "Request timeout for icmp_seq {n}"


@pytest.mark.parametrize("form", [UNREACHABLE, UNANSWERED, TIMEOUT, None])
@pytest.mark.parametrize("is_finished", [True, False])
def test_the_last_probes_are_lost(form: str | None, is_finished: bool, both: Both) -> None:
    lost = [form.format(at=T0 + n, n=n) for n in range(21, 101)] if form else []
    end = [summary(100, 20)] if is_finished else []
    log = both(HEADER, *echoes(range(1, 21)), *lost, *end)
    assert (log.sent, len(log.replies)) == (100 if lost or end else 20, 20)


def test_a_late_reply_is_not_lost(both: Both) -> None:
    lines = echoes(range(1, 6))
    log = both(HEADER, *lines[:2], UNANSWERED.format(at=T0, n=3), *lines[3:], lines[2], lines[3])
    assert (log.sent, list(log.replies)) == (5, [0, 1, 2, 3, 4])
    # So does a reply from before the number wrapped.
    log = both(HEADER, *echoes((65_534, 65_536, 65_535, 65_537)))
    assert (log.sent, len(log.replies)) == (4, 4)


def test_sequence_numbers_are_unwrapped() -> None:
    numbers = SequenceNumbers()
    given = [1, 60_000, 59_990, 10_000, 65_535, 0, 65_535, 1]
    unwrapped = [1, 60_000, 59_990, 75_536, 131_071, 131_072, 131_071, 131_073]
    assert [numbers.unwrap(number) for number in given] == unwrapped
    numbers = SequenceNumbers()
    # Numbers of more than 16 bits do not wrap.
    given = [65_534, 65_536, 65_535, 200_000, 190_000]
    assert [numbers.unwrap(number) for number in given] == given


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*echoes([1, 2]), HEADER, *echoes([1, 2])], "line 4: a second run of ping"),
        ([*echoes([1]), *echoes([2], every_s=0.5)], "its time stamps do not grow"),
        ([*echoes([1]), "64 bytes: seq=2000002 time=1 ms"], "2000002 pings: at most"),
    ],
)
def test_damaged_logs_are_refused(lines: list[str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "ping.txt"
    path.write_text("\n".join([HEADER, *lines]))
    for reader in (jostle.analyze, read):
        with pytest.raises((InputError, QuantityError), match=message):
            reader(path)


def test_the_limit_in_the_reference_is_that_of_the_reader() -> None:
    reference = Path(__file__).parents[1] / "docs/reference/file-formats.md"
    assert f"| ping | {MOST_PINGS / 1e6:g} million pings |" in reference.read_text("utf-8")
