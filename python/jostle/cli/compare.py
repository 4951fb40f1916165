"""`jostle compare`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import click

from jostle.cli.comparison_sides import pairs_of
from jostle.cli.environment import Environment
from jostle.cli.options import GroupedCommand, csv_option, json_option, plan_options, single_value
from jostle.cli.output_targets import DOCUMENT, FIGURE, TABLE, Outputs, output_option
from jostle.cli.table_options import (
    filter_option,
    max_rows_option,
    measure_names,
    measures_option,
    parsed_filters,
    per_flow_option,
    print_csv,
)
from jostle.cli.verdict_lines import comparison_verdict
from jostle.errors import InputError, name_source
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    import polars as pl

    from jostle.results.compare import ComparisonResult, Test

SCHEMA = "jostle.comparison/1"
"""Name and version of the document. The version changes if a key is removed or redefined."""
LIMIT = 20
"""Default number of differences that are shown."""


ENVELOPE = "envelope"
_TESTS = ("welch", "mann-whitney")


@click.command(
    cls=GroupedCommand, short_help="Compare conditions, scenarios, versions, backends or stores."
)
@plan_options
@output_option(TABLE, DOCUMENT, dict.fromkeys(FIGURE, "envelopes of --method envelope"))
@json_option
@csv_option
@click.option(
    "--vary",
    metavar="KEY=A,B",
    multiple=True,
    callback=single_value,
    help="Compare conditions of one scenario with the values A and B of a key of its grid, or two "
    "backends: backend=sim,kernel.",
)
@click.option(
    "--method",
    type=click.Choice([*_TESTS, ENVELOPE]),
    default="welch",
    show_default=True,
    help="Test the difference of means (welch) or of ranks (mann-whitney, for distributions with "
    "outliers), with p-values adjusted for the number of tests (Holm); or compare Performance "
    "Envelopes of delay and throughput (envelope, after QUICbench).",
)
@click.option(
    "--phase",
    "phases",
    metavar="NAME",
    multiple=True,
    help="Compare this phase instead of the complete run.",
)
@click.option(
    "--flow", "flows", metavar="NAME", multiple=True, help="With envelope: compare only this flow."
)
@click.option(
    "--reference-flow",
    "against",
    metavar="NAME",
    default="",
    help="With envelope: compare with this flow of the reference; with one FILE, of the same runs.",
)
@filter_option
@measures_option
@per_flow_option
@click.option(
    "--fail-on",
    "fail_on",
    metavar="RELATION",
    multiple=True,
    help="End with 1 if a difference is beyond a bound and statistically significant (adjusted p "
    'below 0.05), or untestable: "goodput < -5 %", "rtt_p95 of web in steady > 10 ms".',
)
@max_rows_option(LIMIT)
@click.pass_obj
def compare(
    environment: Environment,
    /,
    *,
    vary: str | None,
    method: Any,
    filters: tuple[str, ...],
    outputs: Outputs,
    as_json: bool,
    as_csv: bool,
    **options: Any,
) -> int:
    """Compare two sides, the second with the first, the largest differences first.

    FILE… is two scenarios, two stores (folders), or a store and a scenario; one scenario with
    --vary; or one store, whose two latest versions are compared.

    Example: jostle compare scenarios/geo-shared.toml --vary newcomer.controller=cubic,bbr
    """
    own = {name: options.pop(name) for name in _OWN}
    _check_method(method, own, outputs)
    comparison: Comparison
    if method == ENVELOPE:
        from jostle.cli.envelope import compare_envelopes

        outputs.prepare()
        comparison = compare_envelopes(
            environment, options, vary, parsed_filters(filters), **_envelope_options(own)
        )
    else:
        comparison = _compare_measures(
            environment, options, outputs, **own, vary=vary, method=method, filters=filters
        )
    if as_json:
        echo(json.dumps(comparison.document(), ensure_ascii=False, allow_nan=False))
    if as_csv:
        print_csv(comparison.frame())
    quiet = as_json or as_csv
    if not quiet:
        comparison.show()
    outputs.write_table(comparison.frame)
    outputs.write_document(comparison.document)
    comparison.draw(outputs, quiet=quiet)
    for text in comparison.broken:
        echo(f"fails: {text}", err=True)
    return 1 if comparison.broken or comparison.failed else 0


_OWN = ("phases", "flows", "against", "measures", "each", "fail_on", "limit")


class Comparison(Protocol):
    """A finished comparison of any method."""

    @property
    def broken(self) -> Sequence[str]:
        """Conditions of `--fail-on` that hold."""

    @property
    def failed(self) -> bool:
        """Whether runs failed."""

    def frame(self) -> pl.DataFrame:
        """Return all values."""

    def document(self) -> dict[str, Any]:
        """Return all values as plain data."""

    def show(self) -> None:
        """Print the verdict and the tables."""

    def draw(self, outputs: Outputs, *, quiet: bool) -> None:
        """Draw what the method can draw."""


def _check_method(method: str, own: Mapping[str, Any], outputs: Outputs) -> None:
    """Refuse options of another method."""
    if method == ENVELOPE:
        given = [
            option
            for option, name in (("--measures", "measures"), ("--per-flow", "each"),
                                 ("--fail-on", "fail_on"))
            if own[name]
        ]  # fmt: skip
        if given:
            raise InputError(f"{given[0]}: an envelope is of delay and throughput of single flows")
        if len(own["phases"]) > 1:
            raise InputError("--phase: an envelope is of one phase")
        return
    for option, name in (("--flow", "flows"), ("--reference-flow", "against")):
        if own[name]:
            raise InputError(f"{option} chooses the flows of --method {ENVELOPE}: give that, too")
    figures = outputs.with_ending(*FIGURE)
    if figures:
        raise InputError(f"-o {figures[0]}: only --method {ENVELOPE} draws a figure")


def _envelope_options(own: Mapping[str, Any]) -> dict[str, Any]:
    phase = own["phases"][0] if own["phases"] else ""
    return {"flows": own["flows"], "against": own["against"], "phase": phase}


@dataclass(frozen=True)
class _MeasureComparison:
    """Differences of measures between two sides, for each scenario."""

    compared: Sequence[ComparisonResult]
    titles: Sequence[str]
    sides: Sequence[tuple[str, str]]
    method: str
    limit: int
    broken: Sequence[str]
    failed: bool

    def frame(self) -> pl.DataFrame:
        return _frame(self.compared, self.titles)

    def document(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "method": self.method,
            "comparisons": [
                {"scenario": title, "first": first, "second": second,
                 "answer": comparison_verdict(result),
                 "differences": result.frame().to_dicts()}
                for result, title, (first, second)
                in zip(self.compared, self.titles, self.sides, strict=True)
            ],
        }  # fmt: skip

    def show(self) -> None:
        from jostle.cli import output
        from jostle.results.compare import comparison_note, comparison_table

        to = output.console()
        for result, title in zip(self.compared, self.titles, strict=True):
            to.print(comparison_verdict(result))
            to.print(title, style="bold")
            output.print_table(to, comparison_table(result, self.limit, output.width()))
            output.print_note(to, comparison_note(result))

    def draw(self, outputs: Outputs, *, quiet: bool) -> None:
        pass


def _compare_measures(
    environment: Environment,
    options: dict[str, Any],
    outputs: Outputs,
    *,
    vary: str | None,
    method: Test,
    filters: Sequence[str],
    measures: str,
    phases: Sequence[str],
    each: bool,
    fail_on: Sequence[str],
    limit: int,
    **_of_envelopes: Any,
) -> _MeasureComparison:
    from jostle.results.compare import compare as compared_with
    from jostle.results.fail_condition import FailCondition

    names = measure_names(measures)
    relations = [FailCondition.parse(text) for text in fail_on]
    extra = [relation.measure.name for relation in relations]
    asked = [*phases, *(r.phase for r in relations if r.phase and r.phase not in phases)]
    outputs.prepare()
    pairs = pairs_of(environment, options, vary)
    chosen = parsed_filters(filters)
    if chosen:
        with name_source(", ".join(options["files"])):
            pairs = [
                ((one, first.where(chosen)), (other, second.where(chosen)))
                for (one, first), (other, second) in pairs
            ]
    results = [
        compared_with(
            first, second, names, asked, names=(one, other), each=each, test=method, extra=extra
        )
        for (one, first), (other, second) in pairs
    ]
    every = [one for result in results for one in (*result.differences, *result.one_sided)]
    broken = [
        f"{relation.text}: {difference.where}: {_size(difference)}"
        for relation in relations
        for difference in relation.broken_by(every)
    ]
    return _MeasureComparison(
        results,
        [first.title for (_, first), _ in pairs],
        [(one, other) for (one, _), (other, _) in pairs],
        method,
        limit,
        broken,
        any(side.failures for pair in pairs for _, side in pair),
    )


def _size(one: Any) -> str:
    from jostle.results.number_format import signed

    if any(one.unfinished):
        return f"not judged: {'; '.join(text for text in one.unfinished if text)}"
    if one.change.value is None:
        return "not judged: one side has no value"
    text = f"{signed(one.change.value * one.measure.factor, 3)} {one.measure.display_unit}".strip()
    return text if one.relative is None else f"{signed(100 * one.relative, 1)} % ({text})"


def _frame(found: Sequence[ComparisonResult], titles: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    frames = [
        compared.frame().select(pl.lit(title).alias("scenario"), pl.all())
        for compared, title in zip(found, titles, strict=True)
    ]
    return pl.concat(frames, how="diagonal")
