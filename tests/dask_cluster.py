"""A cluster of Dask out of processes of this machine, each of which can be killed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from distributed import Client, Security, rpc


class Cluster:
    """A scheduler and its workers.

    Parameters
    ----------
    folder
        What they write goes here.
    tls
        Whether they use TLS. `settings` is Dask's configuration for those that connect then.
    environment
        What they have in theirs beside what is here.
    """

    def __init__(self, folder: Path, *, tls: bool = False, **environment: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"{'tls' if tls else 'tcp'}://127.0.0.1:{self._port}"
        self._folder = folder
        self.settings: dict[str, str] = {}
        self._tls: list[str] = []
        if tls:
            security = Security.temporary()
            certificate, key = folder / "certificate.pem", folder / "key.pem"
            certificate.write_text(security.tls_ca_file)
            key.touch(0o600)
            key.write_text(security.tls_client_key)
            names = {"ca-file": certificate, "client.cert": certificate, "client.key": key}
            self.settings = {f"distributed.comm.tls.{k}": str(v) for k, v in names.items()}
            files = {"--tls-ca-file": certificate, "--tls-cert": certificate, "--tls-key": key}
            self._tls = [str(word) for option in files.items() for word in option]
        self._environment = {**os.environ, **environment}
        self.scheduler: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []

    def start_scheduler(self) -> None:
        """Start the scheduler; it has the same address each time."""
        place = ["--host", "127.0.0.1", "--port", str(self._port)]
        self.scheduler = self._started("scheduler", *place, "--no-show")

    def start_workers(self, count: int) -> None:
        """Start workers, each with a nanny that starts it again."""
        self._workers.append(
            self._started("worker", self.address, "--nworkers", str(count), "--nthreads", "1")
        )

    def replace_workers(self, count: int) -> None:
        """Start workers if none is left: Dask ends all if one is killed while it starts."""
        if all(process.poll() is not None for process in self._workers):
            self.start_workers(count)

    def worker_pids(self) -> list[int]:
        """Find the processes that carry runs out, which are children of nannies."""
        found = []
        for process in self._workers:
            children = Path(f"/proc/{process.pid}/task").glob("*/children")
            found += [int(pid) for path in children for pid in path.read_text().split()]
        return found

    def kill_scheduler(self) -> None:
        """Kill the scheduler, at which workers end."""
        assert self.scheduler is not None
        self.scheduler.kill()
        self.scheduler.wait()

    def close(self) -> None:
        """End everything."""
        for process in self._workers:
            # Nannies and their workers, some of which may have ended.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self.scheduler is not None:
            self.kill_scheduler()

    def _started(self, *words: str) -> subprocess.Popen[bytes]:
        path = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
        with (self._folder / "dask.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *words, *self._tls, "--no-dashboard"],
                cwd=self._folder, stdout=log, stderr=log, start_new_session=True,
                # All of them look at what they are given, and tests have classes of their own.
                env={**self._environment, "PYTHONPATH": os.pathsep.join(filter(None, path))},
            )  # fmt: skip


def listening(pids: Iterable[int]) -> list[tuple[str, int]]:
    """Find the addresses and ports at which processes accept TCP connections."""
    sockets = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(descriptor) if descriptor.is_symlink() else ""
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    found = []
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                host, port = fields[1].split(":")
                words = struct.unpack(f">{len(host) // 8}I", bytes.fromhex(host))
                packed = struct.pack(f"={len(words)}I", *words)
                found.append((socket.inet_ntop(family, packed), int(port, 16)))
    return found


def answers(host: str, port: int, security: Security | None) -> bool:
    """Whether a scheduler, nanny or worker says who it is; without credentials by plain TCP."""
    address = _address_of(host, port, security)
    arguments = {} if security is None else security.get_connection_args("client")

    async def ask() -> None:
        async with rpc(address, connection_args=arguments, timeout=1.0) as server:
            await asyncio.wait_for(server.identity(), 1.0)

    try:
        asyncio.run(ask())
    except (OSError, TimeoutError):
        return False
    return True


def _address_of(host: str, port: int, security: Security | None) -> str:
    scheme = "tcp" if security is None else "tls"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def accepts_client(host: str, port: int, security: Security | None) -> bool:
    """Whether a client that has other credentials, or none, is connected."""
    address = _address_of(host, port, security)
    try:
        Client(address, security=security, timeout="1 s", set_as_default=False).close()
    except OSError:
        return False
    return True


def serves_http(host: str, port: int, path: str) -> bool:
    """Whether a port answers in HTTP, be it with an error."""
    with socket.create_connection((host, port), timeout=2.0) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        try:
            return connection.recv(5) == b"HTTP/"
        except (ConnectionError, TimeoutError):
            return False


def check_strangers_are_refused(ports: Iterable[tuple[str, int]], own: Security) -> None:
    """See that every port answers to those with credentials, and to nobody else."""
    other = Security.temporary()
    for address, port in ports:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
        assert answers(host, port, own), (host, port)
        for stranger in (None, other):
            assert not answers(host, port, stranger), (host, port, stranger)
        for path in ("/", "/info/main/workers.html", "/api/v1/retire_workers", "/sitemap.json"):
            assert not serves_http(host, port, path), (host, port, path)
