"""Failures of the guest program."""

from __future__ import annotations

import shutil

PREFIX = "jostle-guest: "
"""Prefix of the output line with the reason of a failure."""


class GuestFailure(Exception):  # noqa: N818 (its text is a message)
    """The job failed; the message gives the reason."""


def report(message: str) -> int:
    """Print the reason of a failure on one line; return the exit status."""
    print(f"{PREFIX}{' '.join(message.split())}", flush=True)
    return 1


def reason_of(error: Exception) -> str:
    """Return the reason of the first error of the file system."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        # The text of the error, after its number in brackets.
        return str(error.args[0][0][2]).rpartition("] ")[2].partition(": ")[0]
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
