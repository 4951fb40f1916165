"""Flows over external QUIC programs: a server at the sender, a client at the receiver.

Only the commands of the programs are known. Sent and received data are read from sources that exist
for every program: the counters of its host's devices, which carry no other traffic, and the size of
the files written by the client.
"""

from __future__ import annotations

import ctypes
import os
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from .clock import libc, sleep_until
from .failure import GuestFailure
from .flow import Flow, FlowOfJob
from .namespaces import Host
from .program import EXIT_TIMEOUT_S, ISOLATED_PYTHON, Program, bound_ports
from .program_sandbox import User
from .sample_format import FLOW_BYTES, PROGRAMS, UNKNOWN

# Timeout for a server to bind its port. In virtual time, this takes almost no time.
_READY_WITHIN_NS = 10_000_000_000
_READY_POLL_S = 0.001

_VARIABLES = ("HOME", "LC_ALL")
"""Environment variables that external programs inherit."""

_WORK = "work"
"""Working directory of both programs of a flow."""

_CONFINED = (*ISOLATED_PYTHON, str(Path(__file__).with_name("program_sandbox.py")))
"""Command that starts a program without privileges, followed by arguments of `program_sandbox`."""

_PID_NAMESPACE = (*ISOLATED_PYTHON, str(Path(__file__).parents[3] / "safe_io" / "pid_namespace.py"))
"""Command that starts a program in a PID namespace, followed by the PID of this process and `-`.

It is used on this machine's kernel, so that all processes end with the program. A guest ends with
all of its processes.
"""

# linux/falloc.h: free the memory, but keep the file size.
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_PUNCH_BYTES = 8 << 20


class _Counters:
    """Packets and bytes of a host's device, including link headers."""

    def __init__(self, host: Host, device: str, *, sent: bool) -> None:
        with host.entered():
            # An open file of /proc keeps the namespace in which it was opened.
            self._file: BinaryIO = open("/proc/thread-self/net/dev", "rb", buffering=0)  # noqa: SIM115
        self._name = device.encode()
        self._first = 8 if sent else 0

    def read(self) -> tuple[int, int]:
        """Return the packets and bytes so far."""
        self._file.seek(0)
        for line in self._file.read().splitlines():
            name, _, numbers = line.partition(b":")
            if name.strip() == self._name:
                fields = numbers.split()
                return int(fields[self._first + 1]), int(fields[self._first])
        return 0, 0


