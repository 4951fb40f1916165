"""Loads a module of the user, and writes which congestion controllers it registers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from . import network
from .failure import GuestFailure, report


def main(folder: Path) -> int:
    """Load the module of the job in `folder`; return the status of the process."""
    job = json.loads((folder / "job.json").read_bytes())
    before = network.available_controllers()
    try:
        network.load_controllers(job["own_modules"], folder)
    except GuestFailure as failure:
        return report(str(failure))
    added = sorted(set(network.available_controllers()) - set(before))
    (folder / "events.json").write_text(json.dumps({"controllers": added}))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
