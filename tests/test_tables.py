"""Tables: what they show, that they fit, and that nothing is left out in silence."""

from __future__ import annotations

import re

import jostle
import numpy as np
import polars as pl
import pytest
from fake_core import spec
from fake_plan import make_plan, plan_of
from jostle.cli import output
from jostle.errors import InputError
from jostle.results import ResultSet
from jostle.results.finished_runs import CAPTURE
from jostle.results.flow_groups import flow_groups
from jostle.results.measure_samples import find_key
from jostle.results.measures import measure, measures
from jostle.results.number_format import decimals, with_interval
from jostle.results.pivot import pivot_tables
from jostle.results.sweep_matrix import sweep_matrix
from jostle.results.tables import View, interval_note, phase_tables
from jostle.results.text_table import html_table
from jostle.results.tidy_frame import tidy
from jostle.safe_io.terminal_text import wrap_words
from jostle.scenario import PlannedRun
from jostle.stats import Estimate, estimate

KEY = "flows.newcomer.controller"


@pytest.fixture
def results(carry_out):
    return carry_out(make_plan())


def crowd(number: int, *, source: dict | None = None, prefix: str = "web") -> dict:
    """A run whose flows are those that `count` makes of one."""
    made = spec(1, ("cubic",) * number)
    for at, flow in enumerate(made["flows"], start=1):
        flow["name"] = f"{prefix}-{at}"
        flow["source"] = source or flow["source"]
    return made


def of_one_run(carry, made: dict):
    return carry(plan_of("", [{}], [PlannedRun(0, 1, made)]))


def test_a_heading_has_the_spans_of_all_conditions(carry_out):
    specs = [spec(1, ("cubic",)) for _ in range(2)]
    specs[1]["duration_ns"] *= 2
    for one in specs:
        one["phases"] = [{"name": "overall", "from_ns": 0, "to_ns": one["duration_ns"]}]
    results = grid_of(carry_out, [{"a": "1"}, {"a": "2"}], specs)
    first, second = (one["duration_ns"] / 1e9 for one in specs)
    assert results.spans_of("overall") == f"0–{first:g} s or 0–{second:g} s"


