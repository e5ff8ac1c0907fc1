"""Events of the calibration metrics, and their binning by equal width or equal mass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._common.validation import row_weights
from dichotomies.metrics import _input
from dichotomies.metrics._input import check_choice
from dichotomies.metrics.facts import RowFacts, ScoredEvents, probability_blocks

STRATEGIES = ("uniform", "quantile")


@dataclass(frozen=True)
class Bins:
    """Sums over the rows in each bin; bins include their upper edge.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,) or (n_bins + 1, n_classes)
        Edges of the bins, from 0 to 1.
    weight : ndarray of shape (n_bins,) or (n_bins, n_classes)
        Sum of the weights; the number of rows if unweighted.
    score, outcome : ndarrays of the shape of `weight`
        Weighted sums of the scores, and of the events that occurred.
    """

    edges: FloatArray
    weight: FloatArray
    score: FloatArray
    outcome: FloatArray

    @property
    def gap(self) -> FloatArray:
        """Frequency of the events minus mean score in each bin; 0 in empty bins."""
        return (self.outcome - self.score) / np.where(self.weight > 0, self.weight, 1.0)

    @property
    def share(self) -> FloatArray:
        """Share of the weight in each bin."""
        result: FloatArray = self.weight / self.weight.sum(axis=0)
        return result

    def of_class(self, column: int) -> Bins:
        """The bins of one class, given its `column`."""
        edges = self.edges if self.edges.ndim == 1 else self.edges[:, column]
        return Bins(edges, self.weight[:, column], self.score[:, column], self.outcome[:, column])


def equal_width_edges(n_bins: int) -> FloatArray:
    """Edges of `n_bins` bins of equal width between 0 and 1."""
    if n_bins != int(n_bins) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number, 1 or more, got {n_bins}.")
    return np.linspace(0.0, 1.0, int(n_bins) + 1)


def bin_of(score: FloatArray, edges: FloatArray) -> IntArray:
    """Return the bin of each score; bins include their upper edge."""
    return np.searchsorted(edges[1:-1], score, side="left")


def bin_sums(
    index: IntArray, score: FloatArray, happened: BoolArray, weight: FloatArray, size: int
) -> FloatArray:
    """Return weight, weighted score and weight of the events that occurred per bin, shape (3, size)."""
    sums = (weight, weight * score, weight * happened)
    return np.stack([sums_by_index(index, values, size) for values in sums])


def equal_mass_edges(score: FloatArray, weight: FloatArray, n_bins: int) -> FloatArray:
    """Return edges such that every bin has about the same weight."""
    edges = equal_width_edges(n_bins)
    order = np.argsort(score, kind="stable")
    ordered, mass = score[order], np.cumsum(weight[order])
    targets = np.arange(1, len(edges) - 1) * mass[-1] / (len(edges) - 1)
    below = np.searchsorted(mass, targets, side="left")
    above = np.minimum(np.searchsorted(mass, targets, side="right"), len(mass) - 1)
    edges[1:-1] = (ordered[below] + ordered[above]) / 2
    return edges


def sums_by_index(index: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Sum the values that share an index."""
    return np.asarray(np.bincount(index, weights=values, minlength=size), dtype=np.float64)


def binned(events: ScoredEvents, n_bins: int, strategy: str) -> Bins:
    """Bin events by equal width ("uniform") or equal mass ("quantile")."""
    check_choice("strategy", strategy, STRATEGIES)
    score, happened, weight = events.score, events.happened, events.weight
    uniform = strategy == "uniform"
    edges = equal_width_edges(n_bins) if uniform else equal_mass_edges(score, weight, n_bins)
    return Bins(edges, *bin_sums(bin_of(score, edges), score, happened, weight, len(edges) - 1))


def stacked(columns: Sequence[Bins]) -> Bins:
    """Stack the bins of several classes as columns."""
    edges, weight, score, outcome = (
        np.stack([getattr(bins, name) for bins in columns], axis=1)
        for name in ("edges", "weight", "score", "outcome")
    )
    return Bins(edges, weight, score, outcome)


