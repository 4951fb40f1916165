"""The store: whole or not at all, whatever happens."""

from __future__ import annotations

import concurrent.futures
import errno
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import fake_core
import pytest
from jostle.backends import RunRecord, SimBackend, run_id
from jostle.errors import StoreError, StoreFullError
from jostle.store.store import Reader, Store

FILES = {
    "spec.json", "summary.json", "provenance.json", "manifest.json", "timing.json",
    "flows.parquet", "links.parquet", "internals.parquet",
}  # fmt: skip


def record(seed: int = 1, **kinds: str) -> RunRecord:
    return SimBackend(fake_core.FakeEngine()).run(fake_core.spec(seed, **kinds))


def content(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "timing.json"}


def test_what_goes_in_comes_out(tmp_path):
    run = record(trace="acks")
    Store(tmp_path).put(run)
    stored = Store(tmp_path).get(run.run_id)
    assert stored is not None
    assert stored.run_id == run.run_id
    assert stored.spec == run.spec
    assert stored.summary == run.summary
    for name in ("flows", "links", "internals", "acks"):
        assert getattr(stored, name).equals(getattr(run, name))
    assert stored.provenance["backend_version"] == "fake-1"
    assert {p.name for p in stored.folder.iterdir()} == FILES | {"acks.parquet"}


def test_absent_values_are_null_and_codes_are_words(tmp_path):
    stored = Store(tmp_path).put(record())
    flows = stored.flows
    assert flows["rtt_mean_s"][0] is None
    assert flows["ssthresh_bytes"][0] is None
    assert set(flows["flow"]) == {"incumbent", "newcomer"}
    assert {"handshake", "recovery"} <= set(flows["mode"])
    assert {"w_max_packets", "bottleneck_bps"} <= set(stored.internals["quantity"])
    assert stored.acks is None


def test_same_run_same_bytes(tmp_path):
    first = Store(tmp_path / "a").put(record(trace="acks"))
    time.sleep(0.01)
    second = Store(tmp_path / "b").put(record(trace="acks"))
    assert content(first.folder) == content(second.folder)


def test_run_id_changes_with_spec_backend_and_version_alone():
    spec = fake_core.spec()
    reordered = dict(reversed(spec.items()))
    assert run_id(spec, "sim", "1") == run_id(reordered, "sim", "1")
    names = {
        run_id(spec, "sim", "1"),
        run_id(fake_core.spec(2), "sim", "1"),
        run_id(spec, "kernel", "1"),
        run_id(spec, "sim", "2"),
    }
    assert len(names) == 4


def test_missing_run_is_none(tmp_path):
    store = Store(tmp_path)
    assert store.get("0" * 32) is None
    assert "0" * 32 not in store


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: os.truncate(f / "flows.parquet", 100),
        lambda f: (f / "summary.json").write_text("{}"),
        lambda f: (f / "links.parquet").unlink(),
        lambda f: (f / "manifest.json").unlink(),
        lambda f: (f / "manifest.json").write_text('{"sha256": '),
        lambda f: (f / "manifest.json").write_text('{"sha256": []}'),
        lambda f: (f / "manifest.json").write_text('{"sha256": {}}'),
        lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe\x00"),
    ],
    ids=["truncated", "altered", "missing", "torn", "half", "odd", "empty", "binary"],
)
def test_damaged_run_is_moved_aside_and_stored_anew(tmp_path, damage):
    warnings: list[str] = []
    store = Store(tmp_path, warnings.append)
    run = record()
    folder = store.put(run).folder
    good = content(folder)
    damage(folder)
    assert store.get(run.run_id) is None
    assert not folder.exists()
    assert len(warnings) == 1
    assert run.run_id in warnings[0]
    assert len(list((tmp_path / ".damaged").iterdir())) == 1
    assert content(store.put(run).folder) == good


def test_a_file_in_the_place_of_a_run_is_moved_aside(tmp_path):
    store = Store(tmp_path, lambda _: None)
    run = record()
    (tmp_path / run.run_id).write_text("not a folder")
    assert store.get(run.run_id) is None
    assert store.put(run).summary == run.summary


def test_concurrent_writers_of_the_same_run(tmp_path):
    run = record()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        stored = list(pool.map(lambda _: Store(tmp_path).put(run), range(16)))
    assert len({s.folder for s in stored}) == 1
    assert list((tmp_path / ".partial").iterdir()) == []
    assert not (tmp_path / ".damaged").exists()


