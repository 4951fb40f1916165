"""`jostle analyze`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.options import json_option
from jostle.cli.output_folders import make_folder, make_folder_of
from jostle.cli.table_options import formats_option, frame_of, shown_of, table_options, write_frame
from jostle.cli.time_option import seconds
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.figures.time_sequence_data import SequencesData
    from jostle.results import ResultSet


@click.command(short_help="Measure captures of packets as runs are measured.")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=str))
@click.option(
    "--flows",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Flows of a measurement at most: those with the most payload.",
)
@click.option(
    "--interval",
    metavar="TIME",
    default="100 ms",
    show_default=True,
    help="Bin of the series; longer ones where there would be too many.",
)
@json_option
@click.option("--figures", metavar="DIR", help="Draw every figure into this folder.")
@formats_option
@click.option("--report", metavar="HTML", help="Write a self-contained report.")
@click.option(
    "--time-sequence",
    is_flag=True,
    help="Show each packet of a TCP flow over time, as tcptrace does, in the figures and the "
    "report; the flows of several measurements over each other.",
)
@click.option(
    "--flow",
    "drawn",
    multiple=True,
    metavar="NAME",
    help="With --time-sequence: this flow, not the one with the most payload.",
)
@click.option("--from", "from_", default="", metavar="TIME", help="With --time-sequence.")
@click.option("--to", default="", metavar="TIME", help="With --time-sequence: only up to here.")
@click.option("--store", metavar="DIR", help="Keep the results in this folder, as finished runs.")
@table_options
def analyze(
    *,
    files: Sequence[str],
    flows: int,
    interval: str,
    as_json: bool,
    figures: str | None,
    formats: tuple[str, ...],
    report: str | None,
    store: str | None,
    time_sequence: bool,
    drawn: tuple[str, ...],
    from_: str,
    to: str,
    **options: Any,
) -> int:
    """Measure each capture FILE (pcap or pcapng, plain, .gz or .zst, or a folder of them).

    The output has the same measures as a run: throughput, goodput, RTT, retransmissions, fairness.
    Captures of both ends of a connection, or of one jostle run, are combined. JSON of iperf3 or
    irtt, .flent.gz, and output of ping or ss -tin (.txt, .log) give the measures that they contain.
    """
    shown = shown_of(options)
    into = {suffix: options.pop(suffix) for suffix in ("csv", "parquet")}
    for file in into.values():
        make_folder_of(file if file != "-" else None)
    _check_sequence(time_sequence, any((drawn, from_, to)), figures or report)
    make_folder(figures)
    make_folder_of(report)
    from jostle import measurements
    from jostle.cli import output
    from jostle.measurements.progress import read_progress
    from jostle.store.store import Store

    kept = None if store is None else Store(store)
    with read_progress(files, shown=True) as told:
        results = measurements.analyze(files, flows=flows, interval=interval, store=kept, told=told)
    if as_json:
        echo(json.dumps(results.to_dict(()), ensure_ascii=False, allow_nan=False))
    written = write_frame(lambda: frame_of([results], shown, (), files), into)
    quiet = as_json or written
    if not quiet:
        if shown.pivot is None:
            output.print_results(results, (), shown.view(output.width()))
        else:
            output.print_pivot(results, *shown.pivot, shown, ())
    output.print_notes(results, err=quiet)
    words = ["--flows", str(flows), "--interval", interval]
    sequences = None
    if time_sequence:
        from jostle.results.time_sequence import sequences_data

        from_s, to_s = seconds("--from", from_, 0.0), seconds("--to", to, math.inf)
        sequences = sequences_data(results, 0, drawn, from_s, to_s)
        words += ["--time-sequence", *(word for name in drawn for word in ("--flow", name))]
        words += [
            word for name, at in (("--from", from_), ("--to", to)) if at for word in (name, at)
        ]
    words += [Path(file).name for file in files]
    _write(results, figures, formats, report, words, sequences=sequences, quiet=quiet)
    return 0


def _check_sequence(wanted: bool, part: bool, shown_in: str | None) -> None:
    """Check that options of a time-sequence diagram are used with one, and that it has a file."""
    if part and not wanted:
        raise InputError(
            "--flow, --from and --to choose what --time-sequence shows: give that, too"
        )
    if wanted and not shown_in:
        raise InputError("--time-sequence is drawn into --figures DIR or --report HTML: give one")


def _write(
    results: ResultSet,
    figures: str | None,
    formats: Sequence[str],
    report: str | None,
    command: Sequence[str],
    *,
    sequences: SequencesData | None,
    quiet: bool,
) -> None:
    """Draw the figures and write the report, if they were requested."""
    if figures is not None:
        from jostle.results import figure_files

        endings = formats or ("png",)
        for path in figure_files.save_all(results, Path(figures), endings, 1):
            echo(f"figure: {path}", err=quiet)
        if sequences is not None:
            from jostle.figures.renderer import render_figure
            from jostle.figures.save import save

            for path in save(
                render_figure(sequences), str(Path(figures) / "time-sequence"), endings
            ):
                echo(f"figure: {path}", err=quiet)
    if report is not None:
        from jostle.report import write_report

        # The page does not contain captures, only their names and digests.
        path = write_report([results], report, (), command, command="analyze", sequences=sequences)
        echo(f"report: {path}", err=quiet)
