"""The statistics of the tables and plots."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """The median and the spread of repeated measurements."""

    median: float
    low: float
    high: float
    rounds: int

    @property
    def spread(self) -> float:
        """Half the distance of the extremes, as a fraction of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0


def summarize(values: Sequence[float]) -> Summary:
    return Summary(statistics.median(values), min(values), max(values), len(values))


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of them do not exceed."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)  # rounded up
    return ordered[max(int(rank) - 1, 0)]


def ratio(value: float, reference: float, *, more_is_better: bool) -> float | None:
    """The factor to the reference: above 1 is better, for metrics of either direction."""
    if value <= 0 or reference <= 0:
        return None
    return value / reference if more_is_better else reference / value
