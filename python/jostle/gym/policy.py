"""Policies as files that the controller `learned` takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jostle import _core
from jostle.errors import InputError
from jostle.foreign_files import TABLE_BYTES, read_bytes
from jostle.gym.design import Design

__all__ = ["Layer", "Policy", "write_policy"]

Layer = tuple[str, npt.ArrayLike, npt.ArrayLike]
"""Activation (`linear`, `tanh`, `relu`), weights of shape (outputs, inputs), biases."""


class Policy:
    """A policy that was written, to be asked as the engine asks it.

    Parameters
    ----------
    path
        Its file.

    Raises
    ------
    InputError
        If it is none: what is wrong, and in which line.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self._engine = _core.Policy(read_bytes(Path(path), TABLE_BYTES))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: {error}") from error

    def __call__(self, observation: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the action for an observation."""
        return np.array(self._engine.act(np.asarray(observation, np.float32)))


def write_policy(
    path: str | os.PathLike[str], design: Design, layers: Sequence[Layer], about: str = ""
) -> None:
    """Write what was learnt to a file for the controller `learned`.

    Parameters
    ----------
    path
        The file.
    design
        What the learner observed and did.
    layers
        The network that has the mean action, from the first layer on. It sees the observation as
        the environment gives it.
    about
        Lines that say where the policy comes from.

    Raises
    ------
    InputError
        If the layers do not fit the design.
    """
    lines = [f"# {line}\n" if line else "#\n" for line in about.splitlines()]
    lines.append(design.text)
    for activation, weights, biases in layers:
        matrix = np.column_stack([np.asarray(biases, float), np.asarray(weights, float)])
        lines.append(f"layer {activation} {matrix.shape[1] - 1} {matrix.shape[0]}\n")
        lines += [" ".join(map(repr, row)) + "\n" for row in matrix.tolist()]
    text = "".join(lines)
    try:
        _core.Policy(text.encode())
    except ValueError as error:
        raise InputError(f"no policy of this design: {error}") from error
    Path(path).write_text(text, "utf-8")
