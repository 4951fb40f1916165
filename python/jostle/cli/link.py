"""`jostle link show`, `convert` and `generate`: recordings of links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jostle.cli.options import GroupedCommand
from jostle.cli.output_folders import make_folder_of
from jostle.cli.output_targets import ANY, FIGURE, Outputs, output_option
from jostle.cli.table_options import parsed_filters
from jostle.cli.verdict_lines import recording_verdict, synthesis_verdict
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo, single_line

if TYPE_CHECKING:
    from jostle.figures.trace_figure import RecordedPanel
    from jostle.results.text_table import Table
    from jostle.scenario.traces.markov_chain import MarkovChain
    from jostle.scenario.traces.recording import Column, Floats, Recording, TraceExtract

    _Shown = tuple[str, Column, TraceExtract]
    """Whose column of a recording, and its values."""

F = TypeVar("F", bound=Callable[..., Any])

_GAPS = ("close", "hold", "stop")
_SHOWN_GAPS = 3
_SHOWN = {"rate": ("Mbit/s", 1e-6), "delay": ("ms", 1e3), "loss": ("%", 1e2)}
_LAGS = 60
_STATES = 16
_COMPARED = 300
"""Maximum number of steps in a figure that compares two recordings."""


class _Span(click.ParamType):  # type: ignore[type-arg]
    """A time with a unit, converted to seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from jostle.scenario.parsing.quantities import QuantityError, parse_span

        try:
            return parse_span(value) / 1e9
        except QuantityError as error:
            self.fail(str(error), param, ctx)


