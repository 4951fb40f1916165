"""Quantities that are drawn: how they are written, and what becomes of them."""

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from backends_kernel.kernel_specs import spec_of
from jostle import _core
from jostle.scenario.distributions import RandomQuantity, parse_quantity, quantity_spec
from jostle.scenario.parsing.quantities import QuantityError

from .test_resolve import spec


def resolved(unit: Any, given: Any, folder: Path = Path()) -> Any:
    return quantity_spec(parse_quantity(unit, given), folder)


def law(kind: str, **parameters: float) -> dict[str, Any]:
    return {"law": {"kind": kind, **parameters}, "min": None, "max": None}


@pytest.mark.parametrize(
    ("unit", "given", "expected"),
    [
        ("size", "20 kB", 20_000),
        ("size", {"distribution": "constant", "value": "20 kB"}, 20_000),
        ("time", {"distribution": "exponential", "mean": "2 s"}, law("exponential", mean=2e9)),
        (
            "size",
            {"distribution": "lognormal", "mean": "20 kB", "sigma": 1.5},
            law("lognormal", median=float(f"{2e4 * math.exp(-1.125):.12g}"), sigma=1.5),
        ),
        (
            "size",
            {"distribution": "lognormal", "median": "20 kB", "sigma": 1},
            law("lognormal", median=2e4, sigma=1.0),
        ),
        (
            "size",
            {"distribution": "pareto", "mean": "12 kB", "shape": 1.2},
            law("pareto", scale=2000.0, shape=1.2),
        ),
        (
            "time",
            {"distribution": "weibull", "mean": "2 s", "shape": 0.5},
            law("weibull", scale=1e9, shape=0.5),
        ),
        (
            "size",
            {"distribution": "pareto", "scale": "1 kB", "shape": 1.2, "max": "1 MB"},
            {**law("pareto", scale=1000.0, shape=1.2), "max": 1e6},
        ),
        (
            "time",
            {"distribution": "empirical", "quantiles": {"0 %": "1 ms", "100 %": "3 ms"}},
            law("empirical")
            | {
                "law": {
                    "kind": "empirical",
                    "points": [
                        {"value": 1e6, "probability": 0.0},
                        {"value": 3e6, "probability": 1.0},
                    ],
                }
            },
        ),
    ],
)
def test_how_a_quantity_is_written(unit: str, given: Any, expected: Any) -> None:
    assert resolved(unit, given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mean": "2 kB"}, "no distribution is named"),
        ({"distribution": "gauss"}, 'there is no distribution "gauss"'),
        ({"distribution": "lognormal", "mean": "2 kB"}, "sigma is missing"),
        ({"distribution": "lognormal", "sigma": 1}, "median or mean is missing"),
        (
            {"distribution": "lognormal", "sigma": 1, "mean": "1 B", "median": "1 B"},
            "median and mean say the same",
        ),
        ({"distribution": "pareto", "mean": "2 kB", "shape": 0.9}, "there is no finite mean"),
        ({"distribution": "exponential", "mean": "2 s"}, "is a time, not an amount"),
        ({"distribution": "exponential", "mean": "0 B"}, "must be more than 0"),
        ({"distribution": "exponential", "mean": "2 kB", "shape": 2}, "unknown key"),
        ({"distribution": "web-search", "mean": "2 kB"}, "unknown key"),
        ({"distribution": "constant", "value": "2 kB", "max": "3 kB"}, "has no bounds"),
        ({"distribution": "empirical"}, "a file or quantiles"),
        (
            {"distribution": "exponential", "mean": "2 kB", "min": "3 kB", "max": "3 kB"},
            "is not above the min",
        ),
    ],
)
def test_what_is_no_quantity(given: Any, message: str) -> None:
    with pytest.raises(QuantityError, match=message):
        parse_quantity("size", given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "two points at least"),
        ("0 0\n10 0.5\n", "have to reach from 0 to 1"),
        ("0 0\n10 0.5\n5 1\n", "both rise"),
        ("0 0\n10\n", 'line 2: "10" is not a value'),
        ("0 0\n10 nan\n", "line 2"),
    ],
)
def test_files_that_hold_no_distribution(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sizes.cdf").write_text(text)
    with pytest.raises(QuantityError, match=message):
        resolved("size", {"distribution": "empirical", "file": "sizes.cdf"}, tmp_path)


def test_a_file_in_percent_and_in_its_own_unit(tmp_path: Path) -> None:
    (tmp_path / "think.cdf").write_text("# seconds of reading\n0 0\n1.5 40 # most\n10 100\n")
    given = {"distribution": "empirical", "file": "think.cdf", "unit": "ms"}
    points = resolved("time", given, tmp_path)["law"]["points"]
    assert [tuple(point.values()) for point in points] == [(0.0, 0.0), (1.5e6, 0.4), (1e7, 1.0)]


def test_a_missing_file_is_an_error_of_its_key(read: Callable[..., Any]) -> None:
    from jostle.scenario import ScenarioError

    written = 'size = { distribution = "empirical", file = "none.cdf" }'
    with pytest.raises(ScenarioError, match=r'size\.file: "none\.cdf": no such file'):
        spec(read(('rtt = "40 ms"', f'rtt = "40 ms"\n{written}')))


@pytest.mark.parametrize(
    ("name", "mean_bytes", "median_bytes"),
    [("web-search", 1_711_250, 73_077), ("data-mining", 12_658_198.6, 1_100)],
)
def test_published_workloads_have_their_mean(
    name: str, mean_bytes: float, median_bytes: float
) -> None:
    quantity = parse_quantity("size", {"distribution": name})
    assert isinstance(quantity, RandomQuantity)
    resolved = quantity_spec(quantity, Path("/nowhere"))
    assert isinstance(resolved, dict)
    points = [tuple(point.values()) for point in resolved["law"]["points"]]
    steps = pairwise(points)
    mean = sum((high - low) * (left + right) / 2 for (left, low), (right, high) in steps)
    assert mean == pytest.approx(mean_bytes)
    source = {"kind": "request_response", "bytes": resolved, "think_ns": 0, "count": 20_001}
    drawn = list(iter(application(source).next_message_bytes, None))
    # The last step of data-mining has two hundredths of the flows and nine tenths of the bytes.
    assert sum(drawn) / len(drawn) == pytest.approx(mean_bytes, rel=0.1)
    assert sorted(drawn)[10_000] == pytest.approx(median_bytes, rel=0.05)


def application(source: Any, seed: int = 1) -> Any:
    run = spec_of() | {"seed": seed}
    run["flows"][0]["source"] = source
    return _core.Traffic(json.dumps(run)).application(0)


def test_draws_repeat_by_seed_and_take_turns() -> None:
    def periods_ns(seed: int) -> list[int]:
        source = {"kind": "on_off", "on_ns": 5_000, "off_ns": law("exponential", mean=1e9)}
        drawing, at_ns, found = application(source, seed), 0, []
        for _ in range(6):
            next_ns = drawing.act(at_ns).next_ns
            assert next_ns is not None
            found.append(next_ns - at_ns)
            at_ns = next_ns
        return found

    assert len(set(periods_ns(7))) == 4
    assert sorted(periods_ns(7))[:3] == [5_000] * 3
    assert periods_ns(7) == periods_ns(7)
    assert set(periods_ns(7)) & set(periods_ns(8)) == {5_000}
    with pytest.raises(ValueError, match=r"mean.*more than 0"):
        application({"kind": "fixed", "bytes": law("exponential", mean=-1)})
