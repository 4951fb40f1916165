"""Failures of the guest program."""

from __future__ import annotations

PREFIX = "jostle-guest: "
"""Prefix of the output line with the reason of a failure."""


class GuestFailure(Exception):  # noqa: N818 (its text is a message)
    """The job failed; the message gives the reason."""


def report(message: str) -> int:
    """Print the reason of a failure on one line; return the exit status."""
    print(f"{PREFIX}{' '.join(message.split())}", flush=True)
    return 1
