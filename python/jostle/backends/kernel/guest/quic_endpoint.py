"""One end of a flow over jostle's own QUIC: a process in its host that runs the engine.

usage: python -m guest.quic_endpoint ENGINE JOB
"""

from __future__ import annotations

import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from .clock import fine_timers

COMPLETED = "completed "
"""Prefix of the output line with the time, in ns of the run, at which all data was acknowledged."""


def main(engine: str, job: str) -> str | None:
    """Run a job; return the reason if it failed."""
    fine_timers()
    # Loaded by its path, because jostle's dependencies are not installed in the guest's Python.
    found = spec_from_file_location("_core", engine, loader=ExtensionFileLoader("_core", engine))
    assert found is not None
    assert found.loader is not None
    core = module_from_spec(found)
    found.loader.exec_module(core)
    try:
        core.quic_end(Path(job).read_text(), lambda at_ns: print(f"{COMPLETED}{at_ns}", flush=True))
    except (OSError, RuntimeError, ValueError) as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
