"""Scenarios with the registries of the engine that is installed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jostle
import jsonschema
import pytest
from jostle import _core
from jostle.scenario import Registry, load, load_text
from jostle.scenario.resolve.nearest_key import nearest_key

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return json.loads(_core.run_spec_schema())


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda p: p.stem)
def test_every_example_loads_and_its_runs_fit_the_schema(
    path: Path, schema: dict[str, Any]
) -> None:
    plan = load(path).plan(repeats=1)
    assert plan.title
    assert len(plan.runs) == len(plan.conditions) >= 1
    validator = jsonschema.Draft202012Validator(schema)
    for run in plan.runs:
        validator.validate(run.spec)
        # What crosses into the engine is this text: NaN or infinity would not survive it.
        assert json.loads(json.dumps(run.spec, allow_nan=False)) == run.spec


def test_the_main_example_is_the_published_one() -> None:
    plan = load(SCENARIOS / "geo-shared.toml").plan()
    assert len(plan.runs) == 50
    labels = [c["flows.newcomer.controller"] for c in plan.conditions]
    assert labels == ["cubic", "bbr", "vivace", "hybla", "cubic without hystart"]
    for run in plan.runs:
        incumbent, newcomer = run.spec["flows"]
        assert incumbent["controller"]["parameters"]["linux"] == "4.15"
        assert incumbent["slow_start"]["parameters"]["linux"] == "4.15"
        assert incumbent["receive_window_bytes"] == newcomer["receive_window_bytes"] == 30_000_000
    assert plan.runs[-1].spec["flows"][1]["slow_start"]["name"] == "standard"
    assert len({run.spec["flows"][1]["start_ns"] for run in plan.runs}) == 10


def test_every_row_of_the_registry_can_be_named(schema: dict[str, Any]) -> None:
    registry = Registry.of_engine()
    validator = jsonschema.Draft202012Validator(schema)
    for name in registry.controllers:
        text = f"""
        duration = "1 s"
        [bottleneck]
        rate = "1 Mbit/s"
        queue = {{ kind = "drop_tail", limit = "1 BDP" }}
        [[flows]]
        name = "x"
        controller = "{name}"
        rtt = "100 ms"
        """
        validator.validate(load_text(text).plan().runs[0].spec)


def test_importing_scenarios_stays_cheap() -> None:
    code = "import sys, jostle.scenario; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "polars", "matplotlib", "scipy", "jostle._core"}
    assert not heavy & set(done.stdout.split())


@pytest.mark.parametrize(
    ("path", "known"),
    [
        (("flows", 0, "proxy", "from"), 3),
        (("flows", 0, "arrivals", "load_link"), 4),
        (("flows", 0, "group"), 2),
        (("flows", 0, "source", "size", "max"), 5),
        (("flows", 0, "source", "size", "points"), 4),
        (("flows", 0, "controller", "beta"), 4),
        (("bottleneck", "queue", "classes", "calls", "queue", "limit"), 6),
        (("links", 1, "faults", "packets", "number"), 4),
        (("phases", "steady"), 2),
        (("phases", "steady", "end"), 2),
        (("measured", 0, "name"), 0),
    ],
)
def test_an_error_of_the_engine_names_a_key_of_the_format(
    path: tuple[str | int, ...], known: int
) -> None:
    assert nearest_key(path) == path[:known]


@pytest.mark.parametrize("mtu_bytes", [576, 1500, 9000])
def test_goodput_is_what_headers_leave_of_the_link(mtu_bytes: int) -> None:
    """52 bytes of every packet are headers that its MTU counts, and 14 more are on the wire."""
    results = jostle.run(
        load_text(f"""
        duration = "300 ms"
        [phases]
        late = ["200 ms", "300 ms"]
        [bottleneck]
        rate = "10 Gbit/s"
        queue = {{ kind = "drop_tail", limit = "2 BDP" }}
        [[flows]]
        name = "one"
        controller = "cubic"
        rtt = "1 ms"
        mtu = "{mtu_bytes} B"
        """)
    )
    (flow,) = results.to_dict()["conditions"][0]["runs"][0]["flows"]
    goodput_bps = flow["phases"]["late"]["goodput_bps"]
    assert goodput_bps == pytest.approx(10e9 * (mtu_bytes - 52) / (mtu_bytes + 14), rel=0.002)
