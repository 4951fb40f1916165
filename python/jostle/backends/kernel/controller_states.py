"""States of jostle's controllers inside Linux, as the module writes them (`jostle_info.c`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["ControllerState", "read_states"]

_HEAD = struct.Struct("=Q?")
_VALUE = struct.Struct("=d")


@dataclass(frozen=True)
class ControllerState:
    """State of a controller at a sample.

    Attributes
    ----------
    pacing_bps
        Pacing rate that it requires; 0 if it requires none.
    owns_cwnd
        Whether it sets cwnd also while the transport recovers.
    mode
        Name of its mode.
    values
        Internal values by name.
    """

    pacing_bps: int
    owns_cwnd: bool
    mode: str
    values: Mapping[str, float]


def read_states(written: Sequence[str]) -> list[ControllerState | None]:
    """Return the state at each sample; None where there was no connection.

    Parameters
    ----------
    written
        Bytes of each state, in hexadecimal digits.

    Raises
    ------
    ValueError
        If a state is damaged.
    """
    return [_state(bytes.fromhex(text)) if text else None for text in written]


def _state(content: bytes) -> ControllerState:
    try:
        pacing_bps, owns_cwnd = _HEAD.unpack_from(content)
        mode, at = _name(content, _HEAD.size)
        return ControllerState(pacing_bps, owns_cwnd, mode, dict(_values(content, at)))
    except struct.error as error:
        raise ValueError(f"the state of a controller is damaged: {error}") from error


def _values(content: bytes, at: int) -> Iterator[tuple[str, float]]:
    while at < len(content):
        name, at = _name(content, at)
        (value,) = _VALUE.unpack_from(content, at)
        at += _VALUE.size
        yield name, value


def _name(content: bytes, at: int) -> tuple[str, int]:
    end = content.index(b"\0", at)
    return content[at:end].decode("ascii"), end + 1
