"""A kernel for tests, if there is any."""

from __future__ import annotations

import json

import pytest
from jostle import _core
from jostle.backends.kernel.controllers import Defaults, defaults_of
from jostle.kernel import Image, KernelMissingError, find


@pytest.fixture(scope="session")
def defaults() -> Defaults:
    return defaults_of(json.loads(_core.registry()))


@pytest.fixture(scope="session")
def kernel() -> Image:
    try:
        return find("virtual")
    except KernelMissingError as error:
        pytest.skip(f"no virtual-time kernel: {error}")
