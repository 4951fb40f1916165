"""Addresses of the hosts of a flow."""

from __future__ import annotations

__all__ = ["receiver_address", "sender_address"]


def sender_address(flow: int) -> str:
    """Return the address of a flow's sender."""
    return f"10.1.{flow // 250}.{flow % 250 + 1}"


def receiver_address(flow: int) -> str:
    """Return the address of a flow's receiver."""
    return f"10.2.{flow // 250}.{flow % 250 + 1}"
