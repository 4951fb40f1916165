"""`jostle study run`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.backends.registry import parse_backend
from jostle.cli import shell_completion
from jostle.cli.environment import Environment
from jostle.cli.options import (
    GroupedCommand,
    allow_code_option,
    backends_option,
    command_line_words,
    csv_option,
    jobs_option,
    json_option,
    repeats_option,
    store_option,
)
from jostle.cli.output_targets import DOCUMENT, FOLDER, TABLE, Outputs, output_option
from jostle.cli.runners import runners
from jostle.cli.table_options import print_csv
from jostle.cli.verdict_lines import study_verdict
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.results.text_table import Table
    from jostle.studies import Runs, Study
    from jostle.studies.column import Column, Evaluations
    from jostle.studies.evaluate import Evaluation
    from jostle.studies.page import Picture
    from jostle.studies.run_study import Done


_REPORTS = "reports/"
"""Default folder of the pages."""


@click.command("run", cls=GroupedCommand, short_help="Reproduce studies, number by number.")
@click.argument(
    "ids", metavar="ID…|all", nargs=-1, required=True, shell_complete=shell_completion.studies
)
@click.option(
    "--setup",
    "setups",
    metavar="NAME",
    multiple=True,
    help="Use only this setup of the paper's network, such as `described`. By default all setups, "
    "and on the kernel `described`.",
)
@backends_option
@repeats_option
@allow_code_option
@jobs_option
@store_option
@output_option(TABLE, DOCUMENT, {FOLDER: "a page and figures per study"}, default=_REPORTS)
@json_option
@csv_option
@click.pass_obj
def run_study(
    environment: Environment,
    /,
    *,
    ids: tuple[str, ...],
    backends: tuple[str, ...],
    repeats: int | None,
    setups: tuple[str, ...],
    jobs: int | None,
    store_path: str | None,
    outputs: Outputs,
    as_json: bool,
    as_csv: bool,
    allow_code: bool,
) -> int:
    """Reproduce the study of each ID (see `jostle study list`), or `all` of them.

    To run your own study, give the path of its folder: ./studies/ID.

    Missing runs are executed first. The output compares every number and claim of the paper with
    the results: in a table, and on one HTML page per study that also has the paper's figures.

    Example: jostle study run geo-shared -o reports/
    """
    if not outputs.folders():
        outputs = Outputs((*outputs.paths, _REPORTS))
    folders = outputs.folders()
    studies = [load_study(name, allow_code=allow_code) for name in study_ids(ids)]
    outputs.prepare()
    made = {parse_backend(name)[0]: environment.backend(name) for name in backends}
    if len(made) < len(set(backends)):
        raise InputError("--backend: name each backend once")
    started_s = time.perf_counter()
    results = _carry_out(studies, made, (repeats, setups), jobs, store_path)
    elapsed_s = time.perf_counter() - started_s
    words = {"repeats": repeats, "allow_code": allow_code}
    quiet = as_json or as_csv
    with_points = as_json or outputs.with_ending(*DOCUMENT)
    done = []
    points = {}
    for one in studies:
        runs, evaluations = _evaluated(one, results, setups)
        done.append((one, evaluations))
        points[one.id] = _points(runs) if with_points else []
        command = _command(one, backends, setups, words)
        if not quiet:
            _print(one, evaluations)
        for folder in folders:
            path = _write(one, runs, evaluations, folder, command, elapsed_s=elapsed_s)
            echo(f"page: {path}", err=quiet)
    if as_csv:
        print_csv(_frame(done))
    outputs.write_table(lambda: _frame(done))

    def documented() -> dict[str, Any]:
        versions = {name: backend.version for name, backend in made.items()}
        return _documented(done, versions, points)

    if as_json:
        echo(json.dumps(documented(), ensure_ascii=False, allow_nan=False))
    outputs.write_document(documented)
    failed = any(
        each.failures
        for done_by in results.values()
        for by_experiment in done_by.values()
        for each in by_experiment.values()
    )
    return 1 if failed else 0


def _documented(
    done: Sequence[tuple[Study, Evaluations]],
    versions: Mapping[str, str],
    points: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """Return the document of all studies, each with its answer."""
    from jostle.studies.json_document import document

    made = document(done, versions, points)
    for one, (study, evaluations) in zip(made["studies"], done, strict=True):
        one["answer"] = study_verdict(study, evaluations)
    return made


def _frame(done: Sequence[tuple[Study, Evaluations]]) -> pl.DataFrame:
    from jostle.studies.data_frame import study_frame

    return study_frame(done)


def _evaluated(
    study: Study, results: Mapping[str, Done], setups: Sequence[str]
) -> tuple[dict[Column, Runs], dict[Column, Evaluation]]:
    """Evaluate a study on every backend and setup, and add recorded results of Linux."""
    from jostle.studies import Runs
    from jostle.studies.column import column
    from jostle.studies.evaluate import evaluate
    from jostle.studies.operating_points_archive import read_archived_points
    from jostle.studies.recorded_results import recorded
    from jostle.studies.run_study import setups_on
    from jostle.studies.study import DESCRIBED

    def everywhere(setup: str) -> dict[str, dict[str, ResultSet]]:
        """Return the results of every backend; if only the described setup was run, use it."""
        return {
            name: done.get((study.id, setup), done.get((study.id, DESCRIBED), {}))
            for name, done in results.items()
        }

    kept = read_archived_points(study)
    runs = {
        column(study, backend, setup): Runs(
            study.with_setup(setup), done.get((study.id, setup), {}), everywhere(setup), kept
        )
        for backend, done in results.items()
        for setup in setups_on(study, backend, setups)
    }
    evaluations = {one: evaluate(each) for one, each in runs.items()}
    return runs, evaluations | recorded(study, evaluations)


def _points(runs: Mapping[Column, Runs]) -> list[dict[str, Any]]:
    """Return the operating points of Linux flows for the study's archive; empty if not run."""
    from jostle.studies.operating_points_archive import BACKEND
    from jostle.studies.operating_points_export import operating_points_document
    from jostle.studies.study import DESCRIBED

    of_linux = [
        each
        for column, each in runs.items()
        if (column.backend, column.setup) == (BACKEND, DESCRIBED)
    ]
    return [row for each in of_linux for row in operating_points_document(each)]


