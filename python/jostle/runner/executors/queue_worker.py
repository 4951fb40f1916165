"""Program of a job that a batch queue starts: `dask worker` that others on the node cannot reach.

It has no HTTP server, unless options of the dashboard are passed, and a private folder for
temporary files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import dask
from distributed.cli.dask_worker import main

from jostle.safe_io.scratch_folder import temporary_folder

__all__ = ["PROGRAM", "run"]

PROGRAM = "jostle.runner.executors.queue_worker"
_WITHOUT_HTTP = ("--no-dashboard", "--worker-class", "jostle.runner.executors.dask_servers.Worker")


def run(arguments: Sequence[str]) -> None:
    """Run `dask worker` with these arguments, which ends the process."""
    has_dashboard = any(word.startswith("--dashboard") for word in arguments)
    # Dask imports modules from its folder of temporary files, which is /tmp/dask-scratch-space
    # by default, even if another user made that.
    with (
        temporary_folder("dask") as folder,
        dask.config.set({"temporary-directory": str(folder)}),
    ):
        main([*(() if has_dashboard else _WITHOUT_HTTP), *arguments])


if __name__ == "__main__":
    run(sys.argv[1:])
