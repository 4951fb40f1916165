"""Published formulas, by hand at the points that their papers show."""

from __future__ import annotations

import pytest
from jostle.results.measures import measures
from jostle.studies.published_models import MODELS, quantity

WARE = MODELS["bbr-beside-loss-based"]
NETWORK = {"rate_bps": 10e6, "rtt_s": 0.04, "packet_bytes": 1500}
"""10 Mbit/s and 40 ms, the network of the paper's Figure 8a: a product of 33.3 packets."""


def test_a_queue_of_32_products_leaves_bbr_half_of_the_link_less_its_probing() -> None:
    # p = 1/2 − 1/64 − 4/1066.7 = 0.480625; 1.52 s of every 10 s are spent in ProbeRTT.
    assert WARE.value(buffer_bdp=32, bbr_flows=1, **NETWORK) == pytest.approx(
        100 * (1 - 0.480625) * (1 - 0.152)
    )


def test_a_queue_of_one_product_leaves_the_loss_based_flows_nothing() -> None:
    # p = 1/2 − 1/2 − 4/33.3 is negative: the whole link, but for 0.28 s of every 10 s.
    assert WARE.value(buffer_bdp=1, bbr_flows=1, **NETWORK) == pytest.approx(97.2)


def test_more_bbr_flows_get_more_together() -> None:
    # p = 1/2 − 1/8 − 4 · 4/133.3 = 0.255 for four flows, and 0.345 for one.
    one, four = (WARE.value(buffer_bdp=4, bbr_flows=n, **NETWORK) for n in (1, 4))
    assert one == pytest.approx(100 * 0.655 * 0.96)
    assert four == pytest.approx(100 * 0.745 * 0.96)


def test_a_queue_that_takes_longer_than_ten_seconds_to_empty_leaves_nothing() -> None:
    assert WARE.value(buffer_bdp=300, bbr_flows=1, **NETWORK) == 0


def test_models_say_what_they_predict_and_where_they_are_from() -> None:
    for model in MODELS.values():
        assert model.measure in measures()
        assert "20" in model.source


def test_quantities_have_the_units_of_their_names() -> None:
    assert quantity("m", "rate_bps", "10 Mbit/s") == 10e6
    assert quantity("m", "rtt_s", "40 ms") == 0.04
    assert quantity("m", "packet_bytes", "1500 B") == 1500
    assert quantity("m", "bbr_flows", 2) == 2
