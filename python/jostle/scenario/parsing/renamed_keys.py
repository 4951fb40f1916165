"""Keys, values and measures that were called otherwise in earlier formats.

Readers of scenarios, studies and suites name the new key in their error, and
`tools/migrate_keys.py` rewrites files. Both use the tables of this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from jostle.scenario.parsing.key_lines import KeyPath

__all__ = [
    "LIST_KINDS",
    "MEASURES",
    "MIGRATE",
    "SCENARIO_FORMAT",
    "FileKind",
    "Position",
    "Renamed",
    "file_kind",
    "renamed_key_path",
    "renames_in",
    "with_new_names",
]

SCENARIO_FORMAT: Final = "jostle.scenario/2"
"""Format of the scenarios that this version reads."""
OLD_SCENARIO_FORMAT: Final = "jostle.scenario/1"
MIGRATE: Final = "run `python tools/migrate_keys.py FILE`"
"""Advice in errors on files of the earlier format."""
LIST_KINDS: Final[Mapping[str, str]] = {"memories": "peer-caches"}
"""Arguments of `jostle info list`."""
MEASURES: Final[Mapping[str, str]] = {
    "queue": "queue_length",
    "queue_p95": "queue_length_p95",
    "queue_time": "queue_delay_estimate",
    "queue_time_p95": "queue_delay_estimate_p95",
    "ack_rtt": "segment_rtt",
    "ack_rtt_p50": "segment_rtt_p50",
    "ack_rtt_p95": "segment_rtt_p95",
    "ack_rtt_max": "segment_rtt_max",
    "frames_late": "late_frames",
    "response": "response_time",
    "response_p50": "response_time_p50",
    "response_p95": "response_time_p95",
    "response_p99": "response_time_p99",
    "group_response": "group_response_time",
    "group_response_p50": "group_response_time_p50",
    "group_response_p95": "group_response_time_p95",
    "group_response_p99": "group_response_time_p99",
    "completion": "completion_time",
    "completion_p50": "completion_time_p50",
    "completion_p95": "completion_time_p95",
    "completion_p99": "completion_time_p99",
    "group_completion": "group_completion_time",
    "small_completion": "small_completion_time",
    "small_completion_p99": "small_completion_time_p99",
    "medium_completion": "medium_completion_time",
    "large_completion": "large_completion_time",
    "estimate": "bandwidth_estimate",
    "total": "total_throughput",
    "convergence": "convergence_time",
    "page_load": "page_load_time",
    "page_load_mean": "page_load_time_mean",
    "page_load_p95": "page_load_time_p95",
    "out_of_order": "reordered",
    "receiver_limited": "receive_window_limited",
    "probe_retransmissions": "tlp_retransmissions",
    "timeout_retransmissions": "rto_retransmissions",
}
RECEIVERS: Final[Mapping[str, str]] = {
    "divided_acks": "ack_division",
    "repeated_acks": "dupack_spoofing",
    "optimistic_acks": "optimistic_acking",
    "hidden_marks": "hidden_ecn_marks",
}

FileKind = Literal["scenario", "study", "suite"]
Rule = Literal["", "format", "measure", "receiver", "rule", "path", "constraint"]
"""Kind of a text: the name of a measure or a receiver, or a text that names keys or a measure."""


@dataclass(frozen=True)
class Table:
    """The renamed keys of a table.

    Attributes
    ----------
    keys
        Old name → new name.
    tables
        Key → name of the table below it, in `TABLES`.
    texts
        Key → kind of its texts.
    others
        Name of the table below every other key.
    other_texts
        Kind of the texts of every other key.
    varies
        Whether its keys are key paths of the scenario, each with the values that it takes.
    sets
        Whether its keys are key paths of the scenario, each with its value.
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, Rule] = field(default_factory=dict)
    others: str = ""
    other_texts: Rule = ""
    varies: bool = False
    sets: bool = False