def test_flows_of_a_phase(results):
    flows, links = phase_tables(results, "overall")
    assert flows.header[:3] == ("newcomer.controller", "flow", "controller")
    titles = [name.partition("\n")[0] for name in flows.header[3:]]
    assert titles == [
        "goodput", "RTT", "retransmission", "share", "Jain's index", "throughput", "cwnd",
    ]  # fmt: skip
    assert [row[0] for row in flows.rows] == ["cubic", "", "bbr", "", "vivace", "", "hybla", ""]
    assert flows.rows[0][6] == "54 ± 33"
    shares = [float(row[6].partition(" ")[0]) for row in flows.rows]
    assert np.array(shares).reshape(4, 2).sum(axis=1) == pytest.approx([100.0] * 4, abs=0.11)
    mean = results.estimate("goodput").filter(condition="bbr", flow="newcomer")["value"][0]
    assert float(flows.rows[3][3].split()[0]) == pytest.approx(mean / 1e6, abs=0.06)
    assert links.title == "links"
    assert [row[1] for row in links.rows] == ["bottleneck"] * 4


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_terminal(results, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    every = tuple(name for name, m in measures().items() if not m.elsewhere)
    lines = []
    for view in (View(width=width), View(every, width=width)):
        output.print_phases(output.console(), results, (), view)
        lines += capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    # Asked for, every measure is there, in as many tables as it takes.
    words = re.sub(r"\s+", " ", " ".join(lines))
    assert "smallest" in words
    assert "convergence" in words


def test_columns_that_have_no_room_are_named(results):
    flows, _ = phase_tables(results, "overall", View(width=70))
    assert any("There is more: --measures" in note and "cwnd" in note for note in flows.notes)


def test_long_names_of_conditions_stand_above_their_rows(carry_out):
    grid = [{"bottleneck.queue": "a queue with a very long name of its own " + n} for n in "ab"]
    runs = [PlannedRun(at, 1, spec()) for at in (0, 1)]
    flows, _ = phase_tables(carry_out(plan_of("", grid, runs)), "overall", View(width=80))
    assert flows.sections == tuple(one["bottleneck.queue"] for one in grid)
    assert flows.header[0] == "flow"
    assert "very long name" in html_table(flows)


def test_several_keys_have_a_column_each(carry_out):
    grid = [{"bottleneck.rate": "5 Mbit/s", "flows.a.rtt": r} for r in ("1 ms", "2 ms")]
    runs = [PlannedRun(at, 1, spec()) for at in (0, 1)]
    flows, _ = phase_tables(carry_out(plan_of("", grid, runs)), "overall")
    # The rate is the same in all of them.
    assert flows.header[:2] == ("rtt", "flow")


def test_flows_of_count_are_one_row_with_their_spread(carry_out):
    results = of_one_run(carry_out, crowd(12))
    (flows,) = phase_tables(results, "overall", View(("throughput", "jain")))
    assert len(flows.rows) == 2
    assert flows.rows[0][0] == "web ×12"
    rates = results.flows.filter(phase="overall")["throughput_bps"] / 1e6
    assert float(flows.rows[0][2]) == pytest.approx(rates.mean(), abs=5e-4)
    low, high = map(float, flows.rows[1][2].split("–"))
    assert (low, high) == pytest.approx((rates.min(), rates.max()), abs=5e-4)
    (singly,) = phase_tables(results, "overall", View(("throughput",), each=True))
    assert [row[0] for row in singly.rows] == [f"web-{n}" for n in range(1, 13)]


def test_only_flows_alike_are_a_group():
    made = crowd(4)
    made["flows"][2]["base_delay_ns"] += 1
    assert [group.label for group in flow_groups(made)] == ["web ×2", "web-3", "web-4"]
    made = crowd(3)
    made["flows"][1]["after"] = 0
    assert [group.label for group in flow_groups(made)] == ["web-1", "web-2", "web-3"]


def test_flows_that_end_show_when(carry_out):
    made = crowd(3, source={"kind": "fixed", "bytes": 100_000})
    # Of these one never ends.
    made["flows"][2]["source"] = {"kind": "fixed", "bytes": 900_000_000}
    results = of_one_run(carry_out, made)
    flows, _ = phase_tables(results, "overall")
    assert flows.header[2].startswith("flow\ncompletion")
    assert flows.rows[-1][2] == "–"
    steady, _ = phase_tables(results, "steady")
    assert "completion\ns" not in steady.header


def test_what_is_no_part_of_a_mean_is_told(carry_out):
    made = crowd(3, source={"kind": "fixed", "bytes": 100_000})
    made["flows"][2]["start_ns"] = made["duration_ns"] - 1_000_000
    (flows,) = phase_tables(of_one_run(carry_out, made), "overall", View(("completion_time",)))
    assert flows.rows[0][0] == "web ×3"
    assert flows.notes == ("Flow completion time: 2 of 3 of web have one.",)


def test_kinds_of_flows_have_tables_of_their_own(carry_out):
    made = spec(1, ("cubic", "cubic", "none"))
    made["flows"][1]["source"] = {"kind": "fixed", "bytes": 100_000}
    tables = phase_tables(of_one_run(carry_out, made), "overall")
    assert [t.title for t in tables] == ["flows that end", "bulk flows", "pings", "links"]


def test_rows_beyond_the_limit_are_counted(results):
    flows, _ = phase_tables(results, "overall", View(limit=3))
    assert len(flows.rows) == 3
    assert flows.notes == ("… 5 more rows of 3 conditions: --max-rows 0 shows all",)


def test_sorting_by_a_measure_and_by_a_key(results):
    flows, _ = phase_tables(results, "overall", View(sort="throughput"))
    rates = [float(row[3].split()[0]) for row in flows.rows]
    assert rates == sorted(rates, reverse=True)
    assert all(row[0] for row in flows.rows)
    up, _ = phase_tables(results, "overall", View(sort="throughput", order="up"))
    assert [row[:2] for row in up.rows] == [row[:2] for row in reversed(flows.rows)]
    by_key, _ = phase_tables(results, "overall", View(sort="flow"))
    assert [row[1] for row in by_key.rows] == ["incumbent"] * 4 + ["newcomer"] * 4
    with pytest.raises(InputError, match="no key `thruput`"):
        phase_tables(results, "overall", View(sort="thruput"))


def test_pivot_has_a_table_for_everything_that_it_would_pool(results):
    tables = pivot_tables(results, "newcomer.controller", "flow", "share", ["steady"])
    assert [t.header for t in tables] == [("controller \\ flow", "incumbent", "newcomer")]
    assert [row[0] for row in tables[0].rows] == ["cubic", "bbr", "vivace", "hybla"]
    tables = pivot_tables(results, "newcomer.controller", "phase", "throughput")
    assert [t.title for t in tables] == [
        "Throughput (Mbit/s), incumbent", "Throughput (Mbit/s), newcomer",
    ]  # fmt: skip
    with pytest.raises(InputError, match="it is of each link"):
        pivot_tables(results, "flow", KEY, "queue_length")
    with pytest.raises(InputError, match="choose two keys"):
        pivot_tables(results, KEY, "newcomer.controller", "queue_length")


def test_pivot_too_wide_is_parted(results):
    (table,) = pivot_tables(results, "flow", KEY, "throughput", ["steady"])
    parts = output.fitting(table, 45)
    assert len(parts) > 1
    assert [c for part in parts for c in part.header[1:]] == ["cubic", "bbr", "vivace", "hybla"]
    assert all(part.rows[0][0] == "incumbent" for part in parts)


def test_keys_are_found_by_their_endings():
    grid = [{"flows.a.controller": "x", "flows.b.controller": "y", "bottleneck.rate": "z"}]
    assert find_key(grid, "rate") == "bottleneck.rate"
    assert find_key(grid, "a.controller") == "flows.a.controller"
    assert find_key(grid, "controller") == "controller"
    with pytest.raises(InputError, match=r"no key `rat`; did you mean `rate`\?"):
        find_key(grid, "rat")


def test_tidy_frame_is_unrounded(results):
    frame = tidy(results, ("throughput", "utilisation"), ("steady",))
    assert frame.height == 4 * 2 + 4
    expected = results.estimate("throughput", "steady")
    assert frame.filter(measure="throughput")["mean"].to_list() == expected["value"].to_list()
    assert set(tidy(results)["measure"]) == {
        name for name, m in measures().items() if not m.elsewhere
    }
    assert isinstance(frame, pl.DataFrame)


def test_intervals_end_where_a_measure_ends():
    # As 0.881 ± 0.931 of two runs.
    found = estimate([0.808, 0.954], "1", bounds=measure("jain").bounds)
    assert (found.low, found.high) == (0.0, 1.0)
    assert "cut at its bounds" in found.method
    assert with_interval(found, 1.0, 2) == "0.88 (0.00–1.00)"
    inside = estimate([0.80, 0.81], "1", bounds=(0.0, 1.0))
    assert inside.method.endswith("interval")
    # A value beyond its bound, as rounding leaves one, is inside its interval.
    over = estimate([1.1, 1.2], "1", bounds=(0.0, 1.0))
    assert over.high is not None
    assert over.high >= 1.15


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (0.583, 0.0041, "0.583 ± 0.004"),
        (9.87, 0.12, "9.87 ± 0.12"),
        (40.21, 0.12, "40 ± <1"),
        (0.0001, 0.00005, "0.000 ± <0.001"),
        (3.4, 0.8, "3 ± 1"),
    ],
)
def test_a_small_value_has_its_own_number_of_decimals(value: float, half: float, text: str) -> None:
    found = Estimate(value, value - half, value + half, 5, "", "")
    assert with_interval(found, 1.0, 0) == text


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (17.7424, 0.82, "17.74 ± 0.82"),
        (17.7424, 5.23, "17.7 ± 5.2"),
        (17.7424, 0.0021, "17.74 ± <0.01"),
        (17.7424, 0.0, "17.74"),
        (0.17, 4.1e-05, "0.170 ± <0.001"),
        (1234.5, 60.0, "1234 ± 60"),
    ],
)
def test_digits_follow_the_interval(value, half, text):
    shown = measure("completion_time")
    found = Estimate(value, value - half, value + half, 5, "s", "")
    assert with_interval(found, 1.0, decimals([found], shown)) == text