def test_writer_that_finds_a_damaged_run_replaces_it(tmp_path):
    store = Store(tmp_path, lambda _: None)
    run = record()
    folder = store.put(run).folder
    good = content(folder)
    os.truncate(folder / "flows.parquet", 10)
    assert content(store.put(run).folder) == good


WRITER = """
import sys
sys.path.insert(0, {tests!r})
import fake_core
from jostle.backends import SimBackend
from jostle.store.store import Store
store = Store({root!r})
print("ready", flush=True)
for seed in range(1, 100000):
    store.put(SimBackend(fake_core.FakeEngine()).run(fake_core.spec(seed)))
"""


def test_killed_in_the_middle_of_writing(tmp_path):
    script = WRITER.format(tests=str(Path(__file__).parent), root=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        deadline = time.monotonic() + 300
        # Kill while a folder is half written, after some were finished.
        while time.monotonic() < deadline:
            finished = [p for p in tmp_path.iterdir() if not p.name.startswith(".")]
            if len(finished) > 5 and any((tmp_path / ".partial").iterdir()):
                break
        process.send_signal(signal.SIGKILL)
    warnings: list[str] = []
    store = Store(tmp_path, warnings.append)
    names = [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")]
    assert len(names) > 5
    assert all(store.get(name) is not None for name in names)
    assert warnings == []


LOCKING = """
import sys, time
from pathlib import Path
from jostle.safe_io.scratch_folder import PartialFolder
from jostle.safe_io.open_folder import OpenFolder
with OpenFolder.at(sys.argv[1]) as parent, PartialFolder(parent, "written") as partial:
    partial.content.write_new("spec.json", b"{}")
    print(partial.content.path.parent, flush=True)
    time.sleep(60)
"""


def writer(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that writes into a partial folder for a minute."""
    command = [sys.executable, "-c", LOCKING, str(parent)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_living_are_known_by_their_lock_whatever_the_clock_says(tmp_path):
    root = Store(tmp_path).root
    process, folder = writer(root / ".partial")
    try:
        os.utime(folder, (0, 0))
        Store(root)
        assert (folder / "content" / "spec.json").exists()
    finally:
        process.kill()
        process.wait()
    os.utime(folder, (2**33, 2**33))
    Store(root)
    assert not folder.exists()


def test_a_run_under_the_name_of_another_is_not_shown(tmp_path):
    warnings: list[str] = []
    store = Store(tmp_path, warnings.append)
    slow, fast = store.put(record(1)), store.put(record(2))
    wanted = slow.folder.name
    shutil.rmtree(slow.folder)
    shutil.copytree(fast.folder, tmp_path / wanted)
    assert store.get(wanted) is None
    assert "holds the specification of another run" in warnings[0]


def forge(folder: Path, name: str, content: bytes) -> None:
    """Change a file of a run, and the manifest with it."""
    (folder / name).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"][name] = hashlib.sha256(content).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "change",
    [
        lambda summary: [],
        lambda summary: {},
        lambda summary: summary | {"flows": None},
        lambda summary: summary | {"flows": summary["flows"][:1]},
        lambda summary: summary | {"fairness": {}},
        lambda summary: summary | {"links": [{"name": "other", "phases": {}}]},
        lambda summary: {
            **summary,
            "flows": [one | {"phases": {key: {"goodput_bps": "<b>"} for key in one["phases"]}}
                      for one in summary["flows"]],
        },
    ],
)  # fmt: skip
def test_odd_summaries_are_moved_aside(tmp_path, change):
    warnings: list[str] = []
    store = Store(tmp_path, warnings.append)
    stored = store.put(record())
    summary = json.loads((stored.folder / "summary.json").read_text())
    forge(stored.folder, "summary.json", json.dumps(change(summary)).encode())
    assert store.get(stored.run_id) is None
    assert "is not a summary" in warnings[0]


@pytest.mark.parametrize("number", ["1e999", "1" + "0" * 400, "-1" + "0" * 20])
def test_numbers_of_a_summary_are_finite(tmp_path, number):
    warnings: list[str] = []
    store = Store(tmp_path, warnings.append)
    stored = store.put(record())
    text = (stored.folder / "summary.json").read_text()
    summary = json.loads(text)
    phase = next(iter(summary["flows"][0]["phases"].values()))
    phase["goodput_bps"] = "HERE"
    forge(stored.folder, "summary.json", json.dumps(summary).replace('"HERE"', number).encode())
    assert store.get(stored.run_id) is None
    assert "is not a summary" in warnings[0]


def test_series_that_are_none_are_an_error(tmp_path):
    store = Store(tmp_path)
    stored = store.put(record())
    forge(stored.folder, "flows.parquet", b"PAR1" + bytes(1000))
    found = store.get(stored.run_id)
    assert found is not None
    with pytest.raises(StoreError, match=r"flows\.parquet cannot be read"):
        _ = found.flows


def test_a_summary_alone_is_held_against_its_run(tmp_path):
    store = Store(tmp_path)
    stored = store.put(record())
    assert Reader(tmp_path).summary(stored.run_id) == stored.summary
    with (stored.folder / "summary.json").open("a") as file:
        file.write(" ")
    with pytest.raises(StoreError, match=r"summary\.json is not what was written"):
        Reader(tmp_path).summary(stored.run_id)


@pytest.mark.parametrize("name", ["provenance.json", "spec.json", "summary.json"])
@pytest.mark.parametrize(
    "content",
    [b"[]", b"{}", b"\xff", b"null", b"NaN", b"[" * 10**5, b"[" * 900 + b"]" * 900],
    ids=["list", "table", "bytes", "null", "nan", "deep", "less deep"],
)
def test_odd_files_are_moved_aside(tmp_path, name, content):
    warnings: list[str] = []
    store = Store(tmp_path, warnings.append)
    stored = store.put(record())
    forge(stored.folder, name, content)
    assert store.get(stored.run_id) is None
    assert len(warnings) == 1


@pytest.mark.parametrize("place", ["absolute", "above"])
def test_a_manifest_names_files_of_its_run_alone(tmp_path, place):
    warnings: list[str] = []
    store = Store(tmp_path / "store", warnings.append)
    folder = store.put(record()).folder
    other = tmp_path / "other"
    other.write_bytes(b"of somebody else")
    forge(folder, str(other) if place == "absolute" else "../../other", other.read_bytes())
    assert store.get(folder.name) is None
    assert "lists files of other places" in warnings[0]


def test_a_read_only_store_can_be_read(tmp_path, monkeypatch):
    run = Store(tmp_path).put(record(1))

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "mkdir", refused)
    store = Store(tmp_path)
    found = store.get(run.run_id)
    assert found is not None
    assert found.summary == run.summary
    with pytest.raises(StoreError, match="Read-only file system"):
        store.put(record(2))


def test_only_folders_of_our_own_are_removed(tmp_path):
    root = Store(tmp_path / "store").root
    partial = root / ".partial"
    abandoned = partial / f"0a1b-{'0' * 32}"
    foreign = [partial / name for name in ("holiday", "0a1b-123", f"A-{'0' * 32}")]
    for folder in (abandoned, *foreign):
        (folder / "below").mkdir(parents=True)
        os.utime(folder, (0, 0))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "letter").write_text("dear")
    link = partial / f"0a1b-{'1' * 32}"
    link.symlink_to(elsewhere)
    (abandoned / "link").symlink_to(elsewhere)
    Store(root)
    assert not abandoned.exists()
    assert all((folder / "below").is_dir() for folder in foreign)
    assert link.is_symlink()
    assert (elsewhere / "letter").read_text() == "dear"


@pytest.mark.parametrize("name", [".partial", ".damaged"])
def test_a_store_does_not_follow_links(tmp_path, name):
    elsewhere = tmp_path / "elsewhere"
    kept = elsewhere / f"0a1b-{'0' * 32}"
    kept.mkdir(parents=True)
    os.utime(kept, (0, 0))
    root = tmp_path / "store"
    root.mkdir()
    (root / name).symlink_to(elsewhere)
    with pytest.raises(StoreError, match=rf"store/{name} is a symbolic link"):
        Store(root)
    assert kept.is_dir()


@pytest.mark.parametrize("place", ["file", "below a file", "proc"])
def test_unusable_store_is_said_clearly(tmp_path, place):
    (tmp_path / "file").write_text("")
    path = {
        "file": tmp_path / "file",
        "below a file": tmp_path / "file" / "store",
        "proc": Path("/proc/store"),
    }[place]
    with pytest.raises(StoreError, match=f"cannot use the store {path}") as raised:
        Store(path)
    assert raised.value.exit_status == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_store(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="Permission denied"):
            Store(tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_full_disk_leaves_the_store_as_it_was(tmp_path):
    store = Store(tmp_path)
    kept = store.put(record(1))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(StoreFullError, match="no room") as raised:
            store.put(record(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert raised.value.exit_status == 1
    assert list((tmp_path / ".partial").iterdir()) == []
    assert store.get(kept.run_id) is not None
    assert store.get(record(2).run_id) is None
