"""What limited a TCP flow on a real kernel, beside the simulator."""

from __future__ import annotations

import pytest

from backends_kernel.kernel_specs import spec_of


def limited(record) -> dict[str, float | None]:
    overall = record.summary["flows"][0]["phases"]["overall"]
    names = ("application", "receive_window", "send_buffer", "cwnd_or_pacing")
    return {name: overall[f"{name}_limited"] for name in names}


@pytest.mark.parametrize(
    ("overrides", "limit"),
    [
        ({}, "cwnd_or_pacing"),
        ({"flows.one.receive_window": '"64 kB"', "bottleneck.rate": '"50 Mbit/s"'},
         "receive_window"),
        ({"flows.one.source": '{ kind = "media", fps = 25, key_frame_size = "5 kB", '
          'deadline = "1 s" }'}, "application"),
    ],
)  # fmt: skip
def test_the_kernel_and_the_simulator_name_the_same_limit(overrides, limit, backend, simulator):
    spec = spec_of(overrides=overrides)
    real, simulated = limited(backend.run(spec)), limited(simulator.run(spec))
    assert sum(real.values()) == pytest.approx(1.0)
    assert real[limit] > 0.8, (real, simulated)
    assert real[limit] == pytest.approx(simulated[limit], abs=0.1)


def test_the_kernel_does_not_tell_cwnd_and_pacing_apart(backend):
    overall = backend.run(spec_of()).summary["flows"][0]["phases"]["overall"]
    assert overall["cwnd_limited"] is None
    assert overall["pacing_limited"] is None
