"""Validation of a document against the models, with messages for the keys of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from jostle.scenario import models, sources
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import MOST_PROBLEMS, Report, did_you_mean, nearest
from jostle.scenario.resolve.key_paths import WORD_KEYS, changed, value_at
from jostle.scenario.resolve.parts_cache import PartsCache
from jostle.scenario.resolve.profiles import fill_in

__all__ = ["ValidatedDocument", "validate"]

_EXAMPLES: Final[Mapping[str, str]] = {
    "duration": 'duration = "60 s"',
    "flows": "a [[flows]] table",
    "name": 'name = "first"',
    "controller": 'controller = "cubic"',
    "quantiles": 'quantiles = [["0 %", "0 ms"], ["100 %", "10 ms"]]',
    "correlation": 'correlation = "200 ms"',
    "every": 'every = "20 min"',
    "mean": 'mean = "100 Mbit/s"',
    "deviation": 'deviation = "10 Mbit/s"',
    "access_delay": 'access_delay = "2 ms"',
    "max_acks": "max_acks = 8",
    "durations": 'durations = "200 ms"',
    "kind": 'kind = "…"',
    "size": 'size = "1 MB"',
    "on": 'on = "2 s"',
    "off": 'off = "1 s"',
    "think_time": 'think_time = "500 ms"',
    "fps": "fps = 30",
    "key_frame_size": 'key_frame_size = "37.5 kB"',
    "superframe": 'superframe = "50 ms"',
    "latency": 'latency = "660 ms"',
    "probability": 'probability = "1 %"',
    "deadline": 'deadline = "250 ms"',
}
# Examples for keys with several meanings, by the key of the enclosing table.
_EXAMPLES_IN: Final[Mapping[tuple[str, str], str]] = {
    ("controller", "name"): 'name = "cubic"',
    ("slow_start", "name"): 'name = "hystart"',
    ("peer_cache", "name"): 'name = "stateful"',
    ("queue", "kind"): 'kind = "drop_tail"',
}
_FORMS: Final[Mapping[str, str]] = {
    "string_type": "write a text in quotes",
    "bool_type": "write true or false",
    "int_type": "write a whole number",
    "list_type": "write a list",
    "dict_type": "write a table",
    "model_type": "write a table",
    "model_attributes_type": "write a table",
}
_LISTS_OF_TABLES: Final[tuple[KeyPath, ...]] = (("flows",), ("links",))
# Placeholders for invalid required keys, with which the search for other problems continues.
_STAND_INS: Final[Mapping[KeyPath, str]] = {
    ("duration",): "1 h",
    ("flows", "name"): "flow {}",
    ("flows", "controller"): "-",
    ("links", "name"): "link {}",
}


@dataclass
class ValidatedDocument:
    """A document after validation.

    Parameters
    ----------
    file
        Scenario; None if too little of the document is valid.
    document
        Document from which `file` was read, without invalid values.
    replaced
        Paths of invalid values.
    """

    file: models.ScenarioFile | None
    document: Mapping[str, Any]
    replaced: list[KeyPath] = field(default_factory=list)


def validate(
    document: Mapping[str, Any], report: Report, cache: PartsCache | None = None
) -> ValidatedDocument:
    """Validate each value of a document on its own and report all problems.

    Invalid values are removed, or replaced if they are required, so that the caller can check the
    combination of the remaining values. With a `cache`, links and flows of an earlier document are
    not validated again.
    """
    checked = ValidatedDocument(None, document)
    before = len(report.found)
    first = fill_in(document, report)
    checked.replaced.extend(path for path, _ in report.found[before:])
    read = models.ScenarioFile.model_validate if cache is None else cache.validated
    # Each pass removes invalid values; only the first pass reports them.
    for attempt in range(8):
        filled = first if attempt == 0 else fill_in(checked.document, Report())
        try:
            checked.file = read(filled)
        except ValidationError as error:
            # Limit the number of problems: each is looked up, reported and removed.
            found = error.errors(include_url=False)
            details = found[:MOST_PROBLEMS]
        else:
            break
        meant = {_meant(filled, detail) for detail in details} - {None}
        for detail in details:
            path = _path(filled, detail)
            # Do not report a required key as missing if it was probably misspelt.
            if attempt == 0 and not (detail["type"] == "missing" and path in meant):
                report.add(path, _message(detail, path))
            checked.replaced.append(path)
        # If problems were cut off above, further passes would only find the rest of them.
        if len(found) > MOST_PROBLEMS:
            break
        checked.replaced.extend(path for path in meant if path is not None)
        checked.document = _without(checked.document, details, filled)
    return checked


def _path(document: Mapping[str, Any], detail: ErrorDetails) -> KeyPath:
    """Return the path of a problem in the document, without pydantic's union tags."""
    path: KeyPath = ()
    node: Any = document
    steps = detail["loc"]
    for index, step in enumerate(steps):
        last = index == len(steps) - 1
        if not isinstance(node, dict | list):
            break
        exists, below = value_at(node, (step,))
        if not exists and not (last and detail["type"] == "missing"):
            continue
        path, node = (*path, step), below
    return (*path, *detail.get("ctx", {}).get("at", ()))


def _meant(document: Mapping[str, Any], detail: ErrorDetails) -> KeyPath | None:
    """Return the path of the key that an unknown key probably misspells."""
    if detail["type"] != "extra_forbidden":
        return None
    path = _path(document, detail)
    near = nearest(str(path[-1]), _known_keys(detail["loc"][:-1]))
    return None if near is None else (*path[:-1], near)


