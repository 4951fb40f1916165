"""Transports and controllers of flows, from a scenario to a run spec."""

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from jostle.quic.recipes import recipes
from jostle.scenario import Registry, Scenario, ScenarioError

Read = Callable[..., Scenario]
QUIC = {
    "implementation": None,
    "initial_mtu_bytes": 1200,
    "mtu_discovery": True,
    "ack_frequency": None,
    "recovery": "rfc9002",
    "gso_packets": 10,
    "pacing": True,
    "packet_threshold": 3,
    "burst_limit_packets": None,
    "streams": 1,
    "stream_receive_window_bytes": 1_000_000,
    "handshake": "1rtt",
    "crypto": "none",
}


def spec(scenario: Scenario) -> dict[str, Any]:
    return dict(scenario.plan().runs[0].spec)


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        ('"quic"', {}),
        ('{ kind = "quic" }', {}),
        ('{ kind = "quic", implementation = "noq", ack_frequency = "none" }', {}),
        (
            '{ kind = "quic", initial_mtu = "1350 B", mtu_discovery = false, recovery = "prr",'
            " packet_threshold = 50, gso = 1, pacing = false, burst_limit = 500, streams = 4,"
            ' stream_receive_window = "500 kB", handshake = "0rtt" }',
            {
                "initial_mtu_bytes": 1350,
                "mtu_discovery": False,
                "packet_threshold": 50,
                "recovery": "prr",
                "gso_packets": 1,
                "pacing": False,
                "burst_limit_packets": 500,
                "streams": 4,
                "stream_receive_window_bytes": 500_000,
                "handshake": "0rtt",
            },
        ),
        ('{ kind = "quic", crypto = "tls" }', {"crypto": "tls"}),
        (
            '{ kind = "quic", ack_frequency = 9 }',
            {
                "ack_frequency": {
                    "ack_eliciting_threshold": 9,
                    "max_ack_delay_ns": None,
                    "reordering_threshold": 2,
                }
            },
        ),
        (
            '{ kind = "quic", ack_frequency = { max_ack_delay = "5 ms" } }',
            {
                "ack_frequency": {
                    "ack_eliciting_threshold": 1,
                    "max_ack_delay_ns": 5_000_000,
                    "reordering_threshold": 2,
                }
            },
        ),
        (
            '{ kind = "quic", implementation = "ngtcp2" }',
            {
                "implementation": {
                    "name": "ngtcp2",
                    "commands": {
                        "server": list(recipes()["ngtcp2"].server),
                        "client": list(recipes()["ngtcp2"].client),
                    },
                }
            },
        ),
        (
            '{ kind = "quic", implementation = { name = "tquic", qlog = false } }',
            {
                "implementation": {
                    "name": "tquic",
                    "commands": {
                        "server": list(recipes()["tquic"].server_without_qlog),
                        "client": list(recipes()["tquic"].client),
                    },
                }
            },
        ),
        (
            '{ kind = "quic",'
            ' implementation = { name = "x", server = ["s"], client = ["c", "d"] } }',
            {
                "implementation": {
                    "name": "x",
                    "commands": {"server": ["s"], "client": ["c", "d"]},
                }
            },
        ),
    ],
)
def test_quic(
    read: Read, written: str, resolved: dict[str, Any], run_spec_schema: dict[str, Any]
) -> None:
    keys = f'rtt = "40 ms"\nreceive_window = "1 MB"\ntransport = {written}'
    run = spec(read(('rtt = "40 ms"', keys), allow_code=True))
    jsonschema.validate(run, run_spec_schema)
    quic, tcp = run["flows"]
    assert (quic["transport"], tcp["transport"]) == ("quic", "tcp")
    assert quic["quic"] == {**QUIC, **resolved}
    # What a flow without QUIC is told has not changed, nor has the name of its run.
    assert "quic" not in tcp
    assert quic["initial_receive_window_bytes"] == quic["receive_window_bytes"] == 1_000_000
    assert quic["initial_window_packets"] == 10


def test_tcp_has_keys_of_its_own(read: Read) -> None:
    keys = 'rtt = "40 ms"\ntransport = { kind = "tcp", prr = "rfc9937" }'
    first, second = spec(read(('rtt = "40 ms"', keys)))["flows"]
    assert (first["transport"], first["tcp"]) == ("tcp", {"prr": "rfc9937", "accecn_option": True})
    # Linux's settings, said or not, leave a run and its name as they were.
    assert "tcp" not in second
    keys = 'rtt = "40 ms"\ntransport = { kind = "tcp", accecn_option = true, prr = "linux" }'
    assert spec(read(('rtt = "40 ms"', keys))) == spec(read())
    grid = '[grid]\n"flows.first.transport.accecn_option" = [true, false]\n'
    scenario = read(('rtt = "40 ms"', 'rtt = "40 ms"\ntransport = "tcp"'), add=grid)
    flows = [run.spec["flows"][0] for run in scenario.plan().runs]
    assert [flow.get("tcp", {}).get("accecn_option") for flow in flows] == [None, False]


