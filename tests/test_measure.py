"""`jostle measure`: what is asked of the kernel and of servers, what is written, and read again."""

from __future__ import annotations

import errno
import itertools
import json
import re
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import jostle
import pytest
from jostle.cli import status
from jostle.errors import InputError
from jostle.inference.network_source import find_network
from jostle.measurements.live import MeasurementRequest, available_controllers
from jostle.measurements.live.measurement import omissions
from jostle.measurements.live.pinger import Pinger, Pings, open_socket
from jostle.measurements.live.sock_diag import Diagnosis
from jostle.measurements.live.target import Target, target_of
from jostle.measurements.live.tcp_info import BYTES, Sample, decoded, line, text_of
from jostle.measurements.live.tcp_info_sampler import Sampler, of_peer, of_socket
from jostle.measurements.ss import of_ss

BLOCK = bytes(1 << 16)

# A `struct tcp_info` as linux/tcp.h lays it out, field by field, on every architecture alike.
INFO = struct.pack(
    "=8B24I4Q6I4Q2I2Q4I",
    *(1, 0, 0, 0, 0, 7, 0x77, 0b11),
    *(240_000, 40_000, 1448, 1440, 12, 3, 2, 1, 0, 4, 0, 4, 4),
    *(1500, 64_000, 52_345, 1_500, 18, 25, 1460, 3, 61_000, 14_480, 9),
    *(2_500_000, 2**64 - 1, 1_448_001, 700),
    *(1_050, 600, 4_096, 40_123, 1, 1_030),
    *(2_400_000, 5_000_000, 0, 0),
    *(1_002, 0),
    *(1_491_440, 13_032),
    *(0, 0, 0, 65_536),
)


def test_tcp_info_is_taken_apart_as_the_kernel_lays_it_out() -> None:
    info = decoded(INFO)
    assert info["state"] == 1
    assert (info["rtt"], info["rttvar"], info["min_rtt"]) == (52_345, 1_500, 40_123)
    assert (info["snd_cwnd"], info["snd_ssthresh"], info["total_retrans"]) == (25, 18, 9)
    assert (info["bytes_acked"], info["bytes_sent"], info["delivered"]) == (
        1_448_001,
        1_491_440,
        1_002,
    )
    assert info["snd_wnd"] == 65_536
    # Linux 4.6 ends behind data_segs_out, in the middle of an answer for newer headers.
    old = decoded(INFO[:160])
    assert old["data_segs_out"] == 1_030
    assert "bytes_sent" not in old
    assert "delivery_rate" not in old


@pytest.mark.parametrize(
    ("by", "directions", "controllers", "said"),
    [
        ("http", (), "available", ["left out: uploads"]),
        ("http", (), "bbr", ["left out: uploads", "left out: --controllers bbr for the download"]),
        ("http", ("down", "up"), "bbr", ["left out: --controllers bbr for the download"]),
        ("http", ("up",), "bbr", []),
        ("iperf3", (), "bbr", []),
    ],
)
def test_directions_and_controllers_that_are_left_out_are_noted(
    by: str, directions: tuple[Any, ...], controllers: str, said: list[str]
) -> None:
    asked = MeasurementRequest("a", by, controllers=controllers, directions=directions)
    found = list(omissions(asked, Target(by, "a", socket.AF_INET, "192.0.2.1", 80)))
    assert [one.startswith(start) for one, start in zip(found, said, strict=True)] == [True] * len(
        said
    )


def test_a_sample_is_written_as_ss_writes_it() -> None:
    told = line(decoded(INFO), "cubic")
    words = told.split()
    assert words[0] == "cubic"
    for word in (
        "rtt:52.345/1.5", "rcv_rtt:61", "mss:1448", "cwnd:25", "ssthresh:18", "unacked:12",
        "lost:2", "retrans:1/9", "minrtt:40.123", "delivered:1002", "app_limited",
        "bytes_retrans:13032",
    ):  # fmt: skip
        assert word in words
    assert "pacing_rate 20000000bps" in told
    old = line(decoded(INFO[:160]), "cubic")
    assert "bytes_acked:1448001" in old
    assert "bytes_sent" not in old


