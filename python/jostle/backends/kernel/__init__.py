"""Kernel backend: runs a RunSpec on the Linux TCP stack with namespaces, `tc` and sockets."""

from __future__ import annotations

from jostle.backends.kernel.backend import KernelBackend
from jostle.backends.kernel.runner import KernelRunError

__all__ = ["KernelBackend", "KernelRunError"]
