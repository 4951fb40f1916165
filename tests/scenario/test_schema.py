import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jostle.scenario import Registry, models
from jostle.scenario.base_model import ScenarioTable
from jostle.scenario.schema import json_schema
from pydantic import BaseModel, ValidationError

ROOT = Path(__file__).parents[2]
BAD = Path(__file__).parent / "bad"


@pytest.fixture(scope="module")
def validator(registry: Registry) -> Any:
    schema = json_schema(registry)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def scenarios() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the scenarios of the repository, and the TOML examples of the documentation."""
    for folder in ("scenarios", "studies", "suites", "examples"):
        for path in sorted((ROOT / folder).rglob("*.toml")):
            document = tomllib.loads(path.read_text("utf-8"))
            if "flows" in document and "duration" in document:
                yield str(path.relative_to(ROOT)), document
    for path in sorted((ROOT / "docs").rglob("*.md")):
        examples = re.findall(r"```toml\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
        for text in (part for example in examples for part in re.split("# or.*:\n", example)):
            document = tomllib.loads(text)
            if isinstance(document.get("flows"), dict):  # [flows.transport]: of the last flow.
                document["flows"] = [document["flows"]]
            first = text.partition("\n")[0]
            name = f"{path.relative_to(ROOT)}: {first}"
            if document.keys() <= set(models.keys_of(models.ScenarioFile)):
                yield name, document
            elif document.keys() <= set(models.keys_of(models.Link)):
                yield name, {"bottleneck": document}
            elif document.keys() <= set(models.keys_of(models.Flow)):
                yield name, {"flows": [document]}


def test_examples_fit() -> None:
    """Examples of the documentation may be parts of a scenario, without its required keys."""
    validator = jsonschema.Draft202012Validator(json_schema())
    wrong = []
    for name, document in scenarios():
        for error in validator.iter_errors(document):
            if not (name.startswith("docs/") and error.validator == "required"):
                wrong.append(f"{name}: {error.json_path}: {error.message}")
    assert wrong == []


SHORT_FORMS = (True, False, 3, "none", "noq", "1 ms", "1 Mbit/s", "10 %")
NAMED_ELSEWHERE = {"controller", "slow_start", "peer_cache", "queue", "profile"}
"""Keys whose names are checked later, with the registries."""


def every_table(table: type[BaseModel] = ScenarioTable) -> Iterator[type[BaseModel]]:
    for each in table.__subclasses__():
        yield each
        yield from every_table(each)


def is_accepted(table: type[BaseModel], key: str, value: Any) -> bool:
    try:
        table.model_validate({key: value})
    except ValidationError as error:
        return all(each["loc"][:1] != (key,) for each in error.errors())
    return True


def test_every_short_form_fits(registry: Registry) -> None:
    """The loader converts a word, a number or a truth value to a table before validation."""
    schema = json_schema(registry)
    tables = {**schema["$defs"], "ScenarioFile": schema}
    words = re.findall(r"'(?:const|propertyName)': '([^']+)'|'enum': \[([^]]+)\]", str(schema))
    kinds = {word for pair in words for text in pair for word in re.findall(r"[a-z][\w.-]+", text)}
    wrong = []
    for table in every_table():
        definition = tables.get(table.__name__, {})
        for key, value in definition.get("properties", {}).items():
            fits = jsonschema.Draft202012Validator({**value, "$defs": schema["$defs"]}).is_valid
            wrong += [
                f"{table.__name__}.{key} = {given!r}"
                for given in (*SHORT_FORMS, *sorted(kinds))
                if key not in NAMED_ELSEWHERE and is_accepted(table, key, given) and not fits(given)
            ]
    assert wrong == []


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
