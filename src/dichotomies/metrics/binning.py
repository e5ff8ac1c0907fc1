"""Scores put into bins, of equal width or equal mass, and the sums that calibration errors are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dichotomies._kernels.row_facts import add_to_bins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import BoolArray, FloatArray, IntArray
    from dichotomies.metrics.facts import ScoredEvents

STRATEGIES = ("uniform", "quantile")


@dataclass(frozen=True)
class Bins:
    """Sums over the rows in each bin; a score on an edge belongs to the bin below.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,) or (n_bins + 1, n_classes)
        Edges of the bins, from 0 to 1.
    weight : ndarray of shape (n_bins,) or (n_bins, n_classes)
        Sum of the weights: the number of rows, without weights.
    score, outcome : ndarrays of the shape of `weight`
        Weighted sums of the scores, and of the events that happened.
    """

    edges: FloatArray
    weight: FloatArray
    score: FloatArray
    outcome: FloatArray

    @property
    def gap(self) -> FloatArray:
        """How much more often events happened than the scores say, as a share; 0 in empty bins."""
        return (self.outcome - self.score) / np.where(self.weight > 0, self.weight, 1.0)

    @property
    def share(self) -> FloatArray:
        """Share of the weight in each bin."""
        result: FloatArray = self.weight / self.weight.sum(axis=0)
        return result

    def of_class(self, column: int) -> Bins:
        """The bins of one class."""
        edges = self.edges if self.edges.ndim == 1 else self.edges[:, column]
        return Bins(edges, self.weight[:, column], self.score[:, column], self.outcome[:, column])


def equal_width_edges(n_bins: int) -> FloatArray:
    """Edges of `n_bins` bins of equal width between 0 and 1."""
    if n_bins != int(n_bins) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number, 1 or more, got {n_bins}.")
    return np.linspace(0.0, 1.0, int(n_bins) + 1)


def bin_of(score: FloatArray, edges: FloatArray) -> IntArray:
    """The bin of each score; one on an edge belongs to the bin below."""
    return np.searchsorted(edges[1:-1], score, side="left")


def bin_sums(
    index: IntArray, score: FloatArray, happened: BoolArray, weight: FloatArray, size: int
) -> FloatArray:
    """Weight, weighted scores and weight of what happened in each bin, shape (3, size)."""
    sums = (weight, weight * score, weight * happened)
    return np.stack([sums_by_index(index, values, size) for values in sums])


def equal_mass_edges(score: FloatArray, weight: FloatArray, n_bins: int) -> FloatArray:
    """Edges such that every bin has about the same weight.

    An edge lies half-way between the scores on its two sides. Equal scores are never parted, so some bins
    may be empty.
    """
    edges = equal_width_edges(n_bins)
    order = np.argsort(score, kind="stable")
    ordered, mass = score[order], np.cumsum(weight[order])
    targets = np.arange(1, len(edges) - 1) * mass[-1] / (len(edges) - 1)
    below = np.searchsorted(mass, targets, side="left")
    above = np.minimum(np.searchsorted(mass, targets, side="right"), len(mass) - 1)
    edges[1:-1] = (ordered[below] + ordered[above]) / 2
    return edges


def sums_by_index(index: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Sums of the values that share an index."""
    return np.asarray(np.bincount(index, weights=values, minlength=size), dtype=np.float64)


def binned(events: ScoredEvents, n_bins: int, strategy: str) -> Bins:
    """Events in bins of equal width ("uniform") or equal mass ("quantile")."""
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(map(repr, STRATEGIES))}, got {strategy!r}.")
    score, happened, weight = events.score, events.happened, events.weight
    uniform = strategy == "uniform"
    edges = equal_width_edges(n_bins) if uniform else equal_mass_edges(score, weight, n_bins)
    return Bins(edges, *bin_sums(bin_of(score, edges), score, happened, weight, len(edges) - 1))


def stacked(columns: Sequence[Bins]) -> Bins:
    """The bins of several classes side by side."""
    edges, weight, score, outcome = (
        np.stack([getattr(bins, name) for bins in columns], axis=1)
        for name in ("edges", "weight", "score", "outcome")
    )
    return Bins(edges, weight, score, outcome)


class ClassBinsBuilder:
    """Equal-width bins of every class against the rest, filled a block of rows at a time.

    Rows may be dealt to several batches, each with bins of its own, so that batches can be resampled.
    """

    def __init__(self, n_classes: int, n_bins: int, n_batches: int = 1) -> None:
        self._edges = equal_width_edges(n_bins)
        self._sums = np.zeros((3, n_batches, len(self._edges) - 1, n_classes))

    @property
    def n_batches(self) -> int:
        """Number of batches."""
        return int(self._sums.shape[1])

    def add(
        self, proba: FloatArray, codes: IntArray, weight: FloatArray, batch: IntArray | None = None
    ) -> None:
        """Add rows of class probabilities, shape (n_rows, n_classes)."""
        batch = np.zeros(len(codes), dtype=np.intp) if batch is None else batch
        add_to_bins(proba, codes, weight, batch, self._edges[1:-1], *self._sums)

    def bins(self, times: FloatArray | None = None) -> Bins:
        """The bins so far, of shape (n_bins, n_classes), each batch counted the given number of times."""
        times = np.ones(self._sums.shape[1]) if times is None else times
        return Bins(self._edges, *np.einsum("b,sbij->sij", times, self._sums))
