"""Start of a guest program."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

from .failure import GuestFailure, report


def many_files() -> None:
    """Raise the limit of open files to the maximum, for sockets."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def guarded(main: Callable[[Path], None], folder: Path) -> int:
    """Run a guest program with the folder of its job; return the status of the process."""
    try:
        main(folder)
    except GuestFailure as failure:
        return report(str(failure))
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return report(f"{named}{error.strerror or error}")
    except Exception:
        import traceback  # A large module, which no successful run needs.

        traceback.print_exc()
        return report("a bug, see above")
    return 0
