"""A measurement: pings on the idle path, then transfers one after another with pings."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from jostle.errors import InputError, JostleError
from jostle.measurements import analyze
from jostle.measurements.live import http, iperf3, tcp_info_sampler, tcpdump
from jostle.measurements.live.available_controllers import AVAILABLE, Controllers, chosen
from jostle.measurements.live.pinger import HOW_TO_ALLOW, Pinger, Pings, open_socket
from jostle.measurements.live.target import Target, target_of
from jostle.measurements.live.time_limits import pause
from jostle.measurements.live.transfer import Direction, Step, TransferRefusedError, TransferResult
from jostle.measurements.measurement_folder import FORMAT, MANIFEST
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.scratch_folder import PartialFolder

__all__ = ["Measurement", "MeasurementRequest", "Told", "measure"]

IDLE_S: Final = 3.0
"""Time during which the idle path is pinged before the first transfer."""
_WARM_UP: Final = 0.2
"""Share of a transfer in which the queue fills; its pings do not count as under load."""
_OVERHEAD_S: Final = 1.5
"""Estimated overhead of a transfer, for the progress bar."""
_PROGRAMS: Final = {"iperf3": iperf3.carry_out, "http": http.carry_out}

Told = Callable[[float, float, str], object]
"""Receives the elapsed and total seconds and the name of the present phase.

