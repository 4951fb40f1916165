"""`jostle setup module`: compiles a congestion controller of the user for Linux's TCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.options import GroupedCommand
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.backends.kernel.module_trial import Trial


@click.command(cls=GroupedCommand, short_help="Compile your kernel controller.")
@click.argument("source", metavar="FILE.c|DIR", type=click.Path(path_type=Path))
@click.option(
    "--name",
    metavar="NAME",
    help="Name in scenarios, as kernel:NAME.  [default: the name that the module registers]",
)
@click.option(
    "--version",
    "version",
    metavar="6.1|6.12|NAME",
    help="Compile it for this kernel.  [default: 6.1]",
)
def module(*, source: Path, name: str | None, version: str | None) -> None:
    """Compile a congestion controller in C as a module for the virtual-time kernel.

    Example: jostle setup module tcp_mine.c

    A single file needs no Makefile. A folder with a Makefile is built with it. The module is loaded
    into the kernel, one short flow runs, and the module is stored in your cache folder. The code
    runs with your rights.
    """
    from jostle.backends.kernel.module_trial import try_out
    from jostle.kernel_images import find
    from jostle.kernel_images.controller_modules import NAME, publish
    from jostle.kernel_images.module_build import check_source, compile_module

    if name is not None and not NAME.fullmatch(name):
        raise InputError(f"--name {name}: use up to 15 letters, digits, `-` and `_`")
    check_source(source)
    image = find("virtual", version)
    echo(f"compiling {source} for Linux {image.version}", err=True)
    compiled = compile_module(source, image, lambda line: echo(f"  {line}", err=True))
    echo("loading it, and running a short flow", err=True)
    trial = try_out(compiled, image, name)
    folder = publish(trial.module)
    _print(trial, folder)


def _print(trial: Trial, folder: Path) -> None:
    from jostle.backends.kernel.module_trial import SETUP

    module, flow = trial.module, trial.flow
    kind = module.facts["license"] or "none"
    parameters = ", ".join(f"{name} ({kind})" for name, kind in module.parameters.items())
    echo(f"registers   {', '.join(module.facts['controllers'])}")
    echo(f"parameters  {parameters or 'none'}")
    echo(f"licence     {kind}")
    echo(
        f"short flow  {flow['throughput_bps'] / 1e6:.3g} Mbit/s, "
        f"RTT {flow['rtt_mean_s'] * 1e3:.3g} ms, "
        f"{flow['retransmitted_packets']:g} packets retransmitted ({SETUP})"
    )
    echo(f"stored in   {folder}")
    echo(f'next: write controller = "kernel:{module.name}", and run with --backend kernel '
         "--allow-code")  # fmt: skip


def print_modules(modules: Sequence[tuple[Path, Mapping[str, Any]]]) -> None:
    """Print the modules in the cache, if there are any."""
    from jostle.cli.output import print_texts
    from jostle.kernel_images.image_paths import built

    if not modules:
        return
    digests = {kernel.facts.get("sha256") for kernel in built() if kernel.current}
    rows = []
    for folder, facts in modules:
        usable = facts["kernel"]["sha256"] in digests
        advice = (
            "" if usable else "its kernel is not here any more: run `jostle setup module` again"
        )
        details = "\n".join(filter(None, (facts["source"]["file"], str(folder), advice)))
        row = (f"kernel:{facts['name']}", "yes" if usable else "no", facts["kernel"]["version"])
        rows.append((*row, details))
    header = ("controller", "usable", "kernel", "details, and what to do")
    print_texts(header, rows, header[:3])
