"""The types of a run's specification are those of its schema."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "crates/run-spec/schema/run-spec.json"
TYPES = ROOT / "python/jostle/run_spec.py"
HEADER = (
    '"""A run\'s specification as Python sees it: its schema in types.\n\n'
    'Written by `JOSTLE_BLESS=1 pytest tests/test_run_spec.py`.\n"""'
)


def generated() -> str:
    """Return the types as datamodel-code-generator and ruff write them."""
    generate = [
        *(sys.executable, "-m", "datamodel_code_generator"),
        *("--input", str(SCHEMA), "--input-file-type", "jsonschema"),
        *("--output-model-type", "typing.TypedDict", "--target-python-version", "3.11"),
        *("--formatters", "builtin", "--custom-file-header", HEADER),
        "--use-standard-collections",
        "--use-union-operator",
        "--use-schema-description",
        "--use-single-line-docstring",
        "--no-use-closed-typed-dict",
    ]
    found = subprocess.run(generate, capture_output=True, text=True, check=True).stdout
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TYPES), "-"]
    done = subprocess.run(ruff, input=found, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout


def test_the_types_are_those_of_the_schema() -> None:
    text = generated()
    if os.environ.get("JOSTLE_BLESS"):
        TYPES.write_text(text)
    assert TYPES.read_text() == text
