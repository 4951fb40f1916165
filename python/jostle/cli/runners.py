"""Sequential runs of the experiments of studies and suites, with progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jostle.cli.run import store_of
from jostle.cli.signals import interruptible
from jostle.safe_io.terminal_text import echo, single_line

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.studies.run_study import PlannedExperiment

Runner = Callable[["PlannedExperiment"], "ResultSet"]


@contextmanager
def runners(
    backends: Mapping[str, Backend], total: int, jobs: int | None, store_path: str | None
) -> Iterator[Mapping[str, Runner]]:
    """Yield, for each backend, a function that runs and stores an experiment.

    Parameters
    ----------
    backends
        Backends by name.
    total
        Number of experiments.
    jobs
        Number of parallel runs.
    store_path
        Folder of the store; None for none.
    """
    from jostle.results import condition_names
    from jostle.results.number_format import count
    from jostle.runner.executors import local
    from jostle.runner.progress import on_stderr
    from jostle.runner.session import Session

    store = None if store_path is None else store_of(store_path)
    executor = local(jobs)
    told = 0

    def runner(backend: Backend) -> Runner:
        session = Session(backend, executor, store, checked=True)

        def run(one: PlannedExperiment) -> ResultSet:
            nonlocal told
            told += 1
            # Experiments that are added later exceed the planned total.
            echo(
                f"[{told}/{max(told, total)}] {one} ({backend.name}, {len(one.plan.runs)} runs)",
                err=True,
            )
            for reason, conditions in Counter(refusal.why for refusal in one.left_out).items():
                why = single_line(" ".join(reason.split()))
                echo(f"  left out: {count(conditions, 'condition')}: {why}", err=True)
            return session.carry_out(
                one.plan, on_stderr(condition_names.labels(one.plan.conditions))
            )

        return run

    with interruptible(executor):
        yield {name: runner(backend) for name, backend in backends.items()}
