"""Differentiated services codepoints: names and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

__all__ = ["CODEPOINTS", "Codepoint", "Codepoints", "codepoint_name"]

CODEPOINTS: Final[Mapping[str, int]] = {
    **{f"CS{number}": 8 * number for number in range(8)},
    **{f"AF{kind}{drop}": 8 * kind + 2 * drop for kind in range(1, 5) for drop in range(1, 4)},
    "LE": 1,
    "VA": 44,
    "EF": 46,
}
"""Names of IANA's registry of codepoints, with their numbers."""

_LARGEST: Final = 63


def codepoint_name(number: int) -> str:
    """Return the name of a codepoint; its number if it has none."""
    return next((name for name, value in CODEPOINTS.items() if value == number), str(number))


def _codepoint(given: Any) -> int:
    if isinstance(given, str) and given.upper() in CODEPOINTS:
        return CODEPOINTS[given.upper()]
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= _LARGEST:
        return given
    shown = f'"{given}"' if isinstance(given, str) else str(given)
    message = f'{shown} is no codepoint — write for example "EF", "AF41" or a number up to 63'
    raise PydanticCustomError("jostle", "{message}", {"message": message, "at": []})


def _codepoints(given: Any) -> tuple[int, ...]:
    found = [_codepoint(item) for item in (given if isinstance(given, list) else [given])]
    return tuple(dict.fromkeys(found))


_SCHEMA: Final = {
    "anyOf": [{"enum": list(CODEPOINTS)}, {"type": "integer", "minimum": 0, "maximum": _LARGEST}]
}
Codepoint = Annotated[int, PlainValidator(_codepoint), WithJsonSchema(_SCHEMA)]
Codepoints = Annotated[
    tuple[int, ...],
    PlainValidator(_codepoints),
    WithJsonSchema({"anyOf": [*_SCHEMA["anyOf"], {"type": "array", "items": _SCHEMA}]}),
]
