"""Adaptive streaming: converts a video source to the form of the run specification."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from jostle.run_spec import VideoChoice, VideoSource
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import format_amount
from jostle.scenario.sources import BufferBasedAbr, Video

__all__ = ["video_spec"]

_LADDER_KBPS: Final = (235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800)
"""Netflix's bitrates for all titles until 2015 (Netflix Technology Blog, "Per-Title Encode
Optimization", 14 December 2015)."""

_SHORTEST_SEGMENT_NS: Final = 10_000_000

# Huang et al., section 4.2: with a buffer of 240 s, a reservoir of 90 s and a cushion up to 90 %.
_RESERVOIR: Final = (90, 240)
_CUSHION: Final = (126, 240)


def video_spec(source: Video, path: KeyPath, report: Report) -> VideoSource:
    """Return a video source with the values that the scenario leaves out."""
    ladder = source.bitrates or [kbps * 1000 for kbps in _LADDER_KBPS]
    for index, (before, bitrate) in enumerate(pairwise(ladder), 1):
        if bitrate <= before:
            shown = format_amount(before, "rate")
            message = f"bitrates rise: this is not above the one before it, {shown}"
            report.add((*path, "bitrates", index), message)
    if source.segment < _SHORTEST_SEGMENT_NS:
        report.add((*path, "segment"), 'too short — write "10 ms" or more, for example "4 s"')
    if source.length is not None and source.length % source.segment:
        report.add((*path, "length"), _no_multiple(source.length, source.segment))
    if source.variation >= 1:
        report.add((*path, "variation"), 'a segment has a size — write less than "100 %"')
    startup = source.startup_buffer or source.segment
    # Playback starts after a whole number of segments.
    needed = -(-startup // source.segment) * source.segment
    if needed > source.buffer:
        shown = format_amount(needed, "time")
        message = f"the player begins with {shown}, for which its buffer has no room"
        report.add((*path, "buffer"), message, (*path, "startup_buffer"))
    return {
        "kind": "video",
        "bitrates_bps": list(ladder),
        "segment_ns": source.segment,
        "segments": None if source.length is None else -(-source.length // source.segment),
        "variation": source.variation,
        "choice": _choice(source, path, report),
        "startup_ns": startup,
        "buffer_ns": source.buffer,
    }


def _no_multiple(length_ns: int, segment_ns: int) -> str:
    """Return the message for a length that is no multiple of the segments', with the nearest."""
    below_ns = length_ns // segment_ns * segment_ns
    nearest = [format_amount(it, "time") for it in (below_ns, below_ns + segment_ns) if it]
    lengths = [format_amount(it, "time") for it in (length_ns, segment_ns)]
    written = " or ".join(f'"{text}"' for text in nearest)
    return f'"{lengths[0]}" is no multiple of the segments of "{lengths[1]}" — write {written}'


def _choice(source: Video, path: KeyPath, report: Report) -> VideoChoice:
    choice = source.abr
    if isinstance(choice, BufferBasedAbr):
        reservoir, cushion = (
            source.buffer * part // whole if given is None else given
            for given, (part, whole) in (
                (choice.reservoir, _RESERVOIR),
                (choice.cushion, _CUSHION),
            )
        )
        return {"kind": "buffer", "reservoir_ns": reservoir, "cushion_ns": max(1, cushion)}
    if choice.safety == 0:
        report.add((*path, "abr", "safety"), "nothing would be left — write for example 0.85")
    return {"kind": "throughput", "samples": choice.samples, "safety": choice.safety}
