"""`jostle measure` with servers that never come to an end, and with signals at any instant."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import hostile_servers
import pytest
from hostile_servers import HTTP, IPERF3, Peer, serving, serving_iperf3
from jostle.cli import status
from jostle.errors import InputError, JostleError
from jostle.measurements.live import available_controllers, http, iperf3, measurement
from jostle.measurements.live.target import target_of
from jostle.measurements.live.time_limits import Limit, pause
from jostle.measurements.live.transfer import Step, TransferResult

SOON_S = hostile_servers.PATIENCE_S - 1
"""Every wait ends before the server does."""


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_ANSWER_S", 0.5)
    monkeypatch.setattr(http, "_CONNECT_S", 0.5)
    monkeypatch.setattr(iperf3, "MARGIN_S", 0.5)
    monkeypatch.setattr(measurement, "IDLE_S", 0.1)


def broken_off(carry_out: Callable[..., TransferResult], target: str, step: Step) -> str:
    """Make a transfer that has to fail, and in time; what the error says."""
    by = "http" if "://" in target else "iperf3"
    began_s = time.monotonic()
    with pytest.raises(JostleError) as failed:
        carry_out(target_of(target, by, None), step, lambda: None)
    assert time.monotonic() - began_s < SOON_S
    return str(failed.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("silent", "did not send a whole header"),
        ("status a byte at a time", "did not send a whole header"),
        ("header a byte at a time", "did not send a whole header"),
        ("endless 100 Continue", "did not send a whole header"),
        ("100 Continue now and then", "did not send a whole header"),
        ("endless headers", "more than 100 headers"),
        ("endless header", "more than 65536 bytes"),
        ("endless chunk extension", "more than 65536 bytes"),
        ("chunk extension a byte at a time", "next to no data"),
        ("chunks of a byte", "next to no data"),
        ("body a byte at a time", "next to no data"),
        ("no body", "next to no data"),
        ("less than Content-Length", "ended the connection after 0"),
    ],
)
def test_a_download_ends_in_time(name: str, said: str) -> None:
    with serving(HTTP[name]) as port:
        assert said in broken_off(
            http.carry_out, f"http://127.0.0.1:{port}/", Step("down", None, 1)
        )


def test_trailers_without_end_are_data_until_the_time_is_over() -> None:
    with serving(HTTP["endless trailers"]) as port:
        target = target_of(f"http://127.0.0.1:{port}/", None, None)
        began_s = time.monotonic()
        carried = http.carry_out(target, Step("down", None, 1), lambda: None)
    assert time.monotonic() - began_s < SOON_S
    assert carried.samples[-1].moved_bytes > 100_000


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing read", "takes too little"),
        ("an upload's answer a byte at a time", "did not send a whole header"),
    ],
)
def test_an_upload_ends_in_time(name: str, said: str) -> None:
    with serving(HTTP[name]) as port:
        assert said in broken_off(http.carry_out, f"http://127.0.0.1:{port}/", Step("up", None, 1))


@pytest.mark.parametrize("name", ["silent", "TLS record a byte at a time"])
def test_a_tls_handshake_ends_in_time(name: str) -> None:
    with serving(HTTP[name]) as port:
        said = broken_off(http.carry_out, f"https://127.0.0.1:{port}/", Step("down", None, 1))
    assert "no web server answers" in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("silent", "did not end within 0.5 s after the transfer's time"),
        ("silent after the cookie", "did not end within 0.5 s after the transfer's time"),
        ("no results", "did not end within 0.5 s after the transfer's time"),
        ("huge results", "Cannot allocate memory"),
        ("verbose results", "prints more than"),
    ],
)
def test_iperf3_ends_in_time(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    iperf3.require()
    if "did not end" not in said:
        # The program's own limits end it first, on a busy machine, too.
        monkeypatch.setattr(iperf3, "MARGIN_S", SOON_S / 2)
    with serving_iperf3(IPERF3[name]) as port:
        # A program whose memory is not limited reads for as long as the server sends.
        assert said in broken_off(iperf3.carry_out, f"127.0.0.1:{port}", Step("up", None, 1))


def test_a_lookup_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: over.wait(SOON_S))
    monkeypatch.setattr("jostle.measurements.live.target._LOOKUP_S", 0.1)
    began_s = time.monotonic()
    with pytest.raises(InputError, match=r"slow: no address is found for this name .*timed out"):
        target_of("slow", None, None)
    assert time.monotonic() - began_s < SOON_S
    over.set()


def test_of_a_name_with_a_thousand_addresses_a_few_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[Any] = []

    def refuse(_socket: socket.socket, address: str, port: int, _limit: Limit) -> None:
        tried.append((address, port))
        raise ConnectionRefusedError

    ends = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"192.0.2.{number % 256}", 80))
        for number in range(1000)
    ]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: ends)
    monkeypatch.setattr("jostle.measurements.live.target.connect", refuse)
    assert target_of("http://many/", None, None).address == "192.0.2.0"
    assert len(tried) == 8


def test_what_a_tick_raises_ends_a_wait() -> None:
    ticks = itertools.count()

    def tick() -> None:
        if next(ticks) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pause(60, tick)


def test_transfers_before_one_that_fails_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = iter((HTTP["endless trailers"], HTTP["silent"]))
    names = ["first", "second"]
    monkeypatch.setattr(measurement, "_steps", lambda *_: [Step("down", name, 1) for name in names])

    def answer(peer: Peer) -> None:
        next(made)(peer)

    with serving(answer) as port:
        words = ["measure", f"http://127.0.0.1:{port}/", "-o", str(tmp_path / "seen")]
        assert status(words) == 1
    said = capsys.readouterr().err
    assert "did not send a whole header within 0.5 s; the transfers before it are kept in" in said
    assert [path.name for path in tmp_path.iterdir()] == ["seen"]
    assert {"down-first.log", "measurement.json"} <= set(os.listdir(tmp_path / "seen"))


SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children")


def children() -> set[str]:
    """The programs that this process has started, and did not wait for."""
    return set(CHILDREN.read_text().split())


@pytest.mark.skipif(not CHILDREN.exists(), reason="this kernel lists no children of a process")
@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize(
    "last",
    [
        "jostle.measurements.live.measurement.target_of",
        "jostle.measurements.live.measurement.PartialFolder.__enter__",
        "jostle.measurements.live.measurement.Pinger.__enter__",
        "jostle.measurements.live.measurement.Pinger.__exit__",
        "subprocess.Popen",
        "jostle.measurements.live.iperf3.Sampler.__enter__",
    ],
)
def test_wherever_a_signal_comes_nothing_is_left(
    last: str, number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes as soon as a function has returned, before its caller goes on."""
    iperf3.require()
    original = resolve_name(last)

    def signalled(*words: Any, **keys: Any) -> Any:
        result = original(*words, **keys)
        signal.raise_signal(number)
        return result

    monkeypatch.setattr(last, signalled)
    # `nohup` ignores it, and so do its children.
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    before = children()
    with serving_iperf3(IPERF3["silent"]) as port:
        words = ["127.0.0.1", "--port", str(port), "-o", str(tmp_path / "seen")]
        assert status(["measure", *words, "--controllers", available_controllers.present()]) == code
    signal.signal(signal.SIGHUP, hangup)
    assert list(tmp_path.iterdir()) == []
    assert children() == before


