"""Warnings about scenarios that are valid, but probably not what the user wants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jostle.safe_io.code_consent import admitted
from jostle.scenario.flow_links import forward_links
from jostle.scenario.models import Flow
from jostle.scenario.parsing.quantities import format_amount
from jostle.scenario.python_controllers.source_files import DIGEST, ControllerSource

__all__ = ["probable_mistakes"]

_NEEDING_MARKS = frozenset({"dctcp", "prague"})
"""Controllers whose congestion response is to ECN marks. They respond to loss like Reno."""

_ALWAYS_MARKING = frozenset({"step_mark", "dualpi2", "cake"})
"""Queues that always mark and have no parameter `ecn`."""

_INITIAL_WINDOW_CACHES = frozenset({"tcp-cache", "tcp-cache+", "tcp-wise"})
"""Peer caches that only replace the initial window that a controller gets."""


def probable_mistakes(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the warnings about a run.

    Parameters
    ----------
    spec
        The run's specification in its JSON form.
    """
    yield from _flows_without_ecn_marking(spec)
    yield from _flows_that_may_never_start(spec)
    yield from _controllers_ignoring_initial_windows(spec)


def _flows_that_may_never_start(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each flow that waits for one with a time at which it is stopped."""
    flows = spec.get("flows", ())
    for flow in flows:
        before = None if flow.get("after") is None else flows[flow["after"]]
        if before is None or before.get("stop_ns") is None:
            continue
        stop = format_amount(before["stop_ns"], "time")
        yield (
            f"flow {flow['name']}: starts after {before['name']} is complete, and never if "
            f"{before['name']} is stopped at {stop} before that"
        )


def _controllers_ignoring_initial_windows(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each Python controller that ignores the initial window of its flow.

    Only the class can apply it: `cwnd` of a class may be a fixed window.
    """
    usual = Flow.model_fields["initial_window"].default
    for flow in spec.get("flows", ()):
        source = admitted(str(flow["controller"]["parameters"].get(DIGEST)))
        if not isinstance(source, ControllerSource) or source.contains("initial_window"):
            continue
        packets, cache = flow["initial_window_packets"], flow.get("memory")
        ignored = [] if packets == usual else [f"initial_window = {packets}"]
        if cache is not None and cache["name"] in _INITIAL_WINDOW_CACHES:
            ignored.append(f'peer_cache = "{cache["name"]}"')
        if ignored:
            yield (
                f"flow {flow['group'] or flow['name']}: {flow['controller']['name']} ignores "
                f"{' and '.join(ignored)}; set cwnd to event.initial_window in on_established"
            )


def _flows_without_ecn_marking(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each flow whose controller needs marks that no queue of its path sets.

    Flows with `ecn = false` are skipped, because the scenario disables ECN explicitly.
    """
    links = spec.get("links", ())
    for number, flow in enumerate(spec.get("flows", ())):
        name = flow["controller"]["name"]
        if name not in _NEEDING_MARKS or not flow["ecn"]:
            continue
        path = [links[index] for index in forward_links(flow)]
        if any(_marks(queue) for link in path for queue in _queues_of(link, number)):
            continue
        told = ", ".join(f"{link['name']}: {link['queue']['kind']}" for link in path)
        yield (
            f"flow {flow['name']}: {name} needs ECN marks, and no queue of its path marks "
            f"({told}), so it reacts to losses only, as Reno does; give a queue ecn = true, "
            'or the kind "step_mark" or "dualpi2"'
        )


def _queues_of(link: Mapping[str, Any], flow: int) -> list[Mapping[str, Any]]:
    """Return the queues of a link that the flow can use: the queue of its class if it has one."""
    classes = link.get("classes")
    if classes is None:
        return [link["queue"]]
    return [one["queue"] for one in classes if flow in one["flows"]]


def _marks(queue: Mapping[str, Any]) -> bool:
    return queue["kind"] in _ALWAYS_MARKING or queue.get("parameters", {}).get("ecn") is True
