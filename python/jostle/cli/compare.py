"""`jostle compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.comparison_sides import pairs_of, sides_options
from jostle.cli.environment import Environment
from jostle.cli.options import plan_options
from jostle.cli.table_options import file_options, output_files, write_frame
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.results.compare import ComparisonResult, Test

LIMIT = 20
"""Default number of differences that are shown."""


@click.command(short_help="Compare stores, versions, backends, scenarios or conditions.")
@plan_options
@sides_options
@click.option(
    "--columns", metavar="MEASURE,…", default="", help="Compare these measures, whatever flows do."
)
@click.option("--phase", "phases", metavar="NAME", multiple=True, help="This phase, not all time.")
@click.option("--each", is_flag=True, help="Compare each flow that `count` made, not their means.")
@click.option(
    "--test",
    type=click.Choice(["welch", "mann-whitney"]),
    default="welch",
    show_default=True,
    help="Test of significance: of means, or of ranks, for distributions with outliers. p-values "
    "are adjusted for the number of tests (Holm). Neither test pairs runs.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=LIMIT,
    show_default=True,
    help="Differences that are shown; 0 for all.",
)
@click.option(
    "--fail-on",
    "fail_on",
    metavar="RELATION",
    multiple=True,
    help="End with 1 if a difference is beyond a bound and statistically significant (adjusted p "
    'below 0.05), or untestable: "goodput < -5 %", "rtt_p95 of web in steady > 10 ms".',
)
@click.pass_obj
def compare(
    environment: Environment,
    /,
    *,
    between: str | None,
    backends: str | None,
    columns: str,
    phases: tuple[str, ...],
    each: bool,
    test: Test,
    limit: int,
    fail_on: tuple[str, ...],
    **options: Any,
) -> int:
    """Compare two sides, the second with the first, the largest differences first.

    FILE… is two scenarios, two stores (folders), or a store and a scenario; one scenario with
    --between or --backends; or one store, whose two latest versions are compared.
    """
    from jostle.cli import output
    from jostle.results.compare import FailCondition, comparison_note, comparison_table
    from jostle.results.compare import compare as compared_with
    from jostle.results.measures import measure

    into = output_files(options)
    names = [measure(name.strip()).name for name in columns.split(",") if name.strip()]
    relations = [FailCondition.parse(text) for text in fail_on]
    names += [r.measure.name for r in relations if names and r.measure.name not in names]
    asked = [*phases, *(r.phase for r in relations if r.phase and r.phase not in phases)]
    pairs = pairs_of(environment, options, between, backends)
    found: list[ComparisonResult] = []
    for (one, first), (other, second) in pairs:
        sides = (one, other)
        found.append(compared_with(first, second, names, asked, names=sides, each=each, test=test))
    quiet = write_frame(lambda: _frame(found, [first.title for (_, first), _ in pairs]), into)
    to = output.console()
    for compared, ((_, first), _) in zip(found, pairs, strict=True):
        if not quiet:
            to.print(first.title, style="bold")
            output.print_table(to, comparison_table(compared, limit, output.width()))
            output.print_note(to, comparison_note(compared))
    broken = [
        f"{relation.text}: {one.where}: {_size(one)}"
        for relation in relations
        for one in relation.broken_by([one for compared in found for one in compared.differences])
    ]
    for text in broken:
        echo(f"fails: {text}", err=True)
    return 1 if broken or any(side.failures for pair in pairs for _, side in pair) else 0


for _option in reversed(file_options()):
    compare = _option(compare)


def _size(one: Any) -> str:
    from jostle.results.number_format import signed

    text = f"{signed(one.change.value * one.measure.factor, 3)} {one.measure.display_unit}".strip()
    return text if one.relative is None else f"{signed(100 * one.relative, 1)} % ({text})"


def _frame(found: Sequence[ComparisonResult], titles: Sequence[str]) -> Any:
    import polars as pl

    frames = [
        compared.frame().select(pl.lit(title).alias("scenario"), pl.all())
        for compared, title in zip(found, titles, strict=True)
    ]
    return pl.concat(frames, how="diagonal")
