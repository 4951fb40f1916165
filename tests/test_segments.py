"""Many runs in one folder: whole or not at all, whatever happens."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import fake_core
import polars as pl
import pytest
from jostle.backends import RunRecord, SimBackend, canonical_json
from jostle.backends.base import named
from jostle.errors import StoreError, StoreFullError
from jostle.store import writer as writing
from jostle.store.segments import folder as folders
from jostle.store.segments import index
from jostle.store.segments.packing import packed
from jostle.store.store import Reader, Store
from jostle.store.writer import Writer

SERIES = ("flows", "links", "internals")


def record(seed: int = 1, **kinds: object) -> RunRecord:
    return SimBackend(fake_core.FakeEngine()).run(fake_core.spec(seed, **kinds))


@pytest.fixture(scope="module")
def records() -> list[RunRecord]:
    """Runs of two kinds: those of even seeds have a table of ACKs, and another rival."""
    return [
        record(
            seed,
            trace="none" if seed % 2 else "acks",
            controllers=("cubic", "bbr" if seed % 2 else "reno"),
        )
        for seed in range(1, 9)
    ]


def stored(root: Path, records: list[RunRecord], keep: str = "series") -> Store:
    store = Store(root)
    writer = Writer(store, keep)
    for one in records:
        writer.put(one)
    writer.flush()
    return store


def segments(root: Path) -> list[Path]:
    return sorted((root / "segments").iterdir())


def test_what_goes_in_comes_out(tmp_path, records):
    stored(tmp_path, records)
    found = Store(tmp_path).find([one.run_id for one in records], series=True)
    assert len(found) == 8
    for one in records:
        run = found[one.run_id]
        assert run.run_id == one.run_id
        assert run.spec == one.spec
        assert run.summary == one.summary
        assert all(getattr(run, name).equals(getattr(one, name)) for name in SERIES)
        assert (run.acks is None) == (one.acks is None)
        assert one.acks is None or run.acks.equals(one.acks)
        assert run.transfers is None
        assert run.captures == {}
        assert run.provenance["backend_version"] == "fake-1"
        again = pickle.loads(pickle.dumps(run))
        assert again.summary == one.summary
    assert len(segments(tmp_path)) == 2, "runs with the same tables are together"


def test_a_run_is_named_alike_from_its_text():
    for backend, version in (("sim", "1"), ('ke"rnel', "ü\n")):
        spec = fake_core.spec()
        text = canonical_json({"backend": backend, "spec": spec, "version": version})
        expected = hashlib.sha256(text.encode()).hexdigest()[:32]
        assert named(canonical_json(spec), backend, version) == expected


def test_same_runs_same_bytes_in_any_order(tmp_path, records):
    stored(tmp_path / "a", records)
    time.sleep(0.01)
    stored(tmp_path / "b", records[::-1])
    content = [
        {path.relative_to(root): path.read_bytes() for path in root.glob("segments/*/*")}
        for root in (tmp_path / "a", tmp_path / "b")
    ]
    assert content[0] == content[1]
    assert len(content[0]) == 6 + 7


def test_measures_are_those_of_the_summary(tmp_path, records):
    stored(tmp_path, records)
    frame = pl.read_parquet(tmp_path / "segments" / "*" / "measures.parquet")
    one = records[0]
    rows = frame.filter(pl.col("run") == one.run_id)
    assert rows.filter(scope="flow").height == 2 * 3
    flow = one.summary["flows"][1]
    row = rows.row(
        by_predicate=(pl.col("name") == "newcomer")
        & (pl.col("phase") == "steady")
        & (pl.col("scope") == "flow"),
        named=True,
    )
    assert row["controller"] == "bbr"
    assert row["seed"] == 1
    assert row["completion_time_s"] is flow["completion_time_s"] is None
    for key, value in flow["phases"]["steady"].items():
        assert row[key] == value
    row = rows.row(
        by_predicate=(pl.col("scope") == "run") & (pl.col("phase") == "steady"), named=True
    )
    assert row["jain"] == one.summary["fairness"]["steady"]["jain"]


def test_summaries_alone(tmp_path, records):
    store = stored(tmp_path, records, "summary")
    names = [one.run_id for one in records]
    assert store.find(names, series=True) == {}
    found = store.find(names, series=False)
    assert found[names[0]].summary == records[0].summary
    with pytest.raises(StoreError, match="stored without its series"):
        _ = found[names[0]].flows
    # With series, once they are wanted.
    stored(tmp_path, records)
    for series in (True, False):
        assert store.find(names, series=series)[names[0]].flows.equals(records[0].flows)


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: os.truncate(f / "flows.parquet", 100),
        lambda f: (f / "runs.parquet").write_bytes(b"PAR1"),
        lambda f: (f / "links.parquet").unlink(),
        lambda f: (f / "measures.parquet").write_bytes(b""),
        lambda f: (f / "manifest.json").unlink(),
        lambda f: (f / "manifest.json").write_text('{"sha256": '),
        lambda f: (f / "runs.parquet").unlink(),
        lambda f: ((f / "links.parquet").unlink(), os.mkfifo(f / "links.parquet")),
        lambda f: ((f / "runs.parquet").unlink(), os.mkfifo(f / "runs.parquet")),
    ],
    ids=["truncated", "torn", "missing", "empty", "manifest", "half", "runs", "pipe", "pipes"],
)
def test_a_damaged_segment_is_moved_aside_and_its_runs_are_stored_anew(tmp_path, records, damage):
    warnings: list[str] = []
    some = records[::2]
    stored(tmp_path, some)
    (folder,) = segments(tmp_path)
    good = {path.name: path.read_bytes() for path in folder.iterdir()}
    damage(folder)
    store = Store(tmp_path, warnings.append)
    names = [one.run_id for one in some]
    assert store.find(names, series=True) == {}
    assert len(warnings) == 1
    assert "moved to" in warnings[0]
    assert not folder.exists()
    stored(tmp_path, some)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == good
    assert len(store.find(names, series=True)) == 4
    assert len(warnings) == 1


def test_a_writer_that_finds_a_damaged_segment_replaces_it(tmp_path, records):
    some = records[::2]
    store = stored(tmp_path, some)
    (folder,) = segments(tmp_path)
    os.truncate(folder / "flows.parquet", 10)
    store = Store(tmp_path, lambda _: None)
    store.put_all([packed(one, "series") for one in some])
    assert len(store.find([one.run_id for one in some], series=True)) == 4


def forge(folder: Path, tables: dict[str, pl.DataFrame]) -> None:
    """Write a segment that was made up, with a name that fits."""
    folders.write(folder, tables)


def test_a_run_under_the_name_of_another_is_not_shown(tmp_path, records):
    stored(tmp_path, records[::2])
    (folder,) = segments(tmp_path)
    tables = {path.stem: pl.read_parquet(path) for path in folder.glob("*.parquet")}
    shutil.rmtree(folder)
    names = tables["runs"]["run"].to_list()
    tables["runs"] = tables["runs"].with_columns(pl.Series("run", names[1:] + names[:1]))
    forge(tmp_path, tables)
    warnings: list[str] = []
    assert Store(tmp_path, warnings.append).find(names, series=True) == {}
    assert "holds the specification of another run" in warnings[0]


@pytest.mark.parametrize("text", ["{}", "[]", "NaN", "", None])
def test_odd_summaries_are_refused(tmp_path, records, text):
    stored(tmp_path, records[::2])
    (folder,) = segments(tmp_path)
    tables = {path.stem: pl.read_parquet(path) for path in folder.glob("*.parquet")}
    shutil.rmtree(folder)
    odd = pl.lit(text, dtype=pl.String).alias("summary")
    tables["runs"] = tables["runs"].with_columns(odd)
    forge(tmp_path, tables)
    run = Store(tmp_path).get(tables["runs"]["run"][0])
    assert run is not None
    with pytest.raises(StoreError, match="not a summary of that run"):
        _ = run.summary


def test_a_reader_moves_nothing(tmp_path, records):
    stored(tmp_path, records[::2])
    (folder,) = segments(tmp_path)
    name = records[0].run_id
    assert Reader(tmp_path).get(name).flows.equals(records[0].flows)
    os.truncate(folder / "flows.parquet", 10)
    with pytest.raises(StoreError, match=r"flows\.parquet is not what was written"):
        Reader(tmp_path).get(name)
    assert folder.is_dir()


def test_runs_of_a_segment_that_was_merged_are_found_again(tmp_path, records):
    store = stored(tmp_path, records[:1])
    (old,) = segments(tmp_path)
    run = store.get(records[0].run_id)
    stored(tmp_path, records[::2])
    shutil.rmtree(old)
    assert run is not None
    assert run.flows.equals(records[0].flows)
    shutil.rmtree(tmp_path / "segments")
    with pytest.raises(StoreError, match="is no longer in"):
        _ = run.links


def test_a_writer_writes_when_it_is_full_or_somebody_waits(tmp_path, records, monkeypatch):
    now_s = 0.0
    writer = Writer(Store(tmp_path), "summary", lambda: now_s)
    monkeypatch.setattr(writing, "MOST_RUNS", 3)
    for one in records[:2]:
        writer.put(one)
    writer.flush_if_due()
    assert not (tmp_path / "segments").exists()
    writer.put(records[2])
    assert len(segments(tmp_path)) == 1
    writer.put(records[3])
    now_s = 1.9
    writer.flush_if_due()
    assert len(segments(tmp_path)) == 1
    now_s = 2.0
    writer.flush_if_due()
    assert len(segments(tmp_path)) == 2
    monkeypatch.setattr(writing, "MOST_BYTES", 10)
    writer.put(records[4])
    assert len(segments(tmp_path)) == 3
    assert Store(tmp_path).count([one.run_id for one in records]) == 5


def test_what_is_being_written_when_ctrl_c_comes_is_written_by_the_next(tmp_path, records):
    store = Store(tmp_path)
    writer = Writer(store)
    for record in records[:2]:
        writer.put(record)
    put_all = store.put_all

    def interrupted(runs):
        store.put_all = put_all
        raise KeyboardInterrupt

    store.put_all = interrupted
    with pytest.raises(KeyboardInterrupt):
        writer.flush()
    assert store.count([record.run_id for record in records]) == 0
    writer.put(records[2])
    writer.flush()
    assert store.count([record.run_id for record in records]) == 3


def test_a_writer_in_another_process_writes_when_its_work_ends(tmp_path, records):
    here = Writer(Store(tmp_path))
    here.put(records[0])
    here.flush_in_worker()
    assert not (tmp_path / "segments").exists()
    there = pickle.loads(pickle.dumps(here))
    there.put(records[1])
    there.flush_in_worker()
    assert Store(tmp_path).get(records[1].run_id) is not None


WRITER = """
import sys
sys.path.insert(0, {tests!r})
import fake_core
from jostle.backends import SimBackend
from jostle.store import writer as writing
from jostle.store.store import Store
from jostle.store.writer import Writer
writing.MOST_RUNS = 5
writer = Writer(Store({root!r}))
seed = {first}
while True:
    for _ in range(5):
        writer.put(SimBackend(fake_core.FakeEngine()).run(fake_core.spec(seed, duration_s=2)))
        seed += 1
    print(seed - 1, flush=True)
