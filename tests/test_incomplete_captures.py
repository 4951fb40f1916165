"""Captures that lack packets, an end or a direction: what they show is what happened."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jostle
import pytest
import rewritten
from jostle.backends import RunRecord, SimBackend
from jostle.scenario import load_text
from rewritten import Frame

SCENARIO = """
title = "A lossy link"
duration = "10 s"
seed = 3
capture = true
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
loss = "0.5 %"
faults = { duplicate = "2 %" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
size = "4 MB"
"""
SIZE_BYTES = 4_000_000
PACKET_BYTES = 1_448


@pytest.fixture(scope="module")
def record() -> RunRecord:
    return SimBackend().run(load_text(SCENARIO).plan().runs[0].spec)


@pytest.fixture(scope="module")
def sender(record: RunRecord) -> list[Frame]:
    return rewritten.frames(record.captures["one.sender"])


@pytest.fixture(scope="module")
def receiver(record: RunRecord) -> list[Frame]:
    return rewritten.frames(record.captures["one.receiver"])


def measured(folder: Path, *captures: Sequence[Frame]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the measures of the only flow of captures: of the flow, and of the whole time."""
    paths = [folder / f"{at}.pcap" for at in range(len(captures))]
    for path, frames in zip(paths, captures, strict=True):
        path.write_bytes(rewritten.pcap(frames))
    results = jostle.analyze(paths if len(paths) > 1 else paths[0])
    (one,) = results.results
    (flow,) = one.run.summary["flows"]
    return flow, flow["phases"]["overall"]


def is_data(frame: Frame) -> bool:
    return frame.content[23] == 6 and frame.wire_bytes > 500


def is_of_sender(frame: Frame) -> bool:
    return frame.content[26:30] == bytes((10, 1, 0, 1))


def without(frames: Sequence[Frame], left_out: Callable[[int], bool]) -> list[Frame]:
    """Leave out data packets by their number."""
    kept, number = [], 0
    for frame in frames:
        number += is_data(frame)
        if not (is_data(frame) and left_out(number)):
            kept.append(frame)
    return kept


def without_copies(frames: Sequence[Frame]) -> list[Frame]:
    """Leave out the copies that the network made."""
    return list(
        {frame.content if is_data(frame) else at: frame for at, frame in enumerate(frames)}.values()
    )


def swapped(frames: Sequence[Frame], share: float) -> list[Frame]:
    """Swap neighbouring packets, which keep the times of their places."""
    draw, frames = random.Random(1), list(frames)
    for at in range(5, len(frames) - 1, 2):
        if draw.random() < share:
            one, other = frames[at], frames[at + 1]
            frames[at] = replace(other, time_ns=one.time_ns)
            frames[at + 1] = replace(one, time_ns=other.time_ns)
    return frames


def merged(frames: Sequence[Frame], most: int) -> list[Frame]:
    """Merge adjacent full-sized data packets with equal time stamps, as TSO shows them."""
    found: list[Frame] = []
    run = 0
    for frame in frames:
        before = found[-1] if found else None
        if (
            before is not None
            and 0 < run < most
            and is_data(before)
            and is_data(frame)
            and frame.wire_bytes == PACKET_BYTES + 66
            and sequence(frame) == sequence(before) + run * PACKET_BYTES
            and frame.content[54:66] == before.content[54:66]
        ):
            run += 1
            found[-1] = longer(before, PACKET_BYTES)
        else:
            run = int(frame.wire_bytes == PACKET_BYTES + 66)
            found.append(frame)
    return found


def sequence(frame: Frame) -> int:
    return int.from_bytes(frame.content[38:42], "big")


def longer(frame: Frame, more_bytes: int) -> Frame:
    content = bytearray(frame.content)
    (length,) = struct.unpack_from(">H", content, 16)
    struct.pack_into(">H", content, 16, length + more_bytes)
    return replace(frame, content=bytes(content), wire_bytes=frame.wire_bytes + more_bytes)


@pytest.mark.parametrize("left_out", [[1], [40], range(0, 5_000, 50)], ids=["first", "one", "2 %"])
def test_acknowledged_data_arrived_even_if_they_were_not_captured(
    receiver: list[Frame], tmp_path: Path, left_out: Sequence[int]
) -> None:
    _, whole = measured(tmp_path, receiver)
    lacking = without(receiver, lambda number: number in left_out)
    assert len(lacking) < len(receiver)
    _, seen = measured(tmp_path, lacking)
    assert seen["goodput_bps"] == pytest.approx(whole["goodput_bps"], rel=1e-3)
    assert seen["throughput_bps"] == pytest.approx(whole["throughput_bps"], rel=5e-3)
    assert seen["retransmitted_packets"] == pytest.approx(whole["retransmitted_packets"], abs=2)


def test_both_ends_one_of_which_lacks_packets(
    sender: list[Frame], receiver: list[Frame], tmp_path: Path
) -> None:
    _, whole = measured(tmp_path, sender, receiver)
    _, seen = measured(tmp_path, sender, without(receiver, lambda number: number % 300 == 0))
    assert seen["goodput_bps"] == pytest.approx(whole["goodput_bps"], rel=1e-3)


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_packets_that_were_captured_late_count_once(
    record: RunRecord, tmp_path: Path, end: str
) -> None:
    frames = without_copies(rewritten.frames(record.captures[f"one.{end}"]))
    whole_flow, whole = measured(tmp_path, frames)
    flow, seen = measured(tmp_path, swapped(frames, 0.5))
    for name in ("goodput_bps", "throughput_bps", "sent_packets"):
        assert seen[name] == pytest.approx(whole[name], rel=2e-3), name
    # Near the receiver, a retransmission behind its own ACK looks like any packet there.
    least = whole["retransmitted_packets"] * (1.0 if end == "sender" else 0.5)
    assert least <= seen["retransmitted_packets"] <= whole["retransmitted_packets"]
    assert flow["spurious_retransmissions"] == whole_flow["spurious_retransmissions"]
    if end == "sender":
        # An ACK that was captured after the next data packet: one more packet in flight.
        more_bytes = seen["cwnd_mean_bytes"] - whole["cwnd_mean_bytes"]
        assert 0 <= more_bytes <= PACKET_BYTES
        assert seen["rtt_mean_s"] == pytest.approx(whole["rtt_mean_s"], rel=0.05)


@pytest.mark.parametrize("most", [2, 3, 8])
@pytest.mark.parametrize("from_packet", [0, 400], ids=["whole", "middle"])
def test_merged_packets_count_as_those_on_the_wire(
    sender: list[Frame], tmp_path: Path, most: int, from_packet: int
) -> None:
    frames = sender[from_packet:]
    _, whole = measured(tmp_path, frames)
    longer_frames = merged(frames, most)
    assert len(longer_frames) < len(frames)
    _, seen = measured(tmp_path, longer_frames)
    for name in ("sent_packets", "retransmitted_packets", "goodput_bps", "application_limited"):
        if whole[name] is not None:
            assert seen[name] == pytest.approx(whole[name], rel=0.01, abs=0.01), name


def lost_packets(sender: list[Frame], receiver: list[Frame]) -> tuple[int, int]:
    """Return how many packets were sent, and how many of those the receiver never saw."""

    def keys(frames: Sequence[Frame]) -> set[tuple[int, bytes]]:
        return {(sequence(frame), frame.content[58:62]) for frame in frames if is_data(frame)}

    left, came = keys(sender), keys(receiver)
    return len(left), len(left - came)


def test_copies_hide_no_losses(sender: list[Frame], receiver: list[Frame], tmp_path: Path) -> None:
    flow, _ = measured(tmp_path, sender, receiver)
    sent, lost = lost_packets(sender, receiver)
    assert lost >= 10
    assert flow["path_loss"] == pytest.approx(lost / sent, rel=1e-9)


@pytest.mark.parametrize("cut", ["begin", "end"])
@pytest.mark.parametrize("short_end", ["sender", "receiver", "both"])
def test_captures_of_different_times(
    sender: list[Frame], receiver: list[Frame], tmp_path: Path, cut: str, short_end: str
) -> None:
    def shorter(frames: list[Frame]) -> list[Frame]:
        at_ns = frames[0].time_ns + (500_000_000 if cut == "begin" else 2_500_000_000)
        return [frame for frame in frames if (frame.time_ns >= at_ns) == (cut == "begin")]

    whole_flow, whole = measured(tmp_path, sender, receiver)
    ends = [
        shorter(frames) if short_end in (end, "both") else frames
        for end, frames in (("sender", sender), ("receiver", receiver))
    ]
    flow, seen = measured(tmp_path, *ends)
    # The ends were combined, and nothing counts as lost that the other capture could not see.
    assert seen["one_way_delay_mean_s"] == pytest.approx(whole["one_way_delay_mean_s"], rel=0.2)
    assert flow["path_loss"] == pytest.approx(whole_flow["path_loss"], abs=0.004)
    if short_end == "receiver":
        assert seen["goodput_bps"] == pytest.approx(whole["goodput_bps"], rel=0.02)


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_data_without_acks(record: RunRecord, tmp_path: Path, end: str) -> None:
    frames = rewritten.frames(record.captures[f"one.{end}"])
    _, whole = measured(tmp_path, frames)
    flow, seen = measured(tmp_path, [frame for frame in frames if is_of_sender(frame)])
    assert seen["goodput_bps"] == pytest.approx(whole["goodput_bps"], rel=0.01)
    assert seen["throughput_bps"] >= seen["goodput_bps"]
    for unknown in ("rto_retransmissions", "fast_retransmissions", "spurious_retransmissions"):
        assert flow[unknown] is None, unknown


def test_the_initial_window_is_known_from_the_handshake_alone(
    sender: list[Frame], tmp_path: Path
) -> None:
    assert measured(tmp_path, sender)[0]["initial_window_packets"] == 10
    assert measured(tmp_path, sender[300:])[0]["initial_window_packets"] is None


def closed(frames: Sequence[Frame]) -> list[Frame]:
    """Let the last data packet carry a FIN, and the last ACK acknowledge it."""
    last = max(map(sequence, filter(is_data, frames)))
    number = max(acknowledgment(frame) for frame in frames if not is_of_sender(frame))

    def changed(frame: Frame) -> Frame:
        content = bytearray(frame.content)
        if is_data(frame) and sequence(frame) == last:
            content[47] |= 1
        elif not is_of_sender(frame) and acknowledgment(frame) == number:
            struct.pack_into(">I", content, 42, number + 1)
        return replace(frame, content=bytes(content))

    return list(map(changed, frames))


def acknowledgment(frame: Frame) -> int:
    return int.from_bytes(frame.content[42:46], "big")


@pytest.mark.parametrize("order", [1, -1])
def test_the_completion_rate_counts_data_once(
    sender: list[Frame], receiver: list[Frame], tmp_path: Path, order: int
) -> None:
    for captures in ([closed(sender)], [closed(sender), closed(receiver)][::order]):
        flow, seen = measured(tmp_path, *captures)
        assert seen["retransmitted_packets"] > 0
        rate_bps = 8 * SIZE_BYTES / flow["completion_time_s"]
        assert flow["completion_rate_bps"] == pytest.approx(rate_bps, rel=1e-9)
