"""Per-row quantities that metrics are computed from, in place of all class probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.chunks import row_slices, rows_within
from dichotomies._common.typing import BoolArray, FloatArray, IntArray
from dichotomies._common.validation import row_weights, to_host
from dichotomies.metrics import _input

#: Bytes of probabilities reduced at a time, small enough for a core's cache.
_BLOCK_BYTES = 512 * 2**10


class ScoredEvents(NamedTuple):
    """Probabilities of binary events, their outcomes and weights."""

    score: FloatArray
    happened: BoolArray
    weight: FloatArray
    log_complement: FloatArray | None = None


@dataclass(frozen=True)
class RowFacts:
    """Per-row quantities from which every metric except the class-wise ones is computed.

    About 70 bytes per row for any number of classes.

    Attributes
    ----------
    codes, predicted : ndarray of shape (n_rows,)
        Column of the true and of the most probable class.
    log_proba : ndarray of shape (n_rows,)
        Logarithm of the probability of the true class.
    brier : ndarray of shape (n_rows,)
        Sum over the classes of the squared difference between probability and truth.
    confidence : ndarray of shape (n_rows,)
        Probability of the most probable class.
    log_complement : ndarray of shape (n_rows,)
        ``log(1 - confidence)``, accurate for confidences near 1.
    rank : ndarray of shape (n_rows,)
        Number of classes more probable than the true one; ties are ordered by column.
    top_k_confidence : ndarray of shape (n_rows, len(top_k))
        Sum of the k largest probabilities.
    weight : ndarray of shape (n_rows,)
        Weights of the rows.
    top_k : tuple of int
        Values of k for which `top_k_confidence` is available.

    Examples
    --------
    >>> from dichotomies.metrics import RowFacts
    >>> facts = RowFacts.from_predictions(["a", "c"], [[0.5, 0.2, 0.3], [0.6, 0.3, 0.1]], labels=list("abc"))
    >>> facts.rank
    array([0, 2])
    >>> facts.confidence
    array([0.5, 0.6])
    """

    codes: IntArray
    predicted: IntArray
    log_proba: FloatArray
    brier: FloatArray
    confidence: FloatArray
    log_complement: FloatArray
    rank: IntArray
    top_k_confidence: FloatArray
    weight: FloatArray
    top_k: tuple[int, ...] = (5,)

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_proba: npt.ArrayLike,
        *,
        labels: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        top_k: Sequence[int] = (5,),
        is_log: bool = False,
    ) -> RowFacts:
        """Reduce class probabilities to per-row quantities.

        Parameters
        ----------
        y_true : array of shape (n_rows,)
            The true labels.
        y_proba : array of shape (n_rows, n_classes) or (n_rows,)
            Class probabilities, or the probability of the second of two classes. Arrays on disk
            (``numpy.memmap``) are read a block at a time.
        labels : array of shape (n_classes,), optional
            The labels of the columns; by default the sorted labels that occur in `y_true`.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows.
        top_k : sequence of int, default=(5,)
            Values of k for which the sum of the k largest probabilities is stored.
        is_log : bool, default=False
            True if `y_proba` holds log-probabilities.
        """
        matrix = _input.checked_matrix(y_proba, is_log=is_log)
        codes = _input.class_codes(y_true, _input.column_labels(y_true, y_proba, labels))
        _input.check_same_length(codes, matrix)
        weight = row_weights(sample_weight, len(codes))
        wanted = _input.checked_top_k(top_k)
        parts = [
            reduced_block(block, codes[rows], weight[rows], wanted, first_row=rows.start)
            for rows, block in probability_blocks(matrix, is_log=is_log)
        ]
        return cls.concatenate(parts)

    @classmethod
    def concatenate(cls, parts: Sequence[RowFacts]) -> RowFacts:
        """Concatenate the rows of all `parts`."""
        if len({part.top_k for part in parts}) != 1:
            raise ValueError("RowFacts can only be concatenated if they have the same top_k.")
        arrays = [field.name for field in fields(cls) if field.name != "top_k"]
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in arrays}
        return cls(**joined, top_k=parts[0].top_k)

    def __len__(self) -> int:
        return len(self.codes)

    def rows(self, index: IntArray) -> RowFacts:
        """Return the rows at `index`."""
        arrays = [field.name for field in fields(self) if field.name != "top_k"]
        return replace(self, **{name: getattr(self, name)[index] for name in arrays})

    def reweighted(self, weight: FloatArray) -> RowFacts:
        """Return the same rows with the weights `weight`."""
        return replace(self, weight=weight)

    def mean(self, values: npt.ArrayLike) -> float:
        """Return the weighted mean of `values` over the rows; those of rows with weight zero are ignored."""
        weighed = self.weight > 0
        return float(np.average(np.asarray(values)[weighed], weights=self.weight[weighed]))

    def events(self, k: int | None = None) -> ScoredEvents:
        """Return the event that the prediction is right, with its probability.

        Parameters
        ----------
        k : int, optional
            The true class is among the `k` most probable; by default, it is the most probable.
        """
        weighed = self.weight > 0
        happened, weight = (self.rank < (k or 1))[weighed], self.weight[weighed]
        if k is None:
            return ScoredEvents(self.confidence[weighed], happened, weight, self.log_complement[weighed])
        if k not in self.top_k:
            raise ValueError(f"The RowFacts were computed for top_k={self.top_k}, not for k={k}.")
        return ScoredEvents(self.top_k_confidence[weighed, self.top_k.index(k)], happened, weight)


class Block(NamedTuple):
    """Probabilities of some rows in double precision, and their logarithms if given."""

    proba: FloatArray
    log_proba: FloatArray | None
    dtype: np.dtype[np.generic]


def probability_blocks(matrix: FloatArray, *, is_log: bool) -> Iterator[tuple[slice, Block]]:
    """Yield blocks of rows that fit into the cache, as slices and probabilities."""
    for rows in row_slices(matrix.shape[0], rows_within(_BLOCK_BYTES, matrix.shape[1])):
        given = to_host(matrix[rows, :])
        values = np.asarray(given, dtype=np.float64)
        block = Block(np.exp(values), values, given.dtype) if is_log else Block(values, None, given.dtype)
        yield rows, block


def reduced_block(
    block: Block, codes: IntArray, weight: FloatArray, top_k: tuple[int, ...], first_row: int
) -> RowFacts:
    """Reduce one block of rows; `first_row` is its offset, for error messages."""
    n, n_classes = block.proba.shape
    each, proba = np.arange(n), block.proba
    ordered_by = proba if block.log_proba is None else block.log_proba
    of_truth = ordered_by[each, codes][:, None]
    before = (ordered_by == of_truth) & (np.arange(n_classes) < codes[:, None])
    rank = ((ordered_by > of_truth) | before).sum(axis=1)
    predicted = ordered_by.argmax(axis=1)
    own = proba[each, codes]
    # the true class is subtracted here, where cancellation is harmless to small differences
    others = np.maximum(np.einsum("ij,ij->i", proba, proba) - own * own, 0.0)
    brier = others + (1.0 - own) * (1.0 - own)
    smallest, total = proba.min(axis=1), proba.sum(axis=1)
    k = min(max(top_k), n_classes)
    largest = np.sort(np.partition(proba, n_classes - k, axis=1)[:, n_classes - k :], axis=1)[:, ::-1]
    rest = proba.copy()
    rest[each, predicted] = 0.0
    complement = rest.sum(axis=1)  # accurate near 0
    _input.check_proba(smallest, total, block.dtype, first_row)
    # a sum of probabilities may exceed 1 by rounding, which would make log(1 - p) NaN
    sums = np.minimum(np.cumsum(largest, axis=1), 1.0)
    with np.errstate(divide="ignore"):
        log_own = np.log(own) if block.log_proba is None else of_truth[:, 0]
        log_complement = np.log(complement)
    if block.log_proba is not None:
        _fix_underflow(log_complement, block.log_proba, predicted)
    wanted = [min(k, n_classes) - 1 for k in top_k]
    return RowFacts(
        codes, predicted, log_own, brier, sums[:, 0], log_complement, rank, sums[:, wanted], weight, top_k
    )


def _fix_underflow(log_complement: FloatArray, log_proba: FloatArray, predicted: IntArray) -> None:
    """Sum log-probabilities directly where all probabilities but the largest underflow."""
    lost = np.flatnonzero(np.isneginf(log_complement))
    if len(lost) and log_proba.shape[1] > 1:
        others = log_proba[lost]
        others[np.arange(len(lost)), predicted[lost]] = -np.inf
        log_complement[lost] = np.logaddexp.reduce(others, axis=1)
