"""Every public function has an example, and it runs."""

from __future__ import annotations

import doctest
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jostle
import jostle.stats
import pytest

ROOT = Path(__file__).parents[1]


def public() -> Iterator[tuple[str, Any]]:
    """Functions of the packages, and methods of the two classes, that users are offered."""
    for module in (jostle, jostle.stats):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isfunction(found):
                yield f"{module.__name__}.{name}", found
    for owner in (jostle.Scenario, jostle.ResultSet):
        for name, found in inspect.getmembers(owner):
            offered = inspect.isfunction(found) or inspect.ismethod(found)
            if offered and not name.startswith("_") and name not in WITHIN:
                yield f"{owner.__name__}.{name}", found


WITHIN = {
    "with_start_jitter", "with_runs_from", "runs_of", "phases_of", "flow_names", "link_names",
    "condition_series", "condition_links", "condition_index", "spec_of", "incomplete",
}  # fmt: skip
"""Methods that the package itself uses."""
PUBLIC = dict(public())


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = inspect.unwrap(PUBLIC[name])
    monkeypatch.chdir(ROOT)
    (example,) = doctest.DocTestFinder(recurse=False).find(found, name, globs={})
    assert example.examples, f"{name} has no example"
    told: list[str] = []
    doctest.DocTestRunner().run(example, out=told.append)
    assert told == [], "".join(told)


def test_the_notebook_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads((ROOT / "examples/own_cubic.ipynb").read_text("utf-8"))["cells"]
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert '"repeats": 5' in codes[1]
    codes[1] = codes[1].replace('"repeats": 5', '"repeats": 2').replace("40 s", "20 s")
    known: dict[str, Any] = {}
    for code in codes[:-1]:
        exec(code, known)
    figure = eval(codes[-1], known)
    assert len(figure.axes[0].lines) == 4
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 12
    assert all("Mbit/s, rtt" in line for line in told)
