"""Documents with mistakes: values of a TOML document replaced, renamed, removed and exchanged.

Random bytes end in the reader of TOML. These end where what was read is used.
"""

from __future__ import annotations

import copy
import datetime
import json
import math
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

__all__ = ["mutated", "mutated_text", "toml"]

_ODD: Final[Sequence[Any]] = (
    math.nan, math.inf, -math.inf, -1, 0, 1, -0.0, 0.5, 2.5, 1e308, 5e-324, True, False,
    2**31, 2**32, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30,
    "", " ", "a", "1", "0", "-1", "nan", "inf", "1e308", "none", "all", "*", ".", "..", "/",
    "/etc/passwd", "\n", "a\nb", "\u0000", "\u202e", "\U0001f600", "é", "ſ", "x" * 300,
    "0 s", "1 ns", "292 years", "-1 ms", "1e300 s", "9223372036854775807 ns", "1 B", "0 B",
    "1 packets", "0 BDP", "1 BDP", "0 bit/s", "1 bit/s", "100 Gbit/s", "0 %", "100 %", "101 %",
    datetime.date(2024, 2, 29), datetime.time(12), datetime.datetime(2024, 1, 1),
    [], [[]], [{}], [1, 2], [0, 0], ["0 s", "1 s"], ["1 s", "0 s"], [["0 s", "1 s"]], [math.nan],
    {}, {"name": "a"}, {"kind": "a"}, {"from": 1, "to": 2}, {"from": 1, "to": 1},
    {"from": "1 ms", "to": "2 ms", "scale": "log"}, {"time": ["0 s", "1 s"]},
    {"distribution": "exponential", "mean": "1 s"}, {"a": {"b": {"c": 1}}},
)  # fmt: skip
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_NUMBERS: Final = ("0", "1", "-1", "nan", "1e9", "1e18", "1e300", "0.0000001", "999999999999", "")
_COUNTS: Final = (1, 1, 1, 2, 3)
"""How many mistakes a document has."""


def toml(value: Any, *, top: bool = True) -> str:
    """Write a document in TOML, tables inline."""
    if isinstance(value, dict):
        pairs = [f"{_text(key)} = {toml(one, top=False)}" for key, one in value.items()]
        return "\n".join(pairs) + "\n" if top else "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(one, top=False) for one in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return repr(value)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each table or list with each of its keys."""
    below = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, one in below:
        yield value, key
        if isinstance(one, dict | list):
            yield from _places(one)


def mutated(document: Any, draw: random.Random, others: Sequence[Any] = ()) -> Any:
    """Return a copy of a document with one to three mistakes.

    Parameters
    ----------
    document
        What `tomllib` or `json` read.
    draw
        Source of randomness.
    others
        Documents from which values are taken, too.
    """
    made = copy.deepcopy(document)
    for _ in range(draw.choice(_COUNTS)):
        places = list(_places(made))
        if not places:
            break
        _mutate(made, *draw.choice(places), draw, others)
    return made


def _mutate(whole: Any, table: Any, key: Any, draw: random.Random, others: Sequence[Any]) -> None:
    value = table[key]
    kind = draw.randrange(9)
    if kind == 0:
        del table[key]
    elif kind == 1 and isinstance(table, dict):
        # The order of keys stays as it was.
        typo = draw.choice((key + "s", key[:-1], key.upper(), "", key.replace(".", ""), f"{key}.x"))
        renamed = {typo if one == key else one: kept for one, kept in table.items()}
        table.clear()
        table.update(renamed)
    elif kind == 2:
        table[key] = draw.choice(([value], {"a": value}, [value, value], str(value)))
    elif kind in (3, 4):
        # A value of another place, or of another document.
        source = draw.choice((whole, *others))
        other, place = draw.choice(list(_places(source)) or [(table, key)])
        taken = copy.deepcopy(other[place])
        if kind == 4 and isinstance(table, dict) and isinstance(place, str):
            table[place] = taken
        else:
            table[key] = taken
    elif kind == 5 and isinstance(table, list):
        table.insert(draw.randrange(len(table) + 1), copy.deepcopy(value))
    elif kind in (6, 7) and isinstance(value, str) and _NUMBER.search(value):
        table[key] = _NUMBER.sub(draw.choice(_NUMBERS), value, count=1)
    else:
        table[key] = copy.deepcopy(draw.choice(_ODD))


_PIECE: Final = re.compile(r"\s+|[\w.+-]+|.")
_PIECES: Final = (
    "", " ", "\n", "0", "-1", "1", "nan", "inf", "-inf", "1e308", "1e999", "9" * 30, "a", '"', ",",
    "[", "]", "<", ">", "{", "}", "#", "\x00", "\u202e", "é", "null", "true", "1,1", "-0", "١",
)  # fmt: skip


def mutated_text(text: str, draw: random.Random) -> str:
    """Return a text with one to three of its words and numbers replaced, removed or repeated."""
    pieces = _PIECE.findall(text)
    for _ in range(draw.choice(_COUNTS)):
        if not pieces:
            break
        at = draw.randrange(len(pieces))
        kind = draw.randrange(5)
        if kind == 0:
            del pieces[at]
        elif kind == 1:
            pieces.insert(at, pieces[draw.randrange(len(pieces))])
        elif kind == 2:
            other = draw.randrange(len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif kind == 3:
            end = min(len(pieces), at + draw.randint(1, 40))
            pieces[at:end] = draw.choice(([], pieces[at:end] * 2))
        else:
            pieces[at] = draw.choice(_PIECES)
    return "".join(pieces)
