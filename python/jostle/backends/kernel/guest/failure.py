"""How the guest program tells what went wrong."""

from __future__ import annotations

PREFIX = "jostle-guest: "
"""Begins the line of output that says why a job failed."""


class GuestFailure(Exception):  # noqa: N818 (its text is a message)
    """The job cannot be carried out; the text says why."""


def report(message: str) -> int:
    """Say on one line why the job failed; return the exit status for it."""
    print(f"{PREFIX}{' '.join(message.split())}", flush=True)
    return 1