# Each child of a process that has everything imported gets two signals at a random instant.
RANDOM = """
import os, random, signal, sys, time
from pathlib import Path
from jostle.cli import status
from jostle.measurements.live import available_controllers as controllers, measurement
import jostle.measurements
measurement.IDLE_S = 0.1
signal.alarm(60)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
out, trials, instants = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
targets = sys.argv[4:]
for trial in range(trials):
    child = os.fork()
    if not child:
        own = ["--controllers", controllers.present(), "--duration", "2 s"]
        words = targets[trial % len(targets)].split()
        os._exit(status(["measure", *words, "-o", str(out / "seen"), *own]))
    time.sleep(0.1 + instants.random() * 0.5)
    number = instants.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    began = time.monotonic()
    os.kill(child, number)
    time.sleep(instants.random() * 0.02)
    os.kill(child, number)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 128 + number, code
    assert time.monotonic() - began < 3
    assert list(out.iterdir()) == []
"""


def test_two_signals_at_random_instants_leave_nothing(tmp_path: Path) -> None:
    with serving_iperf3(IPERF3["silent"]) as port, serving(HTTP["body a byte at a time"]) as web:
        targets = [f"127.0.0.1 --port {port}", f"http://127.0.0.1:{web}/"]
        command = [sys.executable, "-c", RANDOM, str(tmp_path), "4", "1", *targets]
        subprocess.run(command, check=True)
        # An iperf3 that was left would still use the port.
        for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                assert f"--port\0{port}".encode() not in cmdline.read_bytes()
