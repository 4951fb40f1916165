"""Carries a job out and says on the console what went wrong, if anything did."""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import disciplines, flow, links, network, sampling
from .browser import BrowserFlow
from .capture import Capture
from .clock import clock_offset_ns, fine_timers
from .connections import ConnectionsFlow
from .datagrams import DatagramFlow, PingFlow
from .failure import GuestFailure, report
from .flow import Flow
from .namespaces import Host
from .programs import ProgramFlow, make_room
from .quic import QuicFlow
from .relay import RelayFlow
from .traffic import TcpFlow


def main(folder: Path) -> None:
    """Carry out the job in `folder`."""
    job: dict[str, Any] = json.loads((folder / "job.json").read_bytes())
    fine_timers()
    _many_files()
    network.load_modules(job["modules"])
    network.check_controllers(job["controllers"])
    network.set_parameters(job["parameters"], job["may_set_parameters"])
    disciplines.check(job["hosts"])
    hosts = network.build(job, folder)
    flows = _flows(job, hosts, folder)
    queues = [sampling.QueueProbe(queue, hosts) for queue in job["queues"]]
    timetable = network.Timetable(job["timetable"], hosts)
    capture = Capture(job["captures"], hosts, folder)
    wires = network.Wires()
    start_ns = flow.start(flows, timetable, job["lead_ns"])
    links.begin(job, hosts, start_ns)
    try:
        with sampling.Recording(folder / "samples", flows, queues) as recording:
            recording.follow(start_ns, sampling.moments_ns(job), lambda: flow.has_failed(flows))
        flow.check(flows, timetable)
    finally:
        for one in flows:
            one.end()
    wires.check()
    captured = capture.finish(start_ns)
    events = {
        "flows": [one.events(start_ns) for one in flows],
        "captures": captured,
        # When time 0 was, on the calendar.
        "start_ns": start_ns + clock_offset_ns(),
    }
    partial = folder / "events.partial"
    partial.write_text(json.dumps(events))
    # Its name appears last: whoever finds it finds everything.
    partial.rename(folder / "events.json")


def _many_files() -> None:
    """Let sockets be as many as this process may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _flows(job: Mapping[str, Any], hosts: Mapping[str, Host], folder: Path) -> list[Flow]:
    programs = folder / "programs"
    if any("server" in one for one in job["flows"]):
        make_room(programs, job["in_memory"])

    moments_ns = sampling.moments_ns(job)

    def made(number: int, one: Mapping[str, Any]) -> Flow:
        if "server" in one:
            return ProgramFlow(
                number, one, hosts, programs / str(number), folder, in_guest=job["in_memory"]
            )
        if "engine" in one:
            return QuicFlow(number, one, hosts, moments_ns=moments_ns, folder=folder)
        if one["transport"] == "udp":
            kind = PingFlow if one["source"]["kind"] == "ping" else DatagramFlow
            return kind(number, one, hosts, folder=folder)
        return _tcp_flow(number, one, hosts)

    return [made(number, one) for number, one in enumerate(job["flows"])]


def _tcp_flow(number: int, one: Mapping[str, Any], hosts: Mapping[str, Host]) -> Flow:
    """Make a flow over TCP."""
    if one["connections"] is not None:
        return ConnectionsFlow(number, one, hosts)
    match one["source"]["kind"]:
        case "relay":
            return RelayFlow(number, one, hosts)
        case "web":
            return BrowserFlow(number, one, hosts)
    return TcpFlow(number, one, hosts)


def _status() -> int:
    try:
        main(Path(sys.argv[1]))
    except GuestFailure as failure:
        return report(str(failure))
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return report(f"{named}{error.strerror or error}")
    except Exception:
        traceback.print_exc()
        return report("a bug, see above")
    return 0


if __name__ == "__main__":
    status = _status()
    sys.stdout.flush()
    sys.stderr.flush()
    # Senders are blocked in the kernel and would never be joined.
    os._exit(status)
