"""`jostle store`: maintenance and queries of finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jostle.cli.options import refuse_two_formats, store_folder_option
from jostle.cli.output_folders import make_folder_of
from jostle.cli.renamed import RenamingGroup
from jostle.cli.run import warn
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.store.store import Store


@click.group(
    cls=RenamingGroup, short_help="Check, compact, export and query a store of finished runs."
)
def store() -> None:
    """Maintain and query a store of finished runs.

    Example: jostle store sql "SELECT controller, avg(throughput_bps) FROM measures GROUP BY 1"
    """


@store.command(short_help="Check every file against its digest.")
@store_folder_option
def check(*, store_path: str) -> int:
    """Check every file of every run against its digest, and every run against its name.

    Nothing is changed. The exit status is 1 if the store is damaged.

    Example: jostle store check
    """
    from jostle.store.maintenance.check import check as find_damage

    found = find_damage(_there(store_path))
    echo(
        f"{found.in_segments} runs in {found.segments} segments, {found.folders} in folders, "
        f"{found.plans} plans: " + (f"{len(found.damaged)} damaged" if found.damaged else "whole")
    )
    for path, why in found.damaged.items():
        echo(f"damaged: {path}: {why}")
    return 1 if found.damaged else 0


@store.command(short_help="Merge small segments and remove duplicates.")
@click.option(
    "--remove-damaged", "damaged", is_flag=True, help="Remove damaged files that were moved aside."
)
@store_folder_option
def compact(*, damaged: bool, store_path: str) -> None:
    """Merge small segments, and remove duplicate copies of runs. No run is lost.

    Other processes may read and write the store at the same time.

    Example: jostle store compact
    """
    from jostle.store.maintenance.compaction import compact_store

    done = compact_store(_opened(store_path), damaged=damaged)
    echo(
        f"{done.before} segments became {done.after}, {done.twice} runs were there twice, "
        f"{done.freed_bytes / 1e6:.1f} MB freed"
    )


@store.command(short_help="Convert a store of folders to segments.")
@store_folder_option
def convert(*, store_path: str) -> None:
    """Convert runs in separate folders, the format of earlier versions, to segments.

    Runs with captures keep their folders.

    Example: jostle store convert
    """
    from jostle.store.maintenance.convert import convert as write_segments

    converted, left = write_segments(
        _opened(store_path), lambda runs: echo(f"{runs} runs converted", err=True)
    )
    more = f"; {left} with captures keep their folders" if left else ""
    echo(f"{converted} runs converted{more}")


@store.command(short_help="Write a table of all runs, or one run, to a file.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--table", default="measures", show_default=True, help="Write this table.")
@click.option("--run", metavar="RUN", help="Write this run as a data file of flent.")
@store_folder_option
def export(*, file: Path, table: str, run: str | None, store_path: str) -> None:
    """Write a table of all runs to FILE, which ends in .parquet or .csv.

    Tables are runs, measures, flows, links, internals, acks and transfers. With --run, FILE ends in
    .flent.gz and can be opened with flent.

    Example: jostle store export measures.parquet
    """
    if run is not None:
        _export_run(run, file, _there(store_path))
        return
    from jostle.store.maintenance.export import write_table

    opened = _opened(store_path)
    make_folder_of(str(file))
    rows = write_table(opened, table, file)
    _warn_about_run_folders(opened.root)
    echo(f"{table}: {file} ({rows} rows)")


def _export_run(run: str, file: Path, root: Path) -> None:
    from jostle.measurements.flent_export import write
    from jostle.store.store import Store

    found = Store(root, warn=warn).get(run)
    if found is None:
        raise InputError(f"--run {run}: there is no such run in {root}")
    make_folder_of(str(file))
    echo(f"flent: {file} ({write(found, file)} flows)")


@store.command(short_help="Query a store in SQL.")
@click.argument("question", metavar="QUESTION")
@click.option("--csv", "as_csv", is_flag=True, callback=refuse_two_formats, help="Print CSV.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    callback=refuse_two_formats,
    help="Print one JSON object per row.",
)
@click.option(
    "--max-rows",
    "limit",
    metavar="N",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Show at most this many rows; 0 for all. CSV and JSON have all.",
)
@store_folder_option
def sql(*, question: str, as_csv: bool, as_json: bool, limit: int, store_path: str) -> None:
    """Run an SQL query: "SELECT controller, avg(throughput_bps) FROM measures GROUP BY 1".

    Tables are runs, measures, flows, links, internals, acks and transfers, with the columns of the
    segments, and plans: plan, title, backend, backend_version, condition, seed, run and labels. A
    label is selected by its key, such as labels['bottleneck.rate'].

    The query runs in DuckDB with read access to these tables only: no other files, no network, no
    extensions.

    Example: jostle store sql "SELECT count(*) FROM runs"
    """
    from jostle.store.maintenance.sql_question import ask

    root = _there(store_path)
    answer = ask(root, question, lambda text: echo(text, err=True))
    _warn_about_run_folders(root)
    if as_csv:
        echo(answer.write_csv().rstrip("\n"))
        return
    if as_json:
        echo(answer.write_ndjson().rstrip("\n"))
        return
    import polars as pl

    shown = answer.height if limit == 0 else limit
    with pl.Config(
        tbl_rows=shown, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True,
        tbl_formatting="ASCII_BORDERS_ONLY_CONDENSED", fmt_str_lengths=80, tbl_width_chars=10_000,
    ):  # fmt: skip
        echo(str(answer.head(shown)))
    if answer.height > shown:
        echo(f"{answer.height - shown} more rows: --max-rows 0 shows them", err=True)


@store.command(short_help="Copy a store to object storage.")
@click.argument("url", metavar="URL")
@store_folder_option
def push(*, url: str, store_path: str) -> None:
    """Copy missing segments and plans to URL: s3://BUCKET/PREFIX, gs://… or az://….

    Example: jostle store push s3://bucket/runs
    """
    from jostle.store.object_storage import push as copy

    echo(f"{copy(_there(store_path), url)} segments copied to {url}")


@store.command(short_help="Copy a store from object storage.")
@click.argument("url", metavar="URL")
@store_folder_option
def pull(*, url: str, store_path: str) -> None:
    """Copy missing segments and plans from URL: s3://BUCKET/PREFIX, gs://… or az://….

    Example: jostle store pull s3://bucket/runs
    """
    from jostle.store.object_storage import is_url
    from jostle.store.object_storage import pull as copy
    from jostle.store.store import Store

    if is_url(store_path):
        raise InputError("--store: a folder, into which the store is copied")
    echo(f"{copy(url, Store(store_path))} segments copied from {url}")


def _there(path: str) -> Path:
    from jostle.store.object_storage import is_url

    if is_url(path):
        raise InputError(f"fetch it first: jostle store pull {path} --store DIR")
    root = Path(path)
    if not root.is_dir():
        raise InputError(f"there is no store {root}: `jostle run` makes one")
    return root


def _opened(path: str) -> Store:
    from jostle.store.store import Store

    return Store(_there(path), warn=warn)


def _warn_about_run_folders(root: Path) -> None:
    from jostle.store.run_folder import has_captures
    from jostle.store.store import folder_names

    # Runs with captures keep their folders, and are in the tables.
    alone = sum(not has_captures(root / name) for name in folder_names(root))
    if alone:
        are = (
            "run has a separate folder and is"
            if alone == 1
            else "runs have separate folders and are"
        )
        echo(f"{alone} {are} in no table: `jostle store convert`", err=True)
