"""Records results on Linux for each study, for pages of users who do not run the kernel.

    jostle study run all --backend kernel --json > kernel.json
    python tools/results/record_linux.py kernel.json 2026-11-22

The second argument is the date of the runs. The script writes `studies/ID/linux-points.json` for
every study that measures conformance, and `studies/ID/linux.json` for every study that has claims,
or that has numbers from Linux and does not measure conformance. Recorded runs and values that are
not in the document are kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STUDIES = Path(__file__).parents[2] / "studies"
Rows = Sequence[Mapping[str, Any]]


def main() -> None:
    """Read the document, write the recordings."""
    document = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    for study in document["studies"]:
        folder = STUDIES / study["id"]
        if study["claims"] or (not study["points"] and any_number(study)):
            path = folder / "linux.json"
            before = json.loads(path.read_text("utf-8")) if path.exists() else {}
            new = recording(study, sys.argv[2], before)
            path.write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n", "utf-8")
        if study["points"]:
            path = folder / "linux-points.json"
            before = json.loads(path.read_text("utf-8")) if path.exists() else {}
            path.write_text(points(study, sys.argv[2], before), "utf-8")


def any_number(study: Mapping[str, Any]) -> bool:
    """Return whether the runs gave a number that the study requests."""
    return any(one["ours"] is not None for one in study["numbers"])


def recording(study: Mapping[str, Any], date: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results in a study's document that a page would not compute again."""
    setups = dict(before.get("setups", {}))
    for setup in dict.fromkeys(one["id"] for one in study["setups"]):
        new = of_setup(study, setup) | {"version": study["versions"]["kernel"], "date": date}
        setups[setup] = beside(new, setups[setup]) if setup in setups else new
    return {"schema": "jostle.recorded/2", "setups": setups}


def of_setup(study: Mapping[str, Any], setup: str) -> dict[str, Any]:
    """Return the results of Linux with a setup."""

    def on_linux(rows: Rows) -> dict[str, Any]:
        return {row["id"]: row["setups"].get(setup, {}).get("kernel") for row in rows}

    numbers, claims = on_linux(study["numbers"]), on_linux(study["claims"])
    return {
        "numbers": {
            name: {key: rounded(one[key]) for key in ("ours", "interval", "n", "holds")}
            for name, one in numbers.items()
            if one is not None and one["ours"] is not None
        },
        "claims": {
            name: {
                "parts": [
                    # A claim with failed runs is not judged, and so not recorded.
                    {
                        key: rounded(part[key])
                        for key in ("values", "ours", "interval", "n", "verdict")
                    }
                    for part in one["parts"]
                ],
            }
            for name, one in claims.items()
            if one is not None and one["verdict"] is not None
        },
        "orders": {
            one["id"]: {"ours": one["ours"], "holds": one["holds"]}
            for one in study["rankings"]
            if one["holds"] is not None and setup == study["setups"][0]["id"]
        },
    }


def beside(new: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Add earlier values that the new recording does not have, with both versions."""
    tables = ("numbers", "claims", "orders")
    merged = {name: dict(before.get(name, {})) | dict(new[name]) for name in tables}
    if all(merged[name].keys() == new[name].keys() for name in tables):
        return dict(new)
    return dict(new) | merged | {"version": versions(before["version"], new["version"])}


def points(study: Mapping[str, Any], date: str, before: Mapping[str, Any]) -> str:
    """Return the operating points, a line for each flow of a run.

    QUIC runs on Linux take long and are recorded a few at a time, so earlier runs that are not in
    the document are kept.
    """
    kept = {run_of(one): one for one in before.get("runs", ())}
    new = {run_of(one): one for one in study["points"]}
    version = study["versions"]["kernel"]
    if kept.keys() - new.keys():
        version = versions(before["version"], version)
    head = {"schema": "jostle.points/1", "version": version, "date": date}
    runs = ",\n".join(
        json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in (kept | new).values()
    )
    return json.dumps(head, ensure_ascii=False)[:-1] + f', "runs": [\n{runs}\n]}}\n'


def run_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the key of operating points: flow, phase and run."""
    labels = json.dumps(row["condition"], sort_keys=True)
    return row["experiment"], labels, row["flow"], row["phase"], str(row["seed"])


def versions(before: str, new: str) -> str:
    """Join both versions without duplicates."""
    return ", ".join(dict.fromkeys([*before.split(", "), new]))


def rounded(value: Any) -> Any:
    """Round a number to six digits; a page shows three or four."""
    match value:
        case bool() | None | str():
            return value
        case list():
            return [rounded(one) for one in value]
        case _:
            return float(f"{value:.6g}")


if __name__ == "__main__":
    main()
