"""AIMD by delay: grow by a packet per round trip, and shrink when packets wait for too long.

A controller written in Python: `delay_aimd.toml` in this folder names it. See
docs/tutorials/your-controller.md.
"""

from __future__ import annotations

from typing import Any


class DelayAimd:
    """Additive increase below `target_ms` of queueing delay, multiplicative decrease above it."""

    def __init__(self, target_ms: float = 10.0, beta: float = 0.85) -> None:
        self.cwnd = 10.0
        self.ssthresh: float | None = None
        self.mode = "slow_start"
        self.target_s = target_ms / 1e3
        self.beta = beta
        self.base_s = self.round_s = float("inf")
        self.queueing_s = 0.0
        self.round_end = 0

    def on_established(self, event: Any) -> None:
        """Take the handshake's RTT for the path's: no packets of ours were queued yet."""
        self.cwnd = float(event.initial_window)
        if event.rtt_s is not None:
            self.base_s = event.rtt_s

    def on_ack_before_loss_detection(self, sample: Any) -> None:
        """Keep the least RTT of all, and of the round: a delayed ACK is no queue."""
        if sample.rtt_s is not None:
            self.base_s = min(self.base_s, sample.rtt_s)
            self.round_s = min(self.round_s, sample.rtt_s)

    def on_ack(self, ack: Any) -> None:
        """Judge the queue once per round trip; shrink if packets wait for too long, or grow."""
        if ack.first_unacked > self.round_end and self.round_s < float("inf"):
            self.queueing_s = self.round_s - self.base_s
            self.round_end, self.round_s = ack.next_to_send, float("inf")
            if self.queueing_s > self.target_s and ack.may_grow:
                self.cwnd = max(2.0, self.beta * self.cwnd)
                self.mode = "avoidance"
        if self.queueing_s <= self.target_s and ack.may_grow and ack.cwnd_limited:
            slow_start = self.mode == "slow_start"
            self.cwnd += ack.acked if slow_start else ack.acked / self.cwnd

    def on_congestion_event(self, signal: Any) -> None:
        """Answer a loss as Reno does: the transport reduces the window to ssthresh."""
        self.ssthresh = max(2.0, self.cwnd / 2)
        self.mode = "avoidance"

    def observe(self) -> dict[str, float]:
        """Show the queueing delay among the run's internals."""
        return {"queueing_delay_s": self.queueing_s}
