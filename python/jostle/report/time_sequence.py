"""A time-sequence diagram, packed for a page."""

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.figures.time_sequence_data import KINDS, SequencesData
from jostle.results.time_sequence import downsample

if TYPE_CHECKING:
    from jostle.figures.time_sequence_data import SequenceData

MOST_ROWS = 60_000
"""Largest number of packets, ACKs and SACKs of a flow, each: about 500 kB of text."""


def fitting(data: SequencesData) -> SequencesData:
    """Remove data that exceed the size of a page, and add a note about it."""
    flows = tuple(downsample(flow, MOST_ROWS) for flow in data.flows)
    said = ["Times count from the start of each flow."] if data.clock else []
    cut = [flow for flow in flows if flow.is_cut]
    if cut:
        until = ", ".join(f"{flow.to_s:.6g} s" for flow in cut)
        said.append(
            f"To keep this page small, only packets up to {until} are here: --from and --to choose "
            "others."
        )
    return SequencesData(data.title, flows, " ".join(said), data.clock)


def packed(data: SequencesData) -> tuple[dict[str, Any], str]:
    """Encode a diagram for `static/sequence.js`.

    Returns
    -------
    data
        Origin of the times; name, packet kinds and number of table rows of each flow.
    values
        Base64 of gzip of the columns as float64, one after the other: for packets time, start, end
        and kind; for ACKs time, number and window edge; for SACKs time, start, end and whether
        they report duplicates.
    """
    columns = [column for flow in data.flows for column in _columns(flow)]
    whole = np.concatenate([column.astype("<f8") for column in columns])
    described = {
        "clock": data.clock,
        "flows": [
            {
                "label": flow.label,
                "whats": [KINDS[kind] for kind in flow.packets.kinds],
                "packets": flow.packets.time_s.size,
                "answers": flow.answers.time_s.size,
                "sacks": flow.sacks.time_s.size,
            }
            for flow in data.flows
        ],
    }
    return described, base64.b64encode(gzip.compress(whole.tobytes(), 9, mtime=0)).decode()


def _columns(flow: SequenceData) -> list[np.ndarray[Any, np.dtype[Any]]]:
    packets, answers, sacks = flow.packets, flow.answers, flow.sacks
    return [
        packets.time_s, packets.start, packets.end, packets.kind,
        answers.time_s, answers.acknowledged, answers.edge,
        sacks.time_s, sacks.start, sacks.end, sacks.is_duplicate,
    ]  # fmt: skip
