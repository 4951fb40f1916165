"""Nothing is written outside a store, whatever another user of the store has put into it."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import fake_core
import pytest
from jostle.backends import RunRecord, SimBackend
from jostle.errors import JostleError
from jostle.parameter_search.trial_journal import Journal
from jostle.runner.progress import Progress
from jostle.runner.sweeps.heartbeat import SweepHeartbeat
from jostle.runner.sweeps.sweep_files import SweepCommand, sweeps_of
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.scratch_folder import PartialFolder
from jostle.store import object_storage, stored_plans
from jostle.store.disk import partial_folder
from jostle.store.maintenance.compaction import compact_store
from jostle.store.maintenance.convert import convert
from jostle.store.quarantine import quarantine
from jostle.store.segments import folder as segment_folders
from jostle.store.segments import index
from jostle.store.segments.packing import SegmentTables, packed
from jostle.store.store import Store
from selection import one_in

PACKAGE = Path(stored_plans.__file__).parents[1]
RUN = "0" * 32


@pytest.fixture(scope="module")
def records() -> list[RunRecord]:
    backend = SimBackend(fake_core.FakeEngine())
    return [backend.run(fake_core.spec(seed, duration_s=2)) for seed in range(1, 4)]


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """End a test that waits for a pipe."""
    signal.alarm(60)
    yield
    signal.alarm(0)


def recording(store: Path) -> SweepHeartbeat:
    words = ("sweep.toml", "--store", "store")
    command = SweepCommand(words, "/", {}, "host", os.getpid(), 1.0, "store")
    return SweepHeartbeat(store, command, [("Swept", 10)], detached=True, stop=lambda: None)


class Bucket:
    """Object storage with one plan, and the segments that are put there."""

    objects: dict[str, bytes]

    def __init__(self, _url: str) -> None:
        pass

    def segments(self) -> set[str]:
        return {path.split("/")[1] for path in self.objects if path.endswith("manifest.json")}

    def plans(self) -> list[str]:
        return [f"{RUN}.json"]

    def get(self, path: str) -> bytes:
        return self.objects[path]

    pull = object_storage.Bucket.pull
    push = object_storage.Bucket.push
    runs = object_storage.Bucket.runs

    def put(self, path: str, content: bytes, *, once: bool = False) -> None:
        self.objects[path] = content


def swept(root: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), recording(root) as sweep:
        sweep.progress(0, Progress()).begin(10, 0)
        for one in sweeps_of(root):
            one.ask_to_stop()
        raise KeyboardInterrupt


def shared(root: Path, record: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store a run on object storage, and fetch what is there."""
    Bucket.objects = {f".plans/{RUN}.json": b"{}"}
    monkeypatch.setattr(object_storage, "Bucket", Bucket)
    monkeypatch.setattr(object_storage, "copy_of", lambda _url: root)
    store = object_storage.SharedStore("s3://bucket")
    store.put_all([packed(record, "series")])
    object_storage.pull("s3://bucket", store)


def forgotten(record: RunRecord) -> None:
    """Look a run up that somebody has removed from the object storage."""
    Bucket.objects = {}
    object_storage.SharedStore("s3://bucket").count([record.run_id])


def steps(
    root: Path, records: list[RunRecord], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Callable[[], object]]:
    """Return all that jostle does in a store, each with a store that is not opened before."""
    made_by = ("sim", "1")
    tables = SegmentTables([packed(records[0], "series")])
    frame = tables["runs"].select("run")

    def store() -> Store:
        made = Store.__new__(Store)
        # Another user may change the store after it was opened.
        with contextlib.suppress(JostleError):
            Store.__init__(made, root, lambda _: None)
        return made

    def damage() -> None:
        for name in segment_folders.names(root):
            store().move_segment_aside(root / "segments" / name, "damaged")
            return

    return {
        "open": store,
        "put": lambda: store().put(records[0]),
        "put_all": lambda: store().put_all([packed(records[1], "series")]),
        "index": lambda: index.write(root, frame),
        "plan": lambda: stored_plans.write_plan(root, "title", made_by, [{}], [(0, 1, RUN)]),
        "plan again": lambda: stored_plans.write_plan(root, "title", made_by, [{}], [(0, 1, RUN)]),
        "quarantine": lambda: quarantine(store(), RUN, records[0].spec, 1.0),
        "sweep": lambda: swept(root),
        "convert": lambda: convert(store()),
        "tidy up": lambda: compact_store(store()),
        "move aside": damage,
        "share": lambda: shared(root, records[2], monkeypatch),
        "forget": lambda: forgotten(records[2]),
        "tune": lambda: Journal(root / ".tuning" / "a.journal").append_logs([{"op": 1}]),
        "remove damaged": lambda: compact_store(store(), damaged=True),
        "wrong index": lambda: index.remove(root),
    }


