"""How many runs go out at once, and how many jobs."""

from __future__ import annotations

import pytest
from jostle.runner.batch_size import BatchSizer


def test_nothing_is_known_at_first() -> None:
    pace = BatchSizer()
    assert (pace.runs_of_a_job(10_000), pace.ahead) == (1, 32)


def test_short_runs_go_out_together() -> None:
    pace = BatchSizer()
    pace.ended(1, 0.01)
    assert pace.runs_of_a_job(100_000) == 50
    pace.ended(50, 0.5)
    assert pace.ahead == 34
    # The last are divided among all who may be there.
    assert pace.runs_of_a_job(640) == 10
    assert pace.runs_of_a_job(3) == 1


@pytest.mark.parametrize("workers", [1, 40, 1000])
def test_every_worker_has_a_job_and_another(workers: int) -> None:
    pace = BatchSizer(workers)
    assert pace.ahead >= 2 * workers
    for _ in range(5000):
        pace.ended(1, 60.0)
    assert pace.ahead == max(1024, 2 * workers)
    assert pace.runs_of_a_job(100_000) == 1


def test_a_thousand_workers_get_longer_jobs() -> None:
    few, many = BatchSizer(4), BatchSizer(1000)
    for pace in (few, many):
        pace.ended(1, 0.01)
    assert few.runs_of_a_job(1_000_000) == 50
    # 1,000 jobs of 2.5 s are 400 in a second, half of what a scheduler can do.
    assert many.runs_of_a_job(1_000_000) == 250
    assert many.runs_of_a_job(10_000) == 10


def test_slow_storing_makes_jobs_longer_and_not_shorter() -> None:
    # As on a disk where a sync takes seconds: jobs had ever fewer runs, each of which was synced.
    pace = BatchSizer(2)
    for _ in range(30):
        pace.ended(pace.runs_of_a_job(10**6), pace.runs_of_a_job(10**6) * 0.01, storing_s=5.0)
    assert pace.runs_of_a_job(10**6) == 500
    quick = BatchSizer(2)
    for _ in range(30):
        quick.ended(50, 50 * 0.01, storing_s=0.05)
    assert quick.runs_of_a_job(10**6) == 50
    # A job of a killed worker is lost whole: it lasts ten seconds for that, and no longer.
    long = BatchSizer(2)
    long.ended(1, 1.0, storing_s=60.0)
    assert long.runs_of_a_job(10**6) == 10
