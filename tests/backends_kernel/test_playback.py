"""Links as options of the disciplines of our own: what is drawn, and how it is written."""

from __future__ import annotations

import hashlib
import json
import struct

import pytest
from jostle import _core
from jostle.backends.kernel import impairment_playback
from jostle.backends.kernel.guest.netlink import attributes

from backends_kernel.kernel_specs import spec_of

OVERRIDES = {
    "bottleneck.jitter": (
        '{ quantiles = { "0 %" = "0 ms", "100 %" = "5 ms" }, correlation = "3 s" }'
    ),
    "bottleneck.outage": '{ every = "2 s", durations = "500 ms" }',
    "bottleneck.loss": '{ kind = "gilbert_elliott", good_to_bad = "1 %", bad_to_good = "50 %" }',
    "bottleneck.queue": '{ kind = "occupancy_drop", limit = "1 MB", threshold = "5 kB" }',
}


def impairments(spec, link=0):
    return _core.draw_impairments(json.dumps(spec), link, impairment_playback.JITTER_POINTS)


def files(spec):
    return impairment_playback.files(spec, lambda link: impairments(spec, link))


def options(content):
    """Number and content of every option of a file, and the size of every message."""
    found, sizes, at = [], [], 0
    while at < len(content):
        (length,) = struct.unpack_from("=I", content, at)
        found += attributes(content, at + 4, at + 4 + length)
        sizes.append(length)
        at += 4 + length
    return found, sizes


def test_what_is_drawn_stays_the_same():
    """The store tells runs apart by this package's sources and not by the engine's.

    Should this ever change on purpose, change something in `impairment_playback.py` as well, so
    that runs in stores are not taken for runs with new impairments.
    """
    drawn = impairments(spec_of(overrides=OVERRIDES))
    whole = hashlib.sha256(drawn["outages_ns"].tobytes() + drawn["jitter_ns"].tobytes())
    whole.update(drawn.pop("rate_steps").tobytes())
    rest = sorted((name, value) for name, value in drawn.items() if not name.endswith("s_ns"))
    whole.update(repr([pair for pair in rest if pair[0] != "jitter_ns"]).encode())
    assert whole.hexdigest()[:12] == "efb0826d4e04"


def test_every_link_has_a_file():
    assert list(files(spec_of())) == ["jostle_link-0"]