def written_by(steps: dict[str, Callable[[], object]], root: Path) -> set[str]:
    """Names that are there after each step, as patterns."""
    seen = set()
    for do in steps.values():
        do()
        for path in root.rglob("*"):
            text = re.sub(r"[0-9a-f]{64}", "DIGEST", str(path.relative_to(root)))
            text = re.sub(r"DIGEST-[0-9a-f]{8}", "DIGEST-ASIDE", text)
            text = re.sub(r"[0-9a-f]{32}", "RUN", text)
            seen.add(re.sub(r"\.sweeps/[0-9a-f]{8}", ".sweeps/SWEEP", text))
    return seen


WRITTEN = (
    ".partial", ".damaged", ".index.parquet", ".lock", "segments", "segments/DIGEST",
    "segments/DIGEST/manifest.json", "segments/DIGEST/runs.parquet", "RUN", "RUN/spec.json",
    "RUN/timing.json", ".plans", ".plans/RUN.json", ".quarantine", ".quarantine/RUN.json",
    ".sweeps", ".sweeps/SWEEP", ".sweeps/SWEEP/command.json", ".sweeps/SWEEP/progress.json",
    ".sweeps/SWEEP/lock", ".sweeps/SWEEP/stop", ".shared", ".shared/DIGEST", ".tuning",
    ".tuning/a.journal", ".tuning/a.lock",
)  # fmt: skip
"""All that jostle writes into a store, except for further files of a segment or a run."""
OF_A_WHOLE = re.compile(r"(segments/DIGEST|RUN|\.damaged/DIGEST-ASIDE)/[a-z]+\.(parquet|json)")


