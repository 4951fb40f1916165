"""The test kit for Python: a stack in this file, and aioquic."""

from __future__ import annotations

import datetime
import doctest
from pathlib import Path
from typing import Any

import jostle
import jostle.testkit
import pytest
from jostle.errors import InputError
from jostle.scenario import load_text
from jostle.testkit import Host, Link, Simulation

LEFT, RIGHT = "10.0.0.1:1000", "10.0.1.1:443"
LINK = Link(rate_bps=10e6, delay_s=0.02)


class StopAndWait:
    """Sends numbered datagrams, each until it is acknowledged; or acknowledges them."""

    TIMEOUT_S = 0.1

    def __init__(self, messages: int = 0, to: tuple[str, int] | None = None) -> None:
        self.messages, self.to = messages, to
        self.next = self.sent = 0
        self.retransmit_at: float | None = 0.0 if messages else None
        self.received: list[tuple[float, int]] = []
        self.answers: list[tuple[bytes, Any]] = []

    def receive_datagram(self, data: bytes, addr: Any, now: float) -> None:
        number = data[1]
        self.received.append((now, number))
        if self.to is None:
            self.answers.append((data[:2], addr))
        elif number == self.next:
            self.next += 1
            self.retransmit_at = now if self.next < self.messages else None

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, Any]]:
        datagrams, self.answers = self.answers, []
        if self.retransmit_at is not None and now >= self.retransmit_at:
            self.sent += 1
            # As large as it is, this is a QUIC packet with a short header.
            datagrams.append((bytes([0x40, self.next]) + bytes(998), self.to))
            self.retransmit_at = now + self.TIMEOUT_S
        return datagrams

    def get_timer(self) -> float | None:
        return self.retransmit_at

    def handle_timer(self, now: float) -> None:
        assert self.retransmit_at is not None
        assert now >= self.retransmit_at

    def sender_state(self) -> dict[str, float | None]:
        return {"cwnd_bytes": 1000 * (1 + self.next), "srtt_s": 0.04, "ssthresh_bytes": None}


def pair(
    network: Link = LINK, seed: int = 1, messages: int = 100
) -> tuple[Simulation, Host[StopAndWait], Host[StopAndWait]]:
    simulation = Simulation(network, seed=seed)
    sender = simulation.add("left", LEFT, StopAndWait(messages, ("10.0.1.1", 443)))
    return simulation, sender, simulation.add("right", RIGHT, StopAndWait())


def transfer(seed: int, loss: float) -> tuple[float, dict[str, Any], int]:
    simulation, sender, receiver = pair(Link(10e6, 0.02, loss=loss), seed)
    end = simulation.run_until(lambda: sender.endpoint.next == 100, limit_s=60)
    assert [number for _, number in receiver.endpoint.received if number == 99]
    assert simulation.sent_packets(sender) == sender.endpoint.sent
    return end, simulation.measures(), sender.endpoint.sent - 100


def test_the_example_of_the_module_is_true():
    assert doctest.testmod(jostle.testkit).attempted >= 5
    assert doctest.testmod(jostle.testkit).failed == 0


def test_a_stack_in_this_file_survives_loss():
    end, measures, retransmitted = transfer(1, 0.0)
    # Headers, 42 bytes each, and both datagrams on 10 Mbit/s.
    assert end == pytest.approx(100 * (0.04 + (1042 + 44) * 8 / 10e6))
    assert retransmitted == 0
    assert measures["forward"]["delay"]["min_ns"] == pytest.approx(20e6 + 1042 * 800)
    for seed in range(5):
        end, measures, retransmitted = transfer(seed, 0.1)
        lost = sum(measures[each]["dropped_packets"] for each in ("forward", "reverse"))
        assert retransmitted == lost > 5
    assert transfer(4, 0.1) == (end, measures, retransmitted)
    assert transfer(3, 0.1)[0] != end


def test_packets_are_lost_by_number():
    simulation, sender, _ = pair(Link(10e6, 0.02, lost_packets=[2, 3]), messages=3)
    simulation.run_until(lambda: sender.endpoint.next == 3, limit_s=9)
    # Both directions lose these: datagrams 2 and 3, and the ACKs 2 and 3.
    assert sender.endpoint.sent == 3 + 4
    assert simulation.measures()["forward"]["links"][0]["name"] == "forward0"


