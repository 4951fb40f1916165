"""Time–sequence diagrams: every packet of a flow, in figures, pages and tables."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

import jostle
import numpy as np
import pcapng
import polars as pl
import pytest
import rewritten
from browser import opened
from jostle.backends import SimBackend
from jostle.cli import status
from jostle.errors import InputError
from jostle.figures.renderer import render_figure
from jostle.figures.time_sequence_data import SequencesData, overlay
from jostle.report.time_sequence import fitting, packed
from jostle.results.time_sequence import downsample, read, sequences_data
from jostle.scenario import load_text

SCENARIO = """
title = "One loses packets"
duration = "8 s"
seed = 3
capture = true
[[links]]
name = "link"
rate = "5 Mbit/s"
loss = "1 %"
queue = { kind = "drop_tail", limit = "50 kB" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
path = ["link"]
[[flows]]
name = "two"
controller = "reno"
rtt = "40 ms"
path = ["link"]
start = "2 s"
"""


@pytest.fixture(scope="module")
def record():
    return SimBackend().run(load_text(SCENARIO).plan().runs[0].spec)


def sender(record, flow: str = "one") -> Path:
    return record.captures[f"{flow}.sender"]


def test_every_packet_is_there(record):
    path = sender(record)
    (found,) = read([path])
    capture = pcapng.read(path)
    origin = capture.of(1)[0].sequence + 1
    data = [packet for packet in capture.of(1) if packet.payload]
    assert found.label == "one (cubic)"
    assert found.packets.time_s.tolist() == [packet.time_ns / 1e9 for packet in data]
    assert found.packets.start.tolist() == [packet.sequence - origin for packet in data]
    assert (found.packets.end - found.packets.start).tolist() == [p.payload for p in data]
    again = capture.retransmitted
    assert np.sum(~found.packets.of("sent")) == again > 10
    assert np.sum(found.packets.of("retransmitted")) > 10
    # All answers but the SYN's.
    answers = capture.of(2)[1:]
    assert found.answers.acknowledged.tolist() == [a.acknowledgment - origin for a in answers]
    blocks = [block for answer in answers for block in answer.blocks]
    assert list(zip(found.sacks.start + origin, found.sacks.end + origin, strict=True)) == blocks
    # The receiver never offers less than is in flight, nor takes back what it offered.
    assert (found.answers.edge >= found.answers.acknowledged).all()
    assert (np.diff(found.answers.edge) >= 0).all()


def test_tshark_sends_the_same_again(record):
    (found,) = read([sender(record)])
    fields = ("-T", "fields", "-e", "frame.time_epoch")
    lines = pcapng.tshark(sender(record), "-Y", pcapng.RETRANSMITTED, *fields)
    again = found.packets.time_s[~found.packets.of("sent")]
    assert again.tolist() == pytest.approx([float(line) for line in lines])


def test_near_the_receiver_is_what_came(record):
    (found,) = read([record.captures["one.receiver"]])
    whats = {found.packets.kinds[kind] for kind in np.unique(found.packets.kind)}
    assert whats == {"new", "again"}
    # Of both ends, the sender's is drawn.
    (both,) = read([record.captures["one.receiver"], sender(record)])
    assert both.packets.time_s.size > found.packets.time_s.size


def test_a_window_and_too_many_rows(record):
    (whole,) = read([sender(record)])
    (part,) = read([sender(record)], "one", 2.0, 3.5)
    inside = (whole.packets.time_s >= 2) & (whole.packets.time_s < 3.5)
    assert part.packets.start.tolist() == whole.packets.start[inside].tolist()
    assert not part.is_cut
    (few,) = read([sender(record)], rows=100)
    assert few.is_cut
    assert few.packets.time_s.size == 100
    assert few.to_s <= whole.packets.time_s[101]
    less = downsample(whole, 100)
    assert less.is_cut
    assert max(part.time_s.size for part in (less.packets, less.answers, less.sacks)) <= 100


@pytest.mark.parametrize(
    ("flow", "between", "words"),
    [
        ("three", (), "no TCP flow `three`; there are one"),
        ("", (3.0, 2.0), "nothing lies between"),
    ],
)
def test_what_is_not_there_is_said(flow, between, words, record):
    with pytest.raises(InputError, match=words):
        read([sender(record)], flow, *between)


def test_results_draw_flows_of_runs_and_of_captures(record):
    results = jostle.run(load_text(SCENARIO), store=False)
    figure = results.plot.time_sequence(flows="one", from_s=1, to_s=2)
    assert figure.axes[0].get_ylabel() == "Sequence (kB)"
    assert figure.axes[0].get_xlim()[0] == pytest.approx(1, abs=0.05)
    both = results.plot.time_sequence()
    assert both.axes[0].get_xlabel() == "Time (s)"
    starts = [flow.packets.time_s.min() for flow in sequences_data(results, 0).flows]
    assert starts == pytest.approx([0.0, 2.0], abs=0.2), "the clock of the run"
    measured = jostle.analyze([sender(record), sender(record, "two")])
    axis = measured.plot.time_sequence().axes[0]
    assert axis.get_ylabel() == "Sequence (MB)"
    assert axis.get_xlabel() == "Time (s)"
    apart = overlay(tuple(read([sender(record), sender(record, "two")])), one_clock=False)
    label = render_figure(apart).axes[0].get_xlabel()
    assert label == "Time since the start of the flow (s)", "each capture has its own clock"
    quiet = jostle.run(load_text(SCENARIO.replace("capture = true", "")), store=False)
    with pytest.raises(InputError, match="capture = true"):
        quiet.plot.time_sequence()
    with pytest.raises(InputError, match="no flow `six`"):
        results.plot.time_sequence(flows="six")


def test_a_capture_and_a_simulation_lie_over_each_other(record, tmp_path):
    """What was captured elsewhere, with its own clock, and the run that is held against it."""
    from test_analyze import foreign

    captured = foreign(sender(record), tmp_path / "captured.pcapng")
    other = SimBackend().run(
        load_text(SCENARIO.replace("seed = 3", "seed = 4")).plan().runs[0].spec
    )
    (measured, simulated) = read([captured, sender(other, "two")])
    assert measured.label.startswith("captured.pcapng: 10.1.0.1:40000")
    assert simulated.start_s == 2
    results = jostle.analyze([captured, sender(other, "two")])
    data = results.plot.time_sequence()
    labels = [text.get_text() for text in data.legends[0].get_texts()]
    assert len(labels) == 3
    assert labels[-1] == "retransmitted"


def test_files_of_the_same_name_are_told_apart(record):
    other = SimBackend().run(
        load_text(SCENARIO.replace("seed = 3", "seed = 4")).plan().runs[0].spec
    )
    both = read([sender(record), sender(other)])
    first = "one.sender.pcapng: one (cubic)"
    assert [one.label for one in both] == [first, f"{first} (2)"]


def test_the_figure_of_nothing_is_drawn(record):
    (found,) = read([sender(record)], "one", 0.0, 1e-6)
    assert found.packets.time_s.size == 0
    assert render_figure(SequencesData("", (found,))).axes


def test_each_file_that_is_given_is_drawn(record, tmp_path):
    one, two = sender(record), sender(record, "two")
    assert sorted(data.label for data in read([one, two])) == [
        f"{one.name}: one (cubic)", f"{two.name}: two (reno)"
    ]  # fmt: skip
    # Of both ends the sender's.
    (alone,) = read([record.captures["one.receiver"], one])
    assert alone.packets.start.tolist() == read([one])[0].packets.start.tolist()
    assert len(read(list(record.captures.values()))) == 2
    # Two files of one end are two measurements of it, in one folder or in two.
    for folder in (tmp_path, tmp_path / "other"):
        folder.mkdir(exist_ok=True)
        copies = [tmp_path / "first.pcapng", folder / "second.pcapng"]
        for copy in copies:
            copy.write_bytes(one.read_bytes())
        first, second = read(copies)
        assert first.label != second.label
        assert first.packets.time_s.tolist() == second.packets.time_s.tolist()


def test_parts_of_one_capture_are_measured_apart_and_that_is_said(record, tmp_path):
    frames = rewritten.frames(sender(record))
    parts = [tmp_path / "0.pcap", tmp_path / "1.pcap"]
    for path, some in zip(parts, (frames[:900], frames[900:]), strict=True):
        path.write_bytes(rewritten.pcap(some))
    results = jostle.analyze(parts)
    assert len(results.conditions) == 2
    (said,) = [note for note in results.said if "mergecap" in note]
    assert said.startswith("0.pcap and 1.pcap have the same connections, at the same end")
    assert len(read(parts)) == 2
    # What has other connections is not mentioned.
    parts[1].write_bytes(rewritten.pcap(rewritten.frames(sender(record, "two"))))
    assert not any("mergecap" in note for note in jostle.analyze(parts).said)


def test_the_commands_draw_and_write(record, tmp_path, capsys):
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO)
    table = tmp_path / "packets.csv"
    output = tmp_path / "packets.png"
    plot = ["plot", str(scenario), "--kind", "time-sequence", "--flow", "one", "--to", "2 s",
            "--store", str(tmp_path / "store"), "-o", str(output), "-o", str(table)]  # fmt: skip
    assert status(plot) == 0
    assert output.read_bytes().startswith(b"\x89PNG")
    rows = pl.read_csv(table)
    assert {"new", "fast", "ack", "sack"} <= set(rows["what"])
    assert rows["time_s"].max() < 2
    figures, page = tmp_path / "figures", tmp_path / "page.html"
    analyze = ["analyze", str(sender(record)), "--time-sequence", "--flow", "one", "--from", "1 s",
               "-o", f"{figures}/", "-o", str(page)]  # fmt: skip
    assert status(analyze) == 0
    assert (figures / "time-sequence.png").exists()
    text = page.read_text()
    assert 'id="sequence"' in text
    assert "--time-sequence --flow one --from &#39;1 s&#39;" in text
    capsys.readouterr()
    for wrong, words in (
        (["--time-sequence"], "give one"),
        (["--to", "1 s"], "give that, too"),
        (["--time-sequence", "--flow", "six", "-o", f"{figures}/"], "no TCP flow `six`"),
    ):
        assert status(["analyze", str(sender(record)), *wrong]) == 2
        assert words in capsys.readouterr().err
    assert status(["plot", str(scenario), "--kind", "time-sequence", "--to", "soon"]) == 2
    assert "--to: " in capsys.readouterr().err
    assert status(["plot", str(scenario), "--from", "1 s"]) == 2
    assert "series has no --from" in capsys.readouterr().err


def test_a_page_holds_exact_numbers_and_says_what_it_leaves_out(record):
    (whole,) = read([sender(record)])
    data, values = packed(SequencesData("", (whole,)))
    columns = np.frombuffer(gzip.decompress(base64.b64decode(values)), "<f8")
    (flow,) = data["flows"]
    assert flow["packets"] == whole.packets.time_s.size
    assert columns[: flow["packets"]].tolist() == whole.packets.time_s.tolist()
    assert columns.size == 4 * flow["packets"] + 3 * flow["answers"] + 4 * flow["sacks"]
    assert json.dumps(data, allow_nan=False)
    assert fitting(SequencesData("", (whole,))).caption == ""
    many = SequencesData("", (downsample(whole, 50),))
    assert "--from and --to choose" in fitting(many).caption


@pytest.mark.browser
def test_the_diagram_zooms_in_a_browser(record, tmp_path):
    page = tmp_path / "page.html"
    words = ["analyze", str(sender(record)), "--time-sequence", "-o", str(page)]
    assert status(words) == 0
    with opened(page.as_uri()) as found:
        found.wait_for_selector("#sequence", state="attached")
        found.locator("#sequence").scroll_into_view_if_needed()
        found.wait_for_selector('#sequence[data-ready="yes"]')
        legend = found.locator("#sequence .legend-row button")
        assert {"sent", "retransmitted", "acknowledged", "SACKed"} <= set(legend.all_inner_texts())
        over = found.locator("#sequence .u-over")
        over.scroll_into_view_if_needed()
        box = over.bounding_box()

        def read_at(x: float, y: float) -> str:
            found.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
            return found.locator("#sequence .readout").inner_text()

        def time_at(x: float) -> float:
            return float(re.search(r"([\d.]+) s", read_at(x, 0.02))[1])

        assert time_at(0.999) == pytest.approx(8, abs=0.2)
        found.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"])
        found.mouse.down()
        found.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.8 * box["height"], steps=4)
        found.mouse.up()
        assert time_at(0.999) == pytest.approx(4.8, abs=0.2)
        before = over.evaluate("one => one.parentNode.querySelector('canvas').toDataURL()")
        legend.filter(has_text=re.compile("^sent$")).click()
        assert before != over.evaluate("one => one.parentNode.querySelector('canvas').toDataURL()")
        over.dblclick()
        assert time_at(0.999) == pytest.approx(8, abs=0.2)
        assert found.said == []
