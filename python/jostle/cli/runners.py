"""Carrying out the experiments of studies and suites, one after the other, with progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jostle.cli.run import store_of
from jostle.cli.signals import interruptible
from jostle.printable import echo

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.studies.carry_out import Work

Runner = Callable[["Work"], "ResultSet"]


@contextmanager
def runners(
    backends: Mapping[str, Backend], total: int, jobs: int | None, store_path: str
) -> Iterator[Mapping[str, Runner]]:
    """Give what carries experiments out by each backend; one that is interrupted is stored so far.

    Parameters
    ----------
    backends
        By name.
    total
        How many experiments there are.
    jobs
        Runs at the same time.
    store_path
        Folder of finished runs.
    """
    from jostle.results import conditions
    from jostle.running.executors import local
    from jostle.running.progress import on_stderr
    from jostle.running.session import Session

    store = store_of(store_path)
    executor = local(jobs)
    told = 0

    def runner(backend: Backend) -> Runner:
        session = Session(backend, executor, store)

        def run(one: Work) -> ResultSet:
            nonlocal told
            told += 1
            # What is looked at again comes on top of what there was to do.
            echo(
                f"[{told}/{max(told, total)}] {one} ({backend.name}, {len(one.plan.runs)} runs)",
                err=True,
            )
            for refusal in one.left_out:
                first = str(refusal.error()).splitlines()[0]
                echo(f"  not on the {backend.name} backend: {first}", err=True)
            return session.carry_out(one.plan, on_stderr(conditions.labels(one.plan.conditions)))

        return run

    with interruptible(executor):
        yield {name: runner(backend) for name, backend in backends.items()}
