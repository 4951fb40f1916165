"""The distribution's User-Mode Linux, in real time."""

from __future__ import annotations

import pcapng
import pytest
from jostle.backends.kernel import KernelBackend
from jostle.kernel_images import Image

from backends_kernel.kernel_specs import spec_of


def test_a_short_run_in_real_time(realtime_kernel: Image):
    overrides = {
        "duration": '"3 s"',
        "phases.late": '["1 s", "3 s"]',
        "bottleneck.rate": '"5 Mbit/s"',
        "flows.one.controller": '"vegas"',
        "capture": "true",
    }
    record = KernelBackend(image=realtime_kernel).run(spec_of(overrides=overrides))
    late = record.summary["flows"][0]["phases"]["late"]
    # Real time is what a busy machine leaves of it.
    assert 5e5 < late["goodput_bps"] < 5.5e6
    assert 0.04 < late["rtt_min_s"] < 0.2
    assert record.wall_s > 2.5
    sender = pcapng.read(record.captures["one.sender"])
    # The last sample may come late.
    if sender.dropped == 0:
        overall = record.summary["flows"][0]["phases"]["overall"]
        assert sender.retransmitted == pytest.approx(overall["retransmitted_packets"], abs=20)
        sent = sum(packet.payload > 0 for packet in sender.of(1))
        assert sent == pytest.approx(overall["sent_packets"], rel=0.1)