It is called a few times per second. If it raises, the measurement ends and nothing is kept.
"""


@dataclass(frozen=True)
class MeasurementRequest:
    """Parameters of a measurement.

    Attributes
    ----------
    host
        A name, an address, or a URL; `:PORT` may follow.
    by
        `iperf3` or `http`; by default, `http` for a URL, else `iperf3`.
    port
        Port of the server; None for the default port.
    seconds
        Duration of each transfer.
    controllers
        `available`, or a comma-separated list of names.
    directions
        `down`, `up` or both; if empty, the directions that such a server usually supports.
    capture
        Whether tcpdump records the packets.
    """

    host: str
    by: str | None = None
    port: int | None = None
    seconds: int = 10
    controllers: str = "available"
    directions: tuple[Direction, ...] = ()
    capture: bool = False


@dataclass(frozen=True)
class Measurement:
    """A finished measurement.

    Attributes
    ----------
    folder
        Folder of its files.
    manifest
        Contents of `measurement.json`.
    """

    folder: Path
    manifest: dict[str, Any]


def measure(asked: MeasurementRequest, folder: Path, told: Told | None = None) -> Measurement:
    """Measure the path to a host, and write the results to a new folder.

    Parameters
    ----------
    asked
        Parameters of the measurement.
    folder
        Must not exist; it is created when all of its files are complete.
    told
        Called with the progress.

    Raises
    ------
    InputError
        When a requirement is missing; the text says what to do.
    JostleError
        When a transfer breaks off. The transfers before it are kept, and the text says so.
    """
    told = told or (lambda *_: None)
    if folder.exists():
        raise InputError(f"{folder} is there already: give another --out")
    target = target_of(asked.host, asked.by, asked.port, lambda: told(0.0, IDLE_S, "name lookup"))
    if target.by == "iperf3":
        iperf3.require()
    if asked.capture:
        tcpdump.require()
    controllers = chosen(asked.controllers)
    steps = _steps(asked, target, controllers)
    try:
        with OpenFolder.at(folder.parent) as parent, PartialFolder(parent, "measure") as partial:
            content = partial.content
            course = _MeasurementRunner(target, steps, content.path, asked.capture, told)
            manifest = {
                **_heading(target, asked, controllers),
                **course.carry_out(),
                "notes": [*omissions(asked, target), *course.notes],
            }
            text = f"{json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False)}\n"
            content.write_new(MANIFEST, text.encode())
            course.tick()
            partial.publish(parent, folder.name)
    except OSError as error:
        raise JostleError(f"cannot write {folder}: {error.strerror or error}") from error
    if course.failure is not None:
        kept = JostleError(f"{course.failure}; the transfers before it are kept in {folder}")
        kept.exit_status = course.failure.exit_status
        raise kept from course.failure
    return Measurement(folder, manifest)


def omissions(asked: MeasurementRequest, target: Target) -> Iterator[str]:
    """Say which directions and controllers are not measured, and why."""
    if target.by != "http":
        return
    if not asked.directions:
        yield "left out: uploads. Only some web servers accept them: --direction both"
    if asked.directions != ("up",) and asked.controllers != AVAILABLE:
        yield (
            f"left out: --controllers {asked.controllers} for the download. A web server chooses "
            "its controller itself"
        )


def _steps(asked: MeasurementRequest, target: Target, controllers: Controllers) -> list[Step]:
    usual: tuple[Direction, ...] = ("down", "up") if target.by == "iperf3" else ("down",)
    steps = []
    for direction in asked.directions or usual:
        # The sender chooses the controller; a web server does not accept a choice of the client.
        own = direction == "down" and target.by == "http"
        names: Sequence[str | None] = (None,) if own else controllers.used
        steps += [Step(direction, name, asked.seconds) for name in names]
    return steps


def _heading(target: Target, asked: MeasurementRequest, controllers: Controllers) -> dict[str, Any]:
    programs = {"iperf3": iperf3.version()} if target.by == "iperf3" else {}
    return {
        "format": FORMAT,
        "host": target.host,
        "address": target.address,
        "port": target.port,
        "with": target.by,
        "target": target.label,
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": asked.seconds,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "jostle": metadata.version("jostle"),
        "programs": programs,
        "controllers": {"used": controllers.used, "left_out": dict(controllers.left_out)},
    }


@dataclass
class _MeasurementRunner:
    """Carries out the steps of a measurement one after another."""

    target: Target
    steps: Sequence[Step]
    folder: Path
    capture: bool
    told: Told
    notes: list[str] = field(default_factory=list)
    failure: JostleError | None = None
    """The error that ended the measurement before its last step."""

    def __post_init__(self) -> None:
        each_s = [step.seconds + _OVERHEAD_S for step in self.steps]
        self._total_s = IDLE_S + sum(each_s)
        self._done_s = 0.0
        self._begin("pings at rest")
        self._can_ping = True

    def carry_out(self) -> dict[str, Any]:
        """Carry out the measurement; return its part of the manifest."""
        idle = self._idle()
        transfers = []
        for step in self.steps:
            try:
                transfers.append(self._transfer(step))
            except TransferRefusedError as error:
                self.notes.append(f"{error}: left out")
            except JostleError as error:
                if not transfers:
                    raise
                self.notes.append(f"{step.name}: {error}: nothing is kept from here on")
                self.failure = error
                break
            self._done_s += step.seconds + _OVERHEAD_S
        if not transfers:
            raise InputError("; ".join(self.notes))
        return {"idle": idle, "transfers": transfers}

    def _idle(self) -> dict[str, Any] | None:
        try:
            open_socket(self.target.family).close()
        except OSError:
            self._can_ping = False
            self.notes.append(
                f"pings are for root alone on this host. To allow them: {HOW_TO_ALLOW}"
            )
            return None
        with Pinger(self.target.family, self.target.address) as pinger:
            pause(IDLE_S, self.tick)
        self._done_s += IDLE_S
        found = pinger.pings()
        if not found.rtt_s:
            self._can_ping = False
            self.notes.append(f"{self.target.host} answers no pings")
            return None
        return self._pings(found, "idle.ping.log", 0.0)

    def _transfer(self, step: Step) -> dict[str, Any]:
        self._begin(step.name)
        pcap = f"{step.name}.pcap"
        with ExitStack() as beside:
            if self.capture:
                beside.enter_context(tcpdump.captured(self.target, self.folder / pcap, self.tick))
            pinger = None
            if self._can_ping:
                pinger = beside.enter_context(Pinger(self.target.family, self.target.address))
            carried = _PROGRAMS[self.target.by](self.target, step, self.tick)
        self.notes += carried.notes
        files = self._files(step, carried)
        if not files:
            raise JostleError(f"{step.name}: nothing could be seen of the transfer")
        seen = _measure_transfer(self.folder / files[0])
        if self.capture:
            files.insert(0, pcap)
        return {
            "name": step.name,
            "direction": step.direction,
            "controller": step.controller,
            "command": carried.command,
            "data": files[0],
            "files": files,
            "measured": seen,
            "pings": self._loaded(step, pinger, carried),
        }

    def _files(self, step: Step, carried: TransferResult) -> list[str]:
        """Write the files of a transfer; the most informative file is first."""
        files = []
        if carried.samples:
            files.append(f"{step.name}.log")
            tcp_info_sampler.write(carried.samples, self.folder / files[0])
        if carried.document:
            files.append(f"{step.name}.iperf3.json")
            (self.folder / files[-1]).write_text(carried.document, "utf-8")
        return files

    def _loaded(
        self, step: Step, pinger: Pinger | None, carried: TransferResult
    ) -> dict[str, Any] | None:
        if pinger is None:
            return None
        found = pinger.pings()
        if not found.rtt_s:
            self.notes.append(f"{step.name}: no ping came back")
            return None
        began_s = carried.samples[0].at_s if carried.samples else found.sent_s[0]
        return self._pings(found, f"{step.name}.ping.log", began_s + _WARM_UP * step.seconds)

    def _pings(self, found: Pings, file: str, from_s: float) -> dict[str, Any]:
        found.write(self.folder / file)
        return {
            "file": file,
            "sent": len(found.sent_s),
            "lost": found.lost,
            "rtt_p50_s": found.quantile_s(0.5, from_s),
            "rtt_p95_s": found.quantile_s(0.95, from_s),
        }

    def _begin(self, doing: str) -> None:
        self._began_s, self._doing = time.monotonic(), doing

    def tick(self) -> None:
        """Report the progress."""
        passed_s = time.monotonic() - self._began_s
        self.told(self._done_s + passed_s, self._total_s, self._doing)


def _measure_transfer(file: Path) -> dict[str, Any]:
    """Measure a transfer like `jostle analyze`."""
    summary: Any = analyze([file]).results[0].run.summary
    overall = summary["flows"][0]["phases"]["overall"]
    keys = ("goodput_bps", "rtt_min_s", "rtt_mean_s", "retransmission_ratio")
    return {key: overall[key] for key in keys}
