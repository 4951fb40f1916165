"""Result of `jostle exec`: a sentence, a document, JUnit XML, and hints on what went wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as Xml

from jostle.backends.kernel.guest.program import how_it_ended
from jostle.programs.network_file import Command, NetworkFile
from jostle.safe_io.terminal_text import escape_control_characters, single_line

if TYPE_CHECKING:
    from jostle.results import ResultSet

__all__ = ["SCHEMA", "CommandOutcome", "LinkCounters", "Outcome", "document", "junit", "verdict"]

SCHEMA: Final = "jostle.exec/1"
"""Name and version of the document."""

_SHOWN_CHARACTERS: Final = 60
_NOT_FOUND: Final = 127

_HINTS: Final = (
    (
        r"resolve|name resolution|name or service not known|no such host|gaierror",
        "the hosts know only each other's names, not those of other networks",
    ),
    (
        r"network is unreachable|no route to host|host unreachable",
        "the hosts reach only each other, not this machine or its networks",
    ),
    (
        r"read-only file system|EROFS",
        "the files of this machine are read-only: write to the current folder or to $TMPDIR",
    ),
    (
        r"no such device|/dev/kvm|cuda|/dev/dri|operation not supported",
        "the guest has no devices of this machine",
    ),
    (
        r"operation not permitted|must be root|EPERM",
        "commands run without root's rights",
    ),
    (
        r"cannot allocate memory|out of memory|MemoryError|no space left",
        "the guest's memory was full: give more with --memory",
    ),
    (
        r"certificate is not yet valid|not yet valid",
        "the hosts' clock starts in November 2023: set it with --date",
    ),
)
"""Pattern in the error output of a command that failed, and what it means here."""


@dataclass(frozen=True)
class CommandOutcome:
    """The outcome of a command.

    Parameters
    ----------
    command
        The command.
    status
        Exit status, negative for a signal; None if it did not end by itself.
    started_s, ended_s
        Times of the run; None if it did not start or end.
    failure
        Reason why a server could not be used.
    ended_early
        Whether a server ended before the other commands.
    stdout, stderr
        Ends of its outputs.
    """

    command: Command
    status: int | None = None
    started_s: float | None = None
    ended_s: float | None = None
    failure: str | None = None
    ended_early: bool = False
    stdout: str = ""
    stderr: str = ""

    @property
    def ok(self) -> bool:
        """Whether the command did what it should: a server may be ended, others end with 0."""
        if self.failure is not None:
            return False
        if self.command.is_server:
            return self.started_s is not None and (not self.ended_early or self.status == 0)
        return self.status == 0

    @property
    def took_s(self) -> float | None:
        """Time from start to end; None if it did not start or end."""
        if self.started_s is None or self.ended_s is None:
            return None
        return self.ended_s - self.started_s

    @property
    def words(self) -> str:
        """Say how the command ended."""
        if self.failure is not None:
            return self.failure
        if self.started_s is None:
            return "was not started"
        if self.command.is_server and not self.ended_early:
            return "was ended after the other commands"
        if self.status is None:
            return "was still running"
        return how_it_ended(self.status)

    @property
    def hint(self) -> str | None:
        """Return what an error probably means here."""
        if self.ok:
            return None
        if self.status == _NOT_FOUND:
            return "no such program on the PATH of this shell"
        said = f"{self.stderr}\n{self.stdout}"
        return next((hint for text, hint in _HINTS if re.search(text, said, re.I)), None)

    @property
    def name(self) -> str:
        """Return the command and its host, on one line."""
        text = single_line(self.command.text)
        if len(text) > _SHOWN_CHARACTERS:
            text = f"{text[: _SHOWN_CHARACTERS - 1]}…"
        return f"`{text}` on {self.command.host}"


@dataclass(frozen=True)
class LinkCounters:
    """Packets that a link sent, dropped from its queue, and lost on its way."""

    name: str
    packets: int
    drops: int
    lost: int


@dataclass(frozen=True)
class Outcome:
    """The result of an execution.

    Parameters
    ----------
    network
        The network with its commands.
    commands
        The outcome of each command.
    virtual_s, wall_s
        Virtual time until the last command ended, and the wall time of the guest.
    limit
        `virtual time` or `wall time` if that limit ended the run.
    links
        Counters of every link; empty if the guest was stopped.
    measured
        Measures of all flows that the hosts' captures show.
    kernel
        Version of the kernel.
    notes
        Remarks for the user.
    unwritten
        Why the outputs could not be written to the folder that keeps them; empty if they were.
    """

    network: NetworkFile
    commands: Sequence[CommandOutcome]
    virtual_s: float
    wall_s: float
    limit: str | None = None
    links: Sequence[LinkCounters] = ()
    measured: ResultSet | None = None
    kernel: str = ""
    notes: Sequence[str] = ()
    unwritten: str = ""

    @property
    def ok(self) -> bool:
        """Whether every command did what it should, within the limits."""
        return self.limit is None and all(command.ok for command in self.commands)


def verdict(outcome: Outcome) -> str:
    """Say in a sentence how the commands ended, and how long they took."""
    took = f"after {outcome.virtual_s:.3f} s of virtual time, {outcome.wall_s:.1f} s of wall time"
    failed = [command for command in outcome.commands if not command.ok]
    if outcome.limit == "wall time":
        return f"STOPPED: the limit of wall time was reached {took}"
    if outcome.limit is not None:
        running = [command.name for command in failed if command.status is None]
        return f"STOPPED: {' and '.join(running)} still ran {took}"
    if not failed:
        own = [command for command in outcome.commands if not command.command.is_server]
        who = own[0].name if len(own) == 1 else f"all {len(own)} commands"
        return f"{who} ended with status 0 {took}"
    first = failed[0]
    more = sum(command.started_s is not None for command in failed[1:])
    others = f", and {more} more failed" if more else ""
    return f"FAILED: {first.name} {first.words}{others} {took}"


def document(outcome: Outcome) -> dict[str, Any]:
    """Return the result as plain data."""
    network = outcome.network
    return {
        "schema": SCHEMA,
        "answer": verdict(outcome),
        "title": network.title,
        "network": network.source,
        "seed": network.seed,
        "kernel": outcome.kernel,
        "ok": outcome.ok,
        "limit": outcome.limit,
        "virtual_s": outcome.virtual_s,
        "wall_s": outcome.wall_s,
        "commands": [_command(command) for command in outcome.commands],
        "links": [vars(link) for link in outcome.links],
        "flows": None if outcome.measured is None else outcome.measured.to_dict(),
        "notes": list(outcome.notes),
    }


def _command(outcome: CommandOutcome) -> dict[str, Any]:
    return {
        "host": outcome.command.host,
        "command": outcome.command.text,
        "server": outcome.command.is_server,
        "ok": outcome.ok,
        "status": outcome.status,
        "ended": outcome.words,
        "hint": outcome.hint,
        "started_s": outcome.started_s,
        "ended_s": outcome.ended_s,
        "stdout": outcome.stdout,
        "stderr": outcome.stderr,
    }


def junit(outcome: Outcome) -> str:
    """Write the result as JUnit XML: a test case for each command."""
    title = escape_control_characters(outcome.network.title)
    root = Xml.Element("testsuites")
    failed = [command for command in outcome.commands if not command.ok]
    suite = Xml.SubElement(
        root,
        "testsuite",
        name=title,
        tests=str(len(outcome.commands)),
        failures=str(len(failed)),
        time=f"{outcome.virtual_s:.6f}",
    )
    for command in outcome.commands:
        case = Xml.SubElement(
            suite,
            "testcase",
            classname=f"{title}.{command.command.host}",
            name=escape_control_characters(command.command.text),
            time=f"{command.took_s or 0.0:.6f}",
        )
        if not command.ok:
            words = "; ".join(filter(None, (command.words, command.hint, *outcome.notes)))
            Xml.SubElement(case, "failure", message=escape_control_characters(words))
        for kind, said in (("system-out", command.stdout), ("system-err", command.stderr)):
            if said:
                Xml.SubElement(case, kind).text = escape_control_characters(said)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
