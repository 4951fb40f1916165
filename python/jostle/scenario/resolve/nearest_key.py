"""Keys of the scenario format: how much of a path names one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from jostle.scenario.distributions import RandomQuantity
from jostle.scenario.models import ScenarioFile
from jostle.scenario.parsing.key_lines import KeyPath

__all__ = ["nearest_key"]

_OF_DISTRIBUTIONS: Final = {"min", "max", "mean", "median", "sigma", "scale", "shape"}


def nearest_key(path: KeyPath) -> KeyPath:
    """Return the longest start of a path that names a key of the scenario format."""
    tables: set[Any] = {ScenarioFile}
    has_names = False
    for length, step in enumerate(path):
        if isinstance(step, int):
            continue
        if has_names:
            has_names = False
            continue
        if RandomQuantity in tables and step in _OF_DISTRIBUTIONS:
            return path[: length + 1]
        models = [each for each in tables if issubclass(each, BaseModel)]
        if any(model.model_config.get("extra") == "allow" for model in models):
            # Parameters of an algorithm, which the registry knows.
            return path
        annotations = [
            field.annotation
            for model in models
            for name, field in model.model_fields.items()
            if (field.alias or name) == step
        ]
        if not annotations:
            return path[:length]
        types = [each for annotation in annotations for each in _types(annotation)]
        has_names = dict in types
        tables = {each for each in types if isinstance(each, type)}
    return path


def _types(annotation: Any) -> Iterator[Any]:
    """Yield the types within a type, such as the table of an optional list of tables."""
    yield get_origin(annotation) or annotation
    for part in get_args(annotation):
        yield from _types(part)
