"""The simulator draws the sawtooth that the Linux kernel drew."""

import numpy as np
import pytest
import validation_page as page
from kernel_runs import PAIRS, SOLO, pair_shares, recorded, simulated

WRITE = "docs/results/validation.md has other numbers: run tests/recorded_kernel/overlay.py"


@pytest.mark.parametrize("name", SOLO)
def test_a_flow_alone_behaves_as_recorded(name: str) -> None:
    setup, (kernel,) = recorded(name)
    (ours,) = simulated(setup)
    half_s, end_s = setup["duration_s"] / 2, setup["duration_s"]
    goodput = kernel.goodput_mbps(half_s, end_s)
    assert ours.goodput_mbps(half_s, end_s) == pytest.approx(goodput, rel=0.03)
    assert ours.mean_srtt_ms(half_s) == pytest.approx(kernel.mean_srtt_ms(half_s), rel=0.10)
    retransmitted = kernel.retransmitted[-1]
    allowance = max(30, 0.5 * retransmitted)
    assert ours.retransmitted[-1] == pytest.approx(retransmitted, abs=allowance)
    assert page.alone_row(name, kernel, ours, end_s) in page.ALONE.read_text("utf-8"), WRITE


@pytest.mark.parametrize("name", ["reno", "cubic", "hybla"])
def test_slow_start_ends_at_the_recorded_packet(name: str) -> None:
    """Until the first loss everything is deterministic: a few packets are all that may differ."""
    setup, (kernel,) = recorded(name)
    (ours,) = simulated(setup)
    until_loss = min(np.argmax(kernel.retransmitted > 0), np.argmax(ours.retransmitted > 0))
    assert until_loss > 2
    ours_acked = ours.acked_bytes[:until_loss] / 1448
    np.testing.assert_allclose(ours_acked, kernel.acked_bytes[:until_loss] / 1448, atol=20)
    np.testing.assert_allclose(
        ours.cwnd_packets[:until_loss], kernel.cwnd_packets[:until_loss], rtol=0.03, atol=2
    )


@pytest.mark.parametrize("name", PAIRS)
def test_flows_share_a_link_as_recorded(name: str) -> None:
    """Competition is chaotic: a start 4 ms later moves a share by ten points. Means count."""
    setup, _ = recorded(name)
    kernel, ours = pair_shares(name, setup)
    assert ours.mean() == pytest.approx(kernel.mean(), abs=10)
    # Neither side is a constant that the other happens to surround.
    assert ours.std() < 3 * kernel.std() + 1
    assert page.pair_row(name, kernel, ours) in page.PAIRS.read_text("utf-8"), WRITE
