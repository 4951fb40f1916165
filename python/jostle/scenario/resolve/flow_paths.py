"""Paths of flows through tunnels, shared connections and graphs."""

from __future__ import annotations

from jostle.scenario.models import ScenarioFile
from jostle.scenario.parsing.problems import Report
from jostle.scenario.resolve.shared_connections import with_connections
from jostle.scenario.resolve.size_limits import limit_flow_count, limit_hop_count
from jostle.scenario.resolve.topology_graph import routed
from jostle.scenario.resolve.trace_files import TraceFiles
from jostle.scenario.resolve.tunnels import prepared

__all__ = ["resolved_paths"]


def resolved_paths(file: ScenarioFile, files: TraceFiles, report: Report) -> ScenarioFile | None:
    """Return the scenario with a path for each flow; None if it is too large or has no graph."""
    file = with_connections(prepared(file, report), report)
    found = routed(file, files, report) if limit_flow_count(file, report) else None
    return found if found is not None and limit_hop_count(found, report) else None
