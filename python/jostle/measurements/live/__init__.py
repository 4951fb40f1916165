"""Networks measured from this host, into files that `jostle analyze`, `fit` and the others read."""

from __future__ import annotations

from jostle.measurements.live.measurement import Measurement, MeasurementRequest, measure

__all__ = ["Measurement", "MeasurementRequest", "measure"]
