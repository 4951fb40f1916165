"""How well the parts of a run are validated: its controllers, each with the queue that it meets.

The comparisons with Linux are in `docs/results/fidelity.md` and `fidelity-quic.md`;
`tools/results/record_cells.py` counts them in `recorded_cells.toml`.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal

from jostle.backends.registry import DEFAULT
from jostle.results.number_format import count
from jostle.scenario.flow_links import forward_links, paths
from jostle.scenario.registry import engine_rows
from jostle.scenario.resolve.sources import NO_CONTROLLER

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.results.finished_runs import FinishedRuns
    from jostle.run_spec import Algorithm, FlowSpec, LinkSpec

Level = Literal[
    "linux", "linux_other_queue", "linux_over_tcp", "authors_code", "paper", "unverified",
]  # fmt: skip

FIDELITY_PAGE: Final = "docs/results/fidelity.md"
QUIC_PAGE: Final = "docs/results/fidelity-quic.md"
_TEXTS: Final[Mapping[Level, str]] = {
    "authors_code": "checked against the authors' code",
    "paper": "checked against the paper",
    "unverified": "unverified",
}
_PARAMETERS: Final = ", with other parameters"


@dataclass(frozen=True)
class ValidationStatus:
    """How well a controller with a queue is validated.

    Attributes
    ----------
    controller, queue
        Names in the registries. The queue is empty for a controller without queue.
    level
        The strongest comparison that was made.
    text
        The same in words.
    page
        Page of the documentation with the numbers; empty if there is none.
    unexplained
        Compared conditions that are outside the tolerances for an unknown reason.
    transport
        `tcp` or `quic`.
    """

    controller: str
    queue: str
    level: Level
    text: str
    page: str
    unexplained: tuple[str, ...] = ()
    transport: str = "tcp"

    def to_dict(self) -> dict[str, Any]:
        """Return the status as plain data."""
        return {**asdict(self), "unexplained": list(self.unexplained)}


@dataclass(frozen=True)
class _Cells:
    """Compared conditions of a controller with a queue, and how many are within the tolerances."""

    controller: str
    transport: str
    queue: str
    cells: int
    within: int
    unexplained: tuple[str, ...] = ()


@functools.cache
def recorded_cells() -> tuple[_Cells, ...]:
    """Return the comparisons with Linux, by controller, transport and queue."""
    tables = _read("recorded_cells.toml")["cells"]
    return tuple(
        _Cells(**{**table, "unexplained": tuple(table["unexplained"])}) for table in tables
    )


@functools.cache
def evidence() -> Mapping[str, Level]:
    """Return the level of each controller that Linux does not have."""
    return {name: level for level, names in _read("evidence.toml").items() for name in names}  # type: ignore[misc]


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("jostle.fidelity") / name).read_text("utf-8"))


@functools.cache
def status_of(controller: str, queue: str = "", transport: str = "tcp") -> ValidationStatus:
    """Return how well a controller is validated with a queue, or with any queue if it is empty."""
    every = [one for one in recorded_cells() if one.controller == controller]
    if all(one.transport != "tcp" for one in every):
        # Linux does not have the controller. Over QUIC, both sides run jostle's code of it.
        level = evidence().get(controller, "unverified")
        page = f"docs/reference/algorithms/{controller}.md" if controller in evidence() else ""
        return ValidationStatus(controller, queue, level, _TEXTS[level], page, transport=transport)
    of_linux = [one for one in every if one.transport == transport]
    if not of_linux:
        over_tcp = status_of(controller, queue)
        text = f"over TCP {over_tcp.text}, not compared over QUIC"
        return replace(over_tcp, level="linux_over_tcp", text=text, transport=transport)
    matching = [one for one in of_linux if queue in ("", one.queue)]
    counted = matching or of_linux
    cells, within = sum(one.cells for one in counted), sum(one.within for one in counted)
    unexplained = tuple(dict.fromkeys(text for one in counted for text in one.unexplained))
    number = count(cells, "cell")
    number = f"({number})" if within == cells else f"in {within} of {number}"
    if unexplained:
        number += f", {len(unexplained)} unexplained"
    quic = transport == "quic"
    text = f"equals {'the QUIC endpoint on ' if quic else ''}Linux 6.1 within tolerances "
    level = "linux" if matching else "linux_other_queue"
    text += number if matching else f"behind other queues {number}, not compared behind {queue}"
    page = QUIC_PAGE if quic else FIDELITY_PAGE
    return ValidationStatus(controller, queue, level, text, page, unexplained, transport)


def statuses(results: FinishedRuns) -> list[ValidationStatus]:
    """Return the status of each controller and queue of simulated runs, without duplicates.

    A controller with other parameters than the defaults is not the one that was validated, which
    the text says. Runs on Linux and measurements need no validation.
    """
    if results.backend != DEFAULT:
        return []
    found: dict[ValidationStatus, None] = {}
    for at in range(len(results.conditions)):
        if not results.runs_of(at):
            continue
        spec = results.spec_of(at)
        earlier: object = None
        for flow in spec["flows"]:
            # Ten thousand copies of a flow have one status.
            facts = flow["controller"], flow["transport"], paths(flow)
            if flow["controller"]["name"] != NO_CONTROLLER and facts != earlier:
                found.setdefault(_status_of_flow(spec, flow))
                earlier = facts
    behind_a_queue = {(one.controller, one.transport) for one in found if one.queue}
    # A proxy's flow without a link meets no queue, and its controller is validated with others.
    return [
        one for one in found if one.queue or (one.controller, one.transport) not in behind_a_queue
    ]


def _status_of_flow(spec: Spec, flow: FlowSpec) -> ValidationStatus:
    controller = flow["controller"]
    transport = "quic" if flow["transport"] == "quic" else "tcp"
    status = status_of(controller["name"], _slowest_queue(spec, flow), transport)
    if status.level != "unverified" and _differs_from_defaults(controller):
        return replace(status, text=status.text + _PARAMETERS)
    return status


def _slowest_queue(spec: Spec, flow: FlowSpec) -> str:
    """Return the queue of the slowest link of a flow; a link whose rate varies is the slowest."""
    links = [spec["links"][at] for at in forward_links(flow)]
    if not links:
        return ""

    def rate_bps(link: LinkSpec) -> float:
        capacity: Mapping[str, Any] = {**link["capacity"]}
        return float(capacity.get("rate_bps") or 0.0)

    return min(links, key=rate_bps)["queue"]["kind"]


def _differs_from_defaults(controller: Algorithm) -> bool:
    own = _default_parameters().get(controller["name"], {})
    return any(own.get(name, value) != value for name, value in controller["parameters"].items())


@functools.cache
def _default_parameters() -> dict[str, dict[str, Any]]:
    return {
        row["name"]: {
            parameter["name"]: parameter["default"]
            for parameter in row["parameters"]
            if parameter.get("default") is not None and parameter["kind"] != "file"
        }
        for row in engine_rows()["controllers"]
    }


def in_a_line(found: Sequence[ValidationStatus]) -> str:
    """Return a sentence on all parts of a run: equal words are written once."""
    names = [_name_of(status) for status in found]
    by_text: dict[str, dict[str, None]] = {}
    queues: dict[str, dict[str, None]] = {}
    for status in found:
        name = _name_of(status)
        several = names.count(name) > 1 and status.level == "linux" and status.queue
        who = f"{name} behind {status.queue}" if several else name
        text = status.text
        if status.level == "linux_other_queue":
            # Queues of the same controller without a comparison are listed together.
            text = text.replace(f" behind {status.queue}", f" behind {{{name}}}")
            queues.setdefault(name, {}).setdefault(status.queue)
        by_text.setdefault(text, {}).setdefault(who)
    listed = {controller: ", ".join(those) for controller, those in queues.items()}
    parts = [f"{', '.join(names)} {text}".format_map(listed) for text, names in by_text.items()]
    return f"Validation: {'; '.join(parts)}." if parts else ""


def _name_of(status: ValidationStatus) -> str:
    compared = status.level in ("linux", "linux_other_queue")
    return f"{status.controller}{' over QUIC' * (compared and status.transport == 'quic')}"
