"""Kinds of kernels."""

from __future__ import annotations

from typing import Final, Literal, get_args

__all__ = ["KINDS", "OWN_CONTROLLERS", "RESERVED", "Kind"]

Kind = Literal["virtual", "realtime", "native"]
"""A User-Mode Linux that jostle built, the distribution's, or the kernel of this machine."""
KINDS: tuple[Kind, ...] = get_args(Kind)

OWN_CONTROLLERS: Final = "jostle"
"""Option of the kernel backend: jostle's code instead of Linux's for controllers that both have."""

RESERVED: Final = (*KINDS, OWN_CONTROLLERS)
"""Words that follow `kernel:` and are no names of kernels."""
