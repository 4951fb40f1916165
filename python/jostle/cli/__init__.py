"""The command line. Commands import their dependencies when they run, to keep `--help` fast."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from jostle.cli.advise import advise
from jostle.cli.analyze import analyze
from jostle.cli.compare import compare
from jostle.cli.environment import Environment
from jostle.cli.exec import exec_
from jostle.cli.fit import fit
from jostle.cli.groups import info, link, search, setup, study, suite
from jostle.cli.identify import identify
from jostle.cli.measure import measure
from jostle.cli.new import new
from jostle.cli.plot import plot
from jostle.cli.renamed import RenamingGroup, check_words, renamed_option
from jostle.cli.run import run
from jostle.cli.store import store
from jostle.cli.sweep import sweep
from jostle.cli.validate import validate
from jostle.cli.view import view
from jostle.errors import InputError, JostleError, brief
from jostle.safe_io.broken_pipe import PipeStream, pipe_streams
from jostle.safe_io.matplotlib_settings import use_packaged_settings
from jostle.safe_io.terminal_text import echo

__all__ = ["cli", "main", "status"]

INTERRUPTED = 130
BROKEN_PIPE_STATUS = 128 + 13
"""Exit status that shells report for a program ended by SIGPIPE (13; absent on Windows)."""


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from importlib import metadata

    from jostle.cli.setup import version_lines

    echo(f"jostle {metadata.version('jostle')}")
    for line in version_lines():
        echo(line)
    context.exit()


_SECTIONS: Final[dict[str, tuple[click.Command, ...]]] = {
    "Run": (new, run, sweep, exec_, plot, view),
    "Analyze": (compare, validate, search),
    "Compare with references": (study, suite),
    "Real networks": (measure, analyze, identify, fit, advise, link),
    "Reference": (info, store, setup),
}
"""Commands by the headings of the help."""

_START: Final = """\
Start with these three commands:

  jostle new home-router --controller cubic --controller bbr
  jostle run home-router.toml -o report.html
  jostle info list controllers

`jostle --help` lists all commands."""


class _CommandSections(RenamingGroup):
    """A command group that lists its commands under the headings of `_SECTIONS`."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list per heading, all with the same columns."""
        width = max(map(len, self.commands))
        for heading, commands in _SECTIONS.items():
            with formatter.section(heading):
                left = formatter.width - width - 6
                formatter.write_dl(
                    [
                        (f"{command.name:<{width}}", command.get_short_help_str(left))
                        for command in commands
                    ]
                )


@click.group(
    cls=_CommandSections,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the versions of jostle, engine, kernels and QUIC implementations, and exit.",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Run congestion-control experiments in a simulator or on the Linux TCP stack.

    Exit status: 0 success, 1 a run failed, 2 invalid input, 130 interrupted.

    Example: jostle run scenarios/first.toml
    """
    if context.invoked_subcommand is None:
        echo(_START)


for _commands in _SECTIONS.values():
    for _command in _commands:
        cli.add_command(_command)


def main() -> None:
    """Entry point of the `jostle` command."""
    # Otherwise pydantic reads the metadata of every installed package for its plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Otherwise each processor gets a thread for matrices, which waits for work by polling.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Imports make many objects that live until the end; searching them for cycles takes time.
    gc.set_threshold(20_000)
    use_packaged_settings()
    # Python has no object for a stream that is closed.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # Code pages of Windows and the encodings of some locales lack characters of the output.
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8")
    sys.exit(status(sys.argv[1:]))


def status(arguments: Sequence[str], environment: Environment | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments
        Arguments without the name of the program.
    environment
        Dependencies of the commands; by default the compiled engine.
    """
    with pipe_streams() as streams:
        try:
            result = _status(arguments, environment, streams)
        except BrokenPipeError:
            result = BROKEN_PIPE_STATUS
    return _read_no_more() if any(stream.is_broken for stream in streams) else result


def _status(
    arguments: Sequence[str], environment: Environment | None, streams: Sequence[PipeStream]
) -> int:
    try:
        check_words(arguments)
        result = cli.main(
            list(arguments),
            prog_name="jostle",
            standalone_mode=False,
            obj=environment or Environment(),
        )
        sys.stdout.flush()
    except click.ClickException as error:
        if hint := renamed_option(error):
            echo(f"error: {hint}", err=True)
        else:
            error.show()
        return error.exit_code
    except JostleError as error:
        echo(brief(f"error: {error}"), err=True)
        return error.exit_status
    except (KeyboardInterrupt, click.Abort):
        echo("interrupted", err=True)
        return INTERRUPTED
    except OSError as error:
        return _unwritten(error)
    except SystemExit:
        # click and rich exit like this if a pipe breaks.
        if any(stream.is_broken for stream in streams):
            return BROKEN_PIPE_STATUS
        raise
    return result if isinstance(result, int) else 0


def _unwritten(error: OSError) -> int:
    """Return the exit status if it is the output that cannot be written."""
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE_STATUS
    # Commands name the files that they cannot write.
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO) or error.filename:
        raise error
    _read_no_more()
    echo(f"error: cannot write the output: {error.strerror}", err=True)
    return InputError.exit_status


def _read_no_more() -> int:
    """Return the exit status for a closed output pipe, and suppress further output."""
    # Without this, the interpreter would flush both streams at exit and print an error.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    return BROKEN_PIPE_STATUS