"""


def begin(root: Path, first: int = 1) -> subprocess.Popen[str]:
    """Start a process that stores five runs at a time, and says the last seed of them."""
    script = WRITER.format(tests=str(Path(__file__).parent), root=str(root), first=first)
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_killed_in_the_middle_of_writing(tmp_path):
    with begin(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        partial = tmp_path / ".partial"
        # On a busy machine no look may fall into the middle: then it is killed at another time.
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and not list(partial.glob("segment-*/flows.parquet")):
            pass
        process.send_signal(signal.SIGKILL)
        said = [5, *map(int, process.stdout)]
    warnings: list[str] = []
    store = Store(tmp_path, warnings.append)
    versions = SimBackend(fake_core.FakeEngine())
    names = [
        named(canonical_json(fake_core.spec(seed, duration_s=2)), "sim", versions.version)
        for seed in range(1, said[-1] + 1)
    ]
    assert len(store.find(names, series=True)) == said[-1], "all that was reported is there"
    assert warnings == []
    assert list(partial.iterdir()) == [], "what was half written is gone"
    assert all(len(list(folder.iterdir())) == 6 for folder in segments(tmp_path))


def test_two_processes_share_a_store(tmp_path):
    # Seeds 1 … and 6 …: the second writes segments that the first has or will have, too.
    with begin(tmp_path) as one, begin(tmp_path, 6) as other:
        assert one.stdout is not None
        assert other.stdout is not None
        for process in (one, other):
            for _ in range(4):
                process.stdout.readline()
        one.kill()
        other.kill()
    warnings: list[str] = []
    store = Store(tmp_path, warnings.append)
    found = store.find(Reader(tmp_path).names(), series=True)
    assert len(found) >= 25
    assert warnings == []
    run = next(iter(found.values()))
    assert run.flows.equals(SimBackend(fake_core.FakeEngine()).run(run.spec).flows)


def test_threads_share_a_writer(tmp_path, records, monkeypatch):
    monkeypatch.setattr(writing, "MOST_RUNS", 2)
    writer = Writer(Store(tmp_path))
    threads = [threading.Thread(target=writer.put, args=(one,)) for one in records]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.flush()
    assert len(Store(tmp_path).find([one.run_id for one in records], series=True)) == 8


def test_full_disk_leaves_the_store_as_it_was(tmp_path, records):
    kept = stored(tmp_path, records[:1]).get(records[0].run_id)
    assert kept is not None
    writer = Writer(Store(tmp_path))
    writer.put(records[1])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(StoreFullError, match="no room"):
            writer.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert list((tmp_path / ".partial").iterdir()) == []
    store = Store(tmp_path)
    assert store.get(records[0].run_id) is not None
    assert store.get(records[1].run_id) is None


def test_a_manifest_says_what_is_there(tmp_path, records):
    stored(tmp_path, records[::2])
    (folder,) = segments(tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == "jostle.segment/2"
    assert manifest["runs"] == 4
    assert {path.name for path in folder.glob("*.parquet")} == manifest["sha256"].keys()


def indexed(root: Path, records: list[RunRecord], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a store of eight segments and its index."""
    monkeypatch.setattr(index, "_FEW", 3)
    for one in records:
        stored(root, [one])
    assert Store(root).count([one.run_id for one in records]) == 8
    return root / index.FILE


