"""`jostle measure` over an emulated link that it knows nothing of: what was emulated is found."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jostle
import pytest
from jostle.backends import SimBackend, load_engine
from jostle.cli import status
from jostle.inference.fit import Experiment, fit
from jostle.inference.free_keys import free_keys
from jostle.inference.network_source import find_network
from jostle.runner.executors import local
from jostle.runner.session import Session
from test_emulate_live import JOSTLE, can_emulate, command

pytestmark = [
    pytest.mark.skipif(not can_emulate(), reason="needs root, namespaces and TUN devices"),
    pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed"),
]

LINK = """\
seed = 1
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "drop_tail", limit = "75 kB" }
[reverse]
rate = "5 Mbit/s"
delay = "20 ms"
queue = { kind = "drop_tail", limit = "50 kB" }
"""
LINKS = {"down": (10e6, 75e3), "up": (5e6, 50e3)}
SECONDS = 16


def measured(folder: Path, *words: str) -> dict[str, Any]:
    """Measure the far end of the link, where iperf3 serves."""
    # A busy machine makes the emulation late, and the result no worse than any real network's.
    emulating = command(folder, LINK, "--peer", "iperf3 -s", "--max-delay-error", "1 s")
    measuring = [
        *JOSTLE,
        "measure",
        "$JOSTLE_PEER",
        "-o",
        str(folder / "seen"),
        *words,
        "--json",
    ]
    line = " ".join(word if word.startswith("$") else shlex.quote(word) for word in measuring)
    done = subprocess.run(
        [*emulating, "--", "sh", "-c", line],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.slow
def test_what_was_emulated_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = measured(tmp_path, "--duration", f"{SECONDS} s", "--controllers", "reno")
    assert manifest["idle"]["rtt_p50_s"] == pytest.approx(0.0405, abs=0.002)
    assert [one["name"] for one in manifest["transfers"]] == ["down-reno", "up-reno"]
    for one in manifest["transfers"]:
        rate_bps, limit_bytes = LINKS[one["direction"]]
        assert one["measured"]["goodput_bps"] == pytest.approx(0.93 * rate_bps, rel=0.06)
        assert one["measured"]["rtt_min_s"] == pytest.approx(0.041, abs=0.003)
        # Half of the queue or more is full of Reno all the time.
        waited_s = one["pings"]["rtt_p50_s"] - manifest["idle"]["rtt_p50_s"]
        assert waited_s > 0.3 * limit_bytes * 8 / rate_bps
        file = tmp_path / "seen" / f"{one['name']}.log"
        network = find_network(str(file), tmp_path)
        # On an idle machine within 1, 1 and 5 %; one with other work makes packets late.
        assert network.numbers["rate"] == pytest.approx(rate_bps, rel=0.05)
        assert network.numbers["rtt"] == pytest.approx(0.04, rel=0.08)
        assert network.numbers["limit"] == pytest.approx(limit_bytes, rel=0.25)
        assert status(["identify", str(file), "--repeats", "2", "--json"]) == 0
        ranking = json.loads(capsys.readouterr().out)["ranking"]
        assert {"reno", "lp"} & {each["controller"] for each in ranking[:2]}
    _fits(tmp_path / "seen" / "up-reno.log")
    found = jostle.analyze(tmp_path / "seen")
    files = [condition["capture"] for condition in found.conditions]
    assert files == [
        "down-reno.log", "up-reno.log", "idle.ping.log", "down-reno.ping.log", "up-reno.ping.log"
    ]  # fmt: skip


def _fits(file: Path) -> None:
    """See that a fit finds the rate and the queue of the way up, from half and twice of them."""
    guess = {
        "duration": f"{SECONDS} s",
        "bottleneck": {"rate": "8 Mbit/s", "queue": {"kind": "drop_tail", "limit": "90 kB"}},
        "flows": [{"name": "upload", "controller": "reno", "rtt": "40.5 ms"}],
    }
    scenario = jostle.Scenario.from_dict(guess)
    run = jostle.analyze(file).results[0].run
    words = ["bottleneck.rate=3..12 Mbit/s", "bottleneck.queue.limit=25..120 kB"]
    executor = local(1)
    try:
        session = Session(SimBackend(load_engine()), executor, None)
        keys = free_keys(scenario.document, words)
        found = fit(scenario, [Experiment(0, run)], keys, session, budget=40, replicates=6)
    finally:
        executor.shutdown()
    rate, limit = (one.value for one in found.parameters)
    assert rate == pytest.approx(5, rel=0.05)
    assert limit == pytest.approx(50, rel=0.2)


@pytest.mark.slow
def test_packets_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    words = ("--duration", "4 s", "--controllers", "reno", "--direction", "up", "--capture")
    (one,) = measured(tmp_path, *words)["transfers"]
    assert one["data"] == "up-reno.pcap"
    file = tmp_path / "seen" / "up-reno.pcap"
    flows = jostle.analyze(file).results[0].run.summary["flows"]
    largest = max(flows, key=lambda flow: flow["phases"]["overall"]["goodput_bps"] or 0)
    seen = largest["phases"]["overall"]
    # The log begins with its first sample, and ends before the last bytes are acknowledged.
    assert seen["goodput_bps"] == pytest.approx(one["measured"]["goodput_bps"], rel=0.1)
    assert seen["rtt_min_s"] == pytest.approx(one["measured"]["rtt_min_s"], rel=0.02)


SERVER = """\
import http.server, socket, ssl

