"""`jostle analyze`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.folders import make_folder, make_folder_of
from jostle.cli.options import json_option
from jostle.cli.spans import seconds
from jostle.cli.tables import formats_option, frame_of, shown_of, table_options, write_frame
from jostle.errors import InputError
from jostle.printable import echo

if TYPE_CHECKING:
    from jostle.figures.sequence_data import SequencesData
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

    What is shown is what a run has: throughput, goodput, RTT, retransmissions, fairness. Captures
    of both ends of a connection are one measurement, as are all of one run of ours. A .json of
    iperf3 or irtt, a .flent.gz and the lines of ping or ss -tin (.txt, .log) are measured as far as
    they go.
    """
    shown = shown_of(options)
    into = {suffix: options.pop(suffix) for suffix in ("csv", "parquet")}
    for file in into.values():
        make_folder_of(file if file != "-" else None)
    _check_sequence(time_sequence, any((drawn, from_, to)), figures or report)
    make_folder(figures)
    make_folder_of(report)
    from jostle import captures
    from jostle.captures.progress import reading
    from jostle.cli import output
    from jostle.running.store import Store

    kept = None if store is None else Store(store)
    with reading(files, shown=True) as told:
        results = captures.analyze(files, flows=flows, interval=interval, store=kept, told=told)
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
        from jostle.results.sequences import sequences_data

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
    """See that options of a diagram are given with one, and one with a place for it."""
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
    """Draw figures and write the report, where they were asked for."""
    if figures is not None:
        from jostle.results import pictures

        endings = formats or ("png",)
        for path in pictures.save_all(results, Path(figures), endings, 1):
            echo(f"figure: {path}", err=quiet)
        if sequences is not None:
            from jostle.figures.drawn import drawn
            from jostle.figures.save import save

            for path in save(drawn(sequences), str(Path(figures) / "time-sequence"), endings):
                echo(f"figure: {path}", err=quiet)
    if report is not None:
        from jostle.report import write_report

        # A capture is no text to be shown in the page: its name and digest are.
        path = write_report([results], report, (), command, command="analyze", sequences=sequences)
        echo(f"report: {path}", err=quiet)
