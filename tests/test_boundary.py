"""Boundaries: where points are put, how a claim is read and judged, the command."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import jostle
import numpy as np
import pytest
from jostle.cli import status
from jostle.errors import InputError
from jostle.figures.renderer import render_figure
from jostle.inference.scenario_toml import fitted_text
from jostle.parameter_search.boundary import Point, SamplePoint, changes, estimate_of, explore, vote
from jostle.parameter_search.boundary_report import BoundaryResult
from jostle.parameter_search.claims import judged, read_claim, study_of
from jostle.results.measure_samples import samples
from jostle.scenario.parsing.quantities import parse_amount
from jostle.stats import Estimate, expect
from jostle.studies import ClaimRow

SCENARIO = Path(__file__).parents[1] / "scenarios" / "sensitivity.toml"
CLAIM = "queue_length of bottleneck <= 40 kB"


def claim_row(holds: bool | None) -> ClaimRow:
    """A claim, judged as given with a complete interval on one side of its bound."""
    ours = Estimate(None if holds is None else float(holds), None, None, 1, "", "")
    return ClaimRow("a", "", (replace(expect(ours, "above", 0.5), certain=True),), "")


class Known:
    """A claim of which it is known where it holds."""

    def __init__(self, holds: Callable[..., bool | None]) -> None:
        self.holds = holds
        self.asked: list[Point] = []

    def __call__(self, points: Sequence[Point]) -> list[tuple[dict[str, str], ClaimRow]]:
        self.asked += points
        return [({"k": str(one)}, claim_row(self.holds(*one))) for one in points]


def test_one_key_is_bisected() -> None:
    judge = Known(lambda a: a < 0.37)
    places = explore(judge, 1, 50, seed=1, tolerance=0.001)
    ((below, above),) = changes(places)
    assert below.point[0] <= 0.37 <= above.point[0]
    assert above.point[0] - below.point[0] <= 0.001
    assert len(judge.asked) == 9 + 7, "an eighth of the range, halved seven times"
    assert [one.point for one in places] == sorted(one.point for one in places)


@pytest.mark.parametrize(
    ("tolerance", "points"), [(0.126, 9), (0.124, 10), (0.063, 10), (0.062, 11)]
)
def test_an_interval_is_halved_until_it_is_not_wider_than_the_tolerance(
    tolerance: float, points: int
) -> None:
    places = explore(Known(lambda a: a < 0.37), 1, 50, seed=1, tolerance=tolerance)
    assert len(places) == points
    ((below, above),) = changes(places)
    assert above.point[0] - below.point[0] <= tolerance


def test_a_judgement_is_certain_if_its_whole_interval_is_on_one_side() -> None:
    scenario = jostle.load(SCENARIO, {"duration": "2 s"}).with_points(((0.5, 0.5, 0.5),))
    results = jostle.run(scenario, store=False, repeats=3)
    found = samples(results, "share", ["overall"])
    share = next(one for one in found if one.place["flow"] == "bbr").estimate()
    assert share.low is not None
    assert share.high is not None
    low, value, high = (100 * end for end in (share.low, share.value or 0.0, share.high))
    assert low < value < high
    for bound, holds, certain in (
        (low - 1, False, True),
        ((low + value) / 2, False, False),
        ((value + high) / 2, True, False),
        (high + 1, True, True),
    ):
        (most,) = judged(scenario, results, read_claim(f"share of bbr <= {bound:.6f} %"))
        assert (most.holds, most.certain) == (holds, certain)
        (least,) = judged(scenario, results, read_claim(f"share of bbr >= {bound:.6f} %"))
        assert (least.holds, least.certain) == (not holds, certain)


def test_several_changes_are_all_followed_and_points_are_bounded() -> None:
    judge = Known(lambda a: 0.2 < a < 0.6)
    found = changes(explore(judge, 1, 100, seed=1, tolerance=0.01))
    assert [a.judgement.holds for a, _ in found] == [False, True]
    assert len(explore(Known(lambda a: a < 0.4), 1, 11, seed=1, tolerance=1e-9)) == 11
    assert changes(explore(Known(lambda _: True), 1, 20, seed=1, tolerance=0.01)) == []


def test_no_two_points_have_the_same_whole_number() -> None:
    def whole(point: Point) -> tuple[object, ...]:
        return tuple(min(1 + int(12 * share), 12) for share in point)

    judge = Known(lambda a: whole((a,))[0] < 5)  # type: ignore[operator]
    places = explore(judge, 1, 50, seed=1, tolerance=0.01, label=whole)
    assert [whole(one.point) for one in places] == [(n,) for n in (1, 2, 4, 5, 7, 8, 10, 11, 12)]
    ((below, above),) = changes(places)
    assert (whole(below.point), whole(above.point)) == ((4,), (5,))
    judge = Known(lambda a, b: a < b)
    values = [
        whole(one.point) for one in explore(judge, 2, 500, seed=1, tolerance=0.01, label=whole)
    ]
    assert len(values) == len(set(values)) > 120, "of 144"


def test_a_point_without_outcome_is_run_once() -> None:
    judge = Known(lambda a: None if 0.35 < a < 0.4 else a < 0.37)
    found = changes(explore(judge, 1, 50, seed=1, tolerance=0.001))
    assert len(judge.asked) == len(set(judge.asked)) == 9 + 2 * 7
    ((below, above),) = found
    assert below.point[0] == pytest.approx(0.35, abs=0.001)
    assert above.point[0] == pytest.approx(0.4, abs=0.001)


def test_points_gather_at_the_boundary_of_a_plane() -> None:
    def away(point: Point) -> float:
        return abs(np.hypot(point[0] - 0.5, point[1] - 0.5) - 0.35)

    judge = Known(lambda a, b: bool(np.hypot(a - 0.5, b - 0.5) < 0.35))
    places = explore(judge, 2, 60, seed=1, tolerance=0.01)
    assert len(places) == len({one.point for one in places}) == 60
    chosen = [away(one.point) for one in places if not one.blind]
    blind = [away(one.point) for one in places if one.blind]
    assert np.median(chosen) < np.median(blind) / 3
    found = estimate_of(places)
    assert found.holds < np.pi * 0.35**2 < found.holds + found.open
    assert 0 < found.open < 0.25
    assert found.blind == 20
    # No better than chance would be half of them.
    assert found.wrong <= 3


def test_three_keys() -> None:
    places = explore(Known(lambda a, b, c: a + b + c < 1.5), 3, 64, seed=2, tolerance=0.01)
    found = estimate_of(places)
    assert found.holds < 0.5 < found.holds + found.open
    assert found.holds == pytest.approx(found.fails, abs=0.06)
    with pytest.raises(InputError, match="not over 4"):
        explore(Known(lambda *_: True), 4, 64, seed=2, tolerance=0.01)


def test_a_seed_is_a_map() -> None:
    def asked(seed: int) -> list[Point]:
        judge = Known(lambda a, b: a < b)
        explore(judge, 2, 30, seed=seed, tolerance=0.01)
        return judge.asked

    assert asked(1) == asked(1) != asked(2)


def test_where_all_is_the_same_the_gaps_are_filled() -> None:
    places = explore(Known(lambda *_: True), 2, 40, seed=1, tolerance=0.01)
    found = estimate_of(places)
    assert (found.holds, found.open, found.wrong) == (1.0, 0.0, 0)


def test_what_is_not_known_has_no_vote() -> None:
    def place(point: Point, holds: bool | None) -> SamplePoint:
        return SamplePoint(point, {}, claim_row(holds), True)

    places = [place((0.0, 0.0), True), place((1.0, 0.0), False), place((0.1, 0.0), None)]
    shares = vote(places, np.array([[0.0, 0.0], [0.5, 0.0], [0.75, 0.0]]))
    assert shares[0] == pytest.approx(1.0)
    assert shares[1] == pytest.approx(0.5)
    assert shares[2] == pytest.approx((1 / 0.75**2) / (1 / 0.75**2 + 1 / 0.25**2))
    assert np.isnan(vote(places[2:], np.array([[0.0, 0.0]]))).all()


@pytest.mark.parametrize(
    ("text", "relation", "right", "factor"),
    [
        ("share of bbr <= 40 %", "below", 40.0, 1.0),
        ("rtt of bbr in steady >= 20", "above", 20.0, 1.0),
        ("rtt of bbr <= 1.5 rtt of cubic", "below", ("rtt", "cubic"), 1.5),
        ("throughput of bbr >= 0.5 * throughput of cubic", "above", ("throughput", "cubic"), 0.5),
        ("throughput of bbr >= throughput of cubic", "above", ("throughput", "cubic"), 1.0),
    ],
)
def test_claims_are_those_of_studies(
    text: str, relation: str, right: float | tuple[str, str], factor: float
) -> None:
    (part,) = read_claim(text).parts
    assert part.relation == relation
    assert part.factor == factor
    found = part.right if isinstance(part.right, float) else (part.right.measure, part.right.flow)  # type: ignore[union-attr]
    assert found == right


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("share of bbr", "write it as"),
        ("share of bbr < 3", "write it as"),
        ("shar of bbr <= 3", "shar"),
        ("rtt of bbr <= 3 %", "rtt is in ms, not in %"),
        ("queue_length <= 40 ms", "queue_length is in kB, not in ms"),
    ],
)
def test_no_claims(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_claim(text)


def test_a_claim_file_that_is_no_toml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "claim.toml"
    file.write_bytes(b"parts = [" * 1000)
    assert status(["search", "boundary", str(SCENARIO), "--claim", str(file)]) == 2
    assert f"error: {file}" in capsys.readouterr().err


def test_a_claim_is_judged_at_every_point_of_its_own(tmp_path: Path) -> None:
    scenario = jostle.load(SCENARIO, {"duration": "3 s"}).with_points(
        ((0.5, 0.5, 0.0), (0.5, 0.5, 1.0), (0.2, 0.9, 0.4))
    )
    results = jostle.run(scenario, store=False, repeats=3)
    frame = results.estimate("share", phase="overall")
    shares = [
        100
        * frame.filter((frame["flow"] == "bbr") & (frame["bottleneck.queue.limit"] == limit))[
            "value"
        ][0]
        for limit in scenario.sample["bottleneck.queue.limit"]
    ]
    found = judged(scenario, results, read_claim("share of bbr <= 50 %"))
    assert [one.parts[0].ours.value for one in found] == pytest.approx(shares)
    assert [one.holds for one in found] == [share <= 50 for share in shares]
    file = tmp_path / "both.toml"
    file.write_text(
        'defaults = { flow = "bbr" }\n'
        'parts = [{ left = { measure = "share" }, relation = "below", right = 50 },\n'
        '{ left = { measure = "rtt" }, relation = "above", right = 100000 }]\n'
    )
    assert [one.holds for one in judged(scenario, results, read_claim(str(file)))] == [False] * 3
    with pytest.raises(InputError, match="nobody"):
        judged(scenario, results, read_claim("share of nobody <= 50 %"))


def test_a_claim_does_not_pool_conditions_of_a_grid(tmp_path: Path) -> None:
    changes = {"duration": "2 s", "grid": '{ "flows.bbr.controller" = ["bbr", "reno"] }'}
    scenario = jostle.load(SCENARIO, changes).with_points(((0.5, 0.5, 0.0),))
    with pytest.raises(InputError, match="conditions differ in controller: choose one by `where`"):
        study_of(scenario, read_claim("share of bbr <= 50 %"))
    file = tmp_path / "pool.toml"
    file.write_text(
        'parts = [{ left = { measure = "share", flow = "bbr", pool = ["controller"] }, '
        'relation = "below", right = 50 }]\n'
    )
    study_of(scenario, read_claim(str(file)))


def test_a_claim_can_compare_conditions_of_a_grid(tmp_path: Path) -> None:
    changes = {"duration": "2 s", "grid": '{ "flows.bbr.controller" = ["bbr", "reno"] }'}
    scenario = jostle.load(SCENARIO, changes).with_points(((0.5, 0.5, 0.0), (0.5, 0.5, 1.0)))
    results = jostle.run(scenario, store=False)
    file = tmp_path / "more.toml"
    file.write_text(
        'parts = [{ left = { measure = "share", flow = "bbr", where = { controller = "bbr" } }, '
        'relation = "above", '
        'right = { measure = "share", flow = "bbr", where = { controller = "reno" } } }]\n'
    )
    found = judged(scenario, results, read_claim(str(file)))
    share = [
        one.estimate().value
        for one in samples(results, "share", ["overall"])
        if one.place["flow"] == "bbr"
    ]
    ratios = [share[0] / share[2], share[1] / share[3]]  # type: ignore[operator]
    assert [one.parts[0].ours.value for one in found] == pytest.approx(ratios)


@pytest.mark.parametrize(
    ("fixed", "axes"),
    [(["bottleneck.rate=8 Mbit/s", "flows.*.rtt=30 ms"], 1), (["flows.*.rtt=30 ms"], 1), ([], 3)],
)
def test_the_command(
    fixed: list[str], axes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    settings = [word for one in [*fixed, "duration=2 s"] for word in ("--set", one)]
    words = [
        "search",
        "boundary",
        str(SCENARIO),
        *settings,
        "--claim",
        CLAIM,
        "--points",
        "14",
    ]
    assert status([*words, "--json", "-o", "map.svg"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "jostle.boundary/1"
    assert len(told["keys"]) == 3 - len(fixed)
    assert 0 < told["holds"] < 1
    for point in told["points"]:
        assert point["holds"] == (point["value"] <= 40)
    if len(fixed) == 2:
        (change,) = told["changes"]
        low, high = (parse_amount(change[end]["bottleneck.queue.limit"]).value
                     for end in ("from", "to"))  # fmt: skip
        assert 1 < high / low < 1.2
    assert (tmp_path / "map.svg").stat().st_size > 1000
    again = capsys.readouterr()
    assert status([*words, "--jobs", "1", "--json", "--store", "none"]) == 0
    assert json.loads(capsys.readouterr().out) == told
    assert status(words) == 0
    assert CLAIM in capsys.readouterr().out
    assert again.out == ""


def test_a_map_has_an_axis_for_each_slice() -> None:
    scenario = jostle.load(SCENARIO)
    assert scenario.design is not None
    places = explore(Known(lambda a, b, c: a + b + c < 1.5), 3, 32, seed=2, tolerance=0.01)
    found = BoundaryResult(read_claim(CLAIM), scenario.design.variables, tuple(places))
    assert len(render_figure(found.figure()).axes) == 3
    flat = explore(Known(lambda a, b: a < b), 2, 32, seed=2, tolerance=0.01)
    two = BoundaryResult(read_claim(CLAIM), scenario.design.variables[:2], tuple(flat))
    (axis,) = render_figure(two.figure()).axes
    assert axis.get_xlabel() == "rate (Mbit/s)"
    assert axis.get_xlim() == pytest.approx((2, 20))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["sample.where=[\"bottleneck.rate > 3 Mbit/s\"]"], "cuts the ranges"),
        (["bottleneck.rate=1 Mbit/s", "flows.*.rtt=50 ms", "bottleneck.queue.limit=9 kB"],
         "samples no key"),
        (["sample={ points = 2, \"flows.bbr.controller\" = [\"bbr\", \"reno\"] }"], "has choices"),
    ],
)  # fmt: skip
def test_mistakes_end_with_2(
    changes: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    settings = [word for one in changes for word in ("--set", one)]
    assert status(["search", "boundary", str(SCENARIO), *settings, "--claim", CLAIM]) == 2
    assert message in capsys.readouterr().err


UNFINISHED = {
    "title": "unfinished", "duration": "5 s",
    "bottleneck": {"rate": "10 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "flows": [{"name": "dl", "controller": "cubic", "rtt": "80 ms", "size": "2 MB"}],
    "sample": {"points": 8, "bottleneck.rate": {"from": "2 Mbit/s", "to": "20 Mbit/s"}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("claim", "slow", "fast"),
    [
        ("completion_time of dl <= 4 s", False, True),
        ("completion_time of dl <= 6 s", None, True),
        ("completion_time of dl >= 4 s", True, False),
        ("completion_time of dl >= 6 s", None, False),
    ],
)
def test_a_run_that_ends_before_the_bound_decides_nothing(
    claim: str, slow: bool | None, fast: bool
) -> None:
    scenario = jostle.Scenario.from_dict(UNFINISHED).with_points(((0.0,), (1.0,)))
    results = jostle.run(scenario, store=False)
    rows = judged(scenario, results, read_claim(claim))
    assert [row.holds for row in rows] == [slow, fast]
    assert (rows[0].verdict == "open") is (slow is None)
    if slow is None:
        assert rows[0].decisive.ours.method == "1 of 1 run never completed: extend `duration`"


def test_points_whose_runs_ended_too_early_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(fitted_text(UNFINISHED, {}))
    words = ["search", "boundary", "s.toml", "--claim", "completion_time of dl <= 6 s"]
    assert status([*words, "--points", "4"]) == 0
    out = capsys.readouterr().out
    assert (
        "at all 3 points; at 1 others runs ended too early or have no value, extend `duration`"
        in out
    )
    assert "It is the same wherever it is known." in out
    assert (
        "At 1 point the claim is unknown, because runs ended too early or have no value"
        in " ".join(out.split())
    )
    assert status([*words, "--points", "4", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["points"][0]
    assert (first["holds"], first["possible"]) == (None, [5.0, None])