def test_all_that_is_written_is_attacked(
    tmp_path: Path, records: list[RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = written_by(steps(tmp_path, records, monkeypatch), tmp_path)
    seen = {name for name in seen if not OF_A_WHOLE.fullmatch(name) or name in WRITTEN}
    # A request to stop is there until the end of a sweep; what is moved aside has a new name.
    assert seen - {".damaged/DIGEST-ASIDE"} == set(WRITTEN) - {".sweeps/SWEEP/stop"}


def outside(folder: Path) -> dict[str, object]:
    """All that an attack could change: content, modes, times, names."""
    found: dict[str, object] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        found[str(path)] = (content, status.st_mode, status.st_mtime_ns)
    return found


PLANTS: dict[str, Callable[[Path, Path], object]] = {
    "link to a folder": lambda path, there: path.symlink_to(there / "folder"),
    "link to a file": lambda path, there: path.symlink_to(there / "file"),
    "dangling link": lambda path, there: path.symlink_to(there / "nothing"),
    "hard link": lambda path, there: path.hardlink_to(there / "file"),
    "pipe": lambda path, there: os.mkfifo(path),
    "device": lambda path, there: os.mknod(path, 0o020666, os.makedev(1, 3)),
}


LINKS = [name for name in PLANTS if "link" in name]
OTHER_PLANTS = [name for name in PLANTS if name not in LINKS]


@pytest.mark.parametrize("plants", [LINKS, pytest.param(OTHER_PLANTS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", one_in(3, WRITTEN))
def test_what_another_user_plants_is_not_followed(
    tmp_path: Path,
    records: list[RunRecord],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    plants: list[str],
) -> None:
    there = tmp_path / "there"
    (there / "folder").mkdir(parents=True)
    for file in (there / "file", there / "folder" / "file"):
        file.write_text("mine\n")
        file.chmod(0o644)
    names = {
        "RUN": records[0].run_id if name.startswith("RUN") else RUN,
        "DIGEST": digest_of_segment(tmp_path / "first", records[1]),
        "SWEEP": recording(tmp_path).place.name,
    }
    if name == ".plans/RUN.json":
        noted = stored_plans.write_plan(
            tmp_path / "first", "title", ("sim", "1"), [{}], [(0, 1, RUN)]
        )
        assert noted is not None
        names["RUN"] = noted.path.stem
    # Disks take most of the time.
    monkeypatch.setattr(os, "fsync", lambda _file: None)
    for what in plants:
        if what == "device" and os.geteuid():
            continue
        plant = PLANTS[what]
        root = tmp_path / what
        path = root / re.sub("[A-Z]+", lambda found: names[found[0]], name)
        path.parent.mkdir(parents=True)
        plant(path, there)
        before = outside(there)
        for done, do in steps(root, records, monkeypatch).items():
            with contextlib.suppress(JostleError, OSError):
                do()
            assert outside(there) == before, (what, done)


def digest_of_segment(root: Path, record: RunRecord) -> str:
    """Name of the segment that has one run."""
    root.mkdir(exist_ok=True)
    folder, _ = segment_folders.write(root, SegmentTables([packed(record, "series")]))
    return folder.name


@pytest.mark.parametrize("swapped", [".sweeps", ".sweeps/SWEEP"])
def test_a_folder_that_is_swapped_while_a_sweep_runs(tmp_path: Path, swapped: str) -> None:
    there, root = tmp_path / "there", tmp_path / "store"
    there.mkdir()
    root.mkdir()
    sweep = recording(root)
    inside = there / sweep.place.name
    inside.mkdir()
    for folder in (there, inside):
        (folder / "progress.json").write_text("mine\n")
    before = outside(there)
    path = root / swapped.replace("SWEEP", sweep.place.name)
    with sweep:
        progress = sweep.progress(0, Progress())
        progress.begin(10, 0)
        path.rename(root / "aside")
        path.symlink_to(there)
        sweep._written_s = 0.0
        progress.advance()
        assert b'"done": 1' in next((root / "aside").rglob("progress.json")).read_bytes()
    assert outside(there) == before
    assert path.is_symlink()


def test_a_folder_that_is_swapped_while_a_segment_is_written(tmp_path: Path) -> None:
    there, root = tmp_path / "there", tmp_path / "store"
    for folder in (there, root):
        folder.mkdir()
    with OpenFolder.at(root) as store, partial_folder(store, "segment") as partial:
        (root / ".partial").rename(root / "aside")
        (root / ".partial").symlink_to(there)
        partial.content.write_new("runs.parquet", b"runs", synced=True)
        with store.folder("segments", make=True) as segments:
            (root / "segments").rename(root / "aside too")
            (root / "segments").symlink_to(there)
            partial.publish(segments, "name")
    assert list(there.iterdir()) == []
    assert (root / "aside too" / "name" / "runs.parquet").read_bytes() == b"runs"
    assert list((root / "aside").iterdir()) == []


def test_the_folder_that_the_user_names_may_be_a_link(
    tmp_path: Path, records: list[RunRecord]
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "store")
    (tmp_path / "store").mkdir()
    Store(tmp_path / "link").put_all([packed(records[0], "series")])
    assert Store(tmp_path / "store").get(records[0].run_id) is not None


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", "/etc", "a\0"])
def test_a_path_is_no_name(tmp_path: Path, name: str) -> None:
    with OpenFolder.at(tmp_path) as folder:
        for do in (folder.create, folder.remove, folder.folder, folder.new_folder, folder.refresh):
            with pytest.raises(OSError, match="Not the name of a file"):
                do(name)
    assert list(tmp_path.iterdir()) == []


def test_what_is_removed_is_removed_without_following_links(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "file").write_text("mine\n")
    before = outside(there)
    (tmp_path / "store").mkdir()
    with OpenFolder.at(tmp_path / "store") as store:
        with store.new_folder("tree") as tree, tree.new_folder("below") as below:
            for folder in (store, tree, below):
                (folder.path / "link").symlink_to(there)
                (folder.path / "file").hardlink_to(there / "file")
        os.mkfifo(tmp_path / "store" / "pipe")
        for name in ("link", "pipe"):
            store.remove_tree(name)
            assert store.has(name)
        store.clear()
        assert store.names() == []
    (content, *_), (now, *_) = before[str(there / "file")], outside(there)[str(there / "file")]
    assert now == content


def test_a_new_folder_is_private_until_it_is_published(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        with OpenFolder.at(tmp_path) as parent, PartialFolder(parent, "new") as partial:
            (private,) = tmp_path.iterdir()
            assert private.stat().st_mode & 0o777 == 0o700
            partial.content.write_new("file", b"")
            partial.publish(parent, "published")
            assert (tmp_path / "published").stat().st_mode & 0o777 == 0o755
    finally:
        os.umask(umask)
    assert [path.name for path in tmp_path.iterdir()] == ["published"]


WRITES = {
    *("write_text", "write_bytes", "mkdir", "makedirs", "unlink", "rmdir", "rmtree", "rename"),
    *("touch", "symlink_to", "hardlink_to", "chmod", "renames", "copyfile", "copytree"),
}
OF_OS = {"open", "replace", "remove", "link", "symlink", "mknod", "mkfifo", "truncate", "rename"}
TABLES = {"write_parquet", "write_csv", "write_ipc", "sink_parquet", "sink_csv"}
ELSEWHERE = {
    "runner/executors/batch_queue.py": "script and certificates of a job, in temporary folders",
    "runner/job.py": "the file that stops a job, in a temporary folder",
    "store/maintenance/export.py": "answers to questions, and the file that the user names",
}


def writes(path: Path) -> Iterator[str]:
    """Calls that could write by a path."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        owner, _, name = called.rpartition(".")
        modes = [*node.args[:2], *(word.value for word in node.keywords if word.arg == "mode")]
        opens = name == "open" and any(
            isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax+") for mode in modes
        )
        # `str.replace` has two arguments, as `OpenFolder.replace`.
        replaces = name == "replace" and owner and len(node.args) == 1
        into = ast.unparse(node.args[0]) if node.args else ""
        tables = name in TABLES and into not in {"buffer", "file"}
        of_os = owner == "os" and name in OF_OS
        moves = owner == "shutil"
        if name in WRITES or opens or replaces or tables or of_os or moves:
            yield f"{path.relative_to(PACKAGE)}:{node.lineno}: {called}"


def test_stores_are_written_by_open_folders_alone() -> None:
    paths = [
        path
        for package in ("runner", "store")
        for path in (PACKAGE / package).rglob("*.py")
        if str(path.relative_to(PACKAGE)) not in ELSEWHERE
    ]
    assert len(paths) > 30
    assert [call for path in paths for call in writes(path)] == []
    assert all(list(writes(PACKAGE / name)) for name in ELSEWHERE), "no exception any more"
