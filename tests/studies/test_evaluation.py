"""Numbers and claims of a study held against runs."""

from __future__ import annotations

import numpy as np
import pytest
from jostle import _core
from jostle.backends.sim import SimBackend
from jostle.figures.renderer import render_figure
from jostle.results.measures import measure
from jostle.results.number_format import digits
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.stats import Estimate, expect
from jostle.studies import Runs
from jostle.studies.evaluate import _above, _claim, _numbers, evaluate, value_estimate
from jostle.studies.figures import figure_data
from jostle.studies.load import load
from jostle.studies.models import Claim, ClaimPart, FigureSpec, Number, Value
from jostle.studies.models import Curve as CurveSpec
from jostle.studies.run_study import run_study, work_of
from jostle.studies.time_windows import MeasureArguments, TimeWindow
from matplotlib.text import Text


@pytest.fixture
def runs(folder) -> Runs:
    study = load("small", folder)
    backend = SimBackend(_core)
    session = Session(backend, local(1), None)
    done = run_study(work_of(study, backend, None), lambda one: session.carry_out(one.plan))
    return Runs(study, done["small", "described"])


def test_numbers_claims_and_orders(runs):
    found = evaluate(runs)
    numbers = {row.id: row for row in found.numbers}
    assert list(numbers) == ["throughput.reno", "throughput.bbr", "rtt"]
    assert numbers["throughput.reno"].holds
    assert numbers["throughput.reno"].text == "Throughput of reno"
    assert numbers["throughput.reno"].published_sd == 1
    assert numbers["throughput.bbr"].holds is False
    assert numbers["throughput.reno"].ours.value == pytest.approx(10, rel=0.02)
    (ranking,) = found.rankings
    assert ranking.published == ("bbr", "reno")
    claims = {row.id: row for row in found.claims}
    assert claims["true"].holds
    assert claims["true"].parts[0].certain
    assert claims["false"].holds is False
    ratio = claims["false"].parts[0]
    assert ratio.relation == "≥ 2 ×"
    assert ratio.ours.low <= ratio.ours.value <= ratio.ours.high


def test_a_backend_without_runs_judges_nothing(runs):
    found = evaluate(Runs(runs.study, {}))
    assert {row.holds for row in (*found.numbers, *found.claims, *found.rankings)} == {None}
    assert all(figure_data(Runs(runs.study, {}), one) is None for one in runs.study.file.figures)


def test_windows_by_time_and_by_bytes(runs):
    (view,) = runs.views("transfer", 0)
    half = view.span("half", runs.study.file.experiments["transfer"].windows["half"], "download")
    whole = TimeWindow(0.0, 0.0)
    completion_time_s = view.value(measure("completion_time"), "download", whole)
    # The last ACK is half a round trip younger than the last byte; bins are 50 ms long.
    assert half.to_s == pytest.approx(completion_time_s, abs=0.07)
    rate = view.value(measure("goodput"), "download", half)
    assert rate * (half.to_s - half.from_s) * 1e6 / 8 == pytest.approx(1e6, rel=0.05)
    download = measure("download_time")
    assert view.value(download, "download", whole, MeasureArguments(1_000_000)) == pytest.approx(
        half.from_s
    )
    assert view.value(download, "download", whole, MeasureArguments(3_000_000)) is None


@pytest.fixture
def download(runs) -> Value:
    """Download time of a size that some of the three runs of Reno, not all, deliver in time."""
    asked = Value(
        experiment="flow", where={"controller": "reno"}, flow="download", measure="download_time"
    )
    sizes = [asked.model_copy(update={"size": f"{size} kB"}) for size in range(3000, 6000, 5)]
    return next(one for one in sizes if 0 < np.isinf(runs.per_run(one)).sum() < 3)


