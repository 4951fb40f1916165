"""`jostle trace`: recordings of links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jostle.cli.folders import make_folder_of
from jostle.cli.plot import stem_of
from jostle.cli.tables import parsed_where
from jostle.errors import InputError
from jostle.printable import echo, single_line

if TYPE_CHECKING:
    from jostle.figures.recorded import RecordedPanel
    from jostle.results.tables import Table
    from jostle.scenario.traces.recording import Column, Cut, Floats, Recording
    from jostle.scenario.traces.synthesis import Chain

F = TypeVar("F", bound=Callable[..., Any])

_GAPS = ("close", "hold", "stop")
_SHOWN_GAPS = 3
_SHOWN = {"rate": ("Mbit/s", 1e-6), "delay": ("ms", 1e3), "loss": ("%", 1e2)}
_LAGS = 60
_STATES = 16
_COMPARED = 300
"""Steps over time of two recordings that are compared: more hide each other."""


class _Span(click.ParamType):  # type: ignore[type-arg]
    """A time with its unit, in seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from jostle.scenario.text.units import QuantityError, parse_span

        try:
            return parse_span(value) / 1e9
        except QuantityError as error:
            self.fail(str(error), param, ctx)


@click.group(short_help="Show, convert and synthesise recordings of links.")
def trace() -> None:
    """Show, convert and synthesise recordings of links: rates, delays and losses over time.

    FILE is in Mahimahi's format, a CSV table, what `iperf3 --json` or `irtt client -o` wrote, or
    what ping printed; which of them is told by its content.
    """


