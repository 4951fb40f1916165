"""Import of Gymnasium, with an error that explains how to install it."""

from __future__ import annotations

__all__ = ["gymnasium"]

try:
    import gymnasium
except ImportError as error:
    raise ImportError(
        'jostle.gym needs Gymnasium, which is not installed: pip install "jostle[gym]"'
    ) from error