def test_packets_of_one_run_are_whole():
    shown = measure("dropped")
    assert decimals([Estimate(2.0, None, None, 1, "packet", "")], shown) == 0


def test_a_group_is_said_to_be_a_mean_per_flow(results, carry_out):
    words = "Rows with ×: mean per flow"
    assert words in interval_note(of_one_run(carry_out, crowd(3)))
    assert words not in interval_note(results)


def test_two_runs_are_told(carry_out):
    assert "Of two runs it is wide" in interval_note(carry_out(make_plan(2, ("bbr",))))
    assert "Of two runs" not in interval_note(carry_out(make_plan(3, ("bbr",))))


def grid_of(carry, conditions: list[dict[str, str]], runs: list[dict]):
    planned = [PlannedRun(at, 1, made) for at, made in enumerate(runs)]
    return carry(plan_of("", conditions, planned))


def headings(table) -> list[str]:
    return [name.replace("\n", " ") for name in table.header]


def test_fairness_is_shown_of_flows_alike(carry_out):
    ends = {"kind": "fixed", "bytes": 20_000}
    mixed = spec(1, ("cubic", "cubic"))
    mixed["flows"][1]["source"] = ends
    for made, has in (
        (spec(1, ("cubic",)), False),
        (mixed, False),
        (spec(1, ("cubic", "bbr")), True),
    ):
        bulk = phase_tables(of_one_run(carry_out, made), "overall")[0]
        assert ("Jain's index" in headings(bulk)) is has
    # Of a condition with one flow the index is 1, whatever happens.
    both = grid_of(
        carry_out, [{"n": "1"}, {"n": "2"}], [spec(1, ("cubic",)), spec(1, ("cubic", "bbr"))]
    )
    table = phase_tables(both, "overall")[0]
    at = headings(table).index("Jain's index")
    assert table.rows[0][at] == "–"
    assert 0.5 <= float(table.rows[1][at]) <= 1
    (asked,) = phase_tables(both, "overall", View(("jain",)))
    assert asked.rows[0][-1] == "1.000"


