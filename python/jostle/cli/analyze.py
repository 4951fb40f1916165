"""`jostle analyze`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.options import NO_STORE, GroupedCommand, csv_option, json_option
from jostle.cli.output_targets import DOCUMENT, FIGURES, FOLDER, TABLE, Outputs, output_option
from jostle.cli.table_options import frame_of, print_csv, shown_of, table_options
from jostle.cli.time_option import seconds
from jostle.cli.verdict_lines import add_verdict
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.figures.time_sequence_data import SequencesData
    from jostle.results import ResultSet


@click.command(
    cls=GroupedCommand, short_help="Measure packet captures and logs as runs are measured."
)
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=str))
@click.option(
    "--flows",
    metavar="N",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Measure at most this many flows: those with the most payload.",
)
@click.option(
    "--sampling-interval",
    metavar="TIME",
    default="100 ms",
    show_default=True,
    help="Sample the series at this interval, or a longer one if there would be too many samples.",
)
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
    help="With --time-sequence: show this flow, not the one with the most payload.",
)
@click.option(
    "--from", "from_", default="", metavar="TIME", help="With --time-sequence: begin here."
)
@click.option("--to", default="", metavar="TIME", help="With --time-sequence: end here.")
@table_options
@click.option(
    "--store",
    "store_path",
    metavar="DIR|none",
    default=NO_STORE,
    show_default=True,
    help="Keep the results in this folder, as finished runs.",
)
@output_option(TABLE, DOCUMENT, {".html": "a self-contained report"}, FIGURES)
@json_option
@csv_option
def analyze(
    *,
    files: Sequence[str],
    flows: int,
    sampling_interval: str,
    as_json: bool,
    as_csv: bool,
    outputs: Outputs,
    store_path: str,
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

    Example: jostle analyze upload.pcapng -o report.html
    """
    shown = shown_of(options)
    _check_sequence(
        time_sequence, any((drawn, from_, to)), shown=bool(outputs.with_ending(".html", FOLDER))
    )
    outputs.prepare()
    from jostle import measurements
    from jostle.cli import output
    from jostle.cli.run_verdict import run_verdict
    from jostle.measurements.progress import read_progress
    from jostle.store.store import Store

    kept = None if store_path == NO_STORE else Store(store_path)
    with read_progress(files, shown=True) as told:
        results = measurements.analyze(
            files, flows=flows, interval=sampling_interval, store=kept, told=told
        )

    answer = run_verdict(results, ())
    frame = partial(frame_of, [results], shown, (), files)

    def document() -> dict[str, Any]:
        return add_verdict(results.to_dict(), answer)

    quiet = as_json or as_csv
    if as_json:
        echo(json.dumps(document(), ensure_ascii=False, allow_nan=False))
    if as_csv:
        print_csv(frame())
    if not quiet:
        output.print_tables(results, shown, (), answer)
    output.print_notes(results, err=quiet)
    words = ["--flows", str(flows), "--sampling-interval", sampling_interval]
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
    outputs.write_table(frame)
    outputs.write_document(document)
    _write(results, answer, outputs, words, sequences=sequences, quiet=quiet)
    return 0


def _check_sequence(wanted: bool, part: bool, *, shown: bool) -> None:
    """Check that options of a time-sequence diagram are used with one, and that it has a file."""
    if part and not wanted:
        raise InputError(
            "--flow, --from and --to choose what --time-sequence shows: give that, too"
        )
    if wanted and not shown:
        raise InputError("--time-sequence is drawn into -o DIR/ or -o FILE.html: give one")


def _write(
    results: ResultSet,
    answer: str,
    outputs: Outputs,
    command: Sequence[str],
    *,
    sequences: SequencesData | None,
    quiet: bool,
) -> None:
    """Draw the figures and write the report, if they were requested."""
    for folder, formats in outputs.folders().items():
        from jostle.results import figure_files

        for path in figure_files.save_all(results, folder, formats, 1):
            echo(f"figure: {path}", err=quiet)
        if sequences is not None:
            from jostle.figures.renderer import render_figure
            from jostle.figures.save import save

            for path in save(render_figure(sequences), folder / "time-sequence", formats):
                echo(f"figure: {path}", err=quiet)
    for file in outputs.with_ending(".html"):
        from jostle.report import write_report

        # The page does not contain captures, only their names and digests.
        path = write_report(
            [results], file, (), command, command="analyze", sequences=sequences,
            answers=[answer],
        )  # fmt: skip
        echo(f"report: {path}", err=quiet)
