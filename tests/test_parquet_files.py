"""Parquet files of a store: read as what they are, and refused before they take much."""

from __future__ import annotations

import hashlib
import io
import json
import re
from pathlib import Path

import parquet_bombs as bombs
import polars as pl
import pytest
from jostle.errors import StoreError
from jostle.store import parquet_files
from jostle.store.disk import json_bytes
from jostle.store.parquet_layout import LayoutError, measure
from jostle.store.segments import index
from jostle.store.store import Reader, Store
from limited import Limited
from parquet_bombs import Column, Page, equal_texts, parquet
from test_segments import record, segments, stored

PACKAGE = Path(parquet_files.__file__).parents[1]
BILLION = 10**9


def numbers(rows: int, page: Page | None = None, **more: object) -> Column:
    return Column("x", [page or Page(bytes(8 * rows), rows)], bombs.DOUBLE, **more)


BOMBS: dict[str, tuple[bytes, str]] = {
    "a billion equal texts": (parquet([equal_texts("run", BILLION)], BILLION), "in memory"),
    "a page of two gigabytes": (
        parquet([numbers(9, Page(b"", 9, length=2**31 - 1), codec=bombs.ZSTD)], 9),
        "a page has 2147483647 bytes",
    ),
    "a text of two gigabytes": (
        parquet([Column("run", [Page(b"", 9, length=2**31 - 1)], codec=bombs.ZSTD)], 9),
        "in memory",
    ),
    "pages of many row groups": (
        parquet([equal_texts("run", 10**6)], 10**6, groups=1000),
        "columns overlap",
    ),
    "columns that share their pages": (
        parquet([equal_texts(f"x{at}", 10**6) for at in range(900)], 10**6, overlapping=True),
        "columns overlap",
    ),
    "a footer of fewer rows": (
        parquet([equal_texts("run", BILLION)], BILLION, claimed_rows=1),
        "rows of its footer",
    ),
    "pages of more values than rows": (
        parquet([Column("run", equal_texts("run", BILLION).pages)], 1),
        "value for each row",
    ),
    "pages of fewer values than rows": (
        parquet([Column("run", equal_texts("run", 1).pages)], 1000),
        "value for each row",
    ),
    "a dictionary of a billion texts": (
        parquet([Column("run", [Page(b"\0" * 4, BILLION, dictionary=True), Page(b"", 0)])], 0),
        "more values than bytes",
    ),
    "texts that repeat each other": (
        parquet([Column("run", [Page(b"", 9, bombs.DELTA_BYTE_ARRAY)])], 9),
        "encoding",
    ),
    "values of two gigabytes": (
        parquet([Column("x", [Page(b"", 9)], bombs.FIXED, schema=[(2, bombs.I32, 2**31 - 1)])], 9),
        "other kinds than numbers and texts",
    ),
    "a column in a column": (
        parquet([Column("x", [Page(b"", 9)], schema=[(5, bombs.I32, 1)])], 9),
        "other kinds than numbers and texts",
    ),
    "another codec": (parquet([numbers(9, codec=bombs.GZIP)], 9), "Zstandard"),
    "negative rows": (parquet([numbers(0)], -1), "rows of its footer"),
    "two thousand columns": (
        parquet([Column(f"{at}", [Page(b"", 0)]) for at in range(2000)], 0),
        "2000 columns, of at most 1000",
    ),
    "no footer": (b"PAR1" + b"\xff" * 4 + b"PAR1", "not Parquet"),
    "a footer of other bytes": (b"PAR1" + b"\x19" * 9 + b"\x09\0\0\0PAR1", "damaged|deeply"),
    "a footer that nests": (
        b"PAR1" + b"\x1c" * 5000 + (5000).to_bytes(4, "little") + b"PAR1",
        "nested too deeply",
    ),
    "nothing": (b"", "not Parquet"),
}


@pytest.fixture(scope="module")
def records():
    return [record(seed) for seed in range(1, 5)]


@pytest.mark.parametrize("what", BOMBS)
def test_a_small_file_that_takes_much_is_refused(what: str, tmp_path: Path) -> None:
    content, why = BOMBS[what]
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    for ask in (parquet_files.read, parquet_files.checked, parquet_files.scan):
        with pytest.raises(LayoutError, match=why):
            ask(path)
    with pytest.raises(LayoutError, match=why):
        parquet_files.read_content(content, ["run", "x"])


