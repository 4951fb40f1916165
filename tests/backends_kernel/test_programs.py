"""Flows that other people's QUIC carries: translated, refused, run, and failing."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

import jostle
import pcapng
import polars as pl
import pytest
from jostle.backends.kernel import KernelRunError, job, quic_programs, seeded_random
from jostle.backends.kernel.controllers import Defaults
from jostle.errors import InputError
from jostle.quic.recipes import Programs, recipes
from jostle.quic.status import states
from jostle.safe_io.code_consent import admit

from backends_kernel.kernel_specs import spec_of

SCENARIO = """
duration = "2 s"
[phases]
late = ["1 s", "2 s"]
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "theirs"
controller = "cubic"
rtt = "40 ms"
transport = { kind = "quic", implementation = IMPLEMENTATION }
"""

BESIDE_TCP = (
    SCENARIO.replace('"2 s"', '"3 s"')
    + """
[[flows]]
name = "Linux"
controller = "cubic"
rtt = "40 ms"
start = "500 ms"
"""
)


def needs(name: str) -> pytest.MarkDecorator:
    """Skip where the programs of an implementation are missing, and say how to get them."""
    (state,) = (one for one in states() if one.name == name)
    return pytest.mark.skipif(not state.available, reason=f"{name} is missing: {state.advice}")


needs_ngtcp2 = needs("ngtcp2")
IMPLEMENTATIONS = [pytest.param(name, marks=needs(name)) for name in recipes()]
# One controller of each implementation is fast enough for every run of the tests.
STACKS = [
    pytest.param(name, controller, marks=(needs(name), pytest.mark.slow) if at else needs(name))
    for name, recipe in recipes().items()
    for at, controller in enumerate(recipe.controllers)
]

# A server that listens and never says a word.
SILENT = """import socket, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("{address}", {port}))
print("here I am", flush=True)
time.sleep(1000)
"""
# A client that sends datagrams for ever.
KNOCKING = """import socket, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    end.sendto(b"?" * 1200, ("{address}", {port}))
    time.sleep(0.1)
