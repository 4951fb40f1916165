"""`jostle conformance`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.comparison_sides import Pair, pairs_of, sides_options
from jostle.cli.environment import Environment
from jostle.cli.options import json_option, plan_options
from jostle.cli.output_folders import make_folder_of
from jostle.cli.run import carry_out, plan_files
from jostle.cli.table_options import (
    conditions_option,
    file_options,
    formats_option,
    parsed_where,
    write_frame,
)
from jostle.errors import InputError, name_source
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.results.conformance import ConformanceResult

SCHEMA = "jostle.conformance/1"
"""Name and version of the document. The version changes if a key is removed or redefined."""


@click.command(short_help="Say how alike two implementations behave, by Performance Envelopes.")
@plan_options
@sides_options
@click.option("--flow", "flows", metavar="NAME", multiple=True, help="This flow alone.")
@click.option(
    "--against",
    metavar="FLOW",
    default="",
    help="Name of the reference's flow, where it is another one; with one FILE, of the same runs.",
)
@click.option("--phase", metavar="NAME", default="", help="This phase, not 95 % of a flow's life.")
@conditions_option
@json_option
@click.option("--figure", metavar="FILE", help="Draw the envelopes; its ending is a format.")
@formats_option
@click.pass_obj
def conformance(
    environment: Environment,
    /,
    *,
    between: str | None,
    backends: str | None,
    flows: tuple[str, ...],
    against: str,
    phase: str,
    where: tuple[str, ...],
    as_json: bool,
    figure: str | None,
    formats: tuple[str, ...],
    **options: Any,
) -> int:
    """Compare Performance Envelopes of test flows and reference flows (QUICbench).

    FILE… is two scenarios or stores, the test and the reference; one scenario with --between,
    --backends (the test first) or --against; or one store, whose two latest versions are compared.
    A conformance of 1 means equal envelopes of delay and throughput, 0 means disjoint ones.
    """
    from jostle.results.conformance import conformance_results

    into = {suffix: options.pop(suffix) for suffix in ("csv", "parquet")}
    for file in (*into.values(), figure):
        make_folder_of(file if file != "-" else None)
    pairs = _pairs(environment, options, (between, backends), against)
    chosen = parsed_where(where)
    found: list[tuple[str, tuple[str, str], list[ConformanceResult]]] = []
    for (one, first), (other, second) in pairs:
        test, reference = (side.where(chosen) if chosen else side for side in (first, second))
        with name_source(", ".join(options["files"])):
            rows = conformance_results(test, reference, flows, against=against, phase=phase)
        found.append((test.title, (one, other), rows))
    quiet = write_frame(lambda: _frame(found), into)
    if as_json:
        echo(json.dumps(_document(found), ensure_ascii=False, allow_nan=False))
    elif not quiet:
        _print(found)
    if figure is not None:
        _draw(found, figure, formats, quiet=quiet or as_json)
    return 1 if any(side.failures for pair in pairs for _, side in pair) else 0


for _option in reversed(file_options()):
    conformance = _option(conformance)


Found = Sequence[tuple[str, tuple[str, str], "list[ConformanceResult]"]]
"""Title, names of the sides, and results of each scenario."""


def _pairs(
    environment: Environment,
    options: dict[str, Any],
    ways: tuple[str | None, str | None],
    against: str,
) -> list[Pair]:
    """Return the two sides. They are the same runs if only the flows differ."""
    files = options["files"]
    alone = len(files) == 1 and not any(ways) and not Path(files[0]).is_dir()
    if not (alone and against):
        return pairs_of(environment, options, *ways)
    (results,) = carry_out(environment, plan_files(environment, **options), **options)
    return [(("test", results), (against, results))]


def _frame(found: Found) -> Any:
    import polars as pl

    from jostle.results.conformance import conformance_frame

    frames = [
        conformance_frame(rows).select(
            pl.lit(title).alias("scenario"),
            pl.lit(test).alias("test_side"),
            pl.lit(reference).alias("reference_side"),
            pl.all(),
        )
        for title, (test, reference), rows in found
    ]
    return pl.concat(frames, how="diagonal")


def _document(found: Found) -> dict[str, Any]:
    """Return all results as plain data, with the values of each run."""
    from jostle.results.conformance import NAMES

    return {
        "schema": SCHEMA,
        "comparisons": [
            {
                "scenario": title,
                "test": test,
                "reference": reference,
                "flows": [
                    {
                        "condition": dict(one.condition),
                        "flow": one.flow,
                        "reference": one.reference,
                        "itself": one.itself,
                        "base_rtt_s": one.pairs[0].reference.base_rtt_s,
                        "rate_bps": one.pairs[0].reference.rate_bps,
                        "incomplete": one.incomplete or None,
                    }
                    | {
                        name: {
                            "mean": (mean := one.estimate(name)).value,
                            "low": mean.low,
                            "high": mean.high,
                            "n": mean.n,
                            "runs": one.values(name),
                        }
                        for name in NAMES
                    }
                    for one in rows
                ],
            }
            for title, (test, reference), rows in found
        ],
    }


def _print(found: Found) -> None:
    from jostle.cli import output
    from jostle.results.conformance import CONFORMANCE_NOTE, conformance_table

    to = output.console()
    for title, (test, reference), rows in found:
        to.print(f"{title}: {test} against {reference}", style="bold")
        for part in output.fitting(conformance_table(rows), output.width()):
            output.print_table(to, part)
    output.print_note(to, CONFORMANCE_NOTE)


def _draw(found: Found, file: str, formats: Sequence[str], *, quiet: bool) -> None:
    """Draw the envelopes of each scenario into a separate file."""
    from jostle.cli.plot import stem_of
    from jostle.figures.charts import multiples
    from jostle.figures.save import save
    from jostle.results.conformance import conformance_figure

    stem, endings = stem_of(file, tuple(formats))
    for at, (_, names, rows) in enumerate(found, 1):
        if not rows:
            raise InputError("no flow has an envelope: there is nothing to draw")
        numbered = stem if len(found) == 1 else f"{stem}-{at}"
        for path in save(multiples(conformance_figure(rows, names)), numbered, endings):
            echo(f"figure: {path}", err=quiet)
