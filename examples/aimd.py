"""AIMD: one packet more per round trip, 30 % less after a congestion event."""

from __future__ import annotations

from typing import Any


class Aimd:
    """Additive increase, multiplicative decrease."""

    def __init__(self, increase: float = 1.0, decrease: float = 0.7) -> None:
        self.increase = increase
        self.decrease = decrease
        self.cwnd = 10.0
        self.ssthresh: float | None = None

    def on_established(self, event: Any) -> None:
        """Start with the initial window of the flow or of its peer cache."""
        self.cwnd = float(event.initial_window)

    def on_ack(self, ack: Any) -> None:
        """Double cwnd per round trip in slow start, then add `increase` packets per round trip."""
        if not (ack.may_grow and ack.cwnd_limited):
            return
        in_slow_start = self.ssthresh is None or self.cwnd < self.ssthresh
        self.cwnd += ack.acked if in_slow_start else self.increase * ack.acked / self.cwnd

    def on_congestion_event(self, event: Any) -> None:
        """Set ssthresh. The transport then reduces cwnd to it."""
        self.ssthresh = max(2.0, self.decrease * self.cwnd)
