"""Runs every controller of the registry in the simulator, over QUIC and inside Linux.

    python tools/results/record_stacks.py [CONTROLLER ...]

Each controller runs alone, and next to one flow of `cubic` of the same stack. The link has 50
Mbit/s, an RTT of 40 ms and a drop-tail buffer of one BDP. A run takes 30 s; the first five do not
count. The script writes `docs/results/data/three-stacks.json` and `three-stacks.inc`; with names of
controllers, only their rows are renewed. Linux runs jostle's code for all of them
(`--backend kernel:jostle`), and if Linux has the controller, its module too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jostle
from jostle import _core
from jostle.backends import create
from jostle.backends.base import Backend
from jostle.errors import InputError

DATA: Final = Path(__file__).parents[2] / "docs" / "results" / "data"
SCENARIO: Final[Mapping[str, Any]] = {
    "duration": "30 s",
    "phases": {"measured": ["5 s", "30 s"]},
    "bottleneck": {"rate": "50 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
}
MARKING: Final = {"kind": "codel"}
"""Queue for controllers that need ECN, and for their neighbours."""
STACKS: Final = ("simulator", "QUIC", "Linux", "module")
"""The last is Linux's own module, for the controllers that it has."""
TOLERANCE: Final = {"goodput": 0.05, "queue_ms": 3.0, "share": 0.1}
"""Differences from the simulator up to these are not marked: the first is relative."""
Cells = dict[str, dict[str, float | None] | str]


def main(names: Sequence[str]) -> None:
    """Run the controllers, and write the results."""
    rows = {row["name"]: row for row in json.loads(_core.registry())["controllers"]}
    path = DATA / "three-stacks.json"
    known: dict[str, Cells] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    backends = {
        "simulator": create("sim"), "QUIC": create("sim"),
        "Linux": create("kernel", controllers="jostle"), "module": create("kernel"),
    }  # fmt: skip
    for name in names or rows:
        known[name] = {
            stack: measured(rows[name], stack, backends[stack])
            for stack in STACKS
            if stack != "module" or has_module(name)
        }
        print(name, json.dumps(known[name]), flush=True)
        text = json.dumps({key: known[key] for key in rows if key in known}, indent=1)
        path.write_text(text + "\n", "utf-8")
    ordered = {key: known[key] for key in rows if key in known}
    path.with_suffix(".inc").write_text("\n".join(table(ordered)) + "\n", "utf-8")


def has_module(name: str) -> bool:
    """Return whether Linux has the controller."""
    from jostle.backends.kernel.controllers import NAMES

    return name in NAMES


def measured(row: Mapping[str, Any], stack: str, backend: Backend) -> dict[str, Any] | str:
    """Return the measures of a controller on a stack, or why it cannot run there."""
    try:
        alone = run(scenario(row, stack, ()), backend)
        pair = run(scenario(row, stack, ("cubic",)), backend)
    except InputError as error:
        return str(error).splitlines()[-1].strip()
    goodputs = [flow["goodput_bps"] for flow in pair["flows"]]
    return {
        "goodput": round(alone["flows"][0]["goodput_bps"] / 1e6, 2),
        "queue_ms": round(alone["links"][0]["queue_delay_estimate_mean_s"] * 1e3, 2),
        "share": round(goodputs[0] / sum(goodputs), 3),
    }


def scenario(row: Mapping[str, Any], stack: str, others: Sequence[str]) -> dict[str, Any]:
    """Return the scenario of a controller, with flows of other controllers."""
    flow = {"rtt": "40 ms"}
    bottleneck = dict(SCENARIO["bottleneck"])
    if stack == "QUIC":
        flow["transport"] = "quic"
    if row["needs_ecn"]:
        flow["ecn"] = True
        bottleneck["queue"] = MARKING
    names = [row["name"], *others]
    flows = [{"name": f"flow {i}", "controller": name, **flow} for i, name in enumerate(names)]
    return {**SCENARIO, "bottleneck": bottleneck, "flows": flows}


def run(text: Mapping[str, Any], backend: Backend) -> dict[str, Any]:
    """Return the measures of the phase of one run."""
    spec = jostle.Scenario.from_dict(text).plan(repeats=1).runs[0].spec
    backend.check(spec)
    summary = backend.run(spec).summary
    return {
        kind: [entry["phases"]["measured"] for entry in summary[kind]]
        for kind in ("flows", "links")
    }


def table(rows: Mapping[str, Cells]) -> Iterator[str]:
    """Yield the lines of the table."""
    heads = [
        f"{what} sim" if stack == "sim" else stack
        for what in ("Mbit/s", "ms", "share")
        for stack in ("sim", *STACKS[1:3])
    ]
    yield "| | " + " | ".join(heads) + " |"
    yield "| --- |" + " ---: |" * len(heads)
    for name, cells in rows.items():
        found = [cell(cells, stack, key) for key in TOLERANCE for stack in STACKS[:3]]
        yield f"| `{name}` | " + " | ".join(found) + " |"
    yield ""
    for stack in STACKS[1:3]:
        values = [cell(cells, stack, key) for cells in rows.values() for key in TOLERANCE]
        marked = sum(value.startswith("**") for value in values)
        compared = len(values) - values.count("–")
        yield f"- {stack}: {marked} of {compared} values differ from the simulator by more."


def cell(cells: Cells, stack: str, key: str) -> str:
    """Return a value, in bold if it differs from the simulator."""
    ours, base = cells[stack], cells["simulator"]
    if isinstance(ours, str) or isinstance(base, str):
        return "–"
    value, expected = ours[key], base[key]
    assert value is not None
    assert expected is not None
    limit = TOLERANCE[key] * (expected if key == "goodput" else 1.0)
    text = {"goodput": "{:.1f}", "queue_ms": "{:.1f}", "share": "{:.2f}"}[key].format(value)
    return f"**{text}**" if abs(value - expected) > limit else text


if __name__ == "__main__":
    main(sys.argv[1:])