def test_intervals_of_jains_index_begin_at_one_of_n(carry_out):
    runs = [PlannedRun(0, seed, spec(seed, ("cubic", "bbr"), jitter=True)) for seed in (1, 2)]
    results = carry_out(plan_of("", [{}], runs))
    assert measure("jain").bounds_in(runs[0].spec) == (0.5, 1.0)
    (low,) = tidy(results, ("jain",), ("overall",))["low"]
    assert low == results.estimate("jain")["low"][0]
    assert low >= 0.5
    told = results.to_dict()["conditions"][0]["estimates"]["fairness"]["overall"]["jain"]
    assert told["low"] == pytest.approx(low)
    # Two values that are far apart reach the bound, and none beyond.
    found = estimate([0.5, 0.99], "1", bounds=measure("jain").bounds_among(2))
    assert (found.low, found.high) == (0.5, 1.0)


def test_percentiles_of_a_single_flow_are_over_its_runs(carry_out):
    ends = {"kind": "fixed", "bytes": 20_000}
    runs = []
    for seed in range(1, 9):
        made = spec(seed, ("cubic",), jitter=True)
        made["flows"][0]["source"] = ends
        runs.append(PlannedRun(0, seed, made))
    results = carry_out(plan_of("", [{}], runs))
    took = np.array(
        [flow["completion_time_s"] for flow in results.flows.filter(phase="overall").to_dicts()]
    )
    (found,) = results.estimate("completion_time_p50").to_dicts()
    assert found["value"] == pytest.approx(np.median(took))
    assert (found["low"], found["high"], found["n"]) == (min(took), max(took), 8)
    assert "over runs" in found["method"]
    told = results.to_dict()["conditions"][0]["estimates"]["flows"][0]["completion_time_s"]
    assert told["p95"] == pytest.approx(np.percentile(took, 95))
    assert tidy(results, ("completion_time_p95",))["mean"][0] == pytest.approx(told["p95"])
    flows, _ = phase_tables(results, "overall")
    assert "p95 flow completion time s" in headings(flows)
    # Of one run there is nothing to take a percentile of.
    one, _ = phase_tables(carry_out(plan_of("", [{}], runs[:1])), "overall")
    assert "p95 flow completion time s" not in headings(one)


def test_the_queue_is_told_in_bytes_and_as_time(results):
    (table,) = phase_tables(
        results,
        "overall",
        View(("queue_length", "queue_delay_estimate", "queue_delay_estimate_p95")),
    )
    rate = results.spec_of(0)["links"][0]["capacity"]["rate_bps"]
    (kb, ms) = (float(cell.split()[0]) for cell in table.rows[0][2:4])
    assert ms == pytest.approx(kb * 8e6 / rate, rel=0.02)
    series = results.series("bottleneck", "queue_delay_estimate", condition=0)
    waits = results.series("bottleneck", "queue_length", condition=0)
    assert series["seed_1"].to_list() == pytest.approx((waits["seed_1"] * 8 / rate).to_list())


