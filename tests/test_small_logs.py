"""Small captures, logs and traces with large contents: refused in little time and memory."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from limited import Limited

HEADER = b'{"qlog_version":"0.3","trace":{"vantage_point":{"type":"client"}}}\n'
ECHO = "64 bytes from 192.0.2.1: icmp_seq={} ttl=57 time=12.3 ms\n"


def packed(*parts: bytes) -> bytes:
    """Compress quickly."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join([*map(packer.compress, parts), packer.flush()])


def event(time_ms: float, name: str, group: str = "", **data: Any) -> bytes:
    """Write an event of a log in one line."""
    document = {"time": time_ms, "name": f"transport:{name}", "data": data, "group_id": group}
    return json.dumps(document).encode() + b"\n"


def sent(number: int, stream: int, offset: int, length: int, *, fin: bool = False) -> bytes:
    frame = {"frame_type": "stream", "stream_id": stream, "offset": offset, "length": length}
    header = {"packet_number": number}
    return event(number, "packet_sent", header=header, frames=[frame | {"fin": fin}])


def acknowledged(*ranges: tuple[int, int]) -> bytes:
    frames = [{"frame_type": "ack", "acked_ranges": ranges}]
    return event(10**6, "packet_received", frames=frames)


def received(offset: int) -> bytes:
    return (
        b'{"time":1,"name":"packet_received","data":{"frames":'
        b'[{"frame_type":"stream","offset":%d,"length":1}]}}\n' % offset
    )


def iperf3(streams: int, intervals: int, end: Any = None) -> bytes:
    """What iperf3 writes of so many connections."""
    numbers = range(streams)
    document = {
        "start": {
            "test_start": {"protocol": "TCP"},
            "connected": [{"socket": number} for number in numbers],
        },
        "intervals": [
            {
                "streams": [
                    {"socket": number, "end": at + 1 if end is None else end, "bytes": 1}
                    for number in numbers
                ]
            }
            for at in range(intervals)
        ],
    }
    return json.dumps(document).encode()


def irtt(rtt: Any) -> bytes:
    trips = [{"seqno": at, "lost": "false", "delay": {"rtt": rtt}} for at in range(3)]
    return json.dumps({"config": {"params": {"interval": 10**9}}, "round_trips": trips}).encode()


ANALYZED: dict[str, tuple[str, Callable[[], bytes], list[str]]] = {
    "a document of 15 million objects": (
        "a.qlog.gz",
        lambda: packed(
            b'{"qlog_version":"0.3","traces":[{"events":[', b"{}," * 15_000_000, b"{}]}]}"
        ),
        ["a document of more than 32 MB"],
    ),
    "a document of 9 million objects": (
        "a.qlog.gz",
        lambda: packed(
            b'{"qlog_version":"0.3","traces":[{"events":[', b"{}," * 9_000_000, b"{}]}]}"
        ),
        ["line 1: no qlog: too many values"],
    ),
    "events of a thousand connections": (
        "a.sqlog.gz",
        lambda: packed(HEADER, *(event(at, "packet_sent", str(at % 1000)) for at in range(10_000))),
        ["10100 times of 1000 flows: at most 4000000"],
    ),
    "more lines than such a file has": (
        "a.sqlog.gz",
        lambda: packed(HEADER, b"\n" * 400_000),
        ["line 320002: more than 32 MB, or lines of 100 bytes"],
    ),
    "a stream with many gaps": (
        "a.sqlog.gz",
        lambda: packed(HEADER, *(received(2 * at + 1) for at in range(66_000))),
        ["a stream with more than 65536 gaps"],
    ),
    "four million objects of iperf3": (
        "a.json.gz",
        lambda: packed(b'{"intervals":[', b"{}," * 4_000_000, b"{}]}"),
        ["no JSON: too many values"],
    ),
    "connections of iperf3": ("a.json", lambda: iperf3(3_000, 2), ["3000 flows: at most 1000"]),
    "a time that is a text": ("a.json", lambda: iperf3(1, 2, "9" * 300), ["not what iperf3"]),
    "pings that never came back": (
        "a.txt",
        lambda: "".join(map(ECHO.format, (1, 999_999))).encode(),
        ["2 replies to 999999 pings"],
    ),
    "three million lines": (
        "a.txt.gz",
        lambda: packed(b"a\n" * 3_000_000),
        ["3000000 lines: at most 2000000"],
    ),
    "a line of ping with 150,000 numbers": (
        "a.txt",
        lambda: b"64 bytes from 192.0.2.1: " + b"seq=1 " * 150_000,
        ["neither JSON"],
    ),
    "a name of 5,000 characters": (
        "measurement.json",
        lambda: json.dumps(
            {"format": "jostle.measurement/1", "transfers": [], "idle": {"file": "x" * 5_000}}
        ).encode(),
        ["there is no file"],
    ),
}


@pytest.mark.parametrize("what", ANALYZED)
def test_a_small_log(what: str, limited: Limited, tmp_path: Path) -> None:
    name, content, expected = ANALYZED[what]
    (tmp_path / name).write_bytes(content())
    assert (tmp_path / name).stat().st_size < 10**6
    words = ["analyze", "." if name == "measurement.json" else name]
    code, said = limited(words, tmp_path)
    assert code == 2, said[-2000:]
    assert [part for part in [name, *expected] if part not in said] == [], said[:2000]
    assert "Traceback" not in said


