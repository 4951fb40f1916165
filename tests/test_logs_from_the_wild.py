"""Logs that other tools wrote, in the versions and with the options that people use."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import jostle
import pytest
from jostle.cli import status
from jostle.errors import InputError
from jostle.scenario.parsing.graph_files import read_graph

LOGS = Path(__file__).parent / "logs"


def measured(path: Path) -> tuple[dict[str, Any], dict[str, Any], float]:
    """The only flow, its measures, and the length of its log in seconds."""
    (result,) = jostle.analyze(path).results
    (flow,) = result.run.summary["flows"]
    return flow, flow["phases"]["overall"], result.run.spec["duration_ns"] / 1e9


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


OMITTED = json.loads((LOGS / "iperf3-omit.json").read_text())


def test_iperf3_leaves_out_what_it_omits():
    path = LOGS / "iperf3-omit.json"
    flow, seen, lasted_s = measured(path)
    sums = OMITTED["end"]["sum_sent"]
    assert flow["controller"] == "cubic"
    assert seen["goodput_bps"] * lasted_s / 8 == pytest.approx(sums["bytes"])
    assert seen["retransmitted_packets"] == sums["retransmits"]
    assert lasted_s == pytest.approx(sums["seconds"], abs=1e-3)
    assert any("3 omitted intervals (-O)" in note for note in jostle.analyze(path).said)


def restarted(*omitted: bool) -> dict[str, Any]:
    document = copy.deepcopy(OMITTED)
    document["intervals"] = document["intervals"][: len(omitted)]
    for one, mark in zip(document["intervals"], omitted, strict=True):
        one["streams"][0]["omitted"] = mark
    return document


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ((True, True), "all its intervals are omitted"),
        ((True, False, True), "follows a measured one"),
        ((), "no intervals"),
    ],
)
def test_other_places_of_omitted_intervals_are_refused(marks, words, tmp_path):
    with pytest.raises(InputError, match=words):
        jostle.analyze(written(tmp_path / "a.json", restarted(*marks)))


def test_a_report_that_begins_late_counts_from_its_beginning(tmp_path):
    document = copy.deepcopy(OMITTED)
    for one in document["intervals"][3:]:
        one["streams"][0]["start"] += 3
        one["streams"][0]["end"] += 3
    flow, seen, lasted_s = measured(written(tmp_path / "a.json", document))
    assert lasted_s == pytest.approx(10, abs=1e-3)
    assert seen["goodput_bps"] == pytest.approx(1.8476e9, rel=1e-4)
    assert flow["start_s"] == 0


T0 = 1_700_000_000.0


def flent(version: int) -> dict[str, Any]:
    """The same test as flent wrote it in a version of its format."""
    old = version < 4
    raw = {
        "TCP upload": [{"t": T0 + at, "val": 8.0, "dur": 1.0} for at in range(2, 10)],
        "Ping (ms) UDP BE": [
            {"t": T0 + at, "val": (0.0 if at == 4 else 25.0), "dur": 1.0}
            if old
            else {"t": T0 + at, "val": (None if at == 4 else 40.0), "dur": 1.0}
            for at in range(1, 9)
        ],
        "HTTP latency": [{"t": T0 + at, "val": 0.004 if old else 4.0} for at in range(9)],
        "Ping (ms) ICMP": [{"t": T0 + at + 0.05, "val": 50.0, "seq": at} for at in range(9)],
    }
    # Version 2 has local times: this one is two hours and a half ahead of UTC.
    time = "2023-11-15T00:43:20.000000" if version == 2 else "2023-11-14T22:13:20.000000Z"
    units = {name: {"UNITS": "Mbits/s" if name == "TCP upload" else "ms"} for name in raw}
    return {
        "version": version,
        "metadata": {"NAME": "test", "T0": time, "SERIES_META": units},
        "x_values": [0.5 * at for at in range(20)],
        "results": {name: [None] * 20 for name in raw},
        "raw_values": raw,
    }


def of_flent(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    (result,) = jostle.analyze(path).results
    return {flow["name"]: flow for flow in result.run.summary["flows"]}


@pytest.mark.parametrize("version", [2, 3])
def test_older_versions_of_flent_say_the_same(version, tmp_path):
    new = of_flent(tmp_path / "new.flent.gz", flent(4))
    old = of_flent(tmp_path / "old.flent.gz", flent(version))
    assert old == new
    assert new["Ping (ms) UDP BE"]["phases"]["overall"]["rtt_mean_s"] == pytest.approx(0.040)
    assert new["HTTP latency"]["phases"]["overall"]["rtt_mean_s"] == pytest.approx(0.004)
    said = jostle.analyze(tmp_path / "old.flent.gz").said
    assert any("Ping (ms) UDP BE: each RTT is a mean" in note for note in said)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 1}, "version 1 of flent's format: versions 2 to 4 are read"),
        ({"version": 5}, "version 5"),
        ({"version": "x"}, "version x"),
        ({"metadata": {"T0": "2023-11-17T00:13:20"}}, "in any time zone"),
    ],
)
def test_other_versions_and_times_of_flent_are_named(change, words, tmp_path):
    path = tmp_path / "a.flent.gz"
    path.write_bytes(gzip.compress(json.dumps(flent(2) | change).encode()))
    with pytest.raises(InputError, match=words):
        jostle.analyze(path)


PACKETS = {"draft-01.qlog": (10, 11), "picoquic-draft-00.qlog": (77, 0)}


@pytest.mark.parametrize("name", PACKETS)
def test_qlogs_with_event_fields_are_measured(name):
    sent, received = PACKETS[name]
    document = json.loads((LOGS / name).read_text())
    events = [event[2] for event in document["traces"][0]["events"]]
    assert (events.count("packet_sent"), events.count("packet_received")) == (sent, received)
    _, seen, lasted_s = measured(LOGS / name)
    assert 0 < seen["sent_packets"] <= max(sent, received)
    assert lasted_s == pytest.approx(10.09 if name == "draft-01.qlog" else 0, abs=0.01)
    notes = " ".join(jostle.analyze(LOGS / name).said)
    assert ("all its events have the same time" in notes) == (name != "draft-01.qlog")


def of_events(version: str) -> list[tuple[float, str, str, dict[str, Any]]]:
    """A download of three packets, one of which is sent again: time in ms, names and data."""

    def sent(number: int, offset: int) -> dict[str, Any]:
        stream = "id" if version == "picoquic" else "stream_id"
        frame = {"frame_type": "stream", stream: 0, "offset": offset, "length": 1000}
        return {
            "packet_type": "1RTT",
            "header": {"packet_number": number, "packet_size": 1030},
            "frames": [frame],
        }

    acked = {
        "packet_type": "1RTT",
        "header": {"packet_number": 0, "packet_size": 30},
        "frames": [{"frame_type": "ack", "acked_ranges": [[0, 0], [2, 2]]}],
    }
    rtts = {"latest_rtt": 40, "smoothed_rtt": 40, "min_rtt": 40}
    return [
        (0.0, "transport", "packet_sent", sent(0, 0)),
        (10.0, "transport", "packet_sent", sent(1, 1000)),
        (20.0, "transport", "packet_sent", sent(2, 2000)),
        (60.0, "transport", "packet_received", acked),
        (60.0, "recovery", "metrics_updated", rtts | {"cwnd": 5000}),
        (70.0, "transport", "packet_sent", sent(3, 1000)),
    ]


def texts(value: Any) -> Any:
    """Every number as text, as pcap2qlog writes them."""
    if isinstance(value, dict):
        return {key: texts(one) for key, one in value.items()}
    if isinstance(value, list):
        return [texts(one) for one in value]
    return str(value) if isinstance(value, int | float) else value


def old_form(form: str) -> dict[str, Any]:
    """The download in draft-00 or draft-01, as different programs write it."""
    events = of_events(form)
    in_us = form in ("picoquic", "mvfst")
    rows = []
    before = 0.0
    for time, category, event, content in events:
        name, data = event, content
        if in_us and name == "metrics_updated":
            data = {key: value * (1000 if "rtt" in key else 1) for key, value in data.items()}
        if form == "mvfst" and name == "metrics_updated":
            data["current_cwnd"] = data.pop("cwnd")
            name = "congestion_metric_update"
        shown: Any = time * 1000 if in_us else time
        if form == "deltas":
            shown, before = time - before, time
        row = [shown, category, name, data]
        if form == "pcap2qlog":
            row = [str(time), category, name, "line", texts(data)]
        rows.append(row)
    fields = {
        "picoquic": ["relative_time", "CATEGORY", "EVENT_TYPE", "DATA"],
        "pcap2qlog": ["relative_time", "category", "event", "trigger", "data"],
        "deltas": ["delta_time", "category", "event", "data"],
    }.get(form, ["relative_time", "category", "event", "data"])
    return {
        "qlog_version": "draft-01" if form == "pcap2qlog" else "draft-00",
        "traces": [
            {
                "vantage_point": {"type": "client"},
                "configuration": {"time_units": "us" if in_us else "ms"},
                "common_fields": {"reference_time": "1564682471.651907"},
                "event_fields": fields,
                "events": rows,
            }
        ],
    }


def new_form(form: str) -> str:
    """The download as 0.3 or 0.4 have it: a document, lines, or a sequence of long records."""
    events = [
        {"time": time, "name": f"{category}:{name}", "data": data}
        for time, category, name, data in of_events("")
    ]
    for one in events:
        if one["name"].startswith("recovery"):
            one["data"]["congestion_window"] = one["data"].pop("cwnd")
        else:
            one["data"]["header"]["packet_type"] = one["data"].pop("packet_type")
            one["data"]["raw"] = {"length": one["data"]["header"].pop("packet_size")}
    version, _, layout = form.partition(" ")
    if layout == "JSON":
        trace = {"vantage_point": {"type": "client"}, "events": events}
        return json.dumps({"qlog_version": version, "qlog_format": "JSON", "traces": [trace]})
    header = {"qlog_version": version, "qlog_format": layout, "trace": {}}
    if layout == "NDJSON":
        return "".join(f"{json.dumps(one)}\n" for one in (header, *events))
    indent = 1 if layout == "JSON-SEQ, indented" else None
    return "".join(f"\x1e{json.dumps(one, indent=indent)}\n" for one in (header, *events))


OLD = ("picoquic", "mvfst", "pcap2qlog", "deltas", "plain")
NEW = tuple(
    f"{version} {layout}"
    for version in ("0.3", "0.4")
    for layout in ("JSON", "NDJSON", "JSON-SEQ", "JSON-SEQ, indented")
)


@pytest.mark.parametrize("form", [*OLD, *NEW])
def test_every_version_of_qlog_says_the_same(form, tmp_path):
    path = tmp_path / "a.qlog"
    path.write_text(json.dumps(old_form(form)) if form in OLD else new_form(form))
    _, seen, lasted_s = measured(path)
    assert seen["sent_packets"] == 4
    assert seen["retransmitted_packets"] == 1
    assert seen["rtt_mean_s"] == pytest.approx(0.040)
    assert seen["cwnd_mean_bytes"] == pytest.approx(5000)
    assert lasted_s == pytest.approx(0.070, abs=1e-6)
    assert seen["goodput_bps"] * lasted_s / 8 == pytest.approx(1000)


@pytest.mark.parametrize("version", ["1.7", "draft-09", "urn:example:other"])
@pytest.mark.parametrize(
    "events", [[], [{"t": 0}], [{"time": 0, "name": "other", "data": {}}], [[1, 2]], ["x"]]
)
def test_a_version_that_is_not_read_is_named(version, events, tmp_path, capsys):
    path = written(tmp_path / "a.qlog", {"qlog_version": version, "traces": [{"events": events}]})
    assert status(["analyze", str(path)]) == 2
    message = capsys.readouterr().err
    assert f"version {version} is not read: draft-00 to draft-02, 0.3, 0.4" in message
    assert "Error" not in message


def test_a_version_that_is_not_known_is_measured_if_its_events_are(tmp_path):
    document = json.loads(new_form("0.4 JSON")) | {"qlog_version": "0.5"}
    _, seen, _ = measured(written(tmp_path / "a.qlog", document))
    assert seen["sent_packets"] == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"event_fields": ["time"]}, "4 values for 1 `event_fields`"),
        ({"event_fields": 7}, "no clock of qlog"),
        ({"configuration": {"time_units": "days"}}, "times in days, not in ms or us"),
        ({"events": [["soon", "transport", "packet_sent", {}]]}, "soon"),
        ({"events": [[0, "transport", "packet_sent", 3]]}, "is no object"),
    ],
)
def test_damaged_old_qlogs_are_refused_without_names_of_python(change, words, tmp_path):
    document = old_form("plain")
    document["traces"][0] |= change
    with pytest.raises(InputError, match=words) as caught:
        jostle.analyze(written(tmp_path / "a.qlog", document))
    assert "Error" not in str(caught.value)


def _seen(path):
    """The first flow's measures, the totals and the series of a log."""
    (result,) = jostle.analyze(path).results
    summary = result.run.summary
    phase = summary["flows"][0]["phases"]["overall"]
    return phase, summary["totals"]["overall"]["total_retransmitted_packets"], result.run.flows


