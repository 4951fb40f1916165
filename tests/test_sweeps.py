"""Sweeps, as another shell sees, stops and resumes them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jostle.cli.detach import last_lines, real_store
from jostle.cli.sweep import _sweep_line
from jostle.errors import InputError, StoreError
from jostle.results import Failure
from jostle.runner.progress import Progress, lasting
from jostle.runner.sweeps.heartbeat import SweepHeartbeat
from jostle.runner.sweeps.plan_progress import progress_by_plan
from jostle.runner.sweeps.state_folder import commands_of, make_record_folder, state_folder
from jostle.runner.sweeps.sweep_files import (
    SweepCommand,
    find,
    is_running,
    open_sweep_folder,
    sweeps_of,
)
from jostle.safe_io.folder_lock import LockFile
from jostle.store.stored_plans import write_plan

# Some 15 ms each in the simulator, all the same to the store.
SCENARIO = """
title = "Swept"
duration = "20 s"
[bottleneck]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
start_jitter = "20 ms"
"""
JOSTLE = [sys.executable, "-P", "-c", "from jostle.cli import main; main()"]
Jostle = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder, a new one for each test."""
    base = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(base))
    return base / "jostle" / "sweeps"


@pytest.fixture
def jostle(tmp_path: Path) -> Jostle:
    (tmp_path / "sweep.toml").write_text(SCENARIO, "utf-8")

    def call(*words: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*JOSTLE, *words], cwd=folder, capture_output=True, text=True, check=False
        )

    return call


def told(jostle: Jostle, store: str = "store") -> Mapping[str, Any]:
    """What `status` says of the only plan of a store."""
    ended = jostle("sweep", "status", "--store", store, "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    document = json.loads(ended.stdout)
    assert document["schema"] == "jostle.sweeps/1"
    (plan,) = document["plans"]
    return dict(plan)


def wait_until(holds: Callable[[], bool], what: str, patience_s: float = 60.0) -> None:
    until_s = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < until_s, what
        time.sleep(0.05)


def command(folder: Path, *words: str, store: Path | None = None) -> SweepCommand:
    words = ("sweep.toml", *words)
    return SweepCommand(words, str(folder), {}, "host", os.getpid(), 1.0, str(store or folder))


def record(store: Path, *words: str, folder: Path | None = None, **more: Any) -> SweepHeartbeat:
    more.setdefault("stop", lambda: None)
    own = command(folder or store, *words, store=store)
    return SweepHeartbeat(store, own, [("Swept", 10)], **more)


@pytest.mark.slow
def test_a_detached_sweep_is_seen_stopped_and_resumed(
    jostle: Jostle, tmp_path: Path, state: Path
) -> None:
    options = ("--store", "store", "--set", "flows.one.controller=reno", "--repeats", "5000")
    began = jostle("run", "sweep.toml", *options, "--jobs", "1", "--detach")
    assert (began.returncode, began.stderr) == (0, "")
    (sweep,) = sweeps_of(tmp_path / "store")
    try:
        assert sweep.state == "running"
        assert began.stdout.startswith(f"sweep {sweep.name} runs, process {sweep.command.process};")
        assert os.getsid(sweep.command.process) == sweep.command.process, "it has no terminal"
        again = jostle("run", "sweep.toml", *options, "--jobs", "1", "--detach")
        assert again.returncode == 2
        assert "is running already" in again.stderr
        wait_until(lambda: told(jostle)["sweeps"][0]["done"] > 5, "it does not go on")
        text = jostle("sweep", "status", "--store", "store").stdout
        assert text.startswith("Swept: ")
        assert f"  {sweep.name} running, " in text
        assert " runs/s, about " in text
        stopped = jostle("sweep", "stop", "--store", "store")
    finally:
        (sweep.place / "stop").touch()
    assert (stopped.returncode, stopped.stderr) == (0, "")
    plan = told(jostle)
    assert plan["sweeps"][0]["state"] == "stopped"
    assert 0 < plan["done"] < 5000
    assert plan["done"] + plan["left"] == plan["total"] == 5000
    # Nothing that was told to be finished is missing.
    assert plan["done"] >= plan["sweeps"][0]["done"]
    text = jostle("sweep", "status", sweep.name[:4], "--store", "store").stdout
    words = "sweep.toml --set flows.one.controller=reno --repeats 5000 --jobs 1"
    assert f"this sweep was started with: jostle run {words} --store {tmp_path / 'store'} " in text
    assert f"(in {tmp_path}, by {sweep.command.host})" in text
    assert f"log: {state / sweep.name / 'log'}\n" in text
    assert "interrupted: " in text
    assert not list(sweep.place.glob("log*")), "a store decided where the log is"
    try:
        # From another folder, and after the store's record of the command was damaged.
        (sweep.place / "command.json").write_text("{")
        store = str(tmp_path / "store")
        resumed = jostle("sweep", "resume", "--store", store, "--detach", folder=Path("/"))
        assert resumed.returncode == 0
        wait_until(lambda: told(jostle)["sweeps"][0]["done"] > 0, "it does not go on")
        assert told(jostle)["sweeps"][0]["stored"] == plan["done"]
    finally:
        (sweep.place / "stop").touch()
    wait_until(lambda: told(jostle)["sweeps"][0]["state"] == "stopped", "it does not stop")


def test_what_is_resumed_is_what_was_given(jostle: Jostle, tmp_path: Path, state: Path) -> None:
    options = ("--set", "flows.one.controller=reno", "--repeats", "3", "--seed", "7")
    store = tmp_path / "store"
    words = (*options, "--json", "--store", str(store))
    with suppress(KeyboardInterrupt), record(store, *words, folder=tmp_path, detached=True):
        raise KeyboardInterrupt
    resumed = jostle("sweep", "resume", "--store", "store")
    assert resumed.returncode == 0
    undisturbed = jostle("run", "sweep.toml", *options, "--json", "--store", "quiet")
    assert resumed.stdout == undisturbed.stdout
    assert sweeps_of(store) == []
    assert commands_of(str(store)) == {}
    assert list(state.iterdir()) == []


def test_files_behind_two_dashes_can_be_detached(jostle: Jostle) -> None:
    done = jostle("run", "--store", "store", "--repeats", "2", "--detach", "--", "sweep.toml")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: told(jostle)["left"] == 0, "it does not end")


