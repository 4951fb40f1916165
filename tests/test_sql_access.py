"""A question in SQL reads the tables of its store, and nothing else; it writes nothing."""

from __future__ import annotations

import hashlib
import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jostle
import polars as pl
import pytest
from fuzzing.seeds import repair_digests
from jostle.cli import status
from jostle.errors import InputError
from jostle.store import parquet_files
from jostle.store.maintenance import sql_question
from jostle.store.maintenance.compaction import compact_store
from jostle.store.maintenance.duckdb_files import SharedFile
from jostle.store.maintenance.export import write_table
from jostle.store.maintenance.sql_question import ask
from jostle.store.store import Store
from jostle.store.stored_plans import write_plan
from parquet_bombs import equal_texts, parquet
from test_segments import record, segments, stored


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sql") / "store"
    records = [record(seed) for seed in range(1, 5)]
    stored(root, records[:2])
    stored(root, records[2:])
    write_plan(root, "one", ("sim", "1"), [{"rate": "1"}], [(0, 1, records[0].run_id)])
    return root


def state(folder: Path) -> dict[str, str]:
    """Digest of every file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


READS = [
    "FROM read_text('SECRET')",
    "FROM read_blob('SECRET')",
    "FROM read_csv('SECRET')",
    "FROM read_json('SECRET')",
    "FROM read_parquet('SECRET.parquet')",
    "FROM 'SECRET.parquet'",
    "FROM 'SECRET'",
    "FROM parquet_metadata('SECRET.parquet')",
    "FROM sniff_csv('SECRET')",
    "FROM glob('FOLDER/*')",
    "FROM read_text('http://127.0.0.1:9/')",
    "FROM read_text('jostle://../../SECRET')",
    "FROM read_text('file://SECRET')",
    "SELECT * FROM measures JOIN read_text('SECRET') ON true",
    "COPY (SELECT 1) TO '/dev/stdout'",
    "CREATE TABLE t (x text); COPY t FROM 'SECRET'; FROM t",
    "ATTACH 'SECRET.db' AS other",
    "ATTACH 'SECRET.db' AS other (READ_ONLY)",
    "IMPORT DATABASE 'FOLDER'",
    # Variables of this process.
    "FROM root",
    "FROM files",
    "FROM secret_frame",
]
WRITES = [
    "COPY measures TO 'FOLDER/out.csv'",
    "COPY (SELECT 1 FROM measures) TO 'FOLDER/out.parquet' (USE_TMP_FILE false)",
    "COPY runs TO 'SEGMENT'",
    "COPY runs TO 'SEGMENT' (FORMAT parquet, USE_TMP_FILE false)",
    "COPY (FROM runs) TO 'SEGMENT' (FORMAT parquet, USE_TMP_FILE false)",
    "COPY (FROM runs) TO 'jostle://runs/0' (FORMAT parquet, USE_TMP_FILE false)",
    "COPY (FROM runs) TO 'jostle://runs/0' (FORMAT parquet)",
    "COPY (FROM runs) TO 'jostle://runs' (FORMAT parquet, PARTITION_BY (seed), OVERWRITE)",
    "COPY runs TO 'jostle://other' (FORMAT csv, USE_TMP_FILE false)",
    "EXPORT DATABASE 'FOLDER/out'",
    "ATTACH 'FOLDER/out.db' AS other; CREATE TABLE other.t AS FROM runs",
    "ATTACH 'jostle://runs/0' AS other; CREATE TABLE other.t AS FROM runs",
    "INSTALL httpfs",
    "INSTALL 'FOLDER/x.duckdb_extension'",
    "FORCE INSTALL spatial FROM community",
    "LOAD httpfs",
    "LOAD 'FOLDER/x.duckdb_extension'",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
    "CALL enable_logging(storage = 'file', storage_path = 'FOLDER/log')",
    "PRAGMA profiling_output = 'FOLDER/out.json'",
]
SETTINGS = [
    "SET enable_external_access = true",
    "SET GLOBAL enable_external_access = true",
    "RESET enable_external_access",
    "PRAGMA enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET allowed_paths = ['/etc/hostname']",
    "SET lock_configuration = false",
    "SET autoinstall_known_extensions = true",
    "SET allow_unsigned_extensions = true",
    "SET python_enable_replacements = true",
    "SET temp_directory = 'FOLDER'",
    "SET home_directory = 'FOLDER'",
    "SET extension_directory = 'FOLDER'",
    "SET secret_directory = 'FOLDER'",
    "SET log_query_path = 'FOLDER/log'",
    "SET memory_limit = '100GB'",
    "SET custom_user_agent = 'x'",
]


@pytest.mark.parametrize("text", [*READS, *WRITES, *SETTINGS])
def test_a_question_has_the_tables_alone(
    text: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret_frame = pl.DataFrame({"x": ["secret"]})
    (tmp_path / "secret").write_text("secret\n")
    secret_frame.write_parquet(tmp_path / "secret.parquet")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    before = state(tmp_path), state(store)
    segment = segments(store)[0] / "runs.parquet"
    for word, path in (("SECRET", tmp_path / "secret"), ("SEGMENT", segment), ("FOLDER", tmp_path)):
        text = text.replace(word, str(path))
    with pytest.raises(InputError, match=r"^SQL: ") as refused:
        ask(store, text)
    said = str(refused.value)
    assert "Traceback" not in said
    assert "secret\n" not in said
    assert (state(tmp_path), state(store)) == before


def test_the_attacks_would_succeed_where_access_is_open(store: Path, tmp_path: Path) -> None:
    """What is refused above is refused for the access, and not for a mistake in the question."""
    import duckdb

    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    with duckdb.connect() as database:
        ((content,),) = database.execute(f"SELECT content FROM read_text('{secret}')").fetchall()
        assert content == "secret\n"
        copied = tmp_path / "out.parquet"
        database.execute(f"COPY (SELECT 1) TO '{copied}' (FORMAT parquet, USE_TMP_FILE false)")
        assert copied.is_file()
        database.execute("SET memory_limit = '1GB'")


def test_all_tables_can_be_asked_together(store: Path) -> None:
    answer = ask(
        store,
        "CREATE TABLE kept AS SELECT run, count(*) AS n FROM flows GROUP BY 1;"
        "SELECT count(*) AS runs, max(labels['rate'])"
        " FROM runs JOIN kept USING (run) LEFT JOIN plans USING (run)",
    )
    assert answer.row(0) == (4, "1")
    tables = ask(store, "SHOW TABLES")["name"].to_list()
    assert tables == ["flows", "internals", "links", "measures", "plans", "runs"]
    with pytest.raises(InputError, match='Did you mean "measures"'):
        ask(store, "FROM measure")


def test_variables_of_this_process_are_no_tables(store: Path) -> None:
    frame = pl.DataFrame({"x": [1]})
    assert frame.height == 1
    with pytest.raises(InputError, match="Table with name frame does not exist"):
        ask(store, "FROM frame")


def test_a_configuration_of_the_user_is_not_read(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path, tmp_path / "home"):
        folder.mkdir(exist_ok=True)
        (folder / ".duckdbrc").write_text("CREATE TABLE owned AS SELECT 1;")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert "owned" not in ask(store, "SHOW TABLES")["name"].to_list()


def test_an_answer_takes_bounded_memory(store: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sql_question, "_LEAST_BYTES", 50_000_000)
    text = "SELECT count(*) FROM (SELECT DISTINCT random() FROM range(20_000_000))"
    with pytest.raises(InputError, match="too much memory: ask for fewer rows or columns"):
        ask(store, text)
    assert list(tmp_path.iterdir()) == []


def test_texts_of_an_answer_are_bounded(tmp_path: Path) -> None:
    """A text that is one in a file is as many as there are rows in an answer."""
    folder = tmp_path / "segments" / ("0" * 64)
    folder.mkdir(parents=True)
    for length, why in ((90_000, "more than 300 MB"), (900_000, "8100000000 characters")):
        content = parquet([equal_texts("spec", 9_000, b"x" * length)], 9_000)
        (folder / "runs.parquet").write_bytes(content)
        with pytest.raises(InputError, match=why):
            ask(tmp_path, "SELECT * FROM runs")


def test_files_that_take_long_to_check_are_counted(store: Path, monkeypatch) -> None:
    monkeypatch.setattr(sql_question, "_TELL_S", 0.0)
    said: list[str] = []
    ask(store, "SELECT count(*) FROM runs", said.append)
    assert said == ["checked 1 of 2 files", "checked 2 of 2 files"]


def test_a_table_that_is_none_is_named(store: Path, tmp_path: Path, capsys) -> None:
    import shutil

    root = tmp_path / "copy"
    shutil.copytree(store, root)
    victim = segments(root)[0] / "links.parquet"
    os.truncate(victim, 100)
    assert status(["store", "sql", "SELECT count(*) FROM links", "--store", str(root)]) == 2
    said = capsys.readouterr().err
    assert f"error: {victim}: it is not Parquet: see `jostle store check`" in said
    # Tables that are not asked for are not read.
    assert ask(root, "SELECT count(*) AS n FROM runs")["n"][0] == 4


def test_a_damaged_page_is_said_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    stored(tmp_path / ".jostle/store", [record(1)])
    (segment,) = segments(tmp_path / ".jostle/store")
    content = bytearray((segment / "flows.parquet").read_bytes())
    # The frame of zstd that the first page is, without its header.
    start = content.index(b"\x28\xb5\x2f\xfd") + 9
    content[start : start + 8] = b"\xff" * 8
    (segment / "flows.parquet").write_bytes(content)
    repair_digests(tmp_path)
    (segment,) = segments(Path(".jostle/store"))
    assert status(["store", "sql", "SELECT * FROM flows"]) == 2
    sql = capsys.readouterr().err
    assert status(["store", "export", "flows.csv", "--table", "flows"]) == 2
    for said in (sql, capsys.readouterr().err):
        assert said.startswith(f"error: {segment / 'flows.parquet'}: ")
        assert said.endswith(": see `jostle store check`\n")
    assert not Path("flows.csv").exists()


def test_reads_of_two_threads_do_not_mix() -> None:
    """DuckDB seeks and reads in two steps, and gives one handle to several threads."""
    with SharedFile(io.BytesIO(b"0123456789")) as file, ThreadPoolExecutor(1) as other:
        file.seek(2)
        assert other.submit(file.seek, 7).result() == 7
        assert file.read(2) == b"23"
        assert other.submit(file.read, 2).result() == b"78"
        assert file.tell() == 4
        assert file.seek(-1, io.SEEK_END) == 9
        assert file.read() == b"9"


def test_a_store_that_is_compacted_meanwhile_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in (1, 2):
        stored(tmp_path, [record(seed)])
    done: list[object] = []
    checked = parquet_files.checked

    def compacted_before(path: Path) -> object:
        if not done:
            done.append(path)
            compact_store(Store(tmp_path))
        return checked(path)

    monkeypatch.setattr(parquet_files, "checked", compacted_before)
    assert ask(tmp_path, "SELECT count(*) AS n FROM runs")["n"][0] == 2
    assert len(segments(tmp_path)) == 1


def test_a_store_without_runs_is_named(tmp_path: Path) -> None:
    Store(tmp_path)
    with pytest.raises(InputError, match="has no finished runs to query"):
        ask(tmp_path, "SELECT count(*) FROM measures")


@pytest.mark.parametrize("content", ["[]", "{", "", '{"versions": 1}'])
def test_a_manifest_that_is_none_is_no_traceback(content: str, store: Path, tmp_path: Path) -> None:
    import shutil

    root = tmp_path / "copy"
    shutil.copytree(store, root)
    (segments(root)[0] / "manifest.json").write_text(content)
    assert ask(root, "SELECT count(*) AS n FROM runs")["n"][0] == 4


def test_labels_of_all_runs_are_bounded(tmp_path: Path) -> None:
    """Half a megabyte of labels, and half a megabyte of runs that have them all."""
    Store(tmp_path)
    condition = {f"key{at}": "x" for at in range(5_000)}
    runs = [(0, seed, f"{seed:032x}") for seed in range(5_000)]
    write_plan(tmp_path, "many", ("sim", "1"), [condition], runs)
    with pytest.raises(InputError, match="too many labels: remove that file"):
        ask(tmp_path, "SELECT count(*) FROM plans")


@pytest.mark.parametrize("seed", [-1, 2**64, 10**300])
def test_seeds_of_plans_are_64_bits(seed: int, tmp_path: Path) -> None:
    Store(tmp_path)
    write_plan(tmp_path, "odd", ("sim", "1"), [{}], [(0, seed, "0" * 32)])
    with pytest.raises(InputError, match="is not a plan of this version: remove that file"):
        ask(tmp_path, "SELECT count(*) FROM plans")


@pytest.mark.parametrize(
    ("question", "refusal"),
    [("", "no statement"), (";", "no statement"), ("SELECT 1; SELECT 2", "a single SELECT")],
)
def test_no_answer_is_dropped(store: Path, question: str, refusal: str) -> None:
    with pytest.raises(InputError, match=f"SQL: .*{refusal}"):
        ask(store, question)


def test_runs_with_captures_are_in_the_tables(tmp_path: Path) -> None:
    """They keep their folders, so the tables of segments lack them."""
    Path(tmp_path, "a.toml").write_text(
        'duration = "1 s"\n[bottleneck]\nrate = "2 Mbit/s"\n'
        'queue = { kind = "drop_tail", limit = "20 kB" }\n'
        '[[flows]]\nname = "a"\ncontroller = "reno"\nrtt = "20 ms"\n'
    )
    scenario = jostle.load(tmp_path / "a.toml")
    root = tmp_path / "store"
    count = "SELECT count(DISTINCT run) FROM measures"
    for expected, changes in enumerate(({"capture": True}, {"duration": "2 s"}), start=1):
        jostle.run(scenario.set(changes), store=root)
        assert ask(root, count).item() == expected
    assert write_table(Store(root), "runs", tmp_path / "runs.csv") == 2
