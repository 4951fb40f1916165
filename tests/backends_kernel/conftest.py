"""What the tests of the kernel backend share."""

from __future__ import annotations

import json

import pytest
from jostle import _core
from jostle.backends import SimBackend
from jostle.backends.kernel import KernelBackend
from jostle.backends.kernel.controllers import Defaults, defaults_of
from jostle.kernel_images import Image


@pytest.fixture(scope="session")
def defaults() -> Defaults:
    return defaults_of(json.loads(_core.registry()))


@pytest.fixture(scope="session")
def kernel(virtual_kernel: Image) -> Image:
    return virtual_kernel


@pytest.fixture(scope="session")
def backend(kernel: Image) -> KernelBackend:
    return KernelBackend(image=kernel)


@pytest.fixture(scope="session")
def simulator() -> SimBackend:
    return SimBackend()