class Files(http.server.SimpleHTTPRequestHandler):
    def copyfile(self, source, target):
        try:
            super().copyfile(source, target)
        except OSError:
            self.close_connection = True

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

server = Server(("::", 8443), Files)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("certificate.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@pytest.mark.slow
def test_a_web_server_is_measured_over_ipv6_and_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    peer = "fd4a:6f73:746c::1"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem"]
    words += ["-out", "certificate.pem", "-days", "2", "-subj", "/CN=far"]
    words += ["-addext", f"subjectAltName=IP:{peer}"]
    subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    (tmp_path / "large").write_bytes(bytes(20_000_000))
    (tmp_path / "server.py").write_text(SERVER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    serving = shlex.join([sys.executable, "server.py"])
    emulating = command(tmp_path, LINK, "--peer", serving, "--max-delay-error", "1 s")
    out = ["--duration", "5 s", "-o", "seen", "--json"]
    done = subprocess.run(
        [*emulating, "--", *JOSTLE, "measure", f"https://[{peer}]:8443/large", *out],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)
    assert manifest["target"] == f"https://[{peer}]:8443/large"
    assert manifest["idle"]["rtt_p50_s"] == pytest.approx(0.0405, abs=0.003)
    (one,) = manifest["transfers"]
    assert one["measured"]["goodput_bps"] == pytest.approx(9.3e6, rel=0.1)
    assert one["pings"]["lost"] < one["pings"]["sent"]
    names = {
        flow["name"]
        for result in jostle.analyze(tmp_path / "seen").results
        for flow in result.run.summary["flows"]
    }
    assert f"ping {peer}" in names
    assert any(name.startswith(f"[{peer}]:8443 > ") for name in names)


def test_without_a_server_it_says_what_to_start(tmp_path: Path) -> None:
    file = tmp_path / "link.toml"
    file.write_text(LINK)
    words = ["$JOSTLE_PEER", "--controllers", "reno", "-o", str(tmp_path / "seen")]
    measuring = " ".join([*map(shlex.quote, JOSTLE), "measure", *words])
    done = subprocess.run(
        [*JOSTLE, "link", "emulate", str(file), "--peer", "sleep 60", "--", "sh", "-c", measuring],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Start `iperf3 -s` there" in done.stderr
    assert done.returncode in {1, 2}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.toml"]