class ProgramFlow(FlowOfJob):
    """A flow between two external programs.

    Parameters
    ----------
    number
        Index of the flow in the job.
    job
        The flow's part of the job.
    folder
        Folder for its files; see `make_programs_folder`.
    kept
        Folder for the sender's log and the TLS secrets. It remains after the guest has ended, and
        may need more space than the guest's memory.
    in_guest
        Whether the kernel is used only by this run.
    """

    def __init__(
        self,
        number: int,
        job: Mapping[str, Any],
        hosts: Mapping[str, Host],
        folder: Path,
        kept: Path,
        *,
        in_guest: bool,
    ) -> None:
        super().__init__(number, job, hosts)
        self._folder = folder
        self._kept = kept
        self._in_guest = in_guest
        self._ended = threading.Event()
        self._server: Program | None = None
        self._client: Program | None = None
        self._sent = _Counters(hosts[job["sender"]], "out", sent=True)
        self._received = _Counters(hosts[job["receiver"]], "in", sent=False)
        self._client_sent = _Counters(hosts[job["receiver"]], "back", sent=True)
        self._punched_bytes: dict[str, int] = {}
        self._qlogs = kept / "qlog" / str(number)
        self._secrets = kept / f"{number}.keys"
        self._user = User(str(kept))
        # The parent folder belongs to root, so that no program can replace a folder by a link.
        for place in (folder / "www", folder / "downloads", folder / _WORK, self._qlogs):
            place.mkdir(parents=True)
        self._secrets.touch(0o600)
        for path in (folder / "downloads", folder / _WORK, self._qlogs, self._secrets):
            self._user.own(str(path))
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        self._downloads = os.open(folder / "downloads", flags)
        # A sparse file: it occupies no space, and reads as zeros.
        with (folder / "www" / "data").open("wb") as file:
            file.truncate(job["bytes"])

    def listen(self) -> None:
        """Start the server, and wait until it has bound its port."""
        server = self._server = self._program("server", self._job["sender"])
        until_ns = time.monotonic_ns() + _READY_WITHIN_NS
        with self._hosts[self._job["sender"]].entered():
            while self._job["port"] not in bound_ports("udp"):
                if server.status is not None:
                    what = f"{server.how_it_ended()} before it could be reached"
                    raise self._about(server.complaint(what))
                if time.monotonic_ns() > until_ns:
                    what = f"never listened at port {self._job['port']}"
                    raise self._about(server.complaint(what))
                time.sleep(_READY_POLL_S)
        threading.Thread(target=self._watch, args=(server,), daemon=True).start()

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start the client, with the run's time 0 at `start_ns`; it may wait for one of `flows`."""
        threading.Thread(target=self._guarded, args=(start_ns, flows), daemon=True).start()

    def end(self) -> None:
        """End both programs, the client first."""
        self._ended.set()
        for program in (self._client, self._server):
            if program is not None:
                program.end()

    def sample(self) -> bytes:
        """Return the record of the flow."""
        delivered = self._delivered_bytes() if self._job["downloads"] else UNKNOWN
        record = PROGRAMS.pack(*self._sent.read(), *self._received.read(), delivered)
        return record.ljust(FLOW_BYTES, b"\0")

    def check(self) -> None:
        """Check that both programs succeeded.

        Raises
        ------
        GuestFailure
            If one failed.
        """
        if isinstance(self.failure, GuestFailure):
            raise self._about(self.failure)
        super().check()
        if self._client is None:
            return
        silent_ns = time.monotonic_ns() - (self._due_ns or 0)
        if silent_ns >= self._job["patience_ns"] and self._received.read()[0] == 0:
            client_packets = self._client_sent.read()[0]
            culprit = self._client if client_packets == 0 else self._server
            assert culprit is not None
            what = (
                "sent nothing"
                if client_packets == 0
                else f"answered none of {client_packets} packets"
            )
            raise self._about(culprit.complaint(f"{what} within {silent_ns / 1e9:.1f} s"))

    def _watch(self, server: Program) -> None:
        """Report a failure if the server ends too early."""
        status = server.process.wait()
        # A server for a single connection may end shortly before the client.
        if self.complete.wait(EXIT_TIMEOUT_S if status == 0 else 0.0) or self._ended.is_set():
            return
        what = f"{server.how_it_ended()} before the client had all data"
        self.failure = server.complaint(what)

    def _guarded(self, start_ns: int, flows: Sequence[Flow]) -> None:
        try:
            self._run(start_ns, flows)
        except BaseException as error:
            # If the server has crashed, an error of the client is not the cause.
            if self.failure is None:
                self.failure = error

    def _run(self, start_ns: int, flows: Sequence[Flow]) -> None:
        after, stop_ns = self._job["after"], self._job["stop_ns"]
        begin_ns = start_ns
        if after is not None:
            flows[after].complete.wait()
            begin_ns = flows[after].completed_ns or begin_ns
        due_ns = begin_ns + self._job["start_ns"]
        if stop_ns is not None and due_ns >= start_ns + stop_ns:
            return
        self._due_ns = due_ns
        sleep_until(due_ns)
        client = self._client = self._program("client", self._job["receiver"])
        if stop_ns is not None:
            threading.Thread(
                target=self._stop, args=(client, start_ns + stop_ns), daemon=True
            ).start()
        status = client.process.wait()
        ended_ns = time.monotonic_ns()
        if self._ended.is_set():
            return
        if status != 0 or not self._is_download_complete():
            what = client.how_it_ended()
            raise client.complaint(what if status else f"{what} before it had all data")
        self.completed_ns = ended_ns
        self.complete.set()

    def _stop(self, client: Program, stop_ns: int) -> None:
        sleep_until(stop_ns)
        if client.status is None:
            self._ended.set()
            client.end()

    def _program(self, role: str, host: str) -> Program:
        # Only the sender's qlog is used; the client's is written to the work folder.
        qlogs = self._qlogs if role == "server" else self._folder / _WORK
        places = {
            "www": self._folder / "www",
            "downloads": self._folder / "downloads",
            "qlog": qlogs,
        }
        words = [_filled(word, places) for word in self._job[role]]
        # Variables of the images of the QUIC interop runner (their `run_endpoint.sh`).
        environment = {
            **{name: os.environ[name] for name in _VARIABLES if name in os.environ},
            "ROLE": role,
            "TESTCASE": "transfer",
            "REQUESTS": f"https://{self._job['sender_address']}:{self._job['port']}/data",
            "QLOGDIR": str(qlogs) if self._job["qlog"] else "",
            # Both ends have the same secrets.
            **({"SSLKEYLOGFILE": str(self._secrets)} if role == "server" else {}),
            **self._job["environment"],
        }
        writable = [str(path) for path in (self._folder, self._qlogs, self._secrets)]
        confinement = ["1" if self._in_guest else "0", str(self._kept), str(len(writable))]
        outermost = () if self._in_guest else (*_PID_NAMESPACE, str(os.getpid()), "-")
        return Program(
            role,
            words,
            self._hosts[host],
            environment,
            cwd=self._folder / _WORK,
            launcher=[*outermost, *_CONFINED, *confinement, *writable],
        )

    def _about(self, failure: GuestFailure) -> GuestFailure:
        return GuestFailure(f"{self._job['key']}: {failure}")

    def _is_download_complete(self) -> bool:
        if not self._job["downloads"]:
            return True
        return self._delivered_bytes() >= int(self._job["bytes"])

    def _delivered_bytes(self) -> int:
        """Return the size of the client's files, and free the memory of large files."""
        total_bytes = 0
        with os.scandir(self._downloads) as entries:
            for entry in entries:
                size_bytes = self._size_bytes(entry)
                total_bytes += size_bytes
                if size_bytes - self._punched_bytes.get(entry.name, 0) >= _PUNCH_BYTES:
                    self._forget(entry.name)
                    self._punched_bytes[entry.name] = size_bytes
        return total_bytes

    @staticmethod
    def _size_bytes(entry: os.DirEntry[str]) -> int:
        """Return the size of a regular file; 0 for other entries, or if it was removed."""
        try:
            found = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return 0
        return found.st_size if stat.S_ISREG(found.st_mode) else 0

    def _forget(self, name: str) -> None:
        """Free the memory of a download, if possible.

        The program may replace the download by a link or another file, and this process is root.
        Therefore the open file must belong to the program's user and have no other name.
        """
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(name, flags, dir_fd=self._downloads)
        except OSError:
            return
        try:
            found = os.fstat(file)
            is_own = found.st_uid == self._user.uid and found.st_nlink == 1
            if stat.S_ISREG(found.st_mode) and is_own:
                size = ctypes.c_long(found.st_size)
                libc.fallocate(file, _PUNCH_HOLE | _KEEP_SIZE, ctypes.c_long(0), size)
        finally:
            os.close(file)


def make_programs_folder(folder: Path, mount: bool) -> None:
    """Create the folder for the files of all flows.

    Parameters
    ----------
    mount
        Whether to mount a tmpfs there, in a guest. Otherwise each write of a client would be a
        system call of the host.
    """
    folder.mkdir(exist_ok=True)
    if mount and libc.mount(b"programs", os.fsencode(folder), b"tmpfs", 0, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))


def _filled(word: str, places: Mapping[str, Path]) -> str:
    for name, path in places.items():
        word = word.replace(f"{{{name}}}", str(path))
    return word
