"""A sample of the captures over random paths that docs/results/identification.md is about."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "tools" / "results"
MIN_SURE = 8
"""Answers with a high probability; ten of the recorded captures have one."""


@pytest.mark.slow
def test_likely_answers_are_right(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(RESULTS))
    monkeypatch.delitem(sys.modules, "record_calibration", raising=False)
    calibration = importlib.import_module("record_calibration")
    rows = [calibration.recorded(number, tmp_path) for number in range(10_000, 10_020)]
    sure = [row for row in rows if row["probability"] >= calibration.SURE]
    assert len(sure) >= MIN_SURE
    right = sum(calibration.is_right(row) for row in sure)
    assert right >= 0.85 * len(sure), [row for row in sure if not calibration.is_right(row)]
