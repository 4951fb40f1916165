"""What the guest captured, as pcapng files; see `guest/capture.py`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from jostle.backends.base import Spec, canonical_json
from jostle.backends.captures import Captures
from jostle.backends.kernel.guest.capture import BLOCK_BYTES, BLOCKS
from jostle.backends.sim import Engine
from jostle.foreign_files import STORED_BYTES, open_regular, read_json
from jostle.kernel_images import Image
from jostle.run_spec import FlowSpec

# As the simulator's captures have it: the beginning of datagrams in the clear, all of those that
# can be decrypted.
_BEGINNING_BYTES, _WHOLE_BYTES = 128, 65_549
# Where the ends of QUIC flows write (`guest/quic.py`).
_QUIC = "quic"


def wanted(spec: Spec) -> dict[str, tuple[str, int]]:
    """Hosts whose packets a run captures, each with its file and the bytes kept of a datagram."""
    return {
        host: (f"{host}.ring", _kept_bytes(spec["flows"][flow])) for flow, _, host in _ends(spec)
    }


def _kept_bytes(flow: FlowSpec) -> int:
    quic = flow.get("quic")
    protected = quic is not None and (
        quic["crypto"] == "tls" or quic.get("implementation") is not None
    )
    return _WHOLE_BYTES if protected else _BEGINNING_BYTES


def memory_bytes(spec: Spec) -> int:
    """Memory of the kernel that captures take."""
    return len(wanted(spec)) * BLOCK_BYTES * BLOCKS


def captured(spec: Spec, folder: Path, image: Image, engine: Engine) -> Captures | None:
    """Turn what a job left in `folder` into captures, if its run has any.

    Raises
    ------
    CaptureError
        When they cannot be written.
    ValueError
        When what is there is not whole.
    """
    if spec.get("capture") is None:
        return None
    told = read_json(folder / "events.json", STORED_BYTES)["captures"]
    made, files = Captures(), wanted(spec)
    for flow, end, host in _ends(spec):
        received, dropped = told["hosts"][host]
        blocks = folder / files[host][0]
        try:
            # No device, no pipe: the engine reads it to its end.
            open_regular(blocks).close()
            engine.capture_from_ring(
                canonical_json(spec),
                flow,
                end,
                system=f"Linux {image.version} ({image.kind})",
                start_ns=told["start_ns"],
                received=received,
                dropped=dropped,
                blocks=blocks,
                folder=made.folder,
                secrets=_secrets(folder, flow, end),
            )
        except OSError as error:
            raise made.error(error) from error
        # Both forms of all at once would take twice the room.
        blocks.unlink()
        if spec["flows"][flow]["transport"] == "quic":
            _take_log(
                folder / _QUIC / f"{flow}.{end}.sqlog", spec["flows"][flow]["name"], end, made
            )
    return made


def _secrets(folder: Path, flow: int, end: str) -> str:
    """Read what opens the packets of an end, if that wrote it down."""
    # Programs of others write one file for both (`guest/programs.py`).
    for path in (folder / _QUIC / f"{flow}.{end}.keys", folder / f"{flow}.keys"):
        if path.exists():
            with open_regular(path) as file:
                return file.read(STORED_BYTES).decode()
    return ""


def _take_log(path: Path, name: str, end: str, made: Captures) -> None:
    """Put an end's log beside its packets, if it wrote one."""
    if path.exists():
        with open_regular(path) as log, (made.folder / f"{name}.{end}.sqlog").open("xb") as file:
            shutil.copyfileobj(log, file)
        path.unlink()


def _ends(spec: Spec) -> Iterator[tuple[int, str, str]]:
    """Yield flow, end and host of everything that is captured."""
    if spec.get("capture") is not None:
        for number in range(len(spec["flows"])):
            yield number, "sender", f"s{number}"
            yield number, "receiver", f"r{number}"
