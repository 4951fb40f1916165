"""A measurement: pings at rest, then transfers one after another with pings beside them."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from jostle.captures import analyze
from jostle.captures.folders import FORMAT, MANIFEST
from jostle.errors import InputError, JostleError
from jostle.live import http, iperf3, packets, sampling
from jostle.live.controllers import Controllers, chosen
from jostle.live.limits import pause
from jostle.live.pinging import HOW_TO_ALLOW, Pinger, Pings, open_socket
from jostle.live.target import Target, target_of
from jostle.live.transfer import Carried, Direction, RefusedError, Step
from jostle.locked_folders import Partial
from jostle.open_folder import OpenFolder

__all__ = ["Asked", "Measurement", "Told", "measure"]

IDLE_S: Final = 3.0
"""How long the path is pinged before anything is sent."""
_WARM_UP: Final = 0.2
"""Part of a transfer in which the queue is still filling: its pings are not those under load."""
_OVERHEAD_S: Final = 1.5
"""What a transfer takes beyond its time, for the bar."""
_PROGRAMS: Final = {"iperf3": iperf3.carry_out, "http": http.carry_out}

Told = Callable[[float, float, str], object]
"""Receives the seconds that have passed, their total, and a name of the present phase.

It is called a few times a second. An exception of it ends the measurement, and nothing is kept.
"""


@dataclass(frozen=True)
class Asked:
    """What is to be measured.

    Attributes
    ----------
    host
        A name, an address, or a URL; `:PORT` may follow.
    by
        `iperf3` or `http`; None for what the host looks like.
    port
        Of the server; None for the usual one.
    seconds
        Of each transfer.
    controllers
        `available`, or names with commas between them.
    directions
        `down`, `up` or both; none for those that the server is likely to serve.
    capture
        Whether tcpdump keeps the packets.
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
    """What was measured.

    Attributes
    ----------
    folder
        Where its files are.
    manifest
        What `measurement.json` holds there.
    """

    folder: Path
    manifest: dict[str, Any]


def measure(asked: Asked, folder: Path, told: Told | None = None) -> Measurement:
    """Measure the path to a host, and write what was seen to a new folder.

    Parameters
    ----------
    asked
        What is to be measured.
    folder
        Must not be there yet; it appears when everything is in it.
    told
        Hears how far it is.

    Raises
    ------
    InputError
        When something that is needed is missing; the text says what to do.
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
        packets.require()
    controllers = chosen(asked.controllers)
    steps = _steps(asked, target, controllers)
    try:
        with OpenFolder.at(folder.parent) as parent, Partial(parent, "measure") as partial:
            content = partial.content
            course = _Course(target, steps, content.path, asked.capture, told)
            manifest = {
                **_heading(target, asked, controllers),
                **course.carry_out(),
                "notes": course.notes,
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


def _steps(asked: Asked, target: Target, controllers: Controllers) -> list[Step]:
    usual: tuple[Direction, ...] = ("down", "up") if target.by == "iperf3" else ("down",)
    steps = []
    for direction in asked.directions or usual:
        # Who sends chooses: a web server is not asked.
        own = direction == "down" and target.by == "http"
        names: Sequence[str | None] = (None,) if own else controllers.used
        steps += [Step(direction, name, asked.seconds) for name in names]
    return steps


def _heading(target: Target, asked: Asked, controllers: Controllers) -> dict[str, Any]:
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
class _Course:
    """Carries the steps out, one after another."""

    target: Target
    steps: Sequence[Step]
    folder: Path
    capture: bool
    told: Told
    notes: list[str] = field(default_factory=list)
    failure: JostleError | None = None
    """The error that ended the course before its last step."""

    def __post_init__(self) -> None:
        each_s = [step.seconds + _OVERHEAD_S for step in self.steps]
        self._total_s = IDLE_S + sum(each_s)
        self._done_s = 0.0
        self._begin("pings at rest")
        self._can_ping = True

    def carry_out(self) -> dict[str, Any]:
        """Measure; what the manifest has of it."""
        idle = self._idle()
        transfers = []
        for step in self.steps:
            try:
                transfers.append(self._transfer(step))
            except RefusedError as error:
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
                beside.enter_context(packets.captured(self.target, self.folder / pcap, self.tick))
            pinger = None
            if self._can_ping:
                pinger = beside.enter_context(Pinger(self.target.family, self.target.address))
            carried = _PROGRAMS[self.target.by](self.target, step, self.tick)
        self.notes += carried.notes
        files = self._files(step, carried)
        if not files:
            raise JostleError(f"{step.name}: nothing could be seen of the transfer")
        seen = _seen(self.folder / files[0])
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

    def _files(self, step: Step, carried: Carried) -> list[str]:
        """Write what was seen; the file that says most comes first."""
        files = []
        if carried.samples:
            files.append(f"{step.name}.log")
            sampling.write(carried.samples, self.folder / files[0])
        if carried.document:
            files.append(f"{step.name}.iperf3.json")
            (self.folder / files[-1]).write_text(carried.document, "utf-8")
        return files

    def _loaded(self, step: Step, pinger: Pinger | None, carried: Carried) -> dict[str, Any] | None:
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
        """Say how far the course is."""
        passed_s = time.monotonic() - self._began_s
        self.told(self._done_s + passed_s, self._total_s, self._doing)


def _seen(file: Path) -> dict[str, Any]:
    """Measure a transfer as `jostle analyze` does."""
    summary: Any = analyze([file]).results[0].run.summary
    overall = summary["flows"][0]["phases"]["overall"]
    keys = ("goodput_bps", "rtt_min_s", "rtt_mean_s", "retransmission_ratio")
    return {key: overall[key] for key in keys}