_VALUES: Final = {"left": "value", "right": "value", "order": "value"}
_VALUE: Final = Table(
    {"shown": "display"},
    {"where": "labels", "relative_to": "labels", "reference": "reference"},
    {"measure": "measure"},
)
TABLES: Final[Mapping[str, Table]] = {
    "": Table(),
    "scenario": Table(
        {
            "until": "repeat_until",
            "most_repeats": "max_repeats",
            "interval": "sampling_interval",
            "trace": "record",
        },
        {
            "bottleneck": "link",
            "downlink": "link",
            "uplink": "link",
            "links": "link",
            "flows": "flow",
            "grid": "grid",
            "sample": "sample",
        },
        {"format": "format", "repeat_until": "rule"},
    ),
    "grid": Table(varies=True),
    "sample": Table(texts={"where": "constraint"}, varies=True),
    "link": Table(
        {"slots": "reassignment", "frames": "frame_aggregation"},
        {
            "reassignment": "reassignment",
            "frame_aggregation": "frame_aggregation",
            "ack_thinning": "ack_thinning",
        },
    ),
    "reassignment": Table(
        {
            "place": "per_run_delay",
            "lasting": "variance_share",
            "lasting_for": "variance_share_time",
        }
    ),
    "frame_aggregation": Table({"contention": "access_delay", "bytes": "size"}),
    "ack_thinning": Table({"most": "max_acks", "hold": "max_delay"}),
    "flow": Table(
        {
            "memory": "peer_cache",
            "pep": "proxy",
            "linux": "linux_version",
            "gro": "receiver_gro",
            "bytes": "size",
            "sequence": "one_at_a_time",
        },
        {"proxy": "proxy", "source": "source", "arrivals": "arrivals", "receiver": "receiver"},
        {"receiver": "receiver"},
    ),
    "proxy": Table({"at": "link", "back": "reverse_link"}),
    "arrivals": Table({"of": "load_link"}),
    "receiver": Table({"lead": "lead_rtts"}, texts={"kind": "receiver"}),
    "source": Table(
        {
            "bytes": "size",
            "think": "think_time",
            "of": "load_link",
            "every": "period",
            "ladder": "bitrates",
            "choice": "abr",
            "startup": "startup_buffer",
            "main": "main_object",
            "objects": "object_count",
            "object": "object_size",
            "request": "request_size",
            "parse": "parse_time",
            "key": "key_frame_size",
            "delta": "delta_frame_size",
            "key_every": "key_frame_interval",
            "playout": "playout_delay",
        }
    ),
    "study": Table(
        {"learned": "findings", "readings": "setups"},
        {
            "defaults": "value",
            "experiments": "experiments",
            "numbers": "number",
            "claims": "claim",
            "figures": "figure",
            "setups": "setup",
        },
    ),
    "experiments": Table(others="experiment"),
    "experiment": Table(tables={"keys": "key_names", "changes": "change"}),
    "key_names": Table(other_texts="path"),
    "setup": Table(tables={"changes": "change"}),
    "change": Table(tables={"set": "set", "where": "labels"}),
    "set": Table(sets=True),
    "labels": Table(other_texts="receiver"),
    "value": _VALUE,
    "reference": Table(tables={"where": "labels"}),
    "number": Table(
        {**_VALUE.keys, "by": "measured_by"}, {**_VALUE.tables, "against": "labels"}, _VALUE.texts
    ),
    "claim": Table(tables={"parts": "part"}),
    "part": Table(tables=_VALUES),
    "figure": Table(tables={"curves": "value", "where": "labels"}, texts={"panels": "measure"}),
    "suite": Table(
        {"left_out": "not_covered"},
        {"defaults": "value", "experiments": "suite_experiments", "criteria": "criterion"},
    ),
    "suite_experiments": Table(others="suite_experiment"),
    "suite_experiment": Table(
        {"subject": "flows_under_test", "over": "scenario_for"},
        {"keys": "key_names", "quick": "quick"},
    ),
    "quick": Table(tables={"where": "labels"}),
    "criterion": Table({"asks": "requirement", "ours": "project_bound"}, {"parts": "part"}),
}
"""Renamed keys by table. `source` is every kind of source: no two give a key other names."""

_STEP: Final = re.compile(r"\"[^\"]*\"|'[^']*'|[^.\s]+")
"""A key of a key path."""
_PATH: Final = re.compile(r'[A-Za-z_][\w-]*(?:\.(?:"[^"]*"|[\w*-]+))+')
"""A key path in a constraint."""
_NAMED: Final = ("flows", "links")


