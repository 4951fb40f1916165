"""LINK.toml: what it may say, and what is told when it says something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from jostle.emulate import LinkFile, load
from jostle.scenario import ScenarioError

MS = 10**6
ONE = """
[bottleneck]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "1 BDP" }
"""


def read(folder: Path, text: str) -> LinkFile:
    file = folder / "link.toml"
    file.write_text(text)
    return load(file)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        read(folder, text)
    return [f"{found.line}: {found.key}: {found.message}" for found in caught.value.problems]


def test_the_way_back_is_as_fast_and_as_long_and_loses_nothing(tmp_path: Path) -> None:
    text = ONE + 'loss = "1 %"\njitter = { quantiles = [["0 %", "0 ms"], ["100 %", "4 ms"]], '
    found = read(tmp_path, text + 'correlation = "0 s" }\n')
    assert (found.title, found.seed) == ("link", 1)
    (there,), (back,) = found.links, found.reverse
    assert there["name"] == "bottleneck"
    assert back["name"] == "reverse"
    assert back["capacity"] == there["capacity"] == {"kind": "constant", "rate_bps": 20_000_000}
    assert back["queue"] == {"kind": "drop_tail", "parameters": {"limit": {"packets": 100_000}}}
    assert back["delay"] == {"steps": [{"at_ns": 0, "delay_ns": 10 * MS}], "jitter": None}
    assert back["loss"] is None
    # The round trip of "1 BDP": 10 ms and the median jitter of 2 ms, and 10 ms back.
    assert there["queue"] == {"kind": "drop_tail", "parameters": {"limit": {"bytes": 55_000}}}


def test_delays_that_vary_do_so_both_ways(tmp_path: Path) -> None:
    steps = '[["0 s", "10 ms"], ["5 s", "40 ms"]]'
    found = read(tmp_path, ONE.replace('"10 ms"', steps))
    assert found.reverse[0]["delay"] == found.links[0]["delay"]
    assert [step["delay_ns"] for step in found.reverse[0]["delay"]["steps"]] == [10 * MS, 40 * MS]


def test_a_round_trip_leaves_the_rest_to_the_way_back(tmp_path: Path) -> None:
    found = read(tmp_path, 'seed = 7\ntitle = "far"\nrtt = "100 ms"\n' + ONE)
    assert found.reverse[0]["delay"]["steps"] == [{"at_ns": 0, "delay_ns": 90 * MS}]
    assert found.links[0]["queue"]["parameters"]["limit"] == {"bytes": 250_000}
    assert (found.title, found.seed) == ("far", 7)


def test_a_profile_brings_its_round_trip(tmp_path: Path) -> None:
    found = read(tmp_path, '[bottleneck]\nprofile = "viasat-2"\n')
    (there,), (back,) = found.links, found.reverse
    assert there["queue"]["kind"] == "occupancy_drop"
    assert there["outages"] is not None
    # 588 ms, less 282 ms of delay and 24 ms of median jitter.
    assert back["delay"]["steps"] == [{"at_ns": 0, "delay_ns": 282 * MS}]
    assert back["outages"] is None


def test_links_in_a_row_and_a_described_way_back(tmp_path: Path) -> None:
    queue = 'queue = { kind = "drop_tail", limit = "1 BDP" }'
    found = read(
        tmp_path,
        f"""
        [[links]]
        name = "access"
        rate = "100 Mbit/s"
        delay = "1 ms"
        {queue}
        [[links]]
        name = "core"
        rate = "40 Mbit/s"
        delay = "4 ms"
        queue = "fq_codel"
        [reverse]
        rate = "5 Mbit/s"
        delay = "15 ms"
        {queue}
        """,
    )
    assert [link["name"] for link in found.links] == ["access", "core"]
    assert [link["name"] for link in found.reverse] == ["reverse"]
    assert found.links[0]["queue"]["parameters"]["limit"] == {"bytes": 250_000}
    assert found.reverse[0]["queue"]["parameters"]["limit"] == {"bytes": 12_500}


def test_without_a_way_back_a_row_of_links_gets_the_narrowest_rate(tmp_path: Path) -> None:
    link = '[[links]]\nname = "{}"\nrate = "{} Mbit/s"\ndelay = "3 ms"\nqueue = "fq_codel"\n'
    found = read(tmp_path, link.format("reverse", 100) + link.format("slow", 2))
    (back,) = found.reverse
    assert back["capacity"]["rate_bps"] == 2_000_000
    assert back["delay"]["steps"] == [{"at_ns": 0, "delay_ns": 6 * MS}]
    # Random streams are named after links.
    assert back["name"] not in {"reverse", "slow"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1: : no link — write a [bottleneck] table, or [[links]]"]),
        (
            ONE.replace("rate", "rat"),
            ['3: bottleneck.rat: unknown key — did you mean "rate"?'],
        ),
        (
            ONE + ONE.replace("bottleneck", "reverse").replace('"20 Mbit/s"', "20"),
            ['8: reverse.rate: 20 has no unit — write for example "20 Mbit/s"'],
        ),
        (
            ONE + '[[flows]]\nname = "one"\ncontroller = "cubic"\n',
            ["6: flows: no flows run here — commands make the traffic"],
        ),
        (
            'duration = "10 s"\n' + ONE,
            ["1: duration: unknown key — accepted: title, seed, rtt, bottleneck, links, reverse"],
        ),
        (
            'rtt = "9 ms"\n' + ONE,
            ['1: rtt: "9 ms" is less than the 10 ms that the links take on the way there'],
        ),
        (
            'rtt = "90 ms"\n' + ONE + ONE.replace("bottleneck", "reverse"),
            ["1: rtt: the links of [reverse] have delays, too — keep either"],
        ),
        (
            ONE.replace("[bottleneck]", '[bottleneck]\nquick_start = "5 Mbit/s"'),
            ["3: bottleneck.quick_start: an emulated link grants nothing — take it out"],
        ),
        (
            ONE.replace(
                '"drop_tail", limit = "1 BDP" }',
                '"cake", isolation = "dual-srchost", ack_filter = "filter" }\n'
                "ack_thinning = { max_acks = 8 }",
            ),
            [
                '5: bottleneck.queue.ack_filter: "filter": emulated links tell flows apart '
                'alone — "none"',
                '5: bottleneck.queue.isolation: "dual-srchost": emulated links tell flows apart '
                'alone — "flows" or "none"',
                "6: bottleneck.ack_thinning: emulated links do not look for ACKs in packets "
                "— remove it",
            ],
        ),
        (
            ONE.replace(
                "[bottleneck]",
                '[bottleneck]\nfaults = { packets = [{ flow = "x", lose = [1] }] }',
            ),
            [
                "3: bottleneck.faults.packets[0].flow: a program's flows have no names — "
                "remove it: all are counted"
            ],
        ),
        ("seed = -1\n" + ONE, [f"1: seed: a seed is a whole number from 0 to {2**63 - 1}"]),
        (
            '[[links]]\nname = "a"\nrate = "1 Mbit/s"\nqueue = "fq_codel"\n'
            '[[reverse]]\nname = "a"\nrate = "1 Mbit/s"\nqueue = "fq_codel"\n',
            ['5: reverse[0]: there is another link "a" on the way there'],
        ),
        (
            ONE + '[reverse]\nrate = "1 Mbit/s"\nqueue = { kind = "drop_tail", limit = "0 B" }\n',
            None,
        ),
        ("[bottleneck\n", None),
    ],
)
def test_problems_name_the_line_and_the_key(
    tmp_path: Path, text: str, expected: list[str] | None
) -> None:
    found = problems(tmp_path, text)
    if expected is None:
        assert found != []
        assert all(problem.split(":")[0].isdigit() for problem in found)
    else:
        assert found == expected
