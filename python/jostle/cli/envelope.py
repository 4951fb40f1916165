"""The method `envelope` of `jostle compare`: conformance by Performance Envelopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.cli.comparison_sides import Pair, pairs_of
from jostle.cli.environment import Environment
from jostle.cli.output_targets import FIGURE, Outputs
from jostle.cli.run import carry_out, plan_files
from jostle.cli.verdict_lines import envelope_verdict
from jostle.errors import InputError, name_source
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.results.conformance import ConformanceResult

SCHEMA = "jostle.conformance/1"
"""Name and version of the document. The version changes if a key is removed or redefined."""

Found = Sequence[tuple[str, tuple[str, str], "list[ConformanceResult]"]]
"""Title, names of the sides, and results of each scenario."""


@dataclass(frozen=True)
class EnvelopeComparison:
    """Conformance of test flows with reference flows, for each scenario."""

    found: Found
    failed: bool
    broken: Sequence[str] = ()

    def frame(self) -> Any:
        """Return all values."""
        return _frame(self.found)

    def document(self) -> dict[str, Any]:
        """Return all values as plain data."""
        return _document(self.found)

    def show(self) -> None:
        """Print the tables."""
        _print(self.found)

    def draw(self, outputs: Outputs, *, quiet: bool) -> None:
        """Draw the envelopes."""
        for file in outputs.with_ending(*FIGURE):
            _draw(self.found, file, quiet=quiet)


def compare_envelopes(
    environment: Environment,
    options: dict[str, Any],
    vary: str | None,
    filters: Mapping[str, str],
    *,
    flows: Sequence[str],
    against: str,
    phase: str,
) -> EnvelopeComparison:
    """Compare Performance Envelopes of test flows and reference flows (QUICbench).

    The first side is the test, the second the reference. With one scenario and `against`, test and
    reference are flows of the same runs. A conformance of 1 means equal envelopes of delay and
    throughput, 0 means disjoint ones.
    """
    from jostle.results.conformance import conformance_results

    pairs = _pairs(environment, options, vary, against)
    found: list[tuple[str, tuple[str, str], list[ConformanceResult]]] = []
    for (one, first), (other, second) in pairs:
        test, reference = (side.where(filters) if filters else side for side in (first, second))
        with name_source(", ".join(options["files"])):
            rows = conformance_results(test, reference, flows, against=against, phase=phase)
        found.append((test.title, (one, other), rows))
    return EnvelopeComparison(found, any(side.failures for pair in pairs for _, side in pair))


def _pairs(
    environment: Environment, options: dict[str, Any], vary: str | None, against: str
) -> list[Pair]:
    """Return the two sides. They are the same runs if only the flows differ."""
    files = options["files"]
    alone = len(files) == 1 and vary is None and not Path(files[0]).is_dir()
    if not (alone and against):
        return pairs_of(environment, options, vary)
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
                "answer": envelope_verdict(rows),
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
                            **(mean := one.estimate(name)).columns("mean"),
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
        to.print(envelope_verdict(rows))
        to.print(f"{title}: {test} against {reference}", style="bold")
        for part in output.fitting(conformance_table(rows), output.width()):
            output.print_table(to, part)
    output.print_note(to, CONFORMANCE_NOTE)


def _draw(found: Found, file: str, *, quiet: bool) -> None:
    """Draw the envelopes of each scenario into a separate file."""
    from jostle.figures.charts import multiples
    from jostle.figures.save import save
    from jostle.results.conformance import conformance_figure

    path = Path(file)
    for at, (_, names, rows) in enumerate(found, 1):
        if not rows:
            raise InputError("no flow has an envelope: there is nothing to draw")
        stem = path.stem if len(found) == 1 else f"{path.stem}-{at}"
        figure = multiples(conformance_figure(rows, names))
        for written in save(figure, path.with_name(stem), (path.suffix[1:],)):
            echo(f"figure: {written}", err=quiet)
