"""Recordings of links: what is read of them, what becomes of them in a run, and what is made."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from jostle import _core
from jostle import run as api_run
from jostle.cli import status
from jostle.scenario import ScenarioError, load_text
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.traces import markov_chain
from jostle.scenario.traces.reader import read
from jostle.scenario.traces.recording import Column, Recording, cut
from jostle.scenario.traces.trace_summary import ks_distance, quantiles, summary
from jostle.scenario.traces.writer import as_mahimahi, as_table

Write = Callable[[str, str], Path]

SHARED = Path(__file__).parents[2] / "shared" / "data"
MEASURED = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no measured data in {SHARED}")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return make


def values(recording: Recording, name: str) -> list[float]:
    found = next(one for one in recording.columns if one.name == name)
    return [round(float(value), 9) for value in found.values]


def test_a_table_without_names_has_time_rate_delay_and_loss(write: Write) -> None:
    found = read(write("a.csv", "0,10,20,0\n1,12.5,25,0.01\n2,8,30,0.5\n"))
    assert values(found, "rate_mbps") == [10e6, 12.5e6, 8e6]
    assert values(found, "delay_ms") == [0.02, 0.025, 0.03]
    assert values(found, "loss") == [0, 0.01, 0.5]
    assert found.end_s.tolist() == [1, 2, 3]
    assert found.gaps() == ()


def test_rtts_of_hypatia_are_nanoseconds_and_zero_without_a_path(
    write: Write, tmp_path: Path
) -> None:
    rows = [(0, 25e6), (100_000_000, 25.5e6), (200_000_000, 0.0), (300_000_000, 61.25e6)]
    written = "".join(f"{at},{rtt:.10f}\n" for at, rtt in rows)
    found = read(write("networkx_rtt_0_to_1.txt", written))
    assert found.format == "Hypatia"
    assert found.end_s.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    rtt, loss = found.columns
    assert rtt.values.tolist() == pytest.approx([0.025, 0.0255, np.nan, 0.06125], nan_ok=True)
    assert loss.values.tolist() == [0, 0, 1, 0]
    assert any("no path in 1 of 4 samples" in note for note in found.notes)
    # Other decimals are not Hypatia's: a rate of 25 Mbit/s from 0.1 s on.
    assert read(write("a.csv", "0,25\n0.1,25.5\n")).format == "CSV"
    scenario = tmp_path / "leo.toml"
    scenario.write_text(
        """
        duration = "2 s"
        [bottleneck]
        rate = "20 Mbit/s"
        queue = { kind = "drop_tail", limit = "1 BDP" }
        delay = { file = "networkx_rtt_0_to_1.txt", scale = 0.5 }
        loss = { file = "networkx_rtt_0_to_1.txt" }
        [[flows]]
        name = "one"
        controller = "cubic"
        rtt = "70 ms"
        """
    )
    results = api_run(scenario, store=False)
    least = results.estimate("rtt_min")["value"][0]
    # 70 ms contain the median of half the RTTs, 12.75 ms; the shortest path is 0.25 ms shorter.
    assert 0.0697 < least < 0.0705
    assert results.estimate("dropped_loss")["value"][0] > 0


def test_units_are_told_by_names(write: Write) -> None:
    text = "time;down (kbit/s);ping_us;lost_percent;note\n0;500;1500;2;a\n0.5;;1600;4;b\n"
    found = read(write("a.csv", text))
    assert values(found, "down (kbit/s)")[0] == 500e3
    assert np.isnan(found.columns[0].values[1])
    assert values(found, "ping_us") == [0.0015, 0.0016]
    assert values(found, "lost_percent") == [0.02, 0.04]
    assert found.others == {}


def test_dates_are_times_and_what_lies_between_samples_is_a_gap(write: Write) -> None:
    text = """timestamp_start,timestamp_end,download_mbps
