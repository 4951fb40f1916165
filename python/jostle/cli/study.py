"""`jostle study`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.backends.registry import BACKENDS, DEFAULT
from jostle.cli.environment import Environment
from jostle.cli.run import (
    DEFAULT_STORE,
    backend_options,
    chosen_of,
    make_folder,
    options_as_given,
    python_option,
)
from jostle.errors import InputError, InterruptedRunError
from jostle.printable import echo

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.studies import Runs, Study
    from jostle.studies.carry_out import Work
    from jostle.studies.evaluate import Evaluation
    from jostle.studies.page import Picture


@click.command(short_help="Reproduce published studies, number by number.")
@click.argument("ids", metavar="ID…|all", nargs=-1, required=True)
@click.option(
    "--backend",
    "backends",
    type=click.Choice(list(BACKENDS)),
    multiple=True,
    default=(DEFAULT,),
    show_default=True,
    help="What runs them; give it twice for both beside each other.",
)
@backend_options
@click.option(
    "--repeats", type=click.IntRange(min=1), help="Runs per condition, instead of the study's."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Runs at the same time; as many as there are cores if absent.",
)
@click.option(
    "--store",
    "store_path",
    metavar="DIR",
    envvar="JOSTLE_STORE",
    default=DEFAULT_STORE,
    show_default=True,
    show_envvar=True,
    help="Folder of finished runs.",
)
@click.option(
    "--output",
    "-o",
    metavar="DIR",
    default="reports",
    show_default=True,
    help="Folder for a page and figures per study.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@python_option
@click.pass_obj
def study(
    environment: Environment,
    /,
    *,
    ids: tuple[str, ...],
    backends: tuple[str, ...],
    repeats: int | None,
    jobs: int | None,
    store_path: str,
    output: str,
    as_json: bool,
    python: bool,
    **given: str | None,
) -> int:
    """Reproduce the study of each ID (see `jostle list studies`), or `all` of them.

    A study of your own is named by the path of its folder: ./studies/ID.

    What is not in the store is run. Then every number and claim of the paper stands beside ours:
    in a table here, and with the paper's figures on one HTML page per study.
    """
    from jostle.studies import Runs, evaluate
    from jostle.studies.document import document

    studies = [_load(name, python=python) for name in _ids(ids)]
    make_folder(output)
    made = {
        name: environment.backend(name, _options_of(name, chosen_of(given)))
        for name in dict.fromkeys(backends)
    }
    results = _carry_out(studies, made, repeats, jobs, store_path)
    words = {**chosen_of(given), "repeats": repeats, "python": python}
    done = []
    for one in studies:
        runs = {name: Runs(one, every.get(one.id, {})) for name, every in results.items()}
        evaluations = {name: evaluate(each) for name, each in runs.items()}
        done.append((one, evaluations))
        path = _write(one, runs, evaluations, Path(output), _command(one, backends, words))
        if not as_json:
            _print(one, evaluations)
        echo(f"page: {path}", err=as_json)
    if as_json:
        echo(json.dumps(document(done), ensure_ascii=False, allow_nan=False))
    failed = any(
        each.failures
        for by_study in results.values()
        for by_experiment in by_study.values()
        for each in by_experiment.values()
    )
    return 1 if failed else 0


def _options_of(backend: str, chosen: Mapping[str, str | None]) -> dict[str, str | None]:
    """Leave out what was chosen for other backends."""
    return {option.name: chosen[option.name] for option in BACKENDS[backend].options}


def _ids(ids: Sequence[str]) -> list[str]:
    from jostle.studies import names

    if "all" not in ids:
        return list(dict.fromkeys(ids))
    known = names()
    if not known:
        raise InputError("jostle was installed without studies: name one by its folder")
    return known


def _load(name: str, *, python: bool) -> Study:
    """Read a study that comes with jostle, or one whose folder was given as a path."""
    from jostle.scenario import ScenarioError
    from jostle.studies import INSTALLED, load

    by_path = "/" in name or name in (".", "..")
    here = Path("studies", name)
    try:
        if by_path:
            # `.` has no name of its own.
            folder = Path(name) if Path(name).name not in ("", "..") else Path(name).resolve()
            return load(folder.name, folder.parent, python=python)
        return load(name, INSTALLED, python=python)
    except ScenarioError as error:
        raise InputError(str(error)) from error
    except InputError as error:
        if by_path:
            raise InputError(f"{error} (looked for {Path(name) / 'study.toml'})") from error
        if not here.is_dir():
            raise
        raise InputError(f"{error}; for the one in this folder, write ./{here}") from error


def _carry_out(
    studies: Sequence[Study],
    backends: Mapping[str, Backend],
    repeats: int | None,
    jobs: int | None,
    store_path: str,
) -> dict[str, dict[str, dict[str, ResultSet]]]:
    """Carry out all that the studies need, with progress: results by backend and study."""
    from jostle.cli.signals import orderly_interruption
    from jostle.results import conditions
    from jostle.running.executors import local
    from jostle.running.progress import on_stderr
    from jostle.running.session import Session
    from jostle.running.store import Store
    from jostle.studies.carry_out import carry_out, work_of

    store = Store(store_path, warn=lambda text: echo(f"warning: {text}", err=True))
    executor = local(jobs)
    work = {
        name: [one for each in studies for one in work_of(each, backend, repeats)]
        for name, backend in backends.items()
    }
    total = sum(len(each) for each in work.values())
    told = 0

    def runner(backend: Backend) -> Callable[[Work], ResultSet]:
        session = Session(backend, executor, store)

        def run(one: Work) -> ResultSet:
            nonlocal told
            told += 1
            echo(
                f"[{told}/{total}] {one.study}: {one.experiment} ({backend.name}, "
                f"{len(one.plan.runs)} runs)",
                err=True,
            )
            for refusal in one.left_out:
                first = str(refusal.error()).splitlines()[0]
                echo(f"  not on the {backend.name} backend: {first}", err=True)
            return session.carry_out(one.plan, on_stderr(conditions.labels(one.plan.conditions)))

        return run

    with orderly_interruption() as interruption:
        try:
            return {
                name: carry_out(work[name], runner(backend)) for name, backend in backends.items()
            }
        except InterruptedRunError as error:
            error.exit_status = interruption.exit_status
            raise
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


def _write(
    one: Study,
    runs: Mapping[str, Runs],
    evaluations: Mapping[str, Evaluation],
    folder: Path,
    command: Sequence[str],
) -> Path:
    """Write the page of a study, and its figures beside it."""
    from jostle.figures.save import replace_file
    from jostle.studies.page import Provenance, page

    pictures = _pictures(one, runs, evaluations, folder / one.id)
    provenance = {
        name: Provenance(
            next((r.backend_version for r in each.results.values()), "–"),
            [
                (experiment, results.labels[r.condition], r.seed, r.run.run_id)
                for experiment, results in each.results.items()
                for r in results.results
            ],
        )
        for name, each in runs.items()
    }
    path = folder / f"{one.id}.html"
    replace_file(path, page(one, evaluations, pictures, provenance, command).encode())
    return path


def _pictures(
    one: Study, runs: Mapping[str, Runs], evaluations: Mapping[str, Evaluation], folder: Path
) -> list[Picture]:
    from jostle.figures.save import save, to_bytes
    from jostle.studies.figures import drawn, figure_data
    from jostle.studies.findings import findings
    from jostle.studies.page import Picture

    said = {
        name: {each.figure: each.text for each in findings(one.file, evaluation)}
        for name, evaluation in evaluations.items()
    }
    pictures = []
    for spec in one.file.figures:
        for backend, each in runs.items():
            data = figure_data(each, spec)
            if data is None:
                continue
            figure = drawn(data)
            stem = spec.id if len(runs) == 1 else f"{spec.id}-{backend}"
            save(figure, folder / stem, ("png", "pdf"))
            svg = to_bytes(figure, "svg")
            finding = said[backend].get(spec.id, "")
            pictures.append(Picture(spec.id, spec.caption, backend, svg, finding))
    return pictures


def _print(one: Study, evaluations: Mapping[str, Evaluation]) -> None:
    from rich.table import Table

    from jostle.cli import output
    from jostle.studies.document import TITLES, claim_rows, number_rows, ranking_rows
    from jostle.studies.findings import findings
    from jostle.studies.page import score

    to = output.console()
    to.print(one.file.title, style="bold")
    for make in (number_rows, ranking_rows, claim_rows):
        header, rows = make(evaluations)
        if rows:
            table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
            for name in header:
                table.add_column(name, no_wrap=name == "holds", overflow="fold")
            for row in rows:
                table.add_row(*row)
            to.print(table)
            to.print()
    for name, evaluation in evaluations.items():
        for finding in findings(one.file, evaluation):
            of = f" ({TITLES[name]})" if len(evaluations) > 1 else ""
            to.print(f"{finding.caption}{of}", style="bold")
            to.print(finding.text)
            to.print()
        if evaluation.claims:
            held, judged = score(evaluation.claims)
            to.print(f"{held} of {judged} claims hold ({TITLES[name]}).", style="bold")


def _command(one: Study, backends: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    from jostle.studies import INSTALLED

    installed = one.folder.parent == INSTALLED
    folder = one.folder if one.folder.is_absolute() else f"./{one.folder}"
    words = ["jostle", "study", one.id if installed else str(folder)]
    for backend in backends:
        words += ["--backend", backend]
    return [*words, *options_as_given(given)]