def test_what_a_log_does_not_contain_is_absent(tmp_path):
    """A receiver's `ss` and iperf3 report neither cwnd nor retransmissions: absent, never 0."""
    examples = Path(__file__).parent.parent / "examples" / "measurement"
    stream = {"socket": 5, "start": 0, "end": 1, "bytes": 1448_000}
    told = {
        "start": {"test_start": {"protocol": "TCP"}, "connected": [{"socket": 5}]},
        "intervals": [{"streams": [stream]}, {"streams": [stream | {"start": 1, "end": 2}]}],
    }
    silent = tmp_path / "silent.json"
    silent.write_text(json.dumps(told))
    for path in (examples / "down-cubic.log.gz", silent):
        phase, total, series = _seen(path)
        assert phase["goodput_bps"] > 0
        assert phase["cwnd_mean_bytes"] is None
        assert phase["retransmitted_packets"] is None
        assert phase["retransmission_ratio"] is None
        assert total is None
        for column in ("cwnd_bytes", "retransmitted_packets", "retransmission_ratio"):
            assert series[column].null_count() == series.height
    phase, total, series = _seen(examples / "up-cubic.log.gz")
    assert phase["cwnd_mean_bytes"] > 10_000
    assert phase["retransmitted_packets"] == total == 14
    assert series["cwnd_bytes"].null_count() < series.height
    # A reported 0 is a value.
    for interval in told["intervals"]:
        interval["streams"][0].update(retransmits=0, snd_cwnd=14_480)
    silent.write_text(json.dumps(told))
    phase, total, _ = _seen(silent)
    assert phase["retransmitted_packets"] == total == 0


