"""Access lines: framing, codepoints and priority in scenarios, and what is derived from them."""

from __future__ import annotations

from typing import Any

import jostle
import pytest
from jostle.inference import advised_changes
from jostle.scenario import ScenarioError
from jostle.scenario.dscp import CODEPOINTS, codepoint_name
from jostle.scenario.resolve.profiles import profiles
from jostle.scenario.service_rate import constant_service_bps

LINE = """
duration = "10 s"
[phases]
steady = ["4 s", "10 s"]
[downlink]
rate    = "16 Mbit/s"
queue   = "fq_codel"
framing = "pppoe-llcsnap"
[uplink]
rate    = "1 Mbit/s"
queue   = QUEUE
framing = FRAMING
[[flows]]
name       = "upload"
controller = "cubic"
direction  = "up"
rtt        = "40 ms"
[[flows]]
name       = "call"
controller = "none"
direction  = "up"
dscp       = "EF"
rtt        = "40 ms"
source     = { kind = "cbr", codec = "g711" }
"""
TAIL = '{ kind = "drop_tail", limit = "40 packets" }'
CELLS = '"pppoe-llcsnap"'


def scenario(queue: str = TAIL, framing: str = CELLS, more: str = "") -> jostle.Scenario:
    text = LINE.replace("QUEUE", queue).replace("FRAMING", framing)
    return jostle.Scenario.from_toml(text + more)


def spec_of(found: jostle.Scenario) -> dict[str, Any]:
    spec: dict[str, Any] = found.plan().runs[0].spec
    return spec


