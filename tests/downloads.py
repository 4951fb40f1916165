"""A download by Cubic and by BBR over a network that a fit is to find, or begins with."""

from __future__ import annotations

from typing import Any


def document(rate: str, rtt: str, limit: str, loss: str, **more: Any) -> dict[str, Any]:
    """The scenario: a drop-tail queue of `limit` and random losses, and `more` keys beside them."""
    return {
        "title": "A download over a network to be found",
        "sampling_interval": "100 ms",
        "bottleneck": {
            "rate": rate,
            "queue": {"kind": "drop_tail", "limit": limit},
            "loss": loss,
        },
        "flows": [{"name": "download", "controller": "cubic", "rtt": rtt}],
        "grid": {"flows.download.controller": ["cubic", "bbr"]},
        **more,
    }
