"""Measures of many runs as columns: the same values as from summaries, in every kind of results."""

from __future__ import annotations

import json
from pathlib import Path

import jostle
import polars as pl
import pytest
from jostle.backends import Run, canonical_json
from jostle.errors import StoreError
from jostle.results import measure_columns
from jostle.results.finished_runs import ConditionRun, FinishedRuns
from jostle.results.measure_columns import columns_of
from jostle.results.measure_samples import samples
from jostle.results.measures import measures
from jostle.results.tables import View, phase_tables
from jostle.store import parquet_files
from jostle.store.maintenance.compaction import compact_store
from jostle.store.segments import folder as segment_folders
from jostle.store.segments.reader import SegmentRun
from jostle.store.store import Store

NETWORK = """
duration = "3 s"
sampling_interval = "100 ms"
[bottleneck]
rate = "4 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
"""
BULK = """
[phases]
late = ["1 s", "3 s"]
[[flows]]
name = "bulk"
count = 3
controller = "cubic"
rtt = "40 ms"
start_jitter = "20 ms"
[[flows]]
name = "alone"
controller = "bbr"
rtt = "40 ms"
"""
TRAFFIC = """
[[flows]]
name = "pages"
controller = "cubic"
rtt = "40 ms"
start_jitter = "20 ms"
source = { kind = "request_response", size = "20 kB", think_time = "50 ms" }
[[flows]]
name = "download"
count = 4
controller = "cubic"
rtt = "40 ms"
size = "200 kB"
[[flows]]
name = "late"
controller = "cubic"
rtt = "40 ms"
start = "2900 ms"
size = "9 MB"
[[flows]]
name = "ping"
controller = "none"
rtt = "40 ms"
source = { kind = "ping", size = "64 B", period = "100 ms" }
"""
GRID = """
[grid]
"flows.alone.count" = [0, 1]
"""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make columns of however few runs."""
    monkeypatch.setattr(measure_columns, "_LEAST_FLOWS", 1)


def results_of(text: str, store: Path, level: str = "summary") -> jostle.ResultSet:
    path = store.parent / "scenario.toml"
    path.write_text(text)
    return jostle.run(path, store=store, keep=level)


def without_columns(results: FinishedRuns) -> FinishedRuns:
    """The same runs with their summaries in memory."""

    class InMemory:
        def __init__(self, run: Run) -> None:
            self.run_id, self.spec, self.summary = run.run_id, run.spec, run.summary

    runs = [ConditionRun(r.condition, r.seed, InMemory(r.run)) for r in results.results]
    return FinishedRuns(
        results.title,
        results.backend,
        results.backend_version,
        conditions=results.conditions,
        results=runs,
        failures=results.failures,
    )


def rows(results: FinishedRuns, name: str, each: bool) -> list[tuple[object, ...]]:
    return [
        (
            one.condition,
            dict(one.place),
            one.seeds,
            [None if value is None else float(value) for value in one.values],
            [tuple(run) for run in one.flows],
            one.group,
            one.single,
            one.missing,
            one.spread,
            one.estimate(),
        )
        for one in samples(results, name, each=each)
    ]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "text",
    # One condition of the grid is like the first text.
    [pytest.param(BULK, marks=pytest.mark.slow), BULK + GRID, TRAFFIC],
    ids=["bulk", "grid", "traffic"],
)
def test_values_are_those_of_summaries(text: str, tmp_path: Path) -> None:
    results = results_of("repeats = 3" + NETWORK + text, tmp_path / "store")
    other = without_columns(results)
    assert columns_of(results) is not None
    assert columns_of(other) is None
    present = 0
    for name, one in measures().items():
        if one.tabled:
            for each in (False, True):
                found = rows(results, name, each)
                assert found == rows(other, name, each), name
                present += any(value is not None for row in found for value in row[3])
    assert present > 60
    for phase in results.phases:
        for view in (View(), View(each=True)):
            assert phase_tables(results, phase.name, view) == phase_tables(other, phase.name, view)


@pytest.mark.usefixtures("few")
def test_a_table_is_read_once_for_all_phases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = results_of("repeats = 2" + NETWORK + BULK, tmp_path / "store")
    paths: list[Path] = []
    read = parquet_files.read
    monkeypatch.setattr(
        parquet_files,
        "read",
        lambda path, *of, **more: paths.append(path) or read(path, *of, **more),
    )
    for _ in range(2):
        for phase in results.phases:
            assert phase_tables(results, phase.name)
    assert len(results.phases) == 2
    assert [path.name for path in paths] == ["measures.parquet"]
    # Without room for both phases, each is read when its table is made.
    monkeypatch.setattr(measure_columns, "_MOST_BYTES", 1)
    again = results_of("repeats = 2" + NETWORK + BULK, tmp_path / "store")
    expected = [phase_tables(results, phase.name) for phase in results.phases]
    assert [phase_tables(again, phase.name) for phase in again.phases] == expected
    assert len(paths) > 2


@pytest.mark.usefixtures("few")
def test_summaries_are_compared_only_if_columns_are_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    text = SegmentRun.summary_text.fget
    monkeypatch.setattr(
        SegmentRun, "summary_text", property(lambda run: asked.append(run.run_id) or text(run))
    )
    for jitter, identical in ((True, False), (False, True)):
        file = "repeats = 3" + NETWORK + BULK
        file = file if jitter else file.replace('start_jitter = "20 ms"', "")
        results = results_of(file, tmp_path / str(jitter))
        phase_tables(results, "overall")
        assert ("identical" in " ".join(results.notes)) is identical
        # One summary says whether runs are in real time.
        assert (len(set(asked)) > 1) is identical


@pytest.mark.usefixtures("few")
def test_runs_in_memory_and_in_folders_have_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(NETWORK + BULK)
    assert columns_of(jostle.run(path, store=False)) is None
    path.write_text("capture = true" + NETWORK + BULK)
    assert columns_of(jostle.run(path, store=tmp_path / "store")) is None


def test_few_runs_have_no_columns(tmp_path: Path) -> None:
    assert columns_of(results_of(NETWORK + BULK, tmp_path / "store")) is None


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("column", ["name", "throughput_bps", "phase"])
def test_a_table_of_other_measures_is_an_error(
    column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = results_of("repeats = 2" + NETWORK + BULK, tmp_path / "store")
    read = parquet_files.read
    monkeypatch.setattr(
        parquet_files,
        "read",
        lambda *given, **more: read(*given, **more).with_columns(pl.lit("other").alias(column)),
    )
    with pytest.raises(StoreError, match=r"segment .*measures"):
        samples(results, "throughput")


@pytest.mark.usefixtures("few")
def test_later_measures_have_no_value_in_a_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = results_of(NETWORK + BULK, tmp_path / "store")
    types = parquet_files._types
    monkeypatch.setattr(
        parquet_files,
        "_types",
        lambda *of: {k: v for k, v in types(*of).items() if k != "throughput_bps"},
    )
    assert {one.values[0] for one in samples(results, "throughput")} == {None}
    assert None not in {one.values[0] for one in samples(results, "goodput")}


@pytest.mark.usefixtures("few")
def test_segments_may_be_merged_between_lookup_and_table(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for repeats in (1, 2, 3):
        results = results_of(f"repeats = {repeats}" + NETWORK + BULK, store)
    expected = rows(without_columns(results), "throughput", each=False)
    assert len(list((store / "segments").iterdir())) == 3
    compact_store(Store(store))
    assert len(list((store / "segments").iterdir())) == 1
    assert rows(results, "throughput", each=False) == expected


@pytest.mark.usefixtures("few")
def test_segments_of_the_first_format_are_read_by_summaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = rows(results_of(NETWORK + BULK, tmp_path / "store"), "throughput", each=False)
    monkeypatch.setattr(segment_folders, "FORMAT", "jostle.segment/1")
    (tmp_path / "old").mkdir()
    results_of(NETWORK + BULK, tmp_path / "old" / "store")
    monkeypatch.undo()
    monkeypatch.setattr(measure_columns, "_LEAST_FLOWS", 1)
    results = results_of(NETWORK + BULK, tmp_path / "old" / "store")
    assert columns_of(results) is None
    assert rows(results, "throughput", each=False) == expected


@pytest.mark.parametrize("text", [BULK, TRAFFIC], ids=["bulk", "traffic"])
def test_summaries_of_the_engine_are_canonical(text: str, tmp_path: Path) -> None:
    (one,) = results_of(NETWORK + text, tmp_path / "store").results
    assert one.run.summary_text == canonical_json(json.loads(one.run.summary_text))
