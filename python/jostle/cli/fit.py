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
    GroupedCommand,
    allow_code_option,
    jobs_option,
    json_option,
    overrides_of,
    search_seed_option,
    settings_option,
    store_folder_option,
)
from jostle.cli.output_targets import DOCUMENT, FIGURE, Outputs, output_option
from jostle.cli.signals import interruptible
from jostle.cli.verdict_lines import add_verdict, fit_verdict
from jostle.errors import InputError, name_source, unknown
from jostle.results.number_format import signed
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.inference.fit import Compared, Experiment, Fit
    from jostle.inference.fit_features import FitFeature
    from jostle.scenario import Scenario


@click.command(cls=GroupedCommand, short_help="Fit a network to measurements.")
@click.argument("file", metavar="FILE", shell_complete=shell_completion.scenario_files)
@click.option(
    "--data",
    "measured",
    metavar="[CONDITION:]DATA",
    multiple=True,
    required=True,
    help="Fit to this measurement: a capture, or a run by its folder or its name in the store. "
    "With a grid, name its condition, or give the measurements in the order of conditions.",
)
@click.option(
    "--vary",
    "free",
    metavar="KEYS",
    multiple=True,
    required=True,
    help="Fit these keys, separated by commas: `bottleneck.rate`, or with a range "
    '`"bottleneck.loss=0.001..5 %"`; by default a quarter to four times the value of FILE.',
)
@click.option(
    "--test-data",
    "held_out",
    metavar="[CONDITION:]DATA",
    multiple=True,
    help="Test with this measurement whether the fit predicts.",
)
@settings_option
@click.option(
    "--trials",
    "guesses",
    metavar="N",
    type=click.IntRange(min=10),
    default=80,
    show_default=True,
    help="Try this many networks; the refinement needs some fifty more for each key.",
)
@click.option(
    "--repeats",
    metavar="N",
    type=click.IntRange(1, 100),
    default=2,
    show_default=True,
    help="Run each network this many times for each measurement.",
)
@search_seed_option
@store_folder_option
@jobs_option
@output_option(
    {".toml": "the fitted scenario"},
    dict.fromkeys(FIGURE, "the measurements and the fit"),
    DOCUMENT,
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
    search_seed: int,
    store_path: str,
    jobs: int | None,
    outputs: Outputs,
    allow_code: bool,
    as_json: bool,
) -> None:
    """Fit keys of scenario FILE so that its runs reproduce measurements.

    Candidate values are simulated and compared with the measured runs by throughput, RTT quantiles,
    retransmissions and completion times. Needs `pip install "jostle[tune]"`.

    Example: jostle fit path.toml --data upload.pcapng --vary bottleneck.rate -o fitted.toml
    """
    # Long: most lines pass options.
    from jostle.inference.fit import compare, matching
    from jostle.inference.fit import fit as fitted_to
    from jostle.inference.free_keys import free_keys
    from jostle.inference.scenario_toml import fitted_text, relocated
    from jostle.runner.executors import local
    from jostle.runner.session import Session

    scenario = environment.load_scenario(file, overrides_of(settings), allow_code=allow_code)
    with name_source(file):
        keys = free_keys(scenario.document, free)
    experiments = _experiments(scenario, measured, store_path)
    held = _experiments(scenario, held_out, store_path)
    outputs.prepare()
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
            seed=search_seed,
            progress=lambda count, least: echo(_so_far(count, guesses, least), err=True),
        )
        predicted, later = compare(found.scenario, held, session, repeats)
    said = [*found.assumptions, *matching(found.scenario, held)]
    for output in outputs.with_ending(".toml"):
        said.append(f"Left out of {output}: the comments of {file}, which describe its own values.")
        if allow_code and Path(output).resolve().parent != Path(file).resolve().parent:
            said.append(
                f"Left out of {Path(output).parent}: code that {file} names: copy it there."
            )
    found = replace(found, assumptions=tuple(said))
    document = add_verdict({**found.to_dict(), "test": _documents(predicted)}, fit_verdict(found))
    if as_json:
        echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
    else:
        _print(found, measured, predicted, held_out)
    outputs.write_document(lambda: document)
    values = {one.key.key: one.key.written(one.value) for one in found.parameters}
    folder = Path(file).parent
    outputs.write_text(
        ".toml",
        "fitted scenario",
        lambda path: fitted_text(relocated(scenario.document, folder, path.parent), values),
        quiet=as_json,
    )
    if outputs.with_ending(*FIGURE):
        from jostle.figures import draw
        from jostle.inference.figure_data import fit_overlay

        names = [*measured, *(f"{name}, held out" for name in held_out)]
        theirs = [one.run for one in (*experiments, *held)]
        pairs = list(zip(names, theirs, (*found.runs, *later), strict=True))
        outputs.write_drawing(draw.stacked(fit_overlay(pairs)), quiet=as_json)


def _so_far(count: int, guesses: int, least: float) -> str:
    """Describe the progress of a fit. Evaluations beyond `guesses` refine the result."""
    refined = f"{guesses} guesses and {count - guesses} to refine the best"
    tried = f"{count} of {guesses} guesses" if count <= guesses else refined
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


def _print(
    found: Fit,
    measured: Sequence[str],
    predicted: Sequence[Compared],
    held_out: Sequence[str],
) -> None:
    from jostle.cli import output
    from jostle.results.text_table import Table

    to = output.console()
    to.print(fit_verdict(found))
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
        said = f"these data cannot separate {one} from {other} (correlation"
        output.print_note(to, f"{said} {correlation:+.2f}).")
    for title, words, every in (
        ("fitted to", measured, found.compared),
        ("held out", held_out, predicted),
    ):
        for name, compared in zip(words, every, strict=False):
            table = [_row(feature, fitted) for feature, fitted in compared]
            header = ("", "measured", "fitted", "difference")
            output.print_table(to, Table(header, tuple(table), (), 1, f"{title} {name}"))
    said = "A correct model has a misfit of about 1 or less."
    output.print_note(to, f"Misfit {found.misfit:.3g} after {found.evaluations} guesses. {said}")
    output.print_assumptions(to, found.assumptions)


_SHOWN = {"bit/s": (1e-6, "Mbit/s"), "s": (1e3, "ms"), "packets": (1.0, "packets")}


def _row(feature: FitFeature, fitted: float | None) -> tuple[str, str, str, str]:
    factor, unit = _SHOWN[feature.unit]
    values = [
        "" if value is None else f"{value * factor:.4g} {unit}" for value in (feature.value, fitted)
    ]
    part = fitted / feature.value - 1 if fitted is not None and feature.value else None
    return feature.name, values[0], values[1], "" if part is None else f"{signed(100 * part, 1)} %"