def _reading(command: F) -> F:
    """Add the options that select the part of a file to read."""
    options = [
        click.option("--filter", "filters", multiple=True, metavar="COLUMN=VALUE",
                     help="Read only the rows of a table with this value."),
        click.option("--bin", "bin_s", type=_Span(), default="100 ms", metavar="TIME",
                     show_default=True, help="Count delivery opportunities in such bins."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


_FILE = click.argument("file", type=click.Path(path_type=Path))
_RECORDING = {".csv": "a CSV table", ANY: "delivery opportunities in Mahimahi's format"}


@click.command(cls=GroupedCommand, short_help="Draw a recording and print its statistics.")
@_FILE
@_reading
@output_option(FIGURE, default="link.png")
def show(file: Path, *, filters: Sequence[str], bin_s: float, outputs: Outputs) -> None:
    """Draw rate, delay and loss of FILE over time and as distributions, and print statistics.

    Gaps, periods without a sample, are reported and cut out of the figure.

    Example: jostle link show recording.csv -o recording.png
    """
    from jostle.cli.output import console, print_table
    from jostle.scenario.traces.trace_summary import summary

    recording = _read(file, filters, bin_s)
    parts = [("", one, _cut(recording, one)) for one in recording.columns]
    if not parts:
        names = ", ".join(f'"{name}"' for name in recording.others) or "none"
        raise InputError(
            f'trace "{file}": no column is known to be a rate, a delay or a loss (others: {names}) '
            '— name them as "down_mbps", "rtt_ms", "loss_percent"'
        )
    to = console()
    columns = [(one.name, *_SHOWN[one.quantity], summary(part)) for _, one, part in parts]
    to.print(recording_verdict(columns, recording.length_s, len(recording.gaps())))
    print_table(to, _table(str(file), parts))
    for note in (*_facts(recording), *recording.notes):
        echo(single_line(f"note: {note}"))
    _draw([_panel([part]) for part in parts], outputs or Outputs(("link.png",)))


@click.command(cls=GroupedCommand, short_help="Write a recording in another format.")
@_FILE
@_reading
@output_option(_RECORDING, required=True)
@click.option("--column", metavar="NAME", help="Convert this rate to delivery opportunities.")
@click.option("--gaps", type=click.Choice(_GAPS),
              help="Cut gaps out, let the last value hold, or carry nothing in them.")  # fmt: skip
@click.option("--from", "from_s", type=_Span(), default="0 s", metavar="TIME",
              help="Begin at this time of FILE.")  # fmt: skip
@click.option("--to", "to_s", type=_Span(), metavar="TIME", help="End at this time of FILE.")
def convert(
    file: Path,
    *,
    filters: Sequence[str],
    bin_s: float,
    outputs: Outputs,
    column: str | None,
    gaps: Any,
    from_s: float,
    to_s: float | None,
) -> None:
    """Write FILE as a CSV table, or its rate as delivery opportunities of full-sized packets.

    A table keeps gaps; the scenario that uses the table sets how they are handled.

    Example: jostle link convert recording.csv --gaps close -o recording.trace
    """
    from jostle.scenario.traces.recording import cut
    from jostle.scenario.traces.writer import as_mahimahi, as_table

    recording = _read(file, filters, bin_s)

    def text(output: str) -> str:
        if output.endswith(".csv"):
            return as_table(_report_errors(lambda: _select_time(recording, from_s, to_s)))
        rate = _report_errors(lambda: recording.column("rate", column))
        part = _report_errors(lambda: cut(recording, rate, gaps, from_s, to_s))
        return str(_report_errors(lambda: as_mahimahi(part, str(file))))

    if (gaps or column) and all(path.endswith(".csv") for path in outputs.paths):
        raise InputError("--gaps and --column are of delivery opportunities; a table keeps all")
    _write({output: text(output) for output in outputs.paths})
    for note in (*_facts(recording), *recording.notes):
        echo(single_line(f"note: {note}"))


@click.command(cls=GroupedCommand, short_help="Generate a recording from another, or from rates.")
@_reading
@click.option("--fit", "recorded", type=click.Path(path_type=Path), metavar="FILE",
              help="Generate a recording with the statistics of this one.")  # fmt: skip
@click.option(
    "--rates", metavar="RATE,…", help="Switch between these rates, such as '10 Mbit/s,50 Mbit/s'."
)
@click.option("--dwell-time", "dwell_s", type=_Span(), default="2 s", metavar="TIME",
              show_default=True, help="With --rates: mean time at one of them.")  # fmt: skip
@click.option("--states", metavar="N", type=click.IntRange(1, 1000), default=_STATES,
              show_default=True, help="With --fit: states of the Markov chain.")  # fmt: skip
@click.option("--duration", type=_Span(), required=True, metavar="TIME",
              help="Generate a recording of this length.")  # fmt: skip
@click.option("--seed", metavar="N", type=click.IntRange(0), default=1, show_default=True,
              help="Seed the generator with this number.")  # fmt: skip
@output_option(_RECORDING, dict.fromkeys(FIGURE, "with --fit, a comparison of both"),
               required=True)  # fmt: skip
def generate(
    *,
    filters: Sequence[str],
    bin_s: float,
    recorded: Path | None,
    rates: str | None,
    dwell_s: float,
    states: int,
    duration: float,
    seed: int,
    outputs: Outputs,
) -> None:
    """Generate a recording with a Markov chain, and print its distance from FILE's distributions.

    The states of the chain are quantile bins of the rate (or else the first column), each with the
    samples recorded in it.

    Example: jostle link generate --fit recording.csv --duration '5 min' -o long.csv
    """
    if (recorded is None) == (rates is None):
        raise InputError("give either --fit FILE or --rates RATE,…")
    figures = outputs.with_ending(*FIGURE)
    files = [path for path in outputs.paths if path not in figures]
    if not files:
        raise InputError("-o: name a file for the recording, such as link.csv")
    if figures and recorded is None:
        raise InputError("a figure compares a recording with the one of --fit: give --fit, too")
    recording = None if recorded is None else _read(recorded, filters, bin_s)
    if recording is not None:
        chain = _fitted(recording, states)
    else:
        chain = _between(rates or "", dwell_s, bin_s)
    made: Recording = _report_errors(lambda: chain.recording(duration, seed))
    if recording is not None:
        _compare(recording, made)
    _write({output: _text(made, output) for output in files})
    if recording is not None and figures:
        _draw([_panel(pair, chain.step_s) for pair in _pairs(recording, made)], outputs)


def _fitted(recording: Recording, states: int) -> MarkovChain:
    from jostle.scenario.traces.markov_chain import fit_chain

    chain: MarkovChain = _report_errors(lambda: fit_chain(recording, states))
    return chain


def _between(rates: str, dwell_s: float, step_s: float) -> MarkovChain:
    from jostle.scenario.parsing.quantities import parse_rate
    from jostle.scenario.traces.markov_chain import chain_between_rates

    listed = [one for one in rates.split(",") if one.strip()]
    bps = _report_errors(lambda: [float(parse_rate(one)) for one in listed])
    if not bps or dwell_s <= 0:
        raise InputError(
            "--rates: write for example --rates '10 Mbit/s,50 Mbit/s' --dwell-time '2 s'"
        )
    return chain_between_rates(bps, dwell_s, step_s)


def _text(made: Recording, output: str) -> str:
    """Return a recording in the format of the output file's extension."""
    from jostle.scenario.traces.recording import cut
    from jostle.scenario.traces.writer import as_mahimahi, as_table

    if output.endswith(".csv"):
        return as_table(made)
    text: str = _report_errors(lambda: as_mahimahi(cut(made, made.column("rate"), "hold"), output))
    return text


def _pairs(recording: Recording, made: Recording) -> list[list[_Shown]]:
    return [
        [("recorded", old, _cut(recording, old)), ("synthetic", new, _cut(made, new))]
        for old, new in zip(recording.columns, made.columns, strict=True)
    ]


def _compare(recording: Recording, made: Recording) -> None:
    """Print statistics of a recording and its synthetic counterpart."""
    from jostle.cli.output import console, print_table

    pairs = _pairs(recording, made)
    to = console()
    to.print(synthesis_verdict({old[1].name: _distance(old[2], new[2]) for old, new in pairs}))
    print_table(to, _table(recording.source, [one for pair in pairs for one in pair]))


def _report_errors(make: Callable[[], Any]) -> Any:
    """Convert a QuantityError of a file to an InputError."""
    from jostle.scenario.parsing.quantities import QuantityError

    try:
        return make()
    except QuantityError as error:
        raise InputError(str(error)) from error


def _read(file: Path, filters: Sequence[str], step_s: float) -> Recording:
    from jostle.scenario.traces.reader import read

    if step_s <= 0:
        raise InputError("--bin: more than 0")
    chosen = parsed_filters(filters)
    recording: Recording = _report_errors(lambda: read(file, step_s=step_s, where=chosen))
    return recording


def _cut(recording: Recording, column: Column) -> TraceExtract:
    """Return a column without its gaps."""
    from jostle.scenario.traces.recording import cut

    part: TraceExtract = _report_errors(lambda: cut(recording, column, "close"))
    return part


def _select_time(recording: Recording, from_s: float, to_s: float | None) -> Recording:
    from dataclasses import replace

    from jostle.scenario.parsing.quantities import QuantityError

    end_s = recording.length_s if to_s is None else to_s
    kept = (recording.start_s >= from_s) & (recording.start_s < end_s)
    if not kept.any():
        message = f"nothing from {from_s:g} s to {end_s:g} s; it has {recording.length_s:g} s"
        raise QuantityError(f'trace "{recording.source}": {message}')
    begin_s = recording.start_s[kept][0]
    return replace(
        recording,
        start_s=recording.start_s[kept] - begin_s,
        end_s=recording.end_s[kept] - begin_s,
        columns=tuple(replace(one, values=one.values[kept]) for one in recording.columns),
    )


def _facts(recording: Recording) -> list[str]:
    """Return notes on the format of a file, its gaps and missing values."""
    import numpy as np

    facts = [f"{recording.format}: {recording.start_s.size} samples in {recording.length_s:g} s"]
    gaps = recording.gaps()
    if gaps:
        total_s = sum(end - start for start, end in gaps)
        first = ", ".join(f"{start:g}…{end:g} s" for start, end in gaps[:_SHOWN_GAPS])
        more = ", …" if len(gaps) > _SHOWN_GAPS else ""
        facts.append(f"gaps: {len(gaps)} of {total_s:g} s in all ({first}{more})")
    for column in recording.columns:
        missing = int(np.isnan(column.values).sum())
        if missing:
            facts.append(f"{column.name}: {missing} values are missing, the one before them holds")
    return facts


def _table(title: str, shown: Sequence[tuple[str, Column, TraceExtract]]) -> Table:
    from jostle.results.text_table import Table
    from jostle.scenario.traces.trace_summary import summary

    rows = []
    for whose, column, part in shown:
        unit, factor = _SHOWN[column.quantity]
        told = summary(part)
        values = (told.mean, told.deviation, told.least, told.p5, told.median, told.p95, told.most)
        name = f"{column.name}, {whose}" if whose else column.name
        rows.append((name, unit, f"{part.length_s:g}", *(f"{v * factor:.4g}" for v in values)))
    header = ("column", "unit", "s", "mean", "sd", "min", "5 %", "median", "95 %", "max")
    return Table(header, tuple(rows), (0,), 2, title)


def _panel(
    shown: Sequence[tuple[str, Column, TraceExtract]], step_s: float | None = None
) -> RecordedPanel:
    import numpy as np

    from jostle.figures.trace_figure import RecordedPanel, Steps
    from jostle.scenario.traces.recording import MOST_STEPS
    from jostle.scenario.traces.trace_summary import autocorrelation, distribution

    over_time, shares, memory = [], [], []
    column = shown[0][1]
    unit, factor = _SHOWN[column.quantity]
    for whose, _, part in shown:
        values = part.values * factor
        shown_s = part.length_s if step_s is None else min(part.length_s, _COMPARED * step_s)
        kept = part.time_s < shown_s
        ends = np.append(part.time_s[kept], shown_s)
        over_time.append(Steps(whose, ends, np.append(values[kept], values[kept][-1])))
        shares.append(Steps(whose, *distribution(values, part.lasting_s)))
        if step_s is not None:
            lasting_s = min(part.length_s, MOST_STEPS * step_s)
            moments = np.arange(0, lasting_s - step_s / 2, step_s)
            even = values[np.searchsorted(part.time_s, moments + step_s / 2) - 1]
            found = autocorrelation(even, min(_LAGS, even.size - 1))
            lags_s: Floats = np.arange(found.size, dtype=np.float64) * step_s
            memory.append(Steps(whose, lags_s, found))
    return RecordedPanel(f"{column.name} ({unit})", tuple(over_time), tuple(shares), tuple(memory))


def _distance(one: TraceExtract, other: TraceExtract) -> float:
    from jostle.scenario.traces.trace_summary import ks_distance

    return ks_distance(one.values, other.values, one.lasting_s, other.lasting_s)


def _draw(panels: Sequence[RecordedPanel], outputs: Outputs) -> None:
    from jostle.figures.trace_figure import recorded

    outputs.prepare()
    outputs.write_drawing(recorded(panels), quiet=False)


def _write(texts: Mapping[str, str]) -> None:
    """Write recordings by file name."""
    from jostle.safe_io.atomic_write import write_atomically

    for output, text in texts.items():
        make_folder_of(output)
        write_atomically(Path(output), text.encode())
        echo(f"recording: {output}")
