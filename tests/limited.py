"""Commands in processes of their own, within limits of processor time and memory."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

CPU_S = 4
"""What is refused takes about one second, and twice that on a core that others use as well."""
MEMORY_BYTES = 200 * 10**6

SOUND = """
duration = "10 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "100 packets" }
[[flows]]
name = "a"
controller = "cubic"
rtt = "40 ms"
"""


def _warm() -> None:
    """Import and build all that any command needs: the limits are for what comes after."""
    import jostle.cli.run
    import jostle.cli.study_run
    import jostle.emulate.link_file
    import jostle.results.tables  # noqa: F401
    import polars  # noqa: F401
    import scipy.stats  # noqa: F401
    from jostle.scenario import load_text

    assert load_text(SOUND).plan().runs[0].seed == 1


def _limit(cpu_s: int, memory_bytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))


def _run(
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    cpu_s: int,
    memory_bytes: int,
) -> None:
    """Be the command; never return."""
    from jostle.cli import status

    code = 70
    try:
        os.environ.update(environment)
        os.chdir(folder)
        output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        _limit(cpu_s, memory_bytes)
        code = status(argv)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _serve(pipe: Connection) -> None:
    _warm()
    while (request := pipe.recv()) is not None:
        child = os.fork()
        if child == 0:
            _run(*request)
        pipe.send(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


class Limited:
    """Runs commands, each in a process that was forked from one which has all it needs."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def __call__(
        self,
        argv: Sequence[str],
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        cpu_s: int = CPU_S,
        memory_bytes: int = MEMORY_BYTES,
    ) -> tuple[int, str]:
        """Run a command in `folder`; its exit status (negative for a signal), and what it said."""
        self._pipe.send((list(argv), folder, environment or {}, cpu_s, memory_bytes))
        code: int = self._pipe.recv()
        return code, (folder / "output").read_text("utf-8")

    def close(self) -> None:
        """End the process."""
        self._pipe.send(None)
        self._process.join()
