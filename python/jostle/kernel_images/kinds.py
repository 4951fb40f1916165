"""Kinds of kernels."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["KINDS", "Kind"]

Kind = Literal["virtual", "realtime", "native"]
"""A User-Mode Linux that jostle built, the distribution's, or the kernel of this machine."""
KINDS: tuple[Kind, ...] = get_args(Kind)
