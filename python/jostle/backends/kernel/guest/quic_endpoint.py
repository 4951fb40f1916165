"""One end of a flow over jostle's own QUIC: a process in its host that runs the engine.

usage: python -m guest.quic_endpoint ENGINE JOB
"""

from __future__ import annotations

import sys
from pathlib import Path

from .clock import fine_timers
from .engine import load_engine

COMPLETED = "completed "
"""Prefix of the output line with the time, in ns of the run, at which all data was acknowledged."""


def main(engine: str, job: str) -> str | None:
    """Run a job; return the reason if it failed."""
    fine_timers()
    core = load_engine(engine)
    try:
        core.quic_end(Path(job).read_text(), lambda at_ns: print(f"{COMPLETED}{at_ns}", flush=True))
    except (OSError, RuntimeError, ValueError) as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