def test_sweeps_beyond_the_limit_are_shown_at_a_glance(carry_out):
    rates, rtts = ("10 Mbit/s", "20 Mbit/s"), ("10 ms", "20 ms", "30 ms")
    grid = [{"bottleneck.rate": rate, "flows.a.rtt": rtt} for rate in rates for rtt in rtts]
    results = grid_of(carry_out, grid, [spec(1, ("cubic",)) for _ in grid])
    assert sweep_matrix(results, "overall", View(limit=6, width=80)) == []
    flows, links = sweep_matrix(results, "overall", View(limit=5, width=80))
    assert flows.title == "Goodput (Mbit/s) of incumbent, by rate"
    assert flows.header == ("rtt", *rates)
    assert [row[0] for row in flows.rows] == list(rtts)
    assert "6 conditions: --max-rows 0" in flows.notes[0]
    assert links.title.startswith("Estimated queueing delay (ms) of bottleneck")
    # The first key has no room: the second one has.
    narrow = sweep_matrix(results, "overall", View(limit=5, width=24))
    assert narrow == [] or narrow[0].header[0] == "rate"
    for asked in (View(("rtt",), limit=5, width=80), View(limit=0, width=80), View(limit=5)):
        assert sweep_matrix(results, "overall", asked) == []


def test_what_is_above_is_not_repeated(carry_out):
    grid = [{"a": a, "b": b, "c": c} for a in "xy" for b in "12" for c in "34"]
    results = grid_of(carry_out, grid, [spec(1, ("cubic",)) for _ in grid])
    flows, _ = sweep_matrix(results, "overall", View(limit=5, width=80))
    assert [row[:2] for row in flows.rows] == [("1", "3"), ("", "4"), ("2", "3"), ("", "4")]


@pytest.mark.parametrize("width", range(60, 100, 3))
def test_rows_of_groups_fit(carry_out, width, monkeypatch, capsys):
    """A group's second line is longer than a short name."""
    monkeypatch.setenv("COLUMNS", str(width))
    results = of_one_run(carry_out, crowd(4, prefix="a"))
    output.print_phases(output.console(), results, (), View(width=width))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= width


def test_a_note_never_breaks_a_name() -> None:
    names = "queue_length_p95,marked,queueing_delay_p95,queue_delay_estimate"
    lines = wrap_words(f"There is more: --measures {names}", 26)
    assert lines[0] == "There is more: --measures"
    assert max(map(len, lines)) <= 26
    assert "".join(lines[1:]) == names
    assert all(line.endswith(",") for line in lines[1:-1])


def test_links_have_one_queueing_delay(results) -> None:
    (links,) = [one for one in phase_tables(results, "steady") if one.title == "links"]
    headings = [name.replace("\n", " ") for name in links.header]
    assert next(one for one in headings if "queueing delay" in one) == "queueing delay ms"
    assert headings.index("p95 queueing delay ms") < headings.index("estimated queueing delay ms")


def test_measurements_cannot_be_repeated(results) -> None:
    first = [run for run in results.results if run.condition == 0][:1]
    measured = ResultSet("log", CAPTURE, "", conditions=results.conditions[:1], results=first)
    assert interval_note(measured) == "One measurement: there is no confidence interval."


def test_a_proxy_of_a_flow_that_ends_is_no_bulk_flow(tmp_path):
    """It is idle after the flow's end: that is not how the application limits bulk data."""
    proxy = 'proxy = { link = "sat", controller = "hybla", buffer = "1 MB" }\n'
    flow = 'controller = "cubic"\nrtt = "80 ms"\npath = ["terr", "sat"]\n' + proxy
    link = 'delay = "10 ms"\nqueue = { kind = "drop_tail", limit = "1 BDP" }\n'
    file = tmp_path / "proxy.toml"
    file.write_text(
        'duration = "5 s"\n'
        f'[[links]]\nname = "terr"\nrate = "100 Mbit/s"\n{link}'
        f'[[links]]\nname = "sat"\nrate = "10 Mbit/s"\n{link}'
        f'[[flows]]\nname = "ends"\nsize = "500 kB"\n{flow}'
        f'[[flows]]\nname = "bulk"\nstart = "4 s"\n{flow}'
    )
    results = jostle.run(file, store=None)
    kinds = {group.name: group.kind for group in results.flow_groups(0)}
    assert kinds == {"ends": "transfers", "bulk": "bulk", "ends@sat": "relays", "bulk@sat": "bulk"}
    tables = {table.title: table for table in phase_tables(results, "overall")}
    assert [row[0] for row in tables["connections of proxies"].rows] == ["ends@sat"]
    assert [row[0] for row in tables["bulk flows"].rows] == ["bulk", "bulk@sat"]
    notes = [note for table in tables.values() for note in table.notes]
    assert not any("ends@sat: application-limited" in note for note in notes)