def _reading(command: F) -> F:
    """Add the options that choose what is read of a file."""
    options = [
        click.option("--where", multiple=True, metavar="COLUMN=VALUE",
                     help="Only rows of a table with this value."),
        click.option("--step", type=_Span(), default="100 ms", metavar="TIME", show_default=True,
                     help="Over which delivery opportunities are counted."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


_FILE = click.argument("file", type=click.Path(path_type=Path))
_written = click.option("--output", "-o", required=True, metavar="FILE",
                        help="File to write: .csv is a table, others are Mahimahi's.")  # fmt: skip


@trace.command(short_help="Draw a recording, and tell it in numbers.")
@_FILE
@_reading
@click.option("--output", "-o", default="trace.png", metavar="FILE", show_default=True,
              help="Figure to write; its ending (.png, .svg, .pdf) is its format.")  # fmt: skip
def show(file: Path, *, where: Sequence[str], step: float, output: str) -> None:
    """Draw rate, delay and loss of FILE over time and as distributions, and print them in numbers.

    Gaps, times of which the file has no sample, are told and cut out of the figure.
    """
    from jostle.cli.output import console, print_table

    stem, formats = stem_of(output, ())
    recording = _read(file, where, step)
    parts = [("", one, _cut(recording, one)) for one in recording.columns]
    if not parts:
        names = ", ".join(f'"{name}"' for name in recording.others) or "none"
        raise InputError(
            f'trace "{file}": no column is known to be a rate, a delay or a loss (others: {names}) '
            '— name them as "down_mbps", "rtt_ms", "loss_percent"'
        )
    print_table(console(), _table(str(file), parts))
    for note in (*_facts(recording), *recording.notes):
        echo(single_line(f"note: {note}"))
    _draw([_panel([part]) for part in parts], stem, formats)


@trace.command(short_help="Write a recording in another format.")
@_FILE
@_reading
@_written
@click.option("--column", metavar="NAME", help="Rate that becomes delivery opportunities.")
@click.option("--gaps", type=click.Choice(_GAPS),
              help="Gaps: cut out, the last value holds, nothing is carried.")  # fmt: skip
@click.option("--from", "from_s", type=_Span(), default="0 s", metavar="TIME",
              help="Where in FILE to begin.")  # fmt: skip
@click.option("--to", "to_s", type=_Span(), metavar="TIME", help="Where to end.")
def convert(
    file: Path,
    *,
    where: Sequence[str],
    step: float,
    output: str,
    column: str | None,
    gaps: Any,
    from_s: float,
    to_s: float | None,
) -> None:
    """Write FILE as a table of its samples, or its rate as delivery opportunities of full packets.

    A table keeps gaps as they are: what they mean is said where it is used.
    """
    from jostle.scenario.traces.recording import cut
    from jostle.scenario.traces.writing import as_mahimahi, as_table

    recording = _read(file, where, step)
    if output.endswith(".csv"):
        if gaps or column:
            raise InputError("--gaps and --column are of delivery opportunities; a table keeps all")
        text = as_table(_told(lambda: _part(recording, from_s, to_s)))
    else:
        rate = _told(lambda: recording.column("rate", column))
        part = _told(lambda: cut(recording, rate, gaps, from_s, to_s))
        text = _told(lambda: as_mahimahi(part, str(file)))
    _write(output, text)
    for note in (*_facts(recording), *recording.notes):
        echo(single_line(f"note: {note}"))


@trace.command(short_help="Synthesise a recording, like another one or from rates.")
@_reading
@click.option("--like", type=click.Path(path_type=Path), metavar="FILE",
              help="Recording that it is to be like.")  # fmt: skip
@click.option(
    "--rates", metavar="RATE,…", help="Rates it moves between, as in '10 Mbit/s,50 Mbit/s'."
)
@click.option("--stay", type=_Span(), default="2 s", metavar="TIME", show_default=True,
              help="With --rates: mean time at one of them.")  # fmt: skip
@click.option("--states", type=click.IntRange(1, 1000), default=_STATES, show_default=True,
              help="With --like: states of the Markov chain.")  # fmt: skip
@click.option("--duration", type=_Span(), required=True, metavar="TIME")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@_written
@click.option("--figure", metavar="FILE", help="With --like: figure that compares both.")
def make(
    *,
    where: Sequence[str],
    step: float,
    like: Path | None,
    rates: str | None,
    stay: float,
    states: int,
    duration: float,
    seed: int,
    output: str,
    figure: str | None,
) -> None:
    """Synthesise a recording by a Markov chain, and print how far it is from FILE's distributions.

    The chain's states are shares of what the rate (or else the first column) takes on, each with
    the samples that were seen in it.
    """
    if (like is None) == (rates is None):
        raise InputError("give either --like FILE or --rates RATE,…")
    recording = None if like is None else _read(like, where, step)
    if recording is not None:
        chain = _fitted(recording, states)
    else:
        chain = _between(rates or "", stay, step)
    made: Recording = _told(lambda: chain.recording(duration, seed))
    _write(output, _text(made, output))
    if recording is not None:
        _compare(recording, made, chain.step_s, figure)


def _fitted(recording: Recording, states: int) -> Chain:
    from jostle.scenario.traces.synthesis import fitted

    chain: Chain = _told(lambda: fitted(recording, states))
    return chain


def _between(rates: str, stay_s: float, step_s: float) -> Chain:
    from jostle.scenario.text.units import parse_rate
    from jostle.scenario.traces.synthesis import between

    listed = [one for one in rates.split(",") if one.strip()]
    bps = _told(lambda: [float(parse_rate(one)) for one in listed])
    if not bps or stay_s <= 0:
        raise InputError("--rates: write for example --rates '10 Mbit/s,50 Mbit/s' --stay '2 s'")
    return between(bps, stay_s, step_s)


def _text(made: Recording, output: str) -> str:
    """Write what was made as its file's name asks for."""
    from jostle.scenario.traces.recording import cut
    from jostle.scenario.traces.writing import as_mahimahi, as_table

    if output.endswith(".csv"):
        return as_table(made)
    text: str = _told(lambda: as_mahimahi(cut(made, made.column("rate"), "hold"), output))
    return text


def _compare(recording: Recording, made: Recording, step_s: float, figure: str | None) -> None:
    """Print, and draw if asked for, a recording beside one that is to be like it."""
    from jostle.cli.output import console, print_table

    pairs = [
        [("recorded", old, _cut(recording, old)), ("synthetic", new, _cut(made, new))]
        for old, new in zip(recording.columns, made.columns, strict=True)
    ]
    print_table(console(), _table(recording.source, [one for pair in pairs for one in pair]))
    for (_, column, old_part), (_, _, new_part) in pairs:
        name = single_line(column.name)
        echo(f"{name}: Kolmogorov-Smirnov distance {_distance(old_part, new_part):.4f}")
    if figure is not None:
        stem, formats = stem_of(figure, ())
        _draw([_panel(pair, step_s) for pair in pairs], stem, formats)


def _told(make: Callable[[], Any]) -> Any:
    """Tell what is wrong with a file as the command line does."""
    from jostle.scenario.text.units import QuantityError

    try:
        return make()
    except QuantityError as error:
        raise InputError(str(error)) from error


def _read(file: Path, where: Sequence[str], step_s: float) -> Recording:
    from jostle.scenario.traces.reading import read

    if step_s <= 0:
        raise InputError("--step: more than 0")
    chosen = parsed_where(where)
    recording: Recording = _told(lambda: read(file, step_s=step_s, where=chosen))
    return recording


def _cut(recording: Recording, column: Column) -> Cut:
    """Cut the gaps out of a column."""
    from jostle.scenario.traces.recording import cut

    part: Cut = _told(lambda: cut(recording, column, "close"))
    return part


def _part(recording: Recording, from_s: float, to_s: float | None) -> Recording:
    from dataclasses import replace

    from jostle.scenario.text.units import QuantityError

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
    """Say what the file is, and what it says nothing of."""
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


def _table(title: str, shown: Sequence[tuple[str, Column, Cut]]) -> Table:
    from jostle.results.tables import Table
    from jostle.scenario.traces.numbers import summary

    rows = []
    for whose, column, part in shown:
        unit, factor = _SHOWN[column.quantity]
        told = summary(part)
        values = (told.mean, told.deviation, told.least, told.p5, told.median, told.p95, told.most)
        name = f"{column.name}, {whose}" if whose else column.name
        rows.append((name, unit, f"{part.length_s:g}", *(f"{v * factor:.4g}" for v in values)))
    header = ("column", "unit", "s", "mean", "sd", "min", "5 %", "median", "95 %", "max")
    return Table(header, tuple(rows), (0,), 2, title)


def _panel(shown: Sequence[tuple[str, Column, Cut]], step_s: float | None = None) -> RecordedPanel:
    import numpy as np

    from jostle.figures.recorded import RecordedPanel, Steps
    from jostle.scenario.traces.numbers import autocorrelation, distribution
    from jostle.scenario.traces.recording import MOST_STEPS

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


def _distance(one: Cut, other: Cut) -> float:
    from jostle.scenario.traces.numbers import ks_distance

    return ks_distance(one.values, other.values, one.lasting_s, other.lasting_s)


def _draw(panels: Sequence[RecordedPanel], stem: str, formats: Sequence[str]) -> None:
    from jostle.figures.recorded import recorded
    from jostle.figures.save import save

    for ending in formats:
        make_folder_of(f"{stem}.{ending}")
    for path in save(recorded(panels), stem, formats):
        echo(f"figure: {path}")


def _write(output: str, text: str) -> None:
    from jostle.replaced_files import replace_file

    make_folder_of(output)
    replace_file(Path(output), text.encode())
    echo(f"trace: {output}")
