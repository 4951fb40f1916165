"""`jostle run`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.detaching import DETACH, DETACHED, KeepsWords, Swept, command_of, detach
from jostle.cli.environment import Environment
from jostle.cli.folders import make_folder, make_folder_of
from jostle.cli.options import (
    chosen_of,
    json_option,
    options_of_a_report,
    overrides_of,
    plan_options,
)
from jostle.cli.signals import interruptible
from jostle.cli.tables import (
    Shown,
    formats_option,
    frame_of,
    shown_of,
    table_options,
    write_frame,
)
from jostle.errors import InputError, brief, name_source, unknown
from jostle.printable import echo, single_line

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.running.progress import Progress
    from jostle.running.segments.content import Keep
    from jostle.running.session import Session
    from jostle.running.shards import Shard
    from jostle.running.store import Store
    from jostle.running.sweeps.recording import Recording
    from jostle.scenario import Plan


@click.command(cls=KeepsWords, short_help="Run scenarios and show who gets how much.")
@plan_options
@json_option
@click.option("--figures", "figures", metavar="DIR", help="Draw every figure into this folder.")
@click.option(
    "--keep",
    type=click.Choice(["series", "summary"]),
    default="series",
    show_default=True,
    help="What the store keeps of each run: everything, or its measures alone.",
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Carry out one of N equal parts of the runs, from 1/N to N/N, and show nothing: for "
    "commands that share a store.",
)
@click.option(
    "--executor",
    metavar="WHERE",
    default="local",
    show_default=True,
    help="Where runs are carried out: local, threads; processes; dask, its processes on this "
    "machine; dask=ADDRESS, workers of its scheduler there; slurm or pbs, --jobs workers of Dask "
    "that this queue starts.",
)
@click.option(
    DETACH,
    "away",
    is_flag=True,
    help="Go on in a process that outlives this shell: see `jostle sweep`.",
)
@click.option(DETACHED, "detached", is_flag=True, hidden=True)
@formats_option
@click.option("--report", "report", metavar="HTML", help="Write a self-contained report.")
@click.option("--phase", "phases", metavar="NAME", multiple=True, help="Show this phase alone.")
@table_options
@click.pass_obj
def run(
    environment: Environment,
    /,
    *,
    as_json: bool,
    figures: str | None,
    formats: tuple[str, ...],
    keep: Keep,
    report: str | None,
    phases: tuple[str, ...],
    shard: str | None,
    away: bool,
    detached: bool,
    **options: Any,
) -> int:
    """Run each scenario FILE and show throughput, RTT, retransmissions and fairness per phase.

    Finished runs are kept in the store and never run again: an interrupted command goes on where
    it was when it is given again.
    """
    shown = shown_of(options)
    into = {suffix: options.pop(suffix) for suffix in ("csv", "parquet")}
    part = None if shard is None else _shard_of(shard, no_cache=options["no_cache"])
    if part is not None and (as_json or figures or report or any(into.values())):
        raise InputError("--shard: what is shown is of all runs; ask for it without --shard")
    plans = plan_files(environment, **options)
    # What is wrong is told now, not after an hour of running.
    if keep == "summary" and (figures or report):
        raise InputError("--keep summary: figures and reports are drawn from series")
    _check_phases(plans, phases)
    _check_keys(plans, shown)
    for file in into.values():
        make_folder_of(file if file != "-" else None)
    make_folder(figures)
    make_folder_of(report)
    sweep = None
    if not options["no_cache"]:
        sweep = Swept(command_of(options["files"], options["store_path"]), detached)
    if away:
        if sweep is None:
            raise InputError("--detach: its runs are kept in the store; leave out --no-cache")
        return detach(sweep.command, store_of(options["store_path"]).root)
    every = carry_out(environment, plans, **options, keep=keep, shard=part, sweep=sweep)
    if part is not None:
        return _told_of_shard(part, every)
    from jostle.cli import output

    if as_json:
        documents = [results.to_dict(phases) for results in every]
        whole = documents[0] if len(documents) == 1 else documents
        echo(json.dumps(whole, ensure_ascii=False, allow_nan=False))
    written = write_frame(lambda: frame_of(every, shown, phases, options["files"]), into)
    quiet = as_json or written
    for results in every:
        if not quiet:
            _print(results, shown, phases)
        output.print_notes(results, err=quiet)
        output.print_captures(results, err=quiet)
    if figures is not None:
        into_folders = _folders(options["files"], Path(figures))
        _draw(every, into_folders, formats, jobs=options["jobs"], quiet=quiet)
    if report is not None:
        from jostle.report import write_report

        words = options_of_a_report(options)
        path = write_report(every, report, options["files"], words)
        echo(f"report: {path}", err=quiet)
    return 1 if any(results.failures for results in every) else 0


def _shard_of(text: str, *, no_cache: bool) -> Shard:
    from jostle.running.shards import Shard

    if no_cache:
        raise InputError("--shard: its runs are kept in the store; leave out --no-cache")
    return Shard.parse(text)


def _told_of_shard(shard: Shard, every: Sequence[ResultSet]) -> int:
    """Say how much of each scenario was the shard's, and return the exit status."""
    for results in every:
        failed = len(results.failures)
        title = f"{single_line(results.title)}: " if results.title else ""
        stored = len(results.results)
        echo(f"{title}shard {shard}: {stored} of {stored + failed} runs are in the store")
    return 1 if any(results.failures for results in every) else 0


