"""The gate for foreign code: every program and every module that a file names passes here.

A reader of files calls `require_consent` where it finds a name of code, before it reads or starts
anything, and `admit` with what it has found. Whatever runs code asks for it by `admitted`, so code
that passed no reader cannot run, wherever a run's specification comes from. Workers get what was
admitted together with their jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from jostle.errors import JostleError

__all__ = [
    "ALLOW_CODE", "WAYS", "ConsentError", "ForeignCode", "Rule", "Way", "admit", "admit_all",
    "admitted", "require_consent",
]  # fmt: skip

ALLOW_CODE: Final = "--allow-code"
"""The option of every command that can run foreign code."""


class Rule(StrEnum):
    """What it takes to run code that a file names."""

    CONSENT = "only with --allow-code"
    NEVER = "never"


@dataclass(frozen=True)
class Way:
    """A way from a file to code.

    Attributes
    ----------
    name
        What its test is called.
    file
        Kind of file.
    code
        What could run.
    rule
        What it takes.
    """

    name: str
    file: str
    code: str
    rule: Rule


WAYS: Final = (
    Way("python-controller", "a scenario", "a class of a Python module", Rule.CONSENT),
    Way("quic-programs", "a scenario", "the programs of `implementation`", Rule.CONSENT),
    Way("recipe-words", "a scenario", "a bundled recipe with other arguments", Rule.CONSENT),
    Way("grid", "a scenario", "what a value of a grid names", Rule.CONSENT),
    Way("tune", "a scenario of `jostle tune`", "what the scenario names", Rule.CONSENT),
    Way("boundary", "a scenario of `jostle boundary`", "what the scenario names", Rule.CONSENT),
    Way("fit", "a scenario of `jostle fit`", "what the scenario names", Rule.CONSENT),
    Way("study", "a study", "what its scenarios name", Rule.CONSENT),
    Way("reading", "a study", "what its changes of scenarios name", Rule.CONSENT),
    Way("suite", "a suite", "what its scenarios name", Rule.CONSENT),
    Way("subject", "a suite", "a Python module as the controller to judge", Rule.CONSENT),
    Way("testbed", "testbed.toml of a study", "what its changes of scenarios name", Rule.CONSENT),
    Way("resumed-sweep", "your own record of a sweep", "what its scenarios name", Rule.CONSENT),
    Way("stored-sweep", "a store", "the command of a sweep that it shows", Rule.NEVER),
    Way("stored-run", "a store", "what the specification of a stored run names", Rule.NEVER),
    Way("stored-plan", "a store", "what a stored plan names", Rule.NEVER),
    Way("kernel-module", "a scenario", "a kernel module as a controller", Rule.NEVER),
    Way("policy", "a policy of a learned controller", "pickled objects", Rule.NEVER),
    Way("remy-table", "a table of Remy", "pickled objects", Rule.NEVER),
    Way("graph", "a graph of a network", "expressions in its values", Rule.NEVER),
    Way("trace", "a trace of a link or of an application", "expressions in its values", Rule.NEVER),
    Way("capture", "a capture or a log", "expressions in its values", Rule.NEVER),
    Way("link-file", "LINK.toml of `jostle emulate`", "a program", Rule.NEVER),
)
"""All ways from a file to code. Each has a test of its name in `tests/test_foreign_code.py`."""


class ForeignCode(Protocol):
    """Code that jostle does not bring along; it pickles."""

    def digest(self) -> str:
        """Return the hash that stands for it in the specification of a run."""


class ConsentError(JostleError):
    """A file names code, and nobody has allowed it to run."""

    exit_status = 2


_admitted: dict[str, ForeignCode] = {}


def require_consent(code: str, *, allow_code: bool) -> None:
    """Refuse code unless the user has allowed it.

    Parameters
    ----------
    code
        What would run, in words: "the class Mine of /home/…/mine.py".
    allow_code
        Whether the user allows this file to name code, which runs with the user's rights.

    Raises
    ------
    ConsentError
        When the user does not; the text names the code and the option.
    """
    if not allow_code:
        raise ConsentError(
            f"would run {code} — if you trust it, add {ALLOW_CODE} (allow_code=True in Python)"
        )


def admit(code: ForeignCode) -> str:
    """Let code run in this process, and return its digest; ask for consent first."""
    digest = code.digest()
    _admitted[digest] = code
    return digest


def admit_all(codes: Mapping[str, ForeignCode]) -> None:
    """Let code run that another process of this user has admitted, by its digest there."""
    for digest, code in codes.items():
        _admitted.setdefault(digest, code)


def admitted(digest: str) -> ForeignCode | None:
    """Return the code of a digest if it may run here."""
    return _admitted.get(digest)
