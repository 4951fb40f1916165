"""The viewer: what it answers, to whom, and its page in a browser."""

from __future__ import annotations

import contextlib
import html
import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

import jostle
import pytest
from browser import BROWSER, opened
from jostle.backends import RunRecord
from jostle.cli import status
from jostle.errors import InputError
from jostle.report.viewer import StoreServer, redirect_file
from jostle.report.viewer.store_queries import StoreQueries
from jostle.store.store import Store

SCENARIO = """\
title    = "Rate and <b>RTT</b>"
duration = "2 s"
repeats  = 2

[bottleneck]
rate  = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }

[[flows]]
name         = "first"
controller   = "cubic"
rtt          = "20 ms"
start_jitter = "10 ms"

[[flows]]
name       = "second"
controller = "bbr"
rtt        = "20 ms"

[grid]
"bottleneck.rate"  = ["5 Mbit/s", "10 Mbit/s"]
"flows.second.rtt" = ["20 ms", "40 ms"]
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("view")
    (folder / "grid.toml").write_text(SCENARIO, "utf-8")
    jostle.run(folder / "grid.toml", store=folder / "store")
    return folder / "store"


@pytest.fixture(scope="module")
def folders(store: Path) -> Path:
    """The same store as earlier versions wrote it: each run in a folder of its own."""
    made = Store(store.parent / "folders")
    shutil.copytree(store / ".plans", made.root / ".plans")
    for result in jostle.run(store.parent / "grid.toml", store=False).results:
        assert isinstance(result.run, RunRecord)
        made.put(result.run)
    return made.root


@pytest.fixture
def viewer(store: Path) -> Iterator[StoreServer]:
    made = StoreServer(store)
    threading.Thread(target=made.serve, daemon=True).start()
    yield made
    made.close()


def get(viewer: StoreServer, name: str, host: str | None = None, method: str = "GET"):
    address = urlsplit(viewer.url + name)
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=20)
    given = {"Host": host} if host else {}
    connection.request(method, f"{address.path}?{address.query}", headers=given)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def found(viewer: StoreServer, name: str):
    answer, content = get(viewer, name)
    return answer.status, json.loads(content)


def test_plans_tables_and_charts(viewer: StoreServer) -> None:
    _, (plan,) = found(viewer, "plans")
    assert (plan["title"], plan["runs"], plan["done"]) == ("Rate and <b>RTT</b>", 8, 8)
    _, table = found(viewer, f"table?plan={plan['name']}&phase=overall&measure=throughput")
    assert [row["n"] for row in table["rows"]] == [2, 2, 2, 2]
    assert [cell["name"] for cell in table["rows"][0]["cells"]] == ["first", "second"]
    cells = table["rows"][3]["cells"]
    assert sum(cell["mean"] for cell in cells) == pytest.approx(10, rel=0.05), "Mbit/s"
    assert all(cell["low"] <= cell["mean"] <= cell["high"] for cell in cells)
    _, jain = found(viewer, f"table?plan={plan['name']}&phase=overall&measure=jain")
    assert [cell["label"] for cell in jain["rows"][0]["cells"]] == ["all flows"]
    _, charts = found(viewer, f"charts?of={plan['name']}:0&of={plan['name']}:3:2")
    assert [len(one["seeds"]) for one in charts["data"]["conditions"]] == [2, 1]
    _, runs = found(viewer, f"runs?plan={plan['name']}&condition=1")
    assert [(run["seed"], run["there"]) for run in runs] == [(1, True), (2, True)]


def test_the_table_has_the_estimates_of_the_results(viewer: StoreServer, store: Path) -> None:
    results = jostle.run(store.parent / "grid.toml", store=store)
    wanted = results.estimate("rtt").row(0, named=True)
    _, (plan,) = found(viewer, "plans")
    _, table = found(viewer, f"table?plan={plan['name']}&phase=overall&measure=rtt")
    cell = table["rows"][0]["cells"][0]
    assert cell["mean"] == pytest.approx(wanted["value"] * 1e3)
    assert cell["low"] == pytest.approx(wanted["low"] * 1e3)


def test_segments_are_shown_as_far_as_they_are_whole(store: Path, tmp_path: Path) -> None:
    whole = Path(shutil.copytree(store, tmp_path / "whole"))
    made = StoreServer(whole)
    threading.Thread(target=made.serve, daemon=True).start()
    _, (plan,) = found(made, "plans")
    assert (plan["done"], plan["runs"]) == (8, 8)
    for victim in whole.glob("segments/*/runs.parquet"):
        victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    made.close()
    made = StoreServer(whole)
    threading.Thread(target=made.serve, daemon=True).start()
    _, table = found(made, f"table?plan={plan['name']}&phase=overall&measure=rtt")
    assert table["rows"] == []
    assert list(whole.glob("segments/*/runs.parquet")), "a viewer moves nothing aside"
    made.close()


def test_failed_runs_are_counted(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "class Broken:\n    def on_ack(self, connection, ack):\n        raise ValueError('wrong')\n"
        "    def on_congestion_event(self, connection, event):\n        pass\n"
    )
    (tmp_path / "broken.toml").write_text(
        'duration = "1 s"\nrepeats = 2\nbottleneck = { rate = "5 Mbit/s", queue = "fq_codel" }\n'
        'flows = [{ name = "one", controller = "broken:Broken", rtt = "20 ms" }]\n'
    )
    place = tmp_path / "store"
    words = ["run", str(tmp_path / "broken.toml"), "--store", str(place), "--allow-code"]
    assert status(words) == 1
    made = StoreServer(place)
    threading.Thread(target=made.serve, daemon=True).start()
    _, (plan,) = found(made, "plans")
    assert (plan["done"], plan["failed"], plan["runs"]) == (0, 2, 2)
    _, table = found(made, f"table?plan={plan['name']}&phase=&measure=")
    assert (table["done"], table["failed"], table["runs"]) == (0, 2, 2)
    made.close()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("charts?of={plan}:²", "write it as PLAN:CONDITION"),
        ("charts?of={plan}:99", "4 conditions"),
        ("runs?plan={plan}&condition=99", "4 conditions"),
        ("runs?plan={plan}&condition=²", "missing or wrong"),
        ("table?plan={plan}&phase=nosuch&measure=", "no phase `nosuch`"),
    ],
)
def test_questions_that_have_no_answer_say_so(viewer: StoreServer, name: str, why: str) -> None:
    _, (plan,) = found(viewer, "plans")
    code, answer = found(viewer, quote(name.format(plan=plan["name"]), safe="?&=:"))
    assert code == http.HTTPStatus.BAD_REQUEST
    assert why in answer["error"]


def test_a_sweep_is_shown_as_far_as_it_is(folders: Path, tmp_path: Path) -> None:
    store, part = folders, tmp_path / "part"
    shutil.copytree(store, part)
    runs = sorted(path for path in part.iterdir() if not path.name.startswith("."))
    shutil.rmtree(runs[0])
    (runs[1] / "summary.json").write_text("[]")
    made = StoreServer(part)
    threading.Thread(target=made.serve, daemon=True).start()
    _, (plan,) = found(made, "plans")
    assert (plan["done"], plan["runs"]) == (7, 8)
    _, table = found(made, f"table?plan={plan['name']}&phase=overall&measure=rtt")
    assert table["unreadable"] == 1
    assert sum(row["n"] for row in table["rows"]) == 6
    shutil.copytree(store / runs[0].name, runs[0])
    assert found(made, "plans")[1][0]["done"] == 8
    assert runs[1].exists(), "a viewer moves nothing aside"
    made.close()


def test_a_summary_that_was_changed_is_in_no_table(folders: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folders, tmp_path / "copy"))
    run = min(path for path in copy.iterdir() if not path.name.startswith("."))
    path = run / "summary.json"
    path.write_text(path.read_text().replace('"goodput_bps": ', '"goodput_bps": 9'))
    made = StoreServer(copy)
    threading.Thread(target=made.serve, daemon=True).start()
    _, (plan,) = found(made, "plans")
    _, table = found(made, f"table?plan={plan['name']}&phase=overall&measure=goodput")
    assert (table["unreadable"], sum(row["n"] for row in table["rows"])) == (1, 7)
    made.close()


def test_only_those_who_know_the_address_are_answered(viewer: StoreServer) -> None:
    answer, content = get(viewer, "")
    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert b"<script>" in content
    port = urlsplit(viewer.url).port
    assert get(viewer, "", host=f"attacker.example:{port}")[0].status == 403
    assert get(viewer, "plans", method="POST")[0].status == 501
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    for path in ("/", "/plans", f"/{'x' * 32}/plans", "//plans", "*"):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 403, path
    connection.close()


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("table?plan=none&phase=overall&measure=rtt", "no plan"),
        ("table?plan=PLAN&phase=overall&measure=rt", "did you mean"),
        ("table?phase=overall", "missing or wrong"),
        ("charts?of=PLAN:99", "4 conditions"),
        ("charts?of=PLAN:a", "PLAN:CONDITION"),
        ("charts?of=PLAN:0:77", "no run of it"),
        ("charts?of=../../x:0", "no plan"),
        ("charts?" + "&".join(["of=PLAN:0"] * 13), "1 to 12"),
    ],
)
def test_a_wrong_question_is_answered_with_why(
    viewer: StoreServer, question: str, why: str
) -> None:
    name = found(viewer, "plans")[1][0]["name"]
    code, told = found(viewer, question.replace("PLAN", name))
    assert code == 400
    assert why in told["error"]


def test_a_store_that_was_made_up_gives_an_error(
    viewer: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = found(viewer, "plans")[1][0]["name"]
    monkeypatch.setattr(
        "jostle.report.viewer.store_queries.topology", lambda spec: spec["no such key"]
    )
    code, told = found(viewer, f"charts?of={name}:0")
    assert code == 500
    assert told["error"] == "what is stored cannot be shown (KeyError)"


def test_no_store_and_no_port(tmp_path: Path, viewer: StoreServer, capsys) -> None:
    assert status(["view", str(tmp_path / "none")]) == 2
    assert "there is no store" in capsys.readouterr().err
    with pytest.raises(InputError, match="choose another"):
        StoreServer(tmp_path, urlsplit(viewer.url).port)


def processes() -> str:
    """The command lines of all processes, as every user sees them."""
    told = b""
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            told += cmdline.read_bytes()
    return told.decode("utf-8", "replace")


class Shown:
    """Runs `jostle view` until it is ended by a signal, with a browser of the test."""

    def __init__(self, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._store = store
        self._monkeypatch = monkeypatch

    def until(self, browser: Callable[[Path, str], object], number: int) -> Path:
        """Give the file that the browser was started with, and the URL that it leads to."""
        opened: list[Path] = []

        def show(address: str) -> None:
            page = Path(url2pathname(urlsplit(address).path))
            opened.append(page)
            try:
                found = re.search(r'url=(http://[^"]+)"', page.read_text("utf-8"))
                assert found
                browser(page, html.unescape(found[1]))
            finally:
                os.kill(os.getpid(), number)

        self._monkeypatch.setattr("webbrowser.open", show)
        assert status(["view", str(self._store)]) == 0
        return opened[0]


@pytest.fixture
def shown(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # `nohup` ignores it, and so do its children.
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield Shown(store, monkeypatch)
    signal.signal(signal.SIGHUP, hangup)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_browser_opens_a_file_of_this_user(
    shown: Shown, tmp_path: Path, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Any] = []

    def browser(page: Path, url: str) -> None:
        seen.append((stat.S_IMODE(page.stat().st_mode), stat.S_IMODE(page.parent.stat().st_mode)))
        seen.append(url)

    page = shown.until(browser, number)
    assert seen == [(0o600, 0o700), capsys.readouterr().out.strip()]
    assert tmp_path in page.parents
    assert list(tmp_path.iterdir()) == [], "the file is removed in the end"


def test_no_process_shows_the_secret(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real browser: started with the file, it asks the viewer for the plans."""
    if BROWSER is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    asked = threading.Event()
    plans = StoreQueries.plans

    def noticed(library: StoreQueries) -> object:
        asked.set()
        return plans(library)

    monkeypatch.setattr(StoreQueries, "plans", noticed)

    def browser(page: Path, url: str) -> None:
        words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        words += ["--disable-background-networking", f"--user-data-dir={page.parent}/profile"]
        words += ["--remote-debugging-port=0", page.as_uri()]
        secret = urlsplit(url).path.strip("/")
        with subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True) as started:
            try:
                until_s = time.monotonic() + 30
                while not asked.is_set() and time.monotonic() < until_s:
                    assert secret not in processes()
                assert asked.is_set(), "the file does not lead to the page"
                assert page.name in processes()
                assert secret not in processes()
            finally:
                os.killpg(started.pid, signal.SIGKILL)

    failures: list[BaseException] = []

    def told(page: Path, url: str) -> None:
        try:
            browser(page, url)
        except BaseException as error:
            failures.append(error)

    shown.until(told, signal.SIGTERM)
    assert failures == []