def test_a_run_without_the_event_is_in_the_mean(runs, download):
    absent = int(np.isinf(runs.per_run(download)).sum())
    found = value_estimate(runs, download)
    words = f"{absent} of 3 runs never delivered that size"
    assert (found.value, found.low, found.n, found.method) == (np.inf, None, 3, words)
    least = value_estimate(runs, download.model_copy(update={"summary": "min"}))
    assert least.value == min(runs.summary(download))
    in_time = {"summary": "share", "below": 10.0}
    share = value_estimate(runs, download.model_copy(update=in_time))
    assert share.value == pytest.approx(100 * (3 - absent) / 3)
    # The runs ended after 3 s to 4 s: the others may take less than 10 s, but not less than 1 s.
    ran_s = found.possible[0]
    assert 1 < ran_s < 10
    for bound, verdict in ((1, "fails"), (10, "open")):
        part = ClaimPart(left=download, relation="below", right=bound)
        row = _claim(runs, Claim(id="a", text="", parts=(part,)))
        assert (row.verdict, row.holds) == (verdict, None if verdict == "open" else False)
    assert row.decisive.ours.method == f"{words}: extend `duration`"
    assert share.possible == (share.value, 100.0)
    median = value_estimate(runs, download.model_copy(update={"summary": "median"}))
    assert median.possible is None or median.possible[0] < median.value
    by_itself = ClaimPart(left=download, relation="below", right=download, factor=1.2)
    row = _claim(runs, Claim(id="a", text="", parts=(by_itself,)))
    assert (row.verdict, row.decisive.ours.possible) == ("open", (0.0, np.inf))
    number = Number(id="a", text="", published=4, statistic="t", against={"controller": "bbr"},
                    **download.model_dump(exclude_defaults=True))  # fmt: skip
    (row,) = _numbers(runs, number)
    assert row.ours.value is None
    assert words in row.ours.method


def test_the_time_relative_to_another_that_never_ends_is_zero_and_of_two_unknown(runs, download):
    never = download.model_copy(update={"size": "30 MB", "relative_to": {"controller": "bbr"}})
    assert runs.per_run(never) == [None] * 3
    short = {"size": "1 MB", "relative_to": {"controller": "bbr"}}
    assert np.isfinite(runs.per_run(download.model_copy(update=short))).all()


def test_a_run_without_a_value_leaves_it_open(runs):
    value = Value(where={"controller": "reno"}, flow="download", measure="rtt")
    position = runs.position("flow", runs.study.conditions(value)[0])
    first, *others = runs.results["flow"].runs_of(position)
    for flow in first.run.summary["flows"]:
        flow["phases"]["overall"]["rtt_mean_s"] = None
    assert runs.per_run(value)[0] is None
    found = value_estimate(runs, value)
    assert (found.n, found.possible[1]) == (len(others), np.inf)
    part = ClaimPart(left=value, relation="below", right=1e6)
    row = _claim(runs, Claim(id="a", text="", parts=(part,)))
    assert (row.verdict, row.decisive.ours.method) == ("open", "1 of 3 runs have no RTT")
    share = value.model_copy(update={"summary": "share", "below": 1e6})
    assert value_estimate(runs, share).possible == (pytest.approx(200 / 3), 100.0)
    by_itself = ClaimPart(left=value, relation="below", right=value, factor=1.2)
    assert _claim(runs, Claim(id="a", text="", parts=(by_itself,))).verdict == "open"
    for one in others:
        for flow in one.run.summary["flows"]:
            flow["phases"]["overall"]["rtt_mean_s"] = None
    assert value_estimate(runs, value).possible is None
    assert _claim(runs, Claim(id="a", text="", parts=(part,))).verdict is None


def test_figures_leave_out_runs_without_the_event(runs, download):
    curve = CurveSpec(label="Reno", **download.model_dump(exclude_defaults=True))
    absent = int(np.isinf(runs.per_run(download)).sum())

    def data(kind, **more):
        one = FigureSpec(id="a", caption="", kind=kind, curves=(curve,), **more)
        return figure_data(runs, one)

    (steps,) = data("cdf").curves
    assert steps.x.size == 3 - absent
    assert steps.y[-1] == pytest.approx((3 - absent) / 3)
    ((box,),) = data("boxes").boxes
    assert np.isfinite(box.mean)
    assert data("bars") is None


def test_partial_bins_count_in_part(runs):
    view = runs.views("flow", 0)[0]
    rate = measure("throughput")
    whole, *parts = [
        view.value(rate, "download", TimeWindow(a, b))
        for a, b in ((1.0, 1.2), (1.0, 1.05), (1.05, 1.2))
    ]
    assert whole == pytest.approx(0.25 * parts[0] + 0.75 * parts[1])


