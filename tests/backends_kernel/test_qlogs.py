"""Logs of QUIC stacks, in the forms that stacks write."""

from __future__ import annotations

import json

import numpy as np
import pytest
from jostle.backends.kernel import qlog_reader

METRICS = [
    (0, {"smoothed_rtt": 333, "congestion_window": 12000, "bytes_in_flight": 0}),
    (40, {"smoothed_rtt": 40.5, "min_rtt": 40, "bytes_in_flight": 12000}),
    (81, {"congestion_window": 24000, "ssthresh": 24000}),
]


def events(times, metrics="recovery:metrics_updated", lost="recovery:packet_lost"):
    told = [
        {"time": time, "name": metrics, "data": data}
        for time, (_, data) in zip(times, METRICS, strict=True)
    ]
    packet = {"time": times[1], "name": "transport:packet_sent", "data": {}}
    drop = {"time": times[2], "name": lost, "data": {"header": {"packet_number": 7}}}
    return [told[0], told[1], packet, drop, told[2]]


def lines(header, found, separator=b"") -> bytes:
    return b"".join(separator + json.dumps(one).encode() + b"\n" for one in (header, *found))


def header(**common):
    return {"qlog_format": "JSON-SEQ", "trace": {"common_fields": common}}


TIMES = [at for at, _ in METRICS]
FORMS = {
    "lines, as ngtcp2": lines(header(time_format="relative", reference_time=0), events(TIMES)),
    "separators, as quiche": lines(header(), events(TIMES), b"\x1e"),
    "absolute": lines(header(time_format="absolute"), events([1.7e12 + at for at in TIMES])),
    "reference": lines(header(time_format="relative", reference_time=1.7e12), events(TIMES)),
    "names of later drafts": lines(
        header(), events(TIMES, "quic:recovery_metrics_updated", "quic:packets_lost")
    ),
    "one document": json.dumps(
        {"traces": [{"common_fields": {}, "events": events(TIMES)}]}, indent=1
    ).encode(),
}


def test_a_probe_for_the_mtu_is_no_loss(tmp_path):
    # As quic-go writes it.
    probe = {"header": {"packet_number": 6}, "is_mtu_probe_packet": True}
    found = events(TIMES)
    found.insert(3, {"time": TIMES[1], "name": "recovery:packet_lost", "data": probe})
    (tmp_path / "one.sqlog").write_bytes(lines(header(), found, b"\x1e"))
    log = qlog_reader.read(tmp_path)
    assert log is not None
    assert log.lost.max() == 1


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(form, tmp_path):
    (tmp_path / "one.sqlog").write_bytes(FORMS[form])
    log = qlog_reader.read(tmp_path)
    assert log is not None
    start_s = 1.7e9 if log.since_1970 else 0.0
    assert log.since_1970 == (form in ("absolute", "reference"))
    np.testing.assert_allclose(log.time_s - start_s, [0, 0.04, 0.081, 0.081], atol=1e-6)
    np.testing.assert_allclose(log.values["srtt_s"], [0.333, 0.0405, 0.0405, 0.0405])
    np.testing.assert_allclose(log.values["cwnd_bytes"], [12000, 12000, 12000, 24000])
    np.testing.assert_allclose(log.values["ssthresh_bytes"], [np.nan, np.nan, np.nan, 24000])
    assert log.lost.tolist() == [0, 0, 1, 1]


def test_times_that_count_from_the_event_before(tmp_path):
    steps = lines(header(time_format="delta"), events([0, 40, 41]))
    (tmp_path / "one.sqlog").write_bytes(steps)
    log = qlog_reader.read(tmp_path)
    assert log is not None
    # The packet between them counts, too.
    np.testing.assert_allclose(log.time_s, [0, 0.04, 0.121, 0.162])


def test_what_a_killed_program_left_is_read_up_to_its_last_whole_line(tmp_path):
    whole = FORMS["lines, as ngtcp2"]
    (tmp_path / "one.sqlog").write_bytes(whole[:-20])
    log = qlog_reader.read(tmp_path)
    assert log is not None
    assert len(log.time_s) == 3


def test_of_several_connections_the_one_that_sent_most(tmp_path):
    (tmp_path / "a.sqlog").write_bytes(lines(header(), []))
    (tmp_path / "b.sqlog").write_bytes(FORMS["lines, as ngtcp2"])
    log = qlog_reader.read(tmp_path)
    assert log is not None
    assert len(log.time_s) == 4


def test_no_log_is_nothing_and_another_file_a_mistake(tmp_path):
    assert qlog_reader.read(tmp_path) is None
    assert qlog_reader.read(tmp_path / "absent") is None
    (tmp_path / "one.sqlog").write_text("no qlog at all\n")
    with pytest.raises(ValueError, match=r"one\.sqlog, line 1: no qlog"):
        qlog_reader.read(tmp_path)


def test_links_and_folders_are_no_logs(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x" * 9999)
    folder = tmp_path / "qlog"
    (folder / "folder").mkdir(parents=True)
    (folder / "link").symlink_to(secret)
    assert qlog_reader.read(folder) is None
    (folder / "log").write_bytes(FORMS["separators, as quiche"])
    assert qlog_reader.read(folder) is not None


def test_a_number_that_is_none_names_the_file(tmp_path):
    event = {"time": 1, "name": "recovery:metrics_updated", "data": {"congestion_window": [1]}}
    (tmp_path / "log.sqlog").write_bytes(lines(header(), [event], b"\x1e"))
    with pytest.raises(ValueError, match=r"log\.sqlog: congestion_window is no number: \[1\]"):
        qlog_reader.read(tmp_path)