class Position(NamedTuple):
    """A position in a file: the table there, or the kind of its texts.

    Attributes
    ----------
    table
        Name of the table, in `TABLES`.
    rule
        Kind of the texts.
    levels
        Whether values of a key that varies are below, in a list or by their labels.
    """

    table: str
    rule: Rule = ""
    levels: bool = False

    def below(self, step: str | int) -> Position:
        """Return the place of a key, by its old or new name, or of an element of a list."""
        if isinstance(step, int) or self.levels:
            return Position(self.table, self.rule)
        table = TABLES[self.table]
        if step in table.texts and step not in table.tables:
            return Position("", table.texts[step])
        if table.varies or table.sets:
            target, _ = _walk(step)
            return target._replace(levels=table.varies)
        key = table.keys.get(step, step)
        return Position(
            table.tables.get(key, table.others), table.texts.get(key, table.other_texts)
        )

    def renamed_key(self, key: str) -> str | None:
        """Return the new name of a key here; None if it has none."""
        table = TABLES[self.table]
        if self.levels:
            return None
        if (table.varies or table.sets) and key not in table.texts:
            return renamed_key_path(key)
        return table.keys.get(key)

    def renamed_text(self, text: str) -> str | None:
        """Return what a text at this place is called now; None if it is the same."""
        new = text
        match self.rule:
            case "format":
                new = SCENARIO_FORMAT if text == OLD_SCENARIO_FORMAT else text
            case "measure":
                new = MEASURES.get(text, text)
            case "receiver":
                new = RECEIVERS.get(text, text)
            case "rule":
                new = re.sub(
                    r"[a-z]\w*", lambda name: MEASURES.get(name[0], name[0]), text, count=1
                )
            case "path":
                new = renamed_key_path(text) or text
            case "constraint":
                new = _PATH.sub(lambda path: renamed_key_path(path[0]) or path[0], text)
        return None if new == text else new


@dataclass(frozen=True)
class Renamed:
    """An old name in a document.

    Attributes
    ----------
    path
        Where it is.
    message
        Text with the new name.
    """

    path: KeyPath
    message: str


def renames_in(document: Any, kind: FileKind) -> Iterator[Renamed]:
    """Find all keys, values and measures of a document that have another name now."""
    yield from _renames(document, Position(kind), ())


def renamed_key_path(path: str) -> str | None:
    """Return a key path such as `flows.web.memory` with new names; None if it has none."""
    _, new = _walk(path)
    return None if new == path else new


def with_new_names(path: KeyPath) -> KeyPath:
    """Return a place in a scenario with the new names of its keys."""
    place, new = Position("scenario"), list[str | int]()
    for step in path:
        key = step if isinstance(step, int) else place.renamed_key(step)
        new.append(step if key is None else key)
        place = place.below(step)
    return tuple(new)


def file_kind(name: str, document: Mapping[str, Any]) -> FileKind | None:
    """Which kind of file a document is, by the name of the file or its keys; None if of no kind."""
    for kind in ("study", "suite"):
        if name == f"{kind}.toml":
            return kind
    keys = document.keys()
    if keys >= {"experiments", "criteria"}:
        return "suite"
    if keys >= {"experiments", "paper"}:
        return "study"
    scenario = {"format", "duration", "flows", "bottleneck", "links", "graph", "downlink", "uplink"}
    return "scenario" if keys & scenario else None


def _walk(path: str) -> tuple[Position, str]:
    """Follow a key path of a scenario: the place that it names, and the path with new names."""
    place, parts, first, end = Position("scenario"), list[str](), "", 0
    for index, step in enumerate(_STEP.finditer(path)):
        key = step[0].strip("\"'")
        parts.append(path[end : step.start()])
        if index == 1 and first in _NAMED:
            # The name of a flow or a link, or all of them.
            parts.append(step[0])
        else:
            new = place.renamed_key(key)
            parts.append(step[0] if new is None else new)
            place = place.below(key)
        if index == 0:
            first = key
        end = step.end()
    return place, "".join([*parts, path[end:]])


def _renames(node: Any, place: Position, path: KeyPath) -> Iterator[Renamed]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            at = (*path, key)
            new = place.renamed_key(str(key))
            if new is not None:
                yield Renamed(at, f"this key is now called `{new}`")
            yield from _renames(value, place.below(str(key)), at)
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from _renames(value, place.below(index), (*path, index))
    elif isinstance(node, str) and place.rule:
        new = place.renamed_text(node)
        if new is not None:
            what = _WORDS.get(place.rule, "this")
            yield Renamed(path, f'"{node}": {what} is now called `{new}`')


_WORDS: Final[Mapping[str, str]] = {
    "format": "the format",
    "measure": "the measure",
    "receiver": "the receiver",
    "path": "the key",
}
