"""Networks measured from this host, into files that `jostle analyze`, `fit` and the others read."""

from __future__ import annotations

from jostle.live.measurement import Asked, Measurement, measure

__all__ = ["Asked", "Measurement", "measure"]