def test_a_full_packet_of_adsl_is_33_cells() -> None:
    rate_bps = constant_service_bps(spec_of(scenario())["links"][1])
    assert rate_bps == round(1e6 * 1514 / 1749)
    # "1 BDP" is of the rate at which packets pass.
    queue = spec_of(scenario('{ kind = "drop_tail", limit = "10 BDP" }'))["links"][1]["queue"]
    assert queue["parameters"]["limit"]["bytes"] == 10 * (rate_bps * 40_000_000 // 8 // 10**9)


@pytest.mark.parametrize(
    ("queue", "framing", "share"),
    [
        (TAIL, CELLS, 1514 / 1749),
        (TAIL, '"none"', 1.0),
        # A shaper that counts cells as the line does, and one that does not know of them.
        (
            '{ kind = "cake", rate = "900 kbit/s", overhead = 40, atm = "atm" }',
            CELLS,
            0.9 * 1514 / 1749,
        ),
        ('{ kind = "tbf", rate = "800 kbit/s", burst = "3 kB", limit = "60 kB" }', CELLS, 0.8),
        # The shaper is faster than the line.
        ('{ kind = "cake", rate = "950 kbit/s" }', CELLS, 1514 / 1749),
    ],
)
def test_utilisation_and_estimates_know_the_framing(queue: str, framing: str, share: float) -> None:
    found = scenario(queue, framing)
    rate_bps = constant_service_bps(spec_of(found)["links"][1])
    assert rate_bps == pytest.approx(1e6 * share, rel=1e-4)
    results = jostle.run(found, store=False)
    links = results.links
    uplink = links.filter((links["link"] == "uplink") & (links["phase"] == "steady"))
    assert uplink["utilisation"][0] == pytest.approx(1, abs=0.02)
    estimate, delay = uplink["queue_delay_estimate_mean_s"][0], uplink["queueing_delay_mean_s"][0]
    if 'kind = "cake"' not in queue:
        assert estimate == pytest.approx(delay, rel=0.15)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_call_has_priority_in_both_directions(backwards: bool) -> None:
    classes = '{ kind = "prio", classes = { voice = { dscp = "EF" }, default = {} } }'
    more = ""
    if backwards:
        # ACKs of a marked download cross the uplink in the class of voice.
        more = '[[flows]]\nname = "down"\ncontroller = "cubic"\nrtt = "40 ms"\ndscp = "EF"\n'
    found = scenario(classes, CELLS, more)
    by_name = {entry["name"]: entry["flows"] for entry in spec_of(found)["links"][1]["classes"]}
    assert by_name == {"voice": [1, 2] if backwards else [1], "default": [0]}
    results = jostle.run(found, store=False).flows
    call = results.filter((results["flow"] == "call") & (results["phase"] == "steady"))
    # One packet of the upload takes 14 ms, and waits in front of a call at most once.
    assert call["one_way_delay_mean_s"][0] < (0.1 if backwards else 0.02)


def test_web_pages_and_many_connections_are_of_their_flows_class() -> None:
    classes = '{ kind = "prio", classes = { pages = { dscp = "AF21" }, default = {} } }'
    more = """
[[flows]]
name       = "pages"
controller = "cubic"
rtt        = "40 ms"
dscp       = "AF21"
source     = { kind = "web", think_time = "1 s" }
"""
    results = jostle.run(scenario(classes, '"none"', more), store=False)
    assert results.failures == ()
    flows = results.flows
    pages = flows.filter((flows["flow"] == "pages") & (flows["phase"] == "steady"))
    plain = jostle.run(scenario(TAIL, '"none"', more), store=False).flows
    without = plain.filter((plain["flow"] == "pages") & (plain["phase"] == "steady"))
    # Requests do not wait behind the upload.
    assert pages["page_load_time_mean_s"][0] < 0.7 * without["page_load_time_mean_s"][0]


def test_faults_and_framing_meet() -> None:
    """Lost packets have used their cells of the line."""
    more = '[uplink.faults]\npackets = [{ flow = "upload", lose = [200] }]\n'
    results = jostle.run(scenario(more=more), store=False)
    links = results.links
    overall = links.filter((links["link"] == "uplink") & (links["phase"] == "overall"))
    assert overall["dropped_loss_packets"][0] == 1
    flows = results.flows
    upload = flows.filter((flows["flow"] == "upload") & (flows["phase"] == "overall"))
    assert upload["retransmitted_packets"][0] >= 1


def test_advice_counts_the_bytes_of_the_line() -> None:
    spec = spec_of(scenario())
    changes = advised_changes.queue_changes(spec, ["uplink"], {}, ecn=False)
    cake = next(change for change in changes if change.label.startswith("CAKE"))
    (queue,) = cake.values.values()
    assert (queue["overhead"], queue["mpu"], queue["atm"]) == (40, 0, "atm")
    assert queue["rate"] == "950 kbit/s"


@pytest.mark.parametrize(
    ("queue", "framing", "words"),
    [
        (
            '{ kind = "prio", classes = { only = { dscp = "EF" } } }',
            CELLS,
            "1 classes — prio has from 2 to 16",
        ),
        (
            '{ kind = "prio", classes = { a = { dscp = "EF", weight = 2 }, default = {} } }',
            CELLS,
            "classes of prio have an order and no weights",
        ),
        (
            '{ kind = "drr", classes = { a = { dscp = ["EF", 34] }, b = { dscp = "AF41" }, '
            "default = {} } }",
            CELLS,
            'AF41 is of the class "a" as well',
        ),
        ('{ kind = "prio", classes = { a = { dscp = "E" }, default = {} } }', CELLS, '"E" is no'),
        (TAIL, '"atm"', '"atm" — accepted: pppoa-vcmux'),
        (TAIL, "{ mpu = 300 }", "300 is out of range"),
    ],
)
def test_what_is_wrong_is_said(queue: str, framing: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(queue, framing).plan()
    assert words in str(caught.value)


def test_grants_and_framing_exclude_each_other() -> None:
    grants = '{ superframe = "50 ms", latency = "660 ms", constant = "1 Mbit/s" }'
    text = LINE.replace("QUEUE", TAIL).replace("FRAMING", f"{CELLS}\ngrants = {grants}")
    with pytest.raises(ScenarioError, match="the link has grants as well"):
        jostle.Scenario.from_toml(text).plan()


def test_codepoints_have_iana_s_numbers() -> None:
    assert {name: CODEPOINTS[name] for name in ("CS1", "AF11", "AF41", "EF", "LE", "VA")} == {
        "CS1": 8, "AF11": 10, "AF41": 34, "EF": 46, "LE": 1, "VA": 44
    }  # fmt: skip
    assert len(set(CODEPOINTS.values())) == len(CODEPOINTS)
    assert codepoint_name(46) == "EF"
    assert codepoint_name(3) == "3"


@pytest.mark.parametrize("name", [name for name in profiles() if "framing" in profiles()[name]])
def test_lines_can_be_used(name: str) -> None:
    text = f'duration = "1 s"\n[bottleneck]\nprofile = "{name}"\n'
    found = jostle.Scenario.from_toml(text + '[[flows]]\nname = "one"\ncontroller = "cubic"\n')
    assert jostle.run(found, store=False).flows["throughput_bps"][0] > 0
