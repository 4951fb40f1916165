"""`jostle fit`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli import shell_completion
from jostle.cli.environment import Environment
from jostle.cli.options import (
    allow_code_option,
    jobs_option,
    json_option,
    overrides_of,
    settings_option,
    store_option,
)
from jostle.cli.output_folders import make_folder_of
from jostle.cli.plot import stem_of
from jostle.cli.signals import interruptible
from jostle.errors import InputError, name_source, unknown
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.inference.fit import Compared, Experiment, Fit
    from jostle.inference.fit_features import FitFeature
    from jostle.scenario import Scenario


@click.command(short_help="Find the network that explains what was measured.")
@click.argument("file", metavar="FILE", shell_complete=shell_completion.scenario_files)
@click.option(
    "--to",
    "measured",
    metavar="[CONDITION:]DATA",
    multiple=True,
    required=True,
    help="What was measured: a capture, or a run by its folder or its name in the store. Of a "
    "scenario with a grid each is of the condition that it names, or of the next one in order.",
)
@click.option(
    "--free",
    metavar="KEYS",
    multiple=True,
    required=True,
    help="Keys that may change, with commas between them: `bottleneck.rate`, or with a range "
    '`"bottleneck.loss=0.001..5 %"`. Without one, a quarter to four times of what FILE says.',
)
@click.option(
    "--held-out",
    metavar="[CONDITION:]DATA",
    multiple=True,
    help="Measured as well, and not fitted to: shows whether the fit predicts.",
)
@settings_option
@click.option(
    "--guesses",
    type=click.IntRange(min=10),
    default=80,
    show_default=True,
    help="Networks that the search tries; what follows takes some fifty for each key.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=2,
    show_default=True,
    help="Runs of each guess and measurement, one seed each.",
)
@click.option("--seed", type=click.IntRange(0, 2**31), default=1, help="Seed of the search.")
@store_option
@jobs_option
@click.option("--output", "-o", metavar="TOML", help="Write the fitted scenario to this file.")
@click.option(
    "--figure",
    metavar="FILE",
    help="Draw what was measured and held out beside the fit; the ending is the format.",
)
@allow_code_option
@json_option
@click.pass_obj
def fit(
    environment: Environment,
    /,
    *,
    file: str,
    measured: tuple[str, ...],
    free: tuple[str, ...],
    held_out: tuple[str, ...],
    settings: tuple[str, ...],
    guesses: int,
    repeats: int,
    seed: int,
    store_path: str,
    jobs: int | None,
    output: str | None,
    figure: str | None,
    allow_code: bool,
    as_json: bool,
) -> None:
    """Fit keys of scenario FILE so that its runs reproduce measurements.

    Candidate values are simulated and compared with the measured runs by throughput, RTT quantiles,
    retransmissions and completion times. Needs `pip install "jostle[tune]"`.
    """
    # Long: most lines pass options.
    from jostle.inference.fit import compare, matching
    from jostle.inference.fit import fit as fitted_to
    from jostle.inference.free_keys import free_keys
    from jostle.inference.scenario_toml import fitted_text
    from jostle.runner.executors import local
    from jostle.runner.session import Session

    scenario = environment.load_scenario(file, overrides_of(settings), allow_code=allow_code)
    document = scenario.document
    with name_source(file):
        keys = free_keys(document, free)
    experiments = _experiments(scenario, measured, store_path)
    held = _experiments(scenario, held_out, store_path)
    make_folder_of(output)
    make_folder_of(figure)
    executor = local(jobs)
    with interruptible(executor):
        session = Session(environment.backend("sim"), executor, None)
        found = fitted_to(
            scenario,
            experiments,
            keys,
            session,
            budget=guesses,
            seeds=repeats,
            seed=seed,
            progress=lambda count, least: echo(_so_far(count, guesses, least), err=True),
        )
        predicted, later = compare(found.scenario, held, session, repeats)
    said = [*found.assumptions, *matching(found.scenario, held)]
    if output is not None:
        said.append(f"Left out of {output}: the comments of {file}, which describe its own values.")
    found = replace(found, assumptions=tuple(said))
    if as_json:
        told = {**found.to_dict(), "test": _documents(predicted)}
        echo(json.dumps(told, ensure_ascii=False, allow_nan=False))
    else:
        _print(found, measured, predicted, held_out)
    if output is not None:
        from jostle.safe_io.atomic_write import write_atomically

        values = {one.key.key: one.key.written(one.value) for one in found.parameters}
        write_atomically(Path(output), fitted_text(document, values).encode())
        echo(f"fitted scenario: {output}", err=as_json)
    if figure is not None:
        names = [*measured, *(f"{name}, held out" for name in held_out)]
        theirs = [one.run for one in (*experiments, *held)]
        _draw(list(zip(names, theirs, (*found.runs, *later), strict=True)), figure, quiet=as_json)


def _so_far(count: int, guesses: int, least: float) -> str:
    """Describe the progress of a fit. Evaluations beyond `guesses` refine the result."""
    tried = f"{count} of {guesses} guesses" if count <= guesses else f"{count} guesses"
    return f"{tried}, misfit {least:.3g}"


def _experiments(scenario: Scenario, given: Sequence[str], store: str) -> list[Experiment]:
    """Return each measured run with its condition."""
    from jostle.inference.fit import Experiment
    from jostle.inference.measurement_lookup import find_measured
    from jostle.results import condition_names

    labels = condition_names.labels(scenario.conditions)
    found = []
    for number, words in enumerate(given):
        label, colon, run = words.rpartition(":")
        if not colon:
            if 1 < len(labels) != len(given):
                raise InputError(
                    f"{words}: {scenario.source} has {len(labels)} conditions — say of which the "
                    f'run is, as in "{labels[0]}:{words}"'
                )
            place = number if len(labels) > 1 else 0
        elif label in labels:
            place = labels.index(label)
        else:
            raise InputError(f"{scenario.source}: {unknown('condition', label, labels)}")
        found.append(Experiment(place, find_measured(run, Path(store)), run))
    return found


def _documents(compared: Sequence[Compared]) -> list[list[dict[str, Any]]]:
    from jostle.inference.fit import compared_dict

    return [compared_dict(one) for one in compared]


def _draw(pairs: Sequence[tuple[str, Run, Run]], file: str, *, quiet: bool) -> None:
    from jostle.figures import draw
    from jostle.figures.save import save
    from jostle.inference.figure_data import fit_overlay

    stem, formats = stem_of(file, ())
    for path in save(draw.stacked(fit_overlay(pairs)), stem, formats):
        echo(f"figure: {path}", err=quiet)


def _print(
    found: Fit,
    measured: Sequence[str],
    predicted: Sequence[Compared],
    held_out: Sequence[str],
) -> None:
    from jostle.cli import output
    from jostle.results.tables import Table

    to = output.console()
    rows = [
        (
            one.key.key,
            str(one.key.written(one.value)),
            f"{one.key.written(one.low)} … {one.key.written(one.high)}",
        )
        for one in found.parameters
    ]
    output.print_table(to, Table(("key", "value", "95 % interval"), tuple(rows), (), 1))
    for one, other, correlation in found.unclear:
        said = f"{one} and {other} cannot be told apart by these data (correlation"
        output.print_note(to, f"{said} {correlation:+.2f}).")
    for title, words, every in (
        ("fitted to", measured, found.compared),
        ("held out", held_out, predicted),
    ):
        for name, compared in zip(words, every, strict=False):
            table = [_row(feature, fitted) for feature, fitted in compared]
            header = ("", "measured", "fitted", "difference")
            output.print_table(to, Table(header, tuple(table), (), 1, f"{title} {name}"))
    said = "Its mean square is 1 where each number differs by what a right model may differ by."
    output.print_note(to, f"Misfit {found.misfit:.3g} after {found.evaluations} guesses. {said}")
    output.print_assumptions(to, found.assumptions)


_SHOWN = {"bit/s": (1e-6, "Mbit/s"), "s": (1e3, "ms"), "packets": (1.0, "packets")}


def _row(feature: FitFeature, fitted: float | None) -> tuple[str, str, str, str]:
    factor, unit = _SHOWN[feature.unit]
    values = [
        "" if value is None else f"{value * factor:.4g} {unit}" for value in (feature.value, fitted)
    ]
    part = fitted / feature.value - 1 if fitted is not None and feature.value else None
    return feature.name, values[0], values[1], "" if part is None else f"{part:+.1%}"
