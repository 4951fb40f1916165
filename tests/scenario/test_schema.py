import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jostle.scenario import Registry
from jostle.scenario.schema import json_schema

ROOT = Path(__file__).parents[2]
BAD = Path(__file__).parent / "bad"


@pytest.fixture(scope="module")
def validator(registry: Registry) -> Any:
    schema = json_schema(registry)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda p: p.stem)
def test_examples_fit(path: Path, validator: Any) -> None:
    validator.validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize(
    "name",
    [
        "unit-missing",
        "unit-wrong-kind",
        "key-unknown",
        "controller-near-miss",
        "controller-parameter-unknown",
        "controller-parameter-out-of-range",
        "queue-parameter-missing",
        "queue-unknown",
        "profile-unknown",
        "flow-source-unknown",
        "empty",
    ],
)
def test_mistakes_within_one_key_do_not(name: str, validator: Any) -> None:
    assert not validator.is_valid(tomllib.loads((BAD / f"{name}.toml").read_text()))


def test_keys_are_described(registry: Registry) -> None:
    flow = json_schema(registry)["$defs"]["Flow"]["properties"]
    assert flow["rtt"]["description"].startswith("Base RTT of the path")
    assert "default" not in flow["start"]
    assert "null" not in str(flow)
