"""Conditions that share parts are what they are when each is resolved alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jostle.backends import SimBackend
from jostle.errors import InputError
from jostle.runner.session import refusals
from jostle.scenario import Scenario, ScenarioError, load
from jostle.scenario.models import ScenarioFile
from jostle.scenario.parsing.problems import Report
from jostle.scenario.resolve.parts_cache import PartsCache, exact_key

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path.relative_to(ROOT)
    for folder in ("scenarios", "studies", "suites", "tests")
    for path in (ROOT / folder).rglob("*.toml")
)
SCENARIO = """
duration = "5 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "a"
controller = { name = "cubic", slow_start = "standard" }
rtt = "40 ms"
[[flows]]
name = "b"
controller = "reno"
rtt = "20 ms"
count = 2
"""
VALUES: dict[str, list[Any]] = {
    "duration": ["5 s", "6 s", "30 ms"],
    "bottleneck.rate": ["10 Mbit/s", "5 Mbit/s", [["0 s", "5 Mbit/s"], ["2 s", "20 Mbit/s"]]],
    "bottleneck.delay": ["0 ms", "5 ms", "25 ms"],
    "bottleneck.loss": ["1 %", {"kind": "gilbert_elliott", "good_to_bad": 0.1, "bad_to_good": 0.5}],
    "bottleneck.queue": ["codel", {"kind": "drop_tail", "limit": "1 BDP"}, "fq_codel", "none"],
    "bottleneck.queue.limit": ["1 BDP", "100 packets", "1 B"],
    "flows.a.rtt": ["40 ms", "60 ms", "2 s"],
    "flows.*.rtt": ["30 ms", "50 ms"],
    "flows.a.controller": ["cubic", "bbr", {"name": "cubic", "hystart": False}, "unknown"],
    "flows.a.controller.beta": [717, 700.5, True, 1],
    "flows.a.start": ["0 s", "1 s", "5500 ms"],
    "flows.a.ecn": [True, False],
    "flows.a.linux_version": ["6.1", "4.15"],
    "flows.a.receive_window": ["1 BDP", "64 kB"],
    "flows.a.transport": ["tcp", "quic", "udp"],
    "flows.a.source": [{"kind": "ping"}, {"kind": "fixed", "size": "1 MB"}],
    "flows.b.count": [0, 1, 3],
    "flows.b.linux_version": ["6.1", "4.15"],
    "flows.b.after": ["a", "b"],
    "flows.b.proxy": ["none", {"controller": "bbr", "buffer": "1 BDP", "link": "bottleneck"}],
    "flows.b.class": ["default", "a"],
}


@contextmanager
def nothing_kept() -> Iterator[None]:
    """Resolve every part of every condition anew."""

    def once(
        _cache: PartsCache, _key: Any, _report: Report, make: Callable[[], Any], *, keep: Any = None
    ) -> Any:
        del keep
        return make()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartsCache, "once", once)
        patch.setattr(
            PartsCache, "validated", lambda _cache, document: ScenarioFile.model_validate(document)
        )
        yield


def outcome(read: Callable[[], Scenario]) -> Any:
    """Return all conditions with the specifications of their runs, or the error."""
    try:
        scenario = read()
    except ScenarioError as error:
        return str(error)
    except InputError as error:
        return repr(error)
    plan = scenario.plan(repeats=2, seed=7)
    return [
        (str(plan.conditions[planned.condition]), planned.seed, planned.spec)
        for planned in plan.runs
    ]


@pytest.mark.parametrize("file", FILES, ids=str)
def test_every_file_has_the_same_runs_without_the_cache(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    fast = outcome(lambda: load(file, allow_code=True))
    with nothing_kept():
        assert outcome(lambda: load(file, allow_code=True)) == fast


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3, unique=True).flatmap(
        lambda keys: st.fixed_dictionaries(
            {
                key: st.lists(st.sampled_from(VALUES[key]), min_size=1, max_size=3, unique_by=str)
                for key in keys
            }
        )
    )
)
@example({"duration": ["5 s", "6 s"], "flows.a.linux_version": ["6.1", "4.15"]})
@example({"duration": ["5 s", "2 s"], "flows.a.start": ["1 s", "3 s"]})
@example({"bottleneck.rate": ["10 Mbit/s", "5 Mbit/s"], "flows.*.rtt": ["30 ms", "50 ms"]})
def test_every_grid_has_the_same_runs_and_problems_without_the_cache(
    grid: dict[str, list[Any]],
) -> None:
    def read() -> Scenario:
        return Scenario.from_toml(SCENARIO).set({"grid": grid})

    fast = outcome(read)
    with nothing_kept():
        assert outcome(read) == fast


def test_values_that_python_calls_equal_have_different_keys() -> None:
    values = [1, 1.0, True, "1", [1], [1.0], {"a": 1, "b": 2}, {"b": 2, "a": 1}]
    assert len({exact_key(value) for value in values}) == len(values)
    assert exact_key({"a": [1, "b"]}) == exact_key({"a": [1, "".join(["b"])]})
    assert exact_key(object()) is None


def test_a_part_with_a_problem_is_resolved_and_reported_again() -> None:
    cache, report = PartsCache(), Report()

    def make() -> int:
        report.add(("key",), "wrong")
        return 1

    assert [cache.once("part", report, make) for _ in range(2)] == [1, 1]
    assert len(report.found) == 2


def test_runs_that_the_engine_has_accepted_are_the_ones_that_it_accepts() -> None:
    plan = Scenario.from_toml(SCENARIO).set({"grid": {"flows.a.rtt": ["30 ms", "50 ms"]}}).plan()
    asked: list[object] = []

    class Backend(SimBackend):
        def _check_by_engine(self, spec: Any) -> None:
            asked.append(spec)
            super()._check_by_engine(spec)

    assert all(planned.accepted for planned in plan.runs)
    assert refusals(plan, Backend()) == {}
    assert not asked
    jittered = Scenario.from_toml(SCENARIO).set({"flows.a.start_jitter": "1 s"})
    assert all(planned.accepted for planned in jittered.plan().runs)
    # The second copy starts 4.5 s to 5.5 s after the first one, which the engine refuses at 5 s.
    late = {"flows.b.one_at_a_time": "4500 ms", "flows.b.size": "1 MB"}
    plan = jittered.set({**late, "flows.b.start_jitter": "1 s"}).plan()
    assert not any(planned.accepted for planned in plan.runs)
    refusals(plan, Backend())
    assert len(asked) == 1