def test_what_was_sampled_is_read_again() -> None:
    first = decoded(INFO)
    grown = {"bytes_acked": 144_800, "bytes_sent": 150_000, "delivered": 105, "data_segs_out": 110}
    later = {**first, **{key: first[key] + more for key, more in grown.items()}}
    later["total_retrans"] += 2
    ends = ("192.0.2.1:40000", "[2001:db8::1]:5201")
    text = "".join(
        text_of(Sample(1_700_000_000 + at, *ends, "cubic", info))
        for at, info in ((0.0, first), (0.5, later))
    )
    log = of_ss(text)
    (flow,) = log.spec["flows"]
    assert flow["name"] == "192.0.2.1:40000 > [2001:db8::1]:5201"
    assert flow["controller"]["name"] == "cubic"
    (told,) = log.flows
    assert told["delivered_bytes"].tolist() == [0, 144_800]
    assert told["sent_packets"].tolist() == [0, 110]
    assert told["retransmitted_packets"].tolist() == [0, 2]
    # Beyond a hole packets come that are not acknowledged in order.
    assert told["received_bytes"].tolist() == [0, 105 * (1448 + 66)]
    assert told["srtt_s"].tolist() == pytest.approx([0.052345] * 2)
    assert told["in_flight_bytes"].tolist() == [(12 - 3 - 2 + 1) * 1448] * 2


def test_only_the_direction_that_carries_data_is_a_flow() -> None:
    first = decoded(INFO)
    later = {**first, "bytes_received": 1_440_700, "data_segs_in": 1_001, "bytes_acked": 1_450_001}
    text = "".join(
        text_of(Sample(1_700_000_000 + at, "192.0.2.1:40000", "192.0.2.2:80", "cubic", info))
        for at, info in ((0.0, first), (1.0, later))
    )
    log = of_ss(text)
    (flow,) = log.spec["flows"]
    assert flow["name"] == "192.0.2.2:80 > 192.0.2.1:40000"
    assert flow["controller"]["name"] == "unknown"
    (told,) = log.flows
    assert told["delivered_bytes"].tolist() == [0, 1_440_000]
    assert told["received_bytes"].tolist() == [0, 1_440_000 + 1_000 * 66]
    assert told["srtt_s"].tolist() == pytest.approx([0.061] * 2)
    assert told["cwnd_bytes"].tolist() == [0, 0]
    assert any("of a flow that is received" in note for note in log.notes)


def log_of_a_run(controller: str, *, received: bool) -> str:
    """What ss would have printed at either end of a simulated download."""
    scenario = {
        "duration": "20 s",
        "sampling_interval": "100 ms",
        "bottleneck": {"rate": "10 Mbit/s", "queue": {"kind": "drop_tail", "limit": "75 kB"}},
        "flows": [{"name": "download", "controller": controller, "rtt": "40 ms"}],
    }
    run = jostle.run(jostle.Scenario.from_dict(scenario), store=False).results[0].run
    rows = run.flows.to_dicts()
    text, packets = "", 0.0
    for row in rows:
        packets += row["throughput_bps"] * 0.1 / 8 / 1514
        whole = round(packets)
        rtt_ms = (row["srtt_s"] or 0.04) * 1e3
        if received:
            seen = f"rcv_rtt:{rtt_ms:.3f} bytes_received:{whole * 1448} data_segs_in:{whole}"
        else:
            flight = round(row["in_flight_bytes"] / 1514)
            seen = f"bytes_acked:{whole * 1448} delivered:{whole} unacked:{flight}"
        ends = "192.0.2.1:40000 192.0.2.2:80"
        text += f"{1_700_000_000 + row['time_s']:.6f}\nESTAB 0 0 {ends}\n"
        text += f"\t cubic rtt:{rtt_ms:.3f}/1 mss:1448 rcvmss:1448 cwnd:10 minrtt:41.2 {seen}\n"
    return text


