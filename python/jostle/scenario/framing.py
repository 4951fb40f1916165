"""Framing of packets on the wire of a link, with the keywords of `tc`'s CAKE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field
from pydantic_core import PydanticCustomError

from jostle.run_spec import FramingSpec
from jostle.scenario.base_model import ScenarioTable

__all__ = ["KEYWORDS", "Framing", "framing_spec", "framing_table"]

_ATM, _PTM = "atm", "ptm"
_KEYWORDS: Final[Mapping[str, tuple[int, int, str]]] = {
    "pppoa-vcmux": (10, 0, _ATM),
    "pppoa-llc": (14, 0, _ATM),
    "pppoe-vcmux": (32, 0, _ATM),
    "pppoe-llcsnap": (40, 0, _ATM),
    "bridged-vcmux": (24, 0, _ATM),
    "bridged-llcsnap": (32, 0, _ATM),
    "ipoa-vcmux": (8, 0, _ATM),
    "ipoa-llcsnap": (16, 0, _ATM),
    "pppoe-ptm": (30, 0, _PTM),
    "bridged-ptm": (22, 0, _PTM),
    "docsis": (18, 64, "noatm"),
    "ethernet": (38, 84, "noatm"),
}

KEYWORDS: Final[Mapping[str, Mapping[str, Any]]] = {
    name: {"overhead": overhead, "mpu": mpu, "atm": cells}
    for name, (overhead, mpu, cells) in _KEYWORDS.items()
}
"""Values of the keywords of `tc-cake(8)` for lines."""


class Framing(ScenarioTable):
    """Size of packets on the wire: bytes in addition to the IP packet, a minimum, and cells."""

    overhead: Annotated[int, Field(ge=-64, le=256)] = 14
    """Bytes of each packet in addition to the IP packet; 14 is the Ethernet header alone."""
    mpu: Annotated[int, Field(ge=0, le=256)] = 0
    """Smallest size of a packet, including the overhead."""
    atm: Literal["noatm", "atm", "ptm"] = "noatm"
    """`"atm"`: cells of 53 bytes with 48 bytes of payload; `"ptm"`: one byte more per 64 bytes or
    part of them, as CAKE counts."""


def framing_table(given: Any) -> Any:
    """Convert a keyword to a table, and "none" to None."""
    if not isinstance(given, str) or given == "none":
        return None if given == "none" else given
    if given in KEYWORDS:
        return dict(KEYWORDS[given])
    message = f'"{given}" — accepted: {", ".join(KEYWORDS)}, or a table'
    raise PydanticCustomError("jostle", "{message}", {"message": message, "at": []})


def framing_spec(framing: Framing) -> FramingSpec:
    """Return a framing in the form of the run specification."""
    return {
        "overhead_bytes": framing.overhead,
        "mpu_bytes": framing.mpu,
        "cells": "none" if framing.atm == "noatm" else framing.atm,
    }
