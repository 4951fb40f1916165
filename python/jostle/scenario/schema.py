"""JSON Schema of the scenario format, for editors and forms.

Keys and their types come from the models. Algorithms and queues with their parameters come from the
engine's registry.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Final

from jostle.scenario import models, sources, transports
from jostle.scenario.fields import AMOUNT_SCHEMA, PROBABILITY_SCHEMA, RATE_SCHEMA, SPAN_SCHEMA
from jostle.scenario.framing import KEYWORDS
from jostle.scenario.registry import Parameter, Registry, Row
from jostle.scenario.resolve.grid import MOST_CONDITIONS
from jostle.scenario.resolve.profiles import profiles
from jostle.scenario.resolve.sample import METHODS

__all__ = ["json_schema"]

_NONE: Final = {"const": "none"}
_WIFI: Final = {
    "type": "object",
    "properties": {"model": {"const": "wifi"}, "average": SPAN_SCHEMA.json_schema},
    "required": ["model", "average"],
    "additionalProperties": False,
}
_THRESHOLD: Final = {"type": "integer", "minimum": 0}


def json_schema(registry: Registry | None = None) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a scenario file.

    Parameters
    ----------
    registry
        Registry of names that a scenario can use; by default the installed engine's.

    Returns
    -------
    dict
        JSON Schema of the parsed TOML document. It covers each key on its own;
        `jostle.scenario.load` also checks the combination of keys.
    """
    registry = registry or Registry.of_engine()
    schema = _written(models.ScenarioFile.model_json_schema())
    definitions = schema["$defs"]
    tables = {**definitions, models.ScenarioFile.__name__: schema}
    for model, key, description in _descriptions():
        for heir in (model, "NamedLink") if model == "Link" else (model,):
            tables[heir]["properties"][key]["description"] = description
    slow_start = _choice(registry.slow_starts, "name")
    controllers = {**registry.controllers, **registry.quic_controllers}
    definitions["Controller"] = _choice(controllers, "name", slow_start)
    definitions["Controller"]["anyOf"] += [*_python_class(), _NONE]
    definitions["SlowStart"] = slow_start
    definitions["PeerCache"] = _choice(registry.peer_caches, "name")
    definitions["Queue"] = _choice(registry.queues, "kind")
    definitions["Loss"] = _choice(registry.losses, "kind")
    for row, table in zip(registry.queues.values(), definitions["Queue"]["anyOf"][1:], strict=True):
        if row.classful:
            each = {"$ref": "#/$defs/QueueClass"}
            classes = {"type": "object", "minProperties": 1, "additionalProperties": each}
            table["properties"]["classes"] = classes
    definitions["QueueClass"]["properties"]["queue"] = {"$ref": "#/$defs/Queue"}
    del definitions["Algorithm"], definitions["RegistryChoice"]
    flow = definitions["Flow"]["properties"]
    flow["controller"] = {"$ref": "#/$defs/Controller"}
    flow["slow_start"] = {"$ref": "#/$defs/SlowStart"}
    flow["peer_cache"] = {"anyOf": [_NONE, {"$ref": "#/$defs/PeerCache"}]}
    proxy = definitions["Proxy"]["properties"]
    proxy["controller"] = {"$ref": "#/$defs/Controller"}
    proxy["slow_start"] = {"$ref": "#/$defs/SlowStart"}
    flow["proxy"] = {"anyOf": [_NONE, {"$ref": "#/$defs/Proxy"}, flow["proxy"]]}
    video = definitions["Video"]["properties"]
    for keys, key in ((flow, "source"), (video, "abr")):
        keys[key] = {"anyOf": [{"enum": _words(keys[key], definitions)}, keys[key]]}
    names = ["none", *flow["receiver"]["discriminator"]["mapping"]]
    flow["receiver"] = {"anyOf": [{"enum": names}, flow["receiver"]]}
    flow["reader"] = {"anyOf": [_NONE, {"$ref": "#/$defs/Reader"}]}
    flow["timers"] = {"anyOf": [_NONE, {"$ref": "#/$defs/Timers"}]}
    kinds = {"enum": ["tcp", "udp", "quic"]}
    flow["transport"] = {"anyOf": [kinds, flow["transport"]]}
    quic = definitions["Quic"]["properties"]
    for key in ("implementation", "ack_frequency"):
        word = {"type": "string"} if key == "implementation" else {"anyOf": [_NONE, _THRESHOLD]}
        quic[key] = {"anyOf": [word, quic[key]]}
    for name in ("Link", "NamedLink"):
        _accept_words(definitions[name]["properties"], definitions)
    for unused in ("Jitter", "Outage", "QuickStart", "ReassignmentSlots"):
        del definitions[unused]
    levels = {"anyOf": [{"type": "array", "minItems": 1}, {"type": "object", "minProperties": 1}]}
    capture = schema["properties"]["capture"]
    schema["properties"]["capture"] = {"anyOf": [{"type": "boolean"}, capture]}
    schema["properties"]["grid"] = {"type": "object", "additionalProperties": levels}
    schema["properties"]["sample"] = _sample(levels)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