def test_the_links_of_a_scenario_are_the_network():
    scenario = load_text("""
        title = "A slow link"
        duration = "1 s"
        seed = 3
        [[links]]
        name = "slow"
        rate = "1 Mbit/s"
        queue = { kind = "drop_tail", limit = "10 packets" }
        [[flows]]
        name = "one"
        controller = "reno"
        rtt = "100 ms"
        path = ["slow"]
    """)
    simulation = Simulation.of_flow(scenario, "one")
    sender = simulation.add("left", LEFT, StopAndWait(1, ("10.0.1.1", 443)))
    simulation.add("right", RIGHT, StopAndWait())
    end = simulation.run_until(lambda: sender.endpoint.next == 1, limit_s=9)
    assert end == pytest.approx(0.1 + 1042 * 8 / 1e6, abs=2e-3)
    with pytest.raises(InputError, match="no flow `on`; did you mean `one`"):
        Simulation.of_flow(scenario, "on")


def test_jostle_analyzes_its_files(tmp_path):
    simulation, sender, receiver = pair(Link(10e6, 0.02, loss=0.1))
    files = {host: tmp_path / f"{host.number}.sqlog" for host in (sender, receiver)}
    for host, path in files.items():
        simulation.qlog(host, path, "a test")
    simulation.capture(sender, tmp_path / "sender.pcapng")
    end = simulation.run_until(lambda: sender.endpoint.next == 100, limit_s=60)
    simulation.finish_files()
    (result,) = jostle.analyze(files[sender]).results
    (flow,) = result.run.summary["flows"]
    measured = flow["phases"]["overall"]
    assert measured["sent_packets"] == simulation.sent_packets(sender)
    assert result.run.flows["cwnd_bytes"].max() == 101_000
    assert measured["rtt_mean_s"] is None
    # Without frames the end with more bytes is the sender.
    received = jostle.analyze(files[receiver])
    assert any("an end that received" in note for note in received.notes)
    assert not any("an end that received" in note for note in jostle.analyze(files[sender]).notes)
    (result,) = jostle.analyze(tmp_path / "sender.pcapng").results
    assert result.run.spec["duration_ns"] == pytest.approx(end * 1e9, rel=0.01)


def test_exceptions_of_an_endpoint_end_the_run():
    simulation, sender, receiver = pair()
    receiver.endpoint.receive_datagram = lambda *_: 1 / 0  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        simulation.run_until(lambda: False, limit_s=9)
    assert simulation.now < 0.03
    with pytest.raises(KeyError):
        simulation.run_until(lambda: {}["missing"], limit_s=9)
    with pytest.raises(RuntimeError, match="borrowed"):
        simulation.run_until(lambda: simulation.now > 1, limit_s=9)
    sender.endpoint.sender_state = lambda: {"cwnd": 1.0}  # type: ignore[method-assign]
    simulation.qlog(sender, "/dev/null")
    with pytest.raises(ValueError, match="sender_state returned `cwnd`: expected srtt_s"):
        simulation.run_to(9)


@pytest.mark.parametrize(
    ("datagram", "error", "message"),
    [
        ((bytes(70_000), ("10.0.1.1", 1)), ValueError, "a datagram of 70000 bytes: at most 65507"),
        ((b"", ("fd00::1", 1, 0, 0)), ValueError, "different families"),
        ((b"", ("localhost", 1)), ValueError, 'a datagram to "localhost": expected an IP address'),
        ((b"", ("10.0.1.1", 70_000)), OverflowError, None),
        (("text", ("10.0.1.1", 1)), TypeError, None),
        (None, TypeError, None),
    ],
)
def test_datagrams_that_cannot_be_sent_are_errors(datagram, error, message):
    simulation, sender, _ = pair()
    sender.endpoint.datagrams_to_send = lambda now: [datagram]
    with pytest.raises(error, match=message):
        simulation.run_to(1)


