import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jostle.scenario.parsing.quantities import (
    Amount,
    QuantityError,
    format_amount,
    parse_amount,
    parse_probability,
    parse_rate,
    parse_size,
    parse_span,
)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("600 ms", 600_000_000),
        ("600ms", 600_000_000),
        ("0.1 ms", 100_000),
        ("1.5 us", 1_500),
        ("1.5 µs", 1_500),
        ("20 min", 1_200_000_000_000),
        ("2 h", 7_200_000_000_000),
        ("1e3 s", 1_000_000_000_000),
        ("1_000 ns", 1_000),
        ("0 s", 0),
        # As programs print sums of 0.1.
        ("2.0999999999999996 s", 2_100_000_000),
        ("0.30000000000000004 ms", 300_000),
        ("1.0009 ns", 1),
    ],
)
def test_spans(text: str, ns: int) -> None:
    assert parse_span(text) == ns


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("144 Mbit/s", 144_000_000),
        ("1.5 Gbit/s", 1_500_000_000),
        ("64 kbit/s", 64_000),
        ("1 bit/s", 1),
    ],
)
def test_rates(text: str, bps: int) -> None:
    assert parse_rate(text) == bps


@pytest.mark.parametrize(
    ("text", "size"),
    [("36 MB", 36_000_000), ("32 MiB", 33_554_432), ("1.5 kB", 1_500), ("2 packets", 3_028)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_amounts_keep_what_they_count() -> None:
    assert parse_amount("1000 packets") == Amount(Fraction(1000), "packets")
    assert parse_amount("1 packet") == Amount(Fraction(1), "packets")
    bdp = parse_amount("1.5 BDP")
    assert bdp == Amount(Fraction(3, 2), "bdp")
    assert bdp.to_bytes(1_000_001) == 1_500_001
    assert bdp.to_packets(1_000_001) == 991


@pytest.mark.parametrize(
    ("written", "probability"),
    [("0.1 %", 0.001), ("50%", 0.5), (0.25, 0.25), (1, 1.0), ("0.5", 0.5)],
)
def test_probabilities(written: object, probability: float) -> None:
    assert parse_probability(written) == probability


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("144", 'has no unit — write for example "144 ms" or "144 s"'),
        (144, 'has no unit — write for example "144 ms" or "144 s"'),
        ("5 MS", 'did you mean "ms"?'),
        ("5 sec", 'did you mean "s"?'),
        ("5 Mbit/s", "is a rate, not a time"),
        ("5 packets", "is an amount of data, not a time"),
        ("-1 s", "is negative"),
        ("0.5 ns", "is not a whole number of ns"),
        ("1e300 s", "is too large"),
        ("1e-300 s", "is too small"),
        ("1e99999999999999999999999 s", "is out of range"),
        ("300 h 5 s", "unknown unit"),
        ("nan s", "is not a time"),
        ("", "is not a time"),
        (True, "true is not a time"),
        ([1], "a list is not a time"),
        (float("inf"), "inf is not a time"),
    ],
)
def test_what_is_no_time_is_refused_with_a_reason(given: object, said: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_span(given)
    assert said in str(caught.value)


@given(st.integers(0, 2**63 - 1), st.sampled_from(["time", "size"]))
def test_what_is_formatted_reads_back(value: int, kind: str) -> None:
    parse = parse_span if kind == "time" else parse_size
    assert parse(format_amount(value, kind)) == value


@given(st.decimals(0, 1_000_000, places=6))
def test_milliseconds_are_exact(milliseconds: object) -> None:
    assert parse_span(f"{milliseconds} ms") == Fraction(str(milliseconds)) * 10**6


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_span, parse_rate, parse_size, parse_amount, parse_probability):
        # Anything but a refusal would fail the test.
        with contextlib.suppress(QuantityError):
            parse(text)