_LINK_TABLES: Final = {
    "jitter": "Jitter",
    "outage": "Outage",
    "reassignment": "ReassignmentSlots",
    "frame_aggregation": "FrameAggregation",
    "ack_thinning": "AckThinning",
    "netem": "Netem",
    "grants": "Grants",
}


def _accept_words(link: dict[str, Any], definitions: Mapping[str, Any]) -> None:
    """Allow strings for keys of a link that accept a word instead of a table."""
    link["profile"] = {"enum": list(profiles())}
    link["queue"] = {"$ref": "#/$defs/Queue"}
    recorded = {"$ref": "#/$defs/RecordedSeries"}
    link["loss"] = {"anyOf": [_NONE, PROBABILITY_SCHEMA, {"$ref": "#/$defs/Loss"}, recorded]}
    for key, model in _LINK_TABLES.items():
        # With a profile, a table may set only the keys that it changes, so none is required.
        table = {**definitions[model], "required": []}
        link[key] = {"anyOf": [_NONE, table]}
    link["jitter"]["anyOf"].append(_WIFI)
    for key, model in (("rate_based", "RateBased"), ("contention", "Contention")):
        table = {"anyOf": [_NONE, {"$ref": f"#/$defs/{model}"}]}
        definitions["Grants"]["properties"][key] = table
    limit = {"anyOf": [_NONE, {"type": "integer", "minimum": 1, "maximum": 2**32 - 1}]}
    definitions["Netem"]["properties"]["limit"] = limit
    faults = definitions["Faults"]["properties"]
    for key, model in (
        ("duplicate", "Occurrence"),
        ("corrupt", "Occurrence"),
        ("reorder", "Reordering"),
    ):
        faults[key] = {"anyOf": [_NONE, PROBABILITY_SCHEMA, {"$ref": f"#/$defs/{model}"}]}
    link["framing"] = {"anyOf": [_NONE, {"enum": list(KEYWORDS)}, {"$ref": "#/$defs/Framing"}]}
    link["quick_start"] = {"anyOf": [_NONE, RATE_SCHEMA.json_schema, definitions["QuickStart"]]}


