"""Samples of a run as a RunRecord: the engine measures them as it measures its own runs."""

from __future__ import annotations

from pathlib import Path

from jostle.backends.base import RunRecord, Spec, canonical_json
from jostle.backends.engine_record import run_record
from jostle.backends.kernel import samples
from jostle.backends.kernel.measured import seen_of_flow, seen_of_link
from jostle.backends.sim import Engine


def record(
    spec: Spec, folder: Path, backend: str, version: str, wall_s: float, *, engine: Engine
) -> RunRecord:
    """Read what a job left, as a record of its run.

    Two things are known less well than in the simulator. The kernel tells its smoothed RTT and not
    that of each ACK: means, percentiles and deviations are of the smoothed RTT at the samples since
    which ACKs came. And a window or a queue is what it was at the last sample.

    Raises
    ------
    ValueError
        When it is not whole.
    """
    seen = samples.read(folder, len(spec["flows"]), len(spec["links"]))
    flows = [
        seen_of_flow(
            flow,
            seen.senders[:, number],
            seen.details[:, number],
            seen.receivers[:, number],
            seen.events[number],
        )
        for number, flow in enumerate(spec["flows"])
    ]
    links = [
        seen_of_link(link, seen.queues[:, number]) for number, link in enumerate(spec["links"])
    ]
    made = engine.record_of_samples(canonical_json(spec), seen.time_ns, flows, links)
    return run_record(made, spec, backend, version, wall_s=wall_s)