def _print(results: ResultSet, shown: Shown, phases: Sequence[str]) -> None:
    from jostle.cli import output

    if shown.pivot is None:
        output.print_results(results, phases, shown.view(output.width()))
    else:
        output.print_pivot(results, *shown.pivot, shown, phases)


def carry_out(
    environment: Environment,
    plans: Sequence[Plan],
    *,
    backend: str,
    jobs: int | None,
    store_path: str,
    no_cache: bool,
    keep: Keep = "series",
    shard: Shard | None = None,
    executor: str = "local",
    sweep: Swept | None = None,
    **given: Any,
) -> list[ResultSet]:
    """Carry out every plan, with progress on stderr."""
    made = environment.backend(backend, chosen_of(given))
    (every,) = carry_out_with(
        [(made, plans)],
        jobs,
        store_path,
        no_cache=no_cache,
        keep=keep,
        shard=shard,
        where=executor,
        sweep=sweep,
    )
    return every


def carry_out_with(
    work: Sequence[tuple[Backend, Sequence[Plan]]],
    jobs: int | None,
    store_path: str,
    *,
    no_cache: bool,
    keep: Keep = "series",
    shard: Shard | None = None,
    where: str = "local",
    sweep: Swept | None = None,
) -> list[list[ResultSet]]:
    """Carry out plans by several backends, with progress on stderr; results by backend.

    A `sweep` is of one backend.
    """
    from jostle.running.executors import make
    from jostle.running.session import Session
    from jostle.running.shared_store import is_url

    if where != "local" and not is_url(store_path):
        # Other processes have folders of their own to be in.
        store_path = str(Path(store_path).absolute())
    store = None if no_cache else store_of(store_path)
    for plan in (plan for _, plans in work for plan in plans) if store is None else ():
        with name_source(plan.source):
            if any(planned.spec.get("capture") for planned in plan.one_of_each()):
                raise InputError("capture: its files are kept in the store; leave out --no-cache")
    executor = make(where, jobs, warn)
    with contextlib.ExitStack() as stack:
        stack.enter_context(interruptible(executor))
        # What a backend cannot do is told now, not after an hour of running.
        sessions = _possible(
            [(Session(backend, executor, store, keep, shard=shard), of) for backend, of in work]
        )
        recording = None
        if sweep is not None and store is not None:
            recording = stack.enter_context(sweep.record(store, sessions[0][1], shard))
        return [
            [session.carry_out(*one) for one in _shown(plans, recording)]
            for session, plans in sessions
        ]


def _shown(plans: Sequence[Plan], recording: Recording | None) -> Iterator[tuple[Plan, Progress]]:
    """Plans, and what tells how each goes: on stderr, and in the store if that is recorded."""
    from jostle.results import conditions
    from jostle.running.progress import on_stderr

    for position, plan in enumerate(plans):
        shown = on_stderr(conditions.labels(plan.conditions))
        yield plan, shown if recording is None else recording.progress(position, shown)