2024-01-11 10:00:00,2024-01-11 10:00:01,100
2024-01-11 10:00:01,2024-01-11 10:00:02,200
2024-01-11 10:01:00,2024-01-11 10:01:01,300
"""
    found = read(write("a.csv", text))
    assert found.gaps() == ((2.0, 60.0),)
    rate = found.column("rate")
    with pytest.raises(QuantityError, match=r'a gap of 58 s in all.*"close".*"hold".*"stop"'):
        cut(found, rate, None)
    closed = cut(found, rate, "close")
    assert (closed.time_s.tolist(), closed.length_s) == ([0, 1, 2], 3)
    held = cut(found, rate, "hold")
    assert (held.time_s.tolist(), held.length_s) == ([0, 1, 60], 61)
    stopped = cut(found, rate, "stop")
    assert stopped.time_s.tolist() == [0, 1, 2, 60]
    assert stopped.values.tolist() == [100e6, 200e6, 0, 300e6]
    part = cut(found, rate, None, from_s=0.5, to_s=1.5)
    assert (part.time_s.tolist(), part.length_s) == ([0, 0.5], 1.0)


def test_samples_without_an_end_last_until_the_next_unless_that_is_far(write: Write) -> None:
    rows = [0, 1, 2, 3, 4, 10, 11]
    found = read(write("a.csv", "".join(f"{at},5\n" for at in rows)))
    assert found.gaps() == ((5.0, 10.0),)
    assert found.length_s == 12


def test_iperf3_of_tcp_and_udp(write: Write) -> None:
    def interval(start: float, rate: float, **more: object) -> dict[str, object]:
        total = {"start": start, "end": start + 1, "bits_per_second": rate, **more}
        return {"streams": [{"rtt": 40_000}, {"rtt": 60_000}], "sum": total}

    omitted = interval(0, 1e9, omitted=True)
    document = {"intervals": [omitted, interval(1, 5e6), interval(2, 7e6)]}
    found = read(write("a.json", json.dumps(document)))
    assert values(found, "rate") == [5e6, 7e6]
    assert values(found, "rtt") == [0.05, 0.05]
    assert found.start_s.tolist() == [0, 1]
    lossy = {"intervals": [interval(0, 5e6, lost_percent=2.5)]}
    assert values(read(write("b.json", json.dumps(lossy))), "loss") == [0.025]
    with pytest.raises(QuantityError, match="iperf3 says"):
        read(write("c.json", json.dumps({"intervals": [], "error": "unable to connect"})))


def test_irtt_tells_both_ways_where_clocks_agree(write: Write) -> None:
    def trip(number: int, lost: str, **delay: int) -> dict[str, object]:
        return {"seqno": number, "lost": lost, "delay": delay}

    trips = [
        trip(0, "false", rtt=30_000_000, send=10_000_000, receive=20_000_000),
        trip(1, "true"),
        trip(2, "false", rtt=34_000_000, send=12_000_000, receive=22_000_000),
    ]
    document = {"config": {"params": {"interval": 20_000_000}}, "round_trips": trips}
    found = read(write("a.json", json.dumps(document)))
    assert found.start_s.tolist() == [0, 0.02, 0.04]
    assert values(found, "loss") == [0, 1, 0]
    assert values(found, "up")[2] == 0.012
    assert np.isnan(found.columns[0].values[1])
    # A log whose start was cut off begins at 0, too.
    cut = {**document, "round_trips": trips[:0:-1]}
    assert read(write("cut.json", json.dumps(cut))).start_s.tolist() == [0, 0.02]
    trips[0]["delay"]["send"] = -5  # type: ignore[index]
    skewed = read(write("b.json", json.dumps(document)))
    assert [one.name for one in skewed.columns] == ["rtt", "down", "loss"]


def test_ping_misses_replies_by_their_numbers(write: Write) -> None:
    lines = [
        "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.",
        "[100.020] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=20.0 ms",
        "[100.225] 64 bytes from 192.0.2.1: icmp_seq=2 ttl=57 time=25 ms",
        "[100.225] 64 bytes from 192.0.2.1: icmp_seq=2 ttl=57 time=26 ms (DUP!)",
        "[100.622] 64 bytes from 192.0.2.1: icmp_seq=4 ttl=57 time=22 ms",
    ]
    found = read(write("a.txt", "\n".join(lines)))
    assert found.start_s == pytest.approx([0, 0.2, 0.4, 0.6])
    assert values(found, "loss") == [0, 0, 1, 0]
    assert values(found, "rtt")[1] == 0.025
    wrapped = [f"64 bytes from h: icmp_seq={n} ttl=9 time=1 ms" for n in (65534, 65535, 0, 1)]
    again = read(write("b.txt", "\n".join(wrapped)))
    assert values(again, "loss") == [0, 0, 0, 0]
    assert "taken to be 1 s apart" in again.notes[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0,10\n1,ten\n", 'line 2: "ten" in column "rate_mbps" is not a number'),
        ("0,10\n1\n", "line 2: 1 cells, and 2 columns"),
        ("0,10\n2,10\n1,10\n", "line 3: 1 s is not after 2 s"),
        ("when,rate\n0,1\n", "line 1: no column is a time"),
        ("time,rate\nsoon,1\n", 'line 2: "soon" is no time'),
        ("time,rate\n0,-1\n", "a rate below 0"),
        ("time,loss\n0,3\n", 'a loss of 3 — a column of percentages ends in "_percent"'),
        ("time,rate\n", "it needs a sample"),
        ("time,rate\n0,\n", "it holds no number"),
        ("time,rate\n0,inf\n", "an infinite value"),
        ("0,1,2,3,4\n", "5 columns"),
        ("", "empty"),
        ('{"intervals": [', "line 1: not JSON"),
        ('{"a": 1}', "no intervals and no round trips"),
        ("PING 192.0.2.1\nnothing came\n", "no reply"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(write: Write, text: str, said: str) -> None:
    path = write("bad.csv", text)
    with pytest.raises(QuantityError) as caught:
        read(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert status(["link", "show", str(path)]) == 2


def test_a_round_trip_through_both_formats_keeps_the_rate(write: Write) -> None:
    original = read(write("a.csv", "0,12.112\n1,6.056\n2,0\n3,24.224\n"))
    text = as_mahimahi(cut(original, original.columns[0], None), "a.csv")
    # 1000, 500, 0 and 2000 full packets.
    times = [int(line) for line in text.split()]
    assert len(times) == 3500
    assert sum(2000 < at <= 3000 for at in times) == 0
    back = read(write("b.mahi", text), step_s=1.0)
    assert back.columns[0].values / 1e6 == pytest.approx(
        [12.112, 6.056, 0, 24.224], rel=2e-3, abs=0.02
    )
    table = read(write("c.csv", as_table(back)))
    assert table.columns[0].values == pytest.approx(back.columns[0].values)
    assert table.end_s == pytest.approx(back.end_s)


SCENARIO = """
duration = "10 s"
[bottleneck]
rate  = { file = "link.csv", column = "down_mbps", scale = 2.0 }
delay = { file = "link.csv", column = "rtt_ms", scale = 0.5 }
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "download"
controller = "cubic"
rtt = "60 ms"
"""
LINK = "time_s,down_mbps,rtt_ms\n0,10,40\n1,20,60\n2,5,50\n"


def test_a_link_follows_its_file_until_the_end_of_the_run(write: Write, tmp_path: Path) -> None:
    write("link.csv", LINK)
    (run,) = load_text(SCENARIO, name=str(tmp_path / "s.toml")).plan().runs
    (link,) = run.spec["links"]
    steps = link["capacity"]["steps"]
    assert [(s["at_ns"] // 10**9, s["rate_bps"] // 10**6) for s in steps[:4]] == [
        (0, 20), (1, 40), (2, 10), (3, 20),
    ]  # fmt: skip
    assert len(steps) == 10
    assert [s["delay_ns"] // 10**6 for s in link["delay"]["steps"][:4]] == [20, 30, 25, 20]
    # The rtt holds at the median delay of 25 ms, and a BDP is of the mean rate of 23.3 Mbit/s.
    (flow,) = run.spec["flows"]
    assert flow["base_delay_ns"] == 35_000_000
    assert link["queue"]["parameters"]["limit"] == {"bytes": 23_333_333 * 60 // 8000}
    summary_of = json.loads(_core.run(json.dumps(run.spec)).summary)
    overall = summary_of["links"][0]["phases"]["overall"]
    assert 0.5 < overall["utilisation"] <= 1


def test_losses_come_from_the_same_file_as_rate_and_delay(write: Write, tmp_path: Path) -> None:
    write("link.csv", "time_s,down_mbps,rtt_ms,lost_percent\n0,10,40,0\n1,20,60,50\n2,5,50,200\n")
    text = SCENARIO.replace("queue =", 'loss = { file = "link.csv" }\nqueue =')
    with pytest.raises(ScenarioError, match=r"bottleneck\.loss: .*a loss of 2"):
        load_text(text, name=str(tmp_path / "s.toml"))
    write("link.csv", "time_s,down_mbps,rtt_ms,lost_percent\n0,10,40,0\n1,20,60,50\n2,5,50,2\n")
    (run,) = load_text(text, name=str(tmp_path / "s.toml")).plan().runs
    (link,) = run.spec["links"]
    assert link["loss"] is None
    steps = [(it["at_ns"] // 10**9, it["probability"]) for it in link["loss_steps"]]
    assert steps[:4] == [(0, 0.0), (1, 0.5), (2, 0.02), (3, 0.0)]
    scaled = text.replace(
        'loss = { file = "link.csv" }', 'loss = { file = "link.csv", scale = 4.0 }'
    )
    (more,) = load_text(scaled, name=str(tmp_path / "s.toml")).plan().runs
    assert [it["probability"] for it in more.spec["links"][0]["loss_steps"][:3]] == [0.0, 1.0, 0.08]
    # 625 datagrams a second: three times 1 s at 50 % and at 2 % are 975.
    source = 'source = { kind = "cbr", rate = "1 Mbit/s", size = "200 B" }'
    voice = text.replace('controller = "cubic"', f'controller = "none"\n{source}')
    (run,) = load_text(voice, name=str(tmp_path / "s.toml")).plan().runs
    found = json.loads(_core.run(json.dumps(run.spec)).summary)["links"][0]["phases"]["overall"]
    assert 900 < found["dropped_loss_packets"] < 1_050


def test_opportunities_of_a_whole_file_stay_what_they_are(write: Write, tmp_path: Path) -> None:
    write("link.mahi", "1\n2\n4\n")
    text = SCENARIO.replace('"link.csv", column = "down_mbps", scale = 2.0', '"link.mahi"')
    text = text.replace('{ file = "link.csv", column = "rtt_ms", scale = 0.5 }', '"5 ms"')
    (run,) = load_text(text, name=str(tmp_path / "s.toml")).plan().runs
    assert run.spec["links"][0]["capacity"]["opportunities_ms"] == [1, 2, 4]
    scaled = text.replace('"link.mahi"', '"link.mahi", scale = 2.0')
    with pytest.raises(ScenarioError, match=r's.toml:4: bottleneck.rate: .*"scale" is not of'):
        load_text(scaled, name=str(tmp_path / "s.toml"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("down_mbps", "down"), 'bottleneck.rate: .*no column "down" — did you mean "down_mbps"'),
        (('column = "rtt_ms"', 'column = "down_mbps"'), "is a rate, not a delay"),
        (('file = "link.csv", column = "rtt_ms"', 'file = "no.csv"'), "no such file"),
        (
            ("scale = 0.5", "scal = 0.5"),
            'bottleneck.delay.scal: unknown key — did you mean "scale"',
        ),
        (("scale = 0.5", 'gaps = "cut"'), "bottleneck.delay.gaps: .*not known here"),
        (("scale = 0.5", 'from = "9 s"'), "nothing from 9 s"),
        (("scale = 0.5", 'where = { day = "1" }'), 'no column "day"'),
        (
            ("queue =", 'loss = { file = "link.csv" }\nqueue ='),
            r"bottleneck\.loss: .*of its columns none is a loss",
        ),
    ],
)
def test_mistakes_name_key_and_file(
    write: Write, tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    write("link.csv", LINK)
    with pytest.raises(ScenarioError, match=said):
        load_text(SCENARIO.replace(*change), name=str(tmp_path / "s.toml"))


def test_distributions_are_those_of_time() -> None:
    found = np.array([1.0, 3.0, 2.0])
    weights = np.array([1.0, 1.0, 2.0])
    assert quantiles(found, weights, [0.25, 0.5, 0.76]) == [1.0, 2.0, 3.0]
    one = np.ones(3)
    assert ks_distance(found, found, weights, weights) == 0
    # A third of the time beside a quarter at 1, and two thirds beside three quarters at 2.
    assert ks_distance(found, found, one, weights) == pytest.approx(1 / 12)
    assert ks_distance(np.zeros(2), np.ones(5), np.ones(2), np.ones(5)) == 1


def correlated(samples: int) -> Recording:
    """A rate of three levels that holds for 20 steps on average, with a delay that goes with it."""
    random = np.random.Generator(np.random.PCG64(3)).random((samples, 2))
    level, levels = 0, []
    for leave, which in random:
        level = int(which * 3) if leave < 0.05 else level
        levels.append(level)
    rate = np.array([1e6, 5e6, 20e6])[levels] * (0.9 + 0.2 * random[:, 0])
    start_s = np.arange(samples) * 0.1
    columns = (Column("rate", "rate", rate), Column("rtt", "delay", 1e4 / rate))
    return Recording("made", "made", start_s, start_s + 0.1, columns)


def test_what_is_made_is_like_what_it_was_made_of() -> None:
    original = correlated(20_000)
    chain = markov_chain.fit_chain(original, 16)
    made = chain.recording(2_000.0, seed=1)
    for old, new in zip(original.columns, made.columns, strict=True):
        parts = [cut(original, old, None), cut(made, new, None)]
        one, other = parts
        distance = ks_distance(one.values, other.values, one.lasting_s, other.lasting_s)
        assert distance < 0.05
        assert summary(other).mean == pytest.approx(summary(one).mean, rel=0.05)
    assert made.columns[0].values * made.columns[1].values == pytest.approx(1e4)
    lag = [
        float(np.corrcoef(one.columns[0].values[:-5], one.columns[0].values[5:])[0, 1])
        for one in (original, made)
    ]
    assert lag[1] == pytest.approx(lag[0], abs=0.1)
    same, other = chain.recording(60.0, seed=1), chain.recording(60.0, seed=2)
    assert (same.columns[0].values == made.columns[0].values[:600]).all()
    assert (same.columns[0].values != other.columns[0].values).any()


def test_rates_hold_as_long_as_they_are_told_to() -> None:
    made = markov_chain.chain_between_rates([1e6, 2e6, 4e6], stay_s=2.0, step_s=0.1).recording(
        20_000, seed=5
    )
    part = cut(made, made.columns[0], None)
    assert float(part.lasting_s.mean()) == pytest.approx(2.0, rel=0.05)
    assert summary(part).mean == pytest.approx(7e6 / 3, rel=0.03)


def test_the_commands(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gapped = write("g.csv", "start,end,down_mbps,loss\n0,1,10,0\n1,2,20,0.5\n9,10,30,0\n")
    figure = tmp_path / "figure.svg"
    assert status(["link", "show", str(gapped), "-o", str(figure)]) == 0
    shown = capsys.readouterr().out
    assert figure.read_text().startswith("<?xml")
    assert "gaps: 1 of 7 s in all (2…9 s)" in shown
    assert re.search(r"down_mbps +Mbit/s +3 +20 +8.165 +10", shown)
    mahi = tmp_path / "out.mahi"
    assert status(["link", "convert", str(gapped), "-o", str(mahi)]) == 2
    assert "a gap of 7 s" in capsys.readouterr().err
    assert status(["link", "convert", str(gapped), "--gaps", "stop", "-o", str(mahi)]) == 0
    assert read(mahi).length_s == pytest.approx(10, abs=0.01)
    made = tmp_path / "made.csv"
    more = ["-o", str(tmp_path / "compared.png"), "--duration", "100 s", "-o", str(made)]
    assert status(["link", "generate", "--fit", str(gapped), *more]) == 0
    said = capsys.readouterr().out
    assert "(Kolmogorov-Smirnov, 0 to 1): " in said
    assert "down_mbps 0." in said
    assert [one.name for one in read(made).columns] == ["down_mbps", "loss_percent"]
    assert status(["link", "generate", "--duration", "1 s", "-o", str(made)]) == 2
    assert (
        status(["link", "generate", "--rates", "fast", "--duration", "1 s", "-o", str(made)]) == 2
    )


@MEASURED
def test_measured_files_are_read() -> None:
    rates = read(SHARED / "starlink-on-the-road-iperf.csv", where={"priority": "1"})
    download = summary(cut(rates, rates.column("rate", "download_mbps"), "close"))
    assert rates.start_s.size == 5640
    assert 150e6 < download.median < 350e6
    pings = read(SHARED / "starlink-on-the-road-ping.csv")
    assert {one.quantity for one in pings.columns} == {"delay", "loss"}
    for path in sorted((SHARED / "traces").iterdir()):
        recording = read(path)
        chain = markov_chain.fit_chain(recording, 16).recording(recording.length_s * 4, seed=1)
        old, new = recording.columns[0], chain.columns[0]
        one, other = cut(recording, old, None), cut(chain, new, None)
        assert ks_distance(one.values, other.values, one.lasting_s, other.lasting_s) < 0.06, path


def test_a_rate_of_too_many_packets_is_not_converted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fast.csv").write_text("time,down_mbps\n0,1\n1,9e12\n2,1\n")
    words = ["link", "convert", str(tmp_path / "fast.csv"), "-o", str(tmp_path / "fast.mahi")]
    assert status(words) == 2
    assert "packets: at most 4000000" in capsys.readouterr().err
