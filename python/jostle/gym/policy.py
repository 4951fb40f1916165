"""Policy files for the controller `learned`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jostle import _core
from jostle.errors import InputError
from jostle.gym.agent_design import AgentDesign
from jostle.safe_io.untrusted_files import TABLE_BYTES, read_bytes

__all__ = ["Layer", "Policy", "write_policy"]

Layer = tuple[str, npt.ArrayLike, npt.ArrayLike]
"""Activation (`linear`, `tanh`, `relu`), weights of shape (outputs, inputs), biases."""


class Policy:
    """A policy loaded from a file, evaluated like in the engine.

    Parameters
    ----------
    path
        File of the policy.

    Raises
    ------
    InputError
        If the file is not a policy; the message names the problem and the line.
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
    path: str | os.PathLike[str], design: AgentDesign, layers: Sequence[Layer], about: str = ""
) -> None:
    """Write a trained policy to a file for the controller `learned`.

    Parameters
    ----------
    path
        File to write.
    design
        Design with which the policy was trained.
    layers
        Layers of the network that returns the mean action, beginning with the first. Its input is
        the observation of the environment.
    about
        Comment lines on the origin of the policy.

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
