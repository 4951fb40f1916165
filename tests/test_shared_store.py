"""A store on object storage: a real server of S3's protocol, in this process."""

from __future__ import annotations

import logging
import pickle
import shutil
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fake_core
import jostle
import obstore
import pytest
from fake_plan import make_plan
from jostle.backends import SimBackend
from jostle.cli import status
from jostle.errors import InputError, StoreError
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.store.object_storage import SharedStore, copy_of, open_store
from jostle.store.store import Store
from jostle.store.writer import Writer
from moto.server import ThreadedMotoServer
from obstore.store import from_url
from test_segments import record, segments, stored


@pytest.fixture(scope="module")
def records():
    return [record(seed, duration_s=2) for seed in range(1, 5)]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    made = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    made.start()
    _, port = made.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    made.stop()


@pytest.fixture
def url(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty place on the server; this machine's copy of it is in `tmp_path`."""
    for key, value in {
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": server, "AWS_ALLOW_HTTP": "true", "XDG_CACHE_HOME": str(tmp_path / "a"),
    }.items():  # fmt: skip
        monkeypatch.setenv(key, value)
    urllib.request.urlopen(urllib.request.Request(f"{server}/sweeps", method="PUT"))
    return f"s3://sweeps/{tmp_path.name}"


def on_another_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str = "b") -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))


def shared(url: str, records, keep="series") -> SharedStore:
    store = SharedStore(url)
    writer = Writer(store, keep)
    for one in records:
        writer.put(one)
    writer.flush()
    return store


def objects(url: str) -> dict[str, bytes]:
    there = from_url(url)
    paths = [one["path"] for page in obstore.list(there) for one in page]
    return {path: bytes(obstore.get(there, path).bytes()) for path in paths}


def test_what_one_machine_stores_another_finds(url, tmp_path, records, monkeypatch):
    shared(url, records)
    on_another_machine(monkeypatch, tmp_path)
    store = open_store(url)
    found = store.find([one.run_id for one in records], series=True)
    for one in records:
        assert found[one.run_id].summary == one.summary
        assert found[one.run_id].flows.equals(one.flows)
    again = pickle.loads(pickle.dumps(store))
    assert again.count([one.run_id for one in records]) == 4


def test_a_sweep_is_not_run_twice(url, tmp_path, engine, monkeypatch):
    plan = make_plan(1)
    executor = local(2)
    first = Session(SimBackend(engine), executor, SharedStore(url), "summary").carry_out(plan)
    on_another_machine(monkeypatch, tmp_path)
    second = Session(SimBackend(engine), executor, SharedStore(url), "summary").carry_out(plan)
    executor.shutdown()
    assert engine.calls == 4
    assert first.to_json() == second.to_json()
    assert sum(path.startswith(".plans/") for path in objects(url)) == 1


def test_only_segments_that_are_wanted_are_fetched(url, tmp_path, records, monkeypatch):
    shared(url, records[:2])
    shared(url, records[2:])
    on_another_machine(monkeypatch, tmp_path)
    store = SharedStore(url)
    assert store.get("0" * 32) is None
    assert not (store.root / "segments").exists()
    assert store.get(records[0].run_id) is not None
    assert len(segments(store.root)) == 1


def test_writers_of_the_same_runs_write_the_same(url, tmp_path, records, monkeypatch):
    shared(url, records)
    before = objects(url)
    # Those of another machine do not look before they write.
    on_another_machine(monkeypatch, tmp_path)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: shared(url, records), range(4)))
    assert objects(url) == before


def test_a_segment_without_its_manifest_is_not_there(url, tmp_path, records, monkeypatch):
    store = shared(url, records)
    (folder,) = segments(store.root)
    obstore.delete(from_url(url), f"segments/{folder.name}/manifest.json")
    on_another_machine(monkeypatch, tmp_path)
    other = SharedStore(url)
    assert other.count([one.run_id for one in records]) == 0
    shared(url, records)
    on_another_machine(monkeypatch, tmp_path, "c")
    assert SharedStore(url).count([one.run_id for one in records]) == 4


@pytest.mark.parametrize(
    "damage", ["altered flows", "altered runs", "missing flows", "missing runs"]
)
def test_what_is_damaged_is_not_used_and_is_healed(url, tmp_path, records, monkeypatch, damage):
    how, table = damage.split()
    (folder,) = segments(shared(url, records).root)
    there = from_url(url)
    path = f"segments/{folder.name}/{table}.parquet"
    if how == "missing":
        obstore.delete(there, path)
    else:
        obstore.put(there, path, objects(url)[path][:-1] + b"x")
    on_another_machine(monkeypatch, tmp_path)
    warnings: list[str] = []
    names = [one.run_id for one in records]
    assert SharedStore(url, warnings.append).find(names, series=True) == {}
    assert len(warnings) == (table == "flows"), "where its runs are unknown it is not fetched"
    # It is run again, and stored: the same segment, whole.
    shared(url, records)
    on_another_machine(monkeypatch, tmp_path, "c")
    assert len(SharedStore(url).find(names, series=True)) == 4


def test_what_could_not_be_sent_is_sent_later(url, tmp_path, records, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(obstore, "put", lambda *_, **__: (_ for _ in ()).throw(OSError("no route")))
        with pytest.raises(StoreError, match=f"cannot use the store {url}: no route"):
            shared(url, records)
    assert objects(url) == {}
    here = SharedStore(url)
    assert len(here.find([one.run_id for one in records], series=True)) == 4
    on_another_machine(monkeypatch, tmp_path)
    assert SharedStore(url).count([one.run_id for one in records]) == 4


def test_what_somebody_removed_is_gone_everywhere(url, records):
    store = shared(url, records)
    for path in objects(url):
        obstore.delete(from_url(url), path)
    assert store.find([one.run_id for one in records], series=True) == {}
    assert objects(url) == {}
    assert segments(store.root) == []


def test_a_store_is_copied_both_ways(url, tmp_path, records, capsys, monkeypatch):
    stored(tmp_path / "here", records)
    arguments = ["--store", str(tmp_path / "here")]
    assert status(["store", "push", url, *arguments]) == 0
    assert status(["store", "push", url, *arguments]) == 0
    assert status(["store", "pull", url, "--store", str(tmp_path / "there")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == ["1", "0", "1"]
    assert len(Store(tmp_path / "there").find([r.run_id for r in records], series=True)) == 4
    assert status(["store", "check", "--store", url]) == 2
    assert f"jostle store pull {url} --store DIR" in capsys.readouterr().err
    assert status(["store", "pull", url, "--store", url]) == 2


def test_captures_need_a_folder(url, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        'duration = "1 s"\ncapture = true\n[bottleneck]\nrate = "1 Mbit/s"\n'
        'queue = { kind = "drop_tail", limit = "1 BDP" }\n'
        '[[flows]]\nname = "a"\ncontroller = "cubic"\nrtt = "20 ms"\n'
    )
    with pytest.raises(InputError, match="need a store that is a folder"):
        jostle.run(path, store=url)
    with pytest.raises(StoreError, match="need a store on a file system"):
        SharedStore(url).put(SimBackend(fake_core.FakeEngine()).run(fake_core.spec(capture=True)))


def test_storage_that_is_none_is_said(url, tmp_path):
    with pytest.raises(StoreError, match="cannot use the store magic://x"):
        SharedStore("magic://x").get("0" * 32)
    with pytest.raises(StoreError, match="cannot use the store s3://nobody-s"):
        SharedStore("s3://nobody-s/x").get("0" * 32)
    shutil.rmtree(copy_of("magic://x"))