def test_options_of_a_link_and_its_queue():
    spec = spec_of(overrides=OVERRIDES)
    drawn, written = impairments(spec), files(spec)
    assert list(written) == ["jostle_link-0", "jostle_queue-0"]
    (queue,), _ = options(written["jostle_queue-0"])
    half = 1 << 52
    parameters = (10**6, 2**64 - 1, 5000, half // 2, drawn["queue_seed"])
    assert queue == (1, struct.pack("=5Q", *parameters))
    found = dict(options(written["jostle_link-0"])[0])
    assert found[2] == struct.pack("=QQ", 0, 20_000_000)
    assert found[5] == struct.pack("=QQ", 0, 0)
    assert struct.unpack("=Q", found[7]) == (3_000_000_000 // 1024,)
    assert found[8] == drawn["jitter_ns"].tobytes()
    assert found[11] == drawn["outages_ns"].tobytes()
    seed, drawn_numbers, leaves, returns, good, bad, state = struct.unpack("=7Q", found[12])
    assert (seed, drawn_numbers, state) == (drawn["loss_seed"], 1, int(drawn["loss_bad"]))
    # 53-bit numbers below them mean yes: a hundredth of all, half of them, none, all.
    assert (leaves, returns, good, bad) == (90_071_992_547_410, half, 0, 2 * half)


def test_a_random_rate_is_played_back_as_steps():
    rate = '{ mean = "20 Mbit/s", deviation = "5 Mbit/s", correlation = "1 s" }'
    spec = spec_of(overrides={"bottleneck.rate": rate})
    steps = impairments(spec)["rate_steps"].reshape(-1, 2)
    assert steps[:, 0].tolist() == [step * 62_500_000 for step in range(160)]
    assert steps[:, 1].min() >= 5_000_000
    assert steps[:, 1].max() <= 35_000_000
    assert steps[:, 1].std() > 2_000_000
    found = dict(options(files(spec)["jostle_link-0"])[0])
    assert found[2] == steps.tobytes()
    link = spec["links"][0]
    assert impairment_playback.first_rate_bps(link) == 20_000_000
    assert impairment_playback.peak_bps(link) == 35_000_000


def test_long_lists_are_cut_between_items():
    spec = spec_of(overrides=OVERRIDES)
    spec["links"][0]["delay"]["jitter"]["correlation_ns"] = 1_000_000
    drawn = impairments(spec)
    assert len(drawn["jitter_ns"]) > 1_000_000
    found, sizes = options(files(spec)["jostle_link-0"])
    assert max(sizes) <= 60_004
    parts = [content for number, content in found if number == 8]
    assert b"".join(parts) == drawn["jitter_ns"].tobytes()
    assert all(len(part) % 8 == 0 for part in parts)


def test_jitter_per_packet_is_drawn_in_the_kernel():
    jitter = (
        '{ quantiles = { "0 %" = "1 ms", "100 %" = "5 ms" }, correlation = "0 s", reorder = true }'
    )
    spec = spec_of(overrides={"bottleneck.jitter": jitter})
    found = dict(options(files(spec)["jostle_link-0"])[0])
    assert found.keys() == {2, 5, 6, 9, 10}
    assert struct.unpack("=Q", found[9]) == (impairments(spec)["jitter_seed"],)
    assert struct.unpack("=4Q", found[10]) == (0, 1_000_000, 1 << 53, 5_000_000)


def test_frames_recorded_losses_and_ack_thinning():
    contention = '{ access_delay = { "0 %" = "131 us", "100 %" = "266 us" }, packets = 32 }'
    overrides = {
        "bottleneck.frame_aggregation": contention,
        "bottleneck.ack_thinning": '{ max_acks = 16, max_delay = "10 ms" }',
    }
    spec = spec_of(overrides=overrides)
    steps = [{"at_ns": 0, "probability": 0.0}, {"at_ns": 10**9, "probability": 0.5}]
    spec["links"][0]["loss_steps"] = steps
    drawn, found = impairments(spec), options(files(spec)["jostle_link-0"])[0]
    assert dict(found).keys() == {2, 5, 13, 14, 15, 16, 17}
    # The seed comes before what is drawn with it, quantiles before the frames that need them.
    assert [number for number, _ in found] == sorted(number for number, _ in found)
    seeds = (drawn["loss_steps_seed"], drawn["contention_seed"])
    assert len({*seeds, drawn["loss_seed"], drawn["queue_seed"], drawn["jitter_seed"]}) == 5
    found = dict(found)
    assert found[13] == struct.pack("=Q", seeds[0])
    assert found[14] == struct.pack("=4Q", 0, 0, 10**9, 1 << 52)
    assert found[15] == struct.pack("=4Q", 0, 131_000, 1 << 53, 266_000)
    assert found[16] == struct.pack("=QQQ", seeds[1], 32, 65_535)
    assert found[17] == struct.pack("=QQ", 16, 10_000_000)


def test_traces():
    spec = spec_of()
    trace = {"kind": "trace", "opportunities_ms": [1, 1, 4], "opportunity_bytes": 1000}
    spec["links"][0]["capacity"] = trace
    found, _ = options(files(spec)["jostle_link-0"])
    # The size comes before the opportunities.
    assert found[:2] == [(4, struct.pack("=I", 1000)), (3, struct.pack("=3I", 1, 1, 4))]
    assert impairment_playback.first_rate_bps(spec["links"][0]) == 6_000_000
    assert impairment_playback.peak_bps(spec["links"][0]) == 6_000_000


def test_the_engine_knows_its_links():
    with pytest.raises(ValueError, match="no link 3"):
        impairments(spec_of(), 3)


def test_drawing_stops_when_it_is_told_to():
    """An hour of jitter that changes within microseconds takes minutes to draw."""
    quick = OVERRIDES["bottleneck.jitter"].replace("3 s", "6 us")
    spec = spec_of(overrides={**OVERRIDES, "duration": '"1 h"', "bottleneck.jitter": quick})
    asked = []

    def cancelled():
        asked.append(None)
        return len(asked) == 3

    with pytest.raises(_core.CancelledError):
        _core.draw_impairments(json.dumps(spec), 0, impairment_playback.JITTER_POINTS, cancelled)
    assert len(asked) == 3