def _possible(
    sessions: Sequence[tuple[Session, Sequence[Plan]]],
) -> list[tuple[Session, list[Plan]]]:
    """Leave out the conditions of a grid that a backend cannot do, and say so.

    A scenario of which nothing is left is an error.
    """
    from jostle.running.session import Refusal, refusals

    left: list[tuple[Session, list[Plan]]] = [(session, []) for session, _ in sessions]
    for plans in zip(*(plans for _, plans in sessions), strict=True):
        refused: dict[int, Refusal] = {}
        for (session, _), plan in zip(sessions, plans, strict=True):
            refused |= refusals(plan, session.backend)
        if len(refused) == len(plans[0].conditions):
            with name_source(plans[0].source):
                raise refused[min(refused)].error()
        for position in sorted(refused):
            echo(f"left out: {refused[position].error()}", err=True)
        for (_, kept), plan in zip(left, plans, strict=True):
            kept.append(plan.without(refused))
    return left


def plan_files(
    environment: Environment,
    *,
    files: Sequence[str],
    repeats: int | None,
    seed: int | None,
    settings: Sequence[str],
    allow_code: bool,
    jittered: bool = False,
    **_run_options: Any,
) -> list[Plan]:
    """Load and plan every file; what is wrong with any of them is told at once.

    With `jittered`, flows start at other times in every run; see `Scenario.jittered`.
    """
    overrides = overrides_of(settings)
    from jostle.scenario import ScenarioError

    plans: list[Plan] = []
    errors = []
    for file in files:
        try:
            loaded = environment.load_scenario(file, overrides, allow_code=allow_code)
            planned = loaded.jittered() if jittered else loaded
            plans.append(planned.plan(repeats=repeats, seed=seed))
        except ScenarioError as error:
            errors.append(str(error))
        except ValueError as error:  # The seeds leave their range.
            errors.append(f"{file}: {error}")
    if errors:
        raise InputError("\n\n".join(errors))
    for plan in plans:
        for note in plan.notes:
            echo(single_line(f"note: {note}"), err=True)
    return plans


def _check_phases(plans: Sequence[Plan], names: Sequence[str]) -> None:
    for plan in plans:
        known = [phase["name"] for planned in plan.runs[:1] for phase in planned.spec["phases"]]
        for name in names:
            if name not in known:
                raise InputError(f"{plan.source}: {unknown('phase', name, known)}")


def _check_keys(plans: Sequence[Plan], shown: Shown) -> None:
    """See that what is sorted by and pivoted over is there."""
    from jostle.results.measures import measures
    from jostle.results.samples import find_key

    key = shown.view(None).sort
    wanted = [*(shown.pivot or ()), *([key] if key and key not in measures() else [])]
    for plan in plans:
        with name_source(plan.source):
            for name in wanted:
                find_key(plan.conditions, name)


def store_of(path: str) -> Store:
    """Open a store; what it warns of goes to stderr."""
    from jostle.running.shared_store import open_store

    return open_store(path, warn=warn)


def warn(text: object) -> None:
    """Print a warning on stderr."""
    echo(brief(f"warning: {text}"), err=True)


def _draw(
    every: Sequence[ResultSet],
    folders: Sequence[Path],
    formats: Sequence[str],
    *,
    jobs: int | None,
    quiet: bool,
) -> None:
    from jostle.results import pictures

    for results, into in zip(every, folders, strict=True):
        if not results.results:
            continue
        for path in pictures.save_all(
            results, into, formats or ("png",), jobs or os.cpu_count() or 1
        ):
            echo(f"figure: {path}", err=quiet)


def _folders(files: Sequence[str], folder: Path) -> list[Path]:
    """One folder per scenario, told apart by number where file names are the same."""
    if len(files) == 1:
        return [folder]
    stems = [Path(file).stem for file in files]
    return [
        folder / (stem if stems.count(stem) == 1 else f"{stem}-{number}")
        for number, stem in enumerate(stems, start=1)
    ]
