"""Flows over jostle's own QUIC: each end is a process that samples itself."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .flow import Flow, FlowOfJob
from .namespaces import Host
from .program import Program
from .quic_endpoint import COMPLETED
from .sample_format import FLOW_BYTES

_PORT = 4433
# Timeout for the ends to write their results after the end of the run.
_DONE_WITHIN_S = 60.0
_NO_RECORD = bytes(FLOW_BYTES)


class QuicFlow(FlowOfJob):
    """Both ends of a flow.

    Parameters
    ----------
    number
        Index of the flow in the job.
    job
        The flow's part of the job.
    engine
        Path of the engine, which both ends load.
    moments_ns
        Times of the samples.
    folder
        Folder with the run's specification (`spec.json`), and for the samples.
    """

    def __init__(
        self,
        number: int,
        job: Mapping[str, Any],
        hosts: Mapping[str, Host],
        *,
        engine: str,
        moments_ns: Sequence[int],
        folder: Path,
    ) -> None:
        super().__init__(number, job, hosts)
        self._engine = engine
        self._moments_ns = moments_ns
        self._folder = folder / "quic"
        self._spec = folder / "spec.json"
        self._start_ns = 0
        self._ends: list[Program] = []
        self._folder.mkdir(exist_ok=True)

    def listen(self) -> None:
        """Do nothing, because the receiver is ready long before the run begins."""

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start both ends, with the run's time 0 at `start_ns`; may wait for one of `flows`."""
        self._start_ns = start_ns
        self._start_end("receiver", 0)
        if self._job["after"] is None:
            self._begin(self._job["start_ns"])
        else:
            before = flows[self._job["after"]]
            threading.Thread(target=self._follow, args=(before,), daemon=True).start()

    def sample(self) -> bytes:
        """Return an empty record, because both ends write their own samples."""
        return _NO_RECORD

    def end(self) -> None:
        """End both processes."""
        for end in self._ends:
            end.end()

    def check(self) -> None:
        """Check that both ends succeeded.

        Raises
        ------
        GuestFailure
            If one failed.
        """
        super().check()
        for end in self._ends:
            try:
                end.process.wait(_DONE_WITHIN_S)
            except subprocess.TimeoutExpired:
                raise end.complaint(f"of flow {self.number} did not end") from None
            if end.status != 0:
                raise end.complaint(f"of flow {self.number} {end.how_it_ended()}")

    def _follow(self, before: Flow) -> None:
        before.complete.wait()
        completed_ns = before.completed_ns or self._start_ns
        try:
            self._begin(completed_ns - self._start_ns + self._job["start_ns"])
        except BaseException as error:
            self.failure = error

    def _begin(self, due_ns: int) -> None:
        stop_ns = self._job["stop_ns"]
        if stop_ns is not None and due_ns >= stop_ns:
            return
        self._due_ns = self._start_ns + due_ns
        self._start_end("sender", due_ns)

    def _start_end(self, role: str, due_ns: int) -> None:
        receiver = f"{self._job['receiver_address']}:{_PORT}"
        job = {
            "role": role,
            "spec": json.loads(self._spec.read_bytes()),
            "flow": self.number,
            "local": receiver if role == "receiver" else f"{self._job['sender_address']}:0",
            "peer": receiver,
            "start_ns": self._start_ns,
            "due_ns": due_ns,
            "moments_ns": self._moments_ns,
            "samples": str(self._folder / f"{self.number}.{role}"),
            "libraries": self._job["libraries"],
        }
        path = self._folder / f"{self.number}.{role}.json"
        path.write_text(json.dumps(job))
        program = [sys.executable, "-P", "-S", "-B", "-m", f"{__package__}.quic_endpoint"]
        words = [*program, self._engine, str(path)]
        host = self._hosts[self._job[role]]
        self._ends.append(
            Program(f"QUIC {role}", words, host, {}, cwd=self._folder, hear=self._on_output_line)
        )

    def _on_output_line(self, line: str) -> None:
        if line.startswith(COMPLETED):
            self.completed_ns = self._start_ns + int(line.removeprefix(COMPLETED))
            self.complete.set()