def test_controllers_of_quic_implementations(read: Read) -> None:
    keys = 'rtt = "40 ms"\ntransport = "quic"'
    run = spec(read(('rtt = "40 ms"', keys), ('"cubic"', '"noq:bbr3"')))
    assert run["flows"][0]["controller"] == {"name": "noq:bbr3", "parameters": {}}
    assert run["flows"][0]["slow_start"] is None
    keys = 'rtt = "40 ms"\ntransport = { kind = "quic", implementation = "ngtcp2" }'
    run = spec(read(('rtt = "40 ms"', keys), ('"cubic"', '"bbr2"')))
    assert run["flows"][0]["controller"] == {"name": "bbr2", "parameters": {}}


@pytest.mark.parametrize(
    ("more", "flow", "refused"),
    [
        (", gso = 1", "", "transport.gso"),
        (', crypto = "tls", ack_frequency = 9', "", "transport.ack_frequency"),
        (', initial_mtu = "1350 B"', "", "transport.initial_mtu"),
        ("", "initial_window = 32", "initial_window"),
    ],
)
def test_other_implementations_are_told_no_more(
    read: Read, more: str, flow: str, refused: str
) -> None:
    keys = (
        f'rtt = "40 ms"\ntransport = {{ kind = "quic", implementation = "ngtcp2"{more} }}\n{flow}'
    )
    with pytest.raises(ScenarioError, match=f"flows.first.{refused}: nothing tells another"):
        read(('rtt = "40 ms"', keys))


def test_a_transport_can_be_varied_and_its_keys_too(read: Read) -> None:
    grid = '[grid]\n"flows.first.transport" = ["tcp", "quic"]\n'
    runs = [run.spec["flows"][0]["transport"] for run in read(add=grid).plan().runs]
    assert runs == ["tcp", "quic"]
    grid = '[grid]\n"flows.first.transport.recovery" = ["rfc9002", "prr"]\n'
    scenario = read(('rtt = "40 ms"', 'rtt = "40 ms"\ntransport = "quic"'), add=grid)
    recoveries = [run.spec["flows"][0]["quic"]["recovery"] for run in scenario.plan().runs]
    assert recoveries == ["rfc9002", "prr"]


def controller(read: Read, written: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    flow = spec(read(('controller = "cubic"', written)))["flows"][0]
    return flow["controller"], flow["slow_start"]


def test_parameters_are_all_there(read: Read, registry: Registry) -> None:
    chosen, start = controller(read, 'controller = { name = "cubic", beta = 800 }')
    assert set(chosen["parameters"]) == set(registry.controllers["cubic"].parameters)
    assert (chosen["parameters"]["beta"], chosen["parameters"]["bic_scale"]) == (800, 41)
    assert start is not None
    assert set(start["parameters"]) == set(registry.slow_starts["hystart"].parameters)


def test_a_controller_has_the_linux_of_its_flow_unless_it_names_one(read: Read) -> None:
    chosen, start = controller(read, 'controller = "cubic"\nlinux_version = "4.15"')
    assert start is not None
    assert chosen["parameters"]["linux"] == start["parameters"]["linux"] == "4.15"
    named = 'controller = { name = "cubic", linux = "6.1" }\nlinux_version = "4.15"'
    assert controller(read, named)[0]["parameters"]["linux"] == "6.1"
    assert (
        "linux"
        not in controller(read, 'controller = "reno"\nlinux_version = "4.15"')[0]["parameters"]
    )


def test_a_slow_start_has_the_linux_of_its_flow_whatever_the_controller(read: Read) -> None:
    reno = 'controller = "reno"\nlinux_version = "4.15"\nslow_start = '
    _, start = controller(read, f'{reno}"hystart"')
    assert start is not None
    assert start["parameters"]["linux"] == "4.15"
    _, start = controller(read, f'{reno}{{ name = "hystart", linux = "6.1" }}')
    assert start is not None
    assert start["parameters"]["linux"] == "6.1"


def test_a_slow_start_takes_over_what_it_shares(read: Read) -> None:
    chosen, start = controller(read, 'controller = { name = "cubic", linux = "4.15" }')
    assert start is not None
    assert chosen["parameters"]["linux"] == start["parameters"]["linux"] == "4.15"
    own = """
    controller = { name = "cubic", linux = "4.15" }
    slow_start = { name = "hystart", linux = "6.1" }
    """
    _, start = controller(read, own)
    assert start is not None
    assert start["parameters"]["linux"] == "6.1"


def test_all_ways_to_switch_hystart_off_are_one_run(read: Read) -> None:
    ways = [
        'controller = { name = "cubic", hystart = false }',
        'controller = "cubic"\nslow_start = "standard"',
        'controller = { name = "cubic", slow_start = "standard" }',
        'controller = { name = "cubic", slow_start = { name = "standard" } }',
    ]
    results = [controller(read, way) for way in ways]
    assert all(result == results[0] for result in results)
    chosen, start = results[0]
    assert start == {"name": "standard", "parameters": {}}
    assert chosen["parameters"]["hystart"] is False


def test_a_controller_with_its_own_slow_start_has_none(read: Read) -> None:
    chosen, start = controller(read, 'controller = { name = "hybla", rtt0 = "50 ms" }')
    assert (chosen["parameters"]["rtt0"], start) == (50_000_000, None)