def study_ids(ids: Sequence[str]) -> list[str]:
    """Return the names of studies, with `all` replaced by every installed one."""
    from jostle.studies import STUDIES

    if "all" not in ids:
        return list(dict.fromkeys(ids))
    known = STUDIES.names()
    if not known:
        raise InputError("jostle was installed without studies: name one by its folder")
    return known


def load_study(name: str, *, allow_code: bool) -> Study:
    """Load an installed study, or one given by the path of its folder."""
    from jostle.studies import STUDIES
    from jostle.studies.load import load

    return STUDIES.load(load, name, allow_code=allow_code)


def _carry_out(
    studies: Sequence[Study],
    backends: Mapping[str, Backend],
    asked: tuple[int | None, Sequence[str]],
    jobs: int | None,
    store_path: str | None,
) -> dict[str, Done]:
    """Run all experiments of the studies, with progress; return results by backend.

    `asked` contains the requested repeats and setups.
    """
    from jostle.studies.run_study import run_study, setups_on, unsupported, work_of

    repeats, chosen = asked
    for name in backends:
        for each in studies:
            for left_out in unsupported(each, name):
                echo(f"left out on {name}: experiment {left_out} of {each.id}", err=True)
    work = {
        name: [
            one
            for each in studies
            for one in work_of(each, backend, repeats, setups_on(each, name, chosen))
        ]
        for name, backend in backends.items()
    }
    total = sum(len(each) for each in work.values())
    with runners(backends, total, jobs, store_path) as run:
        return {name: run_study(work[name], run[name]) for name in backends}


def _write(
    one: Study,
    runs: Mapping[Column, Runs],
    evaluations: Evaluations,
    folder: Path,
    command: Sequence[str],
    *,
    elapsed_s: float,
) -> Path:
    """Write the page of a study, and its figures to a folder of the same name."""
    from jostle.safe_io.atomic_write import write_atomically
    from jostle.studies.page import page

    pictures = _pictures(one, runs, evaluations, folder / one.id)
    path = folder / f"{one.id}.html"
    answer = study_verdict(one, evaluations)
    text = page(one, runs, evaluations, pictures, command, answer=answer, elapsed_s=elapsed_s)
    write_atomically(path, text.encode())
    return path


