"""Video player with adaptive bitrate: which segment it requests, and when.

The simulator's player is in `crates/traffic/src/video_player.rs`. The measures of its buffer are
computed by `crates/traffic/src/video_playback.rs` for every backend.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NS = 1_000_000_000


class VideoPlayer:
    """A video player. Times are on the monotonic clock.

    Parameters
    ----------
    source
        Source of the flow, of kind `video`.
    factors
        Ratio of each segment's size to the mean, used cyclically.
    """

    def __init__(self, source: Mapping[str, Any], factors: Sequence[float]) -> None:
        self.segments: list[tuple[int, int]] = []
        """Completion time and bitrate of each segment."""
        self.bytes = 0
        """Size of the last requested segment."""
        self.opened = threading.Event()
        """Set after the first request."""
        self._source = source
        self._factors: Iterator[float] = itertools.cycle(factors)
        self._choice: Mapping[str, Any] = source["choice"]
        self._bitrate = 0
        self._requests = 0
        self._request_ns = 0
        self._throughputs_bps: deque[float] = deque(maxlen=self._choice.get("samples", 1))
        # State of the buffer at `_at_ns`.
        self._at_ns = 0
        self._buffered_ns = 0
        self._plays = False

    def open(self, now_ns: int) -> None:
        """Request the first segment."""
        self._ask(now_ns)
        self.opened.set()

    def loaded(self, now_ns: int) -> int | None:
        """Handle the completion of a segment, and choose the next.

        Returns
        -------
        int or None
            Pause before the next request, in ns; None after the last segment.
        """
        self.segments.append((now_ns, self._bitrates_bps[self._bitrate]))
        self._buffer(now_ns)
        took_s = max(1e-9, (now_ns - self._request_ns) / _NS)
        self._throughputs_bps.append(self.bytes * 8 / took_s)
        if self._requests == self._source["segments"]:
            return None
        room_ns = self._source["buffer_ns"] - self._source["segment_ns"]
        pause_ns = max(0, self._buffered_ns - room_ns)
        self._bitrate = self._choose(self._buffered_ns - pause_ns)
        self._ask(now_ns + pause_ns)
        return int(pause_ns)

    @property
    def _bitrates_bps(self) -> Sequence[int]:
        bitrates_bps: Sequence[int] = self._source["bitrates_bps"]
        return bitrates_bps

    def _buffer(self, now_ns: int) -> None:
        """Play until `now_ns`, then add a segment to the buffer."""
        if self._plays:
            passed_ns = now_ns - self._at_ns
            self._plays = passed_ns <= self._buffered_ns
            self._buffered_ns = max(0, self._buffered_ns - passed_ns)
        self._at_ns = now_ns
        self._buffered_ns += self._source["segment_ns"]
        is_last = len(self.segments) == self._source["segments"]
        self._plays |= is_last or self._buffered_ns >= self._source["startup_ns"]

    def _ask(self, at_ns: int) -> None:
        self._requests += 1
        self._request_ns = at_ns
        bits = self._bitrates_bps[self._bitrate] * (self._source["segment_ns"] / _NS)
        self.bytes = max(1, int(bits * next(self._factors) / 8 + 0.5))

    def _choose(self, buffered_ns: int) -> int:
        bitrates_bps = self._bitrates_bps
        if self._choice["kind"] == "buffer":
            above_ns = buffered_ns - self._choice["reservoir_ns"]
            return by_buffer(bitrates_bps, self._bitrate, above_ns / self._choice["cushion_ns"])
        inverse_sum = sum(1 / bps for bps in self._throughputs_bps)
        mean_bps = len(self._throughputs_bps) / inverse_sum
        limit_bps = self._choice["safety"] * mean_bps
        return max((n for n, bps in enumerate(bitrates_bps) if bps <= limit_bps), default=0)


def by_buffer(bitrates_bps: Sequence[int], last: int, above: float) -> int:
    """Choose a bitrate by Algorithm 1 of Huang et al., SIGCOMM 2014 (BBA-0).

    Parameters
    ----------
    bitrates_bps
        Bitrates of the video, increasing.
    last
        Index of the last bitrate.
    above
        Fill level of the cushion above the reservoir; at most 0 within the reservoir.
    """
    highest = len(bitrates_bps) - 1
    if above <= 0:
        return 0
    if above >= 1:
        return highest
    mapped_bps = bitrates_bps[0] + above * (bitrates_bps[-1] - bitrates_bps[0])
    if mapped_bps >= bitrates_bps[min(last + 1, highest)]:
        return max((n for n, bps in enumerate(bitrates_bps) if bps < mapped_bps), default=0)
    if mapped_bps <= bitrates_bps[max(last - 1, 0)]:
        return min((n for n, bps in enumerate(bitrates_bps) if bps > mapped_bps), default=highest)
    return last
