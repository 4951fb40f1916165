"""The command line. Commands import what they need when they run: `--help` is instant."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from jostle.cli.advise import advise
from jostle.cli.analyze import analyze
from jostle.cli.boundary import boundary
from jostle.cli.compare import compare
from jostle.cli.completing import completion
from jostle.cli.conformance import conformance
from jostle.cli.emulate import emulate
from jostle.cli.environment import Environment
from jostle.cli.fit import fit
from jostle.cli.identify import identify
from jostle.cli.kernel import kernel
from jostle.cli.measure import measure
from jostle.cli.new import new
from jostle.cli.plot import plot
from jostle.cli.quic import quic
from jostle.cli.report import report
from jostle.cli.run import run
from jostle.cli.scorecard import scorecard
from jostle.cli.sensitivity import sensitivity
from jostle.cli.show import explain, list_, schema
from jostle.cli.store import store
from jostle.cli.study import study
from jostle.cli.suite import suite
from jostle.cli.sweep import sweep
from jostle.cli.testbed import testbed
from jostle.cli.trace import trace
from jostle.cli.tune import tune
from jostle.cli.validate import validate
from jostle.cli.view import view
from jostle.errors import JostleError, brief
from jostle.matplotlib_settings import use_packaged_settings
from jostle.printable import echo

__all__ = ["cli", "main", "status"]

INTERRUPTED = 130
READ_NO_MORE = 128 + 13
"""As shells report a program that SIGPIPE (13, which Windows has not) ended."""


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from importlib import metadata

    echo(f"jostle {metadata.version('jostle')}")
    context.exit()


_ROOMS: Final[dict[str, tuple[click.Command, ...]]] = {
    "Run": (new, run, sweep, plot, report, view, compare),
    "Ask where, which and why": (sensitivity, boundary, tune),
    "Hold against others": (study, testbed, suite, scorecard, validate, conformance),
    "Begin with a real network": (measure, analyze, fit, identify, advise, trace, emulate),
    "Look up and look after": (list_, explain, schema, store, kernel, quic, completion),
}
"""Commands as the help shows them: by what somebody wants."""


class _Rooms(click.Group):
    """Commands under the headings of `_ROOMS`, in that order."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list per heading, all with the same columns."""
        names = self.list_commands(ctx)
        width = max(map(len, names))
        for heading, commands in _ROOMS.items():
            with formatter.section(heading):
                room = formatter.width - width - 6
                formatter.write_dl(
                    [(f"{one.name:<{width}}", one.get_short_help_str(room)) for one in commands]
                )


@click.group(cls=_Rooms, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Run a congestion-control laboratory: one scenario, every stack, honest numbers.

    Exit status: 0 done, 1 a run failed, 2 the input is wrong, 130 interrupted.
    """


for _commands in _ROOMS.values():
    for _command in _commands:
        cli.add_command(_command)


def main() -> None:
    """Entry point of the `jostle` command."""
    use_packaged_settings()
    for stream in (sys.stdout, sys.stderr):
        # Windows gives pipes the user's code page, which lacks characters of tables and titles.
        if sys.platform == "win32" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    sys.exit(status(sys.argv[1:]))


def status(arguments: Sequence[str], environment: Environment | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments
        Without the name of the program.
    environment
        What commands work with; the compiled engine if absent.
    """
    try:
        result = cli.main(
            list(arguments),
            prog_name="jostle",
            standalone_mode=False,
            obj=environment or Environment(),
        )
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except JostleError as error:
        echo(brief(f"error: {error}"), err=True)
        return error.exit_status
    except (KeyboardInterrupt, click.Abort):
        echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        return _read_no_more()
    except SystemExit as end:
        # click and rich end so when a pipe breaks.
        if isinstance(end.__context__, BrokenPipeError):
            return _read_no_more()
        raise
    return result if isinstance(result, int) else 0


def _read_no_more() -> int:
    """End quietly: whoever read our output has seen enough."""
    # The interpreter flushes both at exit, and would complain.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    return READ_NO_MORE
