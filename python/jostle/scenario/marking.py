"""Controllers that live on marks, on paths that never mark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["unmarked"]

_LIVING_ON_MARKS = frozenset({"dctcp", "prague"})
"""Controllers whose own answer is to marks: to a loss they halve, as Reno does."""

_ALWAYS_MARKING = frozenset({"step_mark", "dualpi2", "cake"})
"""Queues without a parameter `ecn`: to mark is what they are for."""


def unmarked(spec: Mapping[str, Any]) -> Iterator[str]:
    """Tell of each flow of a run whose controller waits for marks that nobody sets.

    A flow that is said not to know ECN (`ecn = false`) is not told of: that was asked for.

    Parameters
    ----------
    spec
        The run's specification in its JSON form.
    """
    links = spec.get("links", ())
    for number, flow in enumerate(spec.get("flows", ())):
        name = flow["controller"]["name"]
        if name not in _LIVING_ON_MARKS or not flow["ecn"]:
            continue
        path = [links[index] for index in flow["path"]]
        if any(_marks(queue) for link in path for queue in _queues_of(link, number)):
            continue
        told = ", ".join(f"{link['name']}: {link['queue']['kind']}" for link in path)
        yield (
            f"flow {flow['name']}: {name} lives on marks, and no queue of its path marks ({told}), "
            "so that it answers losses alone, as Reno does; give a queue ecn = true, "
            'or the kind "step_mark" or "dualpi2"'
        )


def _queues_of(link: Mapping[str, Any], flow: int) -> list[Mapping[str, Any]]:
    """Return what a flow waits in: the queue of its class, where there are classes."""
    classes = link.get("classes")
    if classes is None:
        return [link["queue"]]
    return [one["queue"] for one in classes if flow in one["flows"]]


def _marks(queue: Mapping[str, Any]) -> bool:
    return queue["kind"] in _ALWAYS_MARKING or queue.get("parameters", {}).get("ecn") is True