def test_an_index_saves_opening_segments(tmp_path, records, monkeypatch):
    file = indexed(tmp_path, records, monkeypatch)
    assert pl.read_parquet(file).height == 8
    monkeypatch.setattr(folders, "run_names", lambda _folder: pytest.fail("it was opened"))
    found = Store(tmp_path).find([one.run_id for one in records], series=True)
    assert all(found[one.run_id].flows.equals(one.flows) for one in records)


def test_an_index_follows_what_was_written_and_removed(tmp_path, records, monkeypatch):
    file = indexed(tmp_path, records[:8], monkeypatch)
    more = [record(seed, duration_s=2) for seed in range(20, 22)]
    for one in more:
        stored(tmp_path, [one])
    shutil.rmtree(segments(tmp_path)[0])
    assert len(Store(tmp_path).find([r.run_id for r in (*records, *more)], series=True)) == 9
    assert pl.read_parquet(file).height == 8, "two more are not worth writing it"


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.with_columns(run=frame["run"].reverse()),
        lambda frame: frame.with_columns(segment=frame["segment"].reverse()),
        lambda frame: frame.with_columns(row=pl.lit(7, dtype=pl.UInt32)),
        lambda frame: frame.with_columns(series=pl.lit(False)),
        lambda frame: frame.with_columns(series=pl.lit(None, dtype=pl.Boolean)),
        lambda frame: frame.drop("row"),
        lambda frame: frame.with_columns(row=pl.lit("0")),
    ],
)
def test_an_index_that_is_wrong_is_made_anew(tmp_path, records, monkeypatch, change):
    file = indexed(tmp_path, records, monkeypatch)
    good = pl.read_parquet(file)
    change(good).write_parquet(file)
    store = Store(tmp_path, pytest.fail)
    names = [one.run_id for one in records]
    found = store.find(names, series=False)
    assert {run: found[run].run_id for run in names} == {run: run for run in names}
    assert all(found[one.run_id].flows.equals(one.flows) for one in records)
    assert pl.read_parquet(file).sort("run").equals(good.sort("run"))
    change(good).write_parquet(file)
    assert Reader(tmp_path).summary(names[0]) == records[0].summary


@pytest.mark.parametrize("content", [b"", b"PAR1", None])
def test_an_index_that_cannot_be_read_is_made_anew(tmp_path, records, monkeypatch, content):
    file = indexed(tmp_path, records, monkeypatch)
    file.unlink()
    if content is None:
        os.mkfifo(file)
    else:
        file.write_bytes(content)
    assert len(Store(tmp_path).find([one.run_id for one in records], series=True)) == 8
    assert pl.read_parquet(file).height == 8


def test_a_reader_writes_no_index(tmp_path, records, monkeypatch):
    file = indexed(tmp_path, records, monkeypatch)
    file.unlink()
    assert len(Reader(tmp_path).names()) == 8
    assert not file.exists()
