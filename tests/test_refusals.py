"""Refusals name the file whose content is refused, and the line where it is known."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from jostle.cli import status
from jostle.cli.run import warn
from jostle.errors import InputError, StoreError, name_source
from test_segments import record, segments, stored

SCENARIO = """duration = "300 ms"
[bottleneck]
rate = "5 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "a"
controller = "cubic"
rtt = "20 ms"
"""
RATE = '"bottleneck.rate" = { from = "1 Mbit/s", to = "9 Mbit/s" }\n'
SAMPLE = f"[sample]\npoints = 4\n{RATE}"
RTT = '"flows.a.rtt" = { from = "20 ms", to = "40 ms" }\n'
PING = "[170000000{at}.5] 64 bytes from 192.0.2.1: icmp_seq={at} ttl=57 time=1{at}.5 ms\n"
TRACE = "time_s,{name}\n0,1\n1,2\n"
BOUNDARY = ("search", "boundary", "s.toml", "--claim")
SENSITIVITY = ("search", "sensitivity", "s.toml", "--measure")
ENVELOPE = ("compare", "s.toml", "--method", "envelope")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_source_is_named_once() -> None:
    with pytest.raises(InputError, match=r"^s\.toml: wrong$"), name_source("s.toml"):
        raise InputError("wrong")
    with pytest.raises(InputError, match=r"^s\.toml:3: wrong$"), name_source("s.toml"):
        raise InputError("s.toml:3: wrong")
    with pytest.raises(StoreError, match=r"^full$"), name_source("s.toml"):
        raise StoreError("full")
    with pytest.raises(InputError, match=r"^wrong$"), name_source(""):
        raise InputError("wrong")


@pytest.mark.parametrize(
    ("more", "words", "refusal"),
    [
        ("", (*BOUNDARY, "goodput >= 1 Mbit/s"), "s.toml: the scenario samples no key"),
        (SAMPLE + 'where = ["bottleneck.rate < 8 Mbit/s"]\n', (*BOUNDARY, "goodput >= 1 Mbit/s"),
         "s.toml:12: `where` cuts the ranges"),
        ('[sample]\npoints = 2\n"bottleneck.rate" = ["1 Mbit/s", "2 Mbit/s"]\n',
         (*BOUNDARY, "goodput >= 1 Mbit/s"), 's.toml:9: "bottleneck.rate" has choices'),
        (SAMPLE, (*BOUNDARY, "goodput of b >= 1 Mbit/s"),
         "s.toml: --claim goodput of b >= 1 Mbit/s: no flow `b`"),
        ("", (*SENSITIVITY, "goodput"), "s.toml: the scenario samples no"),
        (SAMPLE, (*SENSITIVITY, "goodput"), "s.toml:9: one key alone"),
        (f'{SAMPLE}{RTT}where = ["bottleneck.rate < 8 Mbit/s"]\n',
         (*SENSITIVITY, "goodput"), "s.toml:13: `where` makes keys"),
        (f'{SAMPLE}[grid]\n"flows.a.rtt" = ["20 ms", "30 ms"]\n',
         (*SENSITIVITY, "goodput"), "s.toml:12: the grid varies"),
        (SAMPLE + RTT,
         (*SENSITIVITY, "goodput of b"), 's.toml: "goodput of b": no flow'),
        ("", ("search", "tune", "s.toml", "--vary", 'bottleneck.rate=["1 Mbit/s"]', "--maximize",
              "goodput of b"), 's.toml: "goodput of b": no flow `b`'),
        ("", ("search", "tune", "s.toml", "--vary", "flows.b.rtt", "--maximize", "goodput"),
         "s.toml: --vary flows.b.rtt: "),
        ("", ("fit", "s.toml", "--data", "ping.txt", "--vary", "nothing"),
         "s.toml: --vary nothing:"),
        ("", ("fit", "s.toml", "--data", "b = 1:ping.txt", "--vary", "bottleneck.rate"),
         "s.toml: no condition `b = 1`"),
        ('[[flows]]\nname = "b"\ncontroller = "reno"\nrtt = "20 ms"\n',
         ("fit", "s.toml", "--data", "ping.txt", "--vary", "bottleneck.rate"),
         "s.toml: the scenario has 2 flows, and ping.txt 1"),
        ("", ("identify", "ping.txt"), "ping.txt: flow ping 192.0.2.1 has 8 intervals"),
        ("", ("advise", "ping.txt", "--goal", "bulk"), "ping.txt: flow ping 192.0.2.1 has 8"),
        ("", ("compare", "s.toml", "--vary", "bottleneck.rate=1,2"), "s.toml: the grid does"),
        ("", (*ENVELOPE, "--reference-flow", "b"), "s.toml: no flow `b`"),
        ("", ("plot", "s.toml", "--kind", "phase"), "s.toml: a phase portrait of flows needs two"),
        ("", ("plot", "s.toml", "--kind", "series", "--flow", "b"),
         "s.toml: no flow or link `b`: there is a, bottleneck\n"),
        ("", ("run", "s.toml", "--set", "capture=true"), "s.toml: capture: its files are kept in"),
        ("", ("run", "s.toml", "--phase", "late"), "s.toml: no phase `late`"),
        ("", ("run", "s.toml", "--pivot", "x:y", "--measures", "goodput"), "s.toml: no key `x`"),
    ],
)  # fmt: skip
def test_refusals_name_the_scenario(
    more: str, words: tuple[str, ...], refusal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s.toml").write_text(SCENARIO + more)
    Path("ping.txt").write_text("".join(PING.format(at=at) for at in range(1, 9)))
    options = (
        () if words[0] in ("fit", "identify", "advise") else ("--store", "none", "--jobs", "1")
    )
    assert status([*words, *options]) == 2
    assert f"error: {refusal}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("until", "refusal"),
    [
        ("goodput of b ± 2 %", "no flow `b`"),
        ("goodput in late ± 2 %", 'there is no phase "late"'),
        ("nothing ± 2 %", 'there is no measure "nothing"'),
        ("goodput ± 2 ms", "`goodput` is in bit/s"),
        ("harm ± 2 %", "`harm` is of two conditions"),
    ],
)
def test_a_rule_for_repeats_is_refused_with_its_line(
    until: str,
    refusal: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*_: object) -> None:
        pytest.fail("a run was carried out first")

    monkeypatch.setattr("jostle.backends.sim.SimBackend.run", run)
    Path("s.toml").write_text(f'title = "x"\nrepeat_until = "{until}"\n{SCENARIO}')
    assert status(["run", "s.toml", "--store", "none", "--jobs", "1"]) == 2
    assert f"error: s.toml:2: repeat_until: {refusal}" in capsys.readouterr().err


def test_a_rule_of_the_command_line_has_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.toml").write_text(SCENARIO)
    words = ["run", "s.toml", "--store", "none", "--set", "repeat_until=goodput ± 2 ms"]
    assert status(words) == 2
    assert "error: s.toml: repeat_until: `goodput` is in bit/s" in capsys.readouterr().err


def test_long_names_of_columns_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["link", "convert", "link.csv", "-o", "out.csv"]
    Path("link.csv").write_text(TRACE.format(name="[" * 250 + "_mbps"))
    assert status(words) == 0
    Path("link.csv").write_text(TRACE.format(name="[" * 251 + "_mbps"))
    assert status(words) == 2
    assert 'trace "link.csv", line 1: a column\'s name of 256' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "refusal"),
    [
        ("same.json", json.dumps({"config": {"params": {"interval": 1e8}}, "round_trips": [
            {"seqno": 3, "lost": "false", "delay": {"rtt": 31_000_000 + at}} for at in range(6)
        ]}), "sample 2 does not start after"),
        ("back.json", json.dumps({"intervals": [
            {"sum": {"start": at, "end": at - 1, "bits_per_second": 8e6 + at}, "streams": []}
            for at in range(6)
        ]}), "sample 1 does not start after the one before, or ends before it starts"),
        ("zero.csv", "start,end,mbps\n" + "".join(f"{at},{at},{at + 1}\n" for at in range(6)),
         "its samples last 0 s"),
    ],
)  # fmt: skip
def test_recordings_without_time_are_refused(
    name: str, content: str, refusal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text(content)
    words = ["link", "generate", "--fit", name, "--duration", "10 s", "-o", "out.csv"]
    assert status(words) == 2
    assert f'error: trace "{name}": {refusal}' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        (f"64 bytes from h: icmp_seq=1 ttl=1 time={'9' * 400} ms", "cannot convert float infinity"),
        ("64 bytes from h: icmp_seq=1 ttl=1 time=3600001 ms", "a round trip of 3600001000000 ns"),
        ("[1.5] 64 bytes from h: icmp_seq=1 ttl=1 time=1 ms\n"
         f"[2.5] 64 bytes from h: icmp_seq={'9' * 400} ttl=1 time=1 ms", "at most 1000000"),
        (f"{'9' * 400} bytes from h: icmp_seq=1 ttl=1 time=1 ms", "int too large"),
    ],
)  # fmt: skip
def test_numbers_of_pings_are_bounded(
    line: str, refusal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("ping.txt").write_text(f"PING h\n64 bytes from h: icmp_seq=2 ttl=1 time=1 ms\n{line}\n")
    assert status(["analyze", "ping.txt"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ping.txt: not what ping prints (")
    assert refusal in said


def test_a_chain_has_the_steps_of_samples_that_last() -> None:
    Path("link.csv").write_text("start,end,mbps\n0,0,1\n1,1,2\n2,2,3\n3,4,4\n")
    words = ["link", "generate", "--fit", "link.csv", "--duration", "10 s", "-o", "out.csv"]
    assert status(words) == 0
    times = [line.partition(",")[0] for line in Path("out.csv").read_text().splitlines()[1:]]
    assert all(float(time).is_integer() for time in times)


def test_a_long_number_of_runs_is_not_quoted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(folder / ".jostle/store", [record(1)])
    (segment,) = segments(folder / ".jostle/store")
    manifest = json.loads((segment / "manifest.json").read_text())
    text = json.dumps(manifest | {"runs": [["x" * 5_000]]})
    (segment / "manifest.json").write_text(text)
    segment.rename(segment.with_name(hashlib.sha256(text.encode()).hexdigest()))
    assert status(["store", "check"]) == 1
    assert "manifest.json has no number of runs" in capsys.readouterr().out


def test_warnings_are_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    warn("x" * 5_000)
    said = capsys.readouterr().err
    assert said.startswith("warning: xxx")
    assert len(said) < 2_000