def test_summaries(runs):
    value = Value(where={"controller": "reno"}, flow="download", measure="throughput")
    sample = np.array(runs.per_run(value))
    assert sample.size == 3
    for summary, expected in (
        ("mean", sample.mean()),
        ("sd", sample.std(ddof=1)),
        ("median", np.median(sample)),
        ("max", sample.max()),
    ):
        found = value_estimate(runs, value.model_copy(update={"summary": summary}))
        assert found.value == pytest.approx(expected)
    share = value.model_copy(update={"summary": "share", "above": float(sample.max())})
    assert value_estimate(runs, share).value == pytest.approx(100 / 3)


def test_percentiles_of_bins(runs):
    value = Value(
        where={"controller": "reno"}, flow="download", measure="rtt", bin="200 ms", percentile=100
    )
    peak, *_ = runs.per_run(value)
    whole, *_ = runs.per_run(value.model_copy(update={"percentile": None, "bin": None}))
    assert peak > whole


def test_every_figure_is_drawn(runs):
    for spec in runs.study.file.figures:
        data = figure_data(runs, spec)
        assert data is not None, spec.id
        assert render_figure(data).axes, spec.id


def test_figures_show_published_values(runs):
    found = {one.id: figure_data(runs, one) for one in runs.study.file.figures}
    rate, rtt, jain = (panel.lines[0].published for panel in found["1-series"].panels)
    assert [(from_s, round(to_s), value) for from_s, to_s, value in rate] == [(2.0, 4, 10.0)]
    assert [(from_s, round(to_s), value) for from_s, to_s, value in rtt] == [(0.0, 4, 30.0)]
    assert jain == ()
    assert found["2-boxes"].published == ((None, None),)
    assert found["4-bars"].published == ((None,), (10.0,))
    # The claim about Reno has the same number; Vivace has none.
    assert found["5-heat"].published[:2, 1].tolist() == [10.0, 1000.0]
    assert np.isnan(found["5-heat"].published).sum() == 4
    drawn = {name: render_figure(data) for name, data in found.items()}
    texts = {name: [one.get_text() for one in figure.findobj(Text)] for name, figure in
             drawn.items()}  # fmt: skip
    assert {name for name, all_of_it in texts.items() if "published" in all_of_it} == {
        "1-series",
        "4-bars",
    }
    assert any(text.endswith("\n(1000)") for text in texts["5-heat"])
    lines = FigureSpec(
        id="lines", caption="", kind="lines", x="controller", x_scale="even",
        curves=[CurveSpec(label="a", experiment="flow", flow="download", measure="throughput",
                          window="late")],
    )  # fmt: skip
    (curve,) = figure_data(runs, lines).curves
    assert curve.published[:2].tolist() == [10.0, 1000.0]
    assert np.isnan(curve.published[2])


def test_the_run_of_median_represents_a_curve(runs):
    figure = FigureSpec(
        id="one",
        caption="One run of each",
        kind="representative",
        panels=("throughput", "rtt"),
        curves=[
            CurveSpec(
                label=name,
                experiment="flow",
                where={"controller": name},
                flow="download",
                measure="throughput",
            )
            for name in ("reno", "bbr")
        ],
    )
    data = figure_data(runs, figure)
    assert [panel.unit for panel in data.panels] == ["Mbit/s", "ms"]
    assert [line.label for line in data.panels[0].lines] == ["reno", "bbr"]
    values = runs.per_run(figure.curves[0])
    view = runs.representative(figure.curves[0])
    assert (
        view.value(measure("throughput"), "download", view.span("overall", None, "download"))
        == (sorted(values)[1])
    )
    # Time is the flow's own: its first interval has begun before it, its last is the run's.
    line = data.panels[0].lines[0]
    assert 0 <= line.time_s[0] < 0.1
    assert 3.7 < line.time_s[-1] < 4.0
    assert render_figure(data).axes


def test_panels_of_all_flows(runs):
    figure = FigureSpec(
        id="sum",
        caption="The sum",
        kind="series",
        experiment="flow",
        where={"controller": "reno"},
        panels=("throughput", "jain", "total_throughput"),
    )
    data = figure_data(runs, figure)
    assert [panel.unit for panel in data.panels] == ["Mbit/s", "1", "Mbit/s"]
    alone, together = data.panels[0].lines[0], data.panels[2].lines[0]
    assert np.nanmax(abs(alone.mean - together.mean)) < 1e-6


