"""Recorded results: which command made each file, from which inputs and with which engine.

`docs/results/MANIFEST.toml` has a table per result. `commands`, `files`, `inputs`, `long` (made
only if it is named) and `needs` are written by hand. `recorded` (a date), `seconds`, `engine` (its
versions), `inputs_hash` and `behaviour` say how the files were made; what was not recorded then is
absent. Results are current as long as their
inputs and the engine's behaviour (`behaviour.py`) are the same as at the recording.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jostle import _core

from doc_blocks.behaviour import behaviour_hash

FILE: Final = Path("docs") / "results" / "MANIFEST.toml"
_KEYS: Final = {
    "commands": list, "files": list, "inputs": list, "long": bool, "needs": str, "recorded": str,
    "seconds": int, "engine": list, "inputs_hash": str, "behaviour": str,
}  # fmt: skip
_REQUIRED: Final = ("commands", "files", "inputs")
_HEADER: Final = """\
# Recorded results of the documentation; see tools/doc_blocks/manifest.py. `make results` fills in
# `recorded`, `seconds`, `engine`, `inputs_hash` and `behaviour`.
"""


_KERNELS: Final = ("virtual-", "realtime-", "native-")
"""Prefixes of versions of other backends than the simulator."""
_PLACEHOLDER: Final = re.compile(r"…|\b[A-Z]{4,}\b")


def read(root: Path) -> dict[str, dict[str, Any]]:
    """Read the manifest.

    Raises
    ------
    ValueError
        When a result lacks a key, has an unknown one, or a file does not exist.
    """
    found: dict[str, dict[str, Any]] = tomllib.loads((root / FILE).read_text("utf-8"))
    for name, entry in found.items():
        for key in _REQUIRED:
            if key not in entry:
                raise ValueError(f"{FILE}: {name}: `{key}` is missing")
        for key, value in entry.items():
            if key not in _KEYS or not isinstance(value, _KEYS[key]):
                raise ValueError(f"{FILE}: {name}: `{key}`: one of {', '.join(_KEYS)}")
        for pattern in (*entry["files"], *entry["inputs"]):
            if not list(root.glob(pattern)):
                raise ValueError(f"{FILE}: {name}: no file `{pattern}`")
    return found


def inputs_hash(root: Path, patterns: Sequence[str]) -> str:
    """Return the hash of the inputs; of TOML files, of their values rather than their text."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in root.glob(pattern)}):
        content = path.read_bytes()
        if path.suffix == ".toml":
            values = tomllib.loads(content.decode())
            content = json.dumps(values, sort_keys=True, default=str).encode()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]


def differences(root: Path, entry: Mapping[str, Any], behaviour: str) -> Iterator[str]:
    """Yield why a result may no longer be true."""
    unknown = [key for key in ("inputs_hash", "behaviour") if key not in entry]
    if unknown:
        day = f" on {entry['recorded']}" if "recorded" in entry else ""
        yield f"it was made{day} without a record of {' and '.join(unknown)}"
    if entry.get("inputs_hash", "") not in ("", inputs_hash(root, entry["inputs"])):
        yield f"its inputs have changed since {entry['recorded']}"
    if entry.get("behaviour", "") not in ("", behaviour):
        yield f"the engine behaves differently: {behaviour}, when it was made {entry['behaviour']}"


def check(root: Path, names: Sequence[str], *, release: bool) -> int:
    """Print results that may be out of date; return 1 if that is an error, at a release."""
    entries = _chosen(read(root), names)
    behaviour = behaviour_hash()
    found = [
        f"{FILE}: {name}: {difference}"
        for name, entry in entries.items()
        for difference in differences(root, entry, behaviour)
    ]
    if release:
        others = sorted(
            {
                version
                for entry in entries.values()
                for version in entry.get("engine", ())
                if version != _core.ENGINE_VERSION and not version.startswith(_KERNELS)
            }
        )
        if others:
            found.append(
                f"{FILE}: a release has results of one engine, {_core.ENGINE_VERSION}, and none of "
                + ", ".join(others)
            )
    word = "error" if release else "warning"
    for line in found:
        print(f"{word}: {line}", file=sys.stderr)
    return 1 if release and found else 0


def make(root: Path, names: Sequence[str], *, by_hand: bool = False) -> int:
    """Make results anew: those named, or all that are not long; list the long ones.

    Parameters
    ----------
    root
        The repository.
    names
        Names of results.
    by_hand
        Whether the named ones were just made by hand, so that this is only recorded.
    """
    entries = read(root)
    chosen = _chosen(entries, names)
    if not names:
        long = {name: entry for name, entry in entries.items() if entry.get("long", False)}
        for name, entry in long.items():
            took = f"{entry['seconds']} s" if "seconds" in entry else "time not recorded"
            needs = f", needs {entry['needs']}" if "needs" in entry else ""
            print(f"not made: {name} ({took}{needs}); `--results {name}` makes it:")
            print("\n".join(f"    {command}" for command in entry["commands"]))
        chosen = {name: entry for name, entry in chosen.items() if name not in long}
    behaviour = behaviour_hash()
    for name, entry in chosen.items():
        started = time.monotonic()
        for command in () if by_hand else entry["commands"]:
            if _PLACEHOLDER.search(command):
                print(
                    f"{name}: run `{command}` with your values, then `--made {name}`",
                    file=sys.stderr,
                )
                return 1
            print(f"{name}: {command}", flush=True)
            status = _run(root, command)
            if status != 0:
                print(f"{name}: `{command}` ended with status {status}", file=sys.stderr)
                return 1
        if not by_hand:
            entry["seconds"] = round(time.monotonic() - started)
            print(f"{name}: {entry['seconds']} s")
        entry |= {
            "recorded": datetime.date.today().isoformat(),
            "engine": [_core.ENGINE_VERSION, *_kernels(entry)],
            "inputs_hash": inputs_hash(root, entry["inputs"]),
            "behaviour": behaviour,
        }
        (root / FILE).write_text(written(entries), "utf-8")
    return 0


def _kernels(entry: Mapping[str, Any]) -> list[str]:
    """Return the version of the kernel that a result needs."""
    if entry.get("needs") != "kernel":
        return []
    from jostle.backends import create

    return [create("kernel").version]


def written(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of a manifest."""
    lines = [_HEADER.rstrip("\n")]
    for name, entry in entries.items():
        lines += ["", f"[{name}]"]
        for key in _KEYS:
            if key not in entry:
                continue
            value = json.dumps(entry[key], ensure_ascii=False)
            if isinstance(entry[key], list) and len(value) > 90:
                items = (f"    {json.dumps(one, ensure_ascii=False)},\n" for one in entry[key])
                value = f"[\n{''.join(items)}]"
            lines.append(f"{key} = {value}")
    return "\n".join(lines) + "\n"


def _run(root: Path, command: str) -> int:
    """Carry out `A > FILE` of a manifest, without a shell, with this Python."""
    head, arrow, target = command.partition(" > ")
    program, *rest = shlex.split(head)
    tool = Path(sys.executable).with_name(program)
    words = [sys.executable if program == "python" else str(tool) if tool.exists() else program]
    if not arrow:
        return subprocess.run([*words, *rest], cwd=root, check=False).returncode
    with (root / target.strip()).open("wb") as file:
        return subprocess.run([*words, *rest], cwd=root, stdout=file, check=False).returncode


def _chosen(entries: dict[str, dict[str, Any]], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    unknown = [name for name in names if name not in entries]
    if unknown:
        raise ValueError(f"no result `{unknown[0]}`: one of {', '.join(entries)}")
    return {name: entries[name] for name in names or entries}