def test_a_redirect_is_no_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with redirect_file('http://127.0.0.1/"><script>&') as page:
        assert "<script>" not in page.read_text("utf-8")
        assert "http://127.0.0.1/&quot;&gt;&lt;script&gt;&amp;" in page.read_text("utf-8")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(InputError, match="set TMPDIR"):
        redirect_file("http://127.0.0.1/").__enter__()


def unanswered(viewer: StoreServer) -> socket.socket:
    """Begin a request."""
    made = socket.create_connection(("127.0.0.1", urlsplit(viewer.url).port), timeout=20)
    made.sendall(b"GET / HTTP/1.1\r\nX: ")
    return made


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_request_that_never_ends_is_given_up(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jostle.report.viewer.server._REQUEST_S", 0.3)
    made = StoreServer(store)
    threading.Thread(target=made.serve, daemon=True).start()
    with unanswered(made) as slow:
        slow.settimeout(0.05)
        began_s = time.monotonic()
        while time.monotonic() - began_s < 5:
            # A byte now and then, so that no single read takes long.
            try:
                slow.sendall(b"x")
                if is_closed(slow):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert time.monotonic() - began_s < 2
    made.close()


def test_who_opens_many_connections_shuts_nobody_out(
    viewer: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jostle.report.viewer.server._WAITING", 4)
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(unanswered(viewer)) for _ in range(12)]
        assert get(viewer, "plans")[0].status == 200
        assert all(is_closed(connection) for connection in many[:8])


def test_a_connection_that_breaks_is_not_told(
    viewer: StoreServer, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(5):
        with unanswered(viewer) as connection:
            rst = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, rst)
    get(viewer, "plans")
    assert capsys.readouterr().err == ""


def test_no_name_of_this_machine_is_looked_up(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getfqdn", lambda *_: pytest.fail("a resolver is asked"))
    StoreServer(store)


@pytest.mark.browser
def test_the_page_drills_down(viewer: StoreServer) -> None:
    with opened(viewer.url) as page:
        page.wait_for_selector("#charts[data-ready]")
        assert page.locator("#title").inner_text() == "Rate and <b>RTT</b>"
        assert page.locator("#table tbody tr").count() == 4
        page.locator("table.map button").nth(3).click()
        page.wait_for_selector('#charts[data-ready$=":3"]')
        page.locator("table.map button").nth(0).click(modifiers=["Shift"])
        page.wait_for_selector('#charts[data-ready$=":0"]')
        assert page.locator(".legend-row button").count() == 6
        assert page.locator("svg.topology .lane").count() == 2
        page.get_by_label("measure").select_option("jain")
        page.wait_for_selector("#table th:has-text('all flows')")
        page.get_by_label("single runs of rate 5 Mbit/s, rtt 20 ms").click()
        page.get_by_role("button", name="seed 2").click()
        page.wait_for_selector('#charts[data-ready$=":0:2"]')
        fits = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert fits, "the page is wider than the window"
        assert page.said == []


@pytest.mark.browser
def test_on_a_narrow_screen_tables_say_that_they_go_on(viewer: StoreServer) -> None:
    with opened(viewer.url, viewport={"width": 360, "height": 900}) as page:
        page.wait_for_selector("#charts[data-ready]")
        page.wait_for_selector("#table.more-right[tabindex]")
        page.locator("#table").evaluate("one => one.scrollTo(one.scrollWidth, 0)")
        page.wait_for_selector("#table.more-left:not(.more-right)")
        assert page.said == []
