"""A controller that hears nothing: it keeps a window of 1000 packets, whatever is lost."""

from __future__ import annotations

from typing import Any


class Deaf:
    """Broken on purpose."""

    recovery = "controller"
    cwnd = 1000
    mode = "deaf"

    def on_ack(self, event: Any) -> None:
        """Take no notice."""

    def on_congestion_event(self, event: Any) -> None:
        """Take no notice."""