def test_a_killed_sweep_is_told_from_one_that_runs(jostle: Jostle, tmp_path: Path) -> None:
    words = ("run", "sweep.toml", "--store", "store", "--repeats", "300")
    with subprocess.Popen(
        [*JOSTLE, *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_until(lambda: len(sweeps_of(tmp_path / "store")) == 1, "it does not begin")
        (sweep,) = sweeps_of(tmp_path / "store")
        assert sweep.state == "running"
        assert sweep.command.process == process.pid
        process.send_signal(signal.SIGKILL)
    assert told(jostle)["sweeps"][0]["state"] == "killed"
    refused = jostle("sweep", "stop", "--store", "store")
    assert refused.returncode == 2
    assert "no sweep that is running" in refused.stderr
    # What has changed would be another sweep.
    (tmp_path / "sweep.toml").write_text(SCENARIO.replace("20 s", "21 s"), "utf-8")
    refused = jostle("sweep", "resume", "--store", "store")
    assert refused.returncode == 2
    assert "sweep.toml has changed since sweep" in refused.stderr
    (tmp_path / "sweep.toml").write_text(SCENARIO, "utf-8")
    resumed = jostle("sweep", "resume", "--store", "store")
    assert resumed.returncode == 0
    assert f"in {tmp_path}: jostle run sweep.toml --repeats 300 --store " in resumed.stderr
    assert sweeps_of(tmp_path / "store") == []


def test_what_is_done_leaves_no_record(jostle: Jostle, tmp_path: Path, state: Path) -> None:
    for _ in range(2):
        assert jostle("run", "sweep.toml", "--store", "store").returncode == 0
        assert list((tmp_path / "store" / ".sweeps").iterdir()) == []
        assert list(state.iterdir()) == []
    nothing = jostle("sweep", "status", "--store", "store")
    assert nothing.stdout == "no sweep is running or was stopped in store\n"


def test_what_cannot_begin_is_told_by_whoever_detaches(
    jostle: Jostle, tmp_path: Path, state: Path
) -> None:
    words = ("run", "sweep.toml", "--store", "store", "--detach")
    ended = jostle(*words, "--executor", "nowhere")
    assert ended.returncode == 2
    assert "choose local, processes, dask" in ended.stderr
    assert list((tmp_path / "store" / ".sweeps").iterdir()) == []
    assert list(state.iterdir()) == [], "what never began left its log"
    unkept = jostle(*words, "--store", "none")
    assert unkept.returncode == 2
    assert "leave out --store none" in unkept.stderr
    missing = jostle("run", "nothing.toml", "--store", "other", "--detach")
    assert missing.returncode == 2
    assert not (tmp_path / "other").exists()


def test_code_of_a_sweep_has_to_be_allowed_again(jostle: Jostle, tmp_path: Path) -> None:
    store = tmp_path / "store"
    options = ("--allow-code", "--json", "--store", str(store))
    with pytest.raises(ZeroDivisionError), record(store, *options, folder=tmp_path, detached=True):
        raise ZeroDivisionError
    (sweep,) = sweeps_of(store)
    assert sweep.state == "failed"
    refused = jostle("sweep", "resume", "--store", "store")
    assert refused.returncode == 2
    assert "give --allow-code to resume, too" in refused.stderr
    resumed = jostle("sweep", "resume", "--store", "store", "--allow-code")
    assert (resumed.returncode, json.loads(resumed.stdout)["title"]) == (0, "Swept")


FORGED_LINE = "\n  ffffffff stopped, 1 of 1"
HOSTILE = f"$(touch hacked)\x1b[2J\u202e\ud800{FORGED_LINE}"
"""What a terminal, a reader or a shell would take for more than text."""


def plant(root: Path, folder: Path, *words: str, name: str = "0badc0de", **more: Any) -> Path:
    """Write a sweep into a store as a stranger does, and return its folder."""
    place = root / ".sweeps" / name
    place.mkdir(parents=True, exist_ok=True)
    document = {"words": words, "folder": str(folder), "files": {}, "host": "host", "process": 1}
    document |= {"format": "jostle.sweep/1", "began_s": 1.0, "store": str(root), **more}
    (place / "command.json").write_text(json.dumps(document), "utf-8")
    counts = dict.fromkeys(("total", "stored", "done", "failed", "quarantined", "since_done"), 1)
    times = {"at_s": 1.0, "since_s": 1.0}
    texts = {"titles": [HOSTILE], "plans": [], "ended": "stopped", "why": HOSTILE}
    (place / "progress.json").write_text(json.dumps(counts | times | texts), "utf-8")
    return place


def tree(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def interrupt(store: Path, *words: str, folder: Path) -> str:
    """Begin a sweep that is stopped at once, and return its ID."""
    recording = record(store, *words, folder=folder, detached=True)
    with suppress(KeyboardInterrupt), recording:
        raise KeyboardInterrupt
    return recording.place.name


@pytest.mark.parametrize(
    "options",
    [
        ("-o", "../mine.csv"),
        ("-o", "../mine.html"),
        ("-o", "../"),
        ("--set", f'grid."flows.one.rtt"=["{HOSTILE}"]', "-o", "../mine.csv"),
    ],
    ids=["csv", "report", "figures", "label"],
)
def test_what_a_stranger_wrote_into_a_store_is_never_executed(
    jostle: Jostle, tmp_path: Path, options: tuple[str, ...]
) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    (home / "work").mkdir(parents=True)
    (home / ".bashrc").write_text("# mine\n")
    (home / "work" / "sweep.toml").write_text(SCENARIO, "utf-8")
    words = ("sweep.toml", *options, "--store", str(store))
    plant(store, home / "work", *words)
    before = tree(tmp_path)
    for more in ((), ("--detach",), ("0bad",), ("--allow-code",)):
        refused = jostle("sweep", "resume", "--store", "store", *more)
        assert refused.returncode == 2
        text = "sweep 0badc0de was not started by this account on this machine"
        assert text in refused.stderr
        lines = refused.stderr.splitlines()
        assert len(lines) == 3
        shown = lines[1].replace("\\u000a", "\n").replace("\\u001b", "\x1b")
        shown = shown.replace("\\u202e", "\u202e").replace("\\ud800", "\ud800")
        assert shlex.split(shown) == ["jostle", "run", *words]
        assert lines[2] == "Check these words, then give the command yourself"
    assert tree(tmp_path) == before


def test_a_store_of_a_stranger_is_shown(jostle: Jostle, tmp_path: Path, state: Path) -> None:
    store, secret = tmp_path / "store", tmp_path / "secret"
    secret.write_text("secret\n")
    words = ("sweep.toml", "--set", HOSTILE)
    place = plant(store, tmp_path / HOSTILE.replace("/", ""), *words, host=HOSTILE)
    (place / "log").symlink_to(secret)
    before = tree(tmp_path)
    shown = jostle("sweep", "status", "--store", "store", "0badc0de")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "\nthis sweep was started with: jostle run sweep.toml --set '$(touch " in shown.stdout
    assert "your state folder has no record of it" in shown.stdout
    assert len(shown.stdout.splitlines()) == 4, "a line was forged"
    assert not {"\x1b", "\u202e"} & set(shown.stdout)
    assert "secret" not in shown.stdout
    sweep = told(jostle)["sweeps"][0]
    assert (sweep["own"], sweep["log"], sweep["words"]) == (False, None, list(words))
    assert tree(tmp_path) == before
    assert not state.exists()


def test_the_id_of_an_own_sweep_gives_a_stranger_nothing(jostle: Jostle, tmp_path: Path) -> None:
    store, copied = tmp_path / "store", tmp_path / "copied"
    name = interrupt(store, "--json", "--store", str(store), folder=tmp_path)
    hostile = ("sweep.toml", "-o", "hacked.csv", "--store", str(store))
    plant(copied, tmp_path, *hostile, name=name, store=str(store))
    plant(store, tmp_path / "elsewhere", *hostile, name=name)
    refused = jostle("sweep", "resume", name, "--store", "copied")
    assert refused.returncode == 2
    assert "it can only be shown" in refused.stderr
    text = jostle("sweep", "status", name, "--store", "store").stdout
    assert f"with: jostle run sweep.toml --json --store {store} (in {tmp_path}, " in text
    resumed = jostle("sweep", "resume", name, "--store", "store")
    assert (resumed.returncode, json.loads(resumed.stdout)["title"]) == (0, "Swept")
    assert not list(tmp_path.glob("hacked*"))


def test_links_in_a_store_are_not_followed(jostle: Jostle, tmp_path: Path, state: Path) -> None:
    store, target = tmp_path / "store", tmp_path / "target"
    words = ("sweep.toml", "--repeats", "2", "--store", str(store))
    place = plant(store, tmp_path, *words, name=command(tmp_path, *words[1:]).name)
    (place / "log").symlink_to(target)
    (place / "stop").symlink_to(target)
    with open_sweep_folder(place) as folder:
        lock = LockFile.take(folder, "lock")
    assert lock is not None
    assert jostle("sweep", "stop", "--wait", "0", "--store", "store").returncode == 1
    assert not target.exists(), "a request to stop was written through a link"
    lock.release()
    detached = jostle("run", *words[:3], "--store", "store", "--detach")
    assert (detached.returncode, detached.stderr) == (0, "")
    wait_until(lambda: told(jostle)["sweeps"][0]["state"] == "finished", "it does not end")
    log = state / place.name / "log"
    wait_until(lambda: "Swept" in log.read_text("utf-8"), "it prints no results")
    assert not target.exists(), "a log was written through a link"
    (place / "command.json").rename(target)
    (place / "command.json").symlink_to(target)
    assert sweeps_of(store) == []


def test_stores_with_the_same_command_do_not_mix(jostle: Jostle, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    names = [
        interrupt(store, "--json", "--store", str(store), folder=tmp_path)
        for store in (first, second)
    ]
    assert [list(commands_of(str(store))) for store in (first, second)] == [[n] for n in names]
    refused = jostle("sweep", "resume", names[1], "--store", "first")
    assert refused.returncode == 2
    assert f"no sweep `{names[1]}`" in refused.stderr
    # The same store by another name.
    (tmp_path / "link").symlink_to(first)
    assert jostle("sweep", "resume", "--store", "link").returncode == 0
    assert [len(sweeps_of(store)) for store in (first, second)] == [0, 1]
    assert [list(commands_of(str(store))) for store in (first, second)] == [[], [names[1]]]


@pytest.mark.parametrize("level", ["jostle", "sweeps", "record", "command"])
@pytest.mark.parametrize("fault", ["link", "writable", "owner"])
def test_a_state_folder_of_others_is_refused(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, level: str, fault: str
) -> None:
    store = str(tmp_path)
    name = interrupt(tmp_path, folder=tmp_path)
    record = state / name
    path = {"jostle": state.parent, "sweeps": state, "record": record}.get(
        level, record / "command.json"
    )
    if fault == "link":
        path.rename(tmp_path / "moved")
        path.symlink_to(tmp_path / "moved")
        text = "is a symbolic link, which is not followed"
    elif fault == "writable":
        path.chmod(path.stat().st_mode | 0o020)
        text = f"run `chmod go-w {path}`"
    else:
        owner = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
        text = "belongs to another user"
    with pytest.raises(InputError, match=text):
        commands_of(store)
    if level != "command":
        with pytest.raises(InputError, match=text):
            make_record_folder(name)


def test_without_a_state_folder_runs_are_carried_out(
    jostle: Jostle, tmp_path: Path, state: Path
) -> None:
    state.mkdir(parents=True, mode=0o777)
    state.chmod(0o777)
    words = ("run", "sweep.toml", "--store", "store")
    refused = jostle(*words, "--detach")
    assert refused.returncode == 2
    assert f"run `chmod go-w {state}`" in refused.stderr
    assert jostle(*words).returncode == 0
    assert list(state.iterdir()) == []
    plant(tmp_path / "store", tmp_path)
    refused = jostle("sweep", "resume", "--store", "store")
    assert refused.returncode == 2
    assert f"run `chmod go-w {state}`" in refused.stderr
    shown = jostle("sweep", "status", "--store", "store")
    assert shown.returncode == 0
    assert shown.stderr.startswith("warning: other users can write to ")


def test_records_are_for_their_user_alone(tmp_path: Path, state: Path) -> None:
    before = os.umask(0)
    try:
        place = make_record_folder("0" * 8)
        name = interrupt(tmp_path, folder=tmp_path)
    finally:
        os.umask(before)
    folders = (state.parent, state, place, state / name)
    assert [path.stat().st_mode & 0o777 for path in folders] == [0o700] * 4
    assert (state / name / "command.json").stat().st_mode & 0o777 == 0o600


def test_a_relative_state_home_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("state", "./state", ""):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        assert state_folder() == tmp_path / ".local" / "state" / "jostle" / "sweeps"


def test_records_without_progress_are_removed_after_months(tmp_path: Path, state: Path) -> None:
    old_s = time.time() - 91 * 86_400
    forgotten, recent = (interrupt(tmp_path, option, folder=tmp_path) for option in ("-a", "-b"))
    os.utime(state / forgotten, (old_s, old_s))
    with record(tmp_path, detached=True) as recording:
        running = recording.place.name
        assert {path.name for path in state.iterdir()} == {recent, running}
        os.utime(state / running, (old_s, old_s))
        recording.progress(0, Progress()).begin(10, 0)
        make_record_folder(recent)
        assert {path.name for path in state.iterdir()} == {recent, running}


def test_shards_are_one_plan(tmp_path: Path) -> None:
    clock = iter(range(100))
    begun = []
    for number in (1, 2):
        recording = record(tmp_path, "--shard", f"{number}/2", clock=lambda: next(clock))
        progress = recording.progress(0, Progress())
        with suppress(KeyboardInterrupt), recording:
            progress.on_plan_stored("0" * 32 + ".json")
            progress.begin(10, 2)
            progress.advance()
            progress.quarantined(Failure(0, 1, "its worker died"))
            begun.append(sweeps_of(tmp_path))
            raise KeyboardInterrupt
    assert [len(sweeps) for sweeps in begun] == [1, 2]
    (part,) = progress_by_plan(tmp_path, sweeps_of(tmp_path))
    # The plan's file is not there: what the sweeps tell of themselves counts.
    assert (part.total, part.done, part.failed, part.quarantined) == (20, 6, 2, 2)
    assert part.left == 12
    assert len(part.sweeps) == 2
    with pytest.raises(InputError, match="more than one sweep that is stopped"):
        find(tmp_path, None, ("stopped",))
    with pytest.raises(InputError, match="no sweep `zz`"):
        find(tmp_path, "zz", ())


def test_the_rate_is_that_of_the_last_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr("jostle.runner.sweeps.heartbeat._WRITE_EVERY_S", 0.0)
    recording = record(tmp_path, clock=lambda: now_s)
    progress = recording.progress(0, Progress())
    with recording:
        progress.begin(1000, 100)
        assert sweeps_of(tmp_path)[0].progress.rate is None
        for step_s in [1.0] * 100 + [0.1] * 600:
            now_s += step_s
            progress.advance()
        told = sweeps_of(tmp_path)[0].progress
        assert told.rate == pytest.approx(10.0, rel=0.01)
        assert (told.total, told.stored, told.done, told.remaining_runs) == (1000, 100, 700, 200)
    assert sweeps_of(tmp_path) == []


def test_rounds_of_repeats_come_on_top(tmp_path: Path) -> None:
    recording = record(tmp_path)
    progress = recording.progress(0, Progress())
    with recording:
        progress.begin(10, 0)
        progress.begin(5, 1)
        told = sweeps_of(tmp_path)[0].progress
        assert (told.total, told.stored) == (15, 1)


def test_a_wish_to_stop_is_heard_once(tmp_path: Path) -> None:
    heard = threading.Event()
    recording = record(tmp_path, detached=True, stop=heard.set)
    with recording:
        (sweep,) = sweeps_of(tmp_path)
        sweep.ask_to_stop()
        assert heard.wait(10.0)
    # It is not there for the next that carries the sweep out.
    assert not (sweep.place / "stop").exists()


def test_the_same_command_twice_is_recorded_once(tmp_path: Path) -> None:
    first, second = record(tmp_path), record(tmp_path)
    with first, second:
        first.progress(0, Progress()).begin(10, 0)
        second.progress(0, Progress()).begin(10, 5)
        (sweep,) = sweeps_of(tmp_path)
        assert sweep.progress.stored == 0


def test_what_was_left_of_a_command_is_forgotten_once_it_is_done(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), record(tmp_path, detached=True):
        raise KeyboardInterrupt
    assert len(sweeps_of(tmp_path)) == 1
    # Another command has stored all of it meanwhile, so that nothing is left to do.
    recording = record(tmp_path)
    with recording:
        recording.progress(0, Progress()).begin(10, 10)
    assert sweeps_of(tmp_path) == []


def test_what_runs_is_not_waited_for(tmp_path: Path) -> None:
    recordings = [record(tmp_path, "--shard", f"{at}/20", detached=True) for at in range(1, 21)]
    with ExitStack() as stack:
        for recording in recordings:
            stack.enter_context(recording)
        began_s = time.monotonic()
        assert [sweep.state for sweep in sweeps_of(tmp_path)] == ["running"] * 20
        assert time.monotonic() - began_s < 2.0
        gone = recordings[0].place
    assert not is_running(gone)


def test_runs_that_failed_and_were_stored_since_are_done(tmp_path: Path) -> None:
    run = "0" * 32
    noted = write_plan(tmp_path, "Swept", ("sim", "1"), [{}], [(0, 1, run)])
    assert noted is not None
    recording = record(tmp_path)
    progress = recording.progress(0, Progress())
    with recording:
        progress.on_plan_stored(noted.path.name)
        progress.begin(1, 0)
        progress.failed(Failure(0, 1, "its worker died"))
    (part,) = progress_by_plan(tmp_path, sweeps_of(tmp_path))
    assert (part.total, part.done, part.failed, part.left) == (1, 0, 1, 0)
    assert "finished, 1 of 1 (1 failed)" in _sweep_line(part.sweeps[0], part)
    folder = tmp_path / run
    folder.mkdir()
    (part,) = progress_by_plan(tmp_path, sweeps_of(tmp_path))
    assert (part.total, part.done, part.failed, part.left) == (1, 1, 0, 0)


def test_what_is_no_sweep_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), record(tmp_path, detached=True):
        raise KeyboardInterrupt
    (sweep,) = sweeps_of(tmp_path)
    path = sweep.place / "command.json"
    whole = json.loads(path.read_text("utf-8"))
    for change in ({"format": "jostle.sweep/9"}, {"words": 3}, {"files": []}, {"process": "x"}):
        path.write_text(json.dumps({**whole, **change}), "utf-8")
        assert sweeps_of(tmp_path) == []
    for change in ({"began_s": 1e20}, {"began_s": -1.0}, {"process": "BEYOND"}):
        text = json.dumps({**whole, **change}).replace('"BEYOND"', "1e999")
        path.write_text(text, "utf-8")
        assert sweeps_of(tmp_path) == []
    path.write_text(json.dumps(whole), "utf-8")
    assert len(sweeps_of(tmp_path)) == 1
    path = sweep.place / "progress.json"
    progress = path.read_text("utf-8")
    for count in ("-1", "1" + "0" * 400, "1e999"):
        path.write_text(progress.replace('"total": 0', f'"total": {count}'), "utf-8")
        assert sweeps_of(tmp_path) == []
    path.write_text(progress, "utf-8")
    assert len(sweeps_of(tmp_path)) == 1
    (tmp_path / ".sweeps" / "0badc0de").symlink_to(sweep.place)
    assert len(sweeps_of(tmp_path)) == 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".sweeps").symlink_to(tmp_path / ".sweeps")
    with pytest.raises(StoreError, match="is a symbolic link"):
        sweeps_of(elsewhere)
    with record(elsewhere, detached=True) as recording:
        assert not recording.place.exists()


def test_a_lock_that_is_looked_at_is_taken_all_the_same(tmp_path: Path) -> None:
    recording = record(tmp_path, detached=True)
    with open_sweep_folder(recording.place, make=True) as folder:
        looking = LockFile.take(folder, "lock")
    assert looking is not None
    threading.Timer(0.2, looking.release).start()
    with recording:
        assert [sweep.state for sweep in sweeps_of(tmp_path)] == ["running"]


def test_the_id_is_that_of_the_command(tmp_path: Path) -> None:
    one = command(tmp_path, "--seed", "1")
    assert replace(one, began_s=5.0, process=1).name == one.name
    assert replace(one, folder="/elsewhere").name != one.name
    assert command(tmp_path, "--seed", "2").name != one.name


def test_records_name_a_store_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "store")
    assert real_store(str(tmp_path / "link")) == str(tmp_path / "store")
    assert real_store("s3://bucket/store/") == "s3://bucket/store"


def test_how_long_things_last() -> None:
    given = [0.4, 59, 60, 61, 3_599.7, 3_661, 86_400, 200_000]
    assert [lasting(seconds) for seconds in given] == [
        "0 s", "59 s", "1 min", "1 min 1 s", "1 h", "1 h 1 min", "1 d", "2 d 7 h",
    ]  # fmt: skip


def test_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{number}\n" for number in range(5000)), "utf-8")
    assert last_lines(log, lines=2) == "4998\n4999"
    assert last_lines(log, begin=log.stat().st_size) == ""
    assert last_lines(tmp_path / "none") == ""
