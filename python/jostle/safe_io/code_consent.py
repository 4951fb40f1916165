"""Gate for foreign code: every program and module that a file names must pass it.

A reader of files calls `require_consent` when it finds a name of code, before it reads or starts
anything, and then `admit`. Before code runs, it is looked up by `admitted`. Code that passed no
reader therefore cannot run, even if a run specification comes from another source. Workers receive
the admitted code together with their jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from jostle.errors import JostleError

__all__ = [
    "ALLOW_CODE", "CODE_SOURCES", "CodeSource", "ConsentError", "ForeignCode", "Rule", "admit",
    "admit_all", "admitted", "require_consent",
]  # fmt: skip

ALLOW_CODE: Final = "--allow-code"
"""Option of all commands that can run foreign code."""


class Rule(StrEnum):
    """Rule whether code named by a file can run."""

    CONSENT = "with `--allow-code`"
    NEVER = "never"


@dataclass(frozen=True)
class CodeSource:
    """A place where a file could name code.

    Attributes
    ----------
    name
        Name of its test.
    file
        Kind of file.
    code
        The code that could run.
    rule
        Whether it can run.
    """

    name: str
    file: str
    code: str
    rule: Rule


CODE_SOURCES: Final = (
    CodeSource("python-controller", "a scenario", "a class of a Python module", Rule.CONSENT),
    CodeSource("kernel-module", "a scenario", "a controller inside a kernel", Rule.CONSENT),
    CodeSource("crate", "a scenario", "a crate in Rust, with its build script", Rule.CONSENT),
    CodeSource("quic-programs", "a scenario", "the programs of `implementation`", Rule.CONSENT),
    CodeSource("recipe-words", "a scenario", "a bundled recipe with other arguments", Rule.CONSENT),
    CodeSource("grid", "a scenario", "code that a value of a grid names", Rule.CONSENT),
    CodeSource(
        "tune", "a scenario of `jostle search tune`", "code that the scenario names", Rule.CONSENT
    ),
    CodeSource(
        "boundary",
        "a scenario of `jostle search boundary`",
        "code that the scenario names",
        Rule.CONSENT,
    ),
    CodeSource("fit", "a scenario of `jostle fit`", "code that the scenario names", Rule.CONSENT),
    CodeSource(
        "advise", "a scenario of `jostle advise`", "code that the scenario names", Rule.CONSENT
    ),
    CodeSource("study", "a study", "code that its scenarios name", Rule.CONSENT),
    CodeSource(
        "coverage", "a study of `jostle study coverage`", "code that it names", Rule.CONSENT
    ),
    CodeSource("setup", "a study", "code that its changes of scenarios name", Rule.CONSENT),
    CodeSource("suite", "a suite", "code that its scenarios name", Rule.CONSENT),
    CodeSource("subject", "a suite", "a Python module as the controller to judge", Rule.CONSENT),
    CodeSource(
        "resumed-sweep", "your own record of a sweep", "code that its scenarios name", Rule.CONSENT
    ),
    CodeSource("stored-sweep", "a store", "the command of a sweep that it shows", Rule.NEVER),
    CodeSource(
        "stored-run", "a store", "code that the specification of a stored run names", Rule.NEVER
    ),
    CodeSource("stored-plan", "a store", "code that a stored plan names", Rule.NEVER),
    CodeSource("policy", "a policy of a learned controller", "pickled objects", Rule.NEVER),
    CodeSource("remy-table", "a table of Remy", "pickled objects", Rule.NEVER),
    CodeSource("graph", "a graph of a network", "expressions in its values", Rule.NEVER),
    CodeSource(
        "trace", "a trace of a link or of an application", "expressions in its values", Rule.NEVER
    ),
    CodeSource("capture", "a capture or a log", "expressions in its values", Rule.NEVER),
    CodeSource(
        "claim-file", "a claim of `jostle search boundary`", "expressions in its values", Rule.NEVER
    ),
    CodeSource("distribution", "a distribution of sizes", "expressions in its values", Rule.NEVER),
    CodeSource(
        "workload", "a list of arrivals and their sizes", "expressions in its values", Rule.NEVER
    ),
    CodeSource("template", "a scenario", "code of a template in its texts", Rule.NEVER),
    CodeSource(
        "byte-code",
        "files next to a Python controller",
        "byte code, extensions and packages in its place",
        Rule.NEVER,
    ),
    CodeSource("quic-recipe", "implementations.toml in the current folder", "programs", Rule.NEVER),
    CodeSource(
        "environment", ".env in the current folder", "programs that variables name", Rule.NEVER
    ),
    CodeSource(
        "settings",
        "settings of libraries and programs in the current folder",
        "expressions and programs",
        Rule.NEVER,
    ),
    CodeSource(
        "installed-module",
        "a Python module in the current folder",
        "the module in place of an installed one",
        Rule.NEVER,
    ),
    CodeSource(
        "network-file", "NETWORK.toml of `jostle exec`", "the commands of hosts", Rule.CONSENT
    ),
    CodeSource("link-file", "LINK.toml of `jostle link emulate`", "a program", Rule.NEVER),
)
"""All places where a file could name code. `tests/test_foreign_code.py` tests each of them."""


class ForeignCode(Protocol):
    """Code that is not part of jostle, with everything that it executes. It can be pickled."""

    def digest(self) -> str:
        """Return the hash by which a run specification identifies the code."""


class ConsentError(JostleError):
    """A file names code that the user has not allowed to run."""

    exit_status = 2


_LONGEST_CODE: Final = 1_500
"""Maximum length of a code description. Longer error lines are shortened in the middle."""
_SHOWN: Final = 200

_admitted: dict[str, ForeignCode] = {}


def require_consent(code: str, *, allow_code: bool) -> None:
    """Raise an error unless the user has allowed the code.

    Parameters
    ----------
    code
        Description of the code: "the class Mine of /home/…/mine.py".
    allow_code
        Whether the user allows this file to name code, which runs with the user's rights.

    Raises
    ------
    ConsentError
        If the user has not allowed it; the message names the code and the option. Also if the
        description is too long to be shown completely.
    """
    # Without this, a line feed inside `code` would look like a new line of output.
    code = code.replace("\n", "\\u000a")
    if len(code) > _LONGEST_CODE:
        raise ConsentError(
            f"would run code with {len(code)} characters: {code[:_SHOWN]} … — write at most "
            f"{_LONGEST_CODE}, and the rest into a script"
        )
    if not allow_code:
        raise ConsentError(
            f"would run {code} — if you trust it, add {ALLOW_CODE} (allow_code=True in Python)"
        )


def admit(code: ForeignCode) -> str:
    """Allow code to run in this process, and return its digest; call `require_consent` first."""
    digest = code.digest()
    _admitted[digest] = code
    return digest


def admit_all(codes: Iterable[ForeignCode]) -> None:
    """Allow code that another process of this user has admitted, by its digest in this process."""
    for code in codes:
        admit(code)


def admitted(digest: str) -> ForeignCode | None:
    """Return the code of a digest; None if it was not admitted in this process."""
    return _admitted.get(digest)
