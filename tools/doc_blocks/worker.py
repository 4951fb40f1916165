"""A process that has imported the modules of commands, and runs each command in a child process.

Reads a JSON request per line: `arguments` of `jostle`, `folder`, `environment`, and the files `out`
and `err` of what is printed. Answers with the exit status of the command.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence


def main() -> None:
    """Answer requests until the input ends."""
    from jostle.safe_io.matplotlib_settings import use_packaged_settings

    use_packaged_settings()
    import matplotlib.figure  # noqa: F401
    import polars  # noqa: F401
    import scipy.stats  # noqa: F401
    from jostle.cli import status  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _call(**request)
        _, ended = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(ended), flush=True)


def _call(
    arguments: Sequence[str], folder: str, environment: Mapping[str, str], out: str, err: str
) -> None:
    """Carry out `jostle`, and end this process with its exit status."""
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for path, descriptor in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        from jostle.cli import status

        code = status(arguments)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
