"""Write a table for the controller `remy`, in the format in which Remy writes its own.

Remy (https://web.mit.edu/remy) searches for tables by simulation, for hours. This one was written
by hand, to have an example of the format that can be read. It is none of the published tables, and
no better than its idea: double until the RTT is a tenth above the least one, then have as much in
flight as ACKs have come in 54 ms. On a path of 40 ms that is a standing queue of a third of the
path's own packets; on another it is more, or a sawtooth. Flows keep the shares that they have.

    python examples/remy_table.py my-table.dna

The engine's default is this file: crates/controllers/src/algorithms/remy/by-hand.dna.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from pathlib import Path

# Numbers of fields in protobufs/dna.proto of the Remy repository.
DOMAIN, CHILDREN, LEAF = 1, 2, 3  # WhiskerTree
LOWER, UPPER = 11, 12  # MemoryRange
AXES = {"send_ewma": 21, "rec_ewma": 22, "rtt_ratio": 23, "slow_rec_ewma": 24}  # Memory
INCREMENT, MULTIPLE, INTERSEND, WHISKER_DOMAIN = 31, 32, 33, 34  # Whisker

LIMIT = 163840.0
"""Where every axis ends."""

Box = Mapping[str, tuple[float, float]]

# A window W becomes m W + b at each packet acknowledged, and packets leave tau ms apart at least.
START = (10, 0.0, 0.05)  # b, m, tau
DOUBLE = (1, 1.0, 0.05)
IN_FLIGHT_MS = 54.0
# Ends of boxes of the time between ACKs, from 100 Mbit/s down to 750 kbit/s.
GAPS_MS = [0.125 * 2 ** (step / 2) for step in range(15)]


def varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def sint32(number: int, value: int) -> bytes:
    """Return a field with a signed number."""
    return varint(number << 3) + varint(value << 1 if value >= 0 else (-value << 1) - 1)


def double(number: int, value: float) -> bytes:
    """Return a field with a real number."""
    return varint(number << 3 | 1) + struct.pack("<d", value)


def message(number: int, *fields: bytes) -> bytes:
    """Return a field with a message."""
    content = b"".join(fields)
    return varint(number << 3 | 2) + varint(len(content)) + content


def domain(number: int, box: Box) -> bytes:
    """Return a field with the bounds of a box; along axes that it does not name it has none."""
    corners = [
        message(corner, *(double(AXES[axis], bounds[side]) for axis, bounds in box.items()))
        for side, corner in enumerate((LOWER, UPPER))
    ]
    return message(number, *corners)


def leaf(box: Box, increment: int, multiple: float, intersend: float) -> bytes:
    """Return a field with a box and what to do in it."""
    action = (
        sint32(INCREMENT, increment),
        double(MULTIPLE, multiple),
        double(INTERSEND, intersend),
    )
    whisker = message(LEAF, *action, domain(WHISKER_DOMAIN, box))
    return message(CHILDREN, domain(DOMAIN, box), whisker)


def table() -> bytes:
    """Return the table: a tree that is divided by RTT, and above 1.1 by the time between ACKs."""
    queue: Box = {"rtt_ratio": (1.1, LIMIT)}
    leaves = []
    for least_ms, most_ms in zip([0.0, *GAPS_MS], [*GAPS_MS, LIMIT], strict=True):
        middle_ms = min(most_ms / 2**0.25, GAPS_MS[-1] * 2**0.25)
        # Half of the way to what is wanted. Rounding down leaves W between 2 b - 2 and 2 b.
        increment = round(IN_FLIGHT_MS / middle_ms / 2) + 1
        box = {**queue, "rec_ewma": (least_ms, most_ms)}
        leaves.append(leaf(box, increment, 0.5, middle_ms / 2))
    trees = [
        # The ratio is 0 until the second ACK, and then never below 1.
        leaf({"rtt_ratio": (0.0, 0.5)}, *START),
        leaf({"rtt_ratio": (0.5, 1.1)}, *DOUBLE),
        message(CHILDREN, domain(DOMAIN, queue), *leaves),
    ]
    everywhere = dict.fromkeys(AXES, (0.0, LIMIT))
    return domain(DOMAIN, everywhere) + b"".join(trees)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(table())
