"""Earlier names of commands and options; each is refused with a line that says the present one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

import click

from jostle.errors import InputError

COMMANDS: Final[Mapping[str, str]] = {
    "report": "run FILE -o report.html",
    "sensitivity": "search sensitivity",
    "boundary": "search boundary",
    "tune": "search tune",
    "scorecard": "suite scorecard",
    "conformance": "compare --method envelope",
    "trace show": "link show",
    "trace convert": "link convert",
    "trace make": "link generate",
    "trace": "link",
    "emulate": "link emulate",
    "list": "info list",
    "explain": "info explain",
    "schema": "info schema",
    "kernel build": "setup kernel",
    "kernel status": "setup status",
    "kernel": "setup",
    "quic build": "setup quic",
    "quic status": "setup status",
    "quic": "setup",
    "completion": "setup completion",
    "store gc": "store compact",
}
"""Present command by earlier command."""

_FIGURE: Final = {"": "-o FILE.png"}
_FOLDER: Final = {"": "-o DIR/"}
OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "--python": {"": "--allow-code"},
    "--output": {"": "-o FILE"},
    "--out": {"measure": "-o DIR"},
    "--format": {"": "the ending of -o, such as -o FILE.pdf"},
    "--figure": _FIGURE,
    "--figures": _FOLDER,
    "--report": {"validate": "-o FILE.md", "": "-o FILE.html"},
    "--parquet": {"": "-o FILE.parquet"},
    "--csv": {"": "-o FILE.csv"},
    "--junit": {"": "-o FILE.xml"},
    "--log": {"link emulate": "-o FILE.parquet"},
    "--summary": {"link emulate": "-o FILE.json"},
    "--kernel": {"": "--backend kernel:MODE"},
    "--kernel-version": {"": "--backend kernel:VERSION"},
    "--no-cache": {"": "--store none"},
    "--keep": {"run": "--store-level"},
    "--columns": {"": "--measures"},
    "--measure": {"run": "--measures", "analyze": "--measures"},
    "--each": {"": "--per-flow"},
    "--limit": {"": "--max-rows"},
    "--by": {"plot": "--group-by"},
    "--where": {"": "--filter"},
    "--events": {"plot": "--kind events"},
    "--between": {"compare": "--vary KEY=A,B"},
    "--backends": {"compare": "--vary backend=A,B"},
    "--against": {"compare": "--reference-flow"},
    "--test": {"compare": "--method"},
    "--strict": {"validate": "--fail-on tolerance"},
    "--simulator-repeats": {"validate": "--sim-repeats"},
    "--title": {"validate": "`title` in FILE-causes.toml next to -o FILE.md"},
    "-m": {"search sensitivity": "--measure"},
    "--tolerance": {"search boundary": "--resolution"},
    "--param": {"search tune": "--vary"},
    "--hold-out": {"search tune": "--test-condition"},
    "--held-out": {"search tune": "--test-scenario", "fit": "--test-data"},
    "--reading": {"study run": "--setup"},
    "--coverage": {"study run": "study coverage"},
    "--only": {"suite run": "--criterion"},
    "--with": {"measure": "--tool"},
    "--seconds": {"measure": "--duration"},
    "--interval": {"analyze": "--sampling-interval"},
    "--replicas": {"identify": "--repeats"},
    "--to": {"fit": "--data"},
    "--free": {"fit": "--vary"},
    "--guesses": {"fit": "--trials"},
    "--seed": {"fit": "--search-seed"},
    "--seeds": {"advise": "--repeats"},
    "--length": {"advise": "--duration"},
    "--queue": {"advise": "--include-queues"},
    "--no-queue": {"advise": "--exclude-queues"},
    "--pep": {"advise": "--include-proxy"},
    "--step": {"": "--bin"},
    "--like": {"link generate": "--fit"},
    "--stay": {"link generate": "--dwell-time"},
    "--uplink": {"link emulate": "--swap-directions"},
    "--as-root": {"link emulate": "--run-as-root"},
    "--lateness": {"link emulate": "--max-delay-error"},
    "--damaged": {"store compact": "--remove-damaged"},
}
"""Present option by earlier option and command; the empty command means all others."""

_PROGRAM: Final = "jostle"


class RenamingGroup(click.Group):
    """A group that answers an earlier name of a command with the present one.

    Parameters
    ----------
    default
        Command that earlier versions ran for any other word: `jostle study ID`.
    """

    def __init__(self, *args: object, default: str = "", **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in their order."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or refuse its earlier name."""
        before = ctx.command_path.split()[1:]
        for count in (2, 1):
            old = " ".join([*before, *args[:count]])
            if args[0] not in self.commands and old in COMMANDS:
                raise InputError(_hint(f"{_PROGRAM} {old}", f"{_PROGRAM} {COMMANDS[old]}"))
        if self._default and args[0] not in self.commands and not args[0].startswith("-"):
            old = " ".join([_PROGRAM, *before, args[0]])
            raise InputError(_hint(old, " ".join([_PROGRAM, *before, self._default, args[0]])))
        return super().resolve_command(ctx, args)


def check_words(words: Sequence[str]) -> None:
    """Refuse `--csv FILE`, which is a flag now.

    Raises
    ------
    InputError
        If a file follows `--csv`.
    """
    for option, value in itertools.pairwise(words):
        if option == "--":
            return
        if option == "--csv" and value == "-":
            raise InputError(_hint("--csv -", "--csv"))
        if option == "--csv" and value.endswith(".csv"):
            raise InputError(_hint("--csv FILE", OPTIONS["--csv"][""]))


def renamed_option(error: click.ClickException) -> str:
    """Return the message for an earlier option; empty if the option never existed."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    command = " ".join(error.ctx.command_path.split()[1:])
    present = OPTIONS.get(error.option_name, {})
    new = present.get(command) or present.get("", "")
    parameters = error.ctx.command.params
    known = {name for each in parameters for name in (*each.opts, *each.secondary_opts)}
    option = new.split()[0] if new else ""
    if not new or (option.startswith("-") and option not in known):
        return ""
    return _hint(error.option_name, new)


def _hint(old: str, new: str) -> str:
    quoted = new if "`" in new or " of -o" in new else f"`{new}`"
    return f"`{old}` is now {quoted}"