def test_columns_that_are_not_read_take_nothing(tmp_path: Path) -> None:
    sound = Column("n", [Page(bytes(8), 1)], bombs.DOUBLE)
    content = parquet([equal_texts("run", 1, b"x" * 300_000_000), sound], 1)
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    assert parquet_files.read(path, ["n"])["n"].to_list() == [0.0]
    assert measure(content, ["n"]).decoded_bytes == 8 < measure(content).decoded_bytes


def test_equal_texts_count_each(tmp_path: Path) -> None:
    content = parquet([equal_texts("run", 10_000, b"x" * 100_000)], 10_000)
    with pytest.raises(LayoutError, match="1000000000 characters"):
        parquet_files.read_content(content, ["run"])


def test_the_bombs_would_go_off() -> None:
    """The writer of these tests writes what Polars reads: nothing is refused for another reason."""
    zeros = Page(bombs.zstd_zeros(800_000), 100_000, length=800_000)
    content = parquet(
        [equal_texts("run", 100_000, b"abc"), numbers(1, zeros, codec=bombs.ZSTD)], 100_000
    )
    assert len(content) < 500
    frame = pl.read_parquet(io.BytesIO(content))
    assert frame["x"].sum() == 0
    assert frame.height == measure(content).rows == 100_000
    assert measure(content).decoded_bytes == 100_000 * (16 + 8) + 12


@pytest.mark.parametrize("compression", ["zstd", "uncompressed"])
def test_what_polars_writes_is_measured(compression: str, tmp_path: Path) -> None:
    rows = 300_000
    frame = pl.DataFrame(
        {
            "run": [f"{at % 7:032x}" for at in range(rows)],
            "text": [None if at % 3 else f"{at}" * 3 for at in range(rows)],
            "value": pl.Series(range(rows), dtype=pl.Float64),
            "none": pl.Series([None] * rows, dtype=pl.Float64),
            "count": pl.Series(range(rows), dtype=pl.UInt32),
            "is": [at % 2 == 0 for at in range(rows)],
        }
    )
    path = tmp_path / "x.parquet"
    frame.write_parquet(path, compression=compression, row_group_size=70_000, statistics=True)
    layout = parquet_files.checked(path)
    assert layout.rows == rows
    assert rows * (16 + 16 + 8 + 8 + 4 + 1) < layout.decoded_bytes < 2 * frame.estimated_size()
    assert parquet_files.read(path).equals(frame)
    assert parquet_files.read(path, ["value"]).equals(frame.select("value"))
    assert parquet_files.schema(path) == dict(frame.schema)
    with pytest.raises(LayoutError, match=f"it has {rows} rows instead of 5"):
        parquet_files.read(path, rows=range(5, 6))
    with pytest.raises(LayoutError, match="instead of at most 9"):
        parquet_files.read(path, rows=range(10))
    with pytest.raises(ValueError, match="other"):
        parquet_files.read(path, ["other"])


