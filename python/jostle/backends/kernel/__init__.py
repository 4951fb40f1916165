"""The real Linux TCP stack as a backend: a RunSpec becomes namespaces, `tc` and real sockets."""

from __future__ import annotations

from jostle.backends.kernel.backend import KernelBackend
from jostle.backends.kernel.runner import KernelRunError

__all__ = ["KernelBackend", "KernelRunError"]
