"""Fixtures of the scenario tests.

The registry is the engine's as it was when these tests were written: they are about the format and
must not change when an algorithm gains a parameter. `test_engine.py` uses the real one.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jostle import _core
from jostle.scenario import Registry, Scenario, load_text

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "registry.json").read_text())

BASE = """
title = "base"
duration = "10 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "first"
controller = "cubic"
rtt = "40 ms"
[[flows]]
name = "second"
controller = "reno"
rtt = "80 ms"
"""


@pytest.fixture(scope="session")
def run_spec_schema() -> dict[str, Any]:
    return RECORDED["run_spec_schema"]


@pytest.fixture(scope="session")
def registry() -> Registry:
    # Bounds are those of the engine that is installed.
    return Registry.from_json(json.dumps(RECORDED["registry"]), find_problem=_core.find_problem)


@pytest.fixture
def read(registry: Registry) -> Callable[..., Scenario]:
    """Read BASE with some texts replaced and some appended."""

    def read(*pairs: tuple[str, str], add: str = "", **overrides: Any) -> Scenario:
        text = BASE
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new, 1)
        return load_text(text + add, registry=registry, **overrides)

    return read
