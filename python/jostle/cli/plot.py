"""`jostle plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.environment import Environment
from jostle.cli.options import plan_options
from jostle.cli.output_folders import make_folder_of
from jostle.cli.run import carry_out, plan_files
from jostle.cli.table_options import (
    conditions_option,
    each_option,
    file_options,
    formats_option,
    output_files,
    parsed_where,
    write_frame,
)
from jostle.cli.time_option import seconds
from jostle.errors import InputError, name_source
from jostle.results.condition_names import short_names
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    import polars as pl

    from jostle.figures.renderer import FigureData
    from jostle.results import ResultSet
    from jostle.results.plots import Kind

_KINDS = (
    "series", "lines", "heatmap", "cdf", "box", "scatter", "envelope", "phase", "rrul",
    "time-sequence",
)  # fmt: skip


@click.command(short_help="Draw any measure: over time, over a key, as a distribution.")
@plan_options
@click.option(
    "--kind",
    type=click.Choice(_KINDS),
    default="series",
    show_default=True,
    help="series: over time. lines: over a key of the grid. heatmap: over two. cdf, box: "
    "distributions. scatter: one measure against another, an ellipse each. envelope: delay and "
    "throughput every ten round trips, and the Performance Envelope of each flow. phase: two "
    "flows, or with --x two measures, against each other over time. rrul: throughput of all flows "
    "each way over the RTT of pings, as flent draws response under load. time-sequence: every "
    "packet of captured TCP flows, as tcptrace draws them.",
)
@click.option(
    "--x", default="", metavar="KEY", help="Key of the grid; scatter and phase: a measure."
)
@click.option(
    "--y",
    multiple=True,
    metavar="MEASURE",
    help="What is shown (`jostle list measures`); with series once for each panel.",
)
@click.option(
    "--by",
    multiple=True,
    metavar="KEY",
    help="Key whose values have a line, row, box or cloud each: of the grid, or flow, link, "
    "controller, phase.",
)
@click.option("--phase", multiple=True, metavar="NAME", help="This phase instead of the whole run.")
@click.option(
    "--flow", "flows", multiple=True, metavar="NAME", help="This flow, group or link alone."
)
@each_option
@click.option(
    "--from", "from_", default="", metavar="TIME", help="With time-sequence: from here on."
)
@click.option("--to", default="", metavar="TIME", help="With time-sequence: up to here.")
@click.option(
    "--events",
    is_flag=True,
    help="With series: each flow's window with its losses, recoveries and modes.",
)
@conditions_option
@formats_option
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="File to write; its ending (.png, .svg, .pdf) is a format unless --format is given.  "
    "[default: KIND.png]",
)
@click.pass_obj
def plot(
    environment: Environment,
    /,
    kind: Kind,
    output: str | None,
    formats: tuple[str, ...],
    where: tuple[str, ...],
    **options: Any,
) -> int:
    """Draw a plot of scenario FILE, and run the conditions that are not in the store.

    If conditions differ in further keys, each combination of these keys gets its own chart.
    Different conditions are never pooled.
    """
    from jostle.figures.renderer import render_figure
    from jostle.figures.save import save
    from jostle.results.plots import check, data_of

    into = output_files(options)
    given = {name: options.pop(name) for name in ("x", "y", "by", "phase", "flows", "each")}
    given["events"] = options.pop("events")
    given["from_s"] = seconds("--from", options.pop("from_"), 0.0)
    given["to_s"] = seconds("--to", options.pop("to"), 0.0)
    if len(options["files"]) != 1:
        raise InputError("a plot is of one scenario: give one FILE")
    stem, endings = stem_of(output or f"{kind}.{formats[0] if formats else 'png'}", formats)
    for ending in endings:
        make_folder_of(f"{stem}.{ending}")
    plans = plan_files(environment, **options)
    asked = _arguments(kind, given)
    phases = [phase["name"] for phase in plans[0].runs[0].spec["phases"]]
    with name_source(plans[0].source):
        check(kind, asked, plans[0].conditions, phases)
    (results,) = carry_out(environment, plans, **options)
    chosen = results.where(parsed_where(where)) if where else results
    with name_source(plans[0].source):
        if not chosen.conditions:
            raise InputError("--where: no condition has all of these values")
        if kind in _OF_ONE and len(chosen.conditions) > 1:
            raise InputError(_several_conditions(kind, chosen))
        data = data_of(chosen, kind, asked)
    quiet = write_frame(lambda: _frame(data, chosen), into)
    for path in save(render_figure(data), stem, endings):
        echo(f"figure: {path}", err=quiet)
    return 1 if results.failures else 0


for _option in reversed(file_options("what it shows")):
    plot = _option(plot)


_OF_ONE = ("series", "phase", "rrul", "time-sequence")


def _frame(data: FigureData, results: ResultSet) -> pl.DataFrame:
    """Return what is drawn, with a column that says how many runs failed, if any."""
    import polars as pl

    from jostle.figures.data_frame import figure_frame

    frame = figure_frame(data)
    if not results.failures:
        return frame
    return frame.with_columns(pl.lit(str(results.run_counts)).alias("incomplete"))


def _several_conditions(kind: str, results: ResultSet) -> str:
    """Return a hint on how to select one of several conditions."""
    keys = short_names(list(results.conditions[0]))
    first = results.conditions[0]
    example = " ".join(f'--where "{keys[key]}={value}"' for key, value in first.items())
    return f"{kind} shows one condition of {len(results.conditions)}: choose it, as by {example}"


def _arguments(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the plot's method. Only a series accepts several measures."""
    if kind != "series" and given["y"]:
        if len(given["y"]) > 1:
            raise InputError(f"{kind}: give --y once; series has a panel for each")
        given["y"] = given["y"][0]
    return given


def stem_of(output: str, formats: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the file name without its extension, and the formats to write."""
    from jostle.figures.formats import FORMATS

    path = Path(output)
    ending = path.suffix.removeprefix(".")
    if ending in FORMATS:
        return str(path.with_suffix("")), formats or (ending,)
    if ending and not formats:
        raise InputError(f"no figure format `{ending}`: choose one of {', '.join(FORMATS)}")
    return output, formats or ("png",)