def test_a_run_that_cannot_end_is_an_error():
    simulation, _, _ = pair(messages=1)
    with pytest.raises(TimeoutError, match="nothing can happen after"):
        simulation.run_until(lambda: False, limit_s=9)
    assert simulation.now < 0.05
    simulation.run_to(9)
    assert simulation.now == 9
    # The test changes an endpoint: the next run asks it.
    simulation, sender, _ = pair()
    simulation.run_to(0.01)
    sender.endpoint.messages = 1
    with pytest.raises(TimeoutError, match="the condition was not met by"):
        simulation.run_until(lambda: False, limit_s=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Simulation(Link(0, 0.02), seed=1), r"`forward\[0\]\.capacity"),
        (lambda: Simulation(Link(1e6, 0.02, loss=2), seed=1), r"`forward\[0\]\.loss"),
        (lambda: Simulation(Link(1e6, -1), seed=1), "Link.*delay_s=-1"),
        (lambda: Simulation(([LINK], []), seed=1), "reverse"),
        (lambda: Simulation(LINK, seed=-1), "negative"),
        (lambda: Simulation(LINK, seed=1, mtu_bytes=10), "mtu_bytes"),
        (lambda: Simulation(LINK, seed=1).add("top", LEFT, StopAndWait()), "no side `top`"),
        (lambda: Simulation(LINK, seed=1).add("left", "a:1", StopAndWait()), 'address "a:1"'),
    ],
)
def test_wrong_input_is_an_error_of_the_input(make, message):
    with pytest.raises(InputError, match=message):
        make()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


class AioquicEndpoint:
    """A connection of aioquic: of a server, it begins with the first datagram."""

    def __init__(self, configuration: Any, send_bytes: int = 0) -> None:
        from aioquic.quic.connection import QuicConnection

        self.configuration = configuration
        self.connection: Any = None
        self.received_bytes = 0
        self.connected_at: float | None = None
        self.is_complete = False
        if configuration.is_client:
            self.connection = QuicConnection(configuration=configuration)
            self.connection.connect(("10.0.1.1", 443), now=0.0)
            stream = self.connection.get_next_available_stream_id()
            self.connection.send_stream_data(stream, bytes(send_bytes), end_stream=True)

    def receive_datagram(self, data: bytes, addr: Any, now: float) -> None:
        from aioquic.buffer import Buffer
        from aioquic.quic import events
        from aioquic.quic.connection import QuicConnection
        from aioquic.quic.packet import pull_quic_header

        if self.connection is None:
            header = pull_quic_header(Buffer(data=data), host_cid_length=8)
            self.connection = QuicConnection(
                configuration=self.configuration,
                original_destination_connection_id=header.destination_cid,
            )
        self.connection.receive_datagram(data, addr, now)
        while (event := self.connection.next_event()) is not None:
            if isinstance(event, events.HandshakeCompleted):
                self.connected_at = now
            elif isinstance(event, events.StreamDataReceived):
                self.received_bytes += len(event.data)
                self.is_complete |= event.end_stream

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, Any]]:
        return [] if self.connection is None else self.connection.datagrams_to_send(now)

    def get_timer(self) -> float | None:
        return None if self.connection is None else self.connection.get_timer()

    def handle_timer(self, now: float) -> None:
        self.connection.handle_timer(now)


@pytest.mark.parametrize("loss", [0.0, 0.02])
def test_aioquic_transfers_data(tmp_path, loss):
    import ssl

    from aioquic.quic.configuration import QuicConfiguration

    client_side = QuicConfiguration(
        is_client=True, alpn_protocols=["test"], server_name="localhost", verify_mode=ssl.CERT_NONE
    )
    server_side = QuicConfiguration(is_client=False, alpn_protocols=["test"])
    server_side.load_cert_chain(*certificate(tmp_path))
    simulation = Simulation(Link(10e6, 0.02, queue_packets=500, loss=loss), seed=2)
    client = simulation.add("left", LEFT, AioquicEndpoint(client_side, 200_000))
    server = simulation.add("right", RIGHT, AioquicEndpoint(server_side))
    simulation.qlog(client, tmp_path / "client.sqlog")
    end = simulation.run_until(lambda: server.endpoint.is_complete, limit_s=60)
    simulation.finish_files()
    assert server.endpoint.received_bytes == 200_000
    # Two RTTs of handshake and first data, and 160 ms on the link; each loss costs little.
    assert 0.06 + 0.16 < end < (0.6 if loss == 0 else 6)
    assert client.endpoint.connected_at == pytest.approx(0.045, abs=0.01) or loss
    assert (simulation.measures()["forward"]["dropped_packets"] > 0) == (loss > 0)
    (result,) = jostle.analyze(tmp_path / "client.sqlog").results
    (flow,) = result.run.summary["flows"]
    assert flow["phases"]["overall"]["sent_packets"] == simulation.sent_packets(client)