def test_lost_pings_are_in_the_table(capsys):
    path = LOGS / "ping-loss.txt"
    flow, *_ = measured(path)
    numbers = [int(line.split("icmp_seq=")[1].split()[0])
               for line in path.read_text().splitlines() if "icmp_seq=" in line]  # fmt: skip
    lost = numbers[-1] - numbers[0] + 1 - len(numbers)
    assert flow["pings_lost"] == flow["pings"]["lost"] == lost > 0
    assert status(["analyze", str(path)]) == 0
    shown = capsys.readouterr().out
    (header,) = [line for line in shown.splitlines() if "median RTT" in line]
    assert "pings lost" in header
    verdict, row = (line for line in shown.splitlines() if line.startswith("ping "))
    assert verdict.startswith("ping 10.0.0.1: RTT 1058 ms")
    assert str(lost) in row.split()
    assert "--repeats" not in shown


def test_the_footer_offers_options_of_the_command(tmp_path, capsys):
    path = written(tmp_path / "a.json", OMITTED)
    assert status(["analyze", str(path), str(LOGS / "iperf3-omit.json")]) == 0
    shown = capsys.readouterr().out
    assert status(["analyze", "--help"]) == 0
    known = capsys.readouterr().out
    offered = {word for line in shown.splitlines() for word in line.split() if word[:2] == "--"}
    assert all(option.strip(".,;") in known for option in offered)
    assert "no confidence interval" in shown


def test_labels_of_graphs_may_end_with_blanks(tmp_path):
    path = tmp_path / "a.gml"
    path.write_text(
        'graph [ node [ id 0 label "Praha " ] node [ id 1 label " Brno" ] '
        "edge [ source 0 target 1 ] ]"
    )
    found = read_graph(path)
    assert list(found.nodes) == ["Praha", "Brno"]
    assert [(edge.one, edge.other) for edge in found.edges] == [("Praha", "Brno")]
