"""Small Parquet files without Polars: the same values, and no other error than `LayoutError`."""

from __future__ import annotations

import io
import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jostle.store import parquet_files
from jostle.store.parquet_columns import uncompressed_columns
from jostle.store.parquet_layout import LayoutError, measure
from test_parquet_files import BOMBS

NAMES = ("text", "number", "truth")
ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.text(max_size=9), st.sampled_from(["", "a", "é" * 40])),
        st.one_of(st.none(), st.integers(0, 2**32 - 1), st.integers(0, 3)),
        st.one_of(st.none(), st.booleans()),
    ),
    max_size=300,
)


def frame(rows: list[tuple[object, ...]]) -> pl.DataFrame:
    types = {"text": pl.String, "number": pl.UInt32, "truth": pl.Boolean}
    return pl.DataFrame(rows, schema=types, orient="row")


def written(table: pl.DataFrame, **options: object) -> bytes:
    buffer = io.BytesIO()
    table.write_parquet(buffer, **{"compression": "uncompressed", **options})
    return buffer.getvalue()


@settings(deadline=None)
@given(ROWS, st.sampled_from([7, 64, None]))
def test_columns_are_those_of_polars(rows: list[tuple[object, ...]], group: int | None) -> None:
    table = frame(rows)
    content = written(table, row_group_size=group)
    assert uncompressed_columns(content, NAMES) == table.to_dict(as_series=False)


def test_long_and_repetitive_columns() -> None:
    chosen = random.Random(1)
    rows = [(chosen.choice("abcdefghijklm"), at % 700, at > 9000) for at in range(12_000)]
    assert uncompressed_columns(written(frame(rows)), NAMES) == frame(rows).to_dict(as_series=False)


def test_other_files_are_left_to_polars(tmp_path: Path) -> None:
    table = frame([("a", 1, True)])
    assert uncompressed_columns(written(table, compression="zstd"), NAMES) is None
    decimals = table.with_columns(x=pl.lit(0.5))
    assert uncompressed_columns(written(decimals), ["x"]) is None
    path = tmp_path / "x.parquet"
    path.write_bytes(written(table, compression="zstd"))
    assert parquet_files.lists(path, ["text"]) == {"text": ["a"]}


def test_a_missing_column_is_an_error() -> None:
    with pytest.raises(LayoutError, match="it has no column other"):
        uncompressed_columns(written(frame([])), ["other"])


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    content = written(frame([(f"text {at % 9}", at, at % 2 == 0) for at in range(90)]))
    path, chosen, refused = tmp_path / "x.parquet", random.Random(2), 0
    for _ in range(3000):
        damaged = bytearray(content)
        for _ in range(chosen.randint(1, 3)):
            damaged[chosen.randrange(len(content))] = chosen.randrange(256)
        path.write_bytes(damaged)
        try:
            found = parquet_files.small_lists(path, NAMES)
        except ValueError:
            refused += 1
            continue
        if found is not None:
            assert len({len(column) for column in found.values()}) == 1
    assert refused > 300


@pytest.mark.parametrize("what", BOMBS)
def test_bombs_are_refused_without_polars(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(BOMBS[what][0])
    with pytest.raises(LayoutError):
        parquet_files.small_lists(path, ["run"])


def test_equal_texts_count_each(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(written(pl.DataFrame({"run": ["x" * 90_000] * 9_000})))
    assert measure(path.read_bytes()).rows == 9_000
    with pytest.raises(LayoutError, match="its texts have 810000000 characters"):
        parquet_files.small_lists(path, ["run"])
