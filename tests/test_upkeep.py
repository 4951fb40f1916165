"""Looking after a store: what is checked, merged, converted, exported and asked."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import fake_core
import polars as pl
import pytest
from fake_plan import make_plan
from jostle.backends import SimBackend
from jostle.cli import status
from jostle.errors import InputError, StoreError
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.safe_io import folder_lock
from jostle.safe_io.open_folder import OpenFolder
from jostle.store.maintenance.check import check
from jostle.store.maintenance.compaction import compact_store
from jostle.store.maintenance.convert import convert
from jostle.store.maintenance.export import plans_frame, write_table
from jostle.store.maintenance.sql_question import ask
from jostle.store.store import Store
from jostle.store.stored_plans import write_plan
from test_segments import forge, record, segments, stored


@pytest.fixture(scope="module")
def records():
    return [record(seed, trace="none" if seed % 2 else "acks") for seed in range(1, 9)]


def content(root: Path) -> dict[str, bytes]:
    return {f"{p.parent.name}/{p.name}": p.read_bytes() for p in root.glob("segments/*/*")}


def test_a_whole_store_is_whole(tmp_path, records):
    store = stored(tmp_path, records)
    store.put(records[0])
    found = check(tmp_path)
    assert (found.segments, found.in_segments, found.folders) == (2, 8, 1)
    assert found.damaged == {}


def test_a_check_finds_what_a_reader_would_not(tmp_path, records):
    stored(tmp_path, records[::2])
    (folder,) = segments(tmp_path)
    tables = {path.stem: pl.read_parquet(path) for path in folder.glob("*.parquet")}
    runs = tables["flows"]["run"]
    for change in (
        {"flows": tables["flows"].with_columns(run=runs.reverse())},
        {"runs": tables["runs"].with_columns(summary=pl.lit("{}"))},
    ):
        shutil.rmtree(tmp_path / "segments")
        forge(tmp_path, tables | change)
        (why,) = check(tmp_path).damaged.values()
        assert "rows of other runs" in why or "summary of run" in why


def test_a_check_changes_nothing_and_says_where(tmp_path, records, capsys):
    stored(tmp_path, records)
    victim = segments(tmp_path)[0] / "links.parquet"
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    before = content(tmp_path)
    assert status(["store", "check", "--store", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("4 runs in 2 segments, 0 in folders, 0 plans: 1 damaged\n")
    assert f"damaged: {victim.parent}: links.parquet is not what was written" in out
    assert content(tmp_path) == before


def test_merged_segments_are_as_if_written_together(tmp_path, records):
    together, apart = tmp_path / "together", tmp_path / "apart"
    stored(together, records)
    for at in range(8):
        stored(apart, records[at : at + 1])
    stored(apart, records[2:7:2])
    assert len(segments(apart)) == 9
    store = Store(apart)
    names = [one.run_id for one in records]
    held = store.find(names, series=True)
    done = compact_store(store)
    assert (done.before, done.after, done.twice) == (9, 2, 3)
    assert done.freed_bytes > 0
    assert content(apart) == content(together)
    for one in records:
        assert held[one.run_id].flows.equals(one.flows), "what was looked up before is found again"
    assert list((apart / ".partial").iterdir()) == []
    again = compact_store(store)
    assert (again.before, again.after, again.twice, again.freed_bytes) == (2, 2, 0, 0)


def test_runs_with_series_stay(tmp_path, records):
    stored(tmp_path, records[::2], "summary")
    stored(tmp_path, records[:1])
    done = compact_store(Store(tmp_path))
    assert done.twice == 1
    store = Store(tmp_path)
    names = [one.run_id for one in records[::2]]
    assert list(store.find(names, series=True)) == names[:1]
    assert len(store.find(names, series=False)) == 4


def test_what_was_moved_aside_goes_when_it_is_asked_for(tmp_path, records):
    stored(tmp_path, records[:1])
    os.truncate(segments(tmp_path)[0] / "flows.parquet", 3)
    store = Store(tmp_path, lambda _: None)
    compact_store(store)
    assert len(list((tmp_path / ".damaged").iterdir())) == 1
    compact_store(store, damaged=True)
    assert not (tmp_path / ".damaged").exists()


def test_one_tidies_up_at_a_time(tmp_path, records, monkeypatch):
    store = stored(tmp_path, records)
    monkeypatch.setattr(folder_lock, "PATIENCE_S", 0.1)
    with OpenFolder.at(tmp_path) as folder:
        lock = folder_lock.LockFile.take(folder, ".lock")
        assert lock is not None
        with pytest.raises(StoreError, match=rf"is still locked after 0\.1 s, by .*{os.getpid()}"):
            compact_store(store)
        lock.release()
    compact_store(store)


def test_a_store_of_folders_becomes_one_of_segments(tmp_path, records, capsys):
    store = Store(tmp_path / "old")
    for one in records:
        store.put(one)
    captured = SimBackend(fake_core.FakeEngine()).run(fake_core.spec(1, capture=True, duration_s=2))
    kept = store.put(captured)
    assert status(["store", "convert", "--store", str(store.root)]) == 0
    assert "8 runs converted; 1 with captures keep their folders" in capsys.readouterr().out
    assert sorted(path.name for path in store.root.iterdir() if path.name[0] != ".") == sorted(
        ["segments", kept.run_id]
    )
    stored(tmp_path / "new", records)
    assert content(store.root) == content(tmp_path / "new")
    assert convert(store) == (0, 1)


def test_a_damaged_folder_is_not_converted(tmp_path, records):
    store = Store(tmp_path, lambda _: None)
    for one in records[:3]:
        store.put(one)
    os.truncate(tmp_path / records[0].run_id / "flows.parquet", 10)
    assert convert(store) == (2, 0)
    assert store.get(records[0].run_id) is None


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_an_export_is_the_same_whichever_segments_there_are(tmp_path, records, suffix):
    stored(tmp_path / "a", records)
    for at in range(8):
        stored(tmp_path / "b", records[at : at + 1])
    stored(tmp_path / "b", records[:4])
    made = []
    for root in (tmp_path / "a", tmp_path / "b"):
        file = tmp_path / f"measures.{suffix}"
        assert write_table(Store(root), "measures", file) == 8 * (2 + 2 + 1 + 1) * 3
        made.append(file.read_bytes())
    assert made[0] == made[1]


def test_what_cannot_be_exported_is_said(tmp_path, records):
    store = stored(tmp_path, records[:1])
    with pytest.raises(InputError, match="no table `flow`; did you mean `flows`"):
        write_table(store, "flow", tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"written as \.parquet or \.csv"):
        write_table(store, "flows", tmp_path / "x.xlsx")
    with pytest.raises(InputError, match="has a table `acks`"):
        write_table(store, "acks", tmp_path / "x.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*folder\.csv"):
        write_table(store, "flows", tmp_path / "folder.csv")


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_an_export_goes_where_a_link_points(tmp_path, records, suffix):
    store = stored(tmp_path / "store", records[:1])
    target, link = tmp_path / "there" / "x", tmp_path / f"x.{suffix}"
    target.parent.mkdir()
    link.symlink_to(target)
    assert write_table(store, "flows", link) > 0
    assert link.is_symlink()
    assert list(target.parent.iterdir()) == [target]
    write_table(store, "flows", tmp_path / f"plain.{suffix}")
    assert target.read_bytes() == (tmp_path / f"plain.{suffix}").read_bytes()


def test_an_export_into_a_named_pipe_is_counted(tmp_path, records):
    store = stored(tmp_path / "store", records[:1])
    pipe = tmp_path / "x.csv"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    rows = write_table(store, "flows", pipe)
    reader.join(timeout=10)
    assert pipe.is_fifo()
    assert read[0].count(b"\n") == rows + 1


def test_plans_and_measures_are_asked_in_sql(tmp_path, capsys):
    executor = local(2)
    results = Session(
        SimBackend(fake_core.FakeEngine()), executor, Store(tmp_path), "summary"
    ).carry_out(make_plan(2))
    executor.shutdown()
    question = (
        "SELECT labels['flows.newcomer.controller'] AS rival, avg(share) AS share, count(*) AS n "
        "FROM measures JOIN plans USING (run) "
        "WHERE scope = 'flow' AND name = 'newcomer' AND phase = 'steady' GROUP BY 1 ORDER BY 1"
    )
    answer = ask(tmp_path, question)
    assert answer["rival"].to_list() == ["bbr", "cubic", "hybla", "vivace"]
    assert answer["n"].to_list() == [2] * 4
    summaries = [r.run.summary for r in results.runs_of(1)]
    shares = [s["flows"][1]["phases"]["steady"]["share"] for s in summaries]
    assert answer["share"][0] == pytest.approx(sum(shares) / 2)
    store = ["--store", str(tmp_path)]
    assert status(["store", "sql", question, *store, "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "rival,share,n"
    assert status(["store", "sql", question, *store, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[3])["rival"] == "vivace"
    assert status(["store", "sql", question, *store, "--max-rows", "1"]) == 0
    said = capsys.readouterr()
    assert "bbr" in said.out
    assert "cubic" not in said.out
    assert "3 more rows" in said.err
    assert status(["store", "sql", "SELECT nothing FROM runs", *store]) == 2
    assert "error: SQL: " in capsys.readouterr().err
    assert status(["store", "sql", "SELECT 1", "--store", str(tmp_path / "no")]) == 2
    assert "there is no store" in capsys.readouterr().err


def test_plans_are_read_where_a_question_is_of_them(tmp_path, monkeypatch):
    conditions = [{"rate": f"{at} Mbit/s", "rtt": "1 ms"} for at in range(3)]
    runs = [(at % 3, at, f"{at:032x}") for at in range(7)]
    for title, some in (("many", runs), ("none", [])):
        write_plan(tmp_path, title, ("sim", "sim-1"), conditions, some)
    frame = plans_frame(tmp_path)
    labels = [
        [{"key": key, "value": value} for key, value in conditions[at].items()] for at, _, _ in runs
    ]
    assert frame["labels"].to_list() == labels
    assert list(frame.select("condition", "seed", "run").iter_rows()) == runs
    assert frame["title"].unique().to_list() == ["many"]
    assert ask(tmp_path, "SELECT count(*) AS n FROM Plans")["n"][0] == 7
    assert "plans" in ask(tmp_path, "SHOW TABLES")["name"].to_list()

    def too_long(_root):
        raise AssertionError("plans were read")

    monkeypatch.setattr("jostle.store.maintenance.sql_question.plans_frame", too_long)
    assert ask(tmp_path, "SELECT 1 AS one")["one"].to_list() == [1]


def test_measures_of_another_version_are_asked_together(tmp_path, records):
    stored(tmp_path, records[::2])
    (folder,) = segments(tmp_path)
    older = tmp_path / "older"
    stored(older, records[1::2])
    (other,) = segments(older)
    tables = {path.stem: pl.read_parquet(path) for path in other.glob("*.parquet")}
    tables["measures"] = tables["measures"].drop("mos", "jain")
    forge(tmp_path, tables)
    path = next(p for p in segments(tmp_path) if p != folder) / "manifest.json"
    path.write_text(path.read_text().replace('"jostle": "', '"jostle": "0.'))
    ((count, jain),) = ask(tmp_path, "SELECT count(*), count(jain) FROM measures").rows()
    assert count == 8 * 18
    assert 0 < jain < 24


def test_runs_in_folders_are_mentioned(tmp_path, records, capsys):
    store = stored(tmp_path, records[:2])
    store.put(records[3])
    file = tmp_path / "out" / "runs.csv"
    arguments = ["store", "export", str(file), "--table", "runs", "--store", str(tmp_path)]
    assert status(arguments) == 0
    said = capsys.readouterr()
    assert "1 run has a separate folder and is in no table: `jostle store convert`" in said.err
    assert said.out == f"runs: {file} (2 rows)\n"
    assert pl.read_csv(file).height == 2


def test_tidying_up_is_said(tmp_path, records, capsys):
    for one in records[::2]:
        stored(tmp_path, [one])
    assert status(["store", "compact", "--store", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("4 segments became 1, 0 runs were there twice, ")
