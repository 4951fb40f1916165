"""Runs a job, and prints the reason if it fails.

In User-Mode Linux an import takes several times as long as elsewhere, so modules of single kinds of
flows are imported where they are used.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import flow, link_qdiscs, network, qdisc_check, sampling
from .clock import clock_offset_ns, fine_timers
from .engine import load_engine
from .entry import guarded, many_files
from .failure import GuestFailure
from .flow import Flow
from .namespaces import Host
from .tcp_flow import TcpFlow

if TYPE_CHECKING:
    from .capture import Capture


def main(folder: Path) -> None:
    """Run the job in `folder`."""
    job: dict[str, Any] = json.loads((folder / "job.json").read_bytes())
    fine_timers()
    many_files()
    network.load_modules(job["modules"])
    network.load_controllers(job["own_modules"], folder)
    for registrations in job["registrations"]:
        network.register_controllers(registrations, folder)
    network.check_controllers(job["controllers"])
    network.set_parameters(job["parameters"], job["may_set_parameters"])
    qdisc_check.check(job["hosts"])
    hosts = network.build(job, folder)
    flows = _flows(job, hosts, folder)
    queues = [sampling.QueueProbe(queue, hosts) for queue in job["queues"]]
    timetable = network.LinkSchedule(job["timetable"], hosts)
    capture = _capture(job, hosts, folder)
    wires = network.Wires()
    start_ns = flow.start(flows, timetable, job["lead_ns"])
    link_qdiscs.begin(job, hosts, start_ns)
    try:
        with sampling.Recording(folder / "samples", flows, queues) as recording:
            recording.follow(start_ns, sampling.moments_ns(job), lambda: flow.has_failed(flows))
        flow.check(flows, timetable)
    finally:
        for each_flow in flows:
            each_flow.end()
    wires.check()
    captured = capture.finish(start_ns) if capture else {}
    events = {
        "flows": [each_flow.events(start_ns) for each_flow in flows],
        "captures": captured,
        # Time 0 on the calendar clock.
        "start_ns": start_ns + clock_offset_ns(),
    }
    partial = folder / "events.partial"
    partial.write_text(json.dumps(events))
    # The file appears under its name only when it is complete.
    partial.rename(folder / "events.json")


def _capture(job: Mapping[str, Any], hosts: Mapping[str, Host], folder: Path) -> Capture | None:
    if not job["captures"]:
        return None
    from .capture import Capture

    return Capture(job["captures"], hosts, folder)


def _flows(job: Mapping[str, Any], hosts: Mapping[str, Host], folder: Path) -> list[Flow]:
    programs = folder / "programs"
    if any("server" in flow_job for flow_job in job["flows"]):
        from .quic_programs import make_programs_folder

        make_programs_folder(programs, job["in_memory"])

    moments_ns = sampling.moments_ns(job)
    try:
        traffic = load_engine(job["engine"]).Traffic((folder / "spec.json").read_text())
    except ValueError as error:
        raise GuestFailure(str(error)) from error

    def create(number: int, flow_job: Mapping[str, Any]) -> Flow:
        if "server" in flow_job:
            from .quic_programs import ProgramFlow

            return ProgramFlow(
                number, flow_job, hosts, programs / str(number), folder, in_guest=job["in_memory"]
            )
        if flow_job["transport"] == "quic":
            from .quic_flow import QuicFlow

            engine = job["engine"]
            return QuicFlow(
                number, flow_job, hosts, engine=engine, moments_ns=moments_ns, folder=folder
            )
        if flow_job["transport"] == "udp":
            from .datagrams import DatagramFlow, PingFlow

            kind = PingFlow if flow_job["source"]["kind"] == "ping" else DatagramFlow
            return kind(number, flow_job, hosts, traffic, folder=folder)
        return _tcp_flow(number, flow_job, hosts, traffic)

    return [create(number, flow_job) for number, flow_job in enumerate(job["flows"])]


def _tcp_flow(
    number: int, flow_job: Mapping[str, Any], hosts: Mapping[str, Host], traffic: Any
) -> Flow:
    """Create a TCP flow."""
    if flow_job["arrivals_ns"] is not None:
        from .connections import ConnectionsFlow

        return ConnectionsFlow(number, flow_job, hosts, traffic)
    match flow_job["source"]["kind"]:
        case "relay":
            from .proxy import RelayFlow

            return RelayFlow(number, flow_job, hosts, traffic.reader(number))
        case "web":
            from .web_browser import BrowserFlow

            return BrowserFlow(number, flow_job, hosts, traffic.browser(number))
    application, reader = traffic.application(number), traffic.reader(number)
    if flow_job["connection_of"] is None:
        return TcpFlow(number, flow_job, hosts, application, reader)
    from .shared_connection import OppositeFlow

    return OppositeFlow(number, flow_job, hosts, application, reader)


if __name__ == "__main__":
    status = guarded(main, Path(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    # Sender threads are blocked in the kernel and could not be joined.
    os._exit(status)