@pytest.mark.parametrize("received", [False, True], ids=["sender", "receiver"])
@pytest.mark.parametrize("controller", ["reno", "cubic", "bbr"])
def test_a_log_names_the_controller_and_the_network(
    controller: str, received: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "seen.log"
    file.write_text(log_of_a_run(controller, received=received))
    words = ["--candidates", "reno,cubic,bbr,vegas,westwood", "--repeats", "2", "--json"]
    assert status(["identify", str(file), *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ranking"][0]["controller"] == controller
    # Names of connections are none of flows.
    assert ">" in told["flow"]
    network = find_network(str(file), tmp_path)
    assert network.numbers["rate"] == pytest.approx(10e6, rel=0.01)
    assert network.numbers["rtt"] == pytest.approx(0.04, rel=0.05)


@pytest.fixture
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        with client, accepted:
            yield client, accepted


def test_a_connection_of_this_process_is_sampled(connected: Any) -> None:
    client, accepted = connected
    with Sampler(of_socket(client)) as sampler:
        for _ in range(20):
            client.sendall(BLOCK)
            while len(accepted.recv(1 << 20)) == 1 << 20:
                pass
            threading.Event().wait(0.01)
    samples = sampler.largest()
    assert len(samples) >= 5
    assert samples[-1].info["bytes_acked"] > 10 * len(BLOCK)
    assert samples[0].local == "{}:{}".format(*client.getsockname())
    assert all(one.at_s < two.at_s for one, two in itertools.pairwise(samples))


def test_the_kernel_tells_of_connections_of_others(connected: Any) -> None:
    client, accepted = connected
    host, port = client.getpeername()
    try:
        diagnosis = Diagnosis()
    except OSError:
        pytest.skip("this sandbox has no sock_diag")
    with closing(diagnosis):
        (found,) = diagnosis.to(socket.AF_INET, host, port)
        assert found.ends() == ("{}:{}".format(*client.getsockname()), f"{host}:{port}")
        client.sendall(b"x" * 1000)
        accepted.recv(1000)
        seen = diagnosis.look(found)
        assert seen is not None
        info, controller = seen
        own = decoded(client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES))
        same = ("state", "snd_mss", "bytes_sent", "segs_out", "data_segs_out", "pmtu")
        assert {key: info[key] for key in same} == {key: own[key] for key in same}
        assert info["bytes_sent"] == 1000
        assert controller == available_controllers.present()
        # What was there before is not what is measured.
        assert list(of_peer(diagnosis, socket.AF_INET, host, port)()) == []
        assert diagnosis.to(socket.AF_INET, "127.0.0.2", port) == []


def test_pings_are_written_as_ping_writes_them(tmp_path: Path) -> None:
    sent = tuple(1_700_000_000 + 0.1 * at for at in range(50))
    rtt = {at: 0.04 + 0.001 * (at % 5) for at in range(50) if at != 7}
    pings = Pings("192.0.2.1", sent, rtt)
    assert pings.lost == 1
    assert pings.quantile_s(0.5) == pytest.approx(0.042)
    assert Pings("192.0.2.1", sent, {1: 0.04, 40: 0.2}).quantile_s(0.5, sent[20]) == 0.2
    assert Pings("192.0.2.1", sent, {}).quantile_s(0.5) is None
    pings.write(tmp_path / "ping.log")
    (flow,) = jostle.analyze(tmp_path / "ping.log").results[0].run.summary["flows"]
    overall = flow["phases"]["overall"]
    assert flow["name"] == "ping 192.0.2.1"
    assert overall["rtt_p50_s"] == pytest.approx(0.042, rel=0.01)


def can_ping() -> bool:
    try:
        open_socket(socket.AF_INET).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not can_ping(), reason="pings are for root alone here")
def test_this_host_answers_pings() -> None:
    with Pinger(socket.AF_INET, "127.0.0.1") as pinger:
        threading.Event().wait(0.35)
    pings = pinger.pings()
    assert 3 <= len(pings.sent_s) <= 5
    assert pings.lost == 0
    assert all(0 <= rtt < 0.1 for rtt in pings.rtt_s.values())


class Web(BaseHTTPRequestHandler):
    """Gives `/file`, again and again, and takes what is sent to `/take`."""

    protocol_version = "HTTP/1.1"
    taken: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        large, tiny = 4_000_000, 100
        sizes = {"/file": large, "/once": large, "/tiny": tiny, "/slow": tiny, "/empty": 0}
        size = sizes.get(self.path)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "https://example.net/file")
            size = 0
        else:
            self.send_response(404 if size is None else 200)
        self.send_header("Content-Length", str(size or 0))
        if self.path in ("/once", "/tiny", "/slow"):
            self.send_header("Connection", "close")
        self.end_headers()
        for _ in range((size or 0) // len(BLOCK)):
            self.wfile.write(BLOCK)
        if self.path in ("/once", "/slow"):
            time.sleep(0.2)
        self.wfile.write(bytes((size or 0) % len(BLOCK)))

    def do_POST(self) -> None:
        if self.path != "/take":
            self.send_error(405)
            return
        assert self.headers["Transfer-Encoding"] == "chunked"
        total = 0
        while size := int(self.rfile.readline(), 16):
            total += len(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        self.taken.append(total)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_an_address_of_ipv6_is_written_as_in_a_url() -> None:
    assert target_of("http://[::1]:8080/big", None, None).label == "http://[::1]:8080/big"
    assert target_of("http://[::1]/big?x=1", None, None).address == "::1"


def test_of_a_name_the_address_that_answers_is_taken(
    web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(web.rpartition(":")[2])
    ends = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
    ]
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        "socket.getaddrinfo",
        lambda host, *words, **how: ends if host == "twice" else resolve(host, *words, **how),
    )
    assert target_of(f"http://twice:{port}/file", None, None).address == "127.0.0.1"
    assert target_of("twice", None, port).address == "::1"


@pytest.fixture
def secure_web(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server whose certificate nobody knows, and the file of that."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key)]
    command += ["-out", str(certificate), "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run(command, capture_output=True, check=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}", certificate
    server.shutdown()
    server.server_close()


def test_a_certificate_is_looked_at(
    secure_web: tuple[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, certificate = secure_web
    words = ["measure", f"{url}/file", "--duration", "2 s", "--json"]
    assert status([*words, "-o", str(tmp_path / "refused")]) == 2
    assert "its certificate is not trusted here" in capsys.readouterr().err
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert status([*words, "-o", str(tmp_path / "seen")]) == 0
    (transfer,) = json.loads(capsys.readouterr().out)["transfers"]
    assert transfer["measured"]["goodput_bps"] > 1e6


def test_a_web_server_is_measured(
    web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "seen"
    words = ["--duration", "2 s", "-o", str(out), "--controllers", available_controllers.present()]
    assert status(["measure", f"{web}/file", *words, "--json"]) == 0
    said = capsys.readouterr()
    manifest = json.loads(said.out)
    answer = manifest.pop("answer")
    assert re.match(
        r"down: [\d.]+ Mbit/s(, median ping [\d.]+ ms instead of [\d.]+ ms at rest)?;", answer
    )
    assert manifest == json.loads((out / "measurement.json").read_text())
    assert manifest["format"] == "jostle.measurement/1"
    assert manifest["with"] == "http"
    (transfer,) = manifest["transfers"]
    assert (transfer["name"], transfer["controller"]) == ("down", None)
    assert transfer["measured"]["goodput_bps"] > 1e6
    assert {path.name for path in out.iterdir()} >= {"measurement.json", "down.log"}
    assert [path.name for path in tmp_path.iterdir()] == ["seen"]
    assert f"written: {out}" in said.err
    results = jostle.analyze(out)
    assert results.conditions[0] in ({}, {"capture": "down.log"})
    (flow,) = results.results[0].run.summary["flows"]
    assert flow["phases"]["overall"]["goodput_bps"] == transfer["measured"]["goodput_bps"]


@pytest.mark.slow
def test_an_upload_has_the_controller_that_was_asked_for(
    web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = available_controllers.chosen("available").used[:2]
    out = tmp_path / "seen"
    words = ["--duration", "2 s", "-o", str(out), "--controllers", ",".join(names)]
    Web.taken.clear()
    assert status(["measure", f"{web}/take", "--direction", "up", *words]) == 0
    shown = capsys.readouterr().out
    assert len(Web.taken) == len(names)
    for name, total in zip(names, Web.taken, strict=True):
        assert f"up-{name}" in shown
        (result,) = jostle.analyze(out / f"up-{name}.log").results
        (flow,) = result.run.summary["flows"]
        assert flow["controller"] == name
        assert result.run.spec["flows"][0]["controller"]["name"] == name
        # From the first sample to the last; headers of chunks are sent, too.
        seconds = result.run.spec["duration_ns"] / 1e9
        delivered = flow["phases"]["overall"]["goodput_bps"] * seconds / 8
        assert delivered == pytest.approx(total, rel=0.1)


def test_a_server_that_closes_after_the_file_is_measured_up_to_there(
    web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "seen"
    words = ["--duration", "2 s", "-o", str(out), "--controllers", available_controllers.present()]
    assert status(["measure", f"{web}/once", *words, "--json"]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert any("the server ended the connection after 0." in note for note in manifest["notes"])
    (transfer,) = manifest["transfers"]
    assert transfer["measured"]["goodput_bps"] > 1e6


def test_pings_that_have_no_way_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unreachable(socket.socket):
        def connect(self, _: object) -> None:
            raise OSError(errno.ENETUNREACH, "Network is unreachable")

    monkeypatch.setattr(
        "jostle.measurements.live.pinger.open_socket",
        lambda family: Unreachable(family, socket.SOCK_DGRAM),
    )
    monkeypatch.setattr("jostle.measurements.live.pinger.PATIENCE_S", 0.1)
    with Pinger(socket.AF_INET, "192.0.2.1") as pinger:
        threading.Event().wait(0.05)
    assert pinger.pings().lost >= 1


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and no time at rest."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jostle.measurements.live.measurement.IDLE_S", 0.2)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{web}/missing"], "answers 404"),
        (["{web}/moved"], "is at https://example.net/file: give that URL"),
        (["{web}/empty"], "is empty"),
        (["{web}/tiny"], "too soon to be measured: give the URL of a large file"),
        (["{web}/slow"], "too soon to be measured: give the URL of a large file"),
        (["{web}/file", "--direction", "up"], "POST"),
        (["{web}/file", "--controllers", "nobody"], "the kernel has no controller `nobody`"),
        (["{web}/file", "--controllers", ","], "empty"),
        (["{web}/file", "-o", "{there}"], "is there already"),
        (["{web}/file", "--tool", "iperf3"], "is a URL"),
        (["http://127.0.0.1:{port}/file"], "no web server answers"),
        (["ftp://127.0.0.1/file"], "a URL of http or https"),
        (["http:///file"], "no host"),
        (["http://me:secret@127.0.0.1/file"], "error: 127.0.0.1: a user's name and password"),
        (["{web}/missing?key=secret"], "/missing?…: the server answers 404"),
        (["{web}/missing", "-o", "new/folders/seen"], "answers 404"),
        (["127.0.0.1:99999", "--tool", "http"], "127.0.0.1:99999"),
        (["name.invalid", "--tool", "http"], "no address is found"),
    ],
)
def test_what_is_wrong_is_told(
    words: list[str], said: str, web: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"web": web, "there": str(here), "port": free_port()}
    given = [word.format(**names) for word in words]
    own = [] if "--controllers" in words else ["--controllers", available_controllers.present()]
    assert status(["measure", *given, *own, "--duration", "2 s"]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "secret" not in told
    assert list(here.iterdir()) == []


def test_without_iperf3_it_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert status(["measure", "127.0.0.1", "-o", str(tmp_path / "seen")]) == 2
    assert "apt-get install iperf3" in capsys.readouterr().err


def test_who_may_not_set_a_controller_is_told_how_to_allow_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = {"tcp_allowed_congestion_control": ("reno",)}
    monkeypatch.setattr(
        available_controllers, "listed", lambda name: names.get(name, ("reno", "bbr"))
    )
    said = available_controllers._said("bbr", errno.EPERM)
    assert 'sysctl net.ipv4.tcp_allowed_congestion_control="reno bbr"' in said
    assert "modprobe tcp_vegas" in available_controllers._said("vegas", errno.ENOENT)
    refused = {"bbr": "no"}
    monkeypatch.setattr(available_controllers, "refusal", refused.get)
    found = available_controllers.chosen("available")
    assert (found.used, found.left_out) == (("reno",), {"bbr": "no"})
    with pytest.raises(InputError, match="--controllers: no"):
        available_controllers.chosen("reno, bbr")


@pytest.mark.parametrize(
    ("given", "by", "port", "expected"),
    [
        ("127.0.0.1", None, None, ("iperf3", "127.0.0.1", 5201, False, "/")),
        ("127.0.0.1:5000", None, None, ("iperf3", "127.0.0.1", 5000, False, "/")),
        ("127.0.0.1:5000", None, 6000, ("iperf3", "127.0.0.1", 6000, False, "/")),
        ("::1", None, None, ("iperf3", "::1", 5201, False, "/")),
        ("[::1]:80", "http", None, ("http", "::1", 80, False, "/")),
        ("https://127.0.0.1/a?b=c", None, None, ("http", "127.0.0.1", 443, True, "/a?b=c")),
        ("http://[::1]:8080", None, None, ("http", "::1", 8080, False, "/")),
    ],
)
def test_hosts_are_read(given: str, by: str | None, port: int | None, expected: Any) -> None:
    found = target_of(given, by, port)
    assert (found.by, found.address, found.port, found.secure, found.path) == expected


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"transfers": [{"data": "../secret.log", "pings": None}]}, "there is no file"),
        ({"transfers": [{"data": "missing.log", "pings": None}]}, "there is no file"),
        ({"transfers": [{}]}, "not what `jostle measure` writes"),
        ({"format": "jostle.measurement/99"}, "jostle.measurement/1 is read"),
        ({"transfers": 3}, "not what `jostle measure` writes"),
    ],
)
def test_a_manifest_of_somebody_else_names_files_of_its_folder_alone(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    (tmp_path / "secret.log").write_text("")
    folder = tmp_path / "seen"
    folder.mkdir()
    document = {"format": "jostle.measurement/1", "idle": None, "transfers": [], **change}
    (folder / "measurement.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=said):
        jostle.analyze(folder)
