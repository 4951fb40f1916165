"""Executors of others: what comes of runs is the same, byte by byte, wherever they were."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

import jostle
import loky
import polars as pl
import pytest

SCENARIO = {
    "duration": "1 s",
    "sampling_interval": "100 ms",
    "repeats": 3,
    "bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "flows": [{"name": "one", "controller": "cubic", "rtt": "30 ms", "start_jitter": "9 ms"}],
    "grid": {"flows.one.controller": ["cubic", "reno", "bbr"]},
}


@pytest.fixture(scope="module", params=["processes", "loky"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "loky":
        # Not the reusable one of the process, which would outlive the tests.
        pool: Executor = loky.ProcessPoolExecutor(2)
    else:
        pool = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
    yield pool
    pool.shutdown(wait=True)


def tables(store: Path) -> dict[str, str]:
    """Everything in a store, whichever segments it is in."""
    return {
        name: pl.read_parquet(store / "segments" / "*" / f"{name}.parquet")
        .sort("run", maintain_order=True)
        .write_ndjson()
        for name in ("runs", "measures", "flows", "links", "internals")
    }


def test_the_store_is_that_of_threads(executor: Executor, tmp_path: Path) -> None:
    scenario = jostle.Scenario.from_dict(SCENARIO)
    there = jostle.run(scenario, executor=executor, store=tmp_path / "there")
    here = jostle.run(scenario, store=tmp_path / "here")
    assert len(there) == 9
    assert there.to_json() == here.to_json()
    assert tables(tmp_path / "there") == tables(tmp_path / "here")
    plans = [path.read_bytes() for path in tmp_path.glob("*/.plans/*")]
    assert len(plans) == 2
    assert plans[0] == plans[1]


def test_memory_is_that_of_threads(executor: Executor) -> None:
    scenario = jostle.Scenario.from_dict(SCENARIO)
    there = jostle.run(scenario, executor=executor, store=False)
    here = jostle.run(scenario, store=False)
    assert there.to_json() == here.to_json()
    for one, other in zip(there.results, here.results, strict=True):
        assert one.run.flows.equals(other.run.flows)
        assert one.run.links.equals(other.run.links)


def test_it_is_left_open(executor: Executor) -> None:
    jostle.run(jostle.Scenario.from_dict(SCENARIO), executor=executor, store=False, repeats=1)
    assert executor.submit(abs, -3).result(timeout=60) == 3