def test_a_file_of_honest_runs_that_are_alike_is_read(tmp_path: Path) -> None:
    """Three hundred runs without anything random: 45 kB make 54 MB."""
    rows, runs = 900_000, 300
    name = pl.Series("run", [f"{at:032x}" for at in range(runs)])
    frame = pl.DataFrame(
        {"run": name.gather(pl.Series(range(rows)) // (rows // runs)), "quantity": "cwnd",
         "time_s": pl.Series(range(rows), dtype=pl.Float64) % 3000, "value": 1.0}
    )  # fmt: skip
    path = tmp_path / "x.parquet"
    frame.write_parquet(path, compression="zstd")
    assert parquet_files.read(path).height == rows


def forged(root: Path, **contents: bytes) -> Path:
    """Exchange tables of the only segment of a store, with a manifest and a name that fit."""
    (folder,) = segments(root)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    for table, content in contents.items():
        (folder / f"{table}.parquet").write_bytes(content)
        manifest["sha256"][f"{table}.parquet"] = hashlib.sha256(content).hexdigest()
    written = json_bytes(manifest)
    (folder / "manifest.json").write_bytes(written)
    return folder.rename(folder.with_name(hashlib.sha256(written).hexdigest()))


def many_flows(root: Path, rows: int) -> Path:
    """Claim a billion rows of flows, and write them in some hundred bytes."""
    (folder,) = segments(root)
    runs = pl.read_parquet(folder / "runs.parquet")
    claimed = [rows if at == 0 else 0 for at in range(runs.height)]
    runs = runs.with_columns(pl.Series("flows_rows", claimed, dtype=pl.UInt32))
    buffer = io.BytesIO()
    runs.write_parquet(buffer, compression="zstd")
    columns = [equal_texts(name, rows) for name in ("run", "flow")]
    return forged(root, runs=buffer.getvalue(), flows=parquet(columns, rows))


COMMANDS = {
    "check": (["store", "check"], 1),
    "gc": (["store", "compact"], 2),
    "export": (["store", "export", "out.csv", "--table", "flows"], 2),
    "sql": (["store", "sql", "SELECT count(*), max(flow) FROM flows"], 2),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_store_of_a_few_kilobytes_takes_no_gigabytes(
    command: str, limited: Limited, tmp_path: Path, records
) -> None:
    words, expected = COMMANDS[command]
    stored(tmp_path / "store", records)
    many_flows(tmp_path / "store", 200_000_000)
    code, said = limited([*words, "--store", "store"], tmp_path, cpu_s=10, memory_bytes=600_000_000)
    assert code == expected, said
    assert "Traceback" not in said
    assert "MB in memory, of at most 256 MB" in said


def test_series_that_are_too_large_are_an_error_and_stay(tmp_path: Path, records) -> None:
    stored(tmp_path, records)
    folder = many_flows(tmp_path, BILLION)
    run = Store(tmp_path).get(records[0].run_id)
    assert run is not None
    with pytest.raises(StoreError, match=r"flows\.parquet cannot be read: .* in memory"):
        _ = run.flows
    assert folder.is_dir()


def test_series_have_the_rows_that_runs_say(tmp_path: Path, records) -> None:
    stored(tmp_path, records)
    forged(tmp_path, flows=parquet([equal_texts("run", 3)], 3))
    run = Store(tmp_path).get(records[0].run_id)
    assert run is not None
    with pytest.raises(StoreError, match=r"flows.parquet cannot be read: it has 3 rows instead of"):
        _ = run.flows


def test_a_segment_of_too_many_runs_is_not_read(tmp_path: Path, records) -> None:
    stored(tmp_path, records)
    rows = 1_000_000
    forged(tmp_path, runs=parquet([equal_texts("run", rows)], rows))
    with pytest.raises(StoreError, match="cannot be used"):
        Reader(tmp_path).get(records[0].run_id)


def test_an_index_that_takes_much_is_made_anew(tmp_path: Path, records) -> None:
    stored(tmp_path, records)
    columns = [equal_texts("run", BILLION), equal_texts("segment", BILLION)]
    (tmp_path / index.FILE).write_bytes(parquet(columns, BILLION))
    assert index.read(tmp_path, ()) is None
    assert Store(tmp_path).count([one.run_id for one in records]) == len(records)


def test_a_run_folder_that_takes_much_is_an_error(tmp_path: Path, records) -> None:
    run = Store(tmp_path).put(records[0])
    (run.folder / "flows.parquet").write_bytes(parquet([equal_texts("run", BILLION)], BILLION))
    with pytest.raises(StoreError, match=r"flows\.parquet cannot be read: .* in memory"):
        _ = run.flows


READERS = re.compile(
    r"\b(read_parquet|scan_parquet|read_parquet_schema|read_parquet_metadata|read_csv|scan_csv|"
    r"read_ipc|scan_ipc|read_ndjson|scan_ndjson|sink_parquet\(partial|sink_csv\(partial)\b"
)


def test_nobody_else_reads_parquet() -> None:
    """Polars would expand `*`, `?`, `[` and `~` in a path; DuckDB reads addresses of its own."""
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {name}"
        for path in PACKAGE.rglob("*.py")
        for name in READERS.findall(path.read_text("utf-8"))
    }
    assert found == {
        "store/parquet_files.py: read_parquet",
        "store/parquet_files.py: read_parquet_schema",
        "store/parquet_files.py: scan_parquet",
        "store/maintenance/sql_question.py: read_parquet",
    }
    question = (PACKAGE / "store" / "maintenance" / "sql_question.py").read_text("utf-8")
    assert question.count("read_parquet") == question.count("read_parquet([{listed}]") == 2