def _words(tables: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[str]:
    """Return the kinds that a word can select: those whose table requires no other key."""
    refs = tables["discriminator"]["mapping"]
    names = {kind: ref.rsplit("/", 1)[1] for kind, ref in refs.items()}
    return [kind for kind, name in names.items() if definitions[name]["required"] == ["kind"]]


def _sample(levels: dict[str, Any]) -> dict[str, Any]:
    end = {"type": ["number", "string"]}
    scale = {"enum": ["linear", "log"]}
    drawn = {
        "type": "object",
        "properties": {"from": end, "to": end, "scale": scale},
        "required": ["from", "to"],
        "additionalProperties": False,
    }
    text = {"type": "string"}
    own = {
        "points": {"type": "integer", "minimum": 1, "maximum": MOST_CONDITIONS},
        "method": {"enum": list(METHODS)},
        "seed": {"type": "integer", "minimum": 0},
        "where": {"anyOf": [text, {"type": "array", "items": text}]},
    }
    return {
        "type": "object",
        "properties": own,
        "required": ["points"],
        "additionalProperties": {"anyOf": [drawn, levels]},
    }


def _descriptions() -> Iterator[tuple[str, str, str]]:
    """Yield model, key and text of the docstrings of all keys of the models.

    pydantic can collect them too, but does so at import time, which slows down every command.
    """
    modules = (models, sources, transports)
    for table in (it for module in modules for it in ast.parse(inspect.getsource(module)).body):
        if not isinstance(table, ast.ClassDef):
            continue
        before: ast.stmt | None = None
        for statement in table.body:
            match before, statement:
                case (
                    ast.AnnAssign(target=ast.Name(id=key)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    # A key that is a Python keyword has an alias.
                    yield table.name, key.rstrip("_"), " ".join(text.split())
            before = statement


def _choice(
    rows: Mapping[str, Row], key: str, slow_start: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the schema of a name, or of a table with the name and its parameters."""
    words = {"enum": list(rows)}
    return {"anyOf": [words, *(_table(row, key, slow_start) for row in rows.values())]}


def _table(row: Row, key: str, slow_start: dict[str, Any] | None) -> dict[str, Any]:
    properties = {name: _parameter(p) for name, p in row.parameters.items()}
    if slow_start is not None and row.slow_start is not None:
        properties.setdefault(row.slow_start, {"type": "boolean"})
        properties["slow_start"] = {"$ref": "#/$defs/SlowStart"}
    return {
        "type": "object",
        "description": row.summary,
        "properties": {key: {"const": row.name}, **properties},
        "required": [key, *(n for n, p in row.parameters.items() if p.default is None)],
        "additionalProperties": False,
    }


def _python_class() -> list[dict[str, Any]]:
    """Return the schemas of a Python controller: `module:Class`, or a table with that name."""
    name = {"type": "string", "pattern": r"^[^:]+:[^:]+$"}
    table = {
        "type": "object",
        "description": "a controller written in Python, with arguments of its class",
        "properties": {"name": name},
        "required": ["name"],
        "additionalProperties": {"type": ["boolean", "number", "string"]},
    }
    return [name, table]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any]
    match parameter.kind:
        case "bool":
            schema = {"type": "boolean"}
        case "choice":
            schema = {"enum": list(parameter.choices)}
        case "file":
            schema = {"type": "string"}
        case "span":
            schema = dict(SPAN_SCHEMA.json_schema or {})
        case "rate":
            schema = dict(RATE_SCHEMA.json_schema or {})
        case "size" | "limit" | "packets":
            schema = dict(AMOUNT_SCHEMA.json_schema or {})
        case "probability":
            schema = dict(PROBABILITY_SCHEMA)
        case kind:
            number = "integer" if kind == "integer" else "number"
            schema = {"type": number, "minimum": parameter.minimum, "maximum": parameter.maximum}
            if kind == "number" and parameter.maximum == 1:
                schema = {"anyOf": [schema, PROBABILITY_SCHEMA]}
    return {**schema, "description": parameter.summary}


def _written(node: Any) -> Any:
    """Return `node` without nulls, titles and defaults in base units.

    TOML has no null: an optional key is absent.
    """
    if isinstance(node, list):
        return [_written(n) for n in node]
    if not isinstance(node, dict):
        return node
    plain = isinstance(node.get("default"), bool | str) or node.get("type") == "integer"
    node = {
        key: _written(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str)) and (key != "default" or plain)
    }
    if "anyOf" in node:
        others = [one for one in node["anyOf"] if one != {"type": "null"}]
        rest = {k: v for k, v in node.items() if k != "anyOf"}
        node = {**others[0], **rest} if len(others) == 1 else {**rest, "anyOf": others}
    return node
