"""`jostle setup kernel`: builds the kernel that scenarios can run on."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.options import GroupedCommand
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo, escape_control_characters

if TYPE_CHECKING:
    from jostle.kernel_images.build import Request
    from jostle.kernel_images.status import KernelStatus


@click.command(cls=GroupedCommand, short_help="Build the virtual-time kernel.")
@click.option(
    "--version",
    "series",
    metavar="6.1|6.12",
    default="6.1",
    show_default=True,
    help="Build this series.",
)
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Run this many compilers; by default as many as there are cores.",
)
@click.option("--force", is_flag=True, help="Build it again from the start, even if it exists.")
@click.option(
    "--name",
    metavar="NAME",
    help="Name of a kernel with --patch or --source DIR. Run it with --backend kernel:NAME.",
)
@click.option(
    "--patch",
    "patches",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Apply this patch first; several are applied in their order. Needs --name.",
)
@click.option(
    "--source",
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    help="Build this source: a tarball or Debian's package linux-source-…, which needs --sha256, "
    "or a copy of your tree, which needs --name. By default apt-get downloads that package.",
)
@click.option(
    "--sha256",
    metavar="DIGEST",
    help="Check that --source has this SHA-256.",
)
@click.option(
    "--install/--no-install",
    default=None,
    help="Install missing Debian packages as root, or only name them; by default the command asks "
    "on a terminal.",
)
def kernel(
    *,
    series: str,
    jobs: int | None,
    force: bool,
    name: str | None,
    patches: tuple[Path, ...],
    source: Path | None,
    sha256: str | None,
    install: bool | None,
) -> None:
    """Build a Linux kernel with virtual time, from Debian's source or your own.

    Example: jostle setup kernel --install

    The build takes a few minutes and 3 GB of disk. The kernel is stored in the user's cache folder
    after it has booted twice. As root on Debian, missing packages are installed if you allow it. If
    the build is interrupted, the same command continues it.
    """
    from jostle.cli.signals import GOES_ON, orderly_interruption
    from jostle.kernel_images import toolchain
    from jostle.kernel_images.build import Request

    if sha256 is not None and source is None:
        raise InputError("--sha256 is the digest of a --source: apt checks what it downloads")
    tree = source if source is not None and source.is_dir() else None
    archive = source if tree is None else None
    if tree is not None and sha256 is not None:
        raise InputError("--sha256 is the digest of a file, and --source is a folder")
    cores = len(os.sched_getaffinity(0))
    may_update = bool(install) and toolchain.can_install()
    request = Request(
        series, jobs or cores, archive, sha256, force, may_update, name, patches, tree
    )
    with orderly_interruption(GOES_ON):
        _build(request, install)


def _build(request: Request, install: bool | None) -> None:
    from jostle.kernel_images.build import build as carry_out
    from jostle.kernel_images.build import check_request, existing

    check_request(request)
    there = existing(request)
    if there is not None and not request.force:
        echo(f"Linux {there.version} is there already: {there.image.path}")
        echo("(--force builds it anew)", err=True)
        return
    provide_tools(install, also=["patch"] if request.patches else [])
    started_s = time.monotonic()
    with _Progress() as progress:
        done = carry_out(request, progress)
    took_s = time.monotonic() - started_s
    echo(f"Linux {done.version}, built in {took_s / 60:.1f} min: {done.image.path}")
    if done.name is not None:
        for text in done.facts["left_out"]:
            echo(f"left out, because it does not apply to this source: {text}")
        echo(f"run it with --backend kernel:{done.name}, and its controllers as kernel:…")


def provide_tools(install: bool | None, also: Sequence[str] = ()) -> None:
    """Install missing build dependencies, if allowed.

    Parameters
    ----------
    also
        Programs that this build needs in addition to the usual ones.
    """
    from jostle.kernel_images import toolchain

    lacking = toolchain.missing(also)
    if not lacking:
        return
    command = " ".join(toolchain.install_command(lacking))
    if install is None and toolchain.can_install() and sys.stdin.isatty():
        echo(f"not installed: {', '.join(lacking)}", err=True)
        install = click.confirm(f"Run `{command}` now?", default=True, err=True)
    elif install:
        echo(f"installing what is missing: {command}", err=True)
    if not install or not toolchain.can_install():
        hint = "" if install is False or not toolchain.can_install() else ", or add --install"
        raise toolchain.ToolsMissingError(f"{toolchain.missing_message(lacking)}{hint}")
    toolchain.install(lacking, lambda line: echo(f"  {line}", err=True))
    still = toolchain.missing(also)
    if still:
        raise toolchain.ToolsMissingError(toolchain.missing_message(still))


class _Progress:
    """Progress of a build on stderr: a bar on a terminal, else lines."""

    _SHARES = 10

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._told = 0

    def __enter__(self) -> _Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, text: str) -> None:
        """Show the name of a new step."""
        if self._bar is None:
            echo(text, err=True)
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(text, total=None)

    def line(self, text: str) -> None:
        """Show a line of apt-get's output."""
        if self._bar is None:
            echo(f"  {text}", err=True)
        else:
            self._bar.console.print(escape_control_characters(text), markup=False, highlight=False)

    def compiled(self, done: int, expected: int) -> None:
        """Show the compiled share."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=expected)
            return
        share = done * self._SHARES // expected
        if share > self._told:
            self._told = share
            echo(f"  about {100 * share // self._SHARES} % compiled", err=True)


def print_kernels(states: list[KernelStatus]) -> None:
    """Print which kernels are usable here, and how to enable the others."""
    from jostle.cli.output import print_texts
    from jostle.kernel_images.kinds import KINDS

    rows = []
    for state in states:
        version = "" if state.image is None else state.image.version
        told = [state.advice] if state.advice else []
        told += _details(state)
        name = "kernel" if state.kind == KINDS[0] else f"kernel:{state.kind}"
        rows.append((name, "no" if state.image is None else "yes", version, "\n".join(told)))
    *fixed, last = ("--backend", "usable", "version", "details, and what to do")
    print_texts((*fixed, last), rows, fixed)


def _details(state: KernelStatus) -> list[str]:
    told = []
    details = state.details
    if state.kind == "virtual":
        if details["named_by_environment"]:
            told.append(f"JOSTLE_KERNEL={details['named_by_environment']}")
        for built in details["built"]:
            note = "" if built["current"] else " (with options of another version of jostle)"
            name = "" if built["name"] is None else f"{built['name']}, "
            told.append(f"{name}{built['version']}{note}: {built['path']}")
    elif state.kind == "realtime" and state.image is not None:
        told.append(f"{state.image.path}, modules in {state.image.modules}")
    elif state.kind == "native":
        told.append(f"controllers: {' '.join(details['controllers']) or 'none'}")
        if details["loadable_controllers"]:
            told.append(f"with modprobe tcp_…: {' '.join(details['loadable_controllers'])}")
        if details["lacking_disciplines"]:
            told.append(f"lacking queueing disciplines: {' '.join(details['lacking_disciplines'])}")
    return told
