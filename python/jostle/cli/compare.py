"""`jostle compare`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.backends.registry import BACKENDS
from jostle.cli.environment import Environment
from jostle.cli.run import carry_out, plan_files, plan_options
from jostle.cli.tables import file_options, files_given, write_frame
from jostle.errors import InputError, unknown
from jostle.printable import echo

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.results.compare import Compared, Test

LIMIT = 20
"""Differences that are shown, unless more are asked for."""

Pair = tuple[tuple[str, "ResultSet"], tuple[str, "ResultSet"]]


@click.command(short_help="Compare stores, versions, backends, scenarios or conditions.")
@plan_options
@click.option(
    "--between",
    metavar="KEY=A,B",
    help="Of one scenario: conditions with the value A of a key of the grid, and those with B.",
)
@click.option("--backends", metavar="A,B", help="Of one scenario: what two backends say.")
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
    help="What tells differences from chance: a test of means, or one of ranks, for distributions "
    "with outliers. Neither pairs runs.",
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
    help='End with 1 if a difference is more than chance and beyond a bound: "goodput < -5 %", '
    '"rtt_p95 of web in steady > 10 ms".',
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

    FILE… is two scenarios, two stores (folders), or a store and a scenario; or one scenario with
    --between or --backends; or one store, of which the two latest versions are compared.
    """
    from jostle.cli import output
    from jostle.results.compare import Relation, comparison_note, comparison_table
    from jostle.results.compare import compare as compared_with
    from jostle.results.measures import measure

    into = files_given(options)
    names = [measure(name.strip()).name for name in columns.split(",") if name.strip()]
    relations = [Relation.parse(text) for text in fail_on]
    names += [r.measure.name for r in relations if names and r.measure.name not in names]
    asked = [*phases, *(r.phase for r in relations if r.phase and r.phase not in phases)]
    pairs = _pairs(environment, options, between, backends)
    found: list[Compared] = []
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
    from jostle.results.formats import signed

    text = f"{signed(one.change.value * one.measure.factor, 3)} {one.measure.reads}".strip()
    return text if one.relative is None else f"{signed(100 * one.relative, 1)} % ({text})"


def _frame(found: Sequence[Compared], titles: Sequence[str]) -> Any:
    import polars as pl

    frames = [
        compared.frame().select(pl.lit(title).alias("scenario"), pl.all())
        for compared, title in zip(found, titles, strict=True)
    ]
    return pl.concat(frames, how="diagonal")


def _pairs(
    environment: Environment, options: dict[str, Any], between: str | None, backends: str | None
) -> list[Pair]:
    """Take the two sides of every comparison."""
    sources = options["files"]
    ways = (between is not None) + (backends is not None)
    if ways > 1:
        raise InputError("give either --between or --backends")
    if ways and (len(sources) != 1 or Path(sources[0]).is_dir()):
        raise InputError("--between and --backends are of one scenario: give one FILE")
    if between is not None:
        return [_between(environment, options, between)]
    if backends is not None:
        return [_by_backends(environment, options, backends)]
    if len(sources) == 1 and Path(sources[0]).is_dir():
        return _versions(Path(sources[0]))
    if len(sources) != 2:
        raise InputError(
            "there are two sides: give two scenarios or stores, or one scenario with --between "
            "KEY=A,B or --backends A,B"
        )
    if any(Path(source).is_dir() for source in sources):
        return _with_stores(environment, options, sources)
    first, second = _carried_out(environment, options, sources)
    return [(("A", first), ("B", second))]


def _carried_out(
    environment: Environment, options: dict[str, Any], files: Sequence[str]
) -> list[ResultSet]:
    given = {**options, "files": tuple(files)}
    return carry_out(environment, plan_files(environment, **given), **given)


def _between(environment: Environment, options: dict[str, Any], text: str) -> Pair:
    from jostle.results.compare import between
    from jostle.results.samples import find_key

    key, equals, values = text.partition("=")
    names = tuple(value.strip() for value in values.split(","))
    if not equals or len(names) != 2 or not all(names):
        raise InputError(f"--between {text}: write it as KEY=A,B")
    plans = plan_files(environment, **options)
    name = find_key(plans[0].conditions, key.strip(), ())
    known = list(dict.fromkeys(c[name] for c in plans[0].conditions if name in c))
    for value in names:
        if value not in known:
            raise InputError(unknown(f"value of {name}", value, known))
    (results,) = carry_out(environment, plans, **options)
    first, second = between(results, name, (names[0], names[1]))
    return (names[0], first), (names[1], second)


def _by_backends(environment: Environment, options: dict[str, Any], text: str) -> Pair:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2:
        raise InputError(f"--backends {text}: write it as A,B")
    for name in names:
        if name not in BACKENDS:
            raise InputError(unknown("backend", name, BACKENDS))
    sides = []
    for name in names:
        (results,) = _carried_out(environment, {**options, "backend": name}, options["files"])
        sides.append((name, results))
    return sides[0], sides[1]


def _warn(text: str) -> None:
    echo(f"warning: {text}", err=True)


def _versions(root: Path) -> list[Pair]:
    """Of each scenario in a store, the last version and the one before."""
    from jostle.running.stored import stored_plans, stored_results

    pairs: list[Pair] = []
    for plans in stored_plans(root).values():
        if len(plans) > 1:
            new, old = plans[:2]
            pairs.append(
                (("before", stored_results(root, old, _warn)),
                 ("after", stored_results(root, new, _warn)))
            )  # fmt: skip
    if not pairs:
        raise InputError(f"{root}: no scenario was run there by two versions or backends")
    return pairs


def _with_stores(
    environment: Environment, options: dict[str, Any], sources: Sequence[str]
) -> list[Pair]:
    """Match scenarios of two stores, or of a store and a file, by their titles."""
    from jostle.running.stored import stored_plans, stored_results

    sides: list[dict[str, ResultSet]] = []
    for source in sources:
        root = Path(source)
        if root.is_dir():
            plans = stored_plans(root)
            sides.append({title: stored_results(root, of[0], _warn) for title, of in plans.items()})
        else:
            (results,) = _carried_out(environment, options, [source])
            sides.append({results.title: results})
    common = [title for title in sides[0] if title in sides[1]]
    for at, side in enumerate(sides):
        alone = [title for title in side if title not in common]
        if alone and common and all(Path(source).is_dir() for source in sources):
            echo(f"only in {sources[at]}: {', '.join(alone)}", err=True)
    if not common:
        raise InputError("the two sides have no scenario in common: they are found by their titles")
    return [(("A", sides[0][title]), ("B", sides[1][title])) for title in common]
