"""Other users of the machine get nothing from a cluster of jostle's own, or are warned of."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from dask_cluster import (
    Cluster,
    accepts_client,
    check_strangers_are_refused,
    listening,
)
from distributed import Security
from jostle.cli import status
from jostle.errors import InputError
from jostle.runner.executors import make
from jostle.runner.executors.dask_cluster import DaskExecutor
from jostle.runner.executors.tls_credentials import check_address

pytestmark = pytest.mark.cluster


def worker_folder(dask_worker) -> tuple[str, bool]:
    """Where a worker has its files, and whether it would import what others left for it."""
    return dask_worker.local_directory, importlib.util.find_spec("left_by_others") is not None


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of temporary files in which another user was first."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    scratch = tmp_path / "dask-scratch-space"
    scratch.mkdir()
    scratch.chmod(0o777)
    (scratch / "left_by_others.py").write_text("")
    return tmp_path


@pytest.fixture
def executor(temporary: Path) -> Iterator[DaskExecutor]:
    made = make("dask", 2)
    assert isinstance(made, DaskExecutor)
    yield made
    made.shutdown()


def test_strangers_get_nothing_from_workers_of_this_machine(executor: DaskExecutor) -> None:
    workers = list(executor.client.run(os.getpid).values())
    ports = listening([os.getpid(), *workers])
    # The scheduler, two nannies and two workers.
    assert len(ports) == 5
    assert {host for host, _ in ports} == {"127.0.0.1"}
    check_strangers_are_refused(ports, executor.client.security)
    for stranger in (None, Security.temporary()):
        host, port = executor.client.scheduler.address.removeprefix("tls://").split(":")
        assert not accepts_client(host, int(port), stranger)


def test_credentials_and_files_are_the_users_own(executor: DaskExecutor, temporary: Path) -> None:
    (folder,) = temporary.glob("jostle-dask-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    for where, imports_others in executor.client.run(worker_folder).values():
        assert Path(where).is_relative_to(folder)
        assert not imports_others
    assert importlib.util.find_spec("left_by_others") is None
    secret = executor.client.security.tls_worker_key.splitlines()[1].encode()
    for pid in executor.client.run(os.getpid).values():
        for name in ("cmdline", "environ"):
            assert secret not in Path(f"/proc/{pid}/{name}").read_bytes()
    for file in temporary.rglob("*"):
        assert not file.is_file() or secret not in file.read_bytes(), file
    executor.shutdown()
    assert not folder.exists()


def test_without_cryptography_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    before = listening([os.getpid()])
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InputError, match=r'not installed: pip install "jostle\[cluster\]"'):
        make("dask", 2)
    assert listening([os.getpid()]) == before


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "tcp://head:8786", "head:8786", "ws://h:1"]
)
def test_an_address_that_anybody_can_use_is_warned_of(address: str) -> None:
    texts: list[str] = []
    check_address(address, texts.append)
    (text,) = texts
    assert text.startswith(f"dask={address} is neither encrypted nor authenticated: anybody who ")
    assert "Use a tls:// address (docs/howto/large-sweeps.md," in text


def test_the_command_warns_on_stderr_before_it_connects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError("refused")

    monkeypatch.setattr("distributed.Client", refuse)
    scenario = Path(__file__).parents[1] / "scenarios" / "first.toml"
    words = ["run", str(scenario), "--store", str(tmp_path), "--executor", "dask=tcp://127.0.0.1:1"]
    assert status(words) == 2
    warning, error = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: dask=tcp://127.0.0.1:1 is neither encrypted")
    assert error == "error: no scheduler of Dask answers at tcp://127.0.0.1:1: refused"


def test_an_address_without_tls_is_refused_if_encryption_is_required() -> None:
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        pytest.raises(InputError, match="configuration requires encryption"),
    ):
        make("dask=tcp://127.0.0.1:1")


@pytest.mark.slow
def test_a_scheduler_with_tls_is_used_without_a_warning(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, tls=True)
    cluster.start_scheduler()
    try:
        with dask.config.set(cluster.settings), warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            executor = DaskExecutor(cluster.address)
            address = cluster.address
            assert f"`dask worker {address} --tls-ca-file CA" in str(executor.missing_workers())
            cluster.start_workers(1)
            executor.client.wait_for_workers(1, timeout=120)
            assert executor.submit(pow, 2, 3).result(timeout=60) == 8
            executor.shutdown()
    finally:
        cluster.close()


def test_missing_certificates_are_named(tmp_path: Path) -> None:
    both = r"Set distributed\.comm\.tls\.ca-file and distributed\.comm\.tls\.client\.cert in Dask's"
    with pytest.raises(InputError, match=both):
        make("dask=tls://127.0.0.1:1")
    settings = Cluster(tmp_path, tls=True).settings
    gone = {**settings, "distributed.comm.tls.client.key": str(tmp_path / "gone.pem")}
    with (
        dask.config.set(gone),
        pytest.raises(InputError, match=r"Set distributed\.comm\.tls\.client\.key in"),
    ):
        make("dask=tls://127.0.0.1:1")
    (tmp_path / "key.pem").write_text(Security.temporary().tls_client_key)
    with dask.config.set(settings), pytest.raises(InputError, match="that belong together"):
        make("dask=tls://127.0.0.1:1")