def _without(
    document: Mapping[str, Any], details: list[ErrorDetails], filled: Mapping[str, Any]
) -> dict[str, Any]:
    rest = dict(document)
    for wrong in [_path(filled, detail) for detail in details]:
        # An element of a value cannot be removed alone, so remove the value's key.
        keys = [index for index, step in enumerate(wrong) if isinstance(step, str)]
        path = wrong[: keys[-1] + 1] if keys else ()
        required = (*path[:1], *path[2:]) in _STAND_INS
        if required:
            stand_in = _STAND_INS[(*path[:1], *path[2:])]
            rest = changed(rest, path, stand_in.format(*path[1:]))
        elif value_at(rest, path)[0] and path:
            rest = _removed(rest, path)
        elif len(path) > 1 and isinstance(path[-2], str) and value_at(rest, path[:-1])[0]:
            # A required key of a table is missing, so remove the table.
            rest = _removed(rest, path[:-1])
    return rest


def _removed(node: Any, path: KeyPath) -> Any:
    step, rest = path[0], path[1:]
    if not rest:
        return {k: v for k, v in node.items() if k != step}
    if isinstance(node, list):
        return [_removed(n, rest) if i == step else n for i, n in enumerate(node)]
    return {k: _removed(v, rest) if k == step else v for k, v in node.items()}


def _message(detail: ErrorDetails, path: KeyPath) -> str:
    kind, context, given = detail["type"], detail.get("ctx", {}), detail["input"]
    key = str(path[-1]) if path else ""
    match kind:
        case "jostle":
            message = str(context["message"])
        case "missing":
            message = f"missing — write for example {_example(path)}"
        case "extra_forbidden":
            known = _known_keys(detail["loc"][:-1])
            message = f"unknown key — {did_you_mean(key, known, listed='accepted')}"
        case "literal_error":
            accepted = str(context["expected"]).replace("'", '"')
            message = f"{_shown(given)} is not known here — accepted: {accepted}"
        case "union_tag_invalid":
            tags = [tag.strip(" '") for tag in str(context["expected_tags"]).split(",")]
            tag = str(context["tag"])
            message = f'there is no kind "{tag}" — {did_you_mean(tag, tags, listed="kinds")}'
        case "union_tag_not_found":
            message = 'write a table with its kind, as in { kind = "…" }'
        case "greater_than_equal" | "less_than_equal":
            bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
            message = f"{_shown(given)} is out of range — {bound}"
        case "string_too_long":
            message = f"{len(given)} characters — at most {context['max_length']}"
        case "too_short":
            message = "no flows — write at least one [[flows]] table"
        case _:
            form = _form(detail, path)
            message = f"{_shown(given)} does not fit — {form}"
    return message


def _form(detail: ErrorDetails, path: KeyPath) -> str:
    """Say in which form the value of a key is written."""
    kind, key = detail["type"], str(path[-1]) if path else ""
    if key in WORD_KEYS:
        return "write a name, or a table"
    if kind == "list_type" and isinstance(detail["input"], dict) and path in _LISTS_OF_TABLES:
        return f"write [[{key}]] above each of them"
    if kind.startswith("model_") and key in _MODELS:
        keys = ", ".join(f"`{name}`" for name in models.keys_of(_MODELS[key]))
        return f"write a table with keys from {keys}"
    return _FORMS.get(kind, detail["msg"])


def _example(path: KeyPath) -> str:
    key = str(path[-1])
    around = next((step for step in reversed(path[:-1]) if isinstance(step, str)), "")
    return _EXAMPLES_IN.get((around, key)) or _EXAMPLES.get(key, f"{key} = …")


def _known_keys(location: tuple[int | str, ...]) -> list[str]:
    """Return the keys of the model at a location in pydantic's path."""
    model: type[BaseModel] = models.ScenarioFile
    for step in location:
        if isinstance(step, str):
            model = _MODELS.get(step, model)
    return models.keys_of(model)


_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "bottleneck": models.Link,
    "downlink": models.Link,
    "uplink": models.Link,
    "links": models.NamedLink,
    "flows": models.Flow,
    "classes": models.QueueClass,
    "jitter": models.Jitter,
    "outage": models.Outage,
    "graph": models.Graph,
    "edges": models.Edge,
    "quick_start": models.QuickStart,
    "reassignment": models.ReassignmentSlots,
    "handovers": models.Handover,
    "routes": models.RouteChange,
    "frame_aggregation": models.FrameAggregation,
    "ack_thinning": models.AckThinning,
    "framing": models.Framing,
    "faults": models.Faults,
    "packets": models.NumberedFaults,
    "duplicate": models.Occurrence,
    "corrupt": models.Occurrence,
    "reorder": models.Reordering,
    "netem": models.Netem,
    "grants": models.Grants,
    "rate_based": models.RateBased,
    "contention": models.Contention,
    "random": models.RandomRate,
    "recorded": models.RecordedSeries,
    "implementation": models.Implementation,
    "ack_frequency": models.AckFrequency,
    **{
        str(get_args(variant.model_fields["kind"].annotation)[0]): variant
        for variant in (
            sources.Bulk,
            sources.FixedSize,
            sources.OnOff,
            sources.RequestResponse,
            sources.RequestSessions,
            sources.Ping,
            sources.Cbr,
            sources.Media,
            sources.Trace,
            sources.Video,
            sources.Web,
            models.Tcp,
            models.Udp,
            models.Quic,
        )
    },
}


def _shown(given: object) -> str:
    if isinstance(given, dict):
        return "a table"
    if isinstance(given, list):
        return "a list"
    if isinstance(given, str):
        return f'"{given}"'
    return str(given).lower() if isinstance(given, bool) else str(given)
