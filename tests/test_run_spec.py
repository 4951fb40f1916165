"""The types of a run's specification are those of its schema."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "crates/run-spec/schema/run-spec.json"
TYPES = ROOT / "python/jostle/run_spec.py"
HEADER = (
    '"""A run\'s specification as Python sees it: its schema in types.\n\n'
    'Written by `JOSTLE_BLESS=1 pytest tests/test_run_spec.py`.\n"""'
)


def with_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Name the variants of a type after their kind, or else after their only key.

    The source `on_off` is an `OnOffSource`, a queue limit in bytes a `BytesQueueLimit`.
    """
    for name, definition in schema["$defs"].items():
        for variant in definition.get("oneOf", ()):
            if keys := variant.get("properties"):
                kind = keys["kind"]["const"] if "kind" in keys else next(iter(keys))
                words = kind.title().replace("_", "")
                variant["title"] = words + name.removesuffix("Spec").removesuffix("Kind")
    return schema


def generated() -> str:
    """Return the types as datamodel-code-generator and ruff write them."""
    generate = [
        *(sys.executable, "-m", "datamodel_code_generator"),
        *("--input-file-type", "jsonschema", "--use-title-as-name"),
        *("--output-model-type", "typing.TypedDict", "--target-python-version", "3.11"),
        *("--formatters", "builtin", "--custom-file-header", HEADER),
        "--use-standard-collections",
        "--use-union-operator",
        "--use-schema-description",
        "--use-single-line-docstring",
        "--no-use-closed-typed-dict",
    ]
    schema = json.dumps(with_titles(json.loads(SCHEMA.read_text())))
    made = subprocess.run(generate, input=schema, capture_output=True, text=True, check=True)
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TYPES), "-"]
    done = subprocess.run(
        ruff, input=made.stdout, capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout


def test_the_types_are_those_of_the_schema() -> None:
    text = generated()
    if os.environ.get("JOSTLE_BLESS"):
        TYPES.write_text(text)
    assert TYPES.read_text() == text
