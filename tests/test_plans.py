"""What a store says of the plans that were carried out in it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from fake_plan import make_plan
from jostle.backends import SimBackend
from jostle.errors import StoreError
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.store.store import Store
from jostle.store.stored_plans import MOST_RUNS, plan_names, read_plan, write_plan


def test_a_session_notes_its_plan_once(tmp_path: Path, engine) -> None:
    plan = make_plan(2)
    backend = SimBackend(engine)
    for _ in range(2):
        results = Session(backend, local(1), Store(tmp_path)).carry_out(plan)
    ((name, _),) = plan_names(tmp_path)
    stored = read_plan(tmp_path, name)
    assert (stored.title, stored.backend) == (plan.title, "sim")
    assert [dict(one) for one in stored.conditions] == [dict(one) for one in plan.conditions]
    expected = [(r.condition, r.seed, r.run.run_id) for r in results.results]
    assert list(stored.runs) == expected


def test_what_was_carried_out_last_comes_first(tmp_path: Path) -> None:
    for at, title in enumerate(("old", "new")):
        write_plan(tmp_path, title, ("sim", "1"), [{}], [(0, 1, "0" * 32)])
        (latest,) = [n for n, _ in plan_names(tmp_path) if read_plan(tmp_path, n).title == title]
        os.utime(tmp_path / ".plans" / latest, (at, at))
    assert [read_plan(tmp_path, n).title for n, _ in plan_names(tmp_path)] == ["new", "old"]
    write_plan(tmp_path, "old", ("sim", "1"), [{}], [(0, 1, "0" * 32)])
    assert [read_plan(tmp_path, n).title for n, _ in plan_names(tmp_path)] == ["old", "new"]


def test_a_plan_too_long_is_not_noted(tmp_path: Path) -> None:
    write_plan(tmp_path, "", ("sim", "1"), [{}], [(0, 1, "0" * 32)] * (MOST_RUNS + 1))
    assert list(plan_names(tmp_path)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", "jostle.plan/9"),
        ("runs", [[5, 1, "0" * 32]]),
        ("runs", [[0, 1, "../../etc"]]),
        ("runs", [[0, 1]]),
        ("conditions", 3),
        ("runs", [[float("inf"), 1, "0" * 32]]),
        ("title", "another"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, key: str, value: object) -> None:
    write_plan(tmp_path, "title", ("sim", "1"), [{}], [(0, 1, "0" * 32)])
    ((name, _),) = plan_names(tmp_path)
    path = tmp_path / ".plans" / name
    content = json.dumps(json.loads(path.read_text()) | {key: value}).encode()
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is not a plan of this version"):
        read_plan(tmp_path, name)
    if key != "title":
        # The same under the name that its content has.
        with pytest.raises(StoreError, match="is not a plan of this version"):
            read_plan(tmp_path, named(tmp_path, content))


def named(store: Path, content: bytes) -> str:
    """Put a file among the plans of a store, under the name of its content."""
    name = hashlib.sha256(content).hexdigest()[:32] + ".json"
    (store / ".plans" / name).write_bytes(content)
    return name


def test_a_plan_that_nests_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".plans").mkdir()
    name = named(tmp_path, b"[" * 100_000)
    with pytest.raises(StoreError, match="is not a plan of this version"):
        read_plan(tmp_path, name)


def test_plans_are_not_written_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    store = tmp_path / "store"
    store.mkdir()
    (store / ".plans").symlink_to(tmp_path / "elsewhere")
    write_plan(store, "title", ("sim", "1"), [{}], [(0, 1, "0" * 32)])
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with pytest.raises(StoreError, match="is a symbolic link"):
        list(plan_names(store))
    with pytest.raises(StoreError, match="is a symbolic link"):
        Store(store)


def test_only_names_of_plans_are_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a plan"):
        read_plan(tmp_path, "../../../etc/passwd")
    assert list(plan_names(tmp_path)) == []
