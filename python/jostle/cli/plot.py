"""`jostle plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jostle.cli.environment import Environment
from jostle.cli.options import GroupedCommand, plan_options
from jostle.cli.output_targets import FIGURE, TABLE, Outputs, output_option
from jostle.cli.run import carry_out, plan_files
from jostle.cli.table_options import filter_option, parsed_filters, per_flow_option
from jostle.cli.time_option import seconds
from jostle.errors import InputError, name_source
from jostle.results.condition_names import short_names

if TYPE_CHECKING:
    import polars as pl

    from jostle.figures.renderer import FigureData
    from jostle.results import ResultSet

_EVENTS = "events"
"""Kind that is a series with the events of each window."""
_KINDS = (
    "series", _EVENTS, "lines", "heatmap", "cdf", "box", "scatter", "envelope", "phase", "rrul",
    "time-sequence",
)  # fmt: skip


@click.command(
    cls=GroupedCommand, short_help="Draw any measure: over time, over a key, as a distribution."
)
@plan_options
@output_option(
    FIGURE, {ending: f"{text} that it shows" for ending, text in TABLE.items()}, default="KIND.png"
)
@click.option(
    "--kind",
    type=click.Choice(_KINDS),
    default="series",
    show_default=True,
    help="series: over time. events: each flow's cwnd with its losses, recoveries and modes. "
    "lines: over a key of the grid. heatmap: over two. cdf, box: distributions, fewer than five "
    "values as points. scatter: one measure against another, an ellipse each. envelope: delay and "
    "throughput every ten round trips, and the Performance Envelope of each flow. phase: two "
    "flows, or with --x two measures, against each other over time. rrul: throughput of all flows "
    "each way over the RTT of pings, as flent draws response under load. time-sequence: every "
    "packet of captured TCP flows, as tcptrace draws them.",
)
@click.option(
    "--x", default="", metavar="KEY", help="Draw over this key; scatter and phase: a measure."
)
@click.option(
    "--y",
    multiple=True,
    metavar="MEASURE",
    help="Draw this measure (`jostle info list measures`); with series once for each panel.",
)
@click.option(
    "--group-by",
    "by",
    multiple=True,
    metavar="KEY",
    help="Draw a line, row, box or cloud for each value of this key: of the grid, or flow, link, "
    "controller, phase.",
)
@click.option(
    "--phase", multiple=True, metavar="NAME", help="Draw this phase instead of the whole run."
)
@click.option(
    "--flow", "flows", multiple=True, metavar="NAME", help="Draw only this flow, group or link."
)
@per_flow_option
@click.option("--from", "from_", default="", metavar="TIME", help="With time-sequence: begin here.")
@click.option("--to", default="", metavar="TIME", help="With time-sequence: end here.")
@filter_option
@click.pass_obj
def plot(
    environment: Environment,
    /,
    kind: str,
    outputs: Outputs,
    filters: tuple[str, ...],
    **options: Any,
) -> int:
    """Draw a plot of scenario FILE, and run the conditions that are not in the store.

    If conditions differ in further keys, each combination of these keys gets its own chart.
    Different conditions are never pooled.

    Example: jostle plot scenarios/geo-shared.toml --kind box --y share --group-by controller
    """
    from jostle.results.plots import check, data_of

    given = {name: options.pop(name) for name in ("x", "y", "by", "phase", "flows", "each")}
    given["events"] = kind == _EVENTS
    given["from_s"] = seconds("--from", options.pop("from_"), 0.0)
    given["to_s"] = seconds("--to", options.pop("to"), 0.0)
    if len(options["files"]) != 1:
        raise InputError("a plot is of one scenario: give one FILE")
    outputs = outputs or Outputs((f"{kind}.png",))
    drawn: Any = "series" if kind == _EVENTS else kind
    plans = plan_files(environment, **options)
    asked = _arguments(drawn, given)
    phases = [phase["name"] for phase in plans[0].runs[0].spec["phases"]]
    with name_source(plans[0].source):
        check(drawn, asked, plans[0].conditions, phases)
    outputs.prepare()
    (results,) = carry_out(environment, plans, **options)
    chosen = results.where(parsed_filters(filters)) if filters else results
    with name_source(plans[0].source):
        if not chosen.conditions:
            raise InputError("--filter: no condition has all of these values")
        if drawn in _OF_ONE and len(chosen.conditions) > 1:
            raise InputError(_several_conditions(kind, chosen))
        data = data_of(chosen, drawn, asked)
    outputs.write_table(lambda: _frame(data, chosen))
    outputs.write_figure(data, quiet=False)
    return 1 if results.failures else 0


_OF_ONE = ("series", "phase", "rrul", "time-sequence")


def _frame(data: FigureData, results: ResultSet) -> pl.DataFrame:
    """Return what is drawn, with a column that says how many runs failed, if any.

    A condition without a finished run has a row without values.
    """
    import polars as pl

    from jostle.figures.data_frame import figure_frame
    from jostle.results.pivot import facet_title

    frame = figure_frame(data)
    if not results.failures:
        return frame
    every = range(len(results.conditions))
    if len(every) == 1:
        return frame.with_columns(pl.lit(results.incomplete(0)).alias("incomplete"))
    failed = pl.DataFrame(
        [
            {
                "chart": facet_title(dict(results.conditions[at])),
                "incomplete": results.incomplete(at),
            }
            for at in every
            if not results.runs_of(at)
        ],
        schema={"chart": pl.String, "incomplete": pl.String},
    )
    return pl.concat([frame, failed], how="diagonal_relaxed")


def _several_conditions(kind: str, results: ResultSet) -> str:
    """Return a hint on how to select one of several conditions."""
    keys = short_names(list(results.conditions[0]))
    first = results.conditions[0]
    example = " ".join(f'--filter "{keys[key]}={value}"' for key, value in first.items())
    return f"{kind} shows one condition of {len(results.conditions)}: choose it, as by {example}"


def _arguments(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the plot's method. Only a series accepts several measures."""
    if kind != "series" and given["y"]:
        if len(given["y"]) > 1:
            raise InputError(f"{kind}: give --y once; series has a panel for each")
        given["y"] = given["y"][0]
    return given
