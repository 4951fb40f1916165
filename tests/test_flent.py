"""Files of flent: measured as runs are, and runs written as such files."""

import gzip
import json

import jostle
import pytest
from jostle.cli import status
from jostle.errors import InputError
from jostle.measurements.flent_export import write

T0 = 1_700_000_000.0
RUN = """
title = "A download and pings"
duration          = "10 s"
sampling_interval = "500 ms"
bottleneck = { rate = "20 Mbit/s", queue = { kind = "drop_tail", limit = "1 BDP" } }
[[flows]]
name = "download"
controller = "cubic"
rtt = "50 ms"
[[flows]]
name = "pings"
controller = "none"
rtt = "50 ms"
source = { kind = "ping", size = "56 B", period = "200 ms" }
"""


def flent() -> dict:
    """What flent 2 writes of an upload beside pings, as far as it is read."""
    upload = [
        {
            "t": T0 + at,
            "val": 8.0 if at < 6 else 16.0,
            "dur": 1.0,
            "tcp_cwnd": 20.0,
            "tcp_rtt": 30.0,
        }
        for at in range(2, 10)
    ]
    pings = [{"t": T0 + at + 0.04, "val": 40.0, "seq": at + 1} for at in range(9) if at != 4]
    x_values = [0.5 * at for at in range(20)]
    return {
        "version": 4,
        "metadata": {
            "NAME": "tcp_nup",
            "T0": "2023-11-14T22:13:20.000000Z",
            "SERIES_META": {
                "TCP upload::1": {"UNITS": "Mbits/s", "CONG_CONTROL": "cubic", "TCP_MSS": 1000},
                "TCP upload sum": {"UNITS": "Mbits/s"},
                "Ping (ms) ICMP": {"UNITS": "ms"},
            },
        },
        "x_values": x_values,
        "results": {
            name: [None] * 20 for name in ("TCP upload::1", "TCP upload sum", "Ping (ms) ICMP")
        },
        "raw_values": {"TCP upload::1": upload, "Ping (ms) ICMP": pings},
    }


def packed(path, document):
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path


def of(results, flow):
    (one,) = [f for f in results.results[0].run.summary["flows"] if f["name"] == flow]
    return one, one["phases"]["overall"]


def test_rates_windows_and_round_trips_of_flent_are_measured(tmp_path):
    results = jostle.analyze(packed(tmp_path / "a.flent.gz", flent()))
    assert results.flow_names(0) == ["Ping (ms) ICMP", "TCP upload::1"]
    one, seen = of(results, "TCP upload::1")
    assert one["controller"] == "cubic"
    assert one["start_s"] == pytest.approx(1.0)
    # 5 s at 8 and 3 s at 16 Mbit/s, of which the file's times see all.
    rates = results.series("TCP upload::1", "goodput")["seed_0"].to_list()
    assert rates[:2] == [0, 0]
    assert rates[2:10] == pytest.approx([8e6] * 8)
    assert rates[12:16] == pytest.approx([16e6] * 4)
    assert seen["rtt_mean_s"] == pytest.approx(0.030)
    assert seen["cwnd_mean_bytes"] == pytest.approx(20_000)
    one, seen = of(results, "Ping (ms) ICMP")
    assert one["pings"]["sent"] == 9
    assert one["pings"]["lost"] == 1
    assert seen["rtt_mean_s"] == pytest.approx(0.040)
    # The payload of 8 answers, as a run's pings have it, in the 9.5 s of the file.
    assert seen["goodput_bps"] == pytest.approx(8 * 8 * 56 / 9.5)
    assert any("retransmissions" in note for note in results.said)


