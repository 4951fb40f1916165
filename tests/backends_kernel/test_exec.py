"""Commands on hosts of a network: what they see, how they end, and that they repeat exactly."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree as Xml

import pcapng
import pytest
from jostle import cli
from jostle.backends.kernel import quic_programs
from jostle.kernel_images import Image
from jostle.programs.execution import Options, execute
from jostle.programs.network_file import Command, load
from jostle.programs.outcome import Outcome
from jostle.quic import find_program
from jostle.safe_io.code_consent import ConsentError

NETWORK = """title = "A satellite link"
rtt = "600 ms"
[bottleneck]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
"""
THREE_HOSTS = """seed = 5
[[links]]
name = "down"
rate = { mean = "20 Mbit/s", deviation = "5 Mbit/s", correlation = "1 s" }
delay = "20 ms"
jitter = { quantiles = [["0 %", "0 ms"], ["100 %", "5 ms"]], correlation = "100 ms" }
loss = "3 %"
queue = { kind = "fq_codel" }
[[links]]
name = "wifi"
rate = "50 Mbit/s"
delay = "2 ms"
queue = { kind = "drop_tail", limit = "200 packets" }
[[reverse]]
name = "up"
rate = "5 Mbit/s"
delay = "20 ms"
queue = { kind = "cake" }
[[hosts]]
name = "server"
controller = "bbr"
[[hosts]]
name = "phone"
down = ["down", "wifi"]
up = ["up"]
[[hosts]]
name = "laptop"
down = ["down"]
up = ["up"]
"""
# A server and clients whose behaviour depends on random numbers, hash order and timers.
CHAT = """import asyncio, os, random, sys
async def answer(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(random.random() / 100)
        writer.write(line.strip() + os.urandom(8).hex().encode() + str(hash("x")).encode() + b"\\n")
        await writer.drain()
    writer.close()
async def ask(number):
    reader, writer = await asyncio.open_connection("server", 7000)
    for _ in range(3):
        writer.write(f"hello {number}\\n".encode())
        print(await reader.readline())
        await asyncio.sleep(random.random())
    writer.close()
async def main():
    if sys.argv[1] == "serve":
        await (await asyncio.start_server(answer, "0.0.0.0", 7000)).serve_forever()
    await asyncio.gather(*map(ask, range(4)))
asyncio.run(main())
"""
PYTHON = f"{sys.executable} -S"


def needs(program: str) -> pytest.MarkDecorator:
    missing = shutil.which(program) is None
    return pytest.mark.skipif(missing, reason=f"{program} is not installed")


Run = Callable[..., Outcome]


@pytest.fixture
def run(kernel: Image, tmp_path: Path) -> Run:
    """Run typed commands, and keep what they leave in a folder."""

    def start(
        clients: Sequence[tuple[str, str]],
        servers: Sequence[tuple[str, str]] = (),
        *,
        text: str = NETWORK,
        keep: str | None = None,
        seed: int | None = None,
        **options: float,
    ) -> Outcome:
        (tmp_path / "network.toml").write_text(
            text if seed is None else f"seed = {seed}\n{text}", "utf-8"
        )
        network = load(tmp_path / "network.toml").with_commands(
            [*(Command(host, text, is_server=True) for host, text in servers)]
            + [Command(host, text) for host, text in clients]
        )
        kept = None if keep is None else tmp_path / keep
        if kept is not None:
            kept.mkdir()
        folder = tmp_path / "current"
        folder.mkdir(exist_ok=True)
        return execute(
            network, kernel, Options(folder=folder, keep=kept, whole_packets=True, **options)
        )

    return start


def same(tmp_path: Path, hosts: Sequence[str], first: str, second: str) -> bool:
    """Whether the captures of two runs are equal, byte for byte."""
    pairs = [
        [(tmp_path / folder / f"{host}.pcapng").read_bytes() for folder in (first, second)]
        for host in hosts
    ]
    assert all(len(one) > 1000 for one, _ in pairs)
    return all(one == two for one, two in pairs)


def test_a_python_server_and_its_clients_twice(run, tmp_path):
    (tmp_path / "current").mkdir()
    (tmp_path / "current" / "chat.py").write_text(CHAT, "utf-8")
    servers, clients = [("server", f"{PYTHON} chat.py serve")], [("client", f"{PYTHON} chat.py go")]
    first = run(clients, servers, keep="first")
    assert first.ok, first.commands
    assert 1.8 < first.virtual_s < 10
    run(clients, servers, keep="second")
    hosts = ("server", "client")
    assert same(tmp_path, hosts, "first", "second")
    outputs = [
        (tmp_path / one / "client" / "stdout.txt").read_bytes() for one in ("first", "second")
    ]
    assert outputs[0] == outputs[1]
    # Another seed gives other random numbers to the programs.
    run(clients, servers, keep="third", seed=2)
    assert not same(tmp_path, hosts, "first", "third")
    # Four connections, seen from both ends, and the handshake takes the RTT of the file.
    assert len(first.measured.to_dict()["conditions"][0]["runs"][0]["flows"]) >= 4


def test_what_a_command_sees_and_what_remains(run, tmp_path):
    (tmp_path / "current").mkdir()
    (tmp_path / "current" / "input.txt").write_text("mine\n", "utf-8")
    program = (
        "import os, socket, time; print(open('input.txt').read(), end='');"
        "print(socket.gethostbyname('server'), end=' ');"
        "print(os.environ['JOSTLE_PEER'], os.environ['JOSTLE_ADDRESS']);"
        "start = time.monotonic(); time.sleep(100); print(round(time.monotonic() - start));"
        "open('made.txt', 'w').write('new');"
        "open(os.path.join(os.environ['TMPDIR'], 'gone'), 'w')\n"
        "for place in ('/etc/passwd', 'input.txt', '/tmp/jostle-test'):\n"
        "    try: open(place, 'a')\n"
        "    except OSError as error: print(error.strerror)\n"
        "caps = [line.split()[1] for line in open('/proc/self/status') if line.startswith('Cap')]\n"
        "print(set(caps), sorted(os.listdir('/run/jostle')))\n"
    )
    (tmp_path / "current" / "look.py").write_text(program, "utf-8")
    done = run([("client", f"{PYTHON} look.py")], keep="out")
    assert done.ok, done.commands
    (command,) = done.commands
    assert command.stdout.splitlines() == [
        "mine", "10.3.0.1 10.3.0.1 10.3.0.2", "100", *["Read-only file system"] * 3,
        "{'0000000000000000'} ['client']",
    ]  # fmt: skip
    assert done.wall_s < 60
    kept = tmp_path / "out" / "client"
    assert (kept / "files" / "made.txt").read_text() == "new"
    assert os.listdir(kept / "files") == ["made.txt"]
    assert (tmp_path / "current" / "input.txt").read_text() == "mine\n"
    assert not list(tmp_path.rglob("gone"))


def test_links_delay_and_drop_as_the_file_says(run):
    program = (
        f'{PYTHON} -c "import socket, time; s = time.monotonic();'
        "socket.create_connection(('server', 80)); print(time.monotonic() - s)\""
    )
    servers = [("server", f"{PYTHON} -m http.server 80")]
    done = run([("client", program)], servers)
    assert done.ok, done.commands
    # SYN and SYN-ACK at 20 Mbit/s: 74 B each. A program that reads the clock takes some µs.
    rtt_s = 0.6 + 2 * 74 * 8 / 20e6
    assert rtt_s <= float(done.commands[-1].stdout) < rtt_s + 1e-4
    down, up = done.links
    assert (down.name, up.name) == ("bottleneck", "reverse")
    assert down.packets >= 2
    assert (down.drops, down.lost) == (0, 0)


def test_three_hosts_over_random_links_twice(run, tmp_path):
    (tmp_path / "current").mkdir()
    (tmp_path / "current" / "data").write_bytes(b"x" * 200_000)
    fetch = (
        f'{PYTHON} -c "import urllib.request as u;'
        "print(len(u.urlopen('http://server/data').read()))\""
    )
    clients, servers = (
        [("phone", fetch), ("laptop", fetch)],
        [("server", f"{PYTHON} -m http.server 80")],
    )
    for keep in ("first", "second"):
        done = run(clients, servers, text=THREE_HOSTS, keep=keep)
        assert [command.stdout for command in done.commands[1:]] == ["200000\n"] * 2, done.commands
        down, wifi, up = done.links
        assert down.packets > wifi.packets > 130
        assert down.lost > 0
        assert up.packets > 50
    assert same(tmp_path, ("server", "phone", "laptop"), "first", "second")


def test_a_command_that_fails_and_one_that_is_missing(run):
    done = run([("client", "echo no >&2; exit 3"), ("server", "no-such-program")])
    assert not done.ok
    failed, missing = done.commands
    assert (failed.status, failed.stderr) == (3, "no\n")
    assert missing.status == 127
    assert "no such program" in missing.hint


def test_a_server_that_does_not_listen(run):
    crashed = run([("client", "true")], [("server", "exit 4")])
    assert crashed.commands[0].words == "ended with status 4 before it listened at a port"
    assert crashed.commands[1].words == "was not started"
    deaf = run([("client", "true")], [("server", "sleep 1000")])
    assert deaf.commands[0].words == "did not listen at a port within 10 s"


def test_the_limit_of_virtual_time(run):
    done = run([("client", "sleep 100000; echo late")], text='duration = "200 s"\n' + NETWORK)
    assert done.limit == "virtual time"
    assert done.virtual_s == pytest.approx(200)
    assert done.wall_s < 60
    assert done.commands[0].words == "was still running"


def test_the_limit_of_wall_time_says_that_time_stood_still(run, tmp_path):
    busy = "echo before; while :; do :; done"
    done = run([("client", busy)], keep="out", wall_limit_s=8)
    assert done.limit == "wall time"
    (note,) = done.notes
    assert "stood still" in note
    assert "without sleeping" in note
    assert (tmp_path / "out" / "client" / "stdout.txt").read_text() == "before\n"


def test_a_program_of_the_file_that_was_not_admitted_does_not_run(kernel, tmp_path):
    path = tmp_path / "network.toml"
    path.write_text(NETWORK + '[[commands]]\nhost = "client"\nrun = "never-admitted"\n', "utf-8")
    with pytest.raises(ConsentError, match="`never-admitted` on client"):
        execute(load(path), kernel)


def test_the_command_line(kernel, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.toml").write_text(
        NETWORK + '[[commands]]\nhost = "client"\nrun = "echo $JOSTLE_ADDRESS; date +%F"\n', "utf-8"
    )
    words = ["exec", "net.toml", "--allow-code", "--date", "2026-11-28"]
    assert cli.status([*words, "-o", "out/", "-o", "out/result.xml", "-o", "out/result.json"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(
        "`echo $JOSTLE_ADDRESS; date +%F` on client ended with status 0 after 0."
    )
    assert "  2026-11-28" in said
    assert said[-1] == "written: out"
    document = json.loads((tmp_path / "out" / "result.json").read_text())
    assert document["commands"][0]["stdout"] == "10.3.0.2\n2026-11-28\n"
    assert Xml.parse(tmp_path / "out" / "result.xml").find("testsuite").get("failures") == "0"
    # Typed commands need no consent, and replace those of the file.
    assert cli.status(["exec", "net.toml", "--on", "client", "exit 9", "--json"]) == 1
    streams = capsys.readouterr()
    assert [one["status"] for one in json.loads(streams.out)["commands"]] == [9]
    assert "the commands of the file do not run" in streams.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--serve", "server", "x"], "every command is a server"),
        ([], "there is no command"),
        (["--on", "clint", "x"], 'did you mean "client"'),
        (["--on", "client", "x", "--memory", "1 MB"], "--memory 1 MB: give from 270 MB"),
        (["--on", "client", "x", "--date", "today"], "--date today: write a date"),
        (["--on", "client", "x", "--backend", "sim"], "--backend sim: commands run in a virtual"),
        (["--on", "client", "x", "-o", "a/", "-o", "b/"], "-o b/: give one folder"),
    ],
)
@pytest.mark.usefixtures("kernel")
def test_a_bad_command_line(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.toml").write_text(NETWORK, "utf-8")
    assert cli.status(["exec", "net.toml", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
@needs("curl")
def test_curl_twice(run, tmp_path):
    (tmp_path / "current").mkdir()
    (tmp_path / "current" / "page").write_bytes(os.urandom(3_000_000))
    servers = [("server", f"{PYTHON} -m http.server 80")]
    clients = [("client", "curl -sS -o got http://server/page && cmp got page")]
    for keep in ("first", "second"):
        done = run(clients, servers, keep=keep)
        assert done.ok, done.commands
        assert 3 < done.virtual_s < 10
    assert same(tmp_path, ("server", "client"), "first", "second")


@pytest.mark.slow
@needs("iperf3")
def test_iperf3_twice(run, tmp_path):
    clients, servers = [("client", "iperf3 -c server -R -t 20 --json")], [("server", "iperf3 -s")]
    for keep in ("first", "second"):
        done = run(clients, servers, keep=keep)
        assert done.ok, done.commands
    assert same(tmp_path, ("server", "client"), "first", "second")
    report = json.loads((tmp_path / "first" / "client" / "stdout.txt").read_text())
    assert 10e6 < report["end"]["sum_received"]["bits_per_second"] < 19.2e6


GO, RUST = find_program("quic-go", "jostle-quic-go"), find_program("tquic", "tquic_server")


def _quic_commands(name: str) -> tuple[str, str]:
    certificate, key = (
        quic_programs._CERTIFICATES / file for file in ("certificate.pem", "key.pem")
    )
    if name == "quic-go":
        return (
            f"{GO} server --listen server:4433 --certificate {certificate} --key {key} --www www "
            "--qlog .",
            f"mkdir d && {GO} client --server server:4433 --certificate {certificate} "
            "--downloads d && cmp d/data www/data",
        )
    return (
        f"{RUST} --listen 0.0.0.0:4433 --cert {certificate} --key {key} --root www",
        f"mkdir d && {Path(RUST).with_name('tquic_client')} --connect-to $JOSTLE_PEER:4433 "
        "--dump-dir d https://server/data && cmp d/data www/data",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("quic-go", marks=pytest.mark.skipif(GO is None, reason="no quic-go")),
        pytest.param("tquic", marks=pytest.mark.skipif(RUST is None, reason="no tquic")),
    ],
)
def test_a_quic_program_twice(run, tmp_path, name):
    (tmp_path / "current" / "www").mkdir(parents=True)
    (tmp_path / "current" / "www" / "data").write_bytes(os.urandom(2_000_000))
    server, client = _quic_commands(name)
    for keep in ("first", "second"):
        done = run([("client", client)], [("server", server)], keep=keep)
        assert done.ok, done.commands
    assert same(tmp_path, ("server", "client"), "first", "second")


def test_wireshark_reads_a_capture(run, tmp_path):
    capture = "client.pcapng"
    fetch = f"{PYTHON} -c \"import urllib.request as u; u.urlopen('http://server/').read()\""
    done = run([("client", fetch)], [("server", f"{PYTHON} -m http.server 80")], keep="out")
    assert done.ok, done.commands
    blocks = pcapng.blocks_of((tmp_path / "out" / capture).read_bytes())
    assert sum(kind == 6 for kind, _ in blocks) > 8
    if shutil.which("tshark") is not None:
        said = subprocess.run(
            ["tshark", "-r", str(tmp_path / "out" / capture), "-Y", "http.request"],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        assert "GET / HTTP/1.1" in said


def test_outputs_that_do_not_fit_on_the_disk_are_named(run, kernel, tmp_path, small_disk, capsys):
    assert run([("client", "echo first > kept")], keep="small/out").unwritten == ""
    (tmp_path / "network.toml").write_text(NETWORK)
    command = "head -c 1000000 /dev/zero > large; echo hello"
    words = ["exec", str(tmp_path / "network.toml"), "--on", "client", command]
    assert cli.status([*words, "-o", f"{small_disk}/out/"]) == 2
    told = capsys.readouterr()
    assert "hello" in told.out
    assert "written:" not in told.out
    reason = "No space left on device"
    assert f"error: cannot write the outputs to {small_disk}/out: {reason}\n" == told.err
    # The earlier outputs are still there, and nothing else.
    names = {"client", "client.pcapng", "server", "server.pcapng"}
    assert {path.name for path in (small_disk / "out").iterdir()} == names
    assert (small_disk / "out" / "client" / "files" / "kept").read_text() == "first\n"
