"""Receivers with a conduct of their own: what a scenario says of them, and what becomes of it."""

import jostle
import pytest
from jostle.scenario import ScenarioError

SCENARIO = """
duration = "10 s"

[bottleneck]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }

[[flows]]
name = "download"
controller = "cubic"
rtt = "40 ms"
ecn = true
"""

SAID = {
    '"ack_division"': {"kind": "ack_division", "pieces": 16},
    '{ kind = "dupack_spoofing", copies = 3 }': {"kind": "dupack_spoofing", "copies": 3},
    '{ kind = "optimistic_acking", lead_rtts = "25 %" }': {
        "kind": "optimistic_acking",
        "lead": 0.25,
    },
    '"hidden_ecn_marks"': {"kind": "hidden_ecn_marks"},
    '{ kind = "rledbat", target = "30 ms" }': {
        "kind": "rledbat",
        "target_ns": 30_000_000,
        "constant": 1.0,
        "slowdowns": True,
    },
}


def spec_of(tmp_path, receiver):
    path = tmp_path / "one.toml"
    path.write_text(f"{SCENARIO}receiver = {receiver}\n")
    (run,) = jostle.load(path).plan().runs
    return run.spec["flows"][0]


@pytest.mark.parametrize("said", SAID)
def test_a_receiver_is_a_word_or_a_table(tmp_path, said):
    assert spec_of(tmp_path, said)["receiver"] == SAID[said]


def test_a_receiver_that_lies_in_nothing_is_that_of_a_flow_without_the_key(tmp_path):
    assert "receiver" not in spec_of(tmp_path, '"none"')


def test_a_grid_has_honest_and_lying_receivers(tmp_path):
    path = tmp_path / "grid.toml"
    grid = '[grid]\n"flows.download.receiver" = ["none", "optimistic_acking"]\n'
    path.write_text(f'{SCENARIO}receive_window = "256 kB"\n{grid}')
    honest, lied_to = jostle.run(jostle.load(path), store=False).flows["retransmission_ratio"]
    assert honest > 0 == lied_to


@pytest.mark.parametrize("receiver", ['"optimistic_acking"', '"rledbat"'])
def test_senders_that_may_not_heed_the_window_are_refused(tmp_path, receiver):
    with pytest.raises(ScenarioError, match="send beyond the window, which alone bounds"):
        spec_of(tmp_path, f'{receiver}\npeer_cache = "stateful"')