def _pictures(
    one: Study, runs: Mapping[Column, Runs], evaluations: Evaluations, folder: Path
) -> list[Picture]:
    """Draw all figures for each backend's first column, and requested figures for the others."""
    from jostle.figures.page_colours import with_page_colours
    from jostle.figures.renderer import render_figure
    from jostle.figures.save import save, to_bytes
    from jostle.studies.column import by_setup
    from jostle.studies.figures import figure_data
    from jostle.studies.findings import filled
    from jostle.studies.page import Picture

    firsts = {column.backend: column for column in reversed(list(runs))}
    drawn = []
    for spec in one.file.figures:
        for column, each in runs.items():
            setup = each.study.alternative_setup
            wanted = column in firsts.values() or (setup is not None and spec.id in setup.figures)
            if spec.curves and all(curve.backend for curve in spec.curves):
                # All columns of a setup would show the same runs.
                wanted = wanted and column.backend == next(iter(firsts))
            data = figure_data(each, spec) if wanted else None
            if data is not None:
                drawn.append((spec, column, setup, data))
    coloured = with_page_colours([data for *_, data in drawn])
    pictures = []
    for (spec, column, setup, _), data in zip(drawn, coloured, strict=True):
        figure = render_figure(data)
        stem = spec.id
        stem += f"-{column.backend}" if len(firsts) > 1 else ""
        stem += "" if setup is None else f"-{setup.id}"
        save(figure, folder / stem, ("png", "pdf"))
        svg = to_bytes(figure, "svg")
        named = by_setup(evaluations, column.backend)
        finding = filled(spec.finding, column.setup, named)
        pictures.append(Picture(spec.id, spec.caption, column.title, svg, finding))
    return pictures


def _print(one: Study, evaluations: Evaluations) -> None:
    from jostle.cli import output
    from jostle.results.number_format import ABSENT
    from jostle.studies.column import by_setup
    from jostle.studies.deviations import deviation_rows
    from jostle.studies.findings import findings, learned, not_run
    from jostle.studies.fitted_setups import claim_split, fit_sentence, half_rows
    from jostle.studies.json_document import (
        claim_rows,
        number_rows,
        ranking_rows,
        setup_rows,
    )

    to = output.console()
    to.print(study_verdict(one, evaluations))
    to.print(one.file.title, style="bold")
    first = next(iter(evaluations))
    named = by_setup(evaluations, first.backend)
    for text in learned(one.file, first.setup, named):
        to.print(_without_marks(text))
        to.print()
    if missing := not_run(one.file, named):
        to.print(f"{ABSENT} stands for numbers of what was not run: {', '.join(missing)}.")
        to.print()
    for make in (number_rows, ranking_rows):
        print_rows(make(evaluations))
    print_rows(claim_rows(evaluations, claim_split(one.file)))
    print_rows(deviation_rows(one.file, evaluations))
    for finding in findings(one.file, first.setup, named):
        to.print(_without_marks(finding.caption), style="bold")
        to.print(_without_marks(finding.text))
        to.print()
    print_rows(setup_rows(one, evaluations))
    if sentence := fit_sentence(one.file, evaluations):
        to.print(sentence)
        print_rows(half_rows(one.file, evaluations))


def print_rows(made: Table) -> None:
    """Print a table of a study, unless it is empty."""
    from jostle.cli import output
    from jostle.results.text_table import VERDICT

    if made.rows:
        cells = [tuple(map(_without_marks, row)) for row in made.rows]
        output.print_texts(made.header, cells, (VERDICT,))


def _without_marks(text: str) -> str:
    """Remove backticks and line breaks, which are meant for pages."""
    return " ".join(text.replace("`", "").split())


def _command(
    one: Study, backends: Sequence[str], setups: Sequence[str], given: Mapping[str, Any]
) -> list[str]:
    from jostle.studies import STUDIES

    installed = one.folder.parent == STUDIES.installed
    folder = one.folder if one.folder.is_absolute() else f"./{one.folder}"
    words = ["jostle", "study", "run", one.id if installed else str(folder)]
    for backend in backends:
        words += ["--backend", backend]
    for setup in setups:
        words += ["--setup", setup]
    return [*words, *command_line_words(given)]
