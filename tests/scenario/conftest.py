"""The engine's registry as it was when these tests were written: they are about the format, and
must not change when an algorithm gains a parameter. `test_engine.py` uses the real one."""

import json
from pathlib import Path

import pytest

from jostle.scenario import Registry

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def run_spec_schema() -> dict:
    return json.loads((HERE / "registry.json").read_text())["run_spec_schema"]


@pytest.fixture(scope="session")
def registry(run_spec_schema: dict) -> Registry:
    rows = json.loads((HERE / "registry.json").read_text())["registry"]
    return Registry.from_json(json.dumps(rows), json.dumps(run_spec_schema))
