"""Converts the guest's captures to pcapng files; see `guest/capture.py`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from jostle.backends.base import Spec, canonical_json
from jostle.backends.capture_files import Captures
from jostle.backends.kernel.guest.capture import BLOCK_BYTES, BLOCKS
from jostle.backends.sim import Engine
from jostle.kernel_images import Image
from jostle.run_spec import FlowSpec
from jostle.safe_io.untrusted_files import STORED_BYTES, open_regular, read_json

# Snap lengths as in the simulator: the headers of plain packets, and complete packets that can be
# decrypted.
_SNAP_BYTES, _ENCRYPTED_SNAP_BYTES = 128, 65_549
# Folder with the files of QUIC endpoints (`guest/quic_flow.py`).
_QUIC = "quic"


def wanted(spec: Spec) -> dict[str, tuple[str, int]]:
    """Return the captured hosts, each with its file and the snap length of datagrams."""
    return {
        host: (f"{host}.ring", _snap_bytes(spec["flows"][flow])) for flow, _, host in _ends(spec)
    }


def _snap_bytes(flow: FlowSpec) -> int:
    quic = flow.get("quic")
    protected = quic is not None and (
        quic["crypto"] == "tls" or quic.get("implementation") is not None
    )
    return _ENCRYPTED_SNAP_BYTES if protected else _SNAP_BYTES


def memory_bytes(spec: Spec) -> int:
    """Return the kernel memory of the capture buffers."""
    return len(wanted(spec)) * BLOCK_BYTES * BLOCKS


def read_captures(spec: Spec, folder: Path, image: Image, engine: Engine) -> Captures | None:
    """Convert the captures in `folder`, if the run has any.

    Raises
    ------
    CaptureError
        If they cannot be written.
    ValueError
        If they are damaged.
    """
    if spec.get("capture") is None:
        return None
    metadata = read_json(folder / "events.json", STORED_BYTES)["captures"]
    converted, files = Captures(), wanted(spec)
    for flow, end, host in _ends(spec):
        received, dropped = metadata["hosts"][host]
        blocks = folder / files[host][0]
        try:
            # Check that it is not a device or pipe, because the engine reads it to its end.
            open_regular(blocks).close()
            engine.capture_from_ring(
                canonical_json(spec),
                flow,
                end,
                system=f"Linux {image.version} ({image.kind})",
                start_ns=metadata["start_ns"],
                received=received,
                dropped=dropped,
                blocks=blocks,
                folder=converted.folder,
                secrets=_secrets(folder, flow, end),
            )
        except OSError as error:
            raise converted.error(error) from error
        # Deleted at once, because keeping both formats would need twice the space.
        blocks.unlink()
        if spec["flows"][flow]["transport"] == "quic":
            _take_log(
                folder / _QUIC / f"{flow}.{end}.sqlog", spec["flows"][flow]["name"], end, converted
            )
    return converted


def _secrets(folder: Path, flow: int, end: str) -> str:
    """Read the TLS secrets of an end, if it wrote them."""
    # External programs write one file for both ends (`guest/quic_programs.py`).
    for path in (folder / _QUIC / f"{flow}.{end}.keys", folder / f"{flow}.keys"):
        if path.exists():
            with open_regular(path) as file:
                return file.read(STORED_BYTES).decode()
    return ""


def _take_log(path: Path, name: str, end: str, converted: Captures) -> None:
    """Move an end's qlog next to its capture, if there is one."""
    if path.exists():
        with (
            open_regular(path) as log,
            (converted.folder / f"{name}.{end}.sqlog").open("xb") as file,
        ):
            shutil.copyfileobj(log, file)
        path.unlink()


def _ends(spec: Spec) -> Iterator[tuple[int, str, str]]:
    """Yield flow, end and host of all captures."""
    if spec.get("capture") is not None:
        for number in range(len(spec["flows"])):
            yield number, "sender", f"s{number}"
            yield number, "receiver", f"r{number}"