class ClassBinsBuilder:
    """Accumulator of equal-width bins of every class against the rest, block by block."""

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
        inner, rows = self._edges[1:-1], np.arange(len(codes))
        in_first = proba <= (inner[0] if len(inner) else np.inf)
        deal = csr_array((weight, (batch, rows)), (self.n_batches, len(codes)))
        sum_weight, sum_score, outcome = self._sums
        sum_weight[:, 0] += deal @ in_first
        sum_score[:, 0] += deal @ np.where(in_first, proba, 0.0)
        row, column = np.divmod(np.flatnonzero(~in_first), proba.shape[1])  # few, because a row sums to 1
        score = proba[row, column]
        place = batch[row], np.searchsorted(inner, score), column
        np.add.at(sum_weight, place, weight[row])
        np.add.at(sum_score, place, weight[row] * score)
        np.add.at(outcome, (batch, np.searchsorted(inner, proba[rows, codes]), codes), weight)

    def bins(self, times: FloatArray | None = None) -> Bins:
        """Return the bins so far, of shape (n_bins, n_classes), with each batch repeated `times` times."""
        times = np.ones(self._sums.shape[1]) if times is None else times
        return Bins(self._edges, *np.einsum("b,sbij->sij", times, self._sums))


KINDS = ("top-label", "top-k", "class-wise")


class EventQuery(NamedTuple):
    """The arguments that all calibration metrics share: predictions, and the kind of event."""

    y_true: npt.ArrayLike
    y_proba: npt.ArrayLike
    labels: npt.ArrayLike | None
    sample_weight: npt.ArrayLike | None
    kind: str | None
    k: int

    @property
    def is_classwise(self) -> bool:
        """True for metrics with one value per class."""
        return self.kind == "class-wise"

    def events(self) -> ScoredEvents:
        """Return the events, for kinds with one event per row."""
        self._check_kind()
        if np.ndim(self.y_proba) == 1:
            return self._binary_events()
        return self._facts(self.k).events(self.k if self.kind == "top-k" else None)

    def bins(self, n_bins: int, strategy: str) -> Bins:
        """Return the binned events, with a column per class for "class-wise"."""
        if not self.is_classwise:
            return binned(self.events(), n_bins, strategy)
        if strategy != "uniform":
            return stacked([binned(events, n_bins, strategy) for events in self.class_events()])
        matrix, codes, weight = self._checked_matrix()
        builder = ClassBinsBuilder(matrix.shape[1], n_bins)
        for rows, block in probability_blocks(matrix, is_log=False):
            builder.add(block.proba, codes[rows], weight[rows])
        return builder.bins()

    def class_events(self) -> Iterator[ScoredEvents]:
        """Yield, for every class, the events that a row is of that class."""
        matrix, codes, weight = self._checked_matrix()
        weighed = weight > 0
        matrix, codes, weight = matrix[weighed], codes[weighed], weight[weighed]
        for c in range(matrix.shape[1]):
            score = np.minimum(np.asarray(matrix[:, c], dtype=np.float64), 1.0)
            yield ScoredEvents(score, codes == c, weight)

    def _binary_events(self) -> ScoredEvents:
        score = _input.checked_scores(self.y_proba)
        columns = _input.column_labels(self.y_true, score, self.labels)
        happened = _input.class_codes(self.y_true, columns) == 1
        _input.check_same_length(happened, score)
        weight = row_weights(self.sample_weight, len(score))
        weighed = weight > 0
        return ScoredEvents(score[weighed], happened[weighed], weight[weighed])

    def _checked_matrix(self) -> tuple[FloatArray, IntArray, FloatArray]:
        self._check_kind()
        facts = self._facts(1)  # also validates the rows, at no extra cost
        return _input.checked_matrix(self.y_proba), facts.codes, facts.weight

    def _facts(self, k: int) -> RowFacts:
        return RowFacts.from_predictions(
            self.y_true, self.y_proba, labels=self.labels, sample_weight=self.sample_weight, top_k=(k,)
        )

    def _check_kind(self) -> None:
        _input.check_k(self.k)
        if self.kind is None:
            return
        _input.check_choice("kind", self.kind, KINDS)
        if np.ndim(self.y_proba) == 1:
            raise ValueError(
                f"y_proba has one score per row, of one event; kind={self.kind!r} needs a column per class."
            )
