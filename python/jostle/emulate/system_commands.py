"""System programs that configure the network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from jostle.errors import EmulationError

__all__ = ["available", "ip", "ip_json", "run"]

_TIMEOUT_S = 30.0
# Administrators' programs, where the PATH of a plain user lacks them.
# An empty word would be the current folder.
_FOLDERS = (os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin")


def available(program: str) -> str | None:
    """Return the path of a program; None if it is not installed."""
    return shutil.which(program, path=os.pathsep.join(_FOLDERS))


def run(*command: str, text: str = "") -> str:
    """Run a program and return what it prints.

    Parameters
    ----------
    command
        Program and its arguments.
    text
        Standard input of the program.

    Raises
    ------
    EmulationError
        If the program is not installed, fails, or hangs; the message contains its output.
    """
    program = available(command[0])
    if program is None:
        raise EmulationError(f"`{command[0]}` is not installed")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
            # Ctrl-C is meant for COMMAND; setup and clean-up steps must complete.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise EmulationError(f"`{' '.join(command)}` hangs") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
        raise EmulationError(f"`{' '.join(command)}` failed: {said}")
    return done.stdout


def ip(*arguments: str, namespace: str | None = None) -> str:
    """Run `ip`, in a namespace if one is given."""
    return run("ip", *(("-n", namespace) if namespace else ()), *arguments)


def ip_json(*arguments: str, namespace: str | None = None) -> list[Mapping[str, Any]]:
    """Run `ip` and return the list that it prints as JSON."""
    printed = ip("-json", *arguments, namespace=namespace)
    found: list[Mapping[str, Any]] = json.loads(printed) if printed.strip() else []
    return found