def test_a_p_agrees_if_both_are_significant_or_neither_is(runs):
    number = Number(
        id="p",
        text="p of {controller}",
        experiment="flow",
        flow="download",
        measure="throughput",
        measured_by="controller",
        statistic="p",
        against={"controller": "reno"},
        published={"bbr": 0.0001, "vivace": 0.02},
    )
    rows = list(_numbers(runs, number))
    values = [row.ours.value for row in rows]
    assert all(0 <= value <= 1 for value in values)
    # Two comparisons: 0.02 of them is significant, 0.03 is not.
    assert [row.holds for row in rows] == [value <= 0.025 for value in values]
    changed = number.model_copy(update={"published": {"bbr": 0.0001, "vivace": 0.03}})
    assert list(_numbers(runs, changed))[1].holds == (values[1] > 0.025)


def between(value: float, low: float | None, high: float | None) -> Estimate:
    return Estimate(value, low, high, 5, "ms", "")


@pytest.mark.parametrize(
    ("ours", "above"),
    [
        ((20, 19, 21), (True, True)),
        ((12, 9, 15), (True, False)),
        ((12, 10.1, 30), (True, True)),
        ((8, -5, 11), (False, False)),
        ((8, -5, 9.9), (False, True)),
        ((12, None, None), (True, False)),
    ],
)
def test_a_verdict_is_certain_if_both_ends_of_the_interval_agree(ours, above):
    found = expect(between(*ours), "above", 10.0)
    assert (found.holds, found.certain) == above
    # The mirror image, below −10.
    value, low, high = (None if end is None else -end for end in ours)
    found = expect(between(value, high, low), "below", -10.0)
    assert (found.holds, found.certain) == above


@pytest.mark.parametrize(
    ("ours", "holds", "certain"),
    [
        ((10.5, 10.2, 10.8), True, True),
        ((10.5, 9.5, 11.5), True, False),
        ((11.5, 11.1, 12), False, True),
        ((8.5, 8, 8.9), False, True),
        # The interval contains the bound, although both of its ends are beyond the tolerance.
        ((11.5, 8.5, 14.5), False, False),
    ],
)
def test_a_verdict_about_a_number_needs_both_ends_within_the_tolerance(ours, holds, certain):
    found = expect(between(*ours), "about", 10.0, 1.0)
    assert (found.holds, found.certain) == (holds, certain)


@pytest.mark.parametrize(
    ("other", "above"),
    [
        ((8, 7, 8.9), True),
        ((8, 7, 9), False),
        # The lower ends are apart and the intervals overlap.
        ((8, 7, 9.5), False),
        ((8, 7, 30), False),
        ((8, None, None), True),
        ((10, 9, 11), False),
        ((10, None, None), False),
        ((12, 11.5, 12.5), False),
    ],
)
def test_an_order_is_wrong_only_if_intervals_do_not_overlap(other, above):
    assert _above(between(10, 9, 11), between(*other)) is above


def test_a_ratio_to_nothing_is_infinite_and_absent_in_json(runs):
    """Whoever retransmits at all retransmits more than any multiple of nothing."""
    reno = Value(
        experiment="flow",
        where={"controller": "reno"},
        flow="download",
        measure="retransmitted",
    )
    vivace = reno.model_copy(update={"where": {"controller": "vivace"}, "window": "late"})
    assert set(runs.summary(vivace)) == {0.0}
    part = ClaimPart(left=reno, relation="above", right=vivace, factor=5)
    (tested,) = _claim(runs, Claim(id="a", text="", parts=(part,))).parts
    assert (tested.ours.value, tested.holds) == (float("inf"), True)
    assert digits(tested.ours.value) == "∞"
    assert tested.ours.finite is None


def test_harm_is_what_is_lost_against_another_condition(runs):
    rate = Value(where={"controller": "bbr"}, flow="download", measure="throughput")
    harm = rate.model_copy(update={"measure": "harm", "relative_to": {"controller": "reno"}})
    beside, alone = (
        np.array(runs.per_run(rate.model_copy(update={"where": {"controller": name}})))
        for name in ("bbr", "reno")
    )
    assert runs.per_run(harm) == pytest.approx((100 * (alone - beside) / alone).tolist())
    found = value_estimate(runs, harm)
    assert found.unit == "%"
    assert found.high is None or found.high <= 100


def test_intervals_of_a_value_end_where_it_ends(runs):
    value = Value(where={"controller": "reno"}, measure="jain")
    assert runs.bounds(value) == (1.0, 1.0)
    used = Value(where={"controller": "reno"}, flow="bottleneck", measure="utilisation")
    found = value_estimate(runs, used)
    assert found.high <= 100