def test_sequence_numbers_of_pings_wrap(tmp_path):
    document = flent()
    for ping in document["raw_values"]["Ping (ms) ICMP"]:
        ping["seq"] = (ping["seq"] + 65_531) % 65_536
    one, seen = of(jostle.analyze(packed(tmp_path / "a.flent.gz", document)), "Ping (ms) ICMP")
    assert (one["pings"]["sent"], one["pings"]["lost"]) == (9, 1)
    assert seen["rtt_mean_s"] == pytest.approx(0.040)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 1}, "version 1"),
        ({"x_values": []}, "no time passes"),
        ({"x_values": [2.0, 1.0]}, "decrease"),
        ({"x_values": [1e12]}, "longer than a year"),
        ({"x_values": [1, None]}, "flent writes"),
        ({"metadata": {"T0": "yesterday"}}, "in UTC"),
        ({"metadata": {}}, "TIME"),
        ({"raw_values": {}}, "neither rates"),
        ({"raw_values": []}, "flent writes"),
        ({"raw_values": {"TCP upload::1": [{"t": T0, "val": -1.0, "dur": 1}]}}, "-1.0 Mbit/s"),
        ({"raw_values": {"TCP upload::1": [{"t": T0, "val": 1.0, "dur": -1}]}}, "for -1.0 s"),
        (
            {"raw_values": {"TCP upload::1": [{"t": T0, "val": 1, "tcp_cwnd": -7}]}},
            "tcp_cwnd of -7",
        ),
        ({"raw_values": {"Ping (ms) ICMP": [{"t": T0, "val": 1e12}]}}, "a round trip of"),
        (
            {"raw_values": {"Ping (ms) ICMP": [{"t": T0, "val": 1, "seq": s} for s in (1, 10**9)]}},
            "2 are known",
        ),
    ],
)
def test_files_that_flent_did_not_write_are_refused(change, words, tmp_path):
    with pytest.raises(InputError, match=words):
        jostle.analyze(packed(tmp_path / "a.flent.gz", flent() | change))


def test_a_run_that_flent_opens_is_measured_as_the_run(tmp_path, capsys):
    scenario = tmp_path / "run.toml"
    scenario.write_text(RUN)
    store = tmp_path / "store"
    results = jostle.run(str(scenario), store=str(store))
    run = results.runs_of(0)[0].run
    path = tmp_path / "run.flent.gz"
    command = ["store", "export", str(path), "--run", run.run_id, "--store", str(store)]
    assert status(command) == 0
    assert "2 flows" in capsys.readouterr().out

    document = json.loads(gzip.decompress(path.read_bytes()))
    # What flent's own reader asks for, in the order in which it does.
    assert document["version"] == 4
    metadata = document["metadata"]
    assert {"NAME", "TITLE", "TIME", "T0", "DATA_FILENAME", "STEP_SIZE"} <= metadata.keys()
    assert all(metadata[time].endswith(".000000Z") for time in ("TIME", "T0"))
    names = {"TCP upload::download", "TCP upload sum", "Ping (ms) ICMP"}
    assert document["results"].keys() == metadata["SERIES_META"].keys() == names
    length = len(document["x_values"])
    assert length == 20
    assert all(len(values) == length for values in document["results"].values())
    assert all("t" in value for values in document["raw_values"].values() for value in values)

    again = jostle.analyze(path)
    _, was = of(results, "download")
    one, seen = of(again, "TCP upload::download")
    assert one["controller"] == "cubic"
    assert seen["goodput_bps"] == pytest.approx(was["goodput_bps"], rel=1e-4)
    # Smoothed RTTs at the ends of intervals stand for those of all ACKs.
    assert seen["rtt_mean_s"] == pytest.approx(was["rtt_mean_s"], rel=0.05)
    # A mean round trip for each interval is a ping of it.
    _, seen = of(again, "Ping (ms) ICMP")
    assert seen["goodput_bps"] == pytest.approx(20 * 8 * 56 / 10, rel=0.06)
    first = path.read_bytes()
    write(run, path)
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("name", "run", "words"),
    [("a.flent.gz", "nothing", "no such run"), ("a.csv", None, "end in .flent.gz")],
)
def test_what_cannot_be_exported_is_said(name, run, words, tmp_path, capsys):
    scenario = tmp_path / "run.toml"
    scenario.write_text(RUN)
    store = tmp_path / "store"
    known = jostle.run(str(scenario), store=str(store)).runs_of(0)[0].run.run_id
    command = ["store", "export", str(tmp_path / name), "--run", run or known]
    assert status([*command, "--store", str(store)]) == 2
    assert words in capsys.readouterr().err
