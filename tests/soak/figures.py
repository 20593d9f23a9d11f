"""Percentiles of latencies, slopes of memory."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Sample(NamedTuple):
    """What the system said about the broker at one time."""

    age: float
    """Seconds since the process started to serve."""
    rss_anon_mib: float
    descriptors: int


def percentile(values: Sequence[float], share: float) -> float:
    """0 without values."""
    return float(np.percentile(values, share)) if values else 0.0


def mib_per_minute(samples: Sequence[Sample]) -> float:
    """How fast memory grows in the second half of a process's life: the first half fills caches."""
    late = samples[len(samples) // 2 :]
    if len(late) < 3:
        return 0.0
    ages = [sample.age for sample in late]
    return float(np.polyfit(ages, [sample.rss_anon_mib for sample in late], 1)[0]) * 60


def at_age(samples: Sequence[Sample], seconds: float) -> Sample:
    """The sample nearest to an age."""
    return min(samples, key=lambda sample: abs(sample.age - seconds))
