"""`jostle measure`."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.options import GroupedCommand
from jostle.cli.output_folders import make_folder_of
from jostle.cli.signals import orderly_interruption
from jostle.cli.time_option import integer_seconds
from jostle.cli.verdict_lines import add_verdict, measurement_verdict
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.measurements.live.measurement import Measurement, Told
    from jostle.measurements.live.transfer import Direction

_DIRECTIONS: Mapping[str, tuple[Direction, ...]] = {
    "down": ("down",), "up": ("up",), "both": ("down", "up")
}  # fmt: skip


@click.command(cls=GroupedCommand, short_help="Measure a real path.")
@click.argument("host", metavar="HOST|URL")
@click.option(
    "--tool",
    "by",
    type=click.Choice(("iperf3", "http")),
    help="Use this program of the host: iperf3 unless a URL is given.",
)
@click.option("--port", metavar="N", type=click.IntRange(1, 65_535), help="Connect to this port.")
@click.option(
    "--duration",
    metavar="TIME",
    default="10 s",
    show_default=True,
    help="Let each transfer last this long; `jostle identify` needs 5 s and prefers 30 s.",
)
@click.option(
    "--controllers",
    metavar="NAMES",
    default="available",
    show_default=True,
    help="Measure one transfer with each of these congestion controllers: those that this user may "
    "set here, or names separated by commas.",
)
@click.option(
    "--direction",
    type=click.Choice(tuple(_DIRECTIONS)),
    help="Send to this host (down), from it (up), or both; by default both with iperf3, and down "
    "with a web server.",
)
@click.option("--capture", is_flag=True, help="Capture the packets with tcpdump, too. Needs root.")
@click.option(
    "-o", "out", metavar="DIR",
    help="Write to this folder, which does not exist yet.  [default: measure-HOST-TIME]",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the manifest instead of tables.")
def measure(
    *,
    host: str,
    by: str | None,
    port: int | None,
    duration: str,
    controllers: str,
    direction: str | None,
    capture: bool,
    out: str | None,
    as_json: bool,
) -> None:
    """Measure the path to HOST: pings of the unloaded path, then transfers with concurrent pings.

    HOST runs `iperf3 -s`, or a web server with a large file (give its URL; --direction up requires
    a server that accepts POST). The kernel's TCP_INFO of this host's connections is recorded every
    20 ms, without root. `jostle analyze` reads the written folder; `fit`, `identify` and `advise`
    read its files.

    Example: jostle measure iperf.example.net --duration '30 s' -o path
    """
    from jostle.measurements.live import MeasurementRequest
    from jostle.measurements.live import measure as measured

    seconds = integer_seconds("--duration", duration, 2, 3600)
    folder = Path(out or _usual_name(host))
    directions = _DIRECTIONS[direction] if direction else ()
    asked = MeasurementRequest(host, by, port, seconds, controllers, directions, capture)
    with (
        orderly_interruption("interrupted: nothing is kept", deferred=True) as check,
        _bar(check) as told,
        _folder_of(folder),
    ):
        found = measured(asked, folder, told)
    if as_json:
        document = add_verdict(found.manifest, measurement_verdict(found.manifest))
        echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
    else:
        _print(found)
    for note in _notes(found.manifest):
        echo(f"note: {note}", err=as_json)
    echo(f"written: {folder}", err=as_json)


@contextmanager
def _folder_of(folder: Path) -> Iterator[None]:
    """Create the parent folders of a new folder, and remove those that remain empty."""
    made = [parent for parent in folder.parents if not parent.exists()]
    try:
        make_folder_of(None if folder.exists() else str(folder))
        yield
    finally:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()


def _usual_name(host: str) -> str:
    """Return a folder name made from the host and the time."""
    address = (host.partition("://")[2] or host).partition("?")[0]
    plain = re.sub(r"[^\w.-]+", "-", address).strip("-.")[:60]
    return f"measure-{plain or 'host'}-{time.strftime('%Y%m%d-%H%M%S')}"


@contextmanager
def _bar(check: Callable[[], None]) -> Iterator[Told]:
    """Show a bar on a terminal, else a line per transfer, and check for signals."""
    if not sys.stderr.isatty():
        said: list[str] = []

        def line(_passed_s: float, _total_s: float, doing: str) -> None:
            check()
            if said[-1:] != [doing]:
                said.append(doing)
                echo(f"measuring: {doing}", err=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring")

        def update_bar(passed_s: float, total_s: float, doing: str) -> None:
            check()
            bar.update(task, completed=passed_s, total=total_s, description=doing)

        yield update_bar


def _print(found: Measurement) -> None:
    from jostle.cli import output
    from jostle.results.text_table import Table

    manifest = found.manifest
    header = (
        "transfer", "goodput\nMbit/s", "retransmitted\n%", "RTT\nms", "ping, median\nms",
        "p95\nms", "pings lost\n%",
    )  # fmt: skip
    rows = []
    if (idle := manifest["idle"]) is not None:
        rows.append(("at rest", "", "", "", *_pings(idle)))
    for one in manifest["transfers"]:
        seen = one["measured"]
        # A receiver does not see retransmissions.
        again = seen["retransmission_ratio"] if one["direction"] == "up" else None
        rows.append(
            (one["name"], _number(seen["goodput_bps"], 1e-6, 2), _number(again, 100, 3),
             _number(seen["rtt_mean_s"], 1e3, 1), *_pings(one["pings"]))
        )  # fmt: skip
    to = output.console()
    output.print_note(to, measurement_verdict(manifest))
    to.print(manifest["target"], style="bold")
    output.print_table(to, Table(header, tuple(rows), (), 1))
    if idle is not None:
        said = (
            "Pings during a transfer are counted after its first fifth: their RTT above the idle "
        )
        output.print_note(to, f"{said}RTT is queueing delay.")


def _pings(of: Mapping[str, Any] | None) -> tuple[str, str, str]:
    if of is None:
        return ("–", "–", "–")
    lost = of["lost"] / of["sent"] if of["sent"] else None
    return (
        _number(of["rtt_p50_s"], 1e3, 1), _number(of["rtt_p95_s"], 1e3, 1), _number(lost, 100, 1)
    )  # fmt: skip


def _number(value: float | None, factor: float, digits: int) -> str:
    return "–" if value is None else f"{value * factor:.{digits}f}"


def _notes(manifest: Mapping[str, Any]) -> list[str]:
    left_out = manifest["controllers"]["left_out"].values()
    return [*(f"left out: {why}" for why in left_out), *manifest["notes"]]