"""
WAITING = ["sleep", "1000"]


def python(program: str) -> list[str]:
    return ["python3", "-c", program]


def theirs(
    server: list[str], client: list[str], overrides: Mapping[str, str] | None = None
) -> dict[str, Any]:
    table = f'{{ name = "mine", server = {json.dumps(server)}, client = {json.dumps(client)} }}'
    return spec_of(SCENARIO.replace("IMPLEMENTATION", table), overrides)


def carried_by(
    name: str, overrides: Mapping[str, str] | None = None, scenario: str = SCENARIO
) -> dict[str, Any]:
    return spec_of(scenario.replace("IMPLEMENTATION", f'"{name}"'), overrides)


def ngtcp2(overrides: Mapping[str, str] | None = None) -> dict[str, Any]:
    return carried_by("ngtcp2", overrides)


def allow(spec: Mapping[str, Any]) -> None:
    """Admit the programs of a specification that a test has changed."""
    admit(Programs.of(**spec["flows"][0]["quic"]["implementation"]["commands"]))


Check = Callable[[dict[str, Any]], str]


@pytest.fixture
def refusal(defaults: Defaults) -> Check:
    from jostle.backends.kernel import capabilities

    def check(spec: dict[str, Any]) -> str:
        with pytest.raises(InputError) as refused:
            capabilities.check(spec, defaults, "virtual")
        return str(refused.value)

    return check


def test_a_program_that_is_not_there_is_named_with_its_key(refusal):
    text = refusal(theirs(["no-such-server"], ["sh"]))
    assert "flows.theirs.transport.implementation.server" in text
    assert "there is no program `no-such-server`" in text


def test_a_recipe_says_what_to_install(refusal, monkeypatch):
    monkeypatch.setattr(quic_programs, "find_program", lambda _name, _program: None)
    text = refusal(ngtcp2())
    assert "there is no program `gtlsserver`" in text
    assert "apt-get install ngtcp2-server ngtcp2-client" in text
    text = refusal(carried_by("quic-go", {"flows.theirs.controller": '"reno"'}))
    assert "there is no program `jostle-quic-go` in /" in text
    assert "run `jostle setup quic quic-go` (" in text
    assert "it needs Go 1.26 or later)" in text


def test_a_placeholder_that_stands_for_nothing(refusal):
    text = refusal(theirs(["sh", "-c", "{adress}"], ["sh"]))
    assert "{adress} is unknown — accepted: {address}, {bytes}" in text


def test_what_a_recipe_has_not(refusal):
    text = refusal(ngtcp2({"flows.theirs.controller": '"copa"'}))
    assert "flows.theirs.controller: `copa`: ngtcp2 has bbr, bbr2, cubic, reno" in text
    assert "`cubic`: quic-go has reno" in refusal(carried_by("quic-go"))
    source = '{ kind = "request_response", size = "10 kB", think_time = "1 s" }'
    assert "asked for one file" in refusal(ngtcp2({"flows.theirs.source": source}))
    assert "flows.theirs.ecn" in refusal(ngtcp2({"flows.theirs.ecn": "true"}))


def test_words_are_filled_in():
    spec = theirs(["sh", "{port}-{controller}", "{www}"], ["sh", "{bytes}", "{downloads}"])
    job = quic_programs.job(spec, spec["flows"][0], "10.1.0.1", 5000)
    assert job["server"] == ["sh", "4433-cubic", "{www}"]
    assert job["client"] == ["sh", "5000", "{downloads}"]
    assert job["downloads"]
    assert not job["qlog"]


def test_a_server_that_loads_the_file_has_room_for_it():
    def memory_mb(name: str, duration: str) -> int:
        changed = {"flows.theirs.controller": '"bbr"', "duration": f'"{duration}"'}
        return job.memory_mb(carried_by(name, changed))

    # 10 Mbit/s for 100 s more.
    assert memory_mb("tquic", "104 s") - memory_mb("tquic", "4 s") == pytest.approx(119, abs=1)
    assert memory_mb("ngtcp2", "104 s") == memory_mb("ngtcp2", "4 s")


def test_what_uses_random_device_is_given_another_one():
    linked = ("/lib/x86_64-linux-gnu/libstdc++.so.6",)
    if shutil.which("cc") is not None:
        assert seeded_random.environment(linked)["LD_PRELOAD"].endswith(".so")
    assert "LD_PRELOAD" not in seeded_random.environment(())


@needs_ngtcp2
@pytest.mark.parametrize(
    "controller",
    ["reno", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cubic", "bbr", "bbr2"))],
)
def test_ngtcp2_fills_the_link(backend, controller):
    record = backend.run(ngtcp2({"flows.theirs.controller": f'"{controller}"'}))
    (flow,), (link,) = record.summary["flows"], record.summary["links"]
    late, whole = flow["phases"]["late"], flow["phases"]["overall"]
    assert 8.5e6 < late["goodput_bps"] < late["throughput_bps"] < 10.1e6
    carried_bps = 10e6 * link["phases"]["late"]["utilisation"]
    assert late["throughput_bps"] == pytest.approx(carried_bps, rel=0.01)
    # Every packet that the queue dropped was found to be lost, but for those just sent.
    dropped = link["phases"]["overall"]["dropped_overflow_packets"]
    assert whole["retransmitted_packets"] == pytest.approx(dropped, abs=0.1 * dropped + 20)
    assert 0.039 < whole["rtt_min_s"] < 0.042
    assert late["rtt_mean_s"] < 0.1
    assert late["cwnd_mean_bytes"] > 20_000
    # What only the simulator's sender could say.
    assert late["segment_rtt_mean_s"] is None
    assert flow["completion_time_s"] is None


@pytest.mark.parametrize(("name", "controller"), STACKS)
def test_every_recipe_carries_a_flow_beside_tcp(name, controller, backend):
    spec = carried_by(name, {"flows.theirs.controller": f'"{controller}"'}, BESIDE_TCP)
    record = backend.run(spec)
    (flow, other), (link,) = record.summary["flows"], record.summary["links"]
    whole, late = flow["phases"]["overall"], flow["phases"]["late"]
    # Whoever gets more, nothing else is on the link, and nobody starves.
    assert link["phases"]["late"]["utilisation"] > 0.9
    both_bps = late["throughput_bps"] + other["phases"]["late"]["throughput_bps"]
    assert both_bps == pytest.approx(10e6 * link["phases"]["late"]["utilisation"], rel=0.02)
    assert 0.3e6 < late["goodput_bps"] < late["throughput_bps"]
    # Its qlog was understood.
    assert 0.039 < whole["rtt_min_s"] < 0.042
    assert whole["rtt_min_s"] < late["rtt_mean_s"] < 0.15
    assert late["cwnd_mean_bytes"] > 2000
    assert whole["retransmitted_packets"] is not None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("quic-go", marks=(needs("quic-go"), pytest.mark.slow)),
        pytest.param("ngtcp2", marks=needs("ngtcp2")),
    ],
)
def test_the_same_seed_gives_the_same_numbers(name, backend):
    # ngtcp2's BBR draws numbers of the processor through std::random_device, if it is let.
    controllers = recipes()[name].controllers
    controller = "bbr" if "bbr" in controllers else next(iter(controllers))
    spec = carried_by(name, {"flows.theirs.controller": f'"{controller}"'})
    first, second = backend.run(spec), backend.run(spec)
    assert first.summary == second.summary
    assert first.flows.equals(second.flows)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_transfer_completes_and_another_follows(name, backend):
    overrides = {
        "flows.theirs.controller": f'"{next(iter(recipes()[name].controllers))}"',
        "flows.theirs.source": '{ kind = "fixed", size = "400 kB" }',
        "flows.theirs.count": "2",
        "flows.theirs.one_at_a_time": '"500 ms"',
    }
    record = backend.run(carried_by(name, overrides))
    first, second = record.summary["flows"]
    assert 0.37 < first["completion_time_s"] < 0.8
    assert second["start_s"] == pytest.approx(first["completion_time_s"] + 0.5, abs=0.01)
    assert second["completion_time_s"] == pytest.approx(first["completion_time_s"], rel=0.3)


@needs_ngtcp2
def test_what_a_program_does_not_show_is_null_and_no_zero(backend):
    spec = ngtcp2()
    commands = spec["flows"][0]["quic"]["implementation"]["commands"]
    for role, folder in (("server", "{qlog}"), ("client", "{downloads}")):
        commands[role] = [word for word in commands[role] if folder not in word]
    allow(spec)
    record = backend.run(spec)
    late = record.summary["flows"][0]["phases"]["late"]
    assert late["throughput_bps"] > 8e6
    unknown = (
        "goodput_bps", "goodput_ratio", "retransmitted_packets", "retransmission_ratio",
        "rtt_mean_s", "cwnd_mean_bytes", "power_bits",
    )  # fmt: skip
    assert {name: late[name] for name in unknown} == dict.fromkeys(unknown)
    assert record.summary["totals"]["late"]["total_retransmitted_packets"] is None
    columns = ("goodput_bps", "retransmitted_packets", "srtt_s", "cwnd_bytes", "in_flight_bytes")
    assert record.flows.select(columns).null_count().row(0) == (record.flows.height,) * 5
    assert record.flows.filter(pl.col("throughput_bps") > 0).height > 0


@needs_ngtcp2
def test_a_certificate_that_fails(backend):
    spec = ngtcp2()
    server = spec["flows"][0]["quic"]["implementation"]["commands"]["server"]
    server[-1] = "/etc/hostname"
    allow(spec)
    with pytest.raises(KernelRunError) as failed:
        backend.run(spec)
    assert "flows.theirs.transport.implementation: the server `gtlsserver`" in str(failed.value)
    assert "certificate" in str(failed.value).lower()


@needs("quic-go")
@pytest.mark.parametrize("role", ["server", "client"])
def test_a_certificate_that_quic_go_refuses(role, backend, tmp_path):
    """At the server it is none; at the client it is not the one that is trusted."""
    other, key = tmp_path / "other.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-keyout", str(key), "-out", str(other), "-subj", "/CN=jostle"]
    subprocess.run(command, check=True, capture_output=True)
    spec = carried_by("quic-go", {"flows.theirs.controller": '"reno"'})
    words = spec["flows"][0]["quic"]["implementation"]["commands"][role]
    wrong = other.read_text() if role == "client" else "no certificate"
    place = words.index("{certificate}")
    words[place:] = ["/proc/self/fd/3", *words[place + 1 :]]
    words[:] = ["sh", "-c", 'exec "$@" 3<<END\n' + wrong + "\nEND", "sh", *words]
    allow(spec)
    with pytest.raises(KernelRunError) as failed:
        backend.run(spec)
    assert f"flows.theirs.transport.implementation: the {role}" in str(failed.value)
    assert "certificate" in str(failed.value)


FAILURES = {
    "the server ends": (
        ["sh", "-c", "echo I have no idea; exit 3"], WAITING,
        r"the server `sh` ended with status 3 before it could be reached; it said last: I have no",
    ),
    "the server does not listen": (
        WAITING, WAITING, r"the server `sleep` never listened at port 4433",
    ),
    "the client crashes": (
        python(SILENT), ["sh", "-c", "echo oh; kill -SEGV $$"],
        r"the client `sh` was ended by SIGSEGV; it said last: oh",
    ),
    "the client gives up": (
        python(SILENT), ["sh", "-c", "echo refused; exit 1"],
        r"the client `sh` ended with status 1; it said last: refused",
    ),
    "the client is done too early": (
        python(SILENT), ["sh", "-c", "true {downloads}"],
        r"the client `sh` ended with status 0 before it had all data",
    ),
    "the server crashes later": (
        ["sh", "-c", f"python3 -c '{SILENT}' & sleep 2; echo too much for me; kill -ABRT $$"],
        python(KNOCKING),
        r"the server `sh` was ended by SIGABRT before the client had all data; .*too much for me",
    ),
    "the server is done too early": (
        ["sh", "-c", f"python3 -c '{SILENT}' & sleep 1"], python(KNOCKING),
        r"the server `sh` ended with status 0 before the client had all data",
    ),
    "the client hangs": (
        python(SILENT), WAITING, r"the client `sleep` sent nothing within \d\.\d s",
    ),
    "the server hangs": (
        python(SILENT), python(KNOCKING),
        r"the server `python3` answered none of \d+ packets within \d\.\d s; it said last: here I",
    ),
}  # fmt: skip


# These two wait for a limit in time, and the others show the same messages.
LATE_FAILURES = ("the server does not listen", "the client is done too early")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow if case in LATE_FAILURES else ())
        for case in FAILURES
    ],
)
def test_a_peer_that_fails_is_named_with_its_last_words(case, backend):
    server, client, message = FAILURES[case]
    # Peers that hang are noticed after three seconds.
    with pytest.raises(KernelRunError, match=message) as failed:
        backend.run(theirs(server, client, {"duration": '"4 s"'}))
    assert str(failed.value).startswith("flows.theirs.transport.implementation: ")


@needs_ngtcp2
def test_a_run_that_fails_does_not_stop_the_sweep(backend, tmp_path):
    recipe = recipes()["ngtcp2"]
    refuses = 'test {controller} = cubic || { echo no {controller} here; exit 3; }; exec "$@"'
    table = {
        "name": json.dumps("mine"),
        "server": json.dumps(["sh", "-c", refuses, "sh", *recipe.server]),
        "client": json.dumps(list(recipe.client)),
    }
    words = "{ " + ", ".join(f"{key} = {value}" for key, value in table.items()) + " }"
    grid = '\n[grid]\n"flows.theirs.controller" = ["reno", "cubic"]\n'
    scenario = tmp_path / "sweep.toml"
    scenario.write_text(SCENARIO.replace("IMPLEMENTATION", words) + grid)
    with pytest.warns(RuntimeWarning, match="1 runs failed"):
        results = jostle.run(scenario, backend, repeats=1, store=False, allow_code=True)
    (failure,) = results.failures
    assert failure.condition == 0
    assert "the server `sh` ended with status 3 before it could be reached" in failure.error
    assert "no reno here" in failure.error
    late = results.flows.filter(pl.col("phase") == "late")
    assert late["condition"].to_list() == ["cubic"]
    assert late["goodput_bps"].item() > 8e6


@pytest.mark.parametrize("end", ["sender", pytest.param("receiver", marks=pytest.mark.slow)])
def test_a_capture_is_opened_by_the_programs_secrets(end, backend):
    spec = spec_of("capture = true\n" + SCENARIO.replace("IMPLEMENTATION", '"ngtcp2"'))
    record = backend.run(spec)
    path = record.captures[f"theirs.{end}"]
    assert len(pcapng.read_datagrams(path).secrets) >= 4
    assert pcapng.tshark(path, "-Y", "_ws.malformed || quic.decryption_failed") == []
    opened = pcapng.tshark(path, "-Y", "quic.frame_type == 8 || quic.frame_type >= 10")
    assert len(opened) > 500