SLOW: dict[str, Callable[[], bytes]] = {
    # Whether all streams have ended is asked at every ACK.
    "ACKs of all streams but one": lambda: b"".join(
        [
            *(sent(at, at, 0, 1, fin=True) for at in range(4_000)),
            acknowledged((0, 3_998)),
            acknowledged((0, 0)) * 8_000,
        ]
    ),
    "ACKs of nothing that was sent": lambda: b"".join(
        [
            *(sent(at, 0, at, 1) for at in range(5_000)),
            acknowledged(*[(10**9, 2 * 10**9)] * 8_000) * 6,
        ]
    ),
}


@pytest.mark.parametrize("what", SLOW)
def test_a_log_takes_time_that_grows_with_its_length(
    what: str, limited: Limited, tmp_path: Path
) -> None:
    (tmp_path / "a.sqlog").write_bytes(HEADER + SLOW[what]())
    code, said = limited(["analyze", "a.sqlog"], tmp_path)
    assert code == 0, said[-2000:]


def test_a_compressed_capture_of_a_gigabyte(limited: Limited, tmp_path: Path) -> None:
    program = shutil.which("zstd")
    if program is None:
        pytest.skip("zstd is not installed")
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)
    packet = struct.pack("<IIII", 1, 1, 60, 60) + bytes(60)
    content = header + packet * 2_000_000
    made = subprocess.run([program, "-q"], input=content, capture_output=True, check=True).stdout
    (tmp_path / "a.pcap.zst").write_bytes(made)
    assert len(made) * 1100 < len(content)
    code, said = limited(["analyze", "a.pcap.zst"], tmp_path)
    assert code == 2, said
    assert "a.pcap.zst: it decompresses to more than 1100 times its size" in said


CONVERTED: dict[str, tuple[str, Callable[[], bytes], list[str]]] = {
    "an opportunity after 50 days": ("a.mahi", lambda: b"4294967295\n", ["4.29e+07 steps"]),
    "a rate of 1e300": ("a.csv", lambda: b"t,rate\n0,1e300\n1,1\n", ["it carries", "4000000"]),
    "a time of 1e300": ("a.csv", lambda: b"t,rate\n0,1\n1e300,1\n", ["it lasts 2e+300 s"]),
    "times apart by more than a double": (
        "a.csv",
        lambda: b"t,rate\n-1e308,1\n1e308,2\n",
        ["it lasts inf s"],
    ),
    "numbers of pings without end": (
        "a.txt",
        lambda: b"PING\n" + ECHO.format(1).encode() + ECHO.format(2**33).encode(),
        ["8589934592 pings: at most 2000000 are read"],
    ),
    "a number that is no double": ("a.json", lambda: irtt(10**400), ["not as iperf3 or irtt"]),
}


@pytest.mark.parametrize("what", CONVERTED)
def test_a_small_trace(what: str, limited: Limited, tmp_path: Path) -> None:
    name, content, expected = CONVERTED[what]
    (tmp_path / name).write_bytes(content())
    code, said = limited(["link", "convert", name, "-o", "out.mahi"], tmp_path)
    assert code == 2, said[-2000:]
    assert [part for part in [name, *expected] if part not in said] == [], said[:2000]
    assert "Traceback" not in said


def test_a_synthetic_trace_of_steps_without_length(limited: Limited, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,rate\n0,1\n1e-300,2\n2e-300,3\n")
    words = ["link", "generate", "--fit", "a.csv", "--duration", "10 s", "-o", "out.csv"]
    code, said = limited(words, tmp_path)
    assert code == 2, said[-2000:]
    assert 'trace "a.csv": 1e+301 steps: at most 2000000' in said


@pytest.mark.parametrize("command", [["identify"], ["advise", "--goal", "bulk"]])
def test_a_log_of_days_is_not_simulated(
    command: list[str], limited: Limited, tmp_path: Path
) -> None:
    stamps = ((1, 1_700_000_000.5), (2, 1_700_500_000.5))
    lines = "".join(f"[{at}] {ECHO.format(number)}" for number, at in stamps)
    (tmp_path / "a.txt").write_text(lines)
    code, said = limited([command[0], "a.txt", *command[1:]], tmp_path)
    assert code == 2, said
    assert "a.txt: it lasts 139 hours: at most 24 are simulated" in said


def test_a_policy_is_a_regular_file_of_bounded_size(tmp_path: Path) -> None:
    from jostle.errors import InputError
    from jostle.gym import Policy

    (tmp_path / "policy").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="Not a regular file"):
        Policy(tmp_path / "policy")


def test_a_log_has_a_bounded_number_of_samples() -> None:
    from jostle.measurements import log_samples

    log_samples.check_size(2_000_000, 1)
    with pytest.raises(ValueError, match="4500 times of 500 flows: at most 2000000 samples"):
        log_samples.check_size(4_500, 500)


def test_a_log_of_many_series_has_fewer_bins() -> None:
    """The engine makes a row per bin and flow: 1,000 flows have no 100,000 bins each."""
    from jostle.measurements import log_samples

    flow = log_samples.flow_spec("a", "tcp", {"kind": "bulk"}, 1448)
    made = log_samples.spec([0, 1, 2, 10**9], [flow] * 1_000)
    assert made["duration_ns"] / made["interval_ns"] * 1_000 <= log_samples.MOST_SAMPLES


def test_a_sound_log_is_still_measured(limited: Limited, tmp_path: Path) -> None:
    (tmp_path / "a.sqlog.gz").write_bytes(gzip.compress(HEADER + sent(1, 0, 0, 1000) * 3))
    assert limited(["analyze", "a.sqlog.gz"], tmp_path)[0] == 0
