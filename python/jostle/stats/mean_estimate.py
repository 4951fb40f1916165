"""Estimates from independent runs, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jostle.stats.optional_floats import OptionalFloats
from jostle.stats.student_t import t_quantile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jostle.stats.descriptive import Floats

    Ints = npt.NDArray[np.int64]

Method = Literal["t", "bootstrap"]

RESAMPLES = 9999
"""Number of bootstrap resamples."""
_FEW = 8
"""NumPy adds fewer values one after the other, as a loop does; its import takes longer."""


@dataclass(frozen=True)
class Estimate:
    """Mean over runs, with a confidence interval if there are two runs or more.

    Attributes
    ----------
    value
        Mean of the runs that have a value; None if none has.
    low, high
        Confidence interval; None with fewer than two values.
    n
        Number of runs that have a value.
    unit
        Unit of value, low and high.
    method
        How value and interval were computed, in words.
    incomplete
        How many runs failed, and why: then the value is of the remaining runs only, and allows no
        verdict. Empty if no run failed.
    possible
        Smallest and largest possible value, if runs ended before an event that the value needs.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    unit: str
    method: str
    incomplete: str = ""
    possible: tuple[float, float] | None = None

    @property
    def finite(self) -> float | None:
        """The value for JSON, in which an infinite one becomes null."""
        return None if self.value is None or math.isinf(self.value) else self.value

    @property
    def never(self) -> bool:
        """Whether the value is infinite, because an event never occurred."""
        return self.value is not None and self.finite is None

    @property
    def interval(self) -> list[float | None] | None:
        """Ends of the interval, for JSON: an infinite one is null; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return [None if math.isinf(end) else end for end in (self.low, self.high)]

    @property
    def possible_ends(self) -> list[float | None] | None:
        """Ends of the possible values for JSON, in which an infinite one becomes null."""
        if self.possible is None:
            return None
        return [None if math.isinf(end) else end for end in self.possible]

    def columns(self, mean: str = "value", ends: str = "") -> dict[str, float | None]:
        """Return value and ends by name: `value`, `low`, `high`, or with a prefix of the ends."""
        return {mean: self.value, f"{ends}low": self.low, f"{ends}high": self.high}

    def entry(self) -> dict[str, float | None]:
        """Return value, ends and number of runs for a document."""
        return {**self.columns(), "n": self.n}


@dataclass(frozen=True)
class Estimates:
    """Means over runs of m samples; every array has shape (m,), NaN if there is no number.

    Attributes
    ----------
    value, low, high, n
        Like the attributes of `Estimate`.
    """

    value: Floats
    low: Floats
    high: Floats
    n: Ints


def estimate(
    values: Iterable[float | None],
    unit: str,
    method: Method = "t",
    confidence: float = 0.95,
    *,
    seed: int = 0,
    bounds: tuple[float | None, float | None] = (None, None),
) -> Estimate:
    """Estimate the mean from one value per run.

    Parameters
    ----------
    values
        One value per independent run; None and NaN are ignored.
    unit
        Unit of the values.
    method
        `t`: mean ± t(n − 1) · s/√n, exact for normal values. `bootstrap`: bias-corrected and
        accelerated bootstrap of the mean (Efron 1987), for skewed values.
    confidence
        Probability that the interval covers the mean, between 0 and 1.
    seed
        Seed of the bootstrap's resamples: the same values give the same interval.
    bounds
        Smallest and largest possible value, in `unit`. An interval beyond them is clipped, and
        `method` mentions it. Student's t has no bounds, and its interval is wide for two values.

    Examples
    --------
    >>> from jostle.stats import estimate
    >>> found = estimate([9.0, 10.0, 11.0], "Mbit/s")
    >>> round(found.low, 2), found.value, round(found.high, 2), found.n
    (7.52, 10.0, 12.48, 3)
    """
    if not 0 < confidence < 1:
        raise ValueError("confidence must lie between 0 and 1")
    sample = present(values)
    n = len(sample)
    if n == 0:
        return Estimate(None, None, None, 0, unit, "no value in any run")
    if n == 1:
        return Estimate(float(sample[0]), None, None, 1, unit, "one run, no interval")
    value, variance = moments(sample)
    percent = f"{confidence * 100:g} %"
    if method == "t":
        half = t_quantile(n - 1, 0.5 + confidence / 2) * math.sqrt(variance) / math.sqrt(n)
        low = _within(value - half, value, *bounds)
        high = _within(value + half, value, *bounds)
        cut = (low, high) != (value - half, value + half)
        words = f"mean, Student t {percent} interval" + (", cut at its bounds" if cut else "")
        return Estimate(value, low, high, n, unit, words)
    low, high = _bootstrap(sample, confidence, seed)
    words = f"mean, BCa bootstrap {percent} interval ({RESAMPLES} resamples)"
    return Estimate(value, low, high, n, unit, words)


def present(values: Iterable[float | None]) -> Sequence[float] | Floats:
    """Return the values without None and NaN."""
    if isinstance(values, OptionalFloats):
        return values.present
    return [float(value) for value in values if value is not None and not math.isnan(value)]


def moments(sample: Sequence[float] | Floats) -> tuple[float, float]:
    """Return mean and variance (n − 1, NaN for one value), to the last bit as NumPy does.

    The mean of equal values is that value and their variance 0, without a rounding error.
    """
    n = len(sample)
    if n < _FEW:
        sample = list(map(float, sample))
        mean = min(max(_sum(sample) / n, min(sample)), max(sample))
        squares = _sum([(value - mean) * (value - mean) for value in sample])
        return mean, squares / (n - 1) if n > 1 else math.nan
    import numpy as np

    from jostle.stats.descriptive import means, variances

    array = np.array(sample)
    return float(means(array)), float(variances(array))


def _sum(values: Iterable[float]) -> float:
    # From Python 3.12 on, `sum` corrects rounding errors, which NumPy does not.
    total = 0.0
    for value in values:
        total += value
    return total


def _within(end: float, value: float, least: float | None, most: float | None) -> float:
    """Clip one end of an interval; see `within`."""
    if least is not None:
        end = max(end, min(least, value))
    if most is not None:
        end = min(end, max(most, value))
    return end


def estimates(
    samples: Floats,
    sizes: Ints,
    least: Floats | float | None = None,
    most: Floats | float | None = None,
    confidence: float = 0.95,
) -> Estimates:
    """Estimate many means at once, with the same results as `estimate` by Student's t.

    Parameters
    ----------
    samples
        Values of all samples, one sample after the other; NaN if a run has none.
    sizes
        Number of values of each sample, shape (m,).
    least, most
        Bounds as for `estimate`: common to all samples, or one per sample, shape (m,).
    confidence
        As for `estimate`.

    Examples
    --------
    >>> import numpy as np
    >>> from jostle.stats import estimates
    >>> found = estimates(np.array([9.0, 10.0, 11.0, 3.0]), np.array([3, 1]))
    >>> found.value.tolist(), found.n.tolist(), found.low.round(2).tolist()
    ([10.0, 3.0], [3, 1], [7.52, nan])
    """
    import numpy as np

    from jostle.stats.descriptive import means

    whose = np.repeat(np.arange(sizes.size), sizes)[there := ~np.isnan(samples)]
    there_samples, n = samples[there], np.bincount(whose, minlength=sizes.size)
    value, low, high = (np.full(sizes.size, np.nan) for _ in range(3))
    for size in np.unique(n[n > 0]):
        of_size = n == size
        alike = there_samples[of_size[whose]].reshape(-1, size)
        value[of_size] = means(alike)
        if size > 1:
            half = half_widths(alike, confidence)
            low[of_size], high[of_size] = value[of_size] - half, value[of_size] + half
    return Estimates(value, within(low, value, least, most), within(high, value, least, most), n)


def within(
    end: Floats | float,
    value: Floats | float,
    least: Floats | float | None,
    most: Floats | float | None,
) -> Floats:
    """Clip the ends of intervals to the bounds, but never beyond the value itself.

    Examples
    --------
    >>> from jostle.stats import within
    >>> float(within(-0.2, 0.1, least=0.0, most=1.0))
    0.0
    """
    import numpy as np

    moved = np.asarray(end, dtype=np.float64)
    if least is not None:
        moved = np.maximum(moved, np.minimum(least, value))
    if most is not None:
        moved = np.minimum(moved, np.maximum(most, value))
    return moved


def half_widths(samples: Floats, confidence: float = 0.95) -> Floats:
    """Return the half-widths, shape (m,), of Student t intervals of samples of shape (m, n)."""
    import numpy as np

    from jostle.stats.descriptive import variances

    n = samples.shape[1]
    wide: Floats = t_quantile(n - 1, 0.5 + confidence / 2) * np.sqrt(variances(samples))
    return wide / float(np.sqrt(n))


def _bootstrap(
    values: Sequence[float] | Floats, confidence: float, seed: int
) -> tuple[float, float]:
    import numpy as np

    sample = np.array(values)
    if np.ptp(sample) == 0.0:
        # All resamples have the same mean; BCa's acceleration would be 0/0.
        return float(sample[0]), float(sample[0])
    from scipy.stats import bootstrap

    result = bootstrap(
        (sample,),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        method="BCa",
        rng=np.random.default_rng(seed),
    )
    interval = result.confidence_interval
    return float(interval.low), float(interval.high)
